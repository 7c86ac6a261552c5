// SPDX-License-Identifier: BSL-1.0
#pragma once
// How a solve ended. Values say what a caller can do; the best solution so far, its bound and gap always come along.
#include <string_view>

namespace cantle {

enum class solve_status {
    optimal,        ///< bound equals energy up to the exact arithmetic's grid: nothing better exists
    within_gap,     ///< the wanted gap was reached; ask for a smaller one to go on
    sweep_limit,    ///< the sweep limit ended the run; raise it to go on
    stalled,        ///< the bound no longer rises and exact elimination is beyond its work limit; more sweeps do not help
    stopped,        ///< deadline or stop token ended the run; the result depends on the clock
    infeasible,     ///< no labelling satisfies all hard constraints
};

constexpr std::string_view to_string(solve_status s) {
    switch (s) {
        case solve_status::optimal: return "optimal";
        case solve_status::within_gap: return "within_gap";
        case solve_status::sweep_limit: return "sweep_limit";
        case solve_status::stalled: return "stalled";
        case solve_status::stopped: return "stopped";
        case solve_status::infeasible: return "infeasible";
    }
    return "?";
}

/// All of them, for readers of what to_string wrote.
inline constexpr solve_status all_solve_statuses[] = {solve_status::optimal, solve_status::within_gap, solve_status::sweep_limit,
                                                      solve_status::stalled, solve_status::stopped,    solve_status::infeasible};

}  // namespace cantle
