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

