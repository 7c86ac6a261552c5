// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a good labelling and a lower bound for any graph, any label costs and any potentials, in one call:
//
//      auto const found = cantle::mrf::trws_search(g, unary, potential, {.max_sweeps = 200});
//
// Idea: the costs go to whole numbers of a grid unit, as in quantise.hpp, so that the bound is a theorem; labels without an allowed
// partner across some edge go (arc consistency [2], by min-plus products of 0 and `forbidden`); then TRW-S [1] sweeps, and every decoded
// labelling descends to a local optimum (coordinate_descent.hpp). The best one descends once more in the costs as given.
// With w = floor(theta / unit), unit a power of two such that all magnitudes together stay below 2^48 units:
//      unit * E_w(x) <= E(x) for every x,   so   unit * (any lower bound of E_w) <= min E.
//
// Invariant: lower_bound <= min E <= energy, whatever the sizes of the costs. A potential without a member quantised() becomes a table;
// so do all of them where arc consistency takes labels out, because a potential need not know how to lose labels.
// Complexity: one product per edge and pass, and the descents. Deterministic. Ends when the bound meets the energy, after max_sweeps, or
// when `patience` sweeps neither found a better labelling nor closed a thousandth of the gap.
// Limits: the bound stops at weak tree agreement [1], and one very large cost makes the grid coarse: error_bound tells. solve.hpp goes on
// from there by reductions, fixing, elimination and branching (take as_factor_graph of the problem), at the price of tables for all.
// [1] V. Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", IEEE TPAMI 28 (2006) 1568-1583.
// [2] A. Mackworth, "Consistency in networks of relations", Artificial Intelligence 8 (1977) 99-118.
#include <cantle/base/control.hpp>
#include <cantle/base/error.hpp>
#include <cantle/base/solve_status.hpp>
#include <cantle/mrf/coordinate_descent.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/potential.hpp>
#include <cantle/mrf/trws.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

struct trws_params {
    std::size_t max_sweeps = 1000;  ///< a sweep is a forward and a backward pass
    double relative_gap = 0;        ///< (energy - bound) / |energy| at which to stop; 0: as far as possible
    std::size_t patience = 50;      ///< sweeps after which too little progress ends the search
};

/// What a search over a pairwise problem returns.
struct search_result {
    std::vector<label> labels;        ///< by index; empty when none without forbidden pairs was found
    double energy = forbidden;        ///< of `labels`, in the costs as given
    double lower_bound = -forbidden;  ///< of every labelling; forbidden when there is none
    solve_status status = solve_status::sweep_limit;
    std::size_t sweeps = 0;
    double error_bound = 0;           ///< what rounding to the grid can have taken from the bound; a member quantised() may take more
};

namespace detail {

/// A problem in whole numbers; Q is what quantised() makes of the potentials.
template <Potential Q>
struct whole_problem {
    pairwise_problem<Q> problem;
    double unit = 1;
};

/// The error for an edge whose potential has an entry that is no cost.
template <Potential P>
error bad_entry(P const& p, std::size_t edge) {
    std::string where = "potential of edge " + std::to_string(edge);
    for (label r = 0; r < p.rows(); ++r)
        for (label c = 0; c < p.cols(); ++c)
            if (!(p(r, c) > -forbidden))
                return error(error_code::bad_field, where + ", labels " + std::to_string(r) + " and " + std::to_string(c),
                             "the cost is NaN or -infinity", "a cost is finite, or cantle::mrf::forbidden");
    return error(error_code::bad_field, where, "costs too large to add up", "scale them down");
}

/// Throws bad_field on an entry that is NaN or -infinity, and when magnitudes add up to 2^900.
template <PairwiseProblem G>
auto to_whole_numbers(G const& g) {
    using Q = std::remove_cvref_t<decltype(quantised(std::declval<potential_type<G> const&>(), 1.0))>;
    double total = 0;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        double m = 0;
        for (double c : g.costs(variable_id(v))) m = std::max(m, std::abs(c));
        total += m;
    }
    for (std::uint32_t i = 0; i < g.edge_count(); ++i) {
        total += magnitude(potential_of(g, g.edge(edge_id(i))));
        if (!(total < 0x1p900)) throw bad_entry(potential_of(g, g.edge(edge_id(i))), i);
    }
    if (!(total < 0x1p900)) throw error(error_code::bad_field, "costs", "too large to add up", "scale them down");
    int exponent = 0;
    if (total > 0) {
        std::frexp(total, &exponent);
        exponent = std::max(exponent + 1 - 48, -900);
    }
    double const unit = std::ldexp(1.0, exponent);
    std::vector<std::vector<double>> costs;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        std::span<double const> const of_v = g.costs(variable_id(v));
        costs.emplace_back(of_v.begin(), of_v.end());
        for (double& c : costs.back()) c = std::floor(c / unit);
    }
    std::vector<typename pairwise_problem<Q>::edge_type> edges;
    for (auto const& e : g.edges()) edges.push_back({e.u, e.v, quantised(potential_of(g, e), unit)});
    return whole_problem<Q>{pairwise_problem<Q>(costs, std::move(edges)), unit};
}

/// For each variable its labels that arc consistency leaves; nullopt when a variable has none left.
template <PairwiseProblem G>
std::optional<std::vector<std::vector<label>>> consistent_labels(G const& g) {
    std::vector<std::vector<double>> in(g.variable_count());  // 0: still in; forbidden: out
    std::size_t widest = 0;
    for (std::uint32_t v = 0; v < in.size(); ++v) {
        in[v].assign(g.label_count(variable_id(v)), 0.0);
        widest = std::max(widest, in[v].size());
    }
    std::vector<double> reach(widest);
    for (bool again = true; again;) {
        again = false;
        for (auto const& e : g.edges()) {
            auto&& p = potential_of(g, e);
            auto const take_out = [&](std::vector<double>& labels) {
                for (std::size_t j = 0; j < labels.size(); ++j) {
                    again |= reach[j] == forbidden && labels[j] == 0;
                    if (reach[j] == forbidden) labels[j] = forbidden;
                }
            };
            mrf::min_plus_over_rows(p, in[e.u.value].data(), reach.data());
            take_out(in[e.v.value]);
            mrf::min_plus_over_cols(p, in[e.v.value].data(), reach.data());
            take_out(in[e.u.value]);
        }
    }
    std::vector<std::vector<label>> kept(in.size());
    for (std::uint32_t v = 0; v < in.size(); ++v) {
        for (label j = 0; j < in[v].size(); ++j)
            if (in[v][j] == 0) kept[v].push_back(j);
        if (kept[v].empty()) return std::nullopt;
    }
    return kept;
}

/// What sweeps over a whole-number problem found, in its units.
struct whole_outcome {
    std::vector<label> labels;
    double energy = forbidden, bound = -forbidden;
    std::size_t sweeps = 0;
    solve_status ended_by = solve_status::sweep_limit;
};

/// Precondition: whole numbers, and every label has an allowed partner across every edge.
template <PairwiseProblem G>
whole_outcome sweep_whole(G const& g, trws_params const& params, control const& limits, double unit) {
    whole_outcome found;
    basic_trws messages(g);
    basic_coordinate_descent descent(g);
    std::vector<label> last, trial;
    auto const offer = [&] {
        if (std::equal(last.begin(), last.end(), messages.labels().begin(), messages.labels().end())) return;
        last.assign(messages.labels().begin(), messages.labels().end());
        trial = last;
        descent.run(trial);
        double const e = energy(g, trial);
        if (!(e < found.energy)) return;
        found.energy = e;
        found.labels = trial;
    };
    auto const closed = [&] {
        if (found.bound >= found.energy) return true;
        return found.energy != forbidden && found.energy - found.bound <= params.relative_gap * std::abs(found.energy);
    };
    double bound_then = found.bound, energy_then = found.energy;
    while (true) {
        if (found.sweeps > 0 && limits.expired()) {  // one sweep at least: a whole result
            found.ended_by = solve_status::stopped;
            break;
        }
        bool in_range = messages.forward();
        if (in_range) offer();
        in_range = in_range && messages.backward();
        if (in_range) offer();
        ++found.sweeps;
        found.bound = messages.bound();
        limits.report({"trws", found.sweeps, params.max_sweeps, found.energy * unit, found.bound * unit});
        if (closed() || found.sweeps >= params.max_sweeps) break;
        bool const pause = params.patience > 0 && found.sweeps % params.patience == 0;
        bool const creeping = pause && found.energy == energy_then && found.bound - bound_then <= 1e-3 * (found.energy - found.bound);
        if (!in_range || creeping) {
            found.ended_by = solve_status::stalled;
            break;
        }
        if (!pause) continue;
        bound_then = found.bound;
        energy_then = found.energy;
    }
    return found;
}

}  // namespace detail

/// Searches a factor_graph or a pairwise_problem. Throws bad_field on a cost that is NaN or -infinity, or on costs too large to add up.
template <PairwiseProblem G>
search_result trws_search(G const& g, trws_params const& params = {}, control const& limits = {}) {
    search_result result;
    auto const whole = detail::to_whole_numbers(g);
    result.error_bound = whole.unit * static_cast<double>(g.variable_count() + 2 * g.edge_count());
    auto const kept = detail::consistent_labels(whole.problem);
    if (!kept) {
        result.lower_bound = forbidden;
        result.status = solve_status::infeasible;
        return result;
    }
    bool all = true;
    for (std::uint32_t v = 0; v < kept->size(); ++v) all = all && (*kept)[v].size() == g.label_count(variable_id(v));
    auto found = all ? detail::sweep_whole(whole.problem, params, limits, whole.unit)
                     : detail::sweep_whole(with_labels(whole.problem, *kept), params, limits, whole.unit);
    result.sweeps = found.sweeps;
    result.lower_bound = found.bound * whole.unit;
    result.status = found.ended_by;
    if (found.energy == forbidden) return result;
    result.labels = std::move(found.labels);
    for (std::size_t v = 0; v < result.labels.size(); ++v) result.labels[v] = (*kept)[v][result.labels[v]];
    result.energy = energy(g, result.labels);
    auto polished = result.labels;  // the grid may have hidden a last bit of improvement
    if (basic_coordinate_descent<G>(g).single_moves(polished))
        if (double const e = energy(g, polished); e < result.energy) {
            result.energy = e;
            result.labels = std::move(polished);
        }
    result.lower_bound = std::min(result.lower_bound, result.energy);
    double const gap = result.energy - result.lower_bound;
    if (gap <= std::min(result.error_bound, 1e-8 * std::abs(result.energy))) result.status = solve_status::optimal;
    else if (gap <= params.relative_gap * std::abs(result.energy)) result.status = solve_status::within_gap;
    return result;
}

/// The same for a graph with property maps (pairwise_problem.hpp says what they are); throws bad_field as reading it does, too.
template <class G, class Unary, class Potentials, class Index>
    requires VertexIndexMap<Index, G>
search_result trws_search(G const& g, Unary const& unary, Potentials const& potential, Index const& index,
                          trws_params const& params = {}, control const& limits = {}) {
    require_problem<G, Unary, Potentials>();
    return trws_search(pairwise_problem(g, unary, potential, index), params, limits);
}
template <class G, class Unary, class Potentials>
search_result trws_search(G const& g, Unary const& unary, Potentials const& potential, trws_params const& params = {},
                          control const& limits = {}) {
    require_problem<G, Unary, Potentials>();
    return trws_search(pairwise_problem(g, unary, potential), params, limits);
}

}  // namespace cantle::mrf
