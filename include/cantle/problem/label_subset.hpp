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

/// What a label decides: a strategy of the class' table, or a layout.
inline std::uint32_t decision_of(decision_group const& g, mrf::label l) { return g.of_strategies ? g.strategies[l] : g.layouts[l]; }

/// The label that decides so. Precondition: the group has it. Decisions ascend with labels.
inline mrf::label label_of(decision_group const& g, std::uint32_t decision) {
    auto const& list = g.of_strategies ? g.strategies : g.layouts;
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
