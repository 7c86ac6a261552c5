// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/topological_order.hpp>
#include <cantle/graph/validate.hpp>

#include "random_graph.hpp"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

using namespace cantle;

namespace {

//  0 x [2,3] --+
//              2 linear [2,4] -- 3 y (output)      4 dy (tangent of y) -- 5 linear_grad_weight (forward_node 2) -- 6 w.grad (of 1)
//  1 w [4,3] --+
training_graph layer() {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto const w = b.parameter("w", {4, 3});
    auto const y = b.linear(x, w);
    auto const dy = b.tangent("dy", b.output(y, "y"));
    b.backward().gradient(w, b.linear_grad_weight(dy, x, y));
    return b.build();
}

struct broken { int number; char const* says; std::function<void(training_graph&)> breaks; };

}  // namespace

TEST_CASE("a built graph and random graphs are valid") {
    CHECK_NOTHROW(validate(layer()));
    for (std::uint32_t seed = 1; seed <= 100; ++seed) {
        CAPTURE(seed);
        CHECK_NOTHROW(validate(test::random_graph(seed, 30)));
    }
    CHECK_NOTHROW(validate({}));
}

TEST_CASE("every broken invariant is a numbered error that names the node") {
    std::vector<broken> const cases{
        {302, "node 'linear': operand 1 (aten::linear) names node 70", [](auto& g) { g[2].operands[1].node = 70; }},
        {302, "node 'linear': operand 0 (aten::linear) names output 1 of node 'x', which has 1",
         [](auto& g) { g[2].operands[0].output = 1; }},
        {302, "names output 0 of node 'linear', which that node does not produce", [](auto& g) { g[2].outputs[0].defined = false; }},
        {302, "node 'linear': argument 'weight' of aten::linear takes operand 2",
         [](auto& g) { g[2].operation.arguments[1].value = operand_slot{2}; }},
        {302, "argument 'bias' of aten::linear takes operand 2",
         [](auto& g) { g[2].operation.arguments[2].value = operand_slots{{0, -1, 2}}; }},
        {303, "argument 'bias' has the slot -2", [](auto& g) { g[2].operation.arguments[2].value = operand_slots{{-2}}; }},
        {301, "'linear' -> 'linear'", [](auto& g) { g[2].operands[0] = {2, 0}; }},
        {303, "node 'linear': it comes before its operand 'dy'", [](auto& g) { g[2].operands[0] = {4, 0}; }},
        {303, "the name stands for two nodes", [](auto& g) { g[2].name = "x"; }},
        {303, "node 'x'", [](auto& g) { g[1].also_named = {"x"}; }},
        {303, "node 2 (aten::linear): it has no name", [](auto& g) { g[2].name.clear(); }},
        {303, "its op has no name", [](auto& g) { g[2].operation.name.clear(); }},
        {303, "output 0 has the negative size -1", [](auto& g) { g[2].outputs[0].sizes = {-1, 4}; }},
        {303, "has 1 sizes but 2 strides", [](auto& g) { g[2].outputs[0].sizes = {8}; }},
        {303, "has more than 2^56 elements", [](auto& g) { g[2].outputs[0] = {{1LL << 40, 0, 1LL << 40}, {}, dtype::int8, true}; }},
        {303, "has the stride -1", [](auto& g) { g[2].outputs[0].strides = {-1, 1}; }},
        {303, "node 'x': its op is aten::relu", [](auto& g) { g[0].operation.name = "aten::relu"; }},
        {303, "node 'w': it is a source, yet has operands", [](auto& g) { g[1].operands = {{0, 0}}; }},
        {303, "node 'x': it has 2 outputs", [](auto& g) { g[0].outputs.push_back(g[0].outputs[0]); }},
        {303, "node 'x': it has values, but is no constant", [](auto& g) { g[0].constant_data = {1.0}; }},
        {303, "node 'x': it has 1 values for 6 elements",
         [](auto& g) { g[0].role = node_role::constant; g[0].operation.name = "cantle::constant"; g[0].constant_data = {1.0}; }},
        {303, "node 'y': its op is aten::alias", [](auto& g) { g[3].operation.name = "aten::alias"; }},
        {303, "node 'y': it has 2 operands", [](auto& g) { g[3].operands.push_back({0, 0}); }},
        {303, "node 'y': sizes or type of its output differ", [](auto& g) { g[3].outputs[0].type = dtype::bfloat16; }},
        {303, "node 'linear_grad_weight': forward_node is 99", [](auto& g) { g[5].forward_node = 99; }},
        {303, "node 'w.grad': a gradient does not say", [](auto& g) { g[6].of.reset(); }},
        {303, "node 'w.grad': `of` is 99", [](auto& g) { g[6].of = 99; }},
        {303, "node 'w.grad': it is the gradient of 'x', which is no source of equal sizes", [](auto& g) { g[6].of = 0; }},
        {303, "node 'w.grad': it is the gradient of 'linear'", [](auto& g) { g[6].of = 2; }},
        {303, "node 'dy': it is the tangent of 'x', which is no sink", [](auto& g) { g[4].of = 0; }},
        {303, "node 'linear': output 0 is [2, 5], but aten::linear of [2, 3], [4, 3] gives [2, 4]",
         [](auto& g) { g[2].outputs[0] = g[3].outputs[0] = g[4].outputs[0] = contiguous_meta({2, 5}, dtype::float32); }},
        {303, "node 'linear': aten::linear: input [...,K] and weight [N,K] do not fit",
         [](auto& g) { g[0].outputs[0] = contiguous_meta({2, 7}, dtype::float32); }},
        {303, "node 'linear': `of` is set", [](auto& g) { g[2].of = 0; }},
    };
    for (auto const& c : cases) {
        CAPTURE(c.says);
        auto g = layer();
        c.breaks(g);
        try {
            validate(g);
            FAIL_CHECK("no error");
        } catch (error const& e) {
            CHECK(e.number() == c.number);
            CHECK_MESSAGE(std::string(e.what()).find(c.says) != std::string::npos, e.what());
        }
    }
}

// a -> b -> c -> a among 20 nodes: the message lists the cycle from its smallest node, long ones are cut.
TEST_CASE("a long cycle is named in the direction of flow and cut in the middle") {
    training_graph g;
    for (int i = 0; i < 20; ++i) {
        graph_node n;
        n.operation.name = "test::op";
        n.name = "n" + std::to_string(i);
        n.outputs = {contiguous_meta({1}, dtype::float32)};
        n.operands = {{static_cast<vertex>((i + 19) % 20), 0}};
        g.nodes.push_back(n);
    }
    try {
        validate(g);
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.number() == 301);
        CHECK_MESSAGE(std::string(e.what()).find("'n0' -> 'n1' -> 'n2' -> ") != std::string::npos, e.what());
        CHECK_MESSAGE(std::string(e.what()).find("(8 more) -> 'n19' -> 'n0'") != std::string::npos, e.what());
    }
}

TEST_CASE("an ordered graph keeps its order and a shuffled one comes into order with all its links") {
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        CAPTURE(seed);
        auto const g = test::random_graph(seed, 30);
        auto const order = topological_order(g);
        for (vertex v = 0; v < g.size(); ++v) CHECK(order[v] == v);
        std::vector<vertex> shuffle(g.size());
        std::iota(shuffle.begin(), shuffle.end(), vertex{0});
        test::random_source random(seed);
        for (std::size_t i = shuffle.size(); i > 1; --i)
            std::swap(shuffle[i - 1], shuffle[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
        auto mixed = reorder(g, shuffle);
        auto const repaired = reorder(mixed, topological_order(mixed));
        CHECK_NOTHROW(validate(repaired));
        CHECK(repaired.size() == g.size());
    }
}

// Ops that shape inference knows, each with outputs that it does not give; and what it must leave alone.
TEST_CASE("an output of a shape that its op does not give is refused with both shapes, an op told by operands alone is not judged") {
    struct wrong { char const* name; std::vector<call_argument> arguments; shape out; char const* says; };
    graph_builder b;
    auto const x = b.input("x", {16, 8}), y = b.input("y", {4, 7});
    std::vector<wrong> const cases{
        {"aten::relu", {{"self", x}}, {16, 99}, "output 0 is [16, 99], but aten::relu of [16, 8] gives [16, 8]"},
        {"aten::linear", {{"input", x}, {"weight", y}, {"bias", none}}, {16, 4}, "do not fit"},
        {"aten::view", {{"self", x}, {"size", shape{64}}}, {64}, "a view must keep the number of elements"},
        {"aten::view", {{"self", x}, {"size", shape{128}}}, {64}, "gives [128]"},
        {"aten::add.Tensor", {{"self", x}, {"other", y}, {"alpha", 1}}, {16, 8}, "do not broadcast"},
        {"aten::sum.dim_IntList", {{"self", x}, {"dim", shape{0}}}, {16}, "gives [8]"},
        {"aten::matmul", {{"self", x}, {"other", y}}, {16, 7}, "do not fit"},
        {"aten::t", {{"self", x}}, {16, 8}, "gives [8, 16]"},
    };
    for (auto const& c : cases) {
        CAPTURE(c.says);
        auto copy = b;
        auto const r = copy.named("odd", copy.call(c.name, c.arguments, {contiguous_meta(c.out, dtype::float32)}));
        copy.output(r);
        try {
            copy.build();
            FAIL_CHECK("no error");
        } catch (error const& e) {
            CHECK(e.code() == error_code::bad_graph);
            CHECK(e.subject() == "node 'odd'");
            CHECK_MESSAGE(e.problem().find(c.says) != std::string::npos, e.what());
        }
    }
    auto const free_form = [&](char const* name, std::vector<call_argument> const& arguments, shape out) {
        b.output(b.call(name, arguments, {contiguous_meta(std::move(out), dtype::float32)}));
    };
    free_form("aten::mm", {{"left", x}, {"right", x}}, {3, 3});       // not the schema's names
    free_form("aten::view", {{"self", x}}, {4, 32});                  // the size is the output's
    free_form("aten::mul.Tensor", {{"self", x}, {"other", 2.0}}, {16, 8});
    free_form("mine::op", {{"self", x}}, {5});
    free_form("aten::matmul", {{"self", b.input("v", {8})}, {"other", b.input("m", {3, 8, 5})}}, {3, 5});
    CHECK_NOTHROW(b.build());
}
