// SPDX-License-Identifier: BSL-1.0
// Rows of convolutions, pooling and resampling for one axis. Images [N, C, H, W].
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

struct convolution_of {
    shape input{4, 6, 8, 8}, weight{12, 6, 3, 3}, out{4, 12, 8, 8};
    std::int64_t stride = 1, padding = 1, groups = 1;
    bool transposed = false, bias = false;

    example_op& literals(example_op& e) const {
        return e.literal("stride", shape{stride, stride})
            .literal("padding", shape{padding, padding})
            .literal("dilation", shape{1, 1})
            .literal("transposed", transposed)
            .literal("output_padding", shape{0, 0})
            .literal("groups", groups);
    }
    example_op forward() const {
        auto e = example_op("aten::convolution").tensor("input", input).tensor("weight", weight);
        bias ? e.tensor("bias", {out[1]}) : e.literal("bias", none);
        return literals(e).out(out);
    }
    example_op backward(std::vector<bool> mask = {true, true, true}) const {
        auto e = example_op("aten::convolution_backward")
                     .tensor("grad_output", out)
                     .tensor("input", input)
                     .tensor("weight", weight)
                     .literal("bias_sizes", shape{out[1]});
        literals(e).literal("output_mask", mask);
        mask[0] ? e.out(input) : e.no_out();
        mask[1] ? e.out(weight) : e.no_out();
        mask[2] ? e.out({out[1]}) : e.no_out();
        return e;
    }
};
}  // namespace

TEST_CASE("a convolution is a product: batch, output channels, input channels, linear in each factor") {
    CHECK(rows_of(convolution_of{}.forward(), 2) == texts{"R, R -> R", "S0, R -> S0", "R, S0 -> S1", "S1, S1 -> P", "P, R -> P",
                                                          "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
    convolution_of with_bias;
    with_bias.bias = true;
    auto const rows = rows_of(with_bias.forward(), 2);
    CHECK(has(rows, "R, S0, S0 -> S1"));
    CHECK(has(rows, "S1, S1, P -> P"));  // E6: the bias counts once
    CHECK_FALSE(has(rows, "S1, S1, R -> P"));
    CHECK(has(rows, "P, R, P -> P"));
    CHECK(has(rows, "R, R, P(min) -> P(min)"));
}

TEST_CASE("its gradients: what the cut leaves whole is Partial, and outputs that nobody asked for are not placed") {
    CHECK(rows_of(convolution_of{}.backward(), 2) ==
          texts{"R, R, R -> R, R, R", "S0, S0, R -> S0, P, P", "S1, R, S0 -> P, S0, S0", "R, S1, S1 -> S1, S1, R", "P, R, R -> P, P, P",
                "P(avg), R, R -> P(avg), P(avg), P(avg)", "R, P, R -> R, P, R", "R, P(avg), R -> R, P(avg), R", "R, R, P -> P, R, R",
                "R, R, P(avg) -> P(avg), R, R", "R, P, P -> P, P, R", "R, P(avg), P(avg) -> P(avg), P(avg), R"});
    auto const masked = rows_of(convolution_of{}.backward({false, true, false}), 2);
    CHECK(has(masked, "S0, S0, R -> R, P, R"));
    CHECK(has(masked, "S1, R, S0 -> R, S0, R"));
    CHECK_FALSE(has(masked, "R, P, P -> R, P, R"));
}

TEST_CASE("groups are cut whole, or their channels behind a whole factor") {
    convolution_of grouped;
    grouped.input = {4, 12, 8, 8}, grouped.weight = {24, 3, 3, 3}, grouped.out = {4, 24, 8, 8}, grouped.groups = 4;
    auto const two = rows_of(grouped.forward(), 2), three = rows_of(grouped.forward(), 3);
    CHECK(has(two, "S1, S0 -> S1"));
    CHECK_FALSE(has(three, "S1, S0 -> S1"));  // 12 channels divide by 3, 4 groups do not
    CHECK(has(three, "R, S0*4 -> S1*4"));
    CHECK(has(three, "S1*4, S1 -> P"));
    CHECK(has(rows_of(grouped.backward(), 2), "S1, S1, S0 -> S1, S0, S0"));
    // Groups left by an outer axis: the literal still says 4, two groups are here.
    grouped.input[1] = 6, grouped.weight[0] = 12, grouped.out[1] = 12;
    CHECK(has(rows_of(grouped.forward(), 2), "S1, S0 -> S1"));
    CHECK(has(rows_of(grouped.forward(), 3), "R, S0*2 -> S1*2"));
}

TEST_CASE("a transposed convolution has its channels the other way round") {
    convolution_of up;
    up.input = {4, 6, 8, 8}, up.weight = {6, 12, 2, 2}, up.out = {4, 12, 16, 16}, up.stride = 2, up.padding = 0, up.transposed = true;
    auto const rows = rows_of(up.forward(), 2);
    CHECK(has(rows, "R, S1 -> S1"));
    CHECK(has(rows, "S1, S0 -> P"));
    CHECK(has(rows, "S2, R -> S2"));  // every pixel becomes a block of its own
    up.weight = {6, 4, 2, 2}, up.groups = 3;
    CHECK(has(rows_of(up.forward(), 3), "S1, S0 -> S1"));
    CHECK(has(rows_of(up.forward(), 2), "S1*3, S0*3 -> P"));
    CHECK(has(rows_of(up.forward(), 2), "R, S1 -> S1*3"));
}

TEST_CASE("image dims are cut where windows do not overlap: 1x1 kernels and patches, not 3x3") {
    convolution_of c;
    CHECK_FALSE(has(rows_of(c.forward(), 2), "S2, R -> S2"));
    c.weight = {12, 6, 1, 1}, c.padding = 0;
    CHECK(has(rows_of(c.forward(), 2), "S2, R -> S2"));
    CHECK(has(rows_of(c.forward(), 2), "S3, R -> S3"));
    CHECK(has(rows_of(c.backward(), 2), "S3, S3, R -> S3, P, P"));
    c.weight = {12, 6, 4, 4}, c.stride = 4, c.out = {4, 12, 2, 2};
    CHECK(has(rows_of(c.forward(), 2), "S2, R -> S2"));
    c.padding = 2, c.out = {4, 12, 3, 3};
    CHECK_FALSE(has(rows_of(c.forward(), 3), "S2, R -> S2"));
    c.padding = 0, c.stride = 2, c.out = {4, 12, 3, 3};
    CHECK_FALSE(has(rows_of(c.forward(), 3), "S2, R -> S2"));
}

TEST_CASE("pooling: maxima pass batch and channels alone, averages also tiled image dims and Partial") {
    auto const pool = [](char const* name, std::int64_t kernel, std::int64_t stride, shape out, bool indices) {
        auto e = example_op(name)
                     .tensor("self", {4, 6, 8, 8})
                     .literal("kernel_size", shape{kernel, kernel})
                     .literal("stride", shape{stride, stride})
                     .literal("padding", shape{0, 0})
                     .out(out);
        return rows_of(indices ? e.out(out, dtype::int64) : e, 2);
    };
    CHECK(pool("aten::max_pool2d_with_indices", 2, 2, {4, 6, 4, 4}, true) == texts{"R -> R, R", "S0 -> S0, S0", "S1 -> S1, S1"});
    CHECK(pool("aten::avg_pool2d", 2, 2, {4, 6, 4, 4}, false) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "S2 -> S2", "S3 -> S3", "P -> P", "P(avg) -> P(avg)"});
    CHECK_FALSE(has(pool("aten::avg_pool2d", 3, 1, {4, 6, 6, 6}, false), "S2 -> S2"));
    auto const backward = example_op("aten::max_pool2d_with_indices_backward")
                              .tensor("grad_output", {4, 6, 4, 4})
                              .tensor("self", {4, 6, 8, 8})
                              .tensor("indices", {4, 6, 4, 4}, dtype::int64)
                              .out({4, 6, 8, 8});
    CHECK(rows_of(backward, 2) == texts{"R, R, R -> R", "S0, S0, S0 -> S0", "S1, S1, S1 -> S1", "P, R, R -> P", "P(avg), R, R -> P(avg)"});
    auto const average_backward = example_op("aten::avg_pool2d_backward")
                                      .tensor("grad_output", {4, 6, 4, 4})
                                      .tensor("self", {4, 6, 8, 8})
                                      .literal("kernel_size", shape{2, 2})
                                      .literal("stride", shape{2, 2})
                                      .literal("padding", shape{0, 0})
                                      .out({4, 6, 8, 8});
    CHECK(has(rows_of(average_backward, 2), "S2, S2 -> S2"));
    CHECK(has(rows_of(average_backward, 2), "P, R -> P"));
}

TEST_CASE("a global average over a cut image is an average of averages; adaptive windows tile where sizes divide") {
    auto const of = [](shape out) {
        return rows_of(example_op("aten::_adaptive_avg_pool2d").tensor("self", {4, 6, 8, 8}).out(std::move(out)), 2);
    };
    CHECK(has(of({4, 6, 1, 1}), "S2 -> P(avg)"));
    CHECK(has(of({4, 6, 1, 1}), "S3 -> P(avg)"));
    CHECK_FALSE(has(of({4, 6, 2, 2}), "S2 -> P(avg)"));
    CHECK(has(of({4, 6, 2, 2}), "S2 -> S2"));
    CHECK_FALSE(has(of({4, 6, 6, 6}), "S2 -> S2"));
    auto const backward = rows_of(example_op("aten::_adaptive_avg_pool2d_backward")
                                      .tensor("grad_output", {4, 6, 1, 4})
                                      .tensor("self", {4, 6, 8, 8})
                                      .out({4, 6, 8, 8}),
                                  2);
    CHECK(has(backward, "S3, S3 -> S3"));
    CHECK(has(backward, "S1, S1 -> S1"));
    CHECK_FALSE(has(backward, "R, S2 -> S2"));
}

TEST_CASE("upsampling passes batch and channels; nearest neighbours copy, so image dims and every kind of Partial pass") {
    auto const of = [](char const* name, shape out) {
        return rows_of(example_op(name).tensor("self", {4, 6, 8, 8}).out(std::move(out)), 2);
    };
    CHECK(of("aten::upsample_nearest2d", {4, 6, 16, 24}) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "S2 -> S2", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
    CHECK(of("aten::upsample_bilinear2d", {4, 6, 16, 16}) == texts{"R -> R", "S0 -> S0", "S1 -> S1", "P -> P", "P(avg) -> P(avg)"});
    auto const backward =
        rows_of(example_op("aten::upsample_nearest2d_backward").tensor("grad_output", {4, 6, 16, 24}).out({4, 6, 8, 8}), 2);
    CHECK(backward == texts{"R -> R", "S0 -> S0", "S1 -> S1", "S2 -> S2", "P -> P", "P(avg) -> P(avg)"});
    auto const shuffle = rows_of(example_op("aten::pixel_shuffle").tensor("self", {4, 8, 6, 6}).out({4, 2, 12, 12}), 2);
    CHECK(shuffle == texts{"R -> R", "S0 -> S0", "S1 -> S1", "S2 -> S2", "S3 -> S3", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)",
                           "P(min) -> P(min)"});
    CHECK_FALSE(has(rows_of(example_op("aten::pixel_shuffle").tensor("self", {4, 4, 6, 6}).out({4, 1, 12, 12}), 4), "S1 -> S1"));
}
