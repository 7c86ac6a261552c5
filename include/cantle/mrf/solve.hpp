// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: minimise the energy of a factor graph and say how good the labelling is.
// Idea: costs to a grid (quantise.hpp), exact reductions, connected components, and for each the search of core_solver.hpp (TRW-S,
// decoding, coordinate descent, reduced-cost fixing, exact elimination); then back to all variables and a last descent in the original
// costs.
// Invariants: lower_bound <= min E <= energy, where min E is that of the costs as given, not of the grid. `optimal` means
// energy - lower_bound <= error_bound, which is what rounding costs to the grid can hide (number of inexact terms times the unit, about
// 1e-14 of the summed largest costs per term; 0 when the costs fit the grid): nothing better exists beyond that. Deterministic, one thread.
// Complexity: reductions, then O(table entries left) per sweep. Limits: solve_options.
#include <cantle/base/control.hpp>
#include <cantle/base/solve_status.hpp>
#include <cantle/mrf/core_solver.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
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

/// A connected component as a graph of its own.
struct component {
    factor_graph graph;
    std::vector<std::uint32_t> variables;
};

inline std::vector<component> split_components(factor_graph const& g) {
    std::vector<std::uint32_t> root(g.variable_count());
    std::iota(root.begin(), root.end(), 0U);
    auto const find = [&](std::uint32_t v) {
        while (root[v] != v) v = root[v] = root[root[v]];
        return v;
    };
    for (auto const& e : g.edges()) {
        auto const a = find(e.u.value), b = find(e.v.value);
        root[std::max(a, b)] = std::min(a, b);
    }
    std::vector<component> parts;
    std::vector<std::uint32_t> part(root.size()), place(root.size());
    for (std::uint32_t v = 0; v < root.size(); ++v) {
        if (find(v) == v) {
            part[v] = static_cast<std::uint32_t>(parts.size());
            parts.emplace_back();
        }
        part[v] = part[find(v)];
        auto& p = parts[part[v]];
        auto const costs = g.costs(variable_id(v));
        place[v] = p.graph.add_variable({costs.begin(), costs.end()}).value;
        p.variables.push_back(v);
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
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) sum += min_of(g.costs(variable_id(v)).data(), g.label_count(variable_id(v)));
    for (auto const& e : g.edges()) sum += min_of(g.table(e.table).values.data(), g.table(e.table).values.size());
    return sum;
}

}  // namespace detail

/// Minimises E. Never throws for what solving finds: see status. Throws bad_field only on costs too large to add up.
inline solve_result solve(factor_graph const& g, solve_options const& options = {}, control const& limits = {}) {
    solve_result result;
    auto const whole = quantise(g);
    result.stats.unit = whole.unit;
    result.stats.error_bound = whole.error_bound();
    auto const infeasible = [&] {
        result.status = solve_status::infeasible;
        result.lower_bound = forbidden;
        return result;
    };
    reduction const reduced(whole.graph, options.reduce);
    if (reduced.infeasible()) return infeasible();
    auto const& core = reduced.graph();
    result.stats.variables = core.variable_count();
    result.stats.edges = core.edge_count();
    auto const parts = detail::split_components(core);
    result.stats.components = parts.size();

    double bound = reduced.constant();
    bool labelled = true, stopped = false;
    std::vector<label> labels(core.variable_count());
    double outside = reduced.constant();
    for (auto const& part : parts) outside += detail::term_minima(part.graph);
    for (auto const& part : parts) {
        outside -= detail::term_minima(part.graph);
        detail::core_solver solver(part.graph, options, limits, outside, whole.unit);
        solver.run();
        if (solver.lower() == forbidden) return infeasible();
        result.stats.sweeps += solver.sweeps();
        result.stats.exact_elimination |= solver.eliminated();
        stopped |= solver.stopped();
        bound += solver.lower();
        outside += solver.lower();
        labelled = labelled && solver.best() != forbidden;
        if (!labelled) continue;
        for (std::size_t i = 0; i < part.variables.size(); ++i) labels[part.variables[i]] = solver.labels()[i];
    }
    result.lower_bound = bound * whole.unit;
    if (labelled) {
        result.labels = reduced.reconstruct(labels);
        result.energy = energy(g, result.labels);
        auto polished = result.labels;  // the grid may have hidden a last bit of improvement
        if (coordinate_descent(g).single_moves(polished))
            if (double const e = energy(g, polished); e < result.energy) {
                result.energy = e;
                result.labels = std::move(polished);
            }
        result.lower_bound = std::min(result.lower_bound, result.energy);  // the energy itself is rounded when it is added up
    }
    // One unit in the last place of the energy for the same reason.
    double const slack = result.stats.error_bound + std::abs(result.energy) * std::numeric_limits<double>::epsilon();
    double const gap = result.energy - result.lower_bound;
    if (labelled && gap <= slack)
        result.status = solve_status::optimal;
    else if (labelled && gap <= options.relative_gap * std::abs(result.energy))
        result.status = solve_status::within_gap;
    else if (stopped)
        result.status = solve_status::stopped;
    return result;
}

}  // namespace cantle::mrf
