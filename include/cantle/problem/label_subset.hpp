// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problems with fewer labels. Groups keep their members; labels are named by what they decide (a strategy or a layout), so that a decision
// means the same in every restriction of a problem.
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/problem/planning_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cantle {

/// [group] -> labels kept, ascending.
using label_subset = std::vector<std::vector<mrf::label>>;

/// What the labels of a group decide, ascending: strategies of the class' table, or layouts.
inline std::vector<std::uint32_t> const& decisions_in(decision_group const& g) { return g.of_strategies ? g.strategies : g.layouts; }
inline std::uint32_t decision_of(decision_group const& g, mrf::label l) { return decisions_in(g)[l]; }

/// The label that decides so. Precondition: the group has it.
inline mrf::label label_of(decision_group const& g, std::uint32_t decision) {
    auto const& list = decisions_in(g);
    return static_cast<mrf::label>(std::lower_bound(list.begin(), list.end(), decision) - list.begin());
}

/// The same groups with the labels kept.
inline grouping restricted(grouping const& all, label_subset const& kept) {
    grouping some = all;
    for (std::size_t i = 0; i < some.groups.size(); ++i) {
        auto& list = some.groups[i].of_strategies ? some.groups[i].strategies : some.groups[i].layouts;
        std::vector<std::uint32_t> left;
        for (auto l : kept[i]) left.push_back(list[l]);
        list = std::move(left);
    }
    return some;
}

/// Decisions of all groups.
inline std::vector<std::uint32_t> decisions_of(grouping const& groups, std::vector<mrf::label> const& labels) {
    std::vector<std::uint32_t> d;
    for (std::size_t i = 0; i < labels.size(); ++i) d.push_back(decision_of(groups.groups[i], labels[i]));
    return d;
}

}  // namespace cantle
