// SPDX-License-Identifier: BSL-1.0
// Plans of graphs with regions: the declared layouts hold, what is around them pays, equal layers share their decisions.
//
//   per layer:  h [64,32,128] --> linear w1 --> experts(., w2 [8,128,128]) --> + h         mesh dp x ep
//               tokens "*=S0", w2 "ep=S0", output "*=S0"
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/graph/region_op.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace cantle;

region_options experts(double flops_per_element = 1000) {
    region_options r;
    r.name = "experts";
    r.inputs = {"*=S0", "ep=S0"};
    r.outputs = {"*=S0"};
    r.flops_per_element = flops_per_element;
    r.collectives = "ep:all_to_all:in0, ep:all_to_all:out0";
    return r;
}

/// Calls a region's op on tensors: `lists` fill its tensor lists in order.
value_ref call_region(graph_builder& b, op const& o, std::vector<std::vector<value_ref>> const& lists, std::vector<tensor_meta> outputs) {
    std::vector<call_argument> arguments;
    for (std::size_t i = 0; i < o.arguments.size(); ++i) {
        call_value v(none);
        if (i < lists.size()) v = call_value(lists[i]);
        else v.value = o.arguments[i].value;
        arguments.push_back({o.arguments[i].name, v});
    }
    return b.call(o.name, arguments, std::move(outputs));
}

training_graph layers_with_experts(int layers, std::int64_t batch = 64) {
    graph_builder b;
    auto const type = dtype::bfloat16;
    shape const tokens{batch, 32, 128};
    auto h = b.input("x", tokens, type);
    std::vector<value_ref> w1, w2, in, mid;
    for (int i = 0; i < layers; ++i) {
        auto const m = "layers." + std::to_string(i);
        b.in_module(m);
        w1.push_back(b.parameter(m + ".w1", {128, 128}, type));
        w2.push_back(b.parameter(m + ".w2", {8, 128, 128}, type));
        in.push_back(h);
        mid.push_back(b.linear(h, w1.back()));
        h = b.add(call_region(b, region_op(experts()), {{mid.back(), w2.back()}}, {contiguous_meta(tokens, type)}), h);
    }
    b.in_module("");
    b.loss(b.call("aten::sum", {{"self", h}, {"dtype", none}}));
    b.backward();
    auto g = b.call("aten::expand", {{"self", b.ones({}, type)}, {"size", tokens}, {"implicit", false}});
    for (int k = layers; k-- > 0;) {
        auto const i = static_cast<std::size_t>(k);
        b.in_module("layers." + std::to_string(k));
        auto const back = call_region(b, region_backward_op(experts(), {0}, {0, 1}), {{g}, {mid[i], w2[i]}},
                                      {contiguous_meta(tokens, type), contiguous_meta({8, 128, 128}, type)});
        b.gradient(w2[i], {back.node, 1});
        b.gradient(w1[i], b.linear_grad_weight(back, in[i]));
        g = b.add(g, b.linear_grad_input(back, w1[i]));
    }
    return b.build();
}

sharding_plan plan_on(training_graph const& g, device_mesh const& mesh, plan_options const& options = {},
                      planning_statistics* stats = nullptr) {
    return plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options, {}, stats);
}
device_mesh dp_ep() { return device_mesh::parse("4x8", "dp,ep"); }

}  // namespace

TEST_CASE("every region of a plan has the declared layouts, forward and backward, and the weight's gradient is reduced after it") {
    auto const g = layers_with_experts(3);
    auto const p = plan_on(g, dp_ep());
    int forward = 0, backward = 0;
    auto const text = [&](plan_layout l) { return p.at(l).text(p.mesh); };
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = p.nodes[v];
        if (g[v].operation.name == region_op_name) {
            ++forward;
            CHECK(text(n.operands[0]) == "S0,S0");
            CHECK(text(n.operands[1]) == "R,S0");
            CHECK(text(n.outputs[0]) == "S0,S0");
        }
        if (g[v].operation.name == region_backward_op_name) {
            ++backward;
            CHECK(text(n.operands[0]) == "S0,S0");
            CHECK(text(n.outputs[0]) == "S0,S0");
            CHECK(text(n.outputs[1]) == "P,S0");  // case D1
            bool reduced = false;
            for (auto const& m : p.moves)
                if (m.value == value_ref{v, 1})
                    for (auto const& s : p.paths[m.path].steps) reduced = reduced || s.step.kind == collective_kind::reduce_scatter;
            CHECK(reduced);  // the parameter is fully sharded, so its gradient ends so
        }
    }
    CHECK(forward == 3);
    CHECK(backward == 3);
}

TEST_CASE("a region's inner collectives and flops are in the objective") {
    auto const g = layers_with_experts(2);
    auto const p = plan_on(g, dp_ep());
    CHECK(p.cost.inner > 0);
    CHECK(p.cost.total() == doctest::Approx(p.objective).epsilon(1e-9));
    auto const mesh = dp_ep();
    standard_cost_model const cost(mesh, find_cluster("h100"));
    std::int64_t const bytes = 64 / 32 * 32 * 128 * 2;  // the local tokens
    double const one = cost.collective({collective_kind::all_to_all, 2u, bytes, bytes, 0, reduction::sum});
    CHECK(p.cost.inner == doctest::Approx(2 * 3 * 2 * one));  // layers; forward, the forward again and gradients; there and back
}

TEST_CASE("equal layers with regions share their decisions, and the shared plan costs what the free one does") {
    auto const g = layers_with_experts(4);
    planning_statistics with, without;
    auto const p = plan_on(g, dp_ep(), {}, &with);
    plan_options free;
    free.clustering = false;
    auto const q = plan_on(g, dp_ep(), free, &without);
    CHECK(with.copies > 0);
    CHECK(with.groups < without.groups);
    CHECK(p.objective >= q.objective - 1e-6);
    CHECK(p.objective <= q.objective * 1.01);
}

TEST_CASE("planning on a mesh without the region's axis, or with a batch it does not divide, is an error that names the region") {
    auto const code = [](training_graph const& g, device_mesh const& mesh, plan_options const& o = {}) {
        try {
            plan_on(g, mesh, o);
        } catch (error const& e) {
            CHECK_MESSAGE(std::string(e.what()).find("region 'experts'") != std::string::npos, std::string(e.what()));
            return e.code();
        }
        FAIL("no error");
        return error_code::bad_graph;
    };
    CHECK(code(layers_with_experts(1), device_mesh::parse("4x8", "dp,tp")) == error_code::unknown_axis);
    CHECK(code(layers_with_experts(1, 16), dp_ep()) == error_code::mesh_does_not_divide);
}
