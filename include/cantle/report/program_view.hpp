// SPDX-License-Identifier: BSL-1.0
#pragma once
// A rank's program in words that its reader knows: which tensor of the graph a value is, what a step does.
#include <cantle/graph/training_graph.hpp>
#include <cantle/program/program.hpp>
#include <cantle/report/collectives.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// Precondition: the program was lowered from this graph. Keeps references to both.
class program_view {
public:
    program_view(rank_program const& p, training_graph const& g)
        : p_(p), g_(g), names_(p.values.size()), sources_(p.values.size(), nullptr) {
        for (auto const& in : p.inputs) {
            names_[in.value] = g[in.node].name;
            sources_[in.value] = &g[in.node];
        }
        for (auto const& s : p.steps)
            for (std::size_t o = 0; o < s.outputs.size(); ++o)
                names_[s.outputs[o]] = s.is_transfer() ? names_[s.inputs[0]] : g[s.at].name + (o ? "." + std::to_string(o) : "");
    }

    rank_program const& program() const { return p_; }
    training_graph const& graph() const { return g_; }
    /// The tensor that a value is, or is a moved form of: "layers.0.w1.weight", "layers.0/linear", "cross_entropy.1" for output 1.
    std::string const& name(program_value v) const { return names_[v]; }
    /// The source that a value is; null for what the program makes.
    graph_node const* source(program_value v) const { return sources_[v]; }
    /// "dp,tp".
    std::string axes(std::vector<std::uint8_t> const& list) const {
        std::string s;
        for (auto a : list) s += (s.empty() ? "" : ",") + p_.mesh.name(a);
        return s;
    }
    std::string axes(std::uint32_t mask) const { return axes_text(p_.mesh, mask); }
    /// "aten::linear", "all_gather(tp)", "all_reduce(dp,tp) max".
    std::string action(program_step const& s) const {
        if (!s.is_transfer()) return s.call.name;
        std::string text = std::string(to_string(s.move.kind)) + "(" + axes(s.move.axes) + ")";
        bool const reduces = s.move.kind == collective_kind::all_reduce || s.move.kind == collective_kind::reduce_scatter;
        if (reduces && s.move.reduce != reduction::sum) text += " " + std::string(to_string(s.move.reduce));
        return text;
    }

private:
    rank_program const& p_;
    training_graph const& g_;
    std::vector<std::string> names_;             // [value]
    std::vector<graph_node const*> sources_;     // [value]
};

}  // namespace cantle
