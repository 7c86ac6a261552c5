// SPDX-License-Identifier: BSL-1.0
// What each family of rules lists for one axis, and what it must not list. "S0, R -> P": operands, then outputs; rows that do not divide
// are left out by rows_of. The numbers behind the rows are checked with real ATen ops in adapters/libtorch/tests/test_rules_oracle.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <set>

using namespace cantle;
using namespace cantle::test;

namespace {
using texts = std::vector<std::string>;
constexpr std::monostate none{};

example_op unary(std::string name, shape s, dtype in = dtype::float32, dtype out = dtype::float32) {
    return example_op(std::move(name)).tensor("self", s, in).out(s, out);
}
example_op binary(std::string name, shape a, shape b, shape full) {
    return example_op(std::move(name)).tensor("self", std::move(a)).tensor("other", std::move(b)).out(std::move(full));
}
example_op along(std::string name, shape from, std::int64_t dim, shape to) {
    return example_op(std::move(name)).tensor("self", std::move(from)).literal("dim", dim).out(std::move(to));
}
}  // namespace

TEST_CASE("the row that replicates everything is always the first") {
    for (auto const& e : {unary("aten::silu", {4}), view_op({4}, {2, 2}), binary("aten::add.Tensor", {4}, {4}, {4})}) {
        auto const rows = rows_of(e, 2);
        CHECK(rows[0].find_first_of("SP") == std::string::npos);
    }
}

// ---- linear ----------------------------------------------------------------------------------------------------------------------------

TEST_CASE("a linear: free dims pass, the contracted dim gives Partial, Partial passes on one side") {
    auto const e = example_op("aten::linear").tensor("input", {4, 6, 8}).tensor("weight", {10, 8}).literal("bias", none).out({4, 6, 10});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "R, S0 -> S2", "S2, S1 -> P", "P, R -> P", "R, P -> P"});
}

TEST_CASE("E6: a linear that still has its bias inside has no Partial row at all") {
    auto const e = example_op("aten::linear").tensor("input", {4, 8}).tensor("weight", {10, 8}).tensor("bias", {10}).out({4, 10});
    CHECK(rows_of(e, 2) == texts{"R, R, R -> R", "S0, R, R -> S0", "R, S0, S0 -> S1"});
}

TEST_CASE("the gradients of a linear: the weight's gradient is a sum over the tokens") {
    auto const x = example_op("cantle::linear_grad_input").tensor("grad", {4, 6, 10}).tensor("weight", {10, 8}).out({4, 6, 8});
    CHECK(rows_of(x, 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "R, S1 -> S2", "S2, S0 -> P", "P, R -> P", "R, P -> P"});
    auto const w = example_op("cantle::linear_grad_weight").tensor("grad", {4, 6, 10}).tensor("input", {4, 6, 8}).out({10, 8});
    CHECK(rows_of(w, 2) == texts{"R, R -> R", "S0, S0 -> P", "S1, S1 -> P", "S2, R -> S0", "R, S2 -> S1", "P, R -> P", "R, P -> P"});
}

TEST_CASE("bmm cuts its batch on both sides") {
    auto const e = example_op("aten::bmm").tensor("self", {2, 4, 6}).tensor("mat2", {2, 6, 8}).out({2, 4, 8});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S0, S0 -> S0", "S1, R -> S1", "R, S2 -> S2", "S2, S1 -> P", "P, R -> P", "R, P -> P"});
    auto const mm = example_op("aten::mm").tensor("self", {4, 6}).tensor("mat2", {6, 8}).out({4, 8});
    CHECK(rows_of(mm, 2) == texts{"R, R -> R", "S0, R -> S0", "R, S1 -> S1", "S1, S0 -> P", "P, R -> P", "R, P -> P"});
}

// ---- views -----------------------------------------------------------------------------------------------------------------------------

TEST_CASE("A1, A2: a view lists the cuts that it carries, with the whole factor where it needs one, on either side") {
    CHECK(rows_of(view_op({12, 8}, {16, 6}), 4) ==
          texts{"R -> R", "S0 -> S0", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
    CHECK(has(rows_of(view_op({4, 4, 4}, {8, 8}), 2), "S1 -> S0*4"));
    CHECK(has(rows_of(view_op({8, 8}, {4, 4, 4}), 2), "S0*4 -> S1"));
    CHECK(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4).front() == "R -> R");
    CHECK(has(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4), "S1*6 -> S2"));  // A11
    CHECK_FALSE(has(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4), "S1 -> S1"));
    CHECK_FALSE(has(rows_of(view_op({6, 256}, {1536}), 4), "S0 -> S0"));  // A5
}

TEST_CASE("dims of size 1 neither hide nor invent a cut") {
    CHECK(has(rows_of(view_op({1, 8, 1}, {8}), 2), "S1 -> S0"));
    CHECK(has(rows_of(view_op({8}, {1, 8, 1}), 2), "S0 -> S1"));
    CHECK(has(rows_of(view_op({2, 1, 3, 4}, {2, 3, 1, 4}), 2), "S3 -> S3"));
    for (auto const& t : rows_of(view_op({1, 3}, {3, 1}), 2)) CHECK(t.find('S') == std::string::npos);
}

TEST_CASE("an empty tensor has no cut to carry") {
    for (auto const& t : rows_of(view_op({0, 4}, {4, 0}), 2)) CHECK(t.find('S') == std::string::npos);
}

TEST_CASE("A8: t of a vector is the identity, of a matrix it swaps the dims") {
    CHECK(has(rows_of(unary("aten::t", {4}), 2), "S0 -> S0"));
    auto const rows = rows_of(example_op("aten::t").tensor("self", {4, 6}).out({6, 4}), 2);
    CHECK(has(rows, "S0 -> S1"));
    CHECK(has(rows, "S1 -> S0"));
    CHECK_FALSE(has(rows, "S0 -> S0"));
}

TEST_CASE("transpose and permute rename dims, negative ones too") {
    auto const tr = example_op("aten::transpose.int")
                        .tensor("self", {2, 4, 6})
                        .literal("dim0", std::int64_t{-1})
                        .literal("dim1", std::int64_t{1})
                        .out({2, 6, 4});
    auto const rows = rows_of(tr, 2);
    for (auto t : {"S0 -> S0", "S1 -> S2", "S2 -> S1", "P -> P"}) CHECK(has(rows, t));
    CHECK(rows.size() == 8);
    auto const p = rows_of(example_op("aten::permute").tensor("self", {2, 4, 6}).literal("dims", shape{-1, 0, 1}).out({6, 2, 4}), 2);
    for (auto t : {"S0 -> S1", "S1 -> S2", "S2 -> S0"}) CHECK(has(p, t));
}

TEST_CASE("expand: a dim that grows is cut freely from a whole operand, the others keep their cut") {
    auto const rows = rows_of(example_op("aten::expand").tensor("self", {1, 6}).literal("size", shape{8, 4, 6}).out({8, 4, 6}), 2);
    for (auto t : {"R -> S0", "R -> S1", "S1 -> S2", "P -> P"}) CHECK(has(rows, t));
    CHECK_FALSE(has(rows, "S0 -> S1"));
}

TEST_CASE("A50: a slice passes cuts of the dims that it does not touch; a slice of the whole dim touches nothing") {
    CHECK(rows_of(along("aten::slice.Tensor", {16, 6}, 0, {8, 6}), 2) ==
          texts{"R -> R", "S1 -> S1", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
    CHECK(has(rows_of(along("aten::slice.Tensor", {16, 6}, 0, {16, 6}), 2), "S0 -> S0"));
    CHECK_FALSE(has(rows_of(along("aten::slice_backward", {8, 6}, -2, {16, 6}), 2), "S0 -> S0"));
}

TEST_CASE("select drops its dim, select_backward and unsqueeze bring one in, stack too") {
    CHECK(has(rows_of(along("aten::select.int", {2, 4, 6}, 1, {2, 6}), 2), "S2 -> S1"));
    CHECK_FALSE(has(rows_of(along("aten::select.int", {2, 4, 6}, 1, {2, 6}), 2), "S1 -> S1"));
    CHECK(has(rows_of(along("aten::select_backward", {2, 6}, 1, {2, 4, 6}), 2), "S1 -> S2"));
    CHECK(has(rows_of(along("aten::unsqueeze", {2, 6}, -2, {2, 1, 6}), 2), "S1 -> S2"));
    auto const stack = example_op("aten::stack").tensors("tensors", {{2, 6}, {2, 6}}).literal("dim", std::int64_t{0}).out({2, 2, 6});
    CHECK(has(rows_of(stack, 2), "S0, S0 -> S1"));
    CHECK(has(rows_of(stack, 2), "S1, S1 -> S2"));
}

TEST_CASE("A53: cat is no concatenation of local results along its own dim") {
    auto const e = example_op("aten::cat").tensors("tensors", {{4, 6}, {2, 6}}).literal("dim", std::int64_t{0}).out({6, 6});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S1, S1 -> S1", "P, P -> P", "P(avg), P(avg) -> P(avg)", "P(max), P(max) -> P(max)",
                                 "P(min), P(min) -> P(min)"});
}

TEST_CASE("split cuts all its outputs alike") {
    auto const e = example_op("aten::split.Tensor")
                       .tensor("self", {4, 6})
                       .literal("split_size", std::int64_t{3})
                       .literal("dim", std::int64_t{1})
                       .out({4, 3})
                       .out({4, 3});
    CHECK(has(rows_of(e, 2), "S0 -> S0, S0"));
    CHECK_FALSE(has(rows_of(e, 3), "S1 -> S1, S1"));
}
