// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: why has a graph no labelling? Find a set of edges that cannot be satisfied together and becomes satisfiable when any one of
// them is left out: a minimal conflict.
// Idea: QuickXplain (base/quick_xplain.hpp) on the edges that forbid anything. A test is a solve of the graph with all costs 0, which
// reductions end quickly.
// Complexity: O(k log(n / k)) tests for a conflict of k of n edges. Deterministic: edges are tried in the graph's order.
#include <cantle/base/quick_xplain.hpp>
#include <cantle/mrf/solve.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace cantle::mrf {

namespace detail {

class conflict_finder {
public:
    explicit conflict_finder(factor_graph const& g) : g_(g) {
        for (std::uint32_t t = 0; t < g.table_count(); ++t) {
            auto const& values = g.table(table_id(t)).values;
            forbids_.push_back(std::find(values.begin(), values.end(), forbidden) != values.end());
        }
        for (std::uint32_t e = 0; e < g.edge_count(); ++e)
            if (forbids_[g.edge(edge_id(e)).table.value]) hard_.push_back(e);
    }
    std::vector<edge_id> run() {
        std::vector<edge_id> result;
        auto const test = [this](std::vector<std::uint32_t> const& edges) { return satisfiable(edges); };
        auto found = minimal_conflict_of(hard_, test);
        if (!found) return result;
        std::sort(found->begin(), found->end());
        for (auto e : *found) result.push_back(edge_id(e));
        return result;
    }

private:
    factor_graph const& g_;
    std::vector<bool> forbids_;        // [table]
    std::vector<std::uint32_t> hard_;  // edges that forbid a pair

    /// Is there a labelling that satisfies these edges? Only the variables that they touch matter.
    bool satisfiable(std::vector<std::uint32_t> const& edges) const {
        factor_graph part;
        std::map<std::uint32_t, variable_id> places;
        std::map<std::uint32_t, table_id> tables;
        auto const place = [&](variable_id v) {
            auto const [at, fresh] = places.try_emplace(v.value);
            if (fresh) at->second = part.add_variable(std::vector<double>(g_.label_count(v), 0.0));
            return at->second;
        };
        for (auto i : edges) {
            auto const& e = g_.edge(edge_id(i));
            auto const [at, fresh] = tables.try_emplace(e.table.value);
            if (fresh) {
                auto t = g_.table(e.table);
                for (double& c : t.values) c = c == forbidden ? forbidden : 0.0;
                at->second = part.add_table(std::move(t));
            }
            auto const u = place(e.u), v = place(e.v);
            part.add_edge(u, v, at->second, e.use);
        }
        return solve(part).status != solve_status::infeasible;
    }
};

}  // namespace detail

/// Edges of a minimal conflict, in order of their ids; empty when the graph has a labelling (or solving could not refute one).
inline std::vector<edge_id> minimal_conflict(factor_graph const& g) { return detail::conflict_finder(g).run(); }

}  // namespace cantle::mrf
