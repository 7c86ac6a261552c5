// SPDX-License-Identifier: BSL-1.0
#pragma once
// The energy of a labelling and what a move changes:
//
//      E(x)      = sum_v theta_v(x_v) + sum_e theta_e(x_u, x_v)
//      E_v(x, l) = theta_v(l) + sum over edges of v, with x_v = l            all of E that depends on x_v
//      delta     = E_v(x, l) - E_v(x, x_v)                                   what the move x_v := l changes
//
// These are the figures that reports show, so sums are compensated: their error does not grow with the number of terms. E is +infinity as
// soon as one pair is forbidden, and the delta is then a sign rather than a number (see move_delta).
// Complexity: E takes one look-up per term, a delta the degree of what moves.
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/pairwise_problem.hpp>

#include <cmath>
#include <span>
#include <vector>

namespace cantle::mrf {

namespace detail {
/// Neumaier's compensated sum [A. Neumaier, ZAMM 54 (1974) 39-51]: error independent of the number of summands. Infinity stays infinity.
class exact_enough_sum {
public:
    void add(double x) {
        double const t = sum_ + x;
        if (std::isfinite(t)) lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
        sum_ = t;
    }
    double value() const { return sum_ + lost_; }

private:
    double sum_ = 0, lost_ = 0;
};
}  // namespace detail

/// Throws bad_field when `labels` has not one existing label per variable.
template <PairwiseProblem G>
void check_labels(G const& g, std::span<label const> labels) {
    bool good = labels.size() == g.variable_count();
    for (std::uint32_t v = 0; good && v < labels.size(); ++v) good = labels[v] < g.label_count(variable_id(v));
    if (!good) throw error(error_code::bad_field, "labelling", "not one existing label per variable", "");
}

/// E(labels); `forbidden` when some edge has a forbidden pair. Same unit as the costs. Throws bad_field like check_labels.
template <PairwiseProblem G>
double energy(G const& g, std::span<label const> labels) {
    check_labels(g, labels);
    detail::exact_enough_sum sum;
    for (std::uint32_t v = 0; v < labels.size(); ++v) sum.add(g.costs(variable_id(v))[labels[v]]);
    for (auto const& e : g.edges()) sum.add(g.pair_cost(e, labels[e.u.value], labels[e.v.value]));
    return sum.value();
}

/// E(labels) of a graph with property maps (pairwise_problem.hpp): labels are in the order of the index.
template <class G, class Unary, class Potentials, class Index>
    requires ListsVerticesAndEdges<G>
double energy(G const& g, Unary const& unary, Potentials const& potential, std::span<label const> labels, Index const& index) {
    return energy(pairwise_problem(g, unary, potential, index), labels);
}
template <class G, class Unary, class Potentials>
    requires ListsVerticesAndEdges<G>
double energy(G const& g, Unary const& unary, Potentials const& potential, std::span<label const> labels) {
    return energy(pairwise_problem(g, unary, potential), labels);
}

/// The part of the energy that depends on v: its label cost and its edges. `forbidden` when an edge of v has a forbidden pair.
template <PairwiseProblem G>
double local_energy(G const& g, std::span<label const> labels, variable_id v, label of_v) {
    detail::exact_enough_sum sum;
    sum.add(g.costs(v)[of_v]);
    for (edge_id id : g.incident(v)) {
        auto const& e = g.edge(id);
        sum.add(e.u == v ? g.pair_cost(e, of_v, labels[e.v.value]) : g.pair_cost(e, labels[e.u.value], of_v));
    }
    return sum.value();
}

/// E after v takes label `to`, less E before. +infinity when the move makes v's surroundings forbidden, -infinity when it frees them,
/// 0 when they are forbidden before and after (their difference has no value). Cost: degree of v.
template <PairwiseProblem G>
double move_delta(G const& g, std::span<label const> labels, variable_id v, label to) {
    double const before = local_energy(g, labels, v, labels[v.value]), after = local_energy(g, labels, v, to);
    return before == forbidden && after == forbidden ? 0.0 : after - before;
}

/// The same for two variables that move together.
template <PairwiseProblem G>
double move_delta(G const& g, std::span<label const> labels, variable_id a, label to_a, variable_id b, label to_b) {
    std::vector<label> moved(labels.begin(), labels.end());
    auto const local = [&](label la, label lb) {
        moved[a.value] = la;
        moved[b.value] = lb;
        detail::exact_enough_sum sum;
        sum.add(local_energy(g, moved, a, la));
        sum.add(g.costs(b)[lb]);
        for (edge_id id : g.incident(b)) {
            auto const& e = g.edge(id);
            if (e.u != a && e.v != a) sum.add(g.pair_cost(e, moved[e.u.value], moved[e.v.value]));
        }
        return sum.value();
    };
    double const before = local(labels[a.value], labels[b.value]), after = local(to_a, to_b);
    return before == forbidden && after == forbidden ? 0.0 : after - before;
}

}  // namespace cantle::mrf
