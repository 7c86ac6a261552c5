// SPDX-License-Identifier: BSL-1.0
#pragma once
// The report of a plan for machines, "cantle-report" version 1. docs/cli.md lists the keys. Unlike a plan it holds times and memory of the
// run, so two runs differ in "seconds" and "peak_bytes"; all else has the same bytes.
#include <cantle/report/collectives.hpp>
#include <cantle/report/patterns.hpp>
#include <cantle/report/projections.hpp>
#include <cantle/report/run_report.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace cantle {

namespace detail {

using report_object = nlohmann::ordered_json;

inline report_object cost_object(plan_cost const& c) {
    report_object j{{"forward_compute", c.forward_compute}, {"backward_compute", c.backward_compute}};
    for (std::size_t k = 0; k < c.moves.size(); ++k) j[std::string(to_string(static_cast<collective_kind>(k)))] = c.moves[k];
    j["inner"] = c.inner;
    j["tie_break"] = c.tie_break;
    j["total"] = c.total();
    return j;
}

inline report_object projection_objects(plan_view const& view) {
    auto const& plan = view.plan();
    auto const text = [&](plan_layout l) { return plan.at(l).text(plan.mesh); };
    auto list = report_object::array();
    for (auto const& role : find_projections(view))
        for (auto const& [p, count] : role.variants) {
            auto const& l = p.layouts;
            report_object j{{"role", role.name}, {"copies", count}, {"example", view.graph()[p.forward].name}};
            j["forward"] = {{"x_from", text(l.x_from)}, {"x_kept", text(l.x_kept)}, {"x", text(l.x)}, {"weight_stored", text(l.stored)},
                            {"weight_kept", text(l.weight_kept)}, {"weight", text(l.used)}, {"y", text(l.y)}, {"y_to", text(l.y_to)}};
            if (auto const& b = l.to_input)
                j["backward_input"] = {{"grad_y", text(b->grad_y)},
                                       {"weight", text(b->weight)},
                                       {"grad_x", text(b->grad_x)},
                                       {"grad_x_to", text(b->grad_x_to)}};
            if (auto const& b = l.to_weight)
                j["backward_weight"] = {{"grad_y", text(b->grad_y)},
                                        {"x", text(b->x)},
                                        {"grad_weight", text(b->grad_weight)},
                                        {"grad_weight_stored", text(b->stored)}};
            report_object patterns = report_object::object();
            for (std::size_t a = 0; a < plan.mesh.dims(); ++a) {
                auto const q = pattern_on(view, p, a);
                patterns[plan.mesh.name(a)] = {{"name", q.name}, {"because", q.detail}};
            }
            j["patterns"] = std::move(patterns);
            list.push_back(std::move(j));
        }
    return list;
}

inline report_object collective_objects(sharding_plan const& plan, plan_view const* view) {
    auto list = report_object::array();
    for (auto const& r : sum_collectives(plan, view)) {
        report_object j{{"kind", to_string(r.kind)}};
        auto axes = report_object::array();
        for (std::size_t a = 0; a < plan.mesh.dims(); ++a)
            if (r.axes >> a & 1) axes.push_back(plan.mesh.name(a));
        j["axes"] = std::move(axes);
        j["what"] = r.what ? report_object(to_string(*r.what)) : report_object();
        j["count"] = r.count;
        j["bytes"] = r.bytes;
        j["microseconds"] = r.cost;
        list.push_back(std::move(j));
    }
    return list;
}

inline report_object run_objects(run_report const& run) {
    report_object j;
    report_object seconds = report_object::object();
    for (auto const& [stage, s] : run.seconds) seconds[stage] = s;
    seconds["total"] = run.total_seconds();
    j["seconds"] = std::move(seconds);
    j["peak_bytes"] = run.peak_bytes;
    if (auto const* st = run.statistics) {
        j["counts"] = {{"vertices", st->vertices},
                       {"op_classes", st->op_classes},
                       {"strategies", st->strategies},
                       {"tensor_classes", st->tensor_classes},
                       {"lattice_states", st->lattice_states},
                       {"relays", st->relays},
                       {"copies", st->copies},
                       {"groups", st->groups},
                       {"group_edges", st->group_edges},
                       {"labels", st->labels},
                       {"reduced_variables", st->solver.variables},
                       {"reduced_edges", st->solver.edges},
                       {"sweeps", st->solver.sweeps},
                       {"exact_elimination", st->solver.exact_elimination}};
        if (auto const& s = st->screening; s.ran)
            j["screening"] = {{"sweeps", s.sweeps},
                              {"small_problems", s.small_problems},
                              {"labels", s.labels},
                              {"labels_left", s.labels_left}};
        auto const& p = st->polish;
        if (p.ran)
            j["polish"] = {{"clustered_objective", p.clustered_objective},
                           {"clustered_bound", p.clustered_bound},
                           {"clustered_status", to_string(p.clustered_status)},
                           {"groups", p.groups},
                           {"group_edges", p.group_edges},
                           {"sweeps", p.solver.sweeps},
                           {"exact_elimination", p.solver.exact_elimination}};
        else if (!p.left_out.empty()) j["polish"] = {{"left_out", p.left_out}};
    }
    return j;
}

}  // namespace detail

/// The report as JSON text, indented, ending in a newline.
inline std::string report_json(run_report const& run) {
    using detail::report_object;
    auto const& plan = *run.plan;
    std::optional<plan_view> view;
    if (run.graph) view.emplace(plan, *run.graph);

    report_object j{{"format", "cantle-report"}, {"version", 1}, {"objective", plan.objective}, {"bound", plan.bound}, {"gap", plan.gap()},
                    {"status", to_string(plan.status)}, {"bounded_problem", plan.bounded_problem}};
    j.update(detail::run_objects(run));
    j["cost"] = detail::cost_object(plan.cost);
    auto mesh = report_object::array();
    for (auto const& a : plan.mesh.axes()) mesh.push_back({{"name", a.name}, {"size", a.size}});
    j["mesh"] = std::move(mesh);
    if (run.machine) j["cluster"] = run.machine->name;
    if (run.graph) {
        auto const& o = run.graph->origin;
        report_object config = report_object::object();
        for (auto const& [key, value] : o.config) config[key] = value;
        j["origin"] = {{"model", o.model}, {"recipe", o.recipe},     {"precision", o.precision},
                       {"batch", o.batch}, {"sequence", o.sequence}, {"config", config}};
    }
    j["constraints"] = plan.constraints;
    if (!plan.budgets.empty()) {
        auto budgets = report_object::array();
        for (auto const& b : plan.budgets)
            budgets.push_back({{"name", b.name}, {"unit", b.in_bytes ? "bytes" : ""}, {"limit", b.limit}, {"use", b.use},
                               {"multiplier", b.multiplier}});
        j["budgets"] = std::move(budgets);
    }
    auto fallback = report_object::array();
    for (auto const& f : plan.fallbacks) fallback.push_back({{"op", f.name}, {"count", f.count}});
    j["fallback"] = std::move(fallback);
    report_object options = report_object::object();
    for (auto const& o : run.options) options[o.name] = {{"value", o.value}, {"default", o.is_default}};
    j["options"] = std::move(options);
    if (view) j["projections"] = detail::projection_objects(*view);
    j["collectives"] = detail::collective_objects(plan, view ? &*view : nullptr);
    j["memory"] = {{"parameters_global", plan.memory.parameters_global}, {"parameters_local", plan.memory.parameters_local}};
    j["hashes"] = {{"graph", plan.made_from.graph.hex()}, {"rules", plan.made_from.rules.hex()}, {"cost", plan.made_from.cost.hex()},
                   {"options", plan.made_from.options.hex()}};
    return j.dump(2, ' ', false, report_object::error_handler_t::replace) + "\n";
}

}  // namespace cantle
