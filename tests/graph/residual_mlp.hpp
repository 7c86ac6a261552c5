// SPDX-License-Identifier: BSL-1.0
#pragma once
// The graph on which planner and reports are tested: a residual MLP, forward and backward.
#include <cantle/graph/builder.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace cantle::test {

// h -> [ w1 -> relu -> w2 -> + h ] x layers -> sum -> loss, and the backward pass. x [64, 128, width].
inline training_graph residual_mlp(int layers, std::int64_t width = 512) {
    graph_builder b;
    b.origin({"mlp", "train", "bf16", 64, 128, {}});
    auto h = b.input("x", {64, 128, width}, dtype::bfloat16);
    std::vector<value_ref> w1, w2, in, act, y;
    for (int i = 0; i < layers; ++i) {
        auto const m = "layers." + std::to_string(i);
        b.in_module(m);
        w1.push_back(b.parameter(m + ".w1.weight", {4 * width, width}, dtype::bfloat16));
        w2.push_back(b.parameter(m + ".w2.weight", {width, 4 * width}, dtype::bfloat16));
        in.push_back(h);
        act.push_back(b.relu(b.linear(h, w1.back())));
        y.push_back(b.linear(act.back(), w2.back()));
        h = b.add(y.back(), h);
    }
    b.in_module("");
    b.loss(b.call("aten::sum", {{"self", h}, {"dtype", none}}));
    b.backward();
    auto g = b.call("aten::expand", {{"self", b.ones({}, dtype::bfloat16)}, {"size", shape{64, 128, width}}, {"implicit", false}});
    for (int k = layers; k-- > 0;) {
        auto const i = static_cast<std::size_t>(k);
        b.in_module("layers." + std::to_string(k));
        auto const ga = b.linear_grad_input(g, w2[i], y[i]);
        b.gradient(w2[i], b.linear_grad_weight(g, act[i], y[i]));
        auto const gu = b.relu_backward(ga, act[i]);
        b.gradient(w1[i], b.linear_grad_weight(gu, in[i]));
        g = b.add(g, b.linear_grad_input(gu, w1[i]));
    }
    return b.build();
}

}  // namespace cantle::test
