// SPDX-License-Identifier: BSL-1.0
// Comparisons, logic, bounds and choices; casts, copies and complex numbers.
#include <adapters/libtorch/samples/samples.hpp>

#include <adapters/libtorch/op_values.hpp>

namespace cantle::libtorch {
namespace {
std::vector<shape> const shapes{{12, 8}, {2, 12, 4}, {}, {1, 5}};
std::vector<std::pair<shape, shape>> const pairs{{{12, 8}, {12, 8}}, {{4, 12, 6}, {6}}, {{12, 1, 6}, {4, 6}}, {{2, 24}, {}}, {{5, 3}, {3}}};
}  // namespace

void add_comparison_samples(sample_list& s) {
    for (auto const& x : shapes) {
        for (auto name : {"aten::bitwise_not", "aten::logical_not"}) s.push_back(sample(name).arg("self", flags(x)));
        for (auto name : {"aten::eq.Scalar", "aten::ne.Scalar", "aten::lt.Scalar", "aten::le.Scalar", "aten::gt.Scalar", "aten::ge.Scalar"})
            s.push_back(sample(name).arg("self", coarse(x)).arg("other", 0.5));
        for (auto name : {"aten::bitwise_and.Scalar", "aten::bitwise_or.Scalar", "aten::bitwise_xor.Scalar", "aten::__and__.Scalar",
                          "aten::__or__.Scalar", "aten::__xor__.Scalar"}) {
            s.push_back(sample(name).arg("self", flags(x)).arg("other", true));
            s.push_back(sample(name).arg("self", indices(x, 11)).arg("other", 5));
        }
        for (auto name : {"aten::bitwise_left_shift.Tensor_Scalar", "aten::bitwise_right_shift.Tensor_Scalar", "aten::__lshift__.Scalar",
                          "aten::__rshift__.Scalar"})
            s.push_back(sample(name).arg("self", indices(x, 11) - 5).arg("other", 1));
        s.push_back(sample("aten::clamp").arg("self", eighths(x)).arg("min", -1.0).arg("max", 1.5));
        s.push_back(sample("aten::clamp").arg("self", eighths(x)).arg("min", none).arg("max", 1.5));
        s.push_back(sample("aten::clamp_min").arg("self", eighths(x)).arg("min", -1.0));
        s.push_back(sample("aten::clamp_max").arg("self", eighths(x)).arg("max", 1.0));
        for (double c : {-7.0, 0.0}) {
            s.push_back(sample("aten::masked_fill.Scalar").arg("self", eighths(x)).arg("mask", flags(x)).arg("value", c));
            s.push_back(sample("aten::where.ScalarSelf").arg("condition", flags(x)).arg("self", c).arg("other", eighths(x)));
            s.push_back(sample("aten::where.ScalarOther").arg("condition", flags(x)).arg("self", eighths(x)).arg("other", c));
        }
        for (double c : {-2.0, 2.0}) s.push_back(sample("aten::where.Scalar").arg("condition", flags(x)).arg("self", 1.5).arg("other", c));
    }
    for (auto const& [a, b] : pairs) {
        for (auto name : {"aten::eq.Tensor", "aten::ne.Tensor", "aten::lt.Tensor", "aten::le.Tensor", "aten::gt.Tensor", "aten::ge.Tensor"})
            s.push_back(sample(name).arg("self", coarse(a)).arg("other", coarse(b)));
        for (auto name : {"aten::maximum", "aten::minimum", "aten::max.other", "aten::min.other"})
            s.push_back(sample(name).arg("self", eighths(a)).arg("other", eighths(b)));
        for (auto name : {"aten::bitwise_and.Tensor", "aten::bitwise_or.Tensor", "aten::bitwise_xor.Tensor", "aten::logical_and",
                          "aten::logical_or", "aten::logical_xor", "aten::__and__.Tensor", "aten::__or__.Tensor", "aten::__xor__.Tensor"}) {
            s.push_back(sample(name).arg("self", flags(a)).arg("other", flags(b)));
            s.push_back(sample(name).arg("self", indices(a, 11) - 5).arg("other", indices(b, 7) - 3));
            s.push_back(sample(name).arg("self", (indices(a, 3) == 0).to(at::kLong)).arg("other", (indices(b, 4) == 1).to(at::kLong)));
        }
        for (auto name : {"aten::bitwise_left_shift.Tensor", "aten::bitwise_right_shift.Tensor"})
            s.push_back(sample(name).arg("self", indices(a, 11) - 5).arg("other", indices(b, 3)));
        s.push_back(sample("aten::bitwise_right_shift.Tensor").arg("self", indices(a, 11) - 5).arg("other", indices(b, 3) + 1));
        s.push_back(sample("aten::clamp_min.Tensor").arg("self", eighths(a)).arg("min", eighths(b)));
        s.push_back(sample("aten::clamp_max.Tensor").arg("self", eighths(a)).arg("max", eighths(b)));
        s.push_back(sample("aten::clamp.Tensor").arg("self", eighths(a)).arg("min", eighths(b)).arg("max", eighths(b)));
        s.push_back(sample("aten::clamp.Tensor").arg("self", eighths(a)).arg("min", none).arg("max", eighths(b)));
        s.push_back(sample("aten::where.self").arg("condition", flags(b)).arg("self", eighths(a)).arg("other", eighths(b)));
        s.push_back(sample("aten::where.self").arg("condition", flags(a)).arg("self", eighths(b)).arg("other", eighths({})));
        s.push_back(sample("aten::masked_fill.Tensor").arg("self", eighths(a)).arg("mask", flags(b)).arg("value", scalar(-7.0)));
    }
}

void add_cast_samples(sample_list& s) {
    using enum dtype;
    std::pair<at::ScalarType, dtype> const types[] = {{at::kDouble, float64}, {at::kFloat, float32}, {at::kBFloat16, bfloat16},
                                                      {at::kHalf, float16},   {at::kLong, int64},    {at::kInt, int32},
                                                      {at::kBool, boolean}};
    for (auto const& [torch_from, from] : types)
        for (auto const& [torch_to, to] : types)
            for (shape const& x : {shape{12, 4}, shape{2, 24}}) {  // 48 values below 4: bf16 holds them all
                s.push_back(sample("aten::_to_copy")
                                .arg("self", from == boolean ? flags(x) : eighths(x, false, torch_from))
                                .arg("dtype", to)
                                .arg("layout", none)
                                .arg("device", none)
                                .arg("pin_memory", none)
                                .arg("non_blocking", false)
                                .arg("memory_format", none));
            }
    for (auto const& x : shapes) {
        for (auto name : {"aten::alias", "aten::detach", "aten::contiguous", "aten::clone", "aten::lift_fresh", "aten::lift_fresh_copy",
                          "aten::resolve_conj", "aten::resolve_neg", "aten::_neg_view"})
            s.push_back(sample(name).arg("self", eighths(x)));
        s.push_back(sample("aten::to.dtype").arg("self", eighths(x)).arg("dtype", bfloat16).arg("non_blocking", false).arg("copy", true));
        s.push_back(sample("aten::copy").arg("self", eighths(x)).arg("src", eighths(x)));
        s.push_back(sample("aten::copy").arg("self", eighths(x)).arg("src", eighths({}, false, at::kFloat)));
        s.push_back(sample("aten::view.dtype").arg("self", eighths(x)).arg("dtype", int64));
        s.push_back(sample("aten::view.dtype").arg("self", eighths(x)).arg("dtype", float64));
        // complex numbers
        auto const z = at::complex(eighths(x), eighths(x));
        for (auto name : {"aten::_conj", "aten::_conj_physical", "aten::conj_physical", "aten::view_as_real", "aten::real", "aten::imag",
                          "aten::neg", "aten::clone"})
            s.push_back(sample(name).arg("self", z));
        auto pair = x;
        pair.push_back(2);
        s.push_back(sample("aten::view_as_complex").arg("self", eighths(pair)));
        s.push_back(sample("aten::mul.Tensor").arg("self", z).arg("other", at::complex(eighths(x), eighths(x))));
        s.push_back(sample("aten::polar").arg("abs", eighths(x, true)).arg("angle", eighths(x)));
        s.push_back(sample("aten::complex").arg("real", eighths(x)).arg("imag", eighths(x)));
    }
    // whole numbers that fp32 has no place for
    s.push_back(sample("aten::_to_copy").arg("self", 2 * indices({12, 4}, 9) + 16777217).arg("dtype", float32));
    s.push_back(sample("aten::copy").arg("self", eighths({12, 4}, false, at::kBFloat16)).arg("src", eighths({12, 4}, false, at::kFloat)));
    for (shape const& x : {shape{4, 8}, shape{6, 4}})
        s.push_back(sample("aten::view.dtype").arg("self", indices(x, 100).to(at::kByte)).arg("dtype", int32));
    s.push_back(sample("aten::view.dtype").arg("self", indices({4, 6}, 1000)).arg("dtype", int16));
}

}  // namespace cantle::libtorch
