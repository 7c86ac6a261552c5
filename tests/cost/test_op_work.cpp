// SPDX-License-Identifier: BSL-1.0
// Floating point operations of convolutions and of products beyond mm and bmm. A multiply-add counts two.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/cost/op_work.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace cantle;

namespace {
struct example {
    op operation;
    std::vector<tensor_meta> operands, outputs;
    example(std::string name, std::vector<std::pair<std::string, shape>> const& tensors, std::vector<shape> const& results) {
        operation.name = std::move(name);
        for (auto const& [argument, sizes] : tensors) {
            operation.arguments.push_back({argument, operand_slot{static_cast<std::uint32_t>(operands.size())}});
            operands.push_back(contiguous_meta(sizes, dtype::float32));
        }
        for (auto const& sizes : results) outputs.push_back(contiguous_meta(sizes, dtype::float32));
    }
    double flops() const { return count_flops(op_query{&operation, operands, outputs}); }
    double bytes() const { return count_bytes(op_query{&operation, operands, outputs}); }
};
}  // namespace

// 12 channels from 6 by 3x3, on 4 images of 8x8 pixels: 6 * 9 products for each of 4 * 12 * 64 output elements
TEST_CASE("a convolution multiplies every output element's window; its backward twice, once per gradient asked for") {
    example const forward("aten::convolution", {{"input", {4, 6, 8, 8}}, {"weight", {12, 6, 3, 3}}}, {{4, 12, 8, 8}});
    double const once = 2.0 * 4 * 12 * 64 * 6 * 9;
    CHECK(forward.flops() == once);
    CHECK(forward.bytes() == 4.0 * (4 * 6 * 64 + 12 * 6 * 9 + 4 * 12 * 64));
    example backward("aten::convolution_backward", {{"grad_output", {4, 12, 8, 8}}, {"input", {4, 6, 8, 8}}, {"weight", {12, 6, 3, 3}}},
                     {{4, 6, 8, 8}, {12, 6, 3, 3}, {12}});
    CHECK(backward.flops() == 2 * once);
    backward.outputs[0].defined = false;
    CHECK(backward.flops() == once);
}

TEST_CASE("groups divide the work, and a transposed convolution works per pixel of its input") {
    example const depthwise("aten::convolution", {{"input", {4, 6, 8, 8}}, {"weight", {6, 1, 3, 3}}}, {{4, 6, 8, 8}});
    CHECK(depthwise.flops() == 2.0 * 4 * 6 * 64 * 9);
    example up("aten::convolution", {{"input", {4, 6, 8, 8}}, {"weight", {6, 12, 2, 2}}}, {{4, 12, 16, 16}});
    up.operation.arguments.push_back({"transposed", true});
    CHECK(up.flops() == 2.0 * 4 * 64 * 6 * 12 * 4);
}

TEST_CASE("grouped products count every run once") {
    auto const flops = [](shape a, shape b, shape out) { return example("aten::_grouped_mm", {{"self", a}, {"mat2", b}}, {out}).flops(); };
    CHECK(flops({32, 16}, {4, 16, 24}, {32, 24}) == 2.0 * 32 * 16 * 24);
    CHECK(flops({16, 32}, {32, 24}, {4, 16, 24}) == 2.0 * 16 * 32 * 24);
    CHECK(flops({4, 8, 16}, {16, 32}, {8, 32}) == 2.0 * 8 * 16 * 32);
    CHECK(flops({4, 8, 16}, {4, 16, 24}, {4, 8, 24}) == 2.0 * 4 * 8 * 16 * 24);
}

TEST_CASE("products with vectors and batches summed over") {
    CHECK(example("aten::addbmm", {{"self", {8, 6}}, {"batch1", {4, 8, 16}}, {"batch2", {4, 16, 6}}}, {{8, 6}}).flops() ==
          2.0 * 8 * 6 * 16 * 4);
    CHECK(example("aten::addmv", {{"self", {8}}, {"mat", {8, 16}}, {"vec", {16}}}, {{8}}).flops() == 2.0 * 8 * 16);
    CHECK(example("aten::dot", {{"self", {16}}, {"tensor", {16}}}, {{}}).flops() == 2.0 * 16);
    CHECK(example("aten::vdot", {{"self", {16}}, {"other", {16}}}, {{}}).flops() == 2.0 * 16);
}
