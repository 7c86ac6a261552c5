// SPDX-License-Identifier: BSL-1.0
#pragma once
// Output metas of the ops that hand-made graphs need most, so that examples and tests do not spell them out. Capture does not use this:
// there the framework's own shape functions speak. Schemas: those of the canonical ops (docs of graph/), in ATen's argument names.
#include <cantle/base/error.hpp>
#include <cantle/graph/op.hpp>
#include <cantle/graph/tensor_meta.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cantle {

namespace detail {

/// A tensor argument of the op's schema is not given by name: nothing can be said about its outputs then.
struct argument_missing : error {
    using error::error;
};

/// One op with the metas of its operands, and refusals that name both.
struct inference_input {
    op const& o;
    std::vector<tensor_meta> const& operands;

    [[noreturn]] void refuse(std::string const& why) const {
        std::string shapes;
        for (auto const& m : operands) shapes += " " + shape_text(m.sizes);
        throw error(error_code::bad_graph, o.name, why + " (operands:" + (shapes.empty() ? " none" : shapes) + ")",
                    "correct the operands or give the output metas");
    }
    tensor_meta const* find(std::string_view argument) const {
        auto const slot = o.slot(argument);
        return slot && *slot < operands.size() ? &operands[*slot] : nullptr;
    }
    tensor_meta const& at(std::string_view argument) const {
        auto const* m = find(argument);
        if (!m)
            throw argument_missing(error_code::bad_graph, o.name, "argument '" + std::string(argument) + "' is no tensor",
                                   "give it, or the output metas");
        return *m;
    }
    std::size_t dim(std::int64_t d, std::size_t rank) const {
        auto const r = static_cast<std::int64_t>(rank);
        if (d < -r || d >= std::max<std::int64_t>(r, 1)) refuse("dim " + std::to_string(d) + " is out of range");
        return static_cast<std::size_t>(d < 0 ? d + r : d);
    }
    dtype type_or(dtype fallback) const { return o.get<dtype>("dtype", fallback); }
    shape leading(tensor_meta const& m, std::string const& name) const {
        if (m.sizes.empty()) refuse("'" + name + "' is a scalar");
        return {m.sizes.begin(), m.sizes.end() - 1};
    }
};

inline shape broadcast(inference_input const& in, shape const& a, shape const& b) {
    shape result(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < result.size(); ++i) {
        auto const x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) in.refuse("the shapes do not broadcast");
        result[result.size() - 1 - i] = x == 1 ? y : x;
    }
    return result;
}

/// PyTorch's order of promotion, as far as floating and integer tensors go; a 0-dim tensor does not promote within its category.
inline dtype promote(tensor_meta const& a, tensor_meta const& b) {
    auto category = [](dtype t) {
        return t == dtype::boolean ? 0 : is_floating_point(t) ? 2 : (t == dtype::complex64 || t == dtype::complex128) ? 3 : 1;
    };
    auto const ca = category(a.type), cb = category(b.type);
    if (ca != cb) return ca > cb ? a.type : b.type;
    if (a.sizes.empty() != b.sizes.empty()) return a.sizes.empty() ? b.type : a.type;
    if (a.type == b.type) return a.type;
    if (element_bytes(a.type) == element_bytes(b.type)) return ca == 2 ? dtype::float32 : dtype::int16;  // bf16 with fp16; int8 with uint8
    return element_bytes(a.type) > element_bytes(b.type) ? a.type : b.type;
}

inline tensor_meta permuted(tensor_meta const& m, std::vector<std::size_t> const& order) {
    tensor_meta r{{}, {}, m.type, true};
    auto const strides = m.strides.empty() ? contiguous_strides(m.sizes) : m.strides;
    for (auto const d : order) {
        r.sizes.push_back(m.sizes[d]);
        r.strides.push_back(strides[d]);
    }
    return r;
}

inline tensor_meta infer_view(inference_input const& in) {
    auto const& m = in.at("self");
    auto sizes = in.o.get<shape>("size", {});
    std::int64_t known = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] >= 0) known *= sizes[i];
        else if (sizes[i] == -1 && !open) open = i;
        else in.refuse("the size " + shape_text(sizes) + " is no size");
    }
    if (open && known > 0) sizes[*open] = m.elements() / known;
    if ((open && known == 0) || element_count(sizes) != m.elements()) in.refuse("a view must keep the number of elements");
    return contiguous_meta(std::move(sizes), m.type);
}

inline tensor_meta infer_reduction(inference_input const& in, bool keeps_integers) {
    auto const& m = in.at("self");
    bool const keepdim = in.o.get<bool>("keepdim", false);
    std::vector<bool> reduced(m.rank(), false);
    auto const dims = in.o.get<shape>("dim", {});
    for (auto const d : dims) {
        auto const i = in.dim(d, m.rank());
        if (i < reduced.size()) reduced[i] = true;
    }
    if (dims.empty()) reduced.assign(m.rank(), true);
    shape sizes;
    for (std::size_t i = 0; i < m.rank(); ++i) {
        if (!reduced[i]) sizes.push_back(m.sizes[i]);
        else if (keepdim) sizes.push_back(1);
    }
    bool const integral = !is_floating_point(m.type) && m.type != dtype::complex64 && m.type != dtype::complex128;
    return contiguous_meta(std::move(sizes), in.type_or(integral && !keeps_integers ? dtype::int64 : m.type));
}

inline tensor_meta infer_transpose(inference_input const& in) {
    auto const& m = in.at("self");
    std::vector<std::size_t> order(m.rank());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (in.o.name == "aten::t") {
        if (m.rank() > 2) in.refuse("t() takes at most two dims");
        std::reverse(order.begin(), order.end());
    } else if (in.o.name == "aten::transpose.int") {
        auto const a = in.dim(in.o.get<std::int64_t>("dim0", 0), m.rank()), b = in.dim(in.o.get<std::int64_t>("dim1", 1), m.rank());
        if (!order.empty()) std::swap(order[a], order[b]);
    } else {
        auto const dims = in.o.get<shape>("dims", {});
        std::vector<bool> seen(m.rank(), false);
        if (dims.size() != m.rank()) in.refuse("permute needs every dim once");
        for (std::size_t i = 0; i < dims.size(); ++i) {
            order[i] = in.dim(dims[i], m.rank());
            if (seen[order[i]]) in.refuse("permute needs every dim once");
            seen[order[i]] = true;
        }
    }
    return permuted(m, order);
}

inline tensor_meta infer_expand(inference_input const& in) {
    auto const& m = in.at("self");
    auto const size = in.o.get<shape>("size", {});
    if (size.size() < m.rank()) in.refuse("expand cannot drop dims");
    auto const strides = m.strides.empty() ? contiguous_strides(m.sizes) : m.strides;
    tensor_meta r{size, shape(size.size(), 0), m.type, true};
    for (std::size_t i = 0, skip = size.size() - m.rank(); i < m.rank(); ++i) {
        auto& wanted = r.sizes[skip + i];
        if (wanted == -1) wanted = m.sizes[i];
        if (wanted != m.sizes[i] && m.sizes[i] != 1) in.refuse("expand only stretches dims of size 1");
        r.strides[skip + i] = wanted == m.sizes[i] ? strides[i] : 0;
    }
    return r;
}

inline tensor_meta infer_linear(inference_input const& in) {
    auto const& x = in.at("input");
    auto const& w = in.at("weight");
    auto sizes = in.leading(x, "input");
    if (w.rank() != 2 || x.sizes.back() != w.sizes[1]) in.refuse("input [...,K] and weight [N,K] do not fit");
    if (auto const* bias = in.find("bias"); bias && bias->sizes != shape{w.sizes[0]}) in.refuse("the bias must be [N]");
    sizes.push_back(w.sizes[0]);
    return contiguous_meta(std::move(sizes), x.type);
}
inline tensor_meta infer_linear_grad_input(inference_input const& in) {
    auto const& g = in.at("grad");
    auto const& w = in.at("weight");
    auto sizes = in.leading(g, "grad");
    if (w.rank() != 2 || g.sizes.back() != w.sizes[0]) in.refuse("grad [...,N] and weight [N,K] do not fit");
    sizes.push_back(w.sizes[1]);
    return contiguous_meta(std::move(sizes), g.type);
}
inline tensor_meta infer_linear_grad_weight(inference_input const& in) {
    auto const& g = in.at("grad");
    auto const& x = in.at("input");
    if (in.leading(g, "grad") != in.leading(x, "input")) in.refuse("grad [...,N] and input [...,K] do not fit");
    return contiguous_meta({g.sizes.back(), x.sizes.back()}, g.type);
}
inline tensor_meta infer_mm(inference_input const& in, std::string_view left, std::string_view right) {
    auto const& a = in.at(left);
    auto const& b = in.at(right);
    bool const batched = in.o.name == "aten::bmm";
    std::size_t const r = batched ? 3 : 2;
    if (a.rank() != r || b.rank() != r || a.sizes[r - 1] != b.sizes[r - 2] || (batched && a.sizes[0] != b.sizes[0]))
        in.refuse("the matrices do not fit");
    auto sizes = a.sizes;
    sizes.back() = b.sizes.back();
    if (in.o.name == "aten::addmm" && broadcast(in, in.at("self").sizes, sizes) != sizes) in.refuse("the bias does not broadcast to [M,N]");
    return contiguous_meta(std::move(sizes), a.type);
}
inline tensor_meta infer_matmul(inference_input const& in) {
    auto const& a = in.at("self");
    auto const& b = in.at("other");
    if (a.sizes.empty() || b.sizes.empty()) in.refuse("a scalar is no matrix");
    if (a.sizes.back() != b.sizes[b.rank() < 2 ? 0 : b.rank() - 2]) in.refuse("the matrices do not fit");
    auto const batch = [](tensor_meta const& m) {
        return m.rank() < 2 ? shape{} : shape(m.sizes.begin(), m.sizes.end() - 2);
    };
    auto sizes = broadcast(in, batch(a), batch(b));
    if (a.rank() > 1) sizes.push_back(a.sizes[a.rank() - 2]);
    if (b.rank() > 1) sizes.push_back(b.sizes.back());
    return contiguous_meta(std::move(sizes), a.type);
}
}  // namespace detail

/// Output metas of an op, or nothing where this table does not know it. Floating point types follow PyTorch's promotion for pointwise ops.
/// Errors: bad_graph (303) where the op is known and the operands do not fit.
inline std::optional<std::vector<tensor_meta>> infer_outputs(op const& o, std::vector<tensor_meta> const& operands) {
    detail::inference_input const in{o, operands};
    auto one = [](tensor_meta m) { return std::vector<tensor_meta>{std::move(m)}; };
    auto is = [&o](std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), o.name) != names.end(); };

    if (is({"aten::linear"})) return one(detail::infer_linear(in));
    if (is({"cantle::linear_grad_input"})) return one(detail::infer_linear_grad_input(in));
    if (is({"cantle::linear_grad_weight"})) return one(detail::infer_linear_grad_weight(in));
    if (is({"aten::mm"})) return one(detail::infer_mm(in, "self", "mat2"));
    if (is({"aten::addmm"})) return one(detail::infer_mm(in, "mat1", "mat2"));
    if (is({"aten::bmm"})) return one(detail::infer_mm(in, "self", "mat2"));
    if (is({"aten::matmul"})) return one(detail::infer_matmul(in));
    if (is({"aten::view", "aten::_unsafe_view", "aten::reshape"})) return one(detail::infer_view(in));
    if (is({"aten::t", "aten::transpose.int", "aten::permute"})) return one(detail::infer_transpose(in));
    if (is({"aten::expand"})) return one(detail::infer_expand(in));
    if (is({"aten::sum.dim_IntList", "aten::sum"})) return one(detail::infer_reduction(in, false));
    if (is({"aten::mean.dim", "aten::mean", "aten::amax"})) return one(detail::infer_reduction(in, true));
    if (is({"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor", "aten::maximum", "aten::minimum"})) {
        auto const& a = in.at("self");
        auto const& b = in.at("other");
        auto type = detail::promote(a, b);
        if (o.name == "aten::div.Tensor" && (type == dtype::boolean || (!is_floating_point(type) && type != dtype::complex64 &&
                                                                       type != dtype::complex128)))
            type = dtype::float32;  // true division
        return one(contiguous_meta(detail::broadcast(in, a.sizes, b.sizes), type));
    }
    if (is({"aten::threshold_backward", "aten::tanh_backward", "aten::sigmoid_backward", "aten::silu_backward", "aten::gelu_backward"})) {
        auto const& g = in.at("grad_output");
        return one(contiguous_meta(g.sizes, g.type));
    }
    if (is({"aten::relu", "aten::silu", "aten::gelu", "aten::tanh", "aten::sigmoid", "aten::neg", "aten::exp", "aten::log", "aten::rsqrt",
            "aten::sin", "aten::cos", "aten::abs", "aten::sqrt", "aten::reciprocal", "aten::square", "aten::log1p", "aten::expm1",
            "aten::erf", "aten::clamp", "aten::hardtanh", "aten::leaky_relu", "aten::elu", "aten::softplus", "aten::mish",
            "aten::hardswish", "aten::hardsigmoid", "aten::_log_softmax", "aten::div.Scalar", "aten::sub.Scalar",
            "aten::clone", "aten::mul.Scalar", "aten::add.Scalar", "aten::pow.Tensor_Scalar", "aten::_softmax",
            "aten::ones_like", "aten::zeros_like", "aten::bernoulli"})) {
        auto const& m = in.at("self");
        return one(contiguous_meta(m.sizes, in.type_or(m.type)));
    }
    if (is({"aten::_to_copy", "aten::alias", "aten::detach"})) {
        auto const& m = in.at("self");
        return one({m.sizes, m.strides, in.type_or(m.type), true});
    }
    if (is({"cantle::cross_entropy"})) {
        auto const& logits = in.at("logits");
        auto const rows = in.leading(logits, "logits");
        if (rows != in.at("target").sizes) in.refuse("logits [...,V] and target [...] do not fit");
        if (o.get<std::string>("reduction", "mean") == "none") return std::nullopt;
        return std::vector{contiguous_meta({}, logits.type), contiguous_meta(rows, dtype::float32), contiguous_meta({}, dtype::float32)};
    }
    if (is({"cantle::cross_entropy_backward"})) return one(contiguous_meta(in.at("logits").sizes, in.at("logits").type));
    if (is({"cantle::sdpa"})) {
        auto const& q = in.at("query");
        auto const& v = in.at("value");
        if (q.rank() != 4 || v.rank() != 4 || in.at("key").rank() != 4) in.refuse("query, key and value must be [B,H,S,E]");
        return std::vector{contiguous_meta({q.sizes[0], q.sizes[1], q.sizes[2], v.sizes[3]}, q.type),
                           contiguous_meta({q.sizes[0], q.sizes[1], q.sizes[2]}, dtype::float32)};
    }
    if (is({"cantle::sdpa_backward"})) {
        std::vector<tensor_meta> grads;
        for (auto const name : {"query", "key", "value"}) grads.push_back(contiguous_meta(in.at(name).sizes, in.at(name).type));
        return grads;
    }
    if (is({"aten::embedding"})) {
        auto sizes = in.at("indices").sizes;
        if (in.at("weight").rank() != 2) in.refuse("the weight must be [V,D]");
        sizes.push_back(in.at("weight").sizes[1]);
        return one(contiguous_meta(std::move(sizes), in.at("weight").type));
    }
    if (is({"aten::embedding_dense_backward"})) {
        auto const& g = in.at("grad_output");
        in.leading(g, "grad_output");
        return one(contiguous_meta({o.get<std::int64_t>("num_weights", 0), g.sizes.back()}, g.type));
    }
    return std::nullopt;
}

}  // namespace cantle
