// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>

#include "interpreter.hpp"

#include <string>
#include <vector>

using namespace cantle;

namespace {

//  x [3,4] -- linear w1 [5,4] -- relu -- linear w2 [2,5] -- y;  dy back to w1, w2
struct mlp {
    graph_builder b;
    value_ref x = b.input("x", {3, 4});
    value_ref w1 = b.parameter("fc1.weight", {5, 4}), w2 = b.parameter("fc2.weight", {2, 5});
    value_ref h = b.in_module("fc1").linear(x, w1);
    value_ref a = b.in_module("").relu(h);
    value_ref y = b.in_module("fc2").linear(a, w2);
    value_ref out = b.in_module("").output(y, "y");
    value_ref dy = b.backward().tangent("dy", out);
    value_ref da = b.in_module("fc2").linear_grad_input(dy, w2, y);
    value_ref g2 = b.gradient(w2, b.linear_grad_weight(dy, a, y));
    value_ref dh = b.in_module("").relu_backward(da, a, a);
    value_ref g1 = b.gradient(w1, b.in_module("fc1").linear_grad_weight(dh, x, h));
};

}  // namespace

TEST_CASE("a two-layer MLP forward and backward takes a dozen lines and is valid and canonical") {
    auto const g = mlp{}.b.build();
    CHECK(g.size() == 14);
    CHECK(g[5].name == "fc2/linear");
    CHECK(g[5].module_path == "fc2");
    CHECK(g[1].module_path == "fc1");
    CHECK(g[8].in_phase == phase::backward);
    CHECK(g[8].forward_node == 5);
    CHECK(g[9].name == "fc2/linear_grad_weight");
    CHECK(g[10].name == "fc2.weight.grad");
    CHECK(g[10].role == node_role::gradient);
    CHECK(g[10].of == 2);
    CHECK(g[10].outputs[0] == contiguous_meta({2, 5}, dtype::float32));
    CHECK(canonicalize(g).size() == g.size());
}

// The example at the head of builder.hpp.
TEST_CASE("the builder's own example builds") {
    graph_builder b;
    auto x = b.input("x", {4, 8});
    auto w = b.parameter("fc.weight", {16, 8});
    auto y = b.in_module("fc").linear(x, w);
    auto l = b.in_module("").call("aten::sum", {{"self", y}, {"dtype", none}});
    b.loss(l);
    b.backward();
    auto g = b.call("aten::expand", {{"self", b.ones({})}, {"size", shape{4, 16}}, {"implicit", false}});
    b.gradient(w, b.linear_grad_weight(g, x, y));
    training_graph const graph = b.build();
    CHECK(graph.meta(l) == contiguous_meta({}, dtype::float32));
    CHECK(graph.nodes.back().name == "fc.weight.grad");
    CHECK(test::run_node(graph[y.node], {test::integers("x", {4, 8}), test::integers("w", {16, 8})}).sizes == shape{4, 16});
}

// gradient of sum(y * dy) by w, entry by entry, from differences: the graph is piecewise linear and the data are integers
TEST_CASE("the gradients of the MLP are those of its forward pass") {
    mlp m;
    auto const g = m.b.build();
    auto const sinks = test::run(g);
    auto const x = test::integers("x", {3, 4}), w1 = test::integers("fc1.weight", {5, 4}), w2 = test::integers("fc2.weight", {2, 5}),
               dy = test::integers("dy", {3, 2});
    auto value = [&](test::array const& weight) {  // of the loss as a function of the second weight
        auto const h = test::product(x, w1, true);
        auto const a = test::generate({3, 5}, [&](shape const& i) { return std::max(0.0, test::at(h, i)); });
        auto const y = test::product(a, weight, true);
        double sum = 0;
        for (std::size_t i = 0; i < y.data.size(); ++i) sum += y.data[i] * dy.data[i];
        return sum;
    };
    for (std::size_t i = 0; i < w2.data.size(); ++i) {
        auto moved = w2;
        moved.data[i] += 1;
        CHECK(sinks.at("fc2.weight.grad").data[i] == value(moved) - value(w2));
    }
}

TEST_CASE("names are kept unique, explicit ones included") {
    graph_builder b;
    auto const x = b.input("x", {2});
    b.relu(x);
    auto const second = b.relu(x);
    auto const third = b.named("relu", b.relu(x));
    auto const fourth = b.named("mine", b.relu(x));
    CHECK(b.graph()[second.node].name == "relu_2");
    CHECK(b.graph()[third.node].name == "relu_3");
    CHECK(b.graph()[fourth.node].name == "mine");
    b.input("x", {2});
    CHECK_NOTHROW(b.build());
}

TEST_CASE("arguments become operands and literals in schema order") {
    graph_builder b;
    auto const x = b.input("x", {2});
    auto const y = b.input("y", {2});
    std::vector<std::optional<value_ref>> const optional{std::nullopt, x};
    auto const r = b.call("test::op", {{"list", std::vector<value_ref>{x, y}}, {"optional", optional}, {"self", y},
                                       {"flag", true}, {"i", 1}, {"d", 1.0}, {"s", "text"}, {"none", none}, {"dims", shape{0}},
                                       {"type", dtype::int64}, {"device", symbol{"device", "cpu"}}},
                          {contiguous_meta({2}, dtype::float32)});
    auto const n = b.build()[r.node];
    CHECK(n.operands == std::vector<value_ref>{x, y, x, y});
    std::vector<argument_value> const wanted{operand_slots{{0, 1}}, operand_slots{{-1, 2}}, operand_slot{3}, true, std::int64_t{1}, 1.0,
                                             std::string("text"), std::monostate{}, shape{0}, dtype::int64, symbol{"device", "cpu"}};
    REQUIRE(n.operation.arguments.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(n.operation.arguments[i].value == wanted[i]);
}

TEST_CASE("shapes of the common ops are inferred") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto meta = [&](value_ref r) { return b.graph().meta(r); };
    auto sizes = [&](value_ref r) { return meta(r).sizes; };
    CHECK(sizes(b.linear(x, b.parameter("w", {7, 4}))) == shape{2, 3, 7});
    CHECK(sizes(b.view(x, {6, -1})) == shape{6, 4});
    CHECK(sizes(b.add(x, b.input("row", {3, 1}))) == shape{2, 3, 4});
    CHECK(sizes(b.sum(x, {-1, 0})) == shape{3});
    CHECK(sizes(b.sum(x, {1}, true)) == shape{2, 1, 4});
    auto const t = meta(b.t(b.input("m", {2, 5})));
    CHECK(t.sizes == shape{5, 2});
    CHECK(t.strides == shape{1, 5});
    auto const e = meta(b.call("aten::expand", {{"self", b.input("one", {1, 4})}, {"size", shape{3, 2, -1}}, {"implicit", false}}));
    CHECK(e.sizes == shape{3, 2, 4});
    CHECK(e.strides == shape{0, 0, 1});
    auto const p = meta(b.call("aten::permute", {{"self", x}, {"dims", shape{-1, 0, 1}}}));
    CHECK(p.sizes == shape{4, 2, 3});
    CHECK(p.strides == shape{1, 12, 4});
    CHECK(meta(b.cast(x, dtype::bfloat16)).type == dtype::bfloat16);
    auto const logits = b.input("logits", {2, 3, 9}, dtype::bfloat16);
    auto const target = b.target("target", {2, 3});
    auto const loss =
        b.call("cantle::cross_entropy", {{"logits", logits}, {"target", target}, {"ignore_index", -100}, {"reduction", "mean"}});
    CHECK(meta({loss.node, 0}) == contiguous_meta({}, dtype::bfloat16));
    CHECK(meta({loss.node, 1}) == contiguous_meta({2, 3}, dtype::float32));
}

TEST_CASE("pointwise types promote as in PyTorch") {
    graph_builder b;
    auto type = [&](dtype a, shape sa, dtype c, shape sc) { return b.graph().meta(b.add(b.input("a", sa, a), b.input("b", sc, c))).type; };
    CHECK(type(dtype::bfloat16, {2}, dtype::float32, {2}) == dtype::float32);
    CHECK(type(dtype::bfloat16, {2}, dtype::float16, {2}) == dtype::float32);
    CHECK(type(dtype::bfloat16, {2}, dtype::float32, {}) == dtype::bfloat16);  // a scalar does not widen
    CHECK(type(dtype::int64, {2}, dtype::bfloat16, {}) == dtype::bfloat16);
    CHECK(type(dtype::boolean, {2}, dtype::int32, {}) == dtype::int32);
    CHECK(type(dtype::uint8, {2}, dtype::int8, {2}) == dtype::int16);
}

TEST_CASE("operands that do not fit and unknown ops without metas are refused with their shapes") {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto refusal = [](auto f) -> std::string {
        try { f(); } catch (error const& e) { CHECK(e.number() == 303); return e.what(); }
        return {};
    };
    CHECK(refusal([&] { b.linear(x, b.parameter("w", {5, 4})); }).find("[2, 3] [5, 4]") != std::string::npos);
    CHECK(refusal([&] { b.view(x, {7}); }).find("number of elements") != std::string::npos);
    CHECK(refusal([&] { b.view(x, {-1, -1}); }).find("is no size") != std::string::npos);
    CHECK(refusal([&] { b.add(x, b.input("y", {4})); }).find("broadcast") != std::string::npos);
    CHECK(refusal([&] { b.sum(x, {2}); }).find("out of range") != std::string::npos);
    CHECK(refusal([&] { b.call("test::unknown", {{"self", x}}); }).find("give the output metas") != std::string::npos);
}
