// SPDX-License-Identifier: BSL-1.0
// Rows of layer, RMS, group and batch norm for one axis.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

example_op layer_norm(bool weight, bool bias) {
    auto e = example_op("aten::native_layer_norm").tensor("input", {4, 6, 8}).literal("normalized_shape", shape{8});
    weight ? e.tensor("weight", {8}) : e.literal("weight", none);
    bias ? e.tensor("bias", {8}) : e.literal("bias", none);
    return e.out({4, 6, 8}).out({4, 6, 1}).out({4, 6, 1});
}
example_op group_norm_backward(std::vector<bool> mask) {
    auto e = example_op("aten::native_group_norm_backward")
                 .tensor("grad_out", {4, 12, 5})
                 .tensor("input", {4, 12, 5})
                 .tensor("mean", {4, 6})
                 .tensor("rstd", {4, 6})
                 .tensor("weight", {12})
                 .literal("output_mask", mask);
    mask[0] ? e.out({4, 12, 5}) : e.no_out();
    for (std::size_t i : {1, 2}) mask[i] ? e.out({12}) : e.no_out();
    return e;
}
example_op batch_norm(bool training, bool functional = false) {
    auto e = example_op(functional ? "aten::_native_batch_norm_legit_functional" : "aten::native_batch_norm")
                 .tensor("input", {4, 6, 8})
                 .tensor("weight", {6})
                 .tensor("bias", {6})
                 .tensor("running_mean", {6})
                 .tensor("running_var", {6})
                 .literal("training", training)
                 .out({4, 6, 8})
                 .out({training ? 6 : 0})
                 .out({training ? 6 : 0});
    return functional ? e.out({6}).out({6}) : e;
}
example_op batch_norm_backward(bool training, std::vector<bool> mask = {true, true, true}) {
    auto e = example_op("aten::native_batch_norm_backward")
                 .tensor("grad_out", {4, 6, 8})
                 .tensor("input", {4, 6, 8})
                 .tensor("weight", {6})
                 .tensor("running_mean", {6})
                 .tensor("running_var", {6})
                 .tensor("save_mean", {training ? 6 : 0})
                 .tensor("save_invstd", {training ? 6 : 0})
                 .literal("train", training)
                 .literal("output_mask", mask);
    mask[0] ? e.out({4, 6, 8}) : e.no_out();
    for (std::size_t i : {1, 2}) mask[i] ? e.out({6}) : e.no_out();
    return e;
}
axis_row row_of(example_op const& e, std::string const& text) {
    for (auto const& row : standard_rules().rows(e.query(), 2))
        if (text_of(row) == text) return row;
    FAIL("no row " << text);
    return {};
}
}  // namespace

TEST_CASE("layer_norm is affine in weight and bias: both Partial(sum) together, averages one by one, bounds in the bias") {
    CHECK(rows_of(layer_norm(true, true), 2) == texts{"R, R, R -> R, R, R", "S0, R, R -> S0, S0, S0", "S1, R, R -> S1, S1, S1",
                                                      "R, P, P -> P, R, R", "R, P(avg), R -> P(avg), R, R", "R, R, P(avg) -> P(avg), R, R",
                                                      "R, P(avg), P(avg) -> P(avg), R, R", "R, R, P(max) -> P(max), R, R",
                                                      "R, R, P(min) -> P(min), R, R"});
    CHECK(has(rows_of(layer_norm(true, false), 2), "R, P -> P, R, R"));
    CHECK_FALSE(has(rows_of(layer_norm(false, true), 2), "R, P -> P, R, R"));  // x^ + b would count x^ once per rank
    CHECK(has(rows_of(layer_norm(false, true), 2), "R, P(avg) -> P(avg), R, R"));
}

TEST_CASE("A35: of layer_norm backward only what is asked for is placed; the weight reaches the gradient of the input alone") {
    auto e = example_op("aten::native_layer_norm_backward")
                 .tensor("grad_out", {4, 8})
                 .tensor("input", {4, 8})
                 .literal("normalized_shape", shape{8})
                 .tensor("mean", {4, 1})
                 .tensor("rstd", {4, 1})
                 .tensor("weight", {8})
                 .literal("bias", none)
                 .out({4, 8})
                 .no_out()
                 .out({8});
    CHECK(rows_of(e, 2) == texts{"R, R, R, R, R -> R, R, R", "S0, S0, S0, S0, R -> S0, R, P", "P, R, R, R, R -> P, R, P",
                                 "P(avg), R, R, R, R -> P(avg), R, P(avg)", "R, R, R, R, P -> P, R, R",
                                 "R, R, R, R, P(avg) -> P(avg), R, R"});
}

TEST_CASE("RMS norm has the rows of layer_norm without mean and bias") {
    auto const forward = example_op("aten::_fused_rms_norm")
                             .tensor("input", {4, 6, 8})
                             .literal("normalized_shape", shape{8})
                             .tensor("weight", {8})
                             .out({4, 6, 8})
                             .out({4, 6, 1});
    CHECK(rows_of(forward, 2) == texts{"R, R -> R, R", "S0, R -> S0, S0", "S1, R -> S1, S1", "R, P -> P, R", "R, P(avg) -> P(avg), R"});
    auto const backward = example_op("aten::_fused_rms_norm_backward")
                              .tensor("grad_out", {4, 6, 8})
                              .tensor("input", {4, 6, 8})
                              .literal("normalized_shape", shape{8})
                              .tensor("rstd", {4, 6, 1})
                              .tensor("weight", {8})
                              .out({4, 6, 8})
                              .out({8});
    CHECK(has(rows_of(backward, 2), "S1, S1, S1, R -> S1, P"));
    CHECK(has(rows_of(backward, 2), "R, R, R, P -> P, R"));
}

TEST_CASE("group_norm is cut by samples, and by channels between groups") {
    auto const forward = example_op("aten::native_group_norm")
                             .tensor("input", {4, 12, 5})
                             .tensor("weight", {12})
                             .tensor("bias", {12})
                             .literal("group", std::int64_t{6})
                             .out({4, 12, 5})
                             .out({4, 6})
                             .out({4, 6});
    CHECK(has(rows_of(forward, 2), "S0, R, R -> S0, S0, S0"));
    CHECK(has(rows_of(forward, 3), "S1, S0, S0 -> S1, S1, S1"));
    CHECK_FALSE(has(rows_of(forward, 4), "S1, S0, S0 -> S1, S1, S1"));  // 12 channels would divide, 6 groups do not
    CHECK(has(rows_of(forward, 2), "R, P, P -> P, R, R"));
    auto const backward = rows_of(group_norm_backward({true, true, true}), 2);
    CHECK(has(backward, "S0, S0, S0, S0, R -> S0, P, P"));
    CHECK(has(backward, "S1, S1, S1, S1, S0 -> S1, S0, S0"));
    CHECK(has(backward, "P, R, R, R, R -> P, P, P"));
    CHECK(has(backward, "R, R, R, R, P -> P, R, R"));
    CHECK(has(rows_of(group_norm_backward({true, false, true}), 2), "S1, S1, S1, S1, S0 -> S1, R, S0"));
}

TEST_CASE("A34: batch_norm by channels has every tensor cut, forward and backward") {
    CHECK(has(rows_of(batch_norm(true), 2), "S1, S0, S0, S0, S0 -> S1, S0, S0"));
    CHECK(has(rows_of(batch_norm(true, true), 2), "S1, S0, S0, S0, S0 -> S1, S0, S0, S0, S0"));
    CHECK(has(rows_of(batch_norm(false), 2), "S1, S0, S0, S0, S0 -> S1, R, R"));  // an evaluation keeps no statistics
    CHECK(has(rows_of(batch_norm_backward(true), 2), "S1, S1, S0, S0, S0, S0, S0 -> S1, S0, S0"));
    CHECK(has(rows_of(batch_norm_backward(false), 2), "S1, S1, S0, S0, S0, R, R -> S1, S0, S0"));
    CHECK(has(rows_of(batch_norm_backward(true, {true, false, true}), 2), "S1, S1, S0, S0, S0, S0, S0 -> S1, R, S0"));
}

TEST_CASE("batch_norm over a cut batch reduces two sums inside in training, none in evaluation") {
    inner_collective const sum{collective_kind::all_reduce, reduction::sum, true, 1};
    for (auto const* text : {"S0, R, R, R, R -> S0, R, R", "S2, R, R, R, R -> S2, R, R"}) {
        CHECK(row_of(batch_norm(true), text).inner == std::vector{sum, sum});
        CHECK(row_of(batch_norm(false), text).inner.empty());
    }
    inner_collective const of_mean{collective_kind::all_reduce, reduction::sum, false, 5};
    CHECK(row_of(batch_norm_backward(true), "S0, S0, R, R, R, R, R -> S0, R, R").inner == std::vector{of_mean, of_mean});
    CHECK(row_of(batch_norm_backward(false), "S0, S0, R, R, R, R, R -> S0, P, P").inner.empty());
}

TEST_CASE("batch_norm's Partial rows: weight and bias always, the input only in evaluation") {
    CHECK(has(rows_of(batch_norm(true), 2), "R, P, P, R, R -> P, R, R"));
    CHECK_FALSE(has(rows_of(batch_norm(true), 2), "P, R, P, P, R -> P, R, R"));
    CHECK(has(rows_of(batch_norm(false), 2), "P, R, P, P, R -> P, R, R"));
    CHECK(has(rows_of(batch_norm(false, true), 2), "P, R, P, P, R -> P, R, R, P, R"));
    CHECK(has(rows_of(batch_norm(true), 2), "R, R, P(max), R, R -> P(max), R, R"));
    CHECK(has(rows_of(batch_norm_backward(true), 2), "P, R, R, R, R, R, R -> P, P, P"));
    CHECK(has(rows_of(batch_norm_backward(true), 2), "R, R, P, R, R, R, R -> P, R, R"));
    CHECK(has(rows_of(batch_norm_backward(false), 2), "R, P, R, P, R, R, R -> R, P, R"));
    CHECK_FALSE(has(rows_of(batch_norm_backward(true), 2), "R, P, R, P, R, R, R -> R, P, R"));
}
