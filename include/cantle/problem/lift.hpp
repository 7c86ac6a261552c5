// SPDX-License-Identifier: BSL-1.0
#pragma once
// A labelling of one problem as a labelling of another one of the same graph, mesh, rules and boundary that groups its variables otherwise:
// what a cluster has decided, every copy of it takes. Layouts are equal; labels may be numbered differently.
#include <cantle/problem/build_problem.hpp>
#include <cantle/problem/label_subset.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cantle {

/// What every variable does under `labels`: its strategy (place in the table of its op class) or its layout. [variable]
inline std::vector<std::uint32_t> decisions_of(planning_problem const& p, std::span<mrf::label const> labels) {
    std::vector<std::uint32_t> decisions;
    decisions.reserve(p.grouping.group_of.size());
    for (auto const i : p.grouping.group_of) {
        auto const& group = p.grouping.groups[i];
        decisions.push_back(decision_of(group, labels[i]));
    }
    return decisions;
}

/// The labelling of p under which every variable does what `decisions` says; nothing where p rules one of them out.
/// Precondition: decisions of a problem that was built from the same graph, mesh, rules and boundary; those that p unites are equal.
inline std::optional<std::vector<mrf::label>> labels_of(planning_problem const& p, std::span<std::uint32_t const> decisions) {
    std::vector<mrf::label> labels(p.grouping.groups.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
        auto const& group = p.grouping.groups[i];
        auto const& list = decisions_in(group);
        auto const at = std::find(list.begin(), list.end(), decisions[group.members.front()]);
        if (at == list.end()) return std::nullopt;
        labels[i] = static_cast<mrf::label>(at - list.begin());
    }
    return labels;
}

/// Entries of the tables of all edges once every vertex decides for itself: what solving that problem holds and visits, up to a factor.
/// Parallel edges count each. A count, so that what depends on it is the same on every machine.
inline double unclustered_entries(planning_problem const& p) {
    double sum = 0;
    for (auto const& e : p.edges) {
        auto const labels = [&](variable_index v) {
            return static_cast<double>(p.grouping.groups[p.grouping.group_of[v]].label_count());
        };
        sum += labels(e.from) * labels(e.to);
    }
    return sum;
}

}  // namespace cantle
