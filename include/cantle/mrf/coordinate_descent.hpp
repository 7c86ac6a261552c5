// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: turn a decoded labelling into a local optimum.
// Idea: coordinate descent (iterated conditional modes [1]): each variable takes its best label given its neighbours until none improves;
// then every edge tries its two variables together (pair moves), which escapes where two variables must change at once.
// Invariants: (number of forbidden pairs, finite energy) never grows, in lexicographic order; so it repairs forbidden pairs before it
// saves cost. Ends, because every accepted move lowers that pair (a visit limit covers rounded costs). Ties keep the present label, then
// the lower one: deterministic.
// Complexity: O(labels * degree) per visit of a variable, O(L^2) per visit of an edge.
// [1] J. Besag, "On the statistical analysis of dirty pictures", J. Royal Stat. Soc. B 48 (1986).
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cantle::mrf {

class coordinate_descent {
public:
    /// Keeps a reference to g.
    explicit coordinate_descent(factor_graph const& g) : g_(&g), waiting_(g.variable_count()) {
        std::size_t widest = 0;
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) widest = std::max<std::size_t>(widest, g.label_count(variable_id(v)));
        cost_.resize(widest);
        other_cost_.resize(widest);
        clashes_.resize(widest);
    }

    /// Single moves until none improves. Returns true when something changed.
    bool single_moves(std::span<label> labels) {
        std::fill(waiting_.begin(), waiting_.end(), char{1});
        bool any = false;
        bool again = true;
        for (int visit = 0; again && visit < most_visits; ++visit) {
            again = false;
            for (std::uint32_t v = 0; v < labels.size(); ++v) {
                if (!waiting_[v]) continue;
                waiting_[v] = 0;
                if (!improve(variable_id(v), labels)) continue;
                any = again = true;
                for (edge_id id : g_->incident(variable_id(v))) waiting_[far_end(id, variable_id(v)).value] = 1;
            }
        }
        return any;
    }

    /// Pair moves over all edges, once, each followed by nothing. Only edges whose surroundings have no forbidden pair are tried.
    /// Edges with more than max_pairs label pairs are passed over. Returns true when something changed.
    bool pair_moves(std::span<label> labels, std::size_t max_pairs = std::size_t{1} << 20) {
        bool any = false;
        for (std::uint32_t i = 0; i < g_->edge_count(); ++i) any |= improve_pair(edge_id(i), labels, max_pairs);
        return any;
    }

    /// Both in turn until neither helps, at most `rounds` times.
    void run(std::span<label> labels, std::size_t rounds = 8) {
        for (std::size_t r = 0; r < rounds; ++r) {
            single_moves(labels);
            if (!pair_moves(labels)) break;
        }
    }

private:
    // Whole-number costs end by themselves; with rounded ones two moves of equal energy could alternate by the last bit for ever.
    static constexpr int most_visits = 1000;
    factor_graph const* g_;
    std::vector<char> waiting_;
    std::vector<double> cost_, other_cost_;
    std::vector<std::uint32_t> clashes_;

    variable_id far_end(edge_id id, variable_id v) const { return g_->edge(id).u == v ? g_->edge(id).v : g_->edge(id).u; }

    /// Calls add(j, cost of label j of v towards its neighbour) for all labels, edge `skip` left out.
    template <class Add>
    void for_each_cost(variable_id v, std::span<label const> labels, edge_id skip, Add add) const {
        std::size_t const n = g_->label_count(v);
        for (edge_id id : g_->incident(v)) {
            if (id == skip) continue;
            auto const& e = g_->edge(id);
            auto const& t = g_->table(e.table);
            bool const is_row = (e.u == v) == (e.use == table_use::straight);
            std::size_t const fixed = labels[far_end(id, v).value], step = is_row ? t.cols : 1;
            double const* p = t.values.data() + (is_row ? fixed : fixed * t.cols);
            for (std::size_t j = 0; j < n; ++j) add(j, p[j * step]);
        }
    }
    void costs_given_rest(variable_id v, std::span<label const> labels, edge_id skip, std::vector<double>& out) const {
        auto const own = g_->costs(v);
        std::copy(own.begin(), own.end(), out.begin());
        for_each_cost(v, labels, skip, [&](std::size_t j, double c) { out[j] += c; });
    }

    bool improve(variable_id v, std::span<label> labels) {
        std::size_t const n = g_->label_count(v);
        if (n == 1) return false;
        label const now = labels[v.value];
        costs_given_rest(v, labels, edge_id::none(), cost_);
        label best = now;
        if (cost_[now] != forbidden) {
            for (label j = 0; j < n; ++j)
                if (cost_[j] < cost_[best]) best = j;
        } else {
            auto const own = g_->costs(v);
            std::copy(own.begin(), own.end(), cost_.begin());
            std::fill(clashes_.begin(), clashes_.end(), 0U);
            for_each_cost(v, labels, edge_id::none(), [&](std::size_t j, double c) {
                if (c == forbidden) ++clashes_[j];
                else cost_[j] += c;
            });
            for (label j = 0; j < n; ++j)
                if (clashes_[j] < clashes_[best] || (clashes_[j] == clashes_[best] && cost_[j] < cost_[best])) best = j;
        }
        labels[v.value] = best;
        return best != now;
    }

    bool improve_pair(edge_id id, std::span<label> labels, std::size_t max_pairs) {
        auto const& e = g_->edge(id);
        auto const& t = g_->table(e.table);
        if (t.values.size() > max_pairs) return false;
        variable_id const row = e.use == table_use::straight ? e.u : e.v, col = e.use == table_use::straight ? e.v : e.u;
        for (edge_id other : g_->incident(row))  // a parallel edge would need both labels at once
            if (other != id && far_end(other, row) == col) return false;
        costs_given_rest(row, labels, id, cost_);
        costs_given_rest(col, labels, id, other_cost_);
        label best_r = labels[row.value], best_c = labels[col.value];
        double best = cost_[best_r] + t(best_r, best_c) + other_cost_[best_c];
        if (best == forbidden) return false;
        bool changed = false;
        for (label r = 0; r < t.rows; ++r) {
            double const* values = t.values.data() + std::size_t{r} * t.cols;
            for (label c = 0; c < t.cols; ++c) {
                double const sum = cost_[r] + values[c] + other_cost_[c];
                if (!(sum < best)) continue;
                best = sum;
                best_r = r;
                best_c = c;
                changed = true;
            }
        }
        if (!changed) return false;
        // On rounded costs a sum may look better by its order of additions only: the delta decides.
        if (!(move_delta(*g_, labels, row, best_r, col, best_c) < 0)) return false;
        labels[row.value] = best_r;
        labels[col.value] = best_c;
        return true;
    }
};

}  // namespace cantle::mrf
