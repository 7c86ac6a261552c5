// SPDX-License-Identifier: BSL-1.0
#pragma once
// Costs as whole numbers of a grid unit, so that bounds are theorems and not estimates.
//
// Problem: a dual bound computed in rounded arithmetic can exceed the optimum.
// Idea: replace every cost c by floor(c / unit), a whole number held in a double, with unit = 2^e chosen so that
//      S = sum_v max_j |theta_v(j)| + sum_uv max finite |theta_uv|  is at most 2^48 units.
// Consequences:
//  1. Scaling by a power of two and floor are exact. So unit * E_q(x) <= E(x) for every labelling x, in real numbers, and any lower bound
//     of E_q times unit is a lower bound of E.
//  2. 0 <= E(x) - unit * E_q(x) < (number of terms that were not multiples of the unit) * unit, for every x. A labelling that is optimal
//     for E_q is therefore optimal for E up to that error, `error_bound`.
//  3. Every sum of distinct costs is a whole number of size at most 2^48: sums, differences and minima of them are exact in doubles (2^53).
//     That covers all of reductions.hpp and bucket_elimination.hpp. Messages are sums with repetition and are checked as they arise
//     (trws.hpp).
// The energy that users see is always recomputed from the original costs.
#include <cantle/base/parallel_for.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace cantle::mrf {

/// Whole-number costs and what they stand for.
struct quantised_graph {
    factor_graph graph;           ///< same variables, edges and orientation; costs are whole numbers
    double unit = 1;              ///< a power of two, in units of the original cost
    std::size_t inexact_terms = 0;  ///< variables and edges with a cost that is no multiple of the unit
    double error_bound() const { return unit * static_cast<double>(inexact_terms); }
};

/// Sum over terms of the largest finite magnitude: no labelling's finite energy is larger. Same unit as the costs.
inline double magnitude(factor_graph const& g) {
    auto const largest = [](auto const& costs) { return detail::min_plus().largest(costs.data(), costs.size()); };
    std::vector<double> of_table(g.table_count());
    for (std::uint32_t t = 0; t < of_table.size(); ++t) of_table[t] = largest(g.table(table_id(t)).values);
    double sum = 0;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) sum += largest(g.costs(variable_id(v)));
    for (auto const& e : g.edges()) sum += of_table[e.table.value];
    return sum;
}

/// Rounds all costs down to the grid, large tables on `threads` threads (0: all of the machine). Throws bad_field when magnitudes are
/// beyond 2^900.
inline quantised_graph quantise(factor_graph const& g, unsigned threads = 1) {
    double const total = magnitude(g);
    if (!(total < std::ldexp(1.0, 900))) throw error(error_code::bad_field, "costs", "too large to add up", "scale them down");
    int exponent = 0;
    if (total > 0) {
        std::frexp(total, &exponent);  // total <= 2^exponent; rounding of `total` itself is covered by one bit of slack
        exponent = std::max(exponent + 1 - 48, -900);
    }
    quantised_graph q;
    q.unit = std::ldexp(1.0, exponent);
    double const scale = std::ldexp(1.0, -exponent);
    auto const round_down = [scale](std::vector<double>& costs) {
        return detail::min_plus().round_down(costs.data(), costs.size(), scale);
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        auto const costs = g.costs(variable_id(v));
        std::vector<double> down(costs.begin(), costs.end());
        q.inexact_terms += round_down(down);
        q.graph.add_variable(std::move(down));
    }
    std::vector<table_id> id(g.table_count());
    std::vector<char> inexact(g.table_count());
    std::vector<cost_table> down(g.table_count());
    double entries = 0;
    for (std::uint32_t t = 0; t < id.size(); ++t) entries += static_cast<double>(g.table(table_id(t)).values.size());
    parallel_for(id.size(), entries < 1048576.0 ? 1 : threads, [&](std::size_t t) {
        down[t] = g.table(table_id(static_cast<std::uint32_t>(t)));
        inexact[t] = round_down(down[t].values);
    });
    for (std::uint32_t t = 0; t < id.size(); ++t) id[t] = q.graph.add_table(std::move(down[t]));
    for (auto const& e : g.edges()) {
        q.graph.add_edge(e.u, e.v, id[e.table.value], e.use);
        q.inexact_terms += static_cast<std::size_t>(inexact[e.table.value]);
    }
    return q;
}

}  // namespace cantle::mrf
