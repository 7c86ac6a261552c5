// SPDX-License-Identifier: BSL-1.0
#pragma once
// The problem as asked and its solution; or, where there is none, the demands that conflict.
#include <cantle/planner/build_and_solve.hpp>
#include <cantle/planner/plan_options.hpp>
#include <cantle/planner/polish.hpp>
#include <cantle/problem/build_problem.hpp>
#include <cantle/problem/demand_conflict.hpp>

#include <utility>

namespace cantle::detail {

inline void count(planning_problem const& p, planning_statistics& stats) {
    stats.vertices = p.classes.class_of.size();
    stats.op_classes = p.classes.classes.size();
    for (auto const& c : p.classes.classes) stats.strategies += c.strategies.size();
    stats.tensor_classes = p.tables.class_count();
    for (tensor_class_id c = 0; c < p.tables.class_count(); ++c) stats.lattice_states += p.tables.lattice(c).state_count();
    stats.relays = p.relays.values.size();
    stats.copies = p.grouping.copies;
    stats.groups = p.grouping.groups.size();
    stats.group_edges = p.factors.edge_count();
    for (auto const& group : p.grouping.groups) stats.labels += group.label_count();
}

/// Why there is no choice: the demands that conflict, or `e` where it cannot be told or says more.
template <class Rules, class Cost>
[[noreturn]] void explain(error const& e, training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                          problem_options const& asked) {
    auto const conflict = find_demand_conflict(g, mesh, rules, cost, asked);
    // What building says of one pin is more exact: it lists the layouts that there are.
    if (!conflict || (conflict->of_one_pin && e.subject().rfind("pin ", 0) == 0)) throw error(e);
    throw conflict_error(*conflict);
}

/// The problem as asked, solved. Throws unsatisfiable_constraint with a minimal set of demands where they leave no choice, and what
/// `solve(p)`, the search, throws.
template <class Rules, class Cost, class Solve>
solved_problem solve_or_explain(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                problem_options const& asked, plan_options const& options, Solve solve, control const& limits,
                                planning_statistics& stats) {
    auto const search = [&] {
        try {
            return build_and_solve(g, mesh, rules, cost, asked, options, solve, limits, stats);
        } catch (error const& e) {
            if (e.code() != error_code::unsatisfiable_constraint) throw;
            explain(e, g, mesh, rules, cost, asked);
        }
    };
    auto found = search();
    if (found.solved.labels.empty())
        explain(error(error_code::unsatisfiable_constraint, "the constraints together",
                      found.solved.status == solve_status::infeasible ? "no choice of strategies satisfies all of them"
                                                                      : "within the limits no choice of strategies was found",
                      "loosen a pin or the boundary"),
                g, mesh, rules, cost, asked);
    count(found.problem, stats);
    stats.solver = found.solved.stats;
    return found;
}

}  // namespace cantle::detail
