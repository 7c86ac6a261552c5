// SPDX-License-Identifier: BSL-1.0
#pragma once
// The one call: plan(graph, mesh, rules, cost, options). graph: training_graph or any graph type with the property maps of
// graph/properties.hpp; rules and cost: any types that satisfy RuleSet and CostModel.
//
//     auto const mesh = cantle::device_mesh::parse("4x8", "dp,tp");
//     cantle::standard_cost_model const cost(mesh, cantle::find_cluster("h100"));
//     auto const plan = cantle::plan(graph, mesh, cantle::standard_rules(), cost);
#include <cantle/base/control.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/graph/properties.hpp>
#include <cantle/graph/validate.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/planner/extract_plan.hpp>
#include <cantle/planner/plan_options.hpp>
#include <cantle/planner/polish.hpp>
#include <cantle/planner/solve_or_explain.hpp>
#include <cantle/rules/fallback.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

/// A cost model that says for which mesh it was made must have been made for this one; names of axes do not matter.
template <class Cost>
void check_mesh_of(Cost const& cost, device_mesh const& mesh) {
    if constexpr (requires { { cost.mesh() } -> std::convertible_to<device_mesh const&>; }) {
        device_mesh const& own = cost.mesh();
        bool same = own.dims() == mesh.dims();
        for (std::size_t a = 0; same && a < mesh.dims(); ++a) same = own.size(a) == mesh.size(a);
        if (!same)
            throw error(error_code::bad_cost, "cost model of mesh " + own.text(), "the plan is for mesh " + mesh.text(),
                        "make the cost model for the mesh that is planned");
    }
}

/// The problem that objective and bound belong to, in words.
inline std::string bounded_problem_text(planning_problem const& p, polish_statistics const& polished,
                                        std::optional<std::size_t> seed_radius) {
    std::string const ball = seed_radius ? "; of strategies " + seed_ball_text(*seed_radius) : "";
    std::string const why = ball + (polished.left_out.empty() ? "" : "; not polished: " + polished.left_out);
    if (p.grouping.copies > 0)
        return "clustered: " + std::to_string(p.grouping.copies) + " of " + std::to_string(p.classes.class_of.size()) +
               " vertices share the decision of their first copy" + why;
    return std::string("unclustered: every vertex decides for itself") + (polished.ran ? ", polished from a clustered plan" : why);
}

template <RuleSet Rules, CostModel Cost>
sharding_plan plan_training_graph(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                  plan_options const& options, control const& limits, planning_statistics& stats) {
    stats.clock.enter("build");
    check_options(options);
    check_mesh_of(cost, mesh);
    if (g.size() == 0) throw error(error_code::bad_graph, "graph", "it has no nodes", "give a graph with inputs, ops and outputs");
    validate(g);
    rules_with_fallback<Rules> const used(rules, options.fallback);
    problem_options const asked{options.boundary, options.clustering, options.tie_break, options.uneven};
    std::vector<budget_use> uses;
    auto const solve = [&](planning_problem const& p) {
        mrf::solve_options const solving{
            .relative_gap = options.relative_gap, .max_sweeps = options.max_sweeps, .threads = options.threads};
        if (options.budgets.empty()) return mrf::solve(p.factors, solving, limits);
        auto within = solve_within(p, g, options.budgets, solving, limits, options.seed_radius.has_value());
        uses = std::move(within.uses);
        return std::move(within.solved);
    };
    auto best = solve_or_explain(g, mesh, used, cost, asked, options, solve, limits, stats);
    if (!options.budgets.empty()) stats.polish.left_out = options.polish ? "budgets are kept by the clustered search" : "";
    else if (options.polish && options.clustering) {
        stats.clock.enter("polish");
        auto free = asked;
        free.clustering = false;
        auto const build = [&] { return build_problem(g, mesh, used, cost, free); };
        stats.polish = polish(best, build, solve, options.relative_gap, options.max_polish_entries);
    }
    stats.clock.enter("extract");
    auto result = plan_extractor<Cost>(best.problem, g, best.solved.labels, cost).run();
    result.objective = best.solved.energy;
    result.bound = best.solved.lower_bound;
    result.status = best.solved.status;
    result.bounded_problem = bounded_problem_text(best.problem, stats.polish, options.seed_radius);
    result.budgets = std::move(uses);
    result.constraints = constraint_texts(mesh, options);
    if (options.fallback == rule_fallback::replicate)
        for (auto const& u : uncovered_ops(g, rules)) {
            result.fallbacks.push_back({u.name, u.count});
            result.constraints.push_back("fallback replicate: " + u.name + ", " + std::to_string(u.count) +
                                         (u.count == 1 ? " time" : " times") + ", whole on every rank, as no rule covers it");
        }
    stable_hasher rules_hash, cost_hash;
    rules.feed(rules_hash);
    cost.feed(cost_hash);
    result.made_from = {structural_hash(g), rules_hash.finish(), cost_hash.finish(), options_hash(options, result.constraints)};
    stats.clock.leave();
    return result;
}

}  // namespace detail

/// Plan `graph` on `mesh`. The plan's vertices are those of training_graph, or of import_graph(graph) for another type. Deterministic
/// unless `limits` cut the run short (the status then says stopped).
/// Throws: graph_has_cycle, dangling_tensor, bad_graph; op_without_rule (all of them at once), bad_rule, no_strategy; bad_cost; bad_option;
/// mesh_does_not_divide, bad_layout, unknown_axis, unknown_tensor, unsatisfiable_constraint.
template <class Graph, class Rules, class Cost>
sharding_plan plan(Graph const& graph, device_mesh const& mesh, Rules const& rules, Cost const& cost, plan_options const& options = {},
                   control const& limits = {}, planning_statistics* statistics = nullptr) {
    require_plannable_graph<Graph>();
    require_rule_set<Rules>();
    require_cost_model<Cost>();
    planning_statistics own;
    auto& stats = statistics ? *statistics : own;
    if constexpr (std::same_as<Graph, training_graph>) return detail::plan_training_graph(graph, mesh, rules, cost, options, limits, stats);
    else return detail::plan_training_graph(import_graph(graph).graph, mesh, rules, cost, options, limits, stats);
}

}  // namespace cantle
