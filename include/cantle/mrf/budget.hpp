// SPDX-License-Identifier: BSL-1.0
#pragma once
// Linear budgets: a sum of weights over the labels of variables and the label pairs of edges that must not exceed a limit.
//
//      use(x) = sum_v w_v(x_v) + sum_(u,v) w_uv(x_u, x_v)  <=  limit
//
// Weights are finite, of any sign and any unit; most variables and edges have none. Vectors and tables are shared between all that have
// equal ones. Because a budget has the form of the energy, energy + multiplier * use is a factor graph again: `penalised` builds it.
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

using label_weights = std::shared_ptr<std::vector<double> const>;  ///< one per label
using pair_weights = std::shared_ptr<cost_table const>;            ///< rows: labels of the edge's u, columns: of its v; always so

/// One budget over a factor graph.
struct linear_budget {
    std::string name;
    double limit = 0;
    std::vector<label_weights> of_variable;  ///< [variable]; null: no weight. May be shorter than the graph
    std::vector<pair_weights> of_edge;       ///< [edge]; null: no weight. May be shorter than the graph

    std::vector<double> const* weights(variable_id v) const { return v.value < of_variable.size() ? of_variable[v.value].get() : nullptr; }
    cost_table const* weights(edge_id e) const { return e.value < of_edge.size() ? of_edge[e.value].get() : nullptr; }
};

/// Throws bad_field when a vector or table does not fit its variable or edge, or a weight or limit is not finite.
inline void check_budget(factor_graph const& g, linear_budget const& b) {
    auto const bad = [&b](std::string const& what) {
        return error(error_code::bad_field, "budget '" + b.name + "'", what, "give finite weights, one per label or label pair");
    };
    if (!std::isfinite(b.limit)) throw bad("the limit is not finite");
    if (b.of_variable.size() > g.variable_count() || b.of_edge.size() > g.edge_count())
        throw bad("it speaks of variables or edges that do not exist");
    auto const finite = [&](std::vector<double> const& list) {
        for (double w : list)
            if (!std::isfinite(w)) throw bad("a weight is not finite");
    };
    for (std::uint32_t v = 0; v < b.of_variable.size(); ++v)
        if (auto const* w = b.weights(variable_id(v))) {
            if (w->size() != g.label_count(variable_id(v))) throw bad("not one weight per label of variable " + std::to_string(v));
            finite(*w);
        }
    for (std::uint32_t i = 0; i < b.of_edge.size(); ++i)
        if (auto const* w = b.weights(edge_id(i))) {
            auto const& e = g.edge(edge_id(i));
            if (w->rows != g.label_count(e.u) || w->cols != g.label_count(e.v) || w->values.size() != std::size_t{w->rows} * w->cols)
                throw bad("the weights of edge " + std::to_string(i) + " do not fit its label pairs");
            finite(w->values);
        }
}

/// What a labelling uses of the budget. Precondition: check_budget and check_labels pass.
inline double budget_use(factor_graph const& g, linear_budget const& b, std::span<label const> labels) {
    detail::exact_enough_sum sum;
    for (std::uint32_t v = 0; v < b.of_variable.size(); ++v)
        if (auto const* w = b.weights(variable_id(v))) sum.add((*w)[labels[v]]);
    for (std::uint32_t i = 0; i < b.of_edge.size(); ++i)
        if (auto const* w = b.weights(edge_id(i))) {
            auto const& e = g.edge(edge_id(i));
            sum.add((*w)(labels[e.u.value], labels[e.v.value]));
        }
    return sum.value();
}

/// A graph whose costs are `of_energy` (1 or 0) times those of g plus the multipliers times the weights, and what rounding may have added.
struct penalised_graph {
    factor_graph graph;       ///< same variables, labels, edges and orientation as g; forbidden pairs stay forbidden
    double rounding = 0;      ///< |energy in exact arithmetic - energy of `graph`| is at most this, for every labelling
};

/// energy + sum_k multipliers[k] * use_k; the limits are left to the caller. Precondition: check_budget passes for all.
/// Complexity: O(table entries); tables without weights stay shared.
inline penalised_graph penalised(factor_graph const& g, std::span<linear_budget const> budgets, std::span<double const> multipliers,
                                 bool of_energy = true) {
    penalised_graph out;
    constexpr double ulp = 0x1p-52;  // each of at most budgets.size() fused steps is off by half of it, of the largest value on the way
    double largest = 0;
    auto const add = [&](std::vector<double>& costs, std::vector<double> const& weights, double multiplier) {
        for (std::size_t j = 0; j < costs.size(); ++j) {
            costs[j] = std::fma(multiplier, weights[j], costs[j]);
            if (costs[j] != forbidden) largest = std::max(largest, std::abs(costs[j]));
        }
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        auto const own = g.costs(variable_id(v));
        std::vector<double> costs(own.size(), 0.0);
        if (of_energy) costs.assign(own.begin(), own.end());
        for (std::size_t k = 0; k < budgets.size(); ++k)
            if (auto const* w = budgets[k].weights(variable_id(v)); w && multipliers[k] != 0) {
                largest = 0;
                add(costs, *w, multipliers[k]);
                out.rounding += ulp * largest;
            }
        out.graph.add_variable(std::move(costs));
    }
    // Looked up only, never iterated, so that the order of addresses decides nothing.
    using key = std::pair<std::pair<cost_table const*, table_use>, std::vector<cost_table const*>>;
    std::map<key, std::pair<table_id, double>> done;
    for (std::uint32_t i = 0; i < g.edge_count(); ++i) {
        auto const& e = g.edge(edge_id(i));
        std::vector<cost_table const*> weights(budgets.size(), nullptr);
        bool weighted = false;
        for (std::size_t k = 0; k < budgets.size(); ++k)
            if (multipliers[k] != 0 && (weights[k] = budgets[k].weights(edge_id(i)))) weighted = true;
        auto const [at, fresh] = done.try_emplace({{&g.table(e.table), weighted ? e.use : table_use::straight}, weights});
        if (fresh && !weighted && of_energy) {
            at->second.first = out.graph.add_table(g.shared_table(e.table));
        } else if (fresh) {
            cost_table t = g.table(e.table);
            if (!of_energy)
                for (double& c : t.values) c = c == forbidden ? forbidden : 0.0;
            for (std::size_t k = 0; k < budgets.size(); ++k) {
                if (!weights[k]) continue;
                largest = 0;
                if (e.use == table_use::straight) {
                    add(t.values, weights[k]->values, multipliers[k]);
                } else {
                    std::vector<double> flipped(t.values.size());
                    for (label r = 0; r < t.rows; ++r)
                        for (label c = 0; c < t.cols; ++c) flipped[std::size_t{r} * t.cols + c] = (*weights[k])(c, r);
                    add(t.values, flipped, multipliers[k]);
                }
                at->second.second += ulp * largest;
            }
            at->second.first = out.graph.add_table(std::move(t));
        }
        out.rounding += at->second.second;
        out.graph.add_edge(e.u, e.v, at->second.first, e.use);
    }
    return out;
}

/// A graph and its budgets.
struct budgeted_graph {
    factor_graph graph;
    std::vector<linear_budget> budgets;
};

/// The same with some labels only. kept[v]: the labels of v that stay, ascending and not empty.
inline budgeted_graph restrict_labels(factor_graph const& g, std::span<linear_budget const> budgets,
                                      std::vector<std::vector<label>> const& kept) {
    budgeted_graph out;
    auto const all = [&](variable_id v) { return kept[v.value].size() == g.label_count(v); };
    auto const some = [&](std::span<double const> list, variable_id v) {
        std::vector<double> s;
        for (label j : kept[v.value]) s.push_back(list[j]);
        return s;
    };
    auto const part = [](cost_table const& t, std::vector<label> const& rows, std::vector<label> const& cols) {
        cost_table s{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(cols.size()), {}};
        s.values.reserve(rows.size() * cols.size());
        for (label r : rows)
            for (label c : cols) s.values.push_back(t(r, c));
        return s;
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) out.graph.add_variable(some(g.costs(variable_id(v)), variable_id(v)));
    for (auto const& e : g.edges()) {
        auto const row = e.use == table_use::straight ? e.u : e.v, col = e.use == table_use::straight ? e.v : e.u;
        auto const id = all(row) && all(col) ? out.graph.add_table(g.shared_table(e.table))
                                             : out.graph.add_table(part(g.table(e.table), kept[row.value], kept[col.value]));
        out.graph.add_edge(e.u, e.v, id, e.use);
    }
    for (auto const& b : budgets) {
        linear_budget s{b.name, b.limit, b.of_variable, b.of_edge};
        for (std::uint32_t v = 0; v < s.of_variable.size(); ++v)
            if (s.of_variable[v] && !all(variable_id(v)))
                s.of_variable[v] = std::make_shared<std::vector<double> const>(some(*s.of_variable[v], variable_id(v)));
        for (std::uint32_t i = 0; i < s.of_edge.size(); ++i) {
            auto const& e = g.edge(edge_id(i));
            if (s.of_edge[i] && !(all(e.u) && all(e.v)))
                s.of_edge[i] = std::make_shared<cost_table const>(part(*s.of_edge[i], kept[e.u.value], kept[e.v.value]));
        }
        out.budgets.push_back(std::move(s));
    }
    return out;
}

}  // namespace cantle::mrf
