// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/mixed_precision.hpp>

#include "interpreter.hpp"

#include <algorithm>
#include <string>

using namespace cantle;

namespace {

constexpr dtype bf16 = dtype::bfloat16, fp32 = dtype::float32;

//  x bf16 -- linear -- mul scale -- y;  w used forward and backward; norm (fp32), table (buffer) and ids stay as they are
training_graph captured() {
    graph_builder b;
    auto const x = b.input("x", {2, 3, 4}, bf16);
    auto const w = b.parameter("layers.0.wq.weight", {4, 4}, bf16);
    auto const norm = b.parameter("norm.weight", {4}, fp32);
    auto const table = b.buffer("table", {4}, bf16);
    b.input("ids", {2}, dtype::int64);
    auto const y = b.linear(x, w);
    auto const s = b.mul(b.mul(y, table), norm);
    auto const dy = b.tangent("dy", b.output(s, "y"));
    b.backward();
    auto const d = b.cast(b.mul(dy, norm), bf16);
    b.gradient(x, b.linear_grad_input(d, w, y));
    b.gradient(w, b.linear_grad_weight(d, x, y));
    b.gradient(norm, b.sum(dy, {0, 1}));
    return b.build();
}
graph_node const& named(training_graph const& g, std::string const& name) {
    auto const at = std::find_if(g.nodes.begin(), g.nodes.end(), [&](auto const& n) { return n.name == name; });
    REQUIRE_MESSAGE(at != g.nodes.end(), name);
    return *at;
}
std::string operand_name(training_graph const& g, graph_node const& n, std::size_t i) { return g[n.operands[i].node].name; }

}  // namespace

TEST_CASE("a bf16 parameter is stored in fp32 and cast once for all its users") {
    auto const g = mixed_precision(captured());
    CHECK_NOTHROW(validate(g));
    CHECK(g.size() == captured().size() + 2);
    CHECK(named(g, "layers.0.wq.weight").outputs[0] == contiguous_meta({4, 4}, fp32));
    auto const& cast = named(g, "layers.0.wq.weight/cast");
    CHECK(cast.operation.name == "aten::_to_copy");
    CHECK(cast.operation.get<dtype>("dtype", fp32) == bf16);
    CHECK(cast.outputs[0] == contiguous_meta({4, 4}, bf16));
    CHECK(cast.module_path == "layers.0.wq");
    CHECK(cast.in_phase == phase::forward);
    CHECK(operand_name(g, cast, 0) == "layers.0.wq.weight");
    CHECK(operand_name(g, named(g, "linear"), 1) == cast.name);
    CHECK(operand_name(g, named(g, "linear_grad_input"), 1) == cast.name);
    for (auto const& n : g.nodes)
        for (std::size_t i = 0; i < n.operands.size(); ++i)
            if (n.name != cast.name) CHECK(operand_name(g, n, i) != "layers.0.wq.weight");
}

TEST_CASE("its gradient is cast to fp32 before the sink and paired with the parameter's cast") {
    auto const g = mixed_precision(captured());
    auto const& sink = named(g, "layers.0.wq.weight.grad");
    auto const& cast = named(g, "layers.0.wq.weight.grad/cast");
    CHECK(sink.outputs[0] == contiguous_meta({4, 4}, fp32));
    CHECK(g[*sink.of].name == "layers.0.wq.weight");
    CHECK(operand_name(g, sink, 0) == cast.name);
    CHECK(operand_name(g, cast, 0) == "linear_grad_weight");
    CHECK(cast.in_phase == phase::backward);
    CHECK(cast.module_path == "layers.0.wq");
    CHECK(g[cast.forward_node.value()].name == "layers.0.wq.weight/cast");
    CHECK(g[named(g, "linear_grad_weight").forward_node.value()].name == "linear");
    CHECK(g[*named(g, "dy").of].name == "y");
}

TEST_CASE("buffers, integers, fp32 parameters and gradients of inputs stay") {
    auto const g = mixed_precision(captured());
    CHECK(named(g, "table").outputs[0].type == bf16);
    CHECK(named(g, "ids").outputs[0].type == dtype::int64);
    CHECK(named(g, "x.grad").outputs[0].type == bf16);
    CHECK(operand_name(g, named(g, "norm.weight.grad"), 0) == "sum");
    CHECK(operand_name(g, named(g, "mul_2"), 1) == "norm.weight");
}

TEST_CASE("mixed precision twice is mixed precision once, and the values are the same") {
    auto const g = captured();
    auto const m = mixed_precision(g);
    CHECK(graph_to_json(mixed_precision(m)) == graph_to_json(m));
    CHECK(graph_to_json(mixed_precision(g, fp32, fp32)) == graph_to_json(g));
    CHECK(test::run(m) == test::run(g));
    CHECK(graph_to_json(canonicalize(m)) == graph_to_json(mixed_precision(canonicalize(g))));
}

// w also leaves as an output, and its gradient is in fp32 already: no second cast.
TEST_CASE("a gradient that is fp32 already gets no cast and a parameter may be an output") {
    graph_builder b;
    auto const w = b.parameter("w", {4}, bf16);
    b.output(w, "w out");
    auto const g = b.backward().gradient(w, b.cast(w, bf16));
    b.graph()[g.node].operands[0] = b.ones({4});  // a constant after its user: put it in order below
    b.graph()[g.node].outputs[0].type = fp32;
    auto const ordered = reorder(b.graph(), topological_order(b.graph()));
    auto const m = mixed_precision(ordered);
    CHECK_NOTHROW(validate(m));
    CHECK(m.size() == ordered.size() + 1);
    CHECK(operand_name(m, named(m, "w out"), 0) == "w/cast");
    CHECK(named(m, "w out").outputs[0].type == bf16);
    CHECK(operand_name(m, named(m, "w.grad"), 0) == "ones");
}
