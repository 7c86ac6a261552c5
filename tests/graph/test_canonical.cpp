// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>

#include "interpreter.hpp"
#include "random_graph.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace cantle;

namespace {

std::size_t count_of(training_graph const& g, std::string const& op_name) {
    auto const is = [&](graph_node const& n) { return n.operation.name == op_name; };
    return static_cast<std::size_t>(std::count_if(g.nodes.begin(), g.nodes.end(), is));
}
graph_node const& only(training_graph const& g, std::string const& op_name) {
    REQUIRE_MESSAGE(count_of(g, op_name) == 1, op_name);
    return *std::find_if(g.nodes.begin(), g.nodes.end(), [&](auto const& n) { return n.operation.name == op_name; });
}
graph_node const& named(training_graph const& g, std::string const& name) {
    auto const at = std::find_if(g.nodes.begin(), g.nodes.end(), [&](auto const& n) { return n.name == name; });
    REQUIRE_MESSAGE(at != g.nodes.end(), name);
    return *at;
}

/// What every canonical form must satisfy; returns it.
training_graph checked(training_graph const& g, bool compute = true) {
    validate(g);
    auto const c = canonicalize(g);
    CHECK_NOTHROW(validate(c));
    CHECK(graph_to_json(canonicalize(c)) == graph_to_json(c));
    if (compute) CHECK(test::run(c) == test::run(g));
    return c;
}

value_ref addmm(graph_builder& b, value_ref bias, value_ref x, value_ref w, argument_value beta = std::int64_t{1}) {
    auto const r = b.call("aten::addmm", {{"self", bias}, {"mat1", x}, {"mat2", w}, {"beta", 1}, {"alpha", 1}});
    b.graph()[r.node].operation.arguments[3].value = beta;
    return r;
}
value_ref unsafe_view(graph_builder& b, value_ref x, shape size) { return b.call("aten::_unsafe_view", {{"self", x}, {"size", size}}); }

}  // namespace

// x [2,3,4] -> view [6,4] --+
//                           mm [6,5] -> _unsafe_view [2,3,5] -> y
// w [5,4] -> t [4,5] -------+
// and back: dy -> view [6,5] -> mm w -> view [2,3,4];  t(view dy) mm view x
TEST_CASE("E1: a linear that was flattened around a matrix product is whole over batch and sequence, forward and backward") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const w = b.parameter("fc.weight", {5, 4});
    b.in_module("fc");
    auto const x2 = b.view(x, {6, 4});
    auto const product = b.named("fc/product", b.mm(x2, b.t(w)));
    auto const y = unsafe_view(b, product, {2, 3, 5});
    auto const out = b.output(y, "y");
    b.backward();
    auto const dy = b.tangent("dy", out);
    auto const dx = b.view(b.named("fc/dx", b.mm(b.view(dy, {6, 5}), b.t(b.t(w)), product)), {2, 3, 4});
    auto const dw = b.t(b.t(b.named("fc/dw", b.mm(b.t(b.view(dy, {6, 5})), b.view(x, {6, 4}), product))));
    b.gradient(x, dx);
    b.gradient(w, dw);
    auto const c = checked(b.build());
    CHECK(c.size() == 9);  // x, w, dy; linear, its two gradients; three sinks
    auto const& linear = only(c, "aten::linear");
    CHECK(linear.name == "fc/product");
    CHECK(linear.outputs[0].sizes == shape{2, 3, 5});
    CHECK(c[linear.operands[0].node].name == "x");
    CHECK(c[linear.operands[1].node].name == "fc.weight");
    CHECK(linear.operation.find("bias")->index() == 0);
    auto const& grad_input = only(c, "cantle::linear_grad_input");
    CHECK(grad_input.name == "fc/dx");
    CHECK(grad_input.outputs[0].sizes == shape{2, 3, 4});
    CHECK(c[grad_input.forward_node.value()].name == "fc/product");
    auto const& grad_weight = only(c, "cantle::linear_grad_weight");
    CHECK(grad_weight.outputs[0].sizes == shape{5, 4});
    CHECK(c[grad_weight.operands[0].node].name == "dy");
    CHECK(c[grad_weight.operands[1].node].name == "x");
    CHECK(c[grad_weight.forward_node.value()].name == "fc/product");
}

// The size of the case: a flattened [16*2048, D] is gone altogether.
TEST_CASE("E1: no matrix of 32768 rows is left of x[16,2048,D]") {
    graph_builder b;
    auto const x = b.input("x", {16, 2048, 64}, dtype::bfloat16);
    auto const w = b.parameter("w", {128, 64}, dtype::bfloat16);
    b.output(b.view(b.mm(b.view(x, {-1, 64}), b.t(w)), {16, 2048, 128}));
    auto const c = checked(b.build(), false);
    for (auto const& n : c.nodes)
        for (auto const& m : n.outputs) CHECK(std::find(m.sizes.begin(), m.sizes.end(), 32768) == m.sizes.end());
    CHECK(only(c, "aten::linear").outputs[0] == contiguous_meta({16, 2048, 128}, dtype::bfloat16));
}

// x [2,3,4] -> view [6,4] -> addmm(bias [5], ., t(w)) -> view [2,3,5] -> y;  bias gradient: sum(view dy, [0], keepdim) [1,5] -> view [5]
TEST_CASE("E6: the bias of an addmm is a separate add after the whole linear and its gradient a sum over the unflattened dims") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const w = b.parameter("fc.weight", {5, 4});
    auto const bias = b.parameter("fc.bias", {5});
    b.in_module("fc");
    auto const product = addmm(b, bias, b.view(x, {6, 4}), b.t(w));
    auto const out = b.output(b.view(product, {2, 3, 5}), "y");
    auto const dy = b.backward().tangent("dy", out);
    b.gradient(bias, b.view(b.sum(b.view(dy, {6, 5}), {0}, true), {5}));
    auto const c = checked(b.build());
    auto const& linear = only(c, "aten::linear");
    auto const& add = only(c, "aten::add.Tensor");
    CHECK(linear.outputs[0].sizes == shape{2, 3, 5});
    CHECK(c[add.operands[0].node].name == linear.name);
    CHECK(c[add.operands[1].node].name == "fc.bias");
    CHECK(add.operation.get<std::int64_t>("alpha", 0) == 1);
    auto const& sum = only(c, "aten::sum.dim_IntList");
    CHECK(sum.operation.get<shape>("dim", {}) == shape{0, 1});
    CHECK_FALSE(sum.operation.get<bool>("keepdim", true));
    CHECK(c[sum.operands[0].node].name == "dy");
    CHECK(count_of(c, "aten::view") == 0);
    CHECK(count_of(c, "aten::addmm") == 0);
}

TEST_CASE("E6: the bias of a linear and of a two-dimensional addmm is split off too, other scalings stay") {
    graph_builder b;
    auto const x = b.input("x", {3, 4});
    auto const w = b.parameter("w", {5, 4});
    auto const wt = b.parameter("wt", {4, 5});
    auto const bias = b.parameter("bias", {5});
    auto const residual = b.input("r", {3, 5});
    b.output(b.call("aten::linear", {{"input", x}, {"weight", w}, {"bias", bias}}), "linear");
    b.output(addmm(b, bias, x, wt), "addmm");          // as GPT-2's Conv1D has it: the weight is [K,N]
    b.output(addmm(b, residual, x, wt), "residual");
    b.output(addmm(b, bias, x, b.t(w), 2.0), "scaled");
    auto const c = checked(b.build());
    CHECK(count_of(c, "aten::linear") == 2);           // x with w; x with t(wt), which two products share
    CHECK(count_of(c, "aten::add.Tensor") == 3);
    CHECK(count_of(c, "aten::addmm") == 1);
    CHECK(count_of(c, "aten::t") == 2);                // of wt for its linear, of w for the addmm that stays
}

// Conv1D of GPT-2: weight [K,N], no transpose in the forward product, one in the backward product.
TEST_CASE("a layer whose weight is stored transposed becomes a linear with an explicit transpose") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const w = b.parameter("w", {4, 5});
    auto const out = b.output(b.view(b.mm(b.view(x, {6, 4}), w), {2, 3, 5}), "y");
    auto const dy = b.backward().tangent("dy", out);
    auto const d2 = b.view(dy, {6, 5});
    b.gradient(x, b.view(b.mm(d2, b.t(w)), {2, 3, 4}));
    b.gradient(w, b.mm(b.t(b.view(x, {6, 4})), d2));
    auto const c = checked(b.build());
    CHECK(count_of(c, "aten::mm") == 0);
    CHECK(count_of(c, "aten::view") == 0);
    CHECK(count_of(c, "aten::t") == 1);
    CHECK(c[only(c, "cantle::linear_grad_input").operands[1].node].operation.name == "aten::t");
    CHECK(only(c, "cantle::linear_grad_weight").outputs[0].sizes == shape{4, 5});
}

// [2,3,2,4] -> view [2,3,8] -> view [6,8] -> mm -> view [2,3,2,5]: heads on both sides.
TEST_CASE("flattening and splitting of heads around a linear become one view on each side") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 2, 4});
    auto const w = b.parameter("w", {10, 8});
    b.output(b.view(b.view(b.mm(b.view(b.view(x, {2, 3, 8}), {6, 8}), b.t(w)), {2, 3, 10}), {2, 3, 2, 5}));
    auto const c = checked(b.build());
    CHECK(only(c, "aten::linear").outputs[0].sizes == shape{2, 3, 10});
    CHECK(count_of(c, "aten::view") == 2);
}

// [2,3,2,2,2] -> view [12,4]: the rows are the first three dims, so the linear runs over [2,3,2].
TEST_CASE("a linear is unflattened over as many leading dims as its rows have") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 2, 2, 2});
    auto const w = b.parameter("w", {5, 4});
    b.output(b.view(b.mm(b.view(x, {12, 4}), b.t(w)), {2, 3, 2, 5}));
    auto const c = checked(b.build());
    CHECK(only(c, "aten::linear").outputs[0].sizes == shape{2, 3, 2, 5});
    CHECK(only(c, "aten::view").outputs[0].sizes == shape{2, 3, 2, 4});
}

// [6,2,2] -> view [12,2] has rows that are two dims; [6,4] -> [12,2] has rows that are no run of dims.
TEST_CASE("rows that are no run of leading dims stay flat") {
    graph_builder b;
    auto const w = b.parameter("w", {5, 2});
    b.output(b.view(b.mm(b.view(b.input("x", {6, 2, 2}), {12, 2}), b.t(w)), {6, 2, 5}), "runs");
    b.output(b.mm(b.view(b.input("y", {4, 3, 4}), {24, 2}), b.t(w)), "no run");
    auto const c = checked(b.build());
    std::vector<shape> sizes;
    for (auto const& n : c.nodes)
        if (n.operation.name == "aten::linear") sizes.push_back(n.outputs[0].sizes);
    CHECK(sizes == std::vector<shape>{{6, 2, 5}, {24, 5}});
}

TEST_CASE("matmul with a matrix and a product with an expanded weight are linears") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const w = b.parameter("w", {5, 4});
    b.output(b.call("aten::matmul", {{"self", x}, {"other", b.t(w)}}, {contiguous_meta({2, 3, 5}, dtype::float32)}), "matmul");
    auto const expanded = b.call("aten::expand", {{"self", b.t(w)}, {"size", shape{2, 4, 5}}, {"implicit", false}});
    b.output(b.call("aten::bmm", {{"self", x}, {"mat2", expanded}}), "bmm");
    auto const c = checked(b.build());
    CHECK(only(c, "aten::linear").outputs[0].sizes == shape{2, 3, 5});  // one: both compute the same
}

TEST_CASE("a product with a weight that is stretched within its rows stays a product") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto expanded = [&](char const* name, shape s) {
        return b.call("aten::expand", {{"self", b.parameter(name, std::move(s))}, {"size", shape{2, 4, 5}}, {"implicit", false}});
    };
    b.output(b.call("aten::bmm", {{"self", x}, {"mat2", expanded("row", {1, 5})}}));
    b.output(b.call("aten::bmm", {{"self", x}, {"mat2", expanded("column", {4, 1})}}));
    b.output(b.call("aten::bmm", {{"self", x}, {"mat2", expanded("batch", {1, 4, 5})}}));
    auto const c = checked(b.build());
    CHECK(count_of(c, "aten::bmm") == 2);
    CHECK(count_of(c, "aten::linear") == 1);
}

// A node of a known name whose metas are not what the op gives. validate() refuses it; a graph that nobody validated must not be rewritten
// into another one.
TEST_CASE("a node that does not keep to the shapes of its op is left alone") {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto const w = b.parameter("w", {3});
    auto odd = [&](char const* name, std::vector<call_argument> const& arguments, shape out) {
        auto const r = b.call(name, arguments, {contiguous_meta(std::move(out), dtype::float32)});
        b.output(r);
        return r;
    };
    auto const view = odd("aten::view", {{"self", x}, {"size", shape{7}}}, {7});
    odd("aten::view", {{"self", view}, {"size", shape{2, 3}}}, {2, 3});
    odd("aten::mm", {{"self", x}, {"mat2", w}}, {2, 5});
    odd("aten::addmm", {{"self", w}, {"mat1", x}, {"mat2", x}}, {2, 3});
    odd("aten::t", {{"self", odd("aten::t", {{"self", x}}, {2, 3})}}, {4});
    odd("aten::linear", {{"input", none}, {"weight", w}, {"bias", none}}, {2});
    odd("aten::expand", {{"self", x}, {"size", shape{2}}}, {2});
    odd("cantle::linear_grad_weight", {{"grad", x}, {"input", w}}, {3, 3});
    CHECK_THROWS_AS(b.build(), error);
    auto const g = b.graph();
    CHECK(canonicalize(g).size() == g.size());
}

TEST_CASE("linears that are whole but see flattened tensors are unflattened") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const w = b.parameter("w", {5, 4});
    auto const y = b.view(b.linear(b.view(x, {6, 4}), w), {2, 3, 5});
    auto const dy = b.backward().tangent("dy", b.forward().output(y));
    b.backward();
    b.gradient(x, b.view(b.linear_grad_input(b.view(dy, {6, 5}), w), {2, 3, 4}));
    b.gradient(w, b.linear_grad_weight(b.view(dy, {6, 5}), b.view(x, {6, 4})));
    auto const c = checked(b.build());
    CHECK(c.size() == 9);
    CHECK(only(c, "aten::linear").outputs[0].sizes == shape{2, 3, 5});
}

TEST_CASE("a product of plain matrices in the forward phase stays a product") {
    graph_builder b;
    auto const x = b.input("x", {3, 4});
    b.output(b.mm(x, b.input("y", {4, 5})));
    b.output(b.mm(b.t(x), b.input("z", {3, 5})));
    CHECK(count_of(checked(b.build()), "aten::mm") == 2);
}

// x -> view three times -> three products: one view is left, as its three users see equal tensors.
TEST_CASE("equal pure nodes are merged, equal random ones are not") {
    graph_builder b;
    auto const x = b.input("x", {4, 6});
    for (auto const name : {"q", "k", "v"}) b.output(b.mul(b.view(x, {2, 12}), b.input(name, {2, 12})), std::string(name) + " out");
    auto dropout = [&] { return b.call("aten::bernoulli", {{"self", x}, {"generator", none}}); };
    b.output(b.mul(dropout(), dropout()), "dropped");
    auto const c = checked(b.build());
    CHECK(count_of(c, "aten::view") == 1);
    CHECK(count_of(c, "aten::bernoulli") == 2);
    CHECK(count_of(c, "aten::mul.Tensor") == 4);
}

TEST_CASE("ops that differ in an argument, its type or a meta are not merged") {
    graph_builder b;
    auto const x = b.input("x", {4, 6});
    auto scale = [&](call_value v) { return b.call("aten::mul.Scalar", {{"self", x}, {"other", v}}); };
    b.output(scale(2), "a");
    b.output(scale(2.0), "b");
    b.output(scale(3), "c");
    b.output(b.cast(x, dtype::bfloat16), "d");
    b.output(b.cast(x, dtype::float16), "e");
    b.output(b.cast(x, dtype::float16), "f");
    std::vector<call_argument> const self{{"self", x}};
    b.output(b.call("aten::clone", self, {contiguous_meta({4, 6}, dtype::float32)}), "g");
    b.output(b.call("aten::clone", self, {{{4, 6}, {1, 4}, dtype::float32, true}}), "h");  // other strides
    auto const c = checked(b.build(), false);
    CHECK(count_of(c, "aten::clone") == 2);
    CHECK(count_of(c, "aten::mul.Scalar") == 3);
    CHECK(count_of(c, "aten::_to_copy") == 2);
}

TEST_CASE("a backward node merges into an equal forward node unless recomputation is to be kept") {
    graph_builder b;
    auto const x = b.input("x", {4});
    auto const y = b.relu(x);
    auto const out = b.output(y, "y");
    auto const dy = b.backward().tangent("dy", out);
    b.gradient(x, b.relu_backward(dy, b.relu(x), y));
    auto const g = b.build();
    auto const c = checked(g);
    CHECK(only(c, "aten::relu").in_phase == phase::forward);
    CHECK(count_of(canonicalize(g, {.merge_across_phases = false}), "aten::relu") == 2);
}

TEST_CASE("a forward node that comes after its backward twin makes the merged node a forward node without a link") {
    graph_builder b;
    auto const x = b.input("x", {4});
    auto const y = b.call("aten::neg", {{"self", x}});
    b.backward().output(b.call("aten::relu", {{"self", x}}, y), "early");
    b.forward().output(b.relu(x), "late");
    auto const c = checked(b.build(), false);
    CHECK(only(c, "aten::relu").in_phase == phase::forward);
    CHECK_FALSE(only(c, "aten::relu").forward_node.has_value());
}

TEST_CASE("identities, no-op views and pairs of transposes vanish and links do not point to them") {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto const alias = b.call("aten::alias", {{"self", x}});
    auto const y = b.view(b.call("aten::detach", {{"self", alias}}), {2, 3});
    auto const swapped = b.call("aten::transpose.int", {{"self", y}, {"dim0", -1}, {"dim1", 0}});
    auto const back = b.call("aten::permute", {{"self", swapped}, {"dims", shape{1, 0}}});
    auto const e = b.call("aten::expand", {{"self", back}, {"size", shape{2, -1}}, {"implicit", false}});
    b.backward().output(b.call("aten::relu", {{"self", e}}, alias), "y");
    auto const c = checked(b.build());
    REQUIRE(c.size() == 3);
    CHECK(c[1].operation.name == "aten::relu");
    CHECK_FALSE(c[1].forward_node.has_value());
}

// A permute that is not undone and a view that changes layout stay.
TEST_CASE("views that change something stay") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    auto const p = b.call("aten::permute", {{"self", x}, {"dims", shape{1, 2, 0}}});
    b.output(b.call("aten::permute", {{"self", p}, {"dims", shape{1, 2, 0}}}), "turned");
    b.output(b.view(b.call("aten::clone", {{"self", p}, {"memory_format", none}}), {3, 8}), "flat");
    auto const c = checked(b.build());
    CHECK(count_of(c, "aten::permute") == 2);
    CHECK(count_of(c, "aten::view") == 1);
    CHECK(count_of(c, "aten::clone") == 1);
}

TEST_CASE("a view of a view is one view with its sizes spelled out") {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4});
    b.output(b.view(b.view(b.view(x, {24}), {6, 4}), {8, -1}), "a");
    b.output(b.call("aten::reshape", {{"self", x}, {"shape", shape{8, 3}}}, {contiguous_meta({8, 3}, dtype::float32)}), "b");
    auto const c = checked(b.build());
    auto const& view = only(c, "aten::view");
    CHECK(view.operation.get<shape>("size", {}) == shape{8, 3});
    CHECK(c[view.operands[0].node].name == "x");
}

TEST_CASE("dead nodes and constants go; parameters, inputs and sinks stay") {
    graph_builder b;
    auto const x = b.input("x", {2});
    b.parameter("unused.weight", {3});
    b.buffer("unused.buffer", {3});
    b.relu(b.mul(x, b.constant("two", {}, {2.0})));
    auto const y = b.output(x, "y");
    b.tangent("dy", y);
    auto const c = checked(b.build());
    CHECK(c.size() == 5);
    CHECK(named(c, "dy").of.has_value());
    CHECK(c[*named(c, "dy").of].name == "y");
}

TEST_CASE("a dead random op stays, since its removal would change the random numbers of others") {
    graph_builder b;
    auto const x = b.input("x", {2});
    b.call("aten::bernoulli", {{"self", x}, {"generator", none}});
    CHECK(count_of(checked(b.build()), "aten::bernoulli") == 1);
}

TEST_CASE("a tangent's output may come later in the order and is still found after the pass") {
    graph_builder b;
    auto const x = b.input("x", {2});
    b.relu(x);  // dead: places shift
    graph_node tangent;
    tangent.operation.name = "cantle::tangent";
    tangent.outputs = {contiguous_meta({2}, dtype::float32)};
    tangent.role = node_role::tangent;
    tangent.name = "dy";
    tangent.of = 4;
    b.graph().nodes.push_back(tangent);
    b.output(b.relu(x), "y");
    auto const c = checked(b.build());
    CHECK(c[*named(c, "dy").of].name == "y");
}

// Random chains of the ops that canonicalize() knows, over tensors [2,3,4] and their flattenings, in both phases.
TEST_CASE("random graphs compute the same after canonicalisation, which is idempotent and deterministic") {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        test::random_source random(seed);
        graph_builder b;
        std::vector<value_ref> values{b.input("x", {2, 3, 4}), b.input("y", {6, 4}), b.parameter("w", {4, 4}), b.parameter("u", {4, 4}),
                                      b.parameter("bias", {4}), b.input("z", {2, 3, 2, 2})};
        auto pick = [&](std::size_t rank) -> std::optional<value_ref> {
            std::vector<value_ref> fit;
            for (auto v : values)
                if (rank == 0 || b.graph().meta(v).rank() == rank) fit.push_back(v);
            if (fit.empty()) return std::nullopt;
            return fit[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(fit.size())))];
        };
        for (int i = 0; i < 30; ++i) {
            if (i == 15) b.backward();
            try {
                auto const any = *pick(0);
                auto const& sizes = b.graph().meta(any).sizes;
                std::optional<value_ref> r;
                switch (random.below(14)) {
                    case 0: r = b.mm(*pick(2), *pick(2)); break;
                    case 1: r = b.mm(*pick(2), b.t(*pick(2))); break;
                    case 2: r = b.mm(b.t(*pick(2)), *pick(2)); break;
                    case 3: r = addmm(b, *pick(random.one_in(3) ? 2 : 1), *pick(2), *pick(2)); break;
                    case 4: r = b.t(*pick(2)); break;
                    case 5:
                    case 6:
                        if (element_count(sizes) == 24) {
                            shape const to[] = {{6, 4}, {2, 3, 4}, {2, 3, 2, 2}, {4, 6}, {1, 6, 4}};
                            auto const name = random.one_in(2) ? "aten::view" : "aten::_unsafe_view";
                            r = b.call(name, {{"self", any}, {"size", to[random.below(5)]}});
                        } else if (element_count(sizes) == 4) {
                            r = b.view(any, sizes.size() == 1 ? shape{1, 4} : shape{4});
                        }
                        break;
                    case 7: r = b.add(any, *pick(0)); break;
                    case 8: r = b.relu(any); break;
                    case 9: r = b.sum(*pick(2), {random.one_in(2) ? 0 : -2}, random.one_in(2)); break;
                    case 10: r = b.call("aten::transpose.int", {{"self", any}, {"dim0", 0}, {"dim1", -1}}); break;
                    case 11: r = b.call("aten::alias", {{"self", any}}); break;
                    case 12: r = b.linear(any, *pick(2)); break;
                    default: r = b.linear_grad_weight(any, *pick(0)); break;
                }
                if (r && b.graph().meta(*r).elements() < 200) values.push_back(*r);
            } catch (error const&) {  // operands that do not fit: try another op
            }
        }
        for (std::size_t i = 0; i < 6; ++i) b.output(values[values.size() - 1 - i], "out" + std::to_string(i));
        auto const g = b.build();
        auto const c = checked(g);
        CHECK(graph_to_json(canonicalize(g)) == graph_to_json(c));
    }
}
