// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>
#include <adapters/libtorch/verify.hpp>
#include <adapters/libtorch/verify_inputs.hpp>
#include <adapters/libtorch/verify_origin.hpp>
#include <adapters/libtorch/verify_rows.hpp>
#include <adapters/libtorch/verify_sizes.hpp>

#include <cantle/graph/canonical.hpp>
#include <cantle/graph/mixed_precision.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/region_op.hpp>
#include <cantle/graph/validate.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/plan/same_structure.hpp>
#include <cantle/plan/scaled_plan.hpp>
#include <cantle/plan/shrunk_mesh.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/program/runnable.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

namespace cantle::libtorch {
namespace {

using tensor_map = std::map<std::string, at::Tensor>;

std::int64_t ranks_of(verify_options const& o, device_mesh const& mesh) {
    if (!o.ranks) return shrunk_rank_counts(mesh, 8).back();
    if (*o.ranks < 1 || *o.ranks > 64)
        throw error(error_code::bad_option, "--ranks " + std::to_string(*o.ranks), "it is not within 1 to 64", "give 2 to 8, as a rule");
    return *o.ranks;
}

struct small_run {
    model_request instance;
    training_graph graph;
    sharding_plan plan;
};

sharding_plan carried_over(sharding_plan const& plan, training_graph const& graph, training_graph const& small, device_mesh const& mesh,
                           rule_registry const& rules) {
    auto p = scaled_plan(plan, graph, small, mesh);
    declare_collectives_of_regions(p, small, rules);
    return p;
}

size_needs needs_of(sharding_plan const& plan, training_graph const& g) {
    bool const grouped = std::any_of(g.nodes.begin(), g.nodes.end(), [](graph_node const& n) {
        return n.operation.name == "aten::_grouped_mm";
    });
    return {has_uneven(g, plan), grouped ? 8 : 1};  // kernels of grouped products want rows of 16 bytes: 8 of bfloat16
}

/// The first instance, from small to larger, that is the model of the graph and that the plan's layouts fit.
small_run find_instance(sharding_plan const& plan, training_graph const& graph, rule_registry const& rules, device_mesh const& mesh,
                        capture_again const& capture, std::vector<std::string>& not_taken) {
    auto const needs = needs_of(plan, graph);
    for (int level = 0;; ++level) {
        bool const last = level == last_size_level;
        small_run run{small_instance(graph.origin, mesh.device_count(), level, needs), {}, {}};
        try {
            run.graph = capture(run.instance);
            if (auto const differs = structural_difference(graph, run.graph))
                throw error(error_code::capture_failed, "small instance of " + graph.origin.model, "it is another graph: " + *differs,
                            "verify a graph in canonical form, captured by this version");
            if (largest_tensor(run.graph) > largest_tensor(graph))
                throw error(error_code::capture_failed, "small instance of " + graph.origin.model, "it is larger than the graph",
                            "capture the graph again: its origin has other sizes");
            run.plan = carried_over(plan, graph, run.graph, mesh, rules);
            refuse_what_is_no_row(run.plan, run.graph, rules);
            return run;
        } catch (error const& e) {
            bool const of_this_size = e.code() == error_code::capture_failed || e.code() == error_code::bad_option ||
                                      e.code() == error_code::bad_layout || e.code() == error_code::bad_rule ||
                                      e.code() == error_code::mesh_does_not_divide;
            auto const why = e.subject() + ": " + e.problem();
            // What a larger one fails at in the same words, no size will mend; captures through the door take seconds.
            bool const again = e.code() == error_code::capture_failed && !not_taken.empty() && not_taken.back() == why;
            if (last || again || !of_this_size) throw;
            not_taken.push_back(why);
        }
    }
}

/// Replay has the bits of eager autograd. What it cannot run, random numbers that depend on no order and regions, runs as a program for a
/// mesh of one.
tensor_map run_on_one_rank(small_run const& small, rule_registry const& rules, tensor_map const& sources, std::uint64_t seed) {
    bool const program = std::any_of(small.graph.nodes.begin(), small.graph.nodes.end(), [](graph_node const& n) {
        return is_random(n.operation) || n.operation.name == region_op_name || n.operation.name == region_backward_op_name;
    });
    if (!program) return replay(small.graph, sources);
    auto const one = scaled_plan(small.plan, small.graph, small.graph, shrunk_mesh(small.plan.mesh, 1));
    std::vector<std::string> names;
    for (auto const& n : small.graph.nodes) names.push_back(n.name);
    std::vector<rank_executor> alone;
    alone.emplace_back(ready_program(small.graph, one, rules, 0), names);
    auto const run = run_on_threads(alone, cut_inputs(small.graph, one, sources), seed);
    tensor_map results;
    for (std::size_t i = 0; i < run.outputs[0].size(); ++i)
        results[names[alone[0].program().outputs[i].node]] = run.outputs[0][i];
    return results;
}

std::vector<collective_tally> tally_of(training_graph const& g, sharding_plan const& p,
                                       std::vector<std::vector<ran_collective>> const& ran) {
    std::map<std::pair<collective_kind, std::uint32_t>, collective_tally> rows;
    auto const row = [&](collective_kind kind, std::uint32_t axes) -> collective_tally& {
        auto& r = rows[{kind, axes}];
        r.kind = kind;
        r.axes = axes;
        return r;
    };
    auto const plan_one = [&](collective_call const& c, bool by_region = false) {
        if (c.kind == collective_kind::slice) return;
        auto& r = row(c.kind, c.axes);
        r.by_region = r.by_region || by_region;
        ++r.planned;
        r.planned_bytes += c.bytes_before;
    };
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) plan_one(s.call);
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& name = g[v].operation.name;
        bool const region = name == region_op_name || name == region_backward_op_name;
        for (auto const& i : p.nodes[v].inner) plan_one(i.call, region);
    }
    for (auto const& c : ran.at(0)) {  // all ranks run the same ones: their programs were checked against each other
        std::uint32_t axes = 0;
        for (auto a : c.axes) axes |= 1u << a;
        auto& r = row(c.kind, axes);
        ++r.ran;
        r.ran_bytes += c.bytes;
    }
    std::vector<collective_tally> list;
    for (auto const& [key, r] : rows) list.push_back(r);
    return list;
}

double largest_of(at::Tensor const& t) { return t.numel() == 0 ? 0.0 : t.abs().max().to(at::kDouble).item<double>(); }

dtype coarsest_type(training_graph const& g) {
    auto coarsest = dtype::float64;
    for (auto const& n : g.nodes)
        for (auto const& t : n.outputs)
            if (is_floating_point(t.type) && element_bytes(t.type) < element_bytes(coarsest)) coarsest = t.type;
    return coarsest;
}
/// Against one rank, in the type that errors cannot hide in.
double tolerance_of(dtype t) { return t == dtype::float64 ? 1e-9 : 1e-3; }
/// The distance of 1 to the next number.
double epsilon_of(dtype t) {
    switch (t) {
        case dtype::float64: return 0x1p-52;
        case dtype::float32: return 0x1p-23;
        case dtype::float16: return 0x1p-10;
        case dtype::bfloat16: return 0x1p-7;
        default: return 0x1p-2;
    }
}
/// Ranks add in another order than one rank and round partial sums, so they may be off by more than it is; what is wrong is off by far
/// more.
constexpr double rounding_times = 4;

/// The same numbers in the finest type, on one rank.
tensor_map run_exactly(small_run const& small, rule_registry const& rules, tensor_map sources, std::uint64_t seed) {
    auto const type = finest_type(small.graph);
    small_run exact{small.instance, in_type(small.graph, type), {}};
    exact.plan = scaled_plan(small.plan, small.graph, exact.graph, small.plan.mesh);
    for (auto& [name, t] : sources)
        if (t.is_floating_point()) t = t.to(type == dtype::float64 ? at::kDouble : at::kFloat);
    return run_on_one_rank(exact, rules, sources, seed);
}

}  // namespace

training_graph capture_canonical(model_request const& request) {
    auto g = capture_model(request);
    if (request.precision == "bf16") g = mixed_precision(g);
    g = canonicalize(std::move(g));
    validate(g);
    return g;
}

bool sink_difference::matches() const {
    return std::isfinite(absolute) && std::isfinite(largest) && std::isfinite(allowed) && absolute <= allowed;
}
bool verification::numbers_match() const {
    return !sinks.empty() && std::all_of(sinks.begin(), sinks.end(), [](sink_difference const& s) { return s.matches(); });
}
bool verification::collectives_match() const {
    return std::all_of(collectives.begin(), collectives.end(),
                       [](collective_tally const& c) { return c.agrees(); });
}

verification verify(sharding_plan const& plan, training_graph const& graph, rule_registry const& rules, verify_options const& options,
                    capture_again const& capture) {
    refuse_unrunnable(graph, plan);
    refuse_undeclared_collectives(plan, graph, rules);
    refuse_odd_origin(graph);
    if (!plan.fallbacks.empty())
        throw error(error_code::bad_option, "plan", "it has ops that no rule covers: " + plan.fallbacks[0].name,
                    "add rules for them; what they compute on a rank is not known");
    if (options.tolerance && !(std::isfinite(*options.tolerance) && *options.tolerance >= 0))
        throw error(error_code::bad_option, "--tolerance", "it is below 0 or no finite number", "write it as in 1e-9");
    auto const mesh = shrunk_mesh(plan.mesh, ranks_of(options, plan.mesh));
    verification v;
    auto small = find_instance(plan, graph, rules, mesh, capture, v.not_taken);
    auto const finest = finest_type(small.graph);
    small.graph = options.as_captured ? countable(std::move(small.graph), dtype::float32) : in_type(std::move(small.graph), finest);
    small.plan = carried_over(plan, graph, small.graph, mesh, rules);

    v.instance = small.instance;
    v.full_mesh = plan.mesh;
    v.mesh = mesh;
    v.vertices = small.graph.size();
    v.type = coarsest_type(small.graph);
    v.seed = options.seed;
    bool const by_rounding = options.as_captured && !options.tolerance && v.type != finest;
    v.tolerance = options.tolerance.value_or(by_rounding ? epsilon_of(v.type) : tolerance_of(v.type));
    v.rounding_times = by_rounding ? rounding_times : 0;

    auto programs = ready_programs(small.graph, small.plan, rules);
    std::vector<std::string> names;
    for (auto const& n : small.graph.nodes) names.push_back(n.name);
    std::vector<rank_executor> ranks;
    for (auto& p : programs) ranks.emplace_back(std::move(p), names);
    auto const sources = random_sources(small.graph, options.seed);
    auto const start = std::chrono::steady_clock::now();
    auto const got = run_on_threads(ranks, cut_inputs(small.graph, small.plan, sources), options.seed);
    v.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    v.collectives = tally_of(small.graph, small.plan, got.collectives);
    auto const one = run_on_one_rank(small, rules, sources, options.seed);
    auto const want = by_rounding ? run_exactly(small, rules, sources, options.seed) : one;

    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const node = ranks[0].program().outputs[i].node;
        auto const& n = small.graph[node];
        std::vector<at::Tensor> pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, small.plan.at(small.plan.nodes[node].operands[0]), mesh, n.outputs[0].sizes);
        auto const& wanted = want.at(n.name);
        v.sinks.push_back({n.name, n.role, wanted.numel(), largest_of(wanted), largest_of(whole - wanted), 0,
                           by_rounding ? largest_of(one.at(n.name) - wanted) : 0, 0});
    }
    double scale = 0;  // of gradients
    for (auto const& s : v.sinks)
        if (s.role == node_role::gradient) scale = std::max(scale, s.largest);
    for (auto& s : v.sinks) {
        // A gradient that is zero but for rounding (of a bias before a softmax) has no digits of its own to compare.
        auto const over = std::max(s.largest, s.role == node_role::gradient ? 1e-4 * scale : 0.0);
        s.relative = s.absolute == 0 ? 0 : s.absolute / over;
        s.allowed = by_rounding ? rounding_times * (s.rounding + v.tolerance * over) : v.tolerance * over;
        if (!std::isfinite(s.absolute) || !std::isfinite(s.largest)) s.relative = std::numeric_limits<double>::infinity();
    }
    return v;
}

}  // namespace cantle::libtorch
