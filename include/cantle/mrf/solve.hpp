// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: minimise the energy of a factor graph and say how good the labelling is.
// Idea: costs to a grid (quantise.hpp), exact reductions, connected components, each in an order with long chains (chain_order.hpp), and
// for each the search of core_solver.hpp (TRW-S, decoding, coordinate descent, reduced-cost fixing, exact elimination); then back to all
// variables and a last descent in the original costs.
// Where some price is so large that its grid hides what the labelling found pays, prices that no better labelling can pay are capped
// (price_cap.hpp) and a finer grid is taken.
// Invariants: lower_bound <= min E <= energy, where min E is that of the costs as given, not of the grid. `optimal` means that
// energy - lower_bound is at most what rounding costs to the grid can hide (error_bound: number of inexact terms times the unit; 0 when
// the costs fit the grid) and at most 1e-8 of what the labelling pays: nothing better exists beyond that. Deterministic, and
// the same for any number of threads (reductions, eliminations and rounding use them).
// Complexity: reductions, then O(table entries left) per sweep. Limits: solve_options.
#include <cantle/base/control.hpp>
#include <cantle/base/solve_status.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/chain_order.hpp>
#include <cantle/mrf/core_solver.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/price_cap.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cantle::mrf {

struct solve_stats {
    std::size_t variables = 0, edges = 0, components = 0;  ///< after the first reductions
    std::size_t sweeps = 0;                                ///< TRW-S sweeps (forward and backward), all components
    bool exact_elimination = false;                        ///< some component was finished by bucket elimination
    double unit = 1, error_bound = 0;                      ///< of the grid, see quantise.hpp
};

struct solve_result {
    std::vector<label> labels;   ///< one per variable; empty when none without forbidden pairs was found
    double energy = forbidden;   ///< of `labels` in the original costs
    double lower_bound = -forbidden;  ///< of every labelling; forbidden when infeasible
    solve_status status = solve_status::sweep_limit;
    solve_stats stats;

    /// (energy - lower_bound) / |energy|; 0 for equal ones.
    double relative_gap() const { return energy == lower_bound ? 0.0 : (energy - lower_bound) / std::abs(energy); }
};

namespace detail {

/// A connected component as a graph of its own, its variables in an order with long chains.
struct component {
    factor_graph graph;
    std::vector<std::uint32_t> variables;
};

inline std::vector<component> split_components(factor_graph const& g) {
    auto const near = neighbours(g);
    std::vector<component> parts;
    constexpr auto nowhere = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> part(g.variable_count(), nowhere), place(g.variable_count());
    for (std::uint32_t v = 0; v < near.size(); ++v) {
        if (part[v] != nowhere) continue;
        part[v] = static_cast<std::uint32_t>(parts.size());
        std::vector<std::uint32_t> members{v};
        for (std::size_t i = 0; i < members.size(); ++i)
            for (auto w : near[members[i]]) {
                if (part[w] != nowhere) continue;
                part[w] = part[v];
                members.push_back(w);
            }
        std::sort(members.begin(), members.end());
        for (std::uint32_t i = 0; i < members.size(); ++i) place[members[i]] = i;
        neighbour_lists inside(members.size());
        for (std::uint32_t i = 0; i < members.size(); ++i)
            for (auto w : near[members[i]]) inside[i].push_back(place[w]);
        auto& p = parts.emplace_back();
        for (auto i : chain_order(inside)) {
            auto const costs = g.costs(variable_id(members[i]));
            place[members[i]] = p.graph.add_variable({costs.begin(), costs.end()}).value;
            p.variables.push_back(members[i]);
        }
    }
    for (auto const& e : g.edges()) {
        auto& p = parts[part[e.u.value]].graph;
        p.add_edge(variable_id(place[e.u.value]), variable_id(place[e.v.value]), p.add_table(g.shared_table(e.table)), e.use);
    }
    return parts;
}

/// Sum of the least cost of every term.
inline double term_minima(factor_graph const& g) {
    double sum = 0;
    std::vector<double> of_table(g.table_count());
    for (std::uint32_t t = 0; t < of_table.size(); ++t) {
        auto const& values = g.table(table_id(t)).values;
        of_table[t] = min_of(values.data(), values.size());
    }
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) sum += min_of(g.costs(variable_id(v)).data(), g.label_count(variable_id(v)));
    for (auto const& e : g.edges()) sum += of_table[e.table.value];
    return sum;
}

/// What one grid tells.
struct grid_outcome {
    std::vector<label> labels;  ///< empty when none without forbidden pairs was found
    double energy = forbidden;  ///< in the costs as given
    double lower_bound = -forbidden;
    bool infeasible = false, stopped = false, out_of_sweeps = false;
    solve_stats stats;
};

/// Solves `priced` on the grid that suits its costs; `g` has the costs as given, nowhere lower than those of `priced`.
inline grid_outcome solve_on_grid(factor_graph const& g, factor_graph const& priced, solve_options const& options, control const& limits) {
    grid_outcome result;
    auto const whole = quantise(priced, options.threads);
    result.stats.unit = whole.unit;
    result.stats.error_bound = whole.error_bound();
    auto const infeasible = [&] {
        result.infeasible = true;
        result.lower_bound = forbidden;
        return result;
    };
    reduction const reduced(whole.graph, reduce_with(options), limits);
    if (reduced.infeasible()) return infeasible();
    auto const& core = reduced.graph();
    result.stats.variables = core.variable_count();
    result.stats.edges = core.edge_count();
    auto const parts = split_components(core);
    result.stats.components = parts.size();

    double bound = reduced.constant();
    bool labelled = true;
    std::vector<label> labels(core.variable_count());
    double outside = reduced.constant();
    std::vector<double> least;
    for (auto const& part : parts) outside += least.emplace_back(term_minima(part.graph));
    for (std::size_t p = 0; p < parts.size(); ++p) {
        auto const& part = parts[p];
        outside -= least[p];
        core_solver solver(part.graph, options, limits, outside, whole.unit);
        solver.run();
        if (solver.lower() == forbidden) return infeasible();
        result.stats.sweeps += solver.sweeps();
        result.stats.exact_elimination |= solver.eliminated();
        result.stopped |= solver.stopped();
        result.out_of_sweeps |= solver.out_of_sweeps();
        bound += solver.lower();
        outside += solver.lower();
        labelled = labelled && solver.best() != forbidden;
        if (!labelled) continue;
        for (std::size_t i = 0; i < part.variables.size(); ++i) labels[part.variables[i]] = solver.labels()[i];
    }
    result.lower_bound = bound * whole.unit;
    if (!labelled) return result;
    result.labels = reduced.reconstruct(labels);
    result.energy = energy(g, result.labels);
    auto polished = result.labels;  // the grid may have hidden a last bit of improvement
    if (coordinate_descent(g).single_moves(polished))
        if (double const e = energy(g, polished); e < result.energy) {
            result.energy = e;
            result.labels = std::move(polished);
        }
    return result;
}

/// Sum of the sizes of all costs that the labelling pays: the scale of its energy, also where signs cancel.
inline double paid(factor_graph const& g, std::span<label const> labels) {
    double sum = 0;
    for (std::uint32_t v = 0; v < labels.size(); ++v) sum += std::abs(g.costs(variable_id(v))[labels[v]]);
    for (auto const& e : g.edges()) sum += std::abs(g.pair_cost(e, labels[e.u.value], labels[e.v.value]));
    return sum;
}

inline constexpr double fine_enough = 1e-8;  ///< of what is paid: what a grid may hide from an optimum
inline constexpr int most_grids = 12;        ///< each cap lowers the largest price by about 2^40

}  // namespace detail

/// Minimises E. Never throws for what solving finds: see status. Throws bad_field only on costs too large to add up.
inline solve_result solve(factor_graph const& g, solve_options const& options = {}, control const& limits = {}) {
    auto found = detail::solve_on_grid(g, g, options, limits);
    auto const hidden = [&] { return found.stats.error_bound - detail::fine_enough * detail::paid(g, found.labels); };
    std::optional<capped_graph> priced;
    for (int grid = 1; grid < detail::most_grids && !found.labels.empty() && !found.stopped && hidden() > 0; ++grid) {
        auto capped = cap_prices(priced ? priced->graph : g, found.energy);
        if (!(magnitude(capped.graph) <= magnitude(priced ? priced->graph : g) / 2)) break;
        priced = std::move(capped);
        auto finer = detail::solve_on_grid(g, priced->graph, options, limits);
        finer.lower_bound = std::max(finer.infeasible ? -forbidden : finer.lower_bound, found.lower_bound);
        finer.infeasible = false;
        finer.stats.sweeps += found.stats.sweeps;
        if (!(finer.energy <= found.energy)) {
            finer.labels = std::move(found.labels);
            finer.energy = found.energy;
        }
        found = std::move(finer);
    }

    solve_result result;
    result.stats = found.stats;
    result.lower_bound = found.lower_bound;
    if (found.infeasible) {
        result.status = solve_status::infeasible;
        return result;
    }
    bool const labelled = !found.labels.empty() || g.variable_count() == 0;
    // The energy itself is rounded when it is added up: one unit in its last place. What the grid hides counts as nothing only where it
    // is small beside what is paid.
    double slack = 0;
    if (labelled) {
        double const scale = detail::paid(g, found.labels);
        slack = std::min(result.stats.error_bound, detail::fine_enough * scale) + scale * std::numeric_limits<double>::epsilon();
        result.energy = found.energy;
        result.labels = std::move(found.labels);
        result.lower_bound = std::min(result.lower_bound, result.energy);
    }
    double const gap = result.energy - result.lower_bound;
    if (labelled && gap <= slack) result.status = solve_status::optimal;
    else if (labelled && gap <= options.relative_gap * std::abs(result.energy)) result.status = solve_status::within_gap;
    else if (found.stopped) result.status = solve_status::stopped;
    else if (found.out_of_sweeps) result.status = solve_status::sweep_limit;
    else result.status = solve_status::stalled;
    return result;
}

}  // namespace cantle::mrf
