// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the tests of reported faults at run time share: graphs by hand with numbers for their sources, placements of every tensor or pins
// at the boundary, and a run on thread ranks whose sinks are compared with one rank's and whose collectives with the priced ones.
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/property/placements.hpp>
#include <adapters/libtorch/tests/run_plan.hpp>

#include <cantle/graph/builder.hpp>

#include <functional>
#include <optional>
#include <tuple>

namespace cantle::libtorch::tests {

using texts = std::vector<std::string>;
using refs = std::vector<value_ref>;

inline at::Tensor numbers(std::vector<double> const& v) { return at::tensor(v, at::kDouble); }
inline at::Tensor longs(std::vector<std::int64_t> const& v) { return at::tensor(v, at::kLong); }
inline at::Tensor counted_up(shape const& sizes) { return at::arange(element_count(sizes), at::kDouble).view(sizes); }
inline at::Tensor normal(shape const& sizes) { return at::randn(sizes, at::kDouble); }
inline bool near(at::Tensor const& a, at::Tensor const& b) {
    return a.sizes() == b.sizes() && at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-10, 1e-10);
}

/// What the ranks gave.
struct outcome {
    tensor_map whole;                                   // by sink
    std::map<std::string, std::vector<at::Tensor>> pieces;
    std::vector<std::vector<ran_collective>> collectives;  // [rank]
    std::size_t count() const { return collectives[0].size(); }
    std::size_t count(collective_kind kind) const {
        auto const& all = collectives[0];
        return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](auto const& c) { return c.kind == kind; }));
    }
};
inline outcome run(training_graph const& g, sharding_plan const& p, tensor_map const& data) {
    std::vector<rank_executor> ranks;
    for (auto& program : ready_programs(g, p, standard_registry())) ranks.emplace_back(std::move(program), names_of(g));
    auto got = run_on_threads(ranks, cut_inputs(g, p, data));
    bool const uneven = has_uneven(g, p);
    for (std::size_t r = 0; r < got.collectives.size(); ++r)
        CHECK((uneven && r > 0 ? at_most(counted(got.collectives[r]), priced(p)) : counted(got.collectives[r]) == priced(p)));
    outcome o;
    auto const want = replay(g, data);
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        auto& pieces = o.pieces[g[v].name];
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        o.whole[g[v].name] = put_together(pieces, p.at(p.nodes[v].operands[0]), p.mesh, g[v].outputs[0].sizes);
        CHECK_MESSAGE(near(o.whole[g[v].name], want.at(g[v].name)), g[v].name, " on ", p.mesh.text());
    }
    CHECK(o.whole.size() == want.size());
    o.collectives = std::move(got.collectives);
    return o;
}

/// A graph by hand with numbers for its sources. Shapes are those that ops give on zeros.
struct drawn : graph_builder {
    tensor_map data;
    drawn() {
        shapes_from([](op const& o, std::vector<tensor_meta> const& in) -> std::optional<std::vector<tensor_meta>> {
            std::vector<at::Tensor> zeros;
            for (auto const& m : in) zeros.push_back(at::zeros(m.sizes, to_scalar_type(m.type)));
            std::vector<tensor_meta> metas;
            for (auto const& t : call_op(o, zeros)) metas.push_back(to_meta(t));
            return metas;
        });
    }
    value_ref in(std::string const& name, at::Tensor const& t) {
        data[name] = t;
        return input(name, t.sizes().vec(), to_dtype(t.scalar_type()));
    }
};

struct at_place {
    value_ref value;
    texts operands, outputs;
};
/// Sinks and whatever is not named are Replicate.
inline sharding_plan placed(drawn const& d, std::string const& mesh, std::vector<at_place> const& places) {
    written_case c(d.build(), mesh);
    for (auto const& p : places) c.place(p.value, p.operands, p.outputs);
    return c.made().plan;
}
inline outcome run_placed(drawn const& d, std::string const& mesh, std::vector<at_place> const& places) {
    return run(d.build(), placed(d, mesh, places), d.data);
}
inline plan_options pinned(std::vector<pin> pins, bool uneven = false) {
    plan_options o;
    o.boundary.inputs = "free";
    o.boundary.parameters = parameter_storage::free;
    o.boundary.pins = std::move(pins);
    o.uneven = uneven;
    return o;
}
/// Pinned at the boundary, in between whatever is cheapest at prices drawn from three seeds; the first outcome is given back.
inline outcome run_planned(training_graph const& g, tensor_map const& data, std::string const& mesh, plan_options const& o) {
    std::vector<outcome> all;
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        all.push_back(run(g, plan(g, device_mesh::parse(mesh), standard_registry(), random_cost_model{seed}, o), data));
    return all[0];
}
inline outcome run_planned(drawn const& d, std::string const& mesh, std::vector<pin> pins, bool uneven = false) {
    return run_planned(d.build(), d.data, mesh, pinned(std::move(pins), uneven));
}

inline value_ref norm(drawn& d, value_ref x) {
    return d.call("aten::linalg_vector_norm", {{"self", x}, {"ord", 2.0}, {"dim", none}, {"keepdim", false}, {"dtype", none}});
}
inline value_ref slice(drawn& d, value_ref x, int dim, int start, int end, int step = 1) {
    return d.call("aten::slice.Tensor", {{"self", x}, {"dim", dim}, {"start", start}, {"end", end}, {"step", step}});
}
inline std::string message_of(std::function<void()> const& f) {
    try {
        f();
    } catch (error const& e) {
        return e.what();
    }
    return "no error";
}

/// By communicator: its collectives in the order of their starts.
using start_order = std::map<std::vector<std::uint8_t>, std::vector<std::tuple<collective_kind, program_value, program_value>>>;
inline start_order starts_of(rank_program const& p) {
    start_order by;
    for (auto const& s : p.steps)
        if (s.is_transfer() && s.move.communicates()) by[s.move.axes].emplace_back(s.move.kind, s.inputs[0], s.outputs[0]);
    return by;
}
/// Pairs of collectives between ops, on one communicator, where the second to start was ready no later and is needed before the first.
inline std::size_t overtaken(rank_program const& p) {
    auto const& steps = p.steps;
    std::map<program_value, std::size_t> made, read;
    for (std::size_t s = 0; s < steps.size(); ++s) {
        for (auto v : steps[s].inputs) read.try_emplace(v, s);
        for (auto v : steps[s].outputs) made[v] = s + 1;
    }
    auto const ready = [&](program_step const& s) { return made.count(s.inputs[0]) ? made.at(s.inputs[0]) : 0; };
    auto const between_ops = [&](program_step const& s) {
        if (!s.is_transfer() || !s.move.communicates()) return false;
        auto const to = read.find(s.outputs[0]);
        return to != read.end() && !steps[to->second].is_transfer() && (ready(s) == 0 || !steps[ready(s) - 1].is_transfer());
    };
    std::size_t count = 0;
    for (std::size_t a = 0; a < steps.size(); ++a)
        for (std::size_t b = a + 1; b < steps.size(); ++b)
            count += between_ops(steps[a]) && between_ops(steps[b]) && steps[a].move.axes == steps[b].move.axes &&
                     ready(steps[b]) <= ready(steps[a]) && read.at(steps[b].outputs[0]) < read.at(steps[a].outputs[0]);
    return count;
}

}  // namespace cantle::libtorch::tests
