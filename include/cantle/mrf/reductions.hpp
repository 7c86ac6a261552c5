// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: make a factor graph smaller without losing its optimum.
// Idea: repeat until nothing changes
//   - parallel edges become one edge with the sum of their tables;
//   - labels without an allowed partner across some edge go (arc consistency), also those of tables that forbid everything;
//   - an edge whose table is f(row) + g(col) goes into the label costs: fixed variables (one label) are the plainest case;
//   - a variable whose label another one determines (equalities, permutations) is merged into that one;
//   - a variable with no, one or two neighbours is eliminated: leaves fold into the neighbour's costs, chains into one table;
//   - labels that another label dominates go (dominance.hpp).
// Invariant: min E(original) = constant() + min E(graph()), and for every labelling y of graph(),
//   E(original, reconstruct(y)) = constant() + E(graph(), y): eliminated variables take their best label given y, and dominance only leaves
//   labellings out. On whole-number costs (quantise.hpp) all of this is exact, otherwise up to rounding.
// Complexity: elimination of v costs the product of the label counts of v and its neighbours; a table above max_table entries is not
// formed.
// Dominance stops after max_work elementary steps: a count, not a time, so that runs are deterministic.
// Order: the remaining variables keep their order, and so their topological order, which trws.hpp relies on.
// References: [1] U. Bertele, F. Brioschi, "Nonserial Dynamic Programming", 1972 (elimination); [2] see dominance.hpp.
#include <cantle/base/control.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/dominance.hpp>
#include <cantle/mrf/reducer.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace cantle::mrf {

struct reduce_options {
    std::size_t max_table = std::size_t{1} << 20;  ///< entries of a table that an elimination may create (8 MiB)
    double max_work = 2e8;                         ///< steps spent on dominance, about 0.1 s; 0: none
    unsigned threads = 0;                          ///< 0: as many as the machine runs at once; the result is the same
    reduction_rules rules = {};                    ///< which reductions apply, for tests and ablations
};

/// A reduced graph and the way back. Immutable once built.
class reduction {
public:
    /// When `limits` expire, elimination and dominance stop: less is reduced then.
    explicit reduction(factor_graph const& g, reduce_options const& options = {}, control const& limits = {}) : size_(g.variable_count()) {
        detail::reducer r(g, options.max_table, options.max_work, options.threads, limits, options.rules);
        infeasible_ = !r.run();
        if (infeasible_) return;
        constant_ = r.constant();
        records_ = r.records();
        std::vector<variable_id> id(size_);
        for (std::uint32_t v = 0; v < size_; ++v) {
            auto const& x = r.variables()[v];
            if (!x.alive) continue;
            id[v] = graph_.add_variable(x.cost);
            variables_.push_back(v);
            labels_.push_back(x.labels);
        }
        for (auto const& e : r.edges())
            if (e.alive)
                graph_.add_edge(id[e.u], id[e.v], graph_.add_table(e.table), e.transposed ? table_use::transposed : table_use::straight);
    }

    /// What is left; without variables when everything could be eliminated or when infeasible().
    factor_graph const& graph() const { return graph_; }
    /// Energy of what was eliminated.
    double constant() const { return constant_; }
    /// True when no labelling avoids all forbidden pairs (found by arc consistency or elimination; false proves nothing).
    bool infeasible() const { return infeasible_; }
    /// Original variable and label of a variable of graph().
    variable_id original(variable_id v) const { return variable_id(variables_[v.value]); }
    label original(variable_id v, label l) const { return (*labels_[v.value])[l]; }

    /// Labels of all original variables from labels of graph(). Precondition: !infeasible(), one existing label per variable.
    std::vector<label> reconstruct(std::span<label const> reduced) const {
        std::vector<label> full(size_);
        for (std::size_t i = 0; i < variables_.size(); ++i) full[variables_[i]] = (*labels_[i])[reduced[i]];
        for (std::size_t r = records_.size(); r-- > 0;) {
            auto const& record = records_[r];
            std::vector<double> cost = record.cost;
            for (std::size_t i = 0; i < record.near_count; ++i) {
                auto const& n = record.near[i];
                auto const at = std::lower_bound(n.labels->begin(), n.labels->end(), full[n.variable]) - n.labels->begin();
                auto const k = static_cast<label>(at);
                for (label j = 0; j < cost.size(); ++j) cost[j] += n.self_is_row ? (*n.table)(j, k) : (*n.table)(k, j);
            }
            auto const best = std::min_element(cost.begin(), cost.end()) - cost.begin();
            full[record.variable] = (*record.labels)[static_cast<std::size_t>(best)];
        }
        return full;
    }

private:
    std::size_t size_;
    factor_graph graph_;
    double constant_ = 0;
    bool infeasible_ = false;
    std::vector<std::uint32_t> variables_;
    std::vector<detail::label_list> labels_;
    std::vector<detail::elimination_record> records_;
};

}  // namespace cantle::mrf
