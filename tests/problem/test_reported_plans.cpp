// SPDX-License-Identifier: BSL-1.0
// Reported faults that show in whole plans only: errors at planning time, groups, ties, joint decisions, casts, seeds.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {
sharding_plan plan_on(training_graph const& g, char const* sizes, plan_options const& options = {}) {
    auto const mesh = device_mesh::parse(sizes);
    return plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options);
}
planning_problem problem_of(training_graph const& g, char const* sizes) {
    auto const mesh = device_mesh::parse(sizes);
    return build_problem(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
}
error refusal(training_graph const& g, char const* sizes, plan_options const& options) {
    try {
        plan_on(g, sizes, options);
    } catch (error const& e) {
        return e;
    }
    return error(error_code::bad_option, "nothing", "was refused", "");
}
bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }
bool reduces(collective_kind k) { return k == collective_kind::reduce_scatter || k == collective_kind::all_reduce; }

/// `layers` dense layers, forward and backward. x [rows, width].
training_graph dense(int layers, std::int64_t rows, std::int64_t width) {
    graph_builder b;
    auto h = b.input("x", {rows, width}, dtype::bfloat16);
    std::vector<value_ref> w, in, y;
    for (int i = 0; i < layers; ++i) {
        b.in_module("layers." + std::to_string(i));
        w.push_back(b.parameter("layers." + std::to_string(i) + ".weight", {width, width}, dtype::bfloat16));
        in.push_back(h);
        y.push_back(h = b.named("y" + std::to_string(i), b.linear(h, w.back())));
    }
    b.in_module("");
    b.loss(b.call("aten::sum", {{"self", h}, {"dtype", none}}));
    b.backward();
    auto g = b.call("aten::expand", {{"self", b.ones({}, dtype::bfloat16)}, {"size", shape{rows, width}}, {"implicit", false}});
    for (int k = layers; k-- > 0;) {
        auto const i = static_cast<std::size_t>(k);
        b.in_module("layers." + std::to_string(k));
        b.gradient(w[i], b.linear_grad_weight(g, in[i], y[i]));
        if (k > 0) g = b.linear_grad_input(g, w[i], y[i]);
    }
    return b.build();
}
}  // namespace

TEST_CASE("A7: an uneven view is refused while planning, naming tensor, dim and mesh") {
    graph_builder b;
    auto const x = b.input("x", {6, 256});
    b.output(b.named("flat", b.view(x, {1536})), "out");
    auto const g = b.build();
    plan_options o;
    o.boundary.inputs = "S0";
    auto const e = refusal(g, "4", o);
    CHECK(e.code() == error_code::mesh_does_not_divide);
    CHECK(says(e.subject(), "'x' [6"));
    CHECK(says(e.problem(), "S0"));
    CHECK(says(e.problem(), "mesh 4"));
    // [12,8] as [16,6]: no strategy of the view leaves columns cut.
    graph_builder c;
    c.output(c.named("flat", c.view(c.input("x", {12, 8}), {16, 6})), "out");
    o.boundary.inputs = "free";
    o.boundary.pins = {{"flat", "S1"}};
    auto const f = refusal(c.build(), "4", o);
    CHECK(f.code() == error_code::unsatisfiable_constraint);
    CHECK(says(f.subject(), "'flat'"));
    CHECK(says(f.remedy(), "S0"));
}

TEST_CASE("A37, A38, A55: ops that differ by a static argument alone have classes, and decisions, of their own") {
    graph_builder b;
    auto const x = b.input("x", {4, 4});
    std::vector<vertex> v;
    for (auto const& [dim, start] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 4}, {0, 0}}) {
        b.in_module("layers." + std::to_string(v.size()));
        auto const s = b.call("aten::slice_backward",
                              {{"grad_output", x}, {"input_sizes", shape{8, 4}}, {"dim", dim}, {"start", start}, {"end", start + 4},
                               {"step", std::int64_t{1}}},
                              {contiguous_meta({8, 4}, dtype::float32)});
        v.push_back(s.node);
        b.output(s);
    }
    auto const p = problem_of(b.build(), "2");
    auto const& c = p.classes.class_of;
    CHECK(c[v[0]] != c[v[1]]);
    CHECK(c[v[0]] == c[v[2]]);
    CHECK(p.grouping.group_of[v[0]] != p.grouping.group_of[v[1]]);
}

TEST_CASE("A61: parameters and outputs of 32 rows are never cut by 32 x 8 in that dim") {
    auto const mesh = device_mesh::parse("32x8");
    auto const layouts = parameter_layouts({32, 4096, 4096}, mesh, parameter_storage::fully_sharded, 0);
    CHECK(layouts.size() > 0);
    for (auto const& l : layouts) {
        CHECK(l.cut_count() == 256);
        CHECK(l.fits({32, 4096, 4096}));
        CHECK_FALSE((l.on(0) == placement::shard(0) && l.on(1) == placement::shard(0)));
    }
    for (auto policy : {shard_policy::even, shard_policy::uneven})
        for (auto const& l : cut_layouts({32, 4096}, mesh, ~0u, true, policy))
            CHECK_FALSE((l.on(0) == placement::shard(0) && l.on(1) == placement::shard(0)));
}

TEST_CASE("B4, B5: a decision is shared by nodes of one op and phase, and every node is in one group") {
    graph_builder b;
    auto h = b.input("x", {8, 16, 64}, dtype::float32);
    for (int i = 0; i < 4; ++i) {
        //  GPT-J: two branches off one norm; rsqrt and neg of equal shape beside each other
        b.in_module("layers." + std::to_string(i));
        auto const n = b.call("aten::tanh", {{"self", h}});
        auto const left = b.call("aten::rsqrt", {{"self", n}}), right = b.call("aten::neg", {{"self", n}});
        h = b.add(b.add(left, right), h);
    }
    b.output(h);
    for (auto const& g : {b.build(), residual_mlp(4)}) {
        auto const p = problem_of(g, "2x4");
        std::vector<int> claimed(p.grouping.group_of.size());
        for (auto const& group : p.grouping.groups)
            for (auto m : group.members) {
                ++claimed[m];
                if (m >= g.size() || g[m].role != node_role::computation) continue;
                auto const& first = g[group.members.front()];
                CHECK(g[m].operation.name == first.operation.name);
                CHECK(g[m].in_phase == first.in_phase);
            }
        CHECK(std::all_of(claimed.begin(), claimed.end(), [](int n) { return n == 1; }));
    }
}

TEST_CASE("B2: a pinned parameter leaves the demand on the others as it was, in any order of pins; without the pin it is back") {
    auto const g = residual_mlp(2);
    plan_options none_pinned, one, other;
    one.boundary.pins = {{"layers.0.w1.weight", "R,R"}, {"layers.1.w2.weight", "R,R"}};
    other.boundary.pins = {one.boundary.pins[1], one.boundary.pins[0]};
    auto const a = plan_on(g, "2x4", one), b = plan_on(g, "2x4", other), before = plan_on(g, "2x4", none_pinned);
    CHECK(a.objective == b.objective);
    CHECK(plan_on(g, "2x4", none_pinned).objective == before.objective);
    for (vertex v = 0; v < g.size(); ++v) {
        if (g[v].role != node_role::parameter) continue;
        bool const pinned = g[v].name == "layers.0.w1.weight" || g[v].name == "layers.1.w2.weight";
        CHECK(a.at(a.nodes[v].outputs[0]).cut_count() == (pinned ? 1 : 8));
        CHECK(before.at(before.nodes[v].outputs[0]).cut_count() == 8);
    }
}

//  x (S0,S0) -> view -> neg -> view -> (R,R): one gather, wherever it stands
TEST_CASE("B7: of equal plans the one with a single redistribution is taken") {
    graph_builder b;
    auto const x = b.input("x", {64, 64});
    b.output(b.named("last", b.view(b.view(b.view(x, {64, 8, 8}), {64, 64}), {4096})), "out");
    plan_options o;
    o.boundary.inputs = "S0,S0";
    o.boundary.outputs = "R,R";
    auto const p = plan_on(b.build(), "2x2", o);
    REQUIRE(p.moves.size() == 1);
    CHECK(p.paths[p.moves[0].path].steps.size() == 1);
    CHECK(p.cost.tie_break == 1.0);
}

TEST_CASE("B8, B17: no plan is dearer than data parallel, FSDP, Megatron or batch on both axes under the planner's own model") {
    for (auto const& [layers, rows, width, mesh] :
         {std::tuple{8, std::int64_t{16384}, std::int64_t{2304}, "4"}, {2, std::int64_t{256}, std::int64_t{8192}, "4x8"}}) {
        auto const g = dense(layers, rows, width);
        bool const flat = std::string(mesh) == "4";
        plan_options all;
        all.boundary.inputs = "free";
        all.boundary.parameters = parameter_storage::free;
        all.clustering = false;  // equal layers that share a decision cannot alternate columns and rows
        auto const best = plan_on(g, mesh, all);
        CHECK(best.gap() <= 1e-6);
        auto const not_dearer_than = [&](plan_options const& seed, char const* what) {
            auto const p = plan_on(g, mesh, seed);
            CHECK_MESSAGE(best.objective <= p.objective * (1 + 1e-9), what, " ", mesh);
            return p.objective;
        };
        plan_options dp = all, fsdp = all, megatron = all;
        dp.boundary.inputs = fsdp.boundary.inputs = flat ? "S0" : "S0,S0";
        dp.boundary.parameters = parameter_storage::replicated;
        fsdp.boundary.parameters = parameter_storage::fully_sharded;
        dp.boundary.pins = fsdp.boundary.pins = {{"y*", flat ? "S0" : "S0,S0"}};
        for (int i = 0; i < layers; ++i)  // columns, then rows
            megatron.boundary.pins.push_back(
                {"layers." + std::to_string(i) + ".weight", i % 2 ? (flat ? "S1" : "R,S1") : (flat ? "S0" : "R,S0")});
        megatron.boundary.inputs = flat ? "R" : "S0,R";
        not_dearer_than(dp, "data parallel");
        not_dearer_than(fsdp, "FSDP");
        auto const split = not_dearer_than(megatron, "Megatron");
        // Few tokens, wide layers: batch on both axes is what two separate decisions would give, and it is worse.
        if (!flat) CHECK(std::min(split, best.objective) < not_dearer_than(fsdp, "FSDP"));
    }
}

TEST_CASE("B11: an axis of one rank changes no plan, up to 128 x 1") {
    auto const g = dense(2, 256, 512);
    auto const want = plan_on(g, "128").objective;
    CHECK(plan_on(g, "128x1").objective == doctest::Approx(want));
    CHECK(plan_on(g, "1x128x1", [] { plan_options o; o.boundary.inputs = "R,S0,R"; return o; }()).objective == doctest::Approx(want));
}

TEST_CASE("B20: a [4096,4096] fp32 weight on 8x8 is gathered as bf16, its gradient reduced once, as fp32") {
    graph_builder b;
    auto const x = b.input("x", {512, 256, 4096}, dtype::bfloat16);
    auto const w = b.parameter("w", {4096, 4096});
    auto const cast = b.cast(w, dtype::bfloat16);
    auto const y = b.named("y", b.linear(x, cast));
    b.loss(b.call("aten::sum", {{"self", y}, {"dtype", none}}));
    b.backward();
    auto const dy = b.call("aten::expand", {{"self", b.ones({}, dtype::bfloat16)}, {"size", shape{512, 256, 4096}}, {"implicit", false}});
    b.gradient(w, b.cast(b.linear_grad_weight(dy, x, y), dtype::float32));
    auto const g = b.build();
    plan_options o;
    o.boundary.inputs = "S0,S0";
    o.boundary.pins = {{"y", "S0,S0"}};
    auto const p = plan_on(g, "8x8", o);
    std::size_t gathers = 0, sums = 0;
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) {
            auto const& of = g.meta(m.value);
            if (s.step.kind == collective_kind::all_gather) {
                CHECK(of.type == dtype::bfloat16);
                ++gathers;
            }
            if (reduces(s.step.kind) && of.rank() == 2) {
                CHECK(of.type == dtype::float32);
                CHECK(s.step.kind == collective_kind::reduce_scatter);
                ++sums;
            }
        }
    CHECK(gathers >= 1);
    CHECK(sums == 1);
}

TEST_CASE("B22: a parameter with two names is one decision, pinned by either") {
    graph_builder b;
    auto const x = b.input("x", {64, 512}, dtype::bfloat16);
    auto const w = b.parameter("wte.weight", {512, 512}, dtype::bfloat16);
    b.output(b.linear(b.linear(x, w), w), "out");
    auto g = b.build();
    g.nodes[w.node].also_named = {"lm_head.weight"};
    for (auto name : {"wte.weight", "lm_head.weight"}) {
        plan_options o;
        o.boundary.pins = {{name, "S1"}};
        auto const p = plan_on(g, "4", o);
        CHECK(p.at(p.nodes[w.node].outputs[0]).text(device_mesh::parse("4")) == "S1");
        CHECK(p.memory.parameters_global == 512 * 512 * 2);
    }
}
