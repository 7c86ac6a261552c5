// SPDX-License-Identifier: BSL-1.0
#pragma once
// From a graph to a solved problem. Where the tables of all labels together are small, they are made and solved. Where they are not (four
// mesh axes and more), seeds of pairs of axes give a first plan, screening (problem/screening.hpp) takes out what is in no better plan, and
// the tables of the rest are made and solved: the same optimum, with a bound of the whole problem.
#include <cantle/base/parallel_for.hpp>
#include <cantle/planner/plan_options.hpp>
#include <cantle/planner/polish.hpp>
#include <cantle/problem/build_problem.hpp>
#include <cantle/problem/screening.hpp>
#include <cantle/problem/seeding.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace cantle::detail {

/// Labels that decide as `decisions` say, one per group. Precondition: the groups have them.
inline std::vector<mrf::label> labels_that_decide(grouping const& groups, std::vector<std::uint32_t> const& decisions) {
    std::vector<mrf::label> labels;
    for (std::size_t i = 0; i < decisions.size(); ++i) labels.push_back(label_of(groups.groups[i], decisions[i]));
    return labels;
}

/// Keeps only the labels of one plan.
inline label_subset only(grouping const& groups, std::vector<std::uint32_t> const& decisions) {
    label_subset kept;
    for (auto l : labels_that_decide(groups, decisions)) kept.push_back({l});
    return kept;
}

/// What screening and solving the rest say together. `rest`: of the labels kept.
inline mrf::solve_result both(screening_result const& screened, mrf::solve_result rest, grouping const& groups, double relative_gap) {
    if (screened.decisions.empty()) return rest;
    if (!(rest.energy <= screened.energy)) {  // the plan known before is among the labels kept, but limits may have ended the search
        rest.energy = screened.energy;
        rest.labels = labels_that_decide(groups, screened.decisions);
    }
    // Labels that went are in no plan below screened.energy.
    rest.lower_bound = std::min(screened.finished ? std::max(rest.lower_bound, screened.lower_bound) : screened.lower_bound, rest.energy);
    if (screened.finished && rest.status == solve_status::optimal) return rest;
    if (rest.relative_gap() <= relative_gap) rest.status = solve_status::within_gap;
    else if (screened.stopped || rest.status == solve_status::stopped) rest.status = solve_status::stopped;
    else rest.status = solve_status::sweep_limit;
    return rest;
}

/// The problem as asked, solved by `solve(problem)`; labels are empty where none was found. Throws as build_problem.
template <class Rules, class Cost, class Solve>
solved_problem build_and_solve(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                               problem_options const& asked, plan_options const& options, Solve solve, control const& limits,
                               planning_statistics& stats) {
    unsigned const threads = thread_count(options.threads);
    auto how_built = asked;
    how_built.threads = threads;
    auto problem = form_problem(g, mesh, rules, cost, how_built, &stats.clock);
    auto const first_plan = [&](seed_axes_of which, std::size_t radius) {
        stats.clock.enter("seeds");
        return seed_ball(problem, seed_axes(problem, g, rules, cost, which, {}, limits), radius);
    };
    if (options.seed_radius) problem.grouping = restricted(problem.grouping, first_plan(seed_axes_of::single, *options.seed_radius));
    screening_result screened;
    // Under budgets a label can be in the best plan that costs more than a plan without them: those are solved from tables.
    bool const screens = options.budgets.empty() && table_entries(problem) > options.max_table_entries;
    if (screens) {
        auto const first = first_plan(seed_axes_of::pairs, 1);
        stats.clock.enter("screen");
        screening_options how;
        how.max_sweeps = options.max_sweeps;
        how.relative_gap = options.relative_gap;
        how.threads = threads;
        screened = screen_labels(problem, g, how, limits, first);
        stats.screening = {true, screened.sweeps, screened.small_problems, 0, 0};
        for (auto const& group : problem.grouping.groups) stats.screening.labels += group.label_count();
        if (!screened.finished && !screened.decisions.empty()) screened.kept = only(problem.grouping, screened.decisions);
        problem.grouping = restricted(problem.grouping, screened.kept);
        for (auto const& group : problem.grouping.groups) stats.screening.labels_left += group.label_count();
        if (!screened.finished && screened.decisions.empty()) {
            mrf::solve_result none;
            none.status = screened.stopped ? solve_status::stopped : solve_status::sweep_limit;
            return {std::move(problem), std::move(none)};
        }
    }
    price_problem(problem, g, &stats.clock);
    stats.clock.enter("solve");
    mrf::solve_result solved = solve(std::as_const(problem));
    if (screens) solved = both(screened, std::move(solved), problem.grouping, options.relative_gap);
    return {std::move(problem), std::move(solved)};
}

}  // namespace cantle::detail
