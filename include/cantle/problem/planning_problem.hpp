// SPDX-License-Identifier: BSL-1.0
#pragma once
// A planning problem as a value: what is to be decided, what moves where, and the factor graph that prices it.
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/problem/groups.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace cantle {

struct problem_options {
    cantle::boundary boundary;
    bool clustering = true;   ///< copies of a layer share one decision
    double tie_break = 1.0;   ///< microseconds per flow edge whose layouts differ: the published tie-break (DECISIONS 8)
    bool uneven = false;      ///< shards may be nested ceil chunks (DECISIONS 7)
    unsigned threads = 1;  ///< of pricing; prices do not depend on it
    shard_policy policy() const { return uneven ? shard_policy::uneven : shard_policy::even; }
};

/// The problem as a value. Everything indexes into everything else; nothing points back into a solver.
struct planning_problem {
    device_mesh mesh;
    problem_options options;
    layout_table layouts;
    op_class_table classes;
    relay_table relays;
    std::vector<flow_edge> edges;
    redistribution_tables tables;
    cantle::grouping grouping;
    mrf::factor_graph factors;   ///< variable i is group i

    explicit planning_problem(device_mesh m, problem_options o = {})
        : mesh(std::move(m)), options(std::move(o)), tables(mesh, options.policy()) {}

    /// The layout of a port of variable v when its group takes label l.
    layout_id layout_at(variable_index v, std::uint32_t port, mrf::label l) const {
        auto const& group = grouping.groups[grouping.group_of[v]];
        if (!group.of_strategies) return group.layouts[l];
        auto const& t = classes.classes[group.op_class].strategies;
        return t.layouts[group.strategies[l] * t.ports() + port];
    }
};

/// Computation and inner collectives of all members of a group, per label, microseconds.
inline std::vector<double> computation(planning_problem const& p, decision_group const& group) {
    std::vector<double> costs(group.label_count(), 0.0);
    if (!group.of_strategies) return costs;
    auto const& c = p.classes.classes[group.op_class];
    auto const copies = static_cast<double>(group.members.size());
    for (std::size_t l = 0; l < costs.size(); ++l)
        costs[l] = copies * (c.compute[group.strategies[l]] + c.communication[group.strategies[l]]);
    return costs;
}

}  // namespace cantle
