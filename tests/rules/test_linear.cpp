// SPDX-License-Identifier: BSL-1.0
// Rows of matrix products for one axis. Notation: R, S<dim>, P (sum); operands -> output.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

/// self + mat1[4, 8] mat2[8, 6]
example_op addmm(shape self, argument_value beta) {
    return example_op("aten::addmm")
        .tensor("self", std::move(self))
        .tensor("mat1", {4, 8})
        .tensor("mat2", {8, 6})
        .literal("beta", std::move(beta))
        .literal("alpha", std::int64_t{1})
        .out({4, 6});
}
example_op einsum(char const* equation, std::vector<shape> const& operands, shape out) {
    return example_op("aten::einsum").literal("equation", std::string(equation)).tensors("tensors", operands).out(std::move(out));
}
example_op grouped(shape a, shape b, shape out, dtype type = dtype::bfloat16) {
    return example_op("aten::_grouped_mm")
        .tensor("self", std::move(a), type)
        .tensor("mat2", std::move(b), type)
        .tensor("offs", {4}, dtype::int32)
        .literal("bias", none)
        .literal("out_dtype", none)
        .out(std::move(out), type);
}
}  // namespace

TEST_CASE("a product passes cuts of free dims, adds up cuts of the contracted one and is linear in each factor alone") {
    auto const mm = example_op("aten::mm").tensor("self", {4, 8}).tensor("mat2", {8, 6}).out({4, 6});
    CHECK(rows_of(mm, 2) == texts{"R, R -> R", "S0, R -> S0", "R, S1 -> S1", "S1, S0 -> P", "P, R -> P", "P(avg), R -> P(avg)", "R, P -> P",
                                  "R, P(avg) -> P(avg)"});
    auto const bmm = example_op("aten::bmm").tensor("self", {2, 4, 8}).tensor("mat2", {2, 8, 6}).out({2, 4, 6});
    CHECK(rows_of(bmm, 2) == texts{"R, R -> R", "S0, S0 -> S0", "S1, R -> S1", "R, S2 -> S2", "S2, S1 -> P", "P, R -> P",
                                   "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
}

TEST_CASE("a linear and its gradients: the weight's gradient is a sum over the tokens") {
    auto const e = example_op("aten::linear").tensor("input", {4, 6, 8}).tensor("weight", {10, 8}).literal("bias", none).out({4, 6, 10});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "R, S0 -> S2", "S2, S1 -> P", "P, R -> P",
                                 "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
    auto const x = example_op("cantle::linear_grad_input").tensor("grad", {4, 6, 10}).tensor("weight", {10, 8}).out({4, 6, 8});
    CHECK(rows_of(x, 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "R, S1 -> S2", "S2, S0 -> P", "P, R -> P",
                                 "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
    auto const w = example_op("cantle::linear_grad_weight").tensor("grad", {4, 6, 10}).tensor("input", {4, 6, 8}).out({10, 8});
    CHECK(rows_of(w, 2) == texts{"R, R -> R", "S0, S0 -> P", "S1, S1 -> P", "S2, R -> S0", "R, S2 -> S1", "P, R -> P",
                                 "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
}

TEST_CASE("E6: the addend of a Partial product is Partial too; Replicate beside Partial(sum) is no row") {
    auto const rows = rows_of(addmm({4, 6}, std::int64_t{1}), 2);
    CHECK(rows == texts{"R, R, R -> R", "S0, S0, R -> S0", "S1, R, S1 -> S1", "P, S1, S0 -> P", "P, P, R -> P", "R, P(avg), R -> P(avg)",
                        "P(avg), R, R -> P(avg)", "P(avg), P(avg), R -> P(avg)", "P, R, P -> P", "R, R, P(avg) -> P(avg)",
                        "P(avg), R, P(avg) -> P(avg)", "P(max), R, R -> P(max)", "P(min), R, R -> P(min)"});
    CHECK_FALSE(has(rows, "R, S1, S0 -> P"));
    CHECK_FALSE(has(rows, "R, P, R -> P"));
    CHECK_FALSE(has(rows, "P, R, R -> P"));
}

TEST_CASE("an addend that broadcasts stays whole where it does") {
    CHECK(has(rows_of(addmm({6}, 0.5), 2), "R, S0, R -> S0"));
    CHECK(has(rows_of(addmm({6}, 0.5), 2), "S0, R, S1 -> S1"));
    CHECK(has(rows_of(addmm({4, 1}, 0.5), 2), "S0, S0, R -> S0"));
    CHECK(has(rows_of(addmm({4, 1}, 0.5), 2), "R, R, S1 -> S1"));
}

TEST_CASE("beta decides what the addend may be: below 0 no maximum passes, at 0 it is not read") {
    CHECK_FALSE(has(rows_of(addmm({4, 6}, -1.0), 2), "P(max), R, R -> P(max)"));
    auto const unread = rows_of(addmm({4, 6}, std::int64_t{0}), 2);
    CHECK(has(unread, "R, S1, S0 -> P"));
    CHECK(has(unread, "R, P, R -> P"));
    CHECK_FALSE(has(unread, "P, S1, S0 -> P"));
}

TEST_CASE("a linear layer with bias follows the same rules") {
    auto const rows =
        rows_of(example_op("aten::linear").tensor("input", {2, 4, 8}).tensor("weight", {6, 8}).tensor("bias", {6}).out({2, 4, 6}), 2);
    CHECK(has(rows, "S0, R, R -> S0"));
    CHECK(has(rows, "S1, R, R -> S1"));
    CHECK(has(rows, "R, S0, S0 -> S2"));
    CHECK(has(rows, "S2, S1, P -> P"));
    CHECK_FALSE(has(rows, "S2, S1, R -> P"));
    CHECK(has(rows, "P, R, P -> P"));
    CHECK(has(rows, "R, R, P(max) -> P(max)"));
}

TEST_CASE("the other products: vectors, batches summed over, outer products, broadcast batches") {
    CHECK(rows_of(example_op("aten::mv").tensor("self", {4, 8}).tensor("vec", {8}).out({4}), 2) ==
          texts{"R, R -> R", "S0, R -> S0", "S1, S0 -> P", "P, R -> P", "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
    for (auto const& [name, other] : {std::pair{"aten::dot", "tensor"}, std::pair{"aten::vdot", "other"}})
        CHECK(has(rows_of(example_op(name).tensor("self", {8}).tensor(other, {8}).out({}), 2), "S0, S0 -> P"));
    for (auto name : {"aten::ger", "aten::outer"}) {
        auto const rows = rows_of(example_op(name).tensor("self", {4}).tensor("vec2", {6}).out({4, 6}), 2);
        CHECK(has(rows, "S0, R -> S0"));
        CHECK(has(rows, "R, S0 -> S1"));
    }
    auto const addbmm =
        rows_of(example_op("aten::addbmm").tensor("self", {4, 6}).tensor("batch1", {2, 4, 8}).tensor("batch2", {2, 8, 6}).out({4, 6}), 2);
    CHECK(has(addbmm, "P, S0, S0 -> P"));
    CHECK(has(addbmm, "S0, S1, R -> S0"));
    auto const baddbmm = rows_of(
        example_op("aten::baddbmm").tensor("self", {2, 1, 6}).tensor("batch1", {2, 4, 8}).tensor("batch2", {2, 8, 6}).out({2, 4, 6}), 2);
    CHECK(has(baddbmm, "S0, S0, S0 -> S0"));
    CHECK(has(baddbmm, "R, S1, R -> S1"));
    CHECK(has(baddbmm, "P, S2, S1 -> P"));
    CHECK(
        has(rows_of(example_op("aten::addmv").tensor("self", {4}).tensor("mat", {4, 8}).tensor("vec", {8}).out({4}), 2), "P, S1, S0 -> P"));
    CHECK(has(rows_of(example_op("aten::addr").tensor("self", {4, 6}).tensor("vec1", {4}).tensor("vec2", {6}).out({4, 6}), 2),
              "S1, R, S0 -> S1"));
    auto const matmul = rows_of(example_op("aten::matmul").tensor("self", {2, 1, 4, 8}).tensor("other", {6, 8, 2}).out({2, 6, 4, 2}), 2);
    CHECK(has(matmul, "S0, R -> S0"));
    CHECK(has(matmul, "R, S0 -> S1"));
    CHECK(has(matmul, "S3, S1 -> P"));
    CHECK(has(rows_of(example_op("aten::matmul").tensor("self", {8}).tensor("other", {4, 8, 2}).out({4, 2}), 2), "S0, S1 -> P"));
}

TEST_CASE("einsum reads its rows off the equation") {
    auto const rows = rows_of(einsum("bshd, bthd -> bhst", {{2, 4, 6, 8}, {2, 10, 6, 8}}, {2, 6, 4, 10}), 2);
    CHECK(has(rows, "S0, S0 -> S0"));
    CHECK(has(rows, "S2, S2 -> S1"));
    CHECK(has(rows, "S1, R -> S2"));
    CHECK(has(rows, "R, S1 -> S3"));
    CHECK(has(rows, "S3, S3 -> P"));
    CHECK(has(rows, "P, R -> P"));
    CHECK(has(rows_of(einsum("ij,kj", {{4, 8}, {6, 8}}, {4, 6}), 2), "R, S0 -> S1"));  // no arrow: letters in alphabetical order
    CHECK(rows_of(einsum("ii->i", {{4, 4}}, {4}), 2) == texts{"R -> R", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(einsum("...i,i->...", {{4, 8}, {8}}, {4}), 2) == texts{"R, R -> R"});
    CHECK_FALSE(has(rows_of(einsum("ij,jk->ik", {{4, 1}, {8, 6}}, {4, 6}), 2), "S1, S0 -> P"));
    CHECK(has(rows_of(einsum("ij,jk->ik", {{4, 1}, {8, 6}}, {4, 6}), 2), "R, S0 -> P"));
}

//  tokens [32, 16] in 4 runs x experts [4, 16, 24]
TEST_CASE("grouped products: runs of tokens may be cut with an offset, experts may not, rows stay aligned to 16 bytes") {
    auto const tokens = grouped({32, 16}, {4, 16, 24}, {32, 24});
    CHECK(rows_of(tokens, 2) == texts{"R, R, R -> R", "S0, R, R -> S0", "S1, S1, R -> P", "P, R, R -> P", "P(avg), R, R -> P(avg)",
                                      "R, P, R -> P", "R, P(avg), R -> P(avg)"});  // 24 / 2 elements of 2 bytes start at 24 bytes
    CHECK(has(rows_of(grouped({32, 16}, {4, 16, 32}, {32, 32}), 2), "R, S2, R -> S1"));
    for (auto const& row : standard_rules().rows(tokens.query(), 2)) CHECK(row.masked == (text_of(row) == "S0, R, R -> S0"));
    auto const gradient = rows_of(grouped({16, 32}, {32, 32}, {4, 16, 32}), 2);  // of the experts' weights
    CHECK(has(gradient, "S0, R, R -> S1"));
    CHECK(has(gradient, "R, S1, R -> S2"));
    CHECK(has(gradient, "S1, S0, R -> P"));
    auto const columns = rows_of(grouped({4, 16, 32}, {32, 64}, {16, 64}), 2);
    CHECK(has(columns, "S1, R, R -> S0"));
    CHECK(has(columns, "R, S1, R -> S1"));
    CHECK(has(columns, "S2, S0, R -> P"));
    auto const batch = rows_of(
        example_op("aten::_grouped_mm").tensor("self", {4, 8, 16}).tensor("mat2", {4, 16, 8}).literal("offs", none).out({4, 8, 8}), 2);
    CHECK(has(batch, "S0, S0 -> S0"));
    CHECK(has(batch, "S1, R -> S1"));
    CHECK(has(batch, "S2, S1 -> P"));
}
