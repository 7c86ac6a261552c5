// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: copies of a layer that share one decision make the problem small, and cost what the first and the last layer could save by
// lying otherwise: 0.001 % of LLaMA 3 8B on 4x8, 0.04 % of GPT-2 on 4x2x4, 0.26 % of the published problem of two layers. And a bound of
// the clustered problem is none of plans that are not clustered (case E4).
// Idea: lift the clustered labelling to the problem in which every vertex decides for itself and solve that one as well, to its own bound.
// The better labelling is the plan: never worse than the clustered one, and objective and bound are of one problem.
// Measured: descent and block search from the lifted labelling find nothing (whole layers must change at once), so the full search it is;
// knowing the energy of the lifted labelling beforehand saves it one sweep in 27, so it starts afresh.
// Complexity: as solving without clustering: LLaMA 3 8B on 4x8 20 times the clustered solve, on 4x2x4 12 times and 0.5 GB. Beyond
// plan_options::max_polish_entries it is left out, and the plan says so.
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/problem/lift.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// What polishing did, and the clustered result that it started from.
struct polish_statistics {
    bool ran = false;
    std::string left_out;                          ///< why it did not run; empty where it ran or was not asked for
    double clustered_objective = 0, clustered_bound = 0;  ///< microseconds
    solve_status clustered_status = solve_status::optimal;
    std::size_t groups = 0, group_edges = 0;       ///< of the unclustered problem
    mrf::solve_stats solver;
};

namespace detail {

/// A problem with the best that is known of it.
struct solved_problem {
    planning_problem problem;
    mrf::solve_result solved;
};

/// Why a clustered result is not polished; empty: it is.
inline std::string why_not_polished(solved_problem const& s, double most_entries) {
    if (s.problem.grouping.copies == 0) return "no vertex shares a decision";
    if (s.solved.status == solve_status::stopped) return "the clock ended the search before";
    double const entries = unclustered_entries(s.problem);
    if (entries <= most_entries) return {};
    char text[120];
    std::snprintf(text, sizeof text, "the unclustered problem has %.2g table entries, the limit is %.2g", entries, most_entries);
    return text;
}

/// Takes `labels` where they are better than what solving found.
inline void offer(mrf::solve_result& r, mrf::factor_graph const& g, std::vector<mrf::label> labels, double relative_gap) {
    double const e = mrf::energy(g, labels);
    if (!(e < r.energy)) return;
    r.energy = e;
    r.labels = std::move(labels);
    r.lower_bound = std::min(r.lower_bound, e);
    // An optimum is beaten by less than its grid hides, if at all.
    if (r.status != solve_status::optimal && r.status != solve_status::stopped && r.relative_gap() <= relative_gap)
        r.status = solve_status::within_gap;
}

/// Replaces a clustered problem and its result by the unclustered one and its result. `build()` makes the unclustered problem, `solve(p)`
/// solves one.
template <class Build, class Solve>
polish_statistics polish(solved_problem& s, Build build, Solve solve, double relative_gap, double most_entries) {
    polish_statistics stats;
    stats.left_out = why_not_polished(s, most_entries);
    if (!stats.left_out.empty()) return stats;
    stats.ran = true;
    stats.clustered_objective = s.solved.energy;
    stats.clustered_bound = s.solved.lower_bound;
    stats.clustered_status = s.solved.status;
    auto const decisions = decisions_of(s.problem, s.solved.labels);
    s.problem = build();
    stats.groups = s.problem.factors.variable_count();
    stats.group_edges = s.problem.factors.edge_count();
    s.solved = solve(std::as_const(s.problem));
    stats.solver = s.solved.stats;
    if (auto lifted = labels_of(s.problem, decisions)) offer(s.solved, s.problem.factors, std::move(*lifted), relative_gap);
    return stats;
}

}  // namespace detail
}  // namespace cantle
