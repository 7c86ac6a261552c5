// SPDX-License-Identifier: BSL-1.0
// The planner as a whole, on graphs of a few nodes.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {

sharding_plan plan_on(training_graph const& g, char const* sizes, plan_options const& options = {}, planning_statistics* stats = nullptr) {
    auto const mesh = device_mesh::parse(sizes);
    return plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options, {}, stats);
}

error_code code_of(training_graph const& g, char const* sizes, plan_options const& options = {}) {
    try {
        plan_on(g, sizes, options);
    } catch (error const& e) {
        INFO(e.what());
        CHECK(!e.subject().empty());
        CHECK(!e.remedy().empty());
        return e.code();
    }
    FAIL("no error");
    return error_code::bad_graph;
}

vertex find(training_graph const& g, std::string const& name) {
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].name == name) return v;
    FAIL("no node " << name);
    return 0;
}

}  // namespace

TEST_CASE("the parts of the objective add up to it, and no move is priced that is not in the plan") {
    auto const g = residual_mlp(3);
    for (auto const* mesh : {"8", "4x8", "2x2x2", "1x4", "3"}) {
        INFO(mesh);
        plan_options options;
        if (std::string(mesh) == "3") options.boundary.inputs = "free";
        auto const p = plan_on(g, mesh, options);
        CHECK(p.cost.total() == doctest::Approx(p.objective).epsilon(1e-9));
        double moves = 0;
        for (auto const& m : p.moves) {
            auto const& path = p.paths[m.path];
            CHECK(path.from != path.to);
            CHECK(path.steps.back().step.to == p.at(path.to));
            moves += path.cost;
        }
        CHECK(moves + p.cost.inner == doctest::Approx(p.cost.communication()).epsilon(1e-9));
        CHECK(p.cost.tie_break == static_cast<double>(p.moves.size()));
        CHECK(p.bound <= p.objective);
        CHECK(p.gap() <= 1e-4);
    }
}

TEST_CASE("a tensor lies at its user as the user wants it: moves join producers, relays and operands without a gap") {
    auto const g = residual_mlp(2);
    auto const p = plan_on(g, "2x4");
    std::vector<std::vector<plan_layout>> at(g.size());
    for (vertex v = 0; v < g.size(); ++v)
        for (auto const& r : g[v].operands) at[v].push_back(p.nodes[r.node].outputs[r.output]);
    for (auto const& r : p.relays)  // whoever is behind a relay starts from the relay's layout
        for (vertex v = 0; v < g.size(); ++v)
            for (std::size_t s = 0; s < g[v].operands.size(); ++s)
                if (g[v].operands[s] == r.value) at[v][s] = r.at;
    for (auto const& m : p.moves) {
        auto const& path = p.paths[m.path];
        if (m.to_relay != tensor_move::none) {
            CHECK(path.to == p.relays[m.to_relay].at);
            CHECK(path.from == p.nodes[m.value.node].outputs[m.value.output]);
            continue;
        }
        CHECK(at[m.user][m.operand] == path.from);
        at[m.user][m.operand] = path.to;
    }
    for (vertex v = 0; v < g.size(); ++v) CHECK(at[v] == p.nodes[v].operands);
}

TEST_CASE("E4: a clustered plan carries the bound of the clustered problem, and clustering never beats deciding freely") {
    auto const g = residual_mlp(4);
    planning_statistics clustered_stats, free_stats;
    auto const clustered = plan_on(g, "4x8", {}, &clustered_stats);
    plan_options no_clusters;
    no_clusters.clustering = false;
    auto const free = plan_on(g, "4x8", no_clusters, &free_stats);
    CHECK(clustered.bounded_problem.rfind("clustered", 0) == 0);
    CHECK(free.bounded_problem.rfind("unclustered", 0) == 0);
    CHECK(clustered_stats.copies > 20);
    CHECK(free_stats.copies == 0);
    CHECK(clustered_stats.groups < free_stats.groups);
    CHECK(clustered.gap() >= 0);
    CHECK(free.objective <= clustered.objective * (1 + 1e-9));
    CHECK(free.bound <= clustered.objective);
    plan_options polish;
    polish.polish = true;
    auto const polished = plan_on(g, "4x8", polish);
    CHECK(polished.bounded_problem.rfind("unclustered", 0) == 0);
    CHECK(polished.gap() >= 0);
    CHECK(polished.objective <= clustered.objective);
    CHECK(polished.objective == doctest::Approx(free.objective).epsilon(1e-9));
    CHECK(polished.bound <= free.objective);
}

TEST_CASE("x * x reads one tensor through two operands, and q, k, v share one gather through a relay") {
    //  x -> q, k, v = linear(x, W): x is sharded on its last dim by a pin, so it must be gathered, once
    graph_builder b;
    auto const x = b.input("x", {8, 16, 64}, dtype::bfloat16);
    auto const s = b.mul(x, x);
    for (auto const* name : {"q", "k", "v"})
        b.output(b.named(name, b.linear(s, b.parameter(std::string("w") + name, {64, 64}, dtype::bfloat16))), std::string("out.") + name);
    auto const g = b.build();
    plan_options options;
    options.boundary.inputs = "S2";
    options.boundary.pins = {{"q", "R"}, {"k", "R"}, {"v", "R"}, {"mul", "S2"}};
    options.boundary.parameters = parameter_storage::replicated;
    auto const p = plan_on(g, "4", options);
    std::size_t gathers = 0;
    for (auto const& m : p.moves)
        for (auto const& step : p.paths[m.path].steps)
            gathers += step.step.kind == collective_kind::all_gather && m.value == value_ref{s.node, 0};
    CHECK(gathers == 1);
    CHECK(p.nodes[s.node].operands.size() == 2);
}

TEST_CASE("B1: a parameter takes its smallest reachable ratio, and stays Replicate on replica axes") {
    auto const mesh = device_mesh::parse("8x8");
    for (auto const& l : parameter_layouts({280}, mesh, parameter_storage::fully_sharded, 0)) CHECK(l.cut_count() == 8);
    CHECK(parameter_layouts({}, mesh, parameter_storage::fully_sharded, 0).size() == 1);
    auto const both = parameter_layouts({64, 64}, mesh, parameter_storage::fully_sharded, 0);
    CHECK(both.size() == 6);  // S0 or S1 per axis, and the other cut order where both axes cut one dim
    for (auto const& l : both) CHECK(l.cut_count() == 64);
    for (auto const& l : parameter_layouts({64, 64}, mesh, parameter_storage::fully_sharded, 1)) {
        CHECK(l.on(0).is_replicate());
        CHECK(l.cut_count() == 8);
    }
    CHECK(parameter_layouts({64}, mesh, parameter_storage::replicated, 0).front().is_replicated());
}

TEST_CASE("a gradient lies as its parameter, and replica axes hold for both") {
    auto const g = residual_mlp(1);
    plan_options options;
    options.boundary.replica_axes = {"a0"};
    auto const p = plan_on(g, "2x4", options);
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].role == node_role::gradient) {
            CHECK(p.nodes[v].outputs[0] == p.nodes[*g[v].of].outputs[0]);
            CHECK(p.at(p.nodes[v].outputs[0]).on(0).is_replicate());
            CHECK(p.at(p.nodes[v].outputs[0]).cut_count() == 4);
        }
    CHECK(p.memory.parameters_local * 4 == p.memory.parameters_global);
}

TEST_CASE("B20: weights are gathered behind the cast to bf16, gradients reduced behind the cast to fp32") {
    graph_builder b;
    auto const x = b.input("x", {64, 128, 512}, dtype::bfloat16);
    auto const w = b.parameter("w", {2048, 512});
    auto const cast = b.cast(w, dtype::bfloat16);
    auto const y = b.linear(x, cast);
    b.loss(b.call("aten::sum", {{"self", y}, {"dtype", none}}));
    b.backward();
    auto const dy = b.call("aten::expand", {{"self", b.ones({}, dtype::bfloat16)}, {"size", shape{64, 128, 2048}}, {"implicit", false}});
    auto const wide = b.cast(b.linear_grad_weight(dy, x, y), dtype::float32);
    b.gradient(w, wide);
    auto const g = b.build();
    auto const p = plan_on(g, "2x4");
    for (auto const& m : p.moves)
        if (m.to_relay == tensor_move::none && (m.user == cast.node || m.user == wide.node)) CHECK(p.paths[m.path].cost == 0.0);
    CHECK(p.at(p.nodes[w.node].outputs[0]).cut_count() == 8);
}

TEST_CASE("data parallel, FSDP and tensor parallel are rows of the same table: what is pinned decides which emerges") {
    //  y = x W^T with W fully sharded; x and y cut by batch on both axes: FSDP, the weight is gathered whole
    graph_builder b;
    auto const x = b.input("x", {64, 1024}, dtype::bfloat16);
    auto const w = b.parameter("w", {512, 1024}, dtype::bfloat16);
    b.output(b.named("y", b.linear(x, w)), "out");
    auto const g = b.build();
    auto const y = find(g, "y");
    plan_options options;
    options.boundary.inputs = "S0,S0";
    options.boundary.pins = {{"y", "S0,S0"}};
    auto const mesh = device_mesh::parse("2x4");
    auto const fsdp = plan_on(g, "2x4", options);
    CHECK(fsdp.at(fsdp.nodes[y].operands[1]).is_replicated());
    CHECK(fsdp.at(fsdp.nodes[w.node].outputs[0]).cut_count() == 8);
    options.boundary.inputs = "S0,R";
    options.boundary.pins = {{"y", "S0,S1"}};
    auto const tp = plan_on(g, "2x4", options);
    CHECK(tp.at(tp.nodes[y].operands[1]).text(mesh) == "R,S0");  // column parallel on the second axis
}

TEST_CASE("the same input gives the same bytes, and other costs another hash") {
    auto const g = residual_mlp(2);
    auto const mesh = device_mesh::parse("4x2");
    auto const a = plan_on(g, "4x2"), b = plan_on(g, "4x2");
    CHECK(plan_to_json(a) == plan_to_json(b));
    auto const c = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("a100")));
    CHECK(c.made_from.graph == a.made_from.graph);
    CHECK(c.made_from.cost != a.made_from.cost);
}

TEST_CASE("bad demands are numbered errors that name the thing") {
    auto const g = residual_mlp(2);
    CHECK(code_of(g, "128") == error_code::mesh_does_not_divide);
    plan_options o;
    o.boundary.pins = {{"no.such.tensor", "R,R"}};
    CHECK(code_of(g, "2x2", o) == error_code::unknown_tensor);
    o.boundary.pins = {{"layers.0/relu", "P,R"}};
    CHECK(code_of(g, "2x2", o) == error_code::unsatisfiable_constraint);
    o.boundary.pins = {{"layers.0.w1.weight", "S0"}};
    CHECK(code_of(g, "2x2", o) == error_code::bad_layout);
    o.boundary.pins.clear();
    o.boundary.replica_axes = {"dp"};
    CHECK(code_of(g, "2x2", o) == error_code::unknown_axis);
}

TEST_CASE("ops without a rule are reported all at once, before anything else") {
    graph_builder b;
    auto const x = b.input("x", {4});
    auto const y = b.call("mine::first", {{"self", x}}, {contiguous_meta({4}, dtype::float32)});
    b.output(b.call("mine::second", {{"self", y}}, {contiguous_meta({4}, dtype::float32)}));
    auto const g = b.build();
    try {
        plan_on(g, "2");
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::op_without_rule);
        CHECK(e.subject().find("mine::first") != std::string::npos);
        CHECK(e.subject().find("mine::second") != std::string::npos);
        CHECK(e.problem().find("[4]") != std::string::npos);
    }
}

TEST_CASE("a cost model that returns a price that is negative, infinite or no number is refused, naming the op") {
    struct bad {
        double price;
        double compute(op_query const&) const { return price; }
        double collective(collective_call const&) const { return 1; }
        void feed(stable_hasher& h) const { h.add(price); }
    };
    auto const g = residual_mlp(1);
    auto const mesh = device_mesh::parse("2");
    for (double price : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        try {
            plan(g, mesh, standard_rules(), bad{price});
            FAIL("no error");
        } catch (error const& e) {
            CHECK(e.code() == error_code::bad_cost);
            CHECK(e.subject().rfind("op aten::", 0) == 0);
        }
    }
}
