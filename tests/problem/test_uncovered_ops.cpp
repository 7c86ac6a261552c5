// SPDX-License-Identifier: BSL-1.0
// Ops without a rule: what is said of them, the stub that compiles, and the fallback that is never silent.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/table.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace cantle;

namespace {

tensor_meta meta(shape sizes) { return contiguous_meta(std::move(sizes), dtype::float32); }

//  x [8,16] -> gate(x, w) -> mix (twice, in two layers) -> output
training_graph graph_of_unknown_ops() {
    graph_builder b;
    auto const x = b.input("x", {8, 16});
    auto y = b.in_module("layers.0.mlp").call("mine::gate", {{"self", x}, {"other", b.parameter("w", {16})}}, {meta({8, 16})});
    for (int layer = 0; layer < 2; ++layer)
        y = b.in_module("layers." + std::to_string(layer) + ".mixer").call("mine::mix", {{"input", y}}, {meta({8, 16}), meta({8})});
    b.in_module("");
    b.output(b.call("aten::silu", {{"self", y}}));
    return b.build();
}

sharding_plan plan_on(training_graph const& g, char const* sizes, plan_options const& options = {},
                      rule_registry const& rules = standard_rules()) {
    auto const mesh = device_mesh::parse(sizes);
    return plan(g, mesh, rules, standard_cost_model(mesh, find_cluster("h100")), options);
}

error refusal(training_graph const& g, plan_options const& options = {}) {
    try {
        plan_on(g, "2", options);
    } catch (error const& e) {
        return e;
    }
    FAIL("no error");
    return error(error_code::bad_option, "", "", "");
}

/// What the stub of mine::gate says, compiled. The file holds exactly what rule_stub gives.
void add_stub(rule_registry& rules) {
#include "stub_of_gate.inc"
}

}  // namespace

TEST_CASE("all ops without a rule are named at once, with counts, shapes and modules") {
    auto const e = refusal(graph_of_unknown_ops());
    CHECK(e.code() == error_code::op_without_rule);
    CHECK(e.subject() == "op mine::gate, mine::mix");
    CHECK(e.problem() ==
          "no rule covers them: mine::gate: 1 time, on (self [8, 16], other [16] -> [8, 16]), in layers.*.mlp; "
          "mine::mix: 2 times, on (input [8, 16] -> [8, 16], [8]), in layers.*.mixer");
}

TEST_CASE("it is said before anything else: a wrong pin waits") {
    plan_options o;
    o.boundary.pins = {{"nothing", "S0"}};
    o.boundary.inputs = "S7";
    CHECK(refusal(graph_of_unknown_ops(), o).code() == error_code::op_without_rule);
}

TEST_CASE("the remedy holds a rule to fill in for each op, on one line, and it compiles as it stands") {
    auto const e = refusal(graph_of_unknown_ops());
    CHECK(e.remedy().find('\n') == std::string::npos);
    CHECK(e.remedy().find("//") == std::string::npos);  // a comment to the end of a line would eat the next stub
    char const* const source = std::getenv("CANTLE_SOURCE_DIR");
    REQUIRE(source);
    std::ifstream file(std::string(source) + "/tests/problem/stub_of_gate.inc");
    std::stringstream text;
    text << file.rdbuf();
    std::string stub = text.str();
    while (!stub.empty() && stub.back() == '\n') stub.pop_back();
    REQUIRE(!stub.empty());
    CHECK(uncovered_ops(graph_of_unknown_ops(), standard_rules())[0].stub == stub);
    CHECK(e.remedy().find(stub) != std::string::npos);
    CHECK(e.remedy().find("rules.add(\"mine::mix\"") != std::string::npos);

    auto rules = standard_rules();
    add_stub(rules);
    auto const left = uncovered_ops(graph_of_unknown_ops(), rules);
    REQUIRE(left.size() == 1);
    CHECK(left[0].name == "mine::mix");
}

TEST_CASE("a list of many shapes and modules is cut short and says how many more there are") {
    graph_builder b;
    for (int i = 1; i <= 7; ++i) {
        auto const x = b.input("x" + std::to_string(i), {i});
        b.in_module("m" + std::to_string(i)).output(b.call("mine::op", {{"self", x}}, {meta({i})}));
    }
    auto const e = refusal(b.build());
    CHECK(e.problem().find("7 times, on (self [1] -> [1]) (self [2] -> [2]) (self [3] -> [3]) (self [4] -> [4] and 3 more), in m1, m2, m3, "
                           "m4 and 3 more") != std::string::npos);
}

TEST_CASE("names that would break out of a stub's string or comment do not") {
    op const o{"mine::\"*/\\", {{"a*/", operand_slot{0}}}};
    auto const stub = rule_stub(o, {meta({2})}, {});
    CHECK(stub.find("a__") == std::string::npos);  // only * is replaced
    CHECK(stub.find("a_/ [2]") != std::string::npos);
    CHECK(stub.find("mine::__/_\"") != std::string::npos);
}

TEST_CASE("replicate as a fallback is asked for, and plan, JSON and report say for which ops") {
    auto const g = graph_of_unknown_ops();
    plan_options o;
    o.fallback = rule_fallback::replicate;
    auto const p = plan_on(g, "2x2", o);
    REQUIRE(p.fallbacks == std::vector<fallback_op>{{"mine::gate", 1}, {"mine::mix", 2}});
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].operation.name.rfind("mine::", 0) == 0) {
            for (auto l : p.nodes[v].operands) CHECK(p.at(l).is_replicated());
            for (auto l : p.nodes[v].outputs) CHECK(p.at(l).is_replicated());
        }
    auto const says = [&](std::string const& text) {
        return std::find(p.constraints.begin(), p.constraints.end(), text) != p.constraints.end();
    };
    CHECK(says("fallback replicate: mine::gate, 1 time, whole on every rank, as no rule covers it"));
    CHECK(says("fallback replicate: mine::mix, 2 times, whole on every rank, as no rule covers it"));
    auto const text = plan_to_json(p, &g);
    CHECK(text.find("\"fallback\":[\n[\"mine::gate\",1],\n[\"mine::mix\",2]]") != std::string::npos);
    auto const again = plan_from_json(text, "plan");
    CHECK(again.fallbacks == p.fallbacks);
    CHECK(plan_to_json(again, &g) == text);
    run_report report;
    report.plan = &p;
    report.graph = &g;
    CHECK(report_text(report).find("fallback replicate: mine::gate, 1 time") != std::string::npos);
    CHECK(report_json(report).find("\"op\": \"mine::mix\"") != std::string::npos);
}

TEST_CASE("the fallback changes nothing where rules cover all ops, but is part of the options' hash") {
    graph_builder b;
    b.output(b.call("aten::silu", {{"self", b.input("x", {8, 16})}}));
    auto const g = b.build();
    plan_options o;
    auto const plain = plan_on(g, "2", o);
    o.fallback = rule_fallback::replicate;
    auto const with = plan_on(g, "2", o);
    CHECK(with.fallbacks.empty());
    CHECK(with.objective == plain.objective);
    CHECK(with.constraints == plain.constraints);
    CHECK_FALSE(with.made_from.options == plain.made_from.options);
    CHECK(with.made_from.rules == plain.made_from.rules);
    CHECK(plan_to_json(plain).find("fallback") == std::string::npos);
}

TEST_CASE("a plan file whose fallback is no list of op and count is refused") {
    plan_options o;
    o.fallback = rule_fallback::replicate;
    auto const good = plan_to_json(plan_on(graph_of_unknown_ops(), "2", o));
    for (auto const* bad : {"[\"mine::gate\",0]", "[\"mine::gate\"]", "{}", "[1,1]", "[\"mine::gate\",1.5]", "3"}) {
        auto text = good;
        auto const at = text.find("[\"mine::gate\",1]");
        REQUIRE(at != std::string::npos);
        text.replace(at, std::string("[\"mine::gate\",1]").size(), bad);
        CHECK_THROWS_AS(plan_from_json(text, "plan"), error);
    }
}

//  [10, 6] on 4 ranks: only uneven shards cut the batch
TEST_CASE("uneven shards are an option: a batch that four ranks do not divide is an error without it and cut with it") {
    graph_builder b;
    auto const x = b.input("x", {10, 512});
    auto const w = b.parameter("w", {1030, 512});
    auto const y = b.linear(x, w);
    b.loss(b.call("aten::sum", {{"self", y}, {"dtype", none}}));
    b.backward();
    auto const grad = b.call("aten::expand", {{"self", b.ones({})}, {"size", shape{10, 1030}}, {"implicit", false}});
    b.gradient(w, b.linear_grad_weight(grad, x, y));
    auto const g = b.build();
    plan_options o;
    try {
        plan_on(g, "4", o);
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::mesh_does_not_divide);
    }
    o.uneven = true;
    auto const mesh = device_mesh::parse("4");
    auto const p = plan_on(g, "4", o);
    CHECK(p.at(p.nodes[0].outputs[0]).text(mesh) == "S0");
    CHECK(p.cost.total() == doctest::Approx(p.objective).epsilon(1e-9));
    CHECK(std::find(p.constraints.begin(), p.constraints.end(), "shards: uneven ones allowed") != p.constraints.end());
    CHECK(p.memory.parameters_global == 1030 * 512 * 4);
    CHECK(p.memory.parameters_local == 1030 * 128 * 4);  // the even cut of 512 is no worse than the uneven one of 1030
    auto const text = plan_to_json(p, &g);
    CHECK(plan_to_json(plan_from_json(text, "plan"), &g) == text);
}

TEST_CASE("fully sharded parameters take an uneven layout only where it leaves less on the largest rank") {
    auto const mesh = device_mesh::parse("8x8");
    auto const uneven = parameter_layouts({280}, mesh, parameter_storage::fully_sharded, 0, shard_policy::uneven);
    REQUIRE(uneven.size() == 1);
    CHECK(uneven[0].text(mesh) == "S0,S0");
    CHECK(uneven[0].local_shape({280}) == shape{5});
    auto const even = parameter_layouts({256, 3}, mesh, parameter_storage::fully_sharded, 0, shard_policy::uneven);
    CHECK(even == parameter_layouts({256, 3}, mesh, parameter_storage::fully_sharded, 0));
}
