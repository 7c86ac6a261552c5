// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: whether any labelling avoids all forbidden pairs does not depend on costs, and of hundreds of labels most forbid the same.
// Idea: a graph of the same variables with costs 0, only the edges that forbid something, and one label for all labels of a variable that
// forbid the same pairs across every edge. It has a labelling exactly when the graph has one, and is small enough to be asked often.
// Complexity: O(entries of the distinct tables + labels * degree).
#include <cantle/mrf/factor_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

struct hard_part {
    factor_graph graph;                             ///< as many variables as the original; costs 0 or forbidden
    std::vector<std::vector<label>> representative; ///< [variable][label of graph] -> the first label of the original that it stands for
};

namespace detail {

/// For every row of a table (or column) the number of its pattern of forbidden entries.
inline std::vector<std::uint32_t> pattern_numbers(cost_table const& t, bool of_rows) {
    std::vector<std::uint32_t> number;
    std::map<std::string, std::uint32_t> known;
    std::uint32_t const count = of_rows ? t.rows : t.cols, width = of_rows ? t.cols : t.rows;
    std::string pattern(width, '0');
    for (label i = 0; i < count; ++i) {
        for (label j = 0; j < width; ++j) pattern[j] = (of_rows ? t(i, j) : t(j, i)) == forbidden ? '1' : '0';
        number.push_back(known.try_emplace(pattern, static_cast<std::uint32_t>(known.size())).first->second);
    }
    return number;
}

}  // namespace detail

/// `kinds[variable][label]`: labels of different kinds stay apart, whatever they forbid.
inline hard_part hard_part_of(factor_graph const& g, std::vector<std::vector<std::uint32_t>> const& kinds) {
    std::vector<std::vector<std::uint32_t>> row_pattern(g.table_count()), col_pattern(g.table_count());
    std::vector<char> forbids(g.table_count());
    for (std::uint32_t t = 0; t < forbids.size(); ++t) {
        auto const& table = g.table(table_id(t));
        row_pattern[t] = detail::pattern_numbers(table, true);
        col_pattern[t] = detail::pattern_numbers(table, false);
        for (double c : table.values) forbids[t] |= static_cast<char>(c == forbidden);
    }
    hard_part h;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        std::map<std::vector<std::uint32_t>, label> known;
        h.representative.emplace_back();
        for (label l = 0; l < g.label_count(variable_id(v)); ++l) {
            std::vector<std::uint32_t> signature{kinds[v][l]};
            for (edge_id id : g.incident(variable_id(v))) {
                auto const& e = g.edge(id);
                bool const is_row = (e.u.value == v) == (e.use == table_use::straight);
                signature.push_back((is_row ? row_pattern : col_pattern)[e.table.value][l]);
            }
            if (known.try_emplace(std::move(signature), static_cast<label>(known.size())).second) h.representative[v].push_back(l);
        }
        h.graph.add_variable(std::vector<double>(h.representative[v].size(), 0.0));
    }
    for (auto const& e : g.edges()) {
        if (!forbids[e.table.value]) continue;
        auto const &rows = h.representative[e.u.value], &cols = h.representative[e.v.value];
        cost_table t{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(cols.size()), {}};
        for (label r : rows)
            for (label c : cols) t.values.push_back(g.pair_cost(e, r, c) == forbidden ? forbidden : 0.0);
        h.graph.add_edge(e.u, e.v, std::move(t));
    }
    return h;
}

}  // namespace cantle::mrf
