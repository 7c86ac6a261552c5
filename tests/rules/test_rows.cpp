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
example_op cast(dtype from, dtype to) { return unary("aten::_to_copy", {4, 6}, from, to).literal("dtype", to); }
example_op reduce(std::string name, shape from, shape dims, bool keep, shape to, dtype in = dtype::float32, dtype out = dtype::float32) {
    return example_op(std::move(name))
        .tensor("self", std::move(from), in)
        .literal("dim", std::move(dims))
        .literal("keepdim", keep)
        .out(std::move(to), out);
}
bool passes_partial(texts const& rows) {
    for (auto const& t : rows)
        if (t.find('P') != std::string::npos) return true;
    return false;
}
}  // namespace

TEST_CASE("the row that replicates everything is always the first") {
    for (auto const& e : {unary("aten::silu", {4}), view_op({4}, {2, 2}), binary("aten::add.Tensor", {4}, {4}, {4})}) {
        auto const rows = rows_of(e, 2);
        CHECK(rows[0].find_first_of("SP") == std::string::npos);
    }
}

// ---- pointwise -------------------------------------------------------------------------------------------------------------------------

TEST_CASE("E6: adding a replicated bias to a partial product is no row, adding two partial tensors is") {
    auto const rows = rows_of(binary("aten::add.Tensor", {4, 8}, {8}, {4, 8}), 2);
    CHECK(rows == texts{"R, R -> R", "S0, R -> S0", "S1, S0 -> S1", "P, P -> P"});
}

TEST_CASE("adding a literal is affine and stops Partial, multiplying or dividing by one does not") {
    CHECK(rows_of(unary("aten::add.Scalar", {4}), 2) == texts{"R -> R", "S0 -> S0"});
    CHECK(rows_of(unary("aten::rsub.Scalar", {4}), 2) == texts{"R -> R", "S0 -> S0"});
    CHECK(rows_of(unary("aten::mul.Scalar", {4}), 2) == texts{"R -> R", "S0 -> S0", "P -> P"});
    CHECK(rows_of(unary("aten::div.Scalar", {4}), 2) == texts{"R -> R", "S0 -> S0", "P -> P"});
}

TEST_CASE("a product takes Partial on either side alone, a quotient only above") {
    CHECK(rows_of(binary("aten::mul.Tensor", {4}, {4}, {4}), 2) == texts{"R, R -> R", "S0, S0 -> S0", "P, R -> P", "R, P -> P"});
    CHECK(rows_of(binary("aten::div.Tensor", {4}, {4}, {4}), 2) == texts{"R, R -> R", "S0, S0 -> S0", "P, R -> P"});
}

TEST_CASE("a quotient that rounds stops Partial") {
    auto const rounded = binary("aten::div.Tensor_mode", {4}, {4}, {4}).literal("rounding_mode", std::string("floor"));
    CHECK_FALSE(passes_partial(rows_of(rounded, 2)));
    CHECK(passes_partial(rows_of(binary("aten::div.Tensor_mode", {4}, {4}, {4}).literal("rounding_mode", none), 2)));
}

TEST_CASE("broadcast dims stay whole on the operand that lacks them") {
    CHECK(rows_of(binary("aten::mul.Tensor", {4, 1, 6}, {2, 6}, {4, 2, 6}), 2) ==
          texts{"R, R -> R", "S0, R -> S0", "R, S0 -> S1", "S2, S1 -> S2", "P, R -> P", "R, P -> P"});
    CHECK(rows_of(binary("aten::add.Tensor", {4, 4}, {}, {4, 4}), 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "P, P -> P"});
}

TEST_CASE("A32: functions that bend stop Partial") {
    for (auto name : {"aten::abs", "aten::silu", "aten::gelu", "aten::relu", "aten::exp", "aten::rsqrt", "aten::pow.Tensor_Scalar",
                      "aten::tanh", "aten::cos", "aten::sigmoid", "aten::clamp_min"})
        CHECK_MESSAGE((rows_of(unary(name, {4, 3}), 2) == texts{"R -> R", "S0 -> S0"}), name);
}

TEST_CASE("backward of an activation is linear in the gradient and in nothing else") {
    for (auto name : {"aten::silu_backward", "aten::gelu_backward", "aten::tanh_backward", "aten::sigmoid_backward",
                      "aten::threshold_backward", "aten::native_dropout_backward"}) {
        auto const e = example_op(name).tensor("grad_output", {4}).tensor("self", {4}).out({4});
        CHECK_MESSAGE((rows_of(e, 2) == texts{"R, R -> R", "S0, S0 -> S0", "P, R -> P"}), name);
    }
}

TEST_CASE("where takes Partial on both values together, never on the condition") {
    auto const e =
        example_op("aten::where.self").tensor("condition", {4, 1}, dtype::boolean).tensor("self", {4, 6}).tensor("other", {}).out({4, 6});
    CHECK(rows_of(e, 2) == texts{"R, R, R -> R", "S0, S0, R -> S0", "R, S1, R -> S1", "R, P, P -> P"});
}

TEST_CASE("E5: Partial passes a cast that keeps every value and no other") {
    using enum dtype;
    for (auto const& types : {std::pair{bfloat16, float32}, std::pair{float16, float32}, std::pair{float32, float64},
                              std::pair{float32, float32}, std::pair{bfloat16, float64}, std::pair{int64, int64}}) {
        auto const rows = rows_of(cast(types.first, types.second), 2);
        for (auto kind : {"P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"})
            CHECK_MESSAGE(has(rows, kind), to_string(types.first), to_string(types.second));
    }
    for (auto const& types :
         {std::pair{float32, bfloat16}, std::pair{float32, float16}, std::pair{float64, float32}, std::pair{float32, int64},
          std::pair{bfloat16, float16}, std::pair{float16, bfloat16}, std::pair{float32, boolean}, std::pair{int64, float32}}) {
        auto const rows = rows_of(cast(types.first, types.second), 2);
        CHECK_MESSAGE((rows == texts{"R -> R", "S0 -> S0", "S1 -> S1"}), to_string(types.first), to_string(types.second));
    }
}

TEST_CASE("E5: a linear op that rounds its result to a narrower type stops Partial as a cast does") {
    auto const backward = [](dtype grad, dtype out) {
        return example_op("aten::_softmax_backward_data")
            .tensor("grad_output", {4, 6}, grad)
            .tensor("output", {4, 6}, grad)
            .literal("dim", std::int64_t{1})
            .literal("input_dtype", out)
            .out({4, 6}, out);
    };
    CHECK(has(rows_of(backward(dtype::float32, dtype::float32), 2), "P, R -> P"));
    CHECK_FALSE(passes_partial(rows_of(backward(dtype::float32, dtype::bfloat16), 2)));
    CHECK(has(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}, dtype::bfloat16, dtype::float32), 2), "P -> P"));
    CHECK_FALSE(has(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}, dtype::float32, dtype::bfloat16), 2), "P -> P"));
    auto const product =
        example_op("aten::mul.Tensor").tensor("self", {}, dtype::float32).tensor("other", {4}, dtype::bfloat16).out({4}, dtype::bfloat16);
    CHECK_FALSE(has(rows_of(product, 2), "P, R -> P"));
    CHECK(has(rows_of(product, 2), "R, P -> P"));
}

TEST_CASE("the sum of two bools is an or, so Partial stops there") {
    auto const e =
        example_op("aten::add.Tensor").tensor("self", {4}, dtype::boolean).tensor("other", {4}, dtype::boolean).out({4}, dtype::boolean);
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S0, S0 -> S0"});
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

// ---- reductions ------------------------------------------------------------------------------------------------------------------------

TEST_CASE("a cut of a reduced dim leaves the reduction's own kind of Partial") {
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> P", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::mean.dim", {4, 6}, {-1}, true, {4, 1}), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> P(avg)", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::amax", {4, 6}, {0}, false, {6}), 2) == texts{"R -> R", "S0 -> P(max)", "S1 -> S0", "P(max) -> P(max)"});
    CHECK(rows_of(reduce("aten::amin", {4, 6}, {0}, true, {1, 6}), 2) == texts{"R -> R", "S0 -> P(min)", "S1 -> S1", "P(min) -> P(min)"});
}

TEST_CASE("a reduction without dims reduces all of them, and of a scalar there is nothing to cut") {
    CHECK(rows_of(example_op("aten::sum").tensor("self", {4, 6}).literal("dtype", none).out({}), 2) ==
          texts{"R -> R", "S0 -> P", "S1 -> P", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {}, false, {}), 2).size() == 5);
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {}, {-1}, false, {}), 2) == texts{"R -> R", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::amax", {}, {0}, false, {}), 2) == texts{"R -> R", "P(max) -> P(max)"});
}

TEST_CASE("A22, A23: no rule covers ops that return indices, so none can pass them off as Partial") {
    auto const rules = standard_rules();
    for (auto name : {"aten::argmax", "aten::argmin", "aten::max.dim", "aten::min.dim"})
        CHECK_MESSAGE(!rules.covers(unary(name, {4}).query()), name);
}

TEST_CASE("A16, A17, A19: no rule covers norms, and roots and powers stop Partial") {
    CHECK_FALSE(standard_rules().covers(unary("aten::linalg_vector_norm", {4}).query()));
    CHECK_FALSE(passes_partial(rows_of(unary("aten::sqrt", {4}), 2)));
    CHECK_FALSE(passes_partial(rows_of(unary("aten::pow.Tensor_Scalar", {4}), 2)));
}

TEST_CASE("A31: softmax never cuts its own dim, whether that is written -1 or 2") {
    auto const of = [](std::string name, std::int64_t dim) {
        return rows_of(
            example_op(std::move(name)).tensor("self", {4, 4, 4}).literal("dim", dim).literal("half_to_float", false).out({4, 4, 4}), 2);
    };
    for (auto name : {"aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax"}) {
        CHECK(of(name, -1) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});
        CHECK(of(name, 2) == of(name, -1));
        CHECK(of(name, 0) == texts{"R -> R", "S1 -> S1", "S2 -> S2"});
    }
    auto const backward = [](std::int64_t dim) {
        return rows_of(example_op("aten::_softmax_backward_data")
                           .tensor("grad_output", {4, 4, 4})
                           .tensor("output", {4, 4, 4})
                           .literal("dim", dim)
                           .literal("input_dtype", dtype::float32)
                           .out({4, 4, 4}),
                       2);
    };
    CHECK(backward(-1) == texts{"R, R -> R", "S0, S0 -> S0", "S1, S1 -> S1", "P, R -> P"});
    CHECK(backward(2) == backward(-1));
}
