// SPDX-License-Identifier: BSL-1.0
// What the rules of elementwise ops list for one axis, and what they must not list. "S0, R -> P": operands, then outputs. The numbers
// behind the rows are checked with real ATen ops by the oracle; a row that goes missing is seen here.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {
using enum dtype;

example_op unary(std::string name, shape s = {4}, dtype in = float32, dtype out = float32) {
    return example_op(std::move(name)).tensor("self", s, in).out(s, out);
}
example_op binary(std::string name, shape a = {4}, shape b = {4}, shape full = {4}, dtype type = float32, dtype out = float32) {
    return example_op(std::move(name)).tensor("self", std::move(a), type).tensor("other", std::move(b), type).out(std::move(full), out);
}
example_op with(std::string name, char const* literal, double value, dtype type = float32) {
    return unary(std::move(name), {4}, type, type).literal(literal, value);
}
example_op cast(dtype from, dtype to) { return unary("aten::_to_copy", {4}, from, to).literal("dtype", to); }

/// The rows of an op over [4] that hold Partial, "P" for sum.
texts partial_rows(example_op const& e) {
    texts found;
    for (auto const& t : rows_of(e, 2))
        if (t.find('P') != std::string::npos) found.push_back(t);
    return found;
}
texts const sums{"P -> P", "P(avg) -> P(avg)"}, extremes{"P(max) -> P(max)", "P(min) -> P(min)"}, minimum{"P(min) -> P(min)"},
    all{"P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"},
    affine{"P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"};
}  // namespace

TEST_CASE("an elementwise op is cut along every dim, and broadcast dims stay whole on the operand that lacks them") {
    CHECK(rows_of(binary("aten::atan2", {4, 1, 6}, {2, 6}, {4, 2, 6}), 2) ==
          texts{"R, R -> R", "S0, R -> S0", "R, S0 -> S1", "S2, S1 -> S2"});
    CHECK(rows_of(binary("aten::atan2", {4, 4}, {}, {4, 4}), 2) == texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1"});
    CHECK(rows_of(unary("aten::abs", {}), 2) == texts{"R -> R"});
}

TEST_CASE("E6: adding a replicated bias to a partial product is no row; together sums pass, alone averages and bounds") {
    auto const rows = partial_rows(binary("aten::add.Tensor").literal("alpha", std::int64_t{1}));
    CHECK(rows == texts{"P, P -> P", "P(avg), P(avg) -> P(avg)", "P(avg), R -> P(avg)", "P(max), R -> P(max)", "P(min), R -> P(min)",
                        "R, P(avg) -> P(avg)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    texts const falling{"P, P -> P",           "P(avg), P(avg) -> P(avg)", "P(avg), R -> P(avg)",
                        "P(max), R -> P(max)", "P(min), R -> P(min)",      "R, P(avg) -> P(avg)"};
    CHECK(partial_rows(binary("aten::sub.Tensor").literal("alpha", std::int64_t{1})) == falling);
    CHECK(partial_rows(binary("aten::add.Tensor").literal("alpha", -2.0)) == falling);
    CHECK(partial_rows(binary("aten::sub.Tensor").literal("alpha", -2.0)) == rows);
    CHECK(partial_rows(binary("aten::rsub.Tensor")) == texts{"P, P -> P", "P(avg), P(avg) -> P(avg)", "P(avg), R -> P(avg)",
                                                             "R, P(avg) -> P(avg)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
}

TEST_CASE("a literal that is added stops sums only, unless it is 0; from a literal minus x only averages pass") {
    CHECK(partial_rows(with("aten::add.Scalar", "other", 1.5)) == affine);
    CHECK(partial_rows(with("aten::sub.Scalar", "other", 1.5)) == affine);
    CHECK(partial_rows(with("aten::add.Scalar", "other", 0.0)) == all);
    CHECK(partial_rows(with("aten::add.Scalar", "other", 3.0).literal("alpha", std::int64_t{0})) == all);
    CHECK(partial_rows(with("aten::rsub.Scalar", "other", 1.5)) == texts{"P(avg) -> P(avg)"});
    CHECK(partial_rows(with("aten::rsub.Scalar", "other", 0.0)) == sums);
    CHECK(partial_rows(with("aten::rsub.Scalar", "other", 1.5).literal("alpha", -1.0)) == affine);
}

TEST_CASE("A19: a literal factor passes sums, and bounds where it is not negative") {
    for (auto name : {"aten::mul.Scalar", "aten::mul.Tensor", "aten::div.Scalar"}) {
        CHECK(partial_rows(with(name, "other", 2.0)) == all);
        CHECK(partial_rows(with(name, "other", -2.0)) == sums);
    }
    CHECK(partial_rows(with("aten::mul.Scalar", "other", 0.0)) == all);
    CHECK(partial_rows(unary("aten::mul.Scalar").literal("other", std::int64_t{-3})) == sums);
}

TEST_CASE("a product takes Partial on either side alone, a quotient only above, a rounded one never as a sum") {
    CHECK(partial_rows(binary("aten::mul.Tensor")) == texts{"P, R -> P", "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
    CHECK(partial_rows(binary("aten::div.Tensor")) == texts{"P, R -> P", "P(avg), R -> P(avg)"});
    CHECK(partial_rows(binary("aten::div.Tensor_mode").literal("rounding_mode", none)) == texts{"P, R -> P", "P(avg), R -> P(avg)"});
    CHECK(partial_rows(binary("aten::div.Tensor_mode").literal("rounding_mode", std::string("floor"))).empty());
    CHECK(partial_rows(binary("aten::floor_divide")).empty());
    CHECK(partial_rows(with("aten::floor_divide.Scalar", "other", 2.0)) == extremes);
    CHECK(partial_rows(with("aten::floor_divide.Scalar", "other", -2.0)).empty());
    CHECK(partial_rows(unary("aten::div.Scalar", {4}, int64, float32).literal("other", std::int64_t{2})) == extremes);
}

TEST_CASE("lerp, addcmul and addcdiv: sums in what they add up, averages in each, bounds in what is only added") {
    auto const lerp = [](argument_value weight) {
        return example_op("aten::lerp.Scalar").tensor("self", {4}).tensor("end", {4}).literal("weight", std::move(weight)).out({4});
    };
    auto const linear = texts{"P, P -> P", "P(avg), P(avg) -> P(avg)"};
    auto const has_all = [](texts const& rows, texts const& wanted) {
        for (auto const& t : wanted) CHECK_MESSAGE(has(rows, t), t);
        CHECK(rows.size() == wanted.size());
    };
    has_all(partial_rows(lerp(0.25)), {linear[0], linear[1], "P(avg), R -> P(avg)", "P(max), R -> P(max)", "P(min), R -> P(min)",
                                       "R, P(avg) -> P(avg)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    has_all(partial_rows(lerp(1.5)),
            {linear[0], linear[1], "P(avg), R -> P(avg)", "R, P(avg) -> P(avg)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    has_all(partial_rows(lerp(-0.5)),
            {linear[0], linear[1], "P(avg), R -> P(avg)", "P(max), R -> P(max)", "P(min), R -> P(min)", "R, P(avg) -> P(avg)"});
    auto const tensor_weight = example_op("aten::lerp.Tensor").tensor("self", {4}).tensor("end", {4}).tensor("weight", {4}).out({4});
    has_all(partial_rows(tensor_weight),
            {"P, P, R -> P", "P(avg), P(avg), R -> P(avg)", "P(avg), R, R -> P(avg)", "R, P(avg), R -> P(avg)", "R, R, P(avg) -> P(avg)"});
    auto const addc = [](char const* name) {
        return example_op(name).tensor("self", {4}).tensor("tensor1", {4}).tensor("tensor2", {4}).literal("value", 1.0).out({4});
    };
    texts const divided{"P, P, R -> P",           "P(avg), P(avg), R -> P(avg)", "P(avg), R, R -> P(avg)",
                        "P(max), R, R -> P(max)", "P(min), R, R -> P(min)",      "R, P(avg), R -> P(avg)"};
    has_all(partial_rows(addc("aten::addcdiv")), divided);
    texts multiplied = divided;
    multiplied.insert(multiplied.end(), {"P, R, P -> P", "P(avg), R, P(avg) -> P(avg)", "R, R, P(avg) -> P(avg)"});
    has_all(partial_rows(addc("aten::addcmul")), multiplied);
}

TEST_CASE("powers: odd ones rise, even ones do not, roots rise from 0 on, where the parts of a minimum lie") {
    CHECK(partial_rows(with("aten::pow.Tensor_Scalar", "exponent", 1.0)) == all);
    CHECK(partial_rows(with("aten::pow.Tensor_Scalar", "exponent", 3.0)) == extremes);
    for (double even : {2.0, 4.0, 0.0, -1.0, -2.0}) CHECK(partial_rows(with("aten::pow.Tensor_Scalar", "exponent", even)).empty());
    CHECK(partial_rows(with("aten::pow.Tensor_Scalar", "exponent", 0.5)) == minimum);
    auto const base = [](double b) { return example_op("aten::pow.Scalar").literal("self", b).tensor("exponent", {4}).out({4}); };
    CHECK(partial_rows(base(2.0)) == extremes);
    CHECK(partial_rows(base(0.5)).empty());
    CHECK(partial_rows(binary("aten::pow.Tensor_Tensor")).empty());
}

TEST_CASE("A32: functions that bend stop every Partial, rising ones pass bounds, linear ones sums") {
    for (auto name : {"aten::abs", "aten::silu", "aten::gelu", "aten::rsqrt", "aten::cos", "aten::sin", "aten::square", "aten::reciprocal",
                      "aten::mish", "aten::hardswish", "aten::erfc", "aten::isnan", "aten::logical_not", "aten::bitwise_not"})
        CHECK_MESSAGE(partial_rows(unary(name)).empty(), name);
    for (auto name : {"aten::relu", "aten::exp", "aten::tanh", "aten::sigmoid", "aten::sign", "aten::floor", "aten::round", "aten::erf",
                      "aten::hardtanh", "aten::celu", "aten::expm1", "aten::hardsigmoid", "aten::sgn"})
        CHECK_MESSAGE(partial_rows(unary(name)) == extremes, name);
    for (auto name : {"aten::sqrt", "aten::log", "aten::log1p", "aten::log2"}) CHECK_MESSAGE(partial_rows(unary(name)) == minimum, name);
    CHECK(partial_rows(unary("aten::neg")) == sums);
    CHECK(partial_rows(with("aten::leaky_relu", "negative_slope", 0.1)) == extremes);
    CHECK(partial_rows(with("aten::leaky_relu", "negative_slope", -0.1)).empty());
    CHECK(partial_rows(with("aten::elu", "alpha", 1.0)) == extremes);
    CHECK(partial_rows(with("aten::elu", "alpha", -1.0)).empty());
    CHECK(partial_rows(with("aten::softplus", "beta", 1.0).literal("threshold", std::int64_t{20})) == extremes);
    CHECK(partial_rows(with("aten::softplus", "beta", 1.0).literal("threshold", std::int64_t{1})).empty());
    CHECK(partial_rows(with("aten::softplus", "beta", -1.0).literal("threshold", std::int64_t{20})).empty());
    CHECK(partial_rows(with("aten::threshold", "threshold", 0.5).literal("value", 0.0)) == extremes);
    CHECK(partial_rows(with("aten::threshold", "threshold", 0.5).literal("value", 9.0)).empty());
}

TEST_CASE("backward of an activation: sums in the gradient, bounds too where the activation never falls") {
    auto const backward = [](char const* name) { return example_op(name).tensor("grad_output", {4}).tensor("self", {4}).out({4}); };
    texts const linear{"P, R -> P", "P(avg), R -> P(avg)"}, scaled{linear[0], linear[1], "P(max), R -> P(max)", "P(min), R -> P(min)"};
    for (auto name : {"aten::silu_backward", "aten::gelu_backward", "aten::tanh_backward", "aten::sigmoid_backward", "aten::mish_backward",
                      "aten::hardswish_backward"})
        CHECK_MESSAGE(partial_rows(backward(name)) == linear, name);
    for (auto name : {"aten::threshold_backward", "aten::hardtanh_backward", "aten::hardsigmoid_backward", "aten::softplus_backward"})
        CHECK_MESSAGE(partial_rows(backward(name)) == scaled, name);
    CHECK(partial_rows(backward("aten::leaky_relu_backward").literal("negative_slope", 0.1)) == scaled);
    CHECK(partial_rows(backward("aten::leaky_relu_backward").literal("negative_slope", -0.1)) == linear);
    CHECK(partial_rows(backward("aten::elu_backward").literal("is_result", false)) == scaled);
    CHECK(partial_rows(backward("aten::elu_backward").literal("is_result", true)) == linear);
    CHECK(partial_rows(backward("aten::native_dropout_backward").literal("scale", 2.0)) == scaled);
    CHECK(partial_rows(backward("aten::native_dropout_backward").literal("scale", -2.0)) == linear);
    auto const glu =
        example_op("aten::glu_backward").tensor("grad_output", {4, 6}).tensor("self", {4, 12}).literal("dim", std::int64_t{-1});
    CHECK(rows_of(example_op(glu).out({4, 12}), 2) == texts{"R, R -> R", "S0, S0 -> S0", linear[0], linear[1]});
    CHECK(rows_of(unary("aten::glu", {4, 12}).literal("dim", std::int64_t{0}), 2) == texts{"R -> R", "S1 -> S1"});
}

TEST_CASE("two outputs of an activation are cut alike, an empty workspace stays whole") {
    auto const both = [](shape workspace) {
        return example_op("aten::log_sigmoid_forward").tensor("self", {4, 6}).out({4, 6}).out(workspace);
    };
    CHECK(rows_of(both({4, 6}), 2) == texts{"R -> R, R", "S0 -> S0, S0", "S1 -> S1, S1"});
    CHECK(rows_of(both({0}), 2) == texts{"R -> R, R", "S0 -> S0, R", "S1 -> S1, R"});
}

TEST_CASE("comparisons rise with one side, as flags") {
    auto const flags = [](char const* name) { return binary(name, {4}, {4}, {4}, float32, boolean); };
    for (auto name : {"aten::gt.Tensor", "aten::ge.Tensor"})
        CHECK(partial_rows(flags(name)) == texts{"P(max), R -> P(max)", "P(min), R -> P(min)"});
    for (auto name : {"aten::lt.Tensor", "aten::le.Tensor"})
        CHECK(partial_rows(flags(name)) == texts{"R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    for (auto name : {"aten::eq.Tensor", "aten::ne.Tensor"}) CHECK(partial_rows(flags(name)).empty());
    CHECK(partial_rows(unary("aten::gt.Scalar", {4}, float32, boolean).literal("other", 0.5)) == extremes);
    CHECK(partial_rows(unary("aten::lt.Scalar", {4}, float32, boolean).literal("other", 0.5)).empty());
}

TEST_CASE("'and' and 'or' of flags are their minimum and maximum; of bit patterns they are neither; a sum of flags is an 'or'") {
    texts const alone{"P(max), R -> P(max)", "P(min), R -> P(min)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"};
    auto const of = [](char const* name, dtype t) { return partial_rows(binary(name, {4}, {4}, {4}, t, t)); };
    auto const and_with = [&](std::string first, bool last) {
        texts rows = alone;
        rows.insert(last ? rows.end() : rows.begin(), std::move(first));
        return rows;
    };
    for (auto name : {"aten::bitwise_and.Tensor", "aten::logical_and", "aten::__and__.Tensor"})
        CHECK(of(name, boolean) == and_with("P(min), P(min) -> P(min)", false));
    for (auto name : {"aten::bitwise_or.Tensor", "aten::logical_or", "aten::__or__.Tensor"})
        CHECK(of(name, boolean) == and_with("P(max), P(max) -> P(max)", false));
    CHECK(of("aten::add.Tensor", boolean) == and_with("P(max), P(max) -> P(max)", true));
    CHECK(of("aten::mul.Tensor", boolean) == and_with("P(min), P(min) -> P(min)", true));
    for (auto name : {"aten::bitwise_and.Tensor", "aten::logical_or", "aten::bitwise_xor.Tensor"}) CHECK(of(name, int64).empty());
    CHECK(partial_rows(binary("aten::bitwise_left_shift.Tensor", {4}, {4}, {4}, int64, int64)).size() == 4);
    CHECK(partial_rows(binary("aten::bitwise_right_shift.Tensor", {4}, {4}, {4}, int64, int64)) ==
          texts{"P(max), R -> P(max)", "P(min), R -> P(min)"});
}

TEST_CASE("the larger of two: maxima together, any bound alone; the smaller the other way round; clamp is both") {
    texts const alone{"P(max), R -> P(max)", "P(min), R -> P(min)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"};
    texts larger{"P(max), P(max) -> P(max)"}, smaller{"P(min), P(min) -> P(min)"};
    larger.insert(larger.end(), alone.begin(), alone.end());
    smaller.insert(smaller.end(), alone.begin(), alone.end());
    CHECK(partial_rows(binary("aten::maximum")) == larger);
    CHECK(partial_rows(binary("aten::minimum")) == smaller);
    CHECK(partial_rows(example_op("aten::clamp_min.Tensor").tensor("self", {4}).tensor("min", {4}).out({4})) == larger);
    CHECK(partial_rows(example_op("aten::clamp_max.Tensor").tensor("self", {4}).tensor("max", {4}).out({4})) == smaller);
    CHECK(partial_rows(unary("aten::clamp").literal("min", none).literal("max", 1.0)) == extremes);
    CHECK(partial_rows(with("aten::clamp_min", "min", 1.0)) == extremes);
    auto const clamp = example_op("aten::clamp.Tensor").tensor("self", {4}).tensor("min", {4}).tensor("max", {4}).out({4});
    CHECK(partial_rows(clamp) == texts{"P(max), P(max), R -> P(max)", "P(min), R, P(min) -> P(min)", "R, P(min), P(min) -> P(min)",
                                       "P(max), R, R -> P(max)", "P(min), R, R -> P(min)", "R, P(max), R -> P(max)",
                                       "R, P(min), R -> P(min)", "R, R, P(max) -> P(max)", "R, R, P(min) -> P(min)"});
}

TEST_CASE("a choice takes every kind on both values together, all but sums on one, and sums beside a literal 0; never the condition's") {
    auto const where =
        example_op("aten::where.self").tensor("condition", {4, 1}, boolean).tensor("self", {4, 6}).tensor("other", {}).out({4, 6});
    CHECK(rows_of(where, 2) == texts{"R, R, R -> R", "S0, S0, R -> S0", "R, S1, R -> S1", "R, P, P -> P", "R, P(avg), P(avg) -> P(avg)",
                                     "R, P(max), P(max) -> P(max)", "R, P(min), P(min) -> P(min)", "R, P(avg), R -> P(avg)",
                                     "R, P(max), R -> P(max)", "R, P(min), R -> P(min)", "R, R, P(avg) -> P(avg)", "R, R, P(max) -> P(max)",
                                     "R, R, P(min) -> P(min)"});
    auto const fill = [](double v) {
        return partial_rows(
            example_op("aten::masked_fill.Scalar").tensor("self", {4}).tensor("mask", {4}, boolean).literal("value", v).out({4}));
    };
    CHECK(fill(-7) == texts{"P(avg), R -> P(avg)", "P(max), R -> P(max)", "P(min), R -> P(min)"});
    CHECK(fill(0) == texts{"P, R -> P", "P(avg), R -> P(avg)", "P(max), R -> P(max)", "P(min), R -> P(min)"});
    auto const literals = [](double a, double b) {
        return partial_rows(
            example_op("aten::where.Scalar").tensor("condition", {4}, boolean).literal("self", a).literal("other", b).out({4}));
    };
    CHECK(literals(1, 0) == extremes);
    CHECK(literals(0, 1).empty());
}

TEST_CASE("E5: sums pass a cast that keeps every value, bounds one that keeps the order, flags have no sums") {
    for (auto const& [from, to] : {std::pair{bfloat16, float32}, std::pair{float16, float32}, std::pair{float32, float64},
                                   std::pair{float32, float32}, std::pair{bfloat16, float64}, std::pair{int64, int64},
                                   std::pair{int32, int64}, std::pair{int32, float64}, std::pair{int16, float32}})
        CHECK_MESSAGE(partial_rows(cast(from, to)) == all, to_string(from), to_string(to));
    for (auto const& [from, to] :
         {std::pair{float32, bfloat16}, std::pair{float32, float16}, std::pair{float64, float32}, std::pair{float32, int64},
          std::pair{bfloat16, float16}, std::pair{float16, bfloat16}, std::pair{int64, float32}, std::pair{boolean, float32},
          std::pair{boolean, boolean}, std::pair{boolean, int64}, std::pair{int64, float64}})
        CHECK_MESSAGE(partial_rows(cast(from, to)) == extremes, to_string(from), to_string(to));
    CHECK(partial_rows(cast(int64, int32)) == texts{"P -> P"});
    for (auto const& [from, to] : {std::pair{float32, boolean}, std::pair{int64, boolean}, std::pair{float32, uint8},
                                   std::pair{float32, float8_e4m3fn}, std::pair{complex64, float32}})
        CHECK_MESSAGE(partial_rows(cast(from, to)).empty(), to_string(from), to_string(to));
    CHECK(partial_rows(cast(complex64, complex128)) == sums);
    CHECK(partial_rows(cast(complex64, complex64)) == sums);
}

TEST_CASE("E5: a linear op of two types stops the sums of the one that it rounds") {
    auto const product = example_op("aten::mul.Tensor").tensor("self", {}, float32).tensor("other", {4}, bfloat16).out({4}, bfloat16);
    CHECK(partial_rows(product) == texts{"R, P -> P", "R, P(avg) -> P(avg)"});
}

TEST_CASE("A20: a copy takes the source's Partial, together with the target's or alone, and reads nothing of the target") {
    auto const e = example_op("aten::copy").tensor("self", {4}).tensor("src", {}).out({4});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "S0, R -> S0", "R, P -> P", "R, P(avg) -> P(avg)", "R, P(max) -> P(max)",
                                 "R, P(min) -> P(min)", "P, P -> P", "P(avg), P(avg) -> P(avg)", "P(max), P(max) -> P(max)",
                                 "P(min), P(min) -> P(min)", "P, R -> R", "P(avg), R -> R", "P(max), R -> R", "P(min), R -> R"});
}

TEST_CASE("A13: bits read as another type keep the last dim whole where the size of an element changes") {
    auto const e = example_op("aten::view.dtype").tensor("self", {4, 8}, uint8).literal("dtype", int64).out({4, 1}, int64);
    CHECK(rows_of(e, 2) == texts{"R -> R", "S0 -> S0"});
    CHECK(rows_of(unary("aten::view.dtype", {4, 8}, float32, int32), 2) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});
    CHECK(rows_of(unary("aten::view.dtype", {8}, float32, float32), 2) == texts{"R -> R", "S0 -> S0", all[0], all[1], all[2], all[3]});
}

TEST_CASE("complex numbers are pairs: sums pass, the pair's own dim is never cut") {
    auto const pairs = example_op("aten::view_as_complex").tensor("self", {4, 2}).out({4}, complex64);
    CHECK(rows_of(pairs, 2) == texts{"R -> R", "S0 -> S0", sums[0], sums[1]});
    auto const back = example_op("aten::view_as_real").tensor("self", {4}, complex64).out({4, 2});
    CHECK(rows_of(back, 2) == texts{"R -> R", "S0 -> S0", sums[0], sums[1]});
    CHECK(partial_rows(unary("aten::_conj", {4}, complex64, complex64)) == sums);
    CHECK(partial_rows(binary("aten::mul.Tensor", {4}, {4}, {4}, complex64, complex64)).size() == 4);
    auto const polar = example_op("aten::polar").tensor("abs", {4}).tensor("angle", {4}).out({4}, complex64);
    CHECK(partial_rows(polar) == texts{"P, R -> P", "P(avg), R -> P(avg)"});
    auto const joined = example_op("aten::complex").tensor("real", {4}).tensor("imag", {4}).out({4}, complex64);
    CHECK(partial_rows(joined) == texts{"P, P -> P", "P(avg), P(avg) -> P(avg)", "P(avg), R -> P(avg)", "R, P(avg) -> P(avg)"});
}

TEST_CASE("an elementwise op of one's own: traits by operand") {
    auto rules = standard_rules();
    rules.add("mine::gate", rules::pointwise_rule({.linear = true, .linear_in = {0}, .multilinear_in = {}, .rising_in = {1}}));
    auto const e = example_op("mine::gate").tensor("x", {4}).tensor("g", {4}).out({4});
    CHECK(rows_of(e, 2, rules) ==
          texts{"R, R -> R", "S0, S0 -> S0", "P, R -> P", "P(avg), R -> P(avg)", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
}
