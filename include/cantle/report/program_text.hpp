// SPDX-License-Identifier: BSL-1.0
#pragma once
// The program of one rank as text for people: what it is given, every step with the values it reads and makes, their local sizes, and which
// values go away behind it. %3 is a value; the same number means the same tensor on every rank.
#include <cantle/plan/plan.hpp>
#include <cantle/report/figures.hpp>
#include <cantle/report/program_view.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

inline std::string value_text(program_value v) { return "%" + std::to_string(v); }

inline std::string values_text(std::vector<program_value> const& list) {
    std::string s;
    for (auto v : list) s += (s.empty() ? "" : " ") + value_text(v);
    return s;
}

/// "float32 [16, 1024]"; "..." for what an op makes on the way and only knows when it runs.
inline std::string tensor_text(value_info const& info) {
    if (!info.defined) return "nothing";
    if (!info.sizes) return "...";
    return std::string(to_string(info.type)) + " " + shape_text(*info.sizes);
}

/// "packed [4, 2, 8] in the order [1, 0, 2]": the tensor seen so, its dims then put in that order.
inline std::string rearrangement_text(char const* verb, rearrangement const& r) {
    return std::string(verb) + " " + shape_text(r.view) + " in the order " + shape_text(r.order);
}

}  // namespace detail

/// Lines of any width, ending in a newline. Precondition: the program was lowered from `plan` of g.
inline std::string program_text(rank_program const& p, training_graph const& g, sharding_plan const& plan) {
    program_view const view(p, g);
    auto const layout_text = [&](plan_layout l) { return plan.at(l).text(plan.mesh); };
    std::string out = "program of rank " + std::to_string(p.rank) + " (";
    for (std::size_t a = 0; a < p.mesh.dims(); ++a)
        out += (a ? ", " : "") + p.mesh.name(a) + " " + std::to_string(p.mesh.coordinate(p.rank, a));
    out = visible_text(out + ") on mesh " + p.mesh.text() + ": " + count_text(p.steps.size()) + " steps") + "\n\ninputs\n";
    text_table inputs({"value", "tensor", "role", "whole", "lies", "this rank's"});
    for (auto const& in : p.inputs)
        inputs.add({detail::value_text(in.value), g[in.node].name, std::string(to_string(g[in.node].role)),
                    shape_text(g[in.node].outputs[0].sizes), layout_text(plan.nodes[in.node].outputs[0]),
                    detail::tensor_text(p.values[in.value])});
    out += inputs.text() + "\nsteps\n";
    text_table steps({">step", "makes", "what runs", "reads", "gives", "for", "then lets go"});
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
        auto const& s = p.steps[i];
        std::string gives;
        for (auto v : s.outputs) gives += (gives.empty() ? "" : " ") + detail::tensor_text(p.values[v]);
        std::string purpose = s.is_transfer() ? view.name(s.inputs[0]) : g[s.at].name;
        if (s.is_transfer() && !s.move.pack.is_identity()) purpose += ", " + detail::rearrangement_text("packed", s.move.pack);
        if (s.is_transfer() && !s.move.unpack.is_identity()) purpose += ", " + detail::rearrangement_text("unpacked", s.move.unpack);
        steps.add({std::to_string(i), detail::values_text(s.outputs), view.action(s), detail::values_text(s.inputs), gives, purpose,
                   detail::values_text(s.last_uses)});
    }
    out += steps.text() + "\noutputs\n";
    text_table outputs({"value", "tensor", "role", "lies", "this rank's"});
    for (auto const& port : p.outputs)
        outputs.add({detail::value_text(port.value), g[port.node].name, std::string(to_string(g[port.node].role)),
                     layout_text(plan.nodes[port.node].operands[0]), detail::tensor_text(p.values[port.value])});
    return out + outputs.text();
}

}  // namespace cantle
