// SPDX-License-Identifier: BSL-1.0
#pragma once
// Concrete operands for every op that the standard rules cover: at least two shapes each, data distinct multiples of 1/8 in a shuffled
// order, dims that 2, 3 and 4 divide. Casts come in all pairs of types that training uses.
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/oracle.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cantle::libtorch::test {

inline constexpr std::monostate none{};

/// Distinct multiples of 1/8, shuffled, never 0; about a third of them negative (so that sums are not 0), none where `positive`.
inline at::Tensor eighths(shape const& sizes, bool positive = false, at::ScalarType type = at::kDouble) {
    static std::mt19937_64 random(815);  // one stream: two operands of one op never hold the same values
    auto const n = element_count(sizes);
    std::vector<std::int64_t> k(static_cast<std::size_t>(n));
    std::iota(k.begin(), k.end(), positive ? 1 : -n / 3);
    for (auto& x : k) x += !positive && x >= 0;
    if (n == 1) k[0] = static_cast<std::int64_t>(3 + random() % 20);
    for (std::size_t i = k.size(); i > 1; --i) std::swap(k[i - 1], k[random() % i]);
    std::vector<double> values(k.begin(), k.end());
    for (auto& v : values) v /= 8;
    return at::tensor(values, at::kDouble).view(sizes).to(type);
}
/// Numbers below `bound` in a shuffled order, all of them about equally often.
inline at::Tensor indices(shape const& sizes, std::int64_t bound) {
    static std::mt19937_64 random(4711);
    std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(sizes)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) % bound;
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
    return at::tensor(values, at::kLong).view(sizes);
}
inline at::Tensor scalar(double v) { return at::full({}, v, at::kDouble); }
/// True and false mixed; a single one is true.
inline at::Tensor flags(shape const& sizes) { return sizes.empty() ? at::ones({}, at::kBool) : (indices(sizes, 5) % 2).to(at::kBool); }
/// Few values, often equal: for comparisons.
inline at::Tensor coarse(shape const& sizes) { return sizes.empty() ? scalar(1) : indices(sizes, 5).to(at::kDouble) / 2; }

/// Builds a sample argument by argument, in schema order.
struct sample {
    rule_sample made;
    explicit sample(std::string name) { made.operation.name = std::move(name); }
    sample& arg(std::string name, at::Tensor t) {
        made.operation.arguments.push_back({std::move(name), operand_slot{static_cast<std::uint32_t>(made.operands.size())}});
        made.operands.push_back(std::move(t));
        return *this;
    }
    sample& arg(std::string name, std::vector<at::Tensor> const& list) {
        operand_slots slots;
        for (auto const& t : list) {
            slots.indices.push_back(static_cast<std::int32_t>(made.operands.size()));
            made.operands.push_back(t);
        }
        made.operation.arguments.push_back({std::move(name), std::move(slots)});
        return *this;
    }
    /// A literal. Whole numbers, fractions, flags and texts become what a graph holds; never one of them another.
    template <class T>
    sample& arg(std::string name, T v) {
        argument_value held;
        if constexpr (std::is_same_v<T, bool>)
            held = v;
        else if constexpr (std::is_integral_v<T>)
            held = static_cast<std::int64_t>(v);
        else if constexpr (std::is_same_v<T, char const*>)
            held = std::string(v);
        else
            held = std::move(v);
        made.operation.arguments.push_back({std::move(name), std::move(held)});
        return *this;
    }
    sample& no_values() {
        made.values_matter = false;
        return *this;
    }
    operator rule_sample() const { return made; }
};

using sample_list = std::vector<rule_sample>;

inline void add_pointwise_samples(sample_list& s) {
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

inline void add_cast_samples(sample_list& s) {
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

inline void add_linear_samples(sample_list& s) {
    for (shape const& rows : {shape{12}, shape{2, 12}, shape{}}) {
        auto const with = [&](std::int64_t last) {
            auto x = rows;
            x.push_back(last);
            return x;
        };
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", none));
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", eighths({12})));
        s.push_back(sample("cantle::linear_grad_input").arg("grad", eighths(with(12))).arg("weight", eighths({12, 24})));
        if (!rows.empty()) s.push_back(sample("cantle::linear_grad_weight").arg("grad", eighths(with(12))).arg("input", eighths(with(24))));
    }
    s.push_back(sample("aten::mm").arg("self", eighths({12, 24})).arg("mat2", eighths({24, 12})));
    s.push_back(sample("aten::mm").arg("self", eighths({4, 12})).arg("mat2", eighths({12, 3})));
    s.push_back(sample("aten::bmm").arg("self", eighths({12, 4, 12})).arg("mat2", eighths({12, 12, 6})));
    s.push_back(sample("aten::bmm").arg("self", eighths({2, 12, 3})).arg("mat2", eighths({2, 3, 12})));
}

inline void add_view_samples(sample_list& s) {
    std::pair<shape, shape> const views[] = {{{2, 12, 4}, {24, 4}}, {{24, 4}, {2, 12, 4}}, {{12, 12}, {12, 3, 4}}, {{4, 4, 4}, {8, 8}},
                                             {{12, 8}, {16, 6}},    {{24}, {1, 24}},       {{3, 48}, {3, 6, 8}},   {{16}, {2, 8}},
                                             {{12, 1, 4}, {12, 4}}, {{6, 16}, {96}}};
    for (auto const& [from, to] : views) {
        for (auto name : {"aten::view", "aten::_unsafe_view"}) s.push_back(sample(name).arg("self", eighths(from)).arg("size", to));
        s.push_back(sample("aten::reshape").arg("self", eighths(from)).arg("shape", to));
        s.push_back(sample("aten::_reshape_alias").arg("self", eighths(from)).arg("size", to).arg("stride", contiguous_strides(to)));
    }
    for (shape const& x : {shape{12, 1, 4}, shape{1, 24}, shape{2, 1, 12, 1}}) {
        s.push_back(sample("aten::squeeze").arg("self", eighths(x)));
        s.push_back(sample("aten::squeeze.dim").arg("self", eighths(x)).arg("dim", 1));
        s.push_back(sample("aten::squeeze.dims").arg("self", eighths(x)).arg("dim", shape{0, 1}));
        for (int d : {0, 1, -1}) s.push_back(sample("aten::unsqueeze").arg("self", eighths(x)).arg("dim", d));
    }
    s.push_back(sample("aten::permute").arg("self", eighths({2, 12, 4})).arg("dims", shape{2, 0, 1}));
    s.push_back(sample("aten::permute").arg("self", eighths({4, 6, 12})).arg("dims", shape{-1, 1, 0}));
    s.push_back(sample("aten::transpose.int").arg("self", eighths({2, 12, 4})).arg("dim0", 1).arg("dim1", -1));
    s.push_back(sample("aten::transpose.int").arg("self", eighths({12, 6})).arg("dim0", 0).arg("dim1", 1));
    for (shape const& x : {shape{12}, shape{12, 4}, shape{3, 24}}) s.push_back(sample("aten::t").arg("self", eighths(x)));
    s.push_back(sample("aten::expand").arg("self", eighths({1, 6})).arg("size", shape{12, 4, 6}).arg("implicit", false));
    s.push_back(sample("aten::expand").arg("self", eighths({12, 1, 4})).arg("size", shape{12, 24, -1}).arg("implicit", false));
    s.push_back(sample("aten::expand").arg("self", eighths({})).arg("size", shape{12, 4}).arg("implicit", false));
    for (shape const& x : {shape{12, 24}, shape{4, 12, 6}}) {
        auto const rank = static_cast<int>(x.size());
        for (int d : {0, 1, -1}) {
            auto const size = x[static_cast<std::size_t>(d < 0 ? d + rank : d)];
            auto part = x;
            part[static_cast<std::size_t>(d < 0 ? d + rank : d)] = size / 2;
            auto dropped = x;
            dropped.erase(dropped.begin() + (d < 0 ? d + rank : d));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 1)
                            .arg("end", argument_value(size - 1))
                            .arg("step", 2));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 0)
                            .arg("end", argument_value(INT64_MAX))
                            .arg("step", 1));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 0)
                            .arg("end", argument_value(size))
                            .arg("step", 1));
            s.push_back(sample("aten::slice_backward")
                            .arg("grad_output", eighths(part))
                            .arg("input_sizes", x)
                            .arg("dim", d)
                            .arg("start", 1)
                            .arg("end", argument_value(1 + size / 2))
                            .arg("step", 1));
            s.push_back(sample("aten::narrow").arg("self", eighths(x)).arg("dim", d).arg("start", 1).arg("length", 2));
            s.push_back(sample("aten::select.int").arg("self", eighths(x)).arg("dim", d).arg("index", 1));
            s.push_back(
                sample("aten::select_backward").arg("grad_output", eighths(dropped)).arg("input_sizes", x).arg("dim", d).arg("index", 1));
            s.push_back(sample("aten::cat").arg("tensors", std::vector{eighths(x), eighths(part), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::stack").arg("tensors", std::vector{eighths(x), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::split.Tensor").arg("self", eighths(x)).arg("split_size", argument_value(size / 2)).arg("dim", d));
            s.push_back(sample("aten::split_with_sizes").arg("self", eighths(x)).arg("split_sizes", shape{1, size - 1}).arg("dim", d));
        }
    }
}

inline void add_reduction_samples(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 24}, {1}}, {{4, 12, 6}, {0, 1}}, {{2, 12, 4}, {-1}}, {{12}, {0}}, {{}, {}}};
    for (auto const& [x, dims] : cases)
        for (bool keep : {false, true}) {
            s.push_back(sample("aten::sum.dim_IntList").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep).arg("dtype", none));
            s.push_back(sample("aten::mean.dim").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep).arg("dtype", none));
            s.push_back(sample("aten::amax").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep));
            s.push_back(sample("aten::amin").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep));
        }
    for (shape const& x : {shape{12, 24}, shape{2, 12, 4}}) {
        s.push_back(sample("aten::sum").arg("self", eighths(x)).arg("dtype", none));
        s.push_back(sample("aten::sum").arg("self", flags(x)).arg("dtype", none));
        s.push_back(sample("aten::mean").arg("self", eighths(x)).arg("dtype", none));
        for (int d : {0, 1, -1}) {
            s.push_back(sample("aten::_softmax").arg("self", eighths(x)).arg("dim", d).arg("half_to_float", false));
            s.push_back(sample("aten::_log_softmax").arg("self", eighths(x)).arg("dim", d).arg("half_to_float", false));
            s.push_back(sample("aten::_safe_softmax").arg("self", eighths(x)).arg("dim", d).arg("dtype", none));
            s.push_back(sample("aten::_softmax_backward_data")
                            .arg("grad_output", eighths(x))
                            .arg("output", at::softmax(eighths(x), d))
                            .arg("dim", d)
                            .arg("input_dtype", dtype::float64));
            s.push_back(sample("aten::_log_softmax_backward_data")
                            .arg("grad_output", eighths(x))
                            .arg("output", at::log_softmax(eighths(x), d))
                            .arg("dim", d)
                            .arg("input_dtype", dtype::float64));
        }
    }
    // fp32 and bf16 sums: with and without a cast inside
    s.push_back(sample("aten::sum.dim_IntList")
                    .arg("self", eighths({12, 4}, false, at::kBFloat16))
                    .arg("dim", shape{0})
                    .arg("keepdim", false)
                    .arg("dtype", dtype::float32));
}

inline void add_attention_samples(sample_list& s) {
    struct shape_of {
        std::int64_t batch, heads, key_heads, queries, keys, width, mask_rank;
        bool causal;
    };
    for (auto const& c :
         {shape_of{2, 12, 12, 4, 4, 8, 0, true}, shape_of{12, 24, 12, 3, 5, 4, 0, false}, shape_of{4, 12, 12, 4, 6, 4, 4, false},
          shape_of{3, 4, 4, 4, 6, 4, 3, false}, shape_of{2, 24, 12, 4, 4, 8, 2, false}}) {
        auto const q = eighths({c.batch, c.heads, c.queries, c.width}) / 32, k = eighths({c.batch, c.key_heads, c.keys, c.width}) / 32,
                   v = eighths({c.batch, c.key_heads, c.keys, c.width});
        auto forward = sample("cantle::sdpa").arg("query", q).arg("key", k).arg("value", v);
        at::Tensor mask;
        if (c.mask_rank == 4) mask = eighths({c.batch, c.heads, c.queries, c.keys}) / 16;
        if (c.mask_rank == 3) mask = eighths({c.batch, 1, c.queries, c.keys}) / 16;
        if (c.mask_rank == 2) mask = eighths({c.queries, c.keys}) / 16;
        mask.defined() ? forward.arg("attn_mask", mask) : forward.arg("attn_mask", none);
        bool const grouped = c.heads != c.key_heads;
        forward.arg("dropout_p", 0.0).arg("is_causal", c.causal).arg("scale", none).arg("enable_gqa", grouped);
        auto const out = call_op(forward.made.operation, forward.made.operands);
        s.push_back(forward);
        auto backward = sample("cantle::sdpa_backward")
                            .arg("grad_out", eighths(out[0].sizes().vec()))
                            .arg("query", q)
                            .arg("key", k)
                            .arg("value", v)
                            .arg("out", out[0])
                            .arg("logsumexp", out[1]);
        mask.defined() ? backward.arg("attn_mask", mask) : backward.arg("attn_mask", none);
        s.push_back(backward.arg("dropout_p", 0.0).arg("is_causal", c.causal).arg("scale", none).arg("enable_gqa", grouped));
    }
}

inline void add_layer_norm_samples(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 24}, {24}}, {{2, 12, 8}, {8}}, {{12, 4, 6}, {4, 6}}};
    for (auto const& [x, normalised] : cases) {
        auto const input = eighths(x), weight = eighths(normalised), bias = eighths(normalised);
        auto const forward = sample("aten::native_layer_norm")
                                 .arg("input", input)
                                 .arg("normalized_shape", normalised)
                                 .arg("weight", weight)
                                 .arg("bias", bias)
                                 .arg("eps", 1e-5);
        s.push_back(forward);
        s.push_back(sample("aten::native_layer_norm")
                        .arg("input", input)
                        .arg("normalized_shape", normalised)
                        .arg("weight", weight)
                        .arg("bias", none)
                        .arg("eps", 1e-5));
        auto const out = call_op(forward.made.operation, forward.made.operands);
        for (auto const& mask : {std::vector<bool>{true, true, true}, std::vector<bool>{true, false, true},
                                 std::vector<bool>{false, true, true}, std::vector<bool>{true, false, false}})
            s.push_back(sample("aten::native_layer_norm_backward")
                            .arg("grad_out", eighths(x))
                            .arg("input", input)
                            .arg("normalized_shape", normalised)
                            .arg("mean", out[1])
                            .arg("rstd", out[2])
                            .arg("weight", weight)
                            .arg("bias", bias)
                            .arg("output_mask", mask));
    }
}

inline void add_embedding_samples(sample_list& s) {
    for (shape const& tokens : {shape{12}, shape{4, 12}, shape{2, 3, 12}})
        for (int padding : {-1, 5}) {
            s.push_back(sample("aten::embedding")
                            .arg("weight", eighths({24, 12}))
                            .arg("indices", indices(tokens, 24))
                            .arg("padding_idx", padding)
                            .arg("scale_grad_by_freq", false)
                            .arg("sparse", false));
            auto grad = tokens;
            grad.push_back(12);
            for (bool scale : {false, true})
                s.push_back(sample("aten::embedding_dense_backward")
                                .arg("grad_output", eighths(grad))
                                .arg("indices", indices(tokens, 24))
                                .arg("num_weights", 24)
                                .arg("padding_idx", padding)
                                .arg("scale_grad_by_freq", scale));
        }
}

inline void add_loss_samples(sample_list& s) {
    for (shape const& tokens : {shape{12}, shape{4, 12}, shape{12, 2}})
        for (auto reduce : {"mean", "sum", "none"})
            for (bool ignoring : {false, true}) {
                auto sizes = tokens;
                sizes.push_back(24);
                auto const logits = eighths(sizes) / 16;
                auto target = indices(tokens, 24);
                // The first quarter of the tokens does not count: some ranks have none that does.
                if (ignoring) target.view({-1}).slice(0, 0, target.numel() / 4).fill_(-100);
                auto const forward = sample("cantle::cross_entropy")
                                         .arg("logits", logits)
                                         .arg("target", target)
                                         .arg("ignore_index", -100)
                                         .arg("reduction", reduce);
                s.push_back(forward);
                auto const out = call_op(forward.made.operation, forward.made.operands);
                auto const grad = std::string(reduce) == "none" ? eighths(tokens) : scalar(1.625);
                s.push_back(sample("cantle::cross_entropy_backward")
                                .arg("grad", grad)
                                .arg("logits", logits)
                                .arg("target", target)
                                .arg("logsumexp", out[1])
                                .arg("total_weight", out[2])
                                .arg("ignore_index", -100)
                                .arg("reduction", reduce));
            }
}

inline void add_factory_samples(sample_list& s) {
    for (shape const& x : {shape{12, 4}, shape{24}}) {
        auto const options = [](sample& made) -> sample& {
            return made.arg("dtype", dtype::float64).arg("layout", none).arg("device", symbol{"device", "device"}).arg("pin_memory", none);
        };
        auto const push = [&](sample made) { s.push_back(options(made)); };
        push(sample("aten::full").arg("size", x).arg("fill_value", 0.375));
        push(sample("aten::zeros").arg("size", x));
        push(sample("aten::ones").arg("size", x));
        push(sample("aten::empty.memory_format").arg("size", x).no_values());
        push(sample("aten::new_zeros").arg("self", eighths({3})).arg("size", x));
        push(sample("aten::new_ones").arg("self", eighths({3})).arg("size", x));
        push(sample("aten::new_full").arg("self", eighths({3})).arg("size", x).arg("fill_value", 2.5));
        push(sample("aten::scalar_tensor").arg("s", static_cast<int>(x[0])));
        push(sample("aten::arange").arg("end", argument_value(x[0])));
        push(sample("aten::arange.start").arg("start", 3).arg("end", argument_value(x[0])));
        push(sample("aten::arange.start_step").arg("start", 3).arg("end", argument_value(x[0])).arg("step", 2));
    }
}

inline sample_list rule_samples() {
    sample_list s;
    add_pointwise_samples(s);
    add_cast_samples(s);
    add_linear_samples(s);
    add_view_samples(s);
    add_reduction_samples(s);
    add_attention_samples(s);
    add_layer_norm_samples(s);
    add_embedding_samples(s);
    add_loss_samples(s);
    add_factory_samples(s);
    return s;
}

}  // namespace cantle::libtorch::test
