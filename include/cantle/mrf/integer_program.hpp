// SPDX-License-Identifier: BSL-1.0
#pragma once
// A factor graph as a 0-1 program, solver-independent: the exact reference of the published method (its ILP), on variables and edges.
//
//      minimise   sum_v theta_v(j) x_v(j) + sum_(u,v) theta_uv(j,k) y_uv(j,k)
//      uniqueness    sum_j x_v(j) = 1                                     every variable
//      consistency   sum_k y_uv(j,k) = x_u(j),  sum_j y_uv(j,k) = x_v(k)  every edge and label
//      x in {0,1}, 0 <= y <= 1
//
// There is one column per label and one per allowed pair of an edge: a forbidden pair has no column, so no large number stands for "no".
// With x whole, consistency leaves y one choice, so y need not be declared whole. The linear relaxation is the local polytope [1]; its
// optimum is what TRW-S climbs towards. The graph is taken as it is: parallel edges stay apart, nothing is reduced.
// Complexity: sum over edges of L_u x L_v columns with two entries each; that is what limits it (`size_of`).
// [1] M. Wainwright, M. Jordan, "Graphical models, exponential families, and variational inference", 2008, section 4.1.
#include <cantle/mrf/factor_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cantle::mrf {

/// minimise cost * column subject to equalities; columns of the matrix one after the other.
struct integer_program {
    std::size_t binaries = 0;            ///< the first so many columns are 0 or 1 (one per label, by variable), the rest within [0, 1]
    std::vector<double> cost;            ///< per column
    std::vector<std::int32_t> start;     ///< per column and one more: where its entries start
    std::vector<std::int32_t> row;       ///< per entry
    std::vector<double> value;           ///< per entry: 1 or -1
    std::vector<double> right_side;      ///< per row
};

/// What integer_program_of would build.
struct program_size {
    std::size_t columns = 0, rows = 0, entries = 0;
};

inline program_size size_of(factor_graph const& g) {
    program_size s;
    s.rows = g.variable_count();
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        s.columns += g.label_count(variable_id(v));
        s.entries += g.label_count(variable_id(v)) * (1 + g.incident(variable_id(v)).size());
    }
    std::vector<std::size_t> allowed(g.table_count());
    for (std::uint32_t t = 0; t < allowed.size(); ++t)
        for (double c : g.table(table_id(t)).values) allowed[t] += c != forbidden;
    for (auto const& e : g.edges()) {
        s.columns += allowed[e.table.value];
        s.entries += 2 * allowed[e.table.value];
        s.rows += g.label_count(e.u) + g.label_count(e.v);
    }
    return s;
}

/// Precondition: the sizes fit 32 bits.
inline integer_program integer_program_of(factor_graph const& g) {
    auto const size = size_of(g);
    integer_program p;
    p.cost.reserve(size.columns);
    p.start.reserve(size.columns + 1);
    p.row.reserve(size.entries);
    p.value.reserve(size.entries);
    p.right_side.assign(size.rows, 0.0);
    auto const entry = [&p](std::size_t row, double value) {
        p.row.push_back(static_cast<std::int32_t>(row));
        p.value.push_back(value);
    };
    auto const next_column = [&p](double cost) {
        p.start.push_back(static_cast<std::int32_t>(p.row.size()));
        p.cost.push_back(cost);
    };
    std::vector<std::size_t> row_of_u, row_of_v;  // [edge] -> row of label 0
    std::size_t row = g.variable_count();
    for (auto const& e : g.edges()) {
        row_of_u.push_back(row);
        row_of_v.push_back(row += g.label_count(e.u));
        row += g.label_count(e.v);
    }
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        p.right_side[v] = 1;
        for (label j = 0; j < g.label_count(variable_id(v)); ++j) {
            next_column(g.costs(variable_id(v))[j]);
            entry(v, 1);
            for (auto id : g.incident(variable_id(v)))
                entry((g.edge(id).u.value == v ? row_of_u : row_of_v)[id.value] + j, -1);
        }
    }
    p.binaries = p.cost.size();
    for (std::uint32_t i = 0; i < g.edge_count(); ++i) {
        auto const& e = g.edge(edge_id(i));
        for (label j = 0; j < g.label_count(e.u); ++j)
            for (label k = 0; k < g.label_count(e.v); ++k) {
                double const c = g.pair_cost(e, j, k);
                if (c == forbidden) continue;
                next_column(c);
                entry(row_of_u[i] + j, 1);
                entry(row_of_v[i] + k, 1);
            }
    }
    p.start.push_back(static_cast<std::int32_t>(p.row.size()));
    return p;
}

/// The labelling that `columns` (of at least the binaries) stands for: per variable the label with the largest value.
inline std::vector<label> labels_of(factor_graph const& g, std::span<double const> columns) {
    std::vector<label> labels;
    std::size_t at = 0;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        label best = 0;
        for (label j = 0; j < g.label_count(variable_id(v)); ++j)
            if (columns[at + j] > columns[at + best]) best = j;
        labels.push_back(best);
        at += g.label_count(variable_id(v));
    }
    return labels;
}

}  // namespace cantle::mrf
