// SPDX-License-Identifier: BSL-1.0
// A plan carried to small sizes and a small mesh: the tensors lie alike, and the same collectives move them.
//
//   tokens -> [ linear - relu - linear ] + residual -> loss, and backward, at dim 64 on 4x8 and at dim 16 on 2x4
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/graph/region_op.hpp>
#include <cantle/plan/plan_check.hpp>
#include <cantle/plan/same_structure.hpp>
#include <cantle/plan/scaled_plan.hpp>
#include <cantle/plan/shrunk_mesh.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <map>

using namespace cantle;

namespace {

/// x [b, s, d] flattened to [b s, d], times w, and back; its loss and gradient.
training_graph flattened(std::int64_t b, std::int64_t s, std::int64_t d) {
    graph_builder g;
    auto const x = g.input("x", {b, s, d});
    auto const w = g.parameter("w", {d, d});
    auto const y = g.linear(g.call("aten::view", {{"self", x}, {"size", shape{b * s, d}}}), w);
    g.loss(g.call("aten::sum", {{"self", g.call("aten::view", {{"self", y}, {"size", shape{b, s, d}}})}, {"dtype", none}}));
    return g.build();
}
using tally = std::map<std::pair<collective_kind, std::uint32_t>, std::size_t>;
tally collectives(sharding_plan const& p) {
    tally t;
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) ++t[{s.step.kind, s.step.axis_mask()}];
    for (auto const& n : p.nodes)
        for (auto const& i : n.inner) ++t[{i.call.kind, i.call.axes}];
    return t;
}
sharding_plan planned(training_graph const& g, device_mesh const& mesh) {
    return plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
}

}  // namespace

TEST_CASE("a mesh shrinks by divisors, keeps its axes, and says which numbers of ranks it can have") {
    auto const text = [](char const* sizes, std::int64_t n) { return shrunk_mesh(device_mesh::parse(sizes), n).text(); };
    CHECK(text("8", 8) == "8 (a0)");
    CHECK(text("8", 2) == "2 (a0)");
    CHECK(text("4x8", 8) == "2x4 (a0, a1)");
    CHECK(text("4x8", 4) == "2x2 (a0, a1)");
    CHECK(text("4x8", 2) == "1x2 (a0, a1)");
    CHECK(text("4x4x8", 8) == "2x2x2 (a0, a1, a2)");
    CHECK(text("1x8", 4) == "1x4 (a0, a1)");
    CHECK(text("6x2", 6) == "3x2 (a0, a1)");
    CHECK(shrunk_rank_counts(device_mesh::parse("4x6"), 12) == std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12});
    try {
        shrunk_mesh(device_mesh::parse("4x8"), 3);
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_mesh);
        CHECK(e.remedy().find("1, 2, 4, 8, 16, 32") != std::string::npos);
    }
}

TEST_CASE("graphs of one model at two sizes differ in scale only, graphs of two models do not") {
    auto const full = flattened(16, 32, 64);
    CHECK(!structural_difference(full, flattened(4, 8, 16)));
    auto const one = structural_difference(full, flattened(1, 8, 16));
    REQUIRE(one);
    CHECK_MESSAGE(one->find("'x'") != std::string::npos, *one);
    auto changed = flattened(4, 8, 16);
    changed.nodes[3].operation.name = "aten::mm";
    REQUIRE(structural_difference(full, changed));
    CHECK(structural_difference(full, changed)->find("aten::mm") != std::string::npos);
    changed = flattened(4, 8, 16);
    changed.nodes.pop_back();
    CHECK(structural_difference(full, changed));
    changed = flattened(4, 8, 16);
    changed.nodes[0].outputs[0].type = dtype::float64;
    CHECK(structural_difference(full, changed));
    auto const wide = test::residual_mlp(2), deep = test::residual_mlp(3);
    CHECK(structural_difference(wide, deep));
}

TEST_CASE("how often a region moves something is a matter of scale, what it moves is not") {
    auto const with = [](char const* collectives) {
        graph_builder g;
        auto const x = g.input("x", {8, 4});
        region_options r;
        r.name = "experts";
        r.inputs = r.outputs = {"*=S0"};
        r.collectives = collectives;
        auto o = region_op(r);
        o.arguments.erase(o.arguments.begin());
        o.arguments.insert(o.arguments.begin(), {"inputs", operand_slots{{0}}});
        auto graph = g.build();
        graph_node n;
        n.operation = o;
        n.operands = {x};
        n.outputs = {graph[0].outputs[0]};
        graph.nodes.push_back(n);
        return graph;
    };
    auto const full = with("ep:all_gather:64B, ep:all_to_all:6in0, ep:all_to_all:out0*2");
    CHECK(!structural_difference(full, with("ep:all_gather:8B, ep:all_to_all:2in0, ep:all_to_all:out0*16")));
    CHECK(structural_difference(full, with("ep:all_gather:64B, ep:all_to_all:6in1, ep:all_to_all:out0*2")));
    CHECK(structural_difference(full, with("ep:all_gather:64B, ep:all_to_all:6in0, ep:all_reduce:out0*2")));
}

// x [8, 4] on 4x2: S0,R -> slice -> S0,S0 -> all_gather(a0,a1) -> R,R. Where a0 has one rank, x lies whole from the start.
TEST_CASE("a way out over an axis of one rank and back again is no move") {
    graph_builder b;
    auto const x = b.input("x", {8, 4});
    b.output(b.relu(x));
    auto const g = b.build();
    sharding_plan p;
    p.mesh = device_mesh::parse("4x2");
    for (auto const* text : {"S0,R", "R,R", "S0,S0"}) p.layouts.push_back(layout::parse(p.mesh, text));
    p.nodes = {{{}, {0}, 0, {}}, {{1}, {1}, 0, {}}, {{1}, {1}, 0, {}}};
    transition const slice{collective_kind::slice, {1}, 0, 0, reduction::sum, p.layouts[2]};
    transition const gather{collective_kind::all_gather, {0, 1}, 0, 0, reduction::sum, p.layouts[1]};
    p.paths.push_back({0, 1, {{slice, {}, 0}, {gather, {}, 0}}, 0});
    tensor_move m;
    m.value = x;
    m.user = 1;
    m.path = 0;
    p.moves.push_back(m);
    CHECK(collectives(scaled_plan(p, g, g, shrunk_mesh(p.mesh, 4))).size() == 2);
    auto const small = scaled_plan(p, g, g, shrunk_mesh(p.mesh, 2));
    CHECK(small.mesh.size(0) == 1);
    CHECK(small.moves.empty());
}

TEST_CASE("the same graph on the same mesh gets the plan that it has") {
    auto const g = test::residual_mlp(2);
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    auto const p = planned(g, mesh);
    auto const q = scaled_plan(p, g, g, mesh);
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) CHECK(q.at(q.nodes[v].outputs[o]) == p.at(p.nodes[v].outputs[o]));
    CHECK(collectives(q) == collectives(p));
    CHECK(!find_contradiction(q));
    CHECK(!find_contradiction(q, g));
}

TEST_CASE("a plan on a smaller mesh keeps placements and collectives; what an axis of one rank moved is gone") {
    auto const g = test::residual_mlp(2);
    auto const p = planned(g, device_mesh::parse("4x8", "dp,tp"));
    auto const small = test::residual_mlp(2, 16);
    REQUIRE(!structural_difference(g, small));
    auto const q = scaled_plan(p, g, small, shrunk_mesh(p.mesh, 8));
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o)
            CHECK(q.at(q.nodes[v].outputs[o]).text(q.mesh) == p.at(p.nodes[v].outputs[o]).text(p.mesh));
    CHECK(collectives(q) == collectives(p));
    CHECK(!find_contradiction(q, small));
    auto const one_axis = scaled_plan(p, g, g, shrunk_mesh(p.mesh, 2));
    CHECK(!find_contradiction(one_axis, g));
    for (auto const& [what, count] : collectives(one_axis)) CHECK(what.second == 2u);
    auto const alone = scaled_plan(p, g, g, shrunk_mesh(p.mesh, 1));
    CHECK(collectives(alone).empty());
    CHECK(!find_contradiction(alone, g));
}

// [16][32] flattened, cut along the 32: [16 whole][tp]; at [4][8] on 4 ranks the whole factor is 4.
TEST_CASE("whole factors follow the views that made them") {
    auto const full = flattened(16, 32, 64), small = flattened(4, 8, 16);
    auto const mesh = device_mesh::parse("8", "tp");
    auto p = planned(full, mesh);
    p.layouts.push_back(layout::parse(mesh, "S0; d0=16>tp"));
    auto const flat = full[3].operation.name == "aten::view" ? vertex{3} : vertex{2};
    REQUIRE(full[flat].operation.name == "aten::view");
    p.nodes[flat].outputs[0] = static_cast<plan_layout>(p.layouts.size() - 1);
    auto const q = scaled_plan(p, full, small, shrunk_mesh(mesh, 4));
    CHECK(q.at(q.nodes[flat].outputs[0]).text(q.mesh) == "S0; d0=4>tp");
}

TEST_CASE("sizes that the plan's cuts do not divide are refused, the tensor named") {
    auto const full = flattened(16, 32, 64);
    auto const mesh = device_mesh::parse("8", "tp");
    auto const p = planned(full, mesh);
    try {
        scaled_plan(p, full, flattened(3, 8, 16), shrunk_mesh(mesh, 4));
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_layout);
        CHECK_MESSAGE(std::string(e.what()).find("'x' [16, 32, 64] as S0") != std::string::npos, e.what());
    }
}
