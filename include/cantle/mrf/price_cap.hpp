// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: one large price, which no good labelling pays, makes the grid of quantise.hpp coarse for all the others.
// Idea: capping by an upper bound. Let E be the energy of some labelling and M the sum of every term's least cost. A labelling that pays
// in one term more than D = E - M above that term's least cost has an energy above E. So every cost above least + D can be lowered to a
// value just above least + D, and no labelling that pays it comes to E.
// Invariants: no energy grows, so a bound of the capped graph is a bound of the graph given. A labelling whose energy is at most E has the
// same energy in both, and every other one has more than E in both: the optima are the same. Forbidden pairs stay forbidden.
// Complexity: O(table entries); tables stay shared, because D is the same for all terms.
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// A graph with lowered prices; same variables, labels, edges and orientation.
struct capped_graph {
    factor_graph graph;
    std::size_t lowered = 0;  ///< costs that were changed: of variables, and of tables however many edges share them
};

/// Lowers what no labelling of energy `best` or less can pay. `best`: of some labelling, finite.
inline capped_graph cap_prices(factor_graph const& g, double best) {
    detail::exact_enough_sum least, sizes;
    std::vector<double> low_of_table(g.table_count());
    auto const count = [&](double low) {
        if (low == forbidden) return;
        least.add(low);
        sizes.add(std::abs(low));
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v)
        count(detail::min_of(g.costs(variable_id(v)).data(), g.label_count(variable_id(v))));
    for (std::uint32_t t = 0; t < low_of_table.size(); ++t)
        low_of_table[t] = detail::min_of(g.table(table_id(t)).values.data(), g.table(table_id(t)).values.size());
    for (auto const& e : g.edges()) count(low_of_table[e.table.value]);
    // What rounding of these sums can take away is far below this margin, and a labelling that pays the cap is above `best` by it.
    double const margin = 1e-9 * (std::abs(best) + sizes.value());
    double const excess = std::max(best - least.value(), 0.0) + margin;
    capped_graph out;
    auto const cap = [&](std::vector<double>& costs, double low) {
        for (double& c : costs)
            if (c != forbidden && c > low + excess) {
                c = low + excess;
                ++out.lowered;
            }
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        auto const costs = g.costs(variable_id(v));
        std::vector<double> lower(costs.begin(), costs.end());
        cap(lower, detail::min_of(costs.data(), costs.size()));
        out.graph.add_variable(std::move(lower));
    }
    std::vector<table_id> id(g.table_count());
    for (std::uint32_t t = 0; t < id.size(); ++t) {
        cost_table lower = g.table(table_id(t));
        cap(lower.values, low_of_table[t]);
        id[t] = out.graph.add_table(std::move(lower));
    }
    for (auto const& e : g.edges()) out.graph.add_edge(e.u, e.v, id[e.table.value], e.use);
    return out;
}

}  // namespace cantle::mrf
