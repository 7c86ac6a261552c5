// SPDX-License-Identifier: BSL-1.0
// Gradients of parameters are reduced in the type of their sink, whatever stands between their maker and the cast (DECISIONS 12).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace cantle;

namespace {

/// x bf16 -> h = x w -> y = h w, one fp32 w behind one cast: the two bf16 gradients of w meet before the sink as `join` says.
struct tied {
    graph_builder b;
    value_ref x, w, first, second;

    explicit tied(std::int64_t rows = 64) {
        x = b.input("x", {rows, 128, 1024}, dtype::bfloat16);
        w = b.parameter("w", {1024, 1024});
        auto const cast = b.cast(w, dtype::bfloat16);
        auto const h = b.linear(x, cast), y = b.linear(h, cast);
        auto const dy = b.tangent("dy", b.output(y));
        b.backward();
        second = b.named("dw2", b.linear_grad_weight(dy, h, y));
        auto const dh = b.named("dh", b.linear_grad_input(dy, cast, y));
        first = b.named("dw1", b.linear_grad_weight(dh, x, h));
    }
    value_ref wide(value_ref v) { return b.cast(v, dtype::float32); }
};

planning_problem problem_of(training_graph const& g, char const* sizes) {
    auto const mesh = device_mesh::parse(sizes);
    return build_problem(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
}
sharding_plan plan_on(training_graph const& g, char const* sizes) {
    auto const mesh = device_mesh::parse(sizes);
    return plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
}
/// Names of the values that edges carry without reducing them; a relay's edge counts once more.
std::vector<std::string> held(training_graph const& g, char const* sizes) {
    std::vector<std::string> names;
    for (auto const& e : problem_of(g, sizes).edges)
        if (e.keeps_partial) names.push_back(g[e.value.node].name);
    std::sort(names.begin(), names.end());
    return names;
}
/// Values that the plan reduces, with their type.
std::vector<std::string> reductions(training_graph const& g, sharding_plan const& p) {
    std::vector<std::string> list;
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps)
            if (s.step.kind == collective_kind::reduce_scatter || s.step.kind == collective_kind::all_reduce)
                list.push_back(g[m.value.node].name + " " + std::string(to_string(g.meta(m.value).type)));
    return list;
}
using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("B20: the gradients of a tied weight are added unreduced and reduced in fp32") {
    tied t;
    t.b.gradient(t.w, t.b.named("wide", t.wide(t.b.named("sum", t.b.add(t.first, t.second)))));
    auto const g = t.b.build();
    CHECK(held(g, "8") == texts{"dw1", "dw2", "sum"});
    CHECK(reductions(g, plan_on(g, "8")) == texts{"wide float32"});
    CHECK(reductions(g, plan_on(g, "2x4")) == texts{"wide float32"});
}

TEST_CASE("views and transposes on the way to the cast keep the gradient unreduced") {
    tied t;
    auto const turned = t.b.named("turned", t.b.t(t.b.named("joined", t.b.t(t.b.named("sum", t.b.add(t.first, t.second))))));
    auto const flat = t.b.named("flat", t.b.view(turned, {1024 * 1024}));
    t.b.gradient(t.w, t.b.named("wide", t.wide(t.b.named("square", t.b.view(flat, {1024, 1024})))));
    auto const g = t.b.build();
    CHECK(held(g, "8") == texts{"dw1", "dw2", "flat", "joined", "square", "sum", "turned"});
    CHECK(reductions(g, plan_on(g, "8")) == texts{"wide float32"});
}

TEST_CASE("gradients that are cast first and added in fp32 are not reduced before their casts either") {
    tied t;
    auto const a = t.b.named("a", t.wide(t.first)), c = t.b.named("b", t.wide(t.second));
    t.b.gradient(t.w, t.b.named("sum", t.b.add(a, c)));
    auto const g = t.b.build();
    CHECK(held(g, "8") == texts{"dw1", "dw2"});
    for (auto const& r : reductions(g, plan_on(g, "8"))) CHECK(r.find("float32") != std::string::npos);
}

TEST_CASE("another reader of the bf16 gradient leaves the plan possible, and the parameter's gradient in fp32") {
    //  sum -> cast -> sink
    //     \-> relu -> probe: relu wants the sum reduced, and gets its own reduction
    tied t;
    auto const sum = t.b.named("sum", t.b.add(t.first, t.second));
    t.b.gradient(t.w, t.b.named("wide", t.wide(sum)));
    t.b.output(t.b.named("relu", t.b.relu(sum)), "probe");
    auto const g = t.b.build();
    CHECK(held(g, "8") == texts{"dw1", "dw2", "sum", "sum"});  // to the relay and from it to the cast
    auto const p = plan_on(g, "8");
    bool of_relu = false, of_sink = false;
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) {
            if (s.step.kind != collective_kind::reduce_scatter && s.step.kind != collective_kind::all_reduce) continue;
            auto const& to = m.to_relay == tensor_move::none ? g[m.user].name : "relay";
            of_relu = of_relu || to == "relu";
            of_sink = of_sink || to == "w.grad";
            CHECK((to == "relu" || g.meta(m.value).type == dtype::float32));
        }
    CHECK(of_relu);
    CHECK(of_sink);
}

TEST_CASE("what a maker of gradients reads is an activation and may be reduced in bf16; so may gradients that stay in bf16") {
    tied t;
    t.b.gradient(t.w, t.wide(t.b.add(t.first, t.second)));
    for (auto const& name : held(t.b.build(), "2x4")) CHECK((name != "dh" && name != "dy"));
    graph_builder b;
    auto const x = b.input("x", {64, 1024}, dtype::bfloat16);
    auto const w = b.parameter("w", {1024, 1024}, dtype::bfloat16);
    auto const y = b.linear(x, w);
    auto const dy = b.tangent("dy", b.output(y));
    b.backward();
    b.gradient(w, b.add(b.linear_grad_weight(dy, x, y), b.linear_grad_weight(dy, x, y)));
    CHECK(held(b.build(), "8").empty());
}
