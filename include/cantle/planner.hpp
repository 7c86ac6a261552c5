// SPDX-License-Identifier: BSL-1.0
#pragma once
// The one call: plan(graph, mesh, rules, cost, options). graph: training_graph or any graph type with the property maps of
// graph/properties.hpp; rules and cost: any types that satisfy RuleSet and CostModel.
//
//     auto const mesh = cantle::device_mesh::parse("4x8", "dp,tp");
//     cantle::standard_cost_model const cost(mesh, cantle::find_cluster("h100"));
//     auto const plan = cantle::plan(graph, mesh, cantle::standard_rules(), cost);
#include <cantle/base/control.hpp>
#include <cantle/base/stage_clock.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/graph/properties.hpp>
#include <cantle/graph/validate.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/problem/build_problem.hpp>
#include <cantle/rules/fallback.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

struct plan_options {
    cantle::boundary boundary;         ///< what is demanded of inputs, outputs and parameters
    bool clustering = true;            ///< copies of a layer share one decision; the bound then is of that problem (case E4)
    double tie_break = 1.0;            ///< microseconds per flow edge whose layouts differ
    double relative_gap = 0.0;         ///< stop when (objective - bound) / objective is at most this; 0: go on to the optimum
    std::size_t max_sweeps = 2000;     ///< of TRW-S
    bool uneven = false;               ///< shards may be nested ceil chunks where an axis does not divide a dim (docs/uneven.md)
    rule_fallback fallback = rule_fallback::none;  ///< of ops that no rule covers: an error, or whole on every rank
};

/// What a run did, beside the plan: for reports and benches.
struct planning_statistics {
    stage_clock clock;                 ///< rules (with computation prices), costs (redistribution), build, solve, extract
    std::size_t vertices = 0, op_classes = 0, strategies = 0, tensor_classes = 0, lattice_states = 0;
    std::size_t relays = 0, copies = 0, groups = 0, group_edges = 0, labels = 0;
    mrf::solve_stats solver;
};

namespace detail {

inline std::vector<std::string> constraint_texts(device_mesh const& mesh, plan_options const& o) {
    auto const& b = o.boundary;
    std::vector<std::string> list{inputs_text(b, mesh), outputs_text(b), "loss: Replicate", parameters_text(b), pairing_text};
    for (auto const& p : b.pins) list.push_back("pin: " + pin_text(p));
    if (o.uneven) list.push_back("shards: uneven ones allowed");
    return list;
}

inline digest options_hash(plan_options const& o, std::vector<std::string> const& constraints) {
    stable_hasher h;
    h.add("cantle-options-1").add(o.clustering).add(o.tie_break).add(o.relative_gap).add(o.max_sweeps).add(constraints);
    if (o.uneven || o.fallback != rule_fallback::none) h.add(o.uneven).add(o.fallback);
    return h.finish();
}

/// Throws bad_option naming the option.
inline void check_options(plan_options const& o) {
    auto const check = [](double value, char const* name) {
        if (!std::isfinite(value) || value < 0)
            throw error(error_code::bad_option, "plan option " + std::string(name), "it is " + std::to_string(value),
                        "give a finite number of at least 0");
    };
    check(o.tie_break, "tie_break");
    check(o.relative_gap, "relative_gap");
}

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

template <RuleSet Rules, CostModel Cost>
sharding_plan plan_training_graph(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                  plan_options const& options, control const& limits, planning_statistics& stats) {
    stats.clock.enter("build");
    check_options(options);
    check_mesh_of(cost, mesh);
    if (g.size() == 0) throw error(error_code::bad_graph, "graph", "it has no nodes", "give a graph with inputs, ops and outputs");
    validate(g);
    rules_with_fallback<Rules> const used(rules, options.fallback);
    auto const problem =
        build_problem(g, mesh, used, cost, {options.boundary, options.clustering, options.tie_break, options.uneven}, &stats.clock);
    stats.clock.enter("solve");
    auto const solved = mrf::solve(problem.factors, {.relative_gap = options.relative_gap, .max_sweeps = options.max_sweeps}, limits);
    if (solved.labels.empty())
        throw error(error_code::unsatisfiable_constraint, "the constraints together", "no choice of strategies satisfies all of them",
                    "loosen a pin or the boundary");
    stats.clock.enter("extract");
    auto result = plan_extractor<Cost>(problem, g, solved.labels, cost).run();
    result.objective = solved.energy;
    result.bound = solved.lower_bound;
    result.status = solved.status;
    result.bounded_problem = problem.grouping.copies > 0 ? "clustered: " + std::to_string(problem.grouping.copies) + " of " +
                                                               std::to_string(g.size()) + " vertices share the decision of their first copy"
                                                         : "unclustered: every vertex decides for itself";
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

    stats.vertices = g.size();
    stats.op_classes = problem.classes.classes.size();
    for (auto const& c : problem.classes.classes) stats.strategies += c.strategies.size();
    stats.tensor_classes = problem.tables.class_count();
    for (tensor_class_id c = 0; c < problem.tables.class_count(); ++c) stats.lattice_states += problem.tables.lattice(c).state_count();
    stats.relays = problem.relays.values.size();
    stats.copies = problem.grouping.copies;
    stats.groups = problem.grouping.groups.size();
    stats.group_edges = problem.factors.edge_count();
    for (auto const& group : problem.grouping.groups) stats.labels += group.label_count();
    stats.solver = solved.stats;
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
