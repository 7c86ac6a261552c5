// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_pointwise_samples(sample_list& s) {
    std::vector<shape> const shapes{{12, 24}, {2, 12, 4}};
    for (auto name : {"aten::neg", "aten::sin", "aten::cos", "aten::abs", "aten::sign", "aten::silu", "aten::relu", "aten::tanh",
                      "aten::sigmoid", "aten::erf", "aten::reciprocal", "aten::alias", "aten::detach", "aten::contiguous", "aten::clone",
                      "aten::ones_like", "aten::zeros_like"})
        for (auto const& x : shapes) s.push_back(sample(name).arg("self", eighths(x)));
    for (auto name : {"aten::rsqrt", "aten::sqrt", "aten::log"})
        for (auto const& x : shapes) s.push_back(sample(name).arg("self", eighths(x, true)));
    for (auto const& x : shapes) {
        s.push_back(sample("aten::exp").arg("self", eighths(x) / 8));
        s.push_back(sample("aten::gelu").arg("self", eighths(x)).arg("approximate", "tanh"));
        s.push_back(sample("aten::gelu").arg("self", eighths(x)).arg("approximate", "none"));
        s.push_back(sample("aten::empty_like").arg("self", eighths(x)).no_values());
        s.push_back(sample("aten::full_like").arg("self", eighths(x)).arg("fill_value", 0.375));
        s.push_back(sample("aten::bitwise_not").arg("self", flags(x)));
        s.push_back(sample("aten::logical_not").arg("self", flags(x)));
        for (auto name : {"aten::add.Scalar", "aten::sub.Scalar", "aten::rsub.Scalar"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("other", 0.625).arg("alpha", 1));
        for (auto name : {"aten::mul.Scalar", "aten::div.Scalar"}) s.push_back(sample(name).arg("self", eighths(x)).arg("other", -0.25));
        for (auto name : {"aten::eq.Scalar", "aten::ne.Scalar", "aten::lt.Scalar", "aten::le.Scalar", "aten::gt.Scalar", "aten::ge.Scalar"})
            s.push_back(sample(name).arg("self", coarse(x)).arg("other", 0.5));
        s.push_back(sample("aten::pow.Tensor_Scalar").arg("self", eighths(x)).arg("exponent", 2));
        s.push_back(sample("aten::pow.Tensor_Scalar").arg("self", eighths(x)).arg("exponent", 3));
        s.push_back(sample("aten::pow.Scalar").arg("self", 2.0).arg("exponent", eighths(x) / 4));
        s.push_back(sample("aten::clamp").arg("self", eighths(x)).arg("min", -2.0).arg("max", 3.5));
        s.push_back(sample("aten::clamp_min").arg("self", eighths(x)).arg("min", -2.0));
        s.push_back(sample("aten::masked_fill.Scalar").arg("self", eighths(x)).arg("mask", flags(x)).arg("value", -7.0));
        s.push_back(sample("aten::masked_fill.Tensor").arg("self", eighths(x)).arg("mask", flags({x.back()})).arg("value", scalar(-7.0)));
    }
    // with and without broadcasting
    std::vector<std::pair<shape, shape>> const pairs{{{12, 24}, {12, 24}}, {{4, 12, 6}, {6}}, {{12, 1, 6}, {4, 6}}, {{2, 48}, {}}};
    for (auto const& pair : pairs) {
        auto const& a = pair.first;
        auto const& b = pair.second;
        auto const both = [&](char const* name, bool positive = false) {
            return sample(name).arg("self", eighths(a, positive)).arg("other", eighths(b, positive));
        };
        for (auto name : {"aten::add.Tensor", "aten::sub.Tensor"}) {
            s.push_back(both(name).arg("alpha", 1));
            s.push_back(both(name).arg("alpha", 2.5));
        }
        for (auto name : {"aten::mul.Tensor", "aten::div.Tensor", "aten::maximum", "aten::minimum"}) s.push_back(both(name));
        for (auto name : {"aten::eq.Tensor", "aten::ne.Tensor", "aten::lt.Tensor", "aten::le.Tensor", "aten::gt.Tensor", "aten::ge.Tensor"})
            s.push_back(sample(name).arg("self", coarse(a)).arg("other", coarse(b)));
        s.push_back(both("aten::div.Tensor_mode").arg("rounding_mode", "floor"));
        s.push_back(both("aten::div.Tensor_mode").arg("rounding_mode", none));
        s.push_back(sample("aten::pow.Tensor_Tensor").arg("self", eighths(a, true)).arg("exponent", eighths(b) / 64));
        for (auto name : {"aten::bitwise_and.Tensor", "aten::bitwise_or.Tensor", "aten::logical_and", "aten::logical_or"})
            s.push_back(sample(name).arg("self", flags(a)).arg("other", flags(b)));
        s.push_back(sample("aten::where.self").arg("condition", flags(b)).arg("self", eighths(a)).arg("other", eighths(b)));
        s.push_back(sample("aten::where.self").arg("condition", flags(a)).arg("self", eighths(b)).arg("other", eighths({})));
    }
    s.push_back(sample("aten::add.Tensor").arg("self", flags({12, 4})).arg("other", flags({12, 4})).arg("alpha", 1));
    s.push_back(sample("aten::mul.Tensor").arg("self", indices({12, 4}, 9)).arg("other", indices({12, 4}, 5)));
    s.push_back(
        sample("aten::mul.Tensor").arg("self", eighths({12, 4}, false, at::kBFloat16)).arg("other", eighths({12, 4}, false, at::kFloat)));
    for (auto const& x : shapes) {
        auto const backward = [&](char const* name, char const* second) {
            return sample(name).arg("grad_output", eighths(x)).arg(second, eighths(x));
        };
        s.push_back(backward("aten::silu_backward", "self"));
        s.push_back(backward("aten::gelu_backward", "self").arg("approximate", "none"));
        s.push_back(backward("aten::gelu_backward", "self").arg("approximate", "tanh"));
        s.push_back(backward("aten::tanh_backward", "output"));
        s.push_back(backward("aten::sigmoid_backward", "output"));
        s.push_back(backward("aten::threshold_backward", "self").arg("threshold", 0));
        s.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.0).arg("train", true));
        s.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.5).arg("train", false));
        s.push_back(sample("aten::native_dropout_backward").arg("grad_output", eighths(x)).arg("mask", flags(x)).arg("scale", 2.0));
    }
}

void add_cast_samples(sample_list& s) {
    using enum dtype;
    std::pair<at::ScalarType, dtype> const types[] = {
        {at::kDouble, float64}, {at::kFloat, float32}, {at::kBFloat16, bfloat16}, {at::kHalf, float16}, {at::kLong, int64}};
    for (auto const& [torch_from, from] : types)
        for (auto const& [torch_to, to] : types)
            for (shape const& x : {shape{12, 4}, shape{2, 24}})  // 48 values below 4: bf16 holds them all
                s.push_back(sample("aten::_to_copy")
                                .arg("self", eighths(x, false, torch_from))
                                .arg("dtype", to)
                                .arg("layout", none)
                                .arg("device", none)
                                .arg("pin_memory", none)
                                .arg("non_blocking", false)
                                .arg("memory_format", none));
}

}  // namespace cantle::libtorch
