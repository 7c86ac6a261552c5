// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: turn a decoded labelling into a local optimum.
// Idea: coordinate descent (iterated conditional modes [1]): each variable takes its best label given its neighbours until none improves,
//      x_v := argmin_l theta_v(l) + sum over edges (v, w) of theta_vw(l, x_w);
// then every edge tries its two variables together (pair moves), which escapes where two variables must change at once. With a_u and a_v
// for what all but the edge (u, v) says,
//      min over j, k of a_u(j) + theta_uv(j, k) + a_v(k) = min_j a_u(j) + m(j),   m = theta_uv times a_v, one min-plus product.
// Invariants: (number of forbidden pairs, finite energy) never grows, in lexicographic order; so it repairs forbidden pairs before it
// saves cost. Ends, because every accepted move lowers that pair (a visit limit covers rounded costs). Ties keep the present label, then
// the lower one: deterministic.
// Complexity: O(labels * degree) per visit of a variable, one product (O(L^2) for a table) per visit of an edge. No allocation but in the
// deltas of accepted pair moves.
// Limits: a local optimum only, with no statement about how good; block_search.hpp frees more variables at once.
// [1] J. Besag, "On the statistical analysis of dirty pictures", J. Royal Stat. Soc. B 48 (1986).
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/potential.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cantle::mrf {

template <PairwiseProblem G>
class basic_coordinate_descent {
public:
    /// Keeps a reference to g.
    explicit basic_coordinate_descent(G const& g) : g_(&g), waiting_(g.variable_count()) {
        std::size_t widest = 0;
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) widest = std::max<std::size_t>(widest, g.label_count(variable_id(v)));
        cost_.resize(widest);
        other_cost_.resize(widest);
        through_.resize(widest);
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
    /// Edges with more than max_pairs label pairs, or steps of a product, are passed over. Returns true when something changed.
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
    G const* g_;
    std::vector<char> waiting_;
    std::vector<double> cost_, other_cost_, through_;
    std::vector<std::uint32_t> clashes_;

    variable_id far_end(edge_id id, variable_id v) const { return g_->edge(id).u == v ? g_->edge(id).v : g_->edge(id).u; }

    /// Adds what edge e costs for each label of its end v.
    template <class Edge>
    void add_costs(Edge const& e, variable_id v, std::span<label const> labels, double* to) const {
        auto&& p = potential_of(*g_, e);
        if (e.u == v) add_col(p, labels[e.v.value], to);
        else add_row(p, labels[e.u.value], to);
    }
    /// Costs of the labels of v given its neighbours' labels, edge `skip` left out.
    void costs_given_rest(variable_id v, std::span<label const> labels, edge_id skip, std::vector<double>& out) const {
        auto const own = g_->costs(v);
        std::copy(own.begin(), own.end(), out.begin());
        for (edge_id id : g_->incident(v)) {
            if (id != skip) add_costs(g_->edge(id), v, labels, out.data());
        }
    }
    /// The same apart: how many edges forbid a label, and the sum of the costs that are finite.
    void clashes_given_rest(variable_id v, std::span<label const> labels) {
        auto const own = g_->costs(v);
        std::copy(own.begin(), own.end(), cost_.begin());
        std::fill(clashes_.begin(), clashes_.end(), 0U);
        for (edge_id id : g_->incident(v)) {
            auto const& e = g_->edge(id);
            std::fill_n(through_.begin(), own.size(), 0.0);
            add_costs(e, v, labels, through_.data());
            for (std::size_t j = 0; j < own.size(); ++j) {
                if (through_[j] == forbidden) ++clashes_[j];
                else cost_[j] += through_[j];
            }
        }
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
            clashes_given_rest(v, labels);
            for (label j = 0; j < n; ++j)
                if (clashes_[j] < clashes_[best] || (clashes_[j] == clashes_[best] && cost_[j] < cost_[best])) best = j;
        }
        labels[v.value] = best;
        return best != now;
    }

    bool improve_pair(edge_id id, std::span<label> labels, std::size_t max_pairs) {
        auto const& e = g_->edge(id);
        auto&& p = potential_of(*g_, e);
        if (work(p) > max_pairs) return false;
        for (edge_id other : g_->incident(e.u))  // a parallel edge would need both labels at once
            if (other != id && far_end(other, e.u) == e.v) return false;
        costs_given_rest(e.u, labels, id, cost_);
        costs_given_rest(e.v, labels, id, other_cost_);
        label best_u = labels[e.u.value], best_v = labels[e.v.value];
        double best = cost_[best_u] + p(best_u, best_v) + other_cost_[best_v];
        if (best == forbidden) return false;
        min_plus_over_cols(p, other_cost_.data(), through_.data());
        bool changed = false;
        for (label j = 0; j < g_->label_count(e.u); ++j)
            if (double const sum = cost_[j] + through_[j]; sum < best) {
                best = sum;
                best_u = j;
                changed = true;
            }
        if (!changed) return false;
        add_row(p, best_u, other_cost_.data());
        auto const of_v = other_cost_.begin();
        best_v = static_cast<label>(std::min_element(of_v, of_v + g_->label_count(e.v)) - of_v);
        // On rounded costs a sum may look better by its order of additions only: the delta decides.
        if (!(move_delta(*g_, labels, e.u, best_u, e.v, best_v) < 0)) return false;
        labels[e.u.value] = best_u;
        labels[e.v.value] = best_v;
        return true;
    }
};

using coordinate_descent = basic_coordinate_descent<factor_graph>;

/// Descends from `labels`, in the order of the index, over a graph with property maps (pairwise_problem.hpp); returns the energy reached.
/// Throws bad_field when `labels` has not one existing label per vertex.
template <class G, class Unary, class Potentials, class Index>
double descend(G const& g, Unary const& unary, Potentials const& potential, std::span<label> labels, Index const& index) {
    pairwise_problem const problem(g, unary, potential, index);
    check_labels(problem, labels);
    basic_coordinate_descent(problem).run(labels);
    return energy(problem, labels);
}
template <class G, class Unary, class Potentials>
double descend(G const& g, Unary const& unary, Potentials const& potential, std::span<label> labels) {
    return descend(g, unary, potential, labels, default_index(g));
}

}  // namespace cantle::mrf
