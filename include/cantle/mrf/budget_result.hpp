// SPDX-License-Identifier: BSL-1.0
#pragma once
// What goes into a solve under budgets beside the problem, and what comes out of it (lagrangian.hpp).
#include <cantle/base/solve_status.hpp>
#include <cantle/mrf/solve.hpp>

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace cantle::mrf {

/// Limits of a budgeted solve. Counts, not times: the same options give the same result everywhere.
struct budget_options {
    solve_options inner = {};            ///< of every penalised graph; its relative_gap is that of the whole
    std::size_t max_evaluations = 1500;  ///< penalised graphs solved, all together
    double max_entries = 4294967296.0;   ///< table entries of all of them, 2^32: a minute or two where tables are large
    std::size_t root_evaluations = 80;   ///< of the search for the multipliers
    std::size_t node_evaluations = 6;    ///< of the same in a half
};

struct budget_stats {
    std::size_t evaluations = 0;         ///< penalised graphs solved
    std::size_t halves = 0;              ///< nodes of branch and bound
    double root_bound = -forbidden;      ///< before branching: what the multipliers alone prove
    solve_stats first;                   ///< of the graph without budgets
};

struct budget_result {
    std::vector<label> labels;           ///< one per variable; empty when none within the budgets was found
    double energy = forbidden;           ///< of `labels`, without multipliers
    double lower_bound = -forbidden;     ///< of every labelling within the budgets; forbidden when infeasible
    solve_status status = solve_status::stalled;
    std::vector<double> multipliers;     ///< [budget] at the best bound: energy saved per unit of a larger limit, about
    std::vector<double> use;             ///< [budget] of `labels`
    std::vector<double> least;           ///< [budget] no labelling uses less; -infinity where it was not needed
    std::optional<std::size_t> unreachable;  ///< when infeasible: a budget that no labelling keeps, even alone
    budget_stats stats;

    /// (energy - lower_bound) / |energy|; 0 for equal ones.
    double relative_gap() const { return energy == lower_bound ? 0.0 : (energy - lower_bound) / std::abs(energy); }
};

}  // namespace cantle::mrf
