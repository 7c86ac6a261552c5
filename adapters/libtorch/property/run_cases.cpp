// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/run_cases.hpp>

#include <adapters/libtorch/property/draw_plan.hpp>
#include <adapters/libtorch/property/drawing.hpp>
#include <adapters/libtorch/property/sample_case.hpp>
#include <adapters/libtorch/property/surgery.hpp>

#include <utility>

namespace cantle::libtorch {

drawn_case draw_case(std::uint64_t seed) {
    dice d(seed);
    training_graph graph;
    tensor_map data;
    drawn_case out;
    if (d.chance(35)) {
        for (;;) {
            auto made = draw_sample_graph(d);
            if (!made) continue;
            graph = std::move(made->graph);
            data = std::move(made->data);
            break;
        }
        out.how = "a rule's sample";
    } else {
        auto made = draw_training_graph(d, static_cast<int>(d.range(1, 14)));
        graph = std::move(made.graph);
        data = draw_data(graph, made.bounds, is_exact(graph), seed);
        out.how = "training graph";
    }
    auto const* const sizes = property_meshes[d.below(std::size(property_meshes))];
    auto drawn = draw_plan(graph, device_mesh::parse(sizes), d);
    out.how += " of " + std::to_string(op_count(graph)) + " ops on " + sizes + ", " + drawn.how;
    out.refused = std::move(drawn.why);
    if (drawn.plan) out.made = run_case{std::move(graph), std::move(*drawn.plan), std::move(data)};
    return out;
}

run_cases_report run_cases(std::uint64_t first, std::uint64_t count, std::size_t most_failures) {
    run_cases_report r;
    for (auto seed = first; seed < first + count && r.failures.size() < most_failures; ++seed) {
        auto const drawn = draw_case(seed);
        ++r.cases;
        if (!drawn.made) {
            ++r.refused;
            ++r.refusals[drawn.refused.substr(0, 160)];
            continue;
        }
        auto const& c = *drawn.made;
        r.exact += is_exact(c.graph);
        r.ops += op_count(c.graph);
        r.moves += c.plan.moves.size();
        for (auto const& m : c.plan.moves) r.steps += c.plan.paths[m.path].steps.size();
        for (auto const& n : c.graph.nodes)
            if (n.role == node_role::computation) ++r.by_op[n.operation.name];
        auto const failed = failure_of(c);
        if (!failed) continue;
        auto const small = shrink(c, *failed);
        auto const of = [](run_failure const& f) { return f.kind + " " + f.where + " " + f.what; };
        r.failures.push_back("seed " + std::to_string(seed) + " (" + drawn.how + "): " + of(*failed) + "\nthe minimal case: " +
                             of(small.failure) + "\n" + text_of(small.small, "seed " + std::to_string(seed)) +
                             "again: CANTLE_RUN_SEED=" + std::to_string(seed) +
                             " CANTLE_RUN_CASES=1 ./dev test -R libtorch.run_property\n");
    }
    return r;
}

std::string run_cases_report::text() const {
    auto const n = [](std::size_t x) { return std::to_string(x); };
    auto s = n(cases) + " cases, " + n(exact) + " exact, " + n(refused) + " refused by the planner, " + n(failures.size()) + " failed; " +
             n(ops) + " ops of " + n(by_op.size()) + " kinds, " + n(moves) + " moves of " + n(steps) + " steps\n";
    for (auto const& [why, times] : refusals) s += "refused " + n(times) + " times: " + why + "\n";
    for (auto const& f : failures) s += f;
    return s;
}

}  // namespace cantle::libtorch
