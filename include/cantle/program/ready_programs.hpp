// SPDX-License-Identifier: BSL-1.0
#pragma once
// Graph + plan -> programs as they run: lowered, collectives started early, checked. The one door from a plan to an executor.
#include <cantle/graph/properties.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/program/schedule.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cantle {

/// Whether some tensor of the plan lies in pieces that differ from rank to rank.
inline bool has_uneven(training_graph const& g, sharding_plan const& p) {
    for (vertex v = 0; v < g.size(); ++v)
        for (std::size_t o = 0; o < g[v].outputs.size(); ++o)
            if (g[v].outputs[o].defined && !p.at(p.nodes[v].outputs[o]).fits(g[v].outputs[o].sizes)) return true;
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps)
            if (!s.step.to.fits(g.meta(m.value).sizes)) return true;
    return false;
}

/// The programs of all ranks, in order of rank. Throws before anything runs what lower_all throws (a foreign plan, one that cannot run).
template <class Rules>
std::vector<rank_program> ready_programs(training_graph const& g, sharding_plan const& plan, Rules const& rules,
                                         schedule_options const& options = {}) {
    auto all = lower_all(g, plan, rules);
    schedule_starts(all, options);
    check_programs(all);
    return all;
}

/// ready_programs(...)[rank] without the work for ranks whose sizes are those of this one. Throws bad_option for a rank that is not there.
template <class Rules>
rank_program ready_program(training_graph const& g, sharding_plan const& plan, Rules const& rules, std::int64_t rank,
                           schedule_options const& options = {}) {
    auto program = lower(g, plan, rules, rank);
    // The order of the starts depends on the sizes of all ranks.
    if (has_uneven(g, plan)) return std::move(ready_programs(g, plan, rules, options)[static_cast<std::size_t>(rank)]);
    schedule_starts(std::span(&program, 1), options);
    return program;
}

/// The same for a graph type of one's own: its training_graph is import_graph(graph).graph, whose vertices the plan counts.
template <class Graph, class Rules>
std::vector<rank_program> ready_programs(Graph const& graph, sharding_plan const& plan, Rules const& rules,
                                         schedule_options const& options = {}) {
    return ready_programs(import_graph(graph).graph, plan, rules, options);
}

}  // namespace cantle
