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
#include <cantle/problem/budget.hpp>
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
    std::vector<budget> budgets = {};  ///< sums that must not exceed a limit: bytes of parameters and others (docs/budgets.md)
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
    std::vector<std::string> list;
    list.push_back("inputs and targets: " + (b.inputs.empty() ? default_input_layout(mesh).text(mesh) + " (default)" : b.inputs));
    list.push_back("outputs: " + (b.outputs.empty() ? "free (default)" : b.outputs));
    list.push_back("loss: Replicate");
    std::string parameters =
        "parameters: " + std::string(to_string(b.parameters)) + (b.parameters == parameter_storage::fully_sharded ? " (default)" : "");
    for (std::size_t i = 0; i < b.replica_axes.size(); ++i) parameters += (i ? ", " : "; replica axes: ") + b.replica_axes[i];
    list.push_back(parameters);
    list.push_back("gradients lie as their parameter or input, tangents as their output");
    for (auto const& p : b.pins) list.push_back("pin: " + p.tensor + "=" + p.layout);
    if (o.uneven) list.push_back("shards: uneven ones allowed");
    for (auto const& b : o.budgets) list.push_back(budget_text(b));
    return list;
}

inline digest options_hash(plan_options const& o, std::vector<std::string> const& constraints) {
    stable_hasher h;
    h.add("cantle-options-1").add(o.clustering).add(o.tie_break).add(o.relative_gap).add(o.max_sweeps).add(constraints);
    if (o.uneven || o.fallback != rule_fallback::none) h.add(o.uneven).add(o.fallback);
    for (auto const& b : o.budgets) h.add("budget").add(b.name).add(b.limit).add(b.factor);
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
    check_budgets(o.budgets);
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

/// Turns labels into a plan: layouts, paths and cost parts.
template <CostModel Cost>
class plan_extractor {
public:
    plan_extractor(planning_problem const& p, training_graph const& g, std::vector<mrf::label> const& labels, Cost const& cost)
        : p_(p), g_(g), labels_(labels), cost_(cost) {}
    sharding_plan run() {
        plan_.mesh = p_.mesh;
        place_nodes();
        for (std::uint32_t i = 0; i < p_.relays.values.size(); ++i)
            plan_.relays.push_back({p_.relays.values[i], plan_layout_of(layout_of(static_cast<variable_index>(g_.size()) + i, 0))});
        add_moves();
        return std::move(plan_);
    }

private:
    planning_problem const& p_;
    training_graph const& g_;
    std::vector<mrf::label> const& labels_;
    Cost const& cost_;
    sharding_plan plan_;
    std::map<layout_id, plan_layout> plan_layouts_;
    std::map<std::tuple<tensor_class_id, layout_id, layout_id>, std::uint32_t> paths_;

    layout_id layout_of(variable_index v, std::uint32_t port) const { return p_.layout_at(v, port, labels_[p_.grouping.group_of[v]]); }
    plan_layout plan_layout_of(layout_id l) {
        auto const [at, fresh] = plan_layouts_.try_emplace(l, static_cast<plan_layout>(plan_.layouts.size()));
        if (fresh) plan_.layouts.push_back(p_.layouts[l]);
        return at->second;
    }
    /// On the largest rank.
    std::int64_t local_bytes(tensor_meta const& t, layout_id l) const {
        return t.defined ? element_count(p_.layouts[l].local_shape(t.sizes)) * element_bytes(t.type) : 0;
    }
    void place_nodes() {
        for (vertex v = 0; v < g_.size(); ++v) {
            auto const& n = g_[v];
            node_placement out;
            if (n.role != node_role::computation) {
                auto const l = plan_layout_of(layout_of(v, 0));
                out.operands.assign(n.operands.size(), l);
                out.outputs.assign(n.outputs.size(), l);
            } else {
                auto const& group = p_.grouping.groups[p_.grouping.group_of[v]];
                auto const& c = p_.classes.classes[group.op_class];
                auto const s = group.strategies[labels_[p_.grouping.group_of[v]]];
                for (std::uint32_t i = 0; i < n.operands.size(); ++i) out.operands.push_back(plan_layout_of(c.strategies.operand(s, i)));
                for (std::uint32_t i = 0; i < n.outputs.size(); ++i) out.outputs.push_back(plan_layout_of(c.strategies.output(s, i)));
                out.compute = c.compute[s];
                for (auto const& [axis, what] : c.strategies.inner[s]) {
                    auto const& meta = what.on_output ? n.outputs[what.index] : g_.meta(n.operands[what.index]);
                    auto const l = what.on_output ? c.strategies.output(s, what.index) : c.strategies.operand(s, what.index);
                    std::int64_t const bytes = what.message(local_bytes(meta, l));
                    collective_call const call{what.kind, 1u << axis, bytes, bytes, 0, what.reduce};
                    out.inner.push_back({call, what.on_output, what.index, cost_.collective(call)});
                    plan_.cost.inner += out.inner.back().cost;
                }
                (n.in_phase == phase::forward ? plan_.cost.forward_compute : plan_.cost.backward_compute) += out.compute;
            }
            if (n.role == node_role::parameter) {
                plan_.memory.parameters_global += n.outputs[0].size_in_bytes().count;
                plan_.memory.parameters_local += local_bytes(n.outputs[0], layout_of(v, 0));
            }
            plan_.nodes.push_back(std::move(out));
        }
    }
    void add_moves() {
        auto const first_relay = static_cast<variable_index>(g_.size());
        for (auto const& e : p_.edges) {
            auto const from = layout_of(e.from, e.from_port), to = layout_of(e.to, e.to_port);
            if (from == to) continue;
            auto const [at, fresh] = paths_.try_emplace({e.tensor_class, from, to}, static_cast<std::uint32_t>(plan_.paths.size()));
            if (fresh) {
                redistribution_path path{plan_layout_of(from), plan_layout_of(to),
                                         p_.tables.lattice(e.tensor_class).path(p_.layouts[from], p_.layouts[to]), 0};
                for (auto const& s : path.steps) path.cost += s.cost;
                plan_.paths.push_back(std::move(path));
            }
            for (auto const& s : plan_.paths[at->second].steps) plan_.cost.moves[static_cast<std::size_t>(s.step.kind)] += s.cost;
            plan_.cost.tie_break += p_.options.tie_break;
            tensor_move m;
            m.value = e.value;
            m.path = at->second;
            if (e.from >= first_relay) m.from_relay = e.from - first_relay;
            if (e.to >= first_relay) m.to_relay = e.to - first_relay;
            else {
                m.user = e.to;
                m.operand = g_[e.to].role == node_role::computation ? e.to_port : 0;
            }
            plan_.moves.push_back(m);
        }
    }
};

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
    mrf::solve_options const solving{.relative_gap = options.relative_gap, .max_sweeps = options.max_sweeps};
    auto const within = options.budgets.empty() ? budgeted_solution{mrf::solve(problem.factors, solving, limits), {}}
                                                : solve_within(problem, g, options.budgets, solving, limits);
    auto const& solved = within.solved;
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
    result.budgets = within.uses;
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
