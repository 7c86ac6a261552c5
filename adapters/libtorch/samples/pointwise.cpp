// SPDX-License-Identifier: BSL-1.0
// Elementwise ops: arithmetic, functions of one tensor, activations and their backward.
#include <adapters/libtorch/samples/samples.hpp>

#include <limits>

namespace cantle::libtorch {
namespace {

/// Even, odd, long and thin, of rank 0, with a dim of size 1.
std::vector<shape> const pool{{12, 8}, {2, 12, 4}, {24}, {}, {1, 12}, {5, 3}, {2, 3, 4, 2}};

/// Infinities and not-a-number among finite ones.
at::Tensor with_odd_ones(shape const& x, std::int64_t shift = 0) {
    auto t = eighths(x);
    double const odd[] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                          -std::numeric_limits<double>::infinity()};
    for (std::int64_t i = 0; i < 5 + shift && i < t.numel(); ++i)
        t.view(-1)[(5 * i * i + (2 + shift) * i + shift) % t.numel()].fill_(odd[(i + shift) % 3]);
    return t;
}

/// Three shapes of the pool, other ones from name to name.
std::vector<shape> some(std::size_t turn) { return {pool[turn % 2], pool[2 + turn % 3], pool[5 + turn % 2]}; }

void add_unary(sample_list& s) {
    std::size_t turn = 0;
    auto const each = [&](std::initializer_list<char const*> names, auto make) {
        for (auto name : names) {
            ++turn;
            for (auto const& x : some(turn)) s.push_back(sample(name).arg("self", make(x)));
        }
    };
    each({"aten::neg",
          "aten::abs",
          "aten::sign",
          "aten::square",
          "aten::reciprocal",
          "aten::sin",
          "aten::cos",
          "aten::tan",
          "aten::tanh",
          "aten::sinh",
          "aten::cosh",
          "aten::asinh",
          "aten::atan",
          "aten::sigmoid",
          "aten::erf",
          "aten::erfc",
          "aten::floor",
          "aten::ceil",
          "aten::round",
          "aten::trunc",
          "aten::frac",
          "aten::relu",
          "aten::relu6",
          "aten::selu",
          "aten::silu",
          "aten::mish",
          "aten::hardswish",
          "aten::hardsigmoid",
          "aten::exp2",
          "aten::expm1",
          "aten::log_sigmoid_forward"},
         [](shape const& x) { return eighths(x); });
    each({"aten::exp"}, [](shape const& x) { return eighths(x) / 8; });
    each({"aten::rsqrt", "aten::sqrt", "aten::log", "aten::log2", "aten::log10", "aten::log1p"},
         [](shape const& x) { return eighths(x, true); });
    each({"aten::asin", "aten::acos", "aten::erfinv"}, [](shape const& x) { return eighths(x) / 32; });
    each({"aten::logit"}, [](shape const& x) { return eighths(x, true) / 32; });
    each({"aten::nan_to_num", "aten::isnan", "aten::isinf", "aten::isfinite"}, [](shape const& x) { return with_odd_ones(x); });
    for (auto name : {"aten::nan_to_num", "aten::isnan", "aten::isinf", "aten::isfinite"})  // one pattern alone agrees by chance
        for (auto const& x : pool)
            for (std::int64_t shift : {1, 2, 5}) s.push_back(sample(name).arg("self", with_odd_ones(x, shift)));
    each({"aten::exp", "aten::floor"}, [](shape const& x) { return eighths(x, false, at::kFloat) / 4; });
    each({"aten::relu", "aten::sign", "aten::neg"}, [](shape const& x) { return indices(x, 7) - 3; });
    {
        own_streams const own(1);
        each({"aten::sgn"}, [](shape const& x) { return eighths(x); });
        each({"aten::sgn"}, [](shape const& x) { return indices(x, 7) - 3; });
    }
    for (auto const& x : some(0)) {
        s.push_back(sample("aten::round.decimals").arg("self", eighths(x)).arg("decimals", 1));
        for (auto how : {"tanh", "none"}) s.push_back(sample("aten::gelu").arg("self", eighths(x)).arg("approximate", how));
        s.push_back(sample("aten::hardtanh").arg("self", eighths(x)).arg("min_val", -1.5).arg("max_val", 2));
        s.push_back(sample("aten::softshrink").arg("self", eighths(x)).arg("lambd", 0.5));
        s.push_back(sample("aten::hardshrink").arg("self", eighths(x)).arg("lambd", 0.5));
        s.push_back(sample("aten::softplus").arg("self", eighths(x)).arg("beta", 1).arg("threshold", 20));
        s.push_back(sample("aten::softplus").arg("self", eighths(x)).arg("beta", 1).arg("threshold", 0));
        s.push_back(sample("aten::threshold").arg("self", eighths(x)).arg("threshold", 0.5).arg("value", 0.25));
        s.push_back(sample("aten::threshold").arg("self", eighths(x)).arg("threshold", 0.5).arg("value", 9.0));
        for (double slope : {0.25, -0.25}) {
            s.push_back(sample("aten::leaky_relu").arg("self", eighths(x)).arg("negative_slope", slope));
            s.push_back(sample("aten::elu").arg("self", eighths(x)).arg("alpha", slope * 4).arg("scale", 1).arg("input_scale", 1));
            s.push_back(sample("aten::celu").arg("self", eighths(x)).arg("alpha", slope * 4));
        }
        s.push_back(sample("aten::glu").arg("self", eighths({4, 12})).arg("dim", 1));
        s.push_back(sample("aten::glu").arg("self", eighths({8, 2, 6})).arg("dim", -3));
    }
}

void add_backward(sample_list& s) {
    for (auto const& x : some(1)) {
        auto const backward = [&](char const* name, char const* second) {
            return sample(name).arg("grad_output", eighths(x)).arg(second, eighths(x));
        };
        for (auto name : {"aten::silu_backward", "aten::mish_backward", "aten::hardswish_backward", "aten::hardsigmoid_backward"})
            s.push_back(backward(name, "self"));
        for (auto how : {"tanh", "none"}) s.push_back(backward("aten::gelu_backward", "self").arg("approximate", how));
        for (auto name : {"aten::tanh_backward", "aten::sigmoid_backward"}) s.push_back(backward(name, "output"));
        s.push_back(backward("aten::threshold_backward", "self").arg("threshold", 0));
        s.push_back(backward("aten::hardtanh_backward", "self").arg("min_val", -1).arg("max_val", 1));
        s.push_back(backward("aten::softplus_backward", "self").arg("beta", 1).arg("threshold", 20));
        for (double slope : {0.25, -0.25}) {
            s.push_back(backward("aten::leaky_relu_backward", "self").arg("negative_slope", slope).arg("self_is_result", false));
            for (bool result : {false, true})
                if (slope > 0 || !result)  // ATen refuses a negative alpha of a result
                    s.push_back(sample("aten::elu_backward")
                                    .arg("grad_output", eighths(x))
                                    .arg("alpha", slope * 4)
                                    .arg("scale", 1)
                                    .arg("input_scale", 1)
                                    .arg("is_result", result)
                                    .arg("self_or_result", eighths(x)));
        }
        auto const in = eighths(x);
        s.push_back(sample("aten::log_sigmoid_backward")
                        .arg("grad_output", eighths(x))
                        .arg("self", in)
                        .arg("buffer", std::get<1>(at::log_sigmoid_forward(in))));
    }
    s.push_back(sample("aten::glu_backward").arg("grad_output", eighths({4, 6})).arg("self", eighths({4, 12})).arg("dim", 1));
    s.push_back(sample("aten::glu_backward").arg("grad_output", eighths({4, 2, 6})).arg("self", eighths({8, 2, 6})).arg("dim", -3));
}

void add_literals(sample_list& s) {
    for (auto const& x : some(0)) {
        auto const self = [&x](char const* name) { return sample(name).arg("self", eighths(x)); };
        for (double c : {0.625, 0.0, -1.0})
            for (double alpha : {1.0, -2.0})
                for (auto name : {"aten::add.Scalar", "aten::sub.Scalar", "aten::rsub.Scalar"})
                    s.push_back(self(name).arg("other", c).arg("alpha", alpha));
        for (double c : {0.25, -0.25}) {
            for (auto name :
                 {"aten::mul.Scalar", "aten::div.Scalar", "aten::floor_divide.Scalar", "aten::fmod.Scalar", "aten::remainder.Scalar"})
                s.push_back(self(name).arg("other", c));
            for (auto mode : {"floor", "trunc"}) s.push_back(self("aten::div.Scalar_mode").arg("other", c).arg("rounding_mode", mode));
            s.push_back(self("aten::div.Scalar_mode").arg("other", c).arg("rounding_mode", none));
        }
        for (double c : {1.0, 2.0, 3.0, -1.0}) s.push_back(self("aten::pow.Tensor_Scalar").arg("exponent", c));
        s.push_back(sample("aten::pow.Tensor_Scalar").arg("self", eighths(x, true)).arg("exponent", 1.5));
        for (double c : {2.0, 0.5}) s.push_back(sample("aten::pow.Scalar").arg("self", c).arg("exponent", eighths(x) / 4));
        s.push_back(sample("aten::remainder.Scalar_Tensor").arg("self", 7.0).arg("other", eighths(x)));
        for (double w : {0.25, 1.5, -0.5}) s.push_back(self("aten::lerp.Scalar").arg("end", eighths(x)).arg("weight", w));
    }
    s.push_back(sample("aten::div.Scalar").arg("self", 2 * indices({12, 4}, 9) + 16777217).arg("other", 2));
    s.push_back(sample("aten::mul.Scalar").arg("self", eighths({12, 4}, false, at::kBFloat16)).arg("other", 0.5));
}

void add_pairs(sample_list& s) {
    // with and without broadcasting, of either side
    std::vector<std::pair<shape, shape>> const pairs{
        {{12, 8}, {12, 8}}, {{4, 12, 6}, {6}}, {{12, 1, 6}, {4, 6}}, {{2, 24}, {}}, {{4}, {3, 1}}};
    for (auto const& [a, b] : pairs) {
        auto const both = [&a = a, &b = b](char const* name, bool positive = false) {
            return sample(name).arg("self", eighths(a, positive)).arg("other", eighths(b, positive));
        };
        for (auto name : {"aten::add.Tensor", "aten::sub.Tensor", "aten::rsub.Tensor"})
            for (double alpha : {1.0, 2.5, -1.0}) s.push_back(both(name).arg("alpha", alpha));
        for (auto name : {"aten::mul.Tensor", "aten::div.Tensor", "aten::floor_divide", "aten::fmod.Tensor", "aten::remainder.Tensor",
                          "aten::atan2", "aten::hypot"})
            s.push_back(both(name));
        s.push_back(both("aten::xlogy.Tensor", true));
        for (auto mode : {"floor", "trunc"}) s.push_back(both("aten::div.Tensor_mode").arg("rounding_mode", mode));
        s.push_back(both("aten::div.Tensor_mode").arg("rounding_mode", none));
        s.push_back(sample("aten::pow.Tensor_Tensor").arg("self", eighths(a, true)).arg("exponent", eighths(b) / 64));
        s.push_back(sample("aten::lerp.Tensor").arg("self", eighths(a)).arg("end", eighths(b)).arg("weight", eighths(a)));
        for (auto name : {"aten::addcmul", "aten::addcdiv"})
            s.push_back(sample(name).arg("self", eighths(a)).arg("tensor1", eighths(b)).arg("tensor2", eighths(a)).arg("value", 0.5));
    }
    auto const flagged = [](char const* name) { return sample(name).arg("self", flags({12, 4})).arg("other", flags({12, 4})); };
    s.push_back(flagged("aten::add.Tensor").arg("alpha", 1));
    s.push_back(flagged("aten::mul.Tensor"));
    s.push_back(sample("aten::mul.Tensor").arg("self", indices({12, 4}, 9)).arg("other", indices({12, 4}, 5)));
    s.push_back(sample("aten::add.Tensor").arg("self", indices({12, 4}, 9).to(at::kInt)).arg("other", eighths({12, 4})).arg("alpha", 1));
    s.push_back(
        sample("aten::mul.Tensor").arg("self", eighths({12, 4}, false, at::kBFloat16)).arg("other", eighths({12, 4}, false, at::kFloat)));
}

}  // namespace

void add_pointwise_samples(sample_list& s) {
    add_unary(s);
    add_backward(s);
    add_literals(s);
    add_pairs(s);
}

}  // namespace cantle::libtorch
