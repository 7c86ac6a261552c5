// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/shape_functions.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cantle::libtorch {
namespace {

using torch::jit::Stack;

at::Tensor make(at::IntArrayRef sizes, at::ScalarType type) { return at::Tensor(at::detail::empty_meta(sizes, type)); }

/// Same sizes and, where the strides are dense, the same strides: what empty_like gives.
at::Tensor like(at::Tensor const& t, at::ScalarType type) {
    if (!t.is_non_overlapping_and_dense()) return make(t.sizes(), type);
    return at::Tensor(at::detail::empty_strided_meta(t.sizes(), t.strides(), type));
}
at::Tensor like(at::Tensor const& t) { return like(t, t.scalar_type()); }

/// Takes `n` arguments off the stack and gives them back in order.
class arguments {
public:
    arguments(Stack& stack, std::size_t n) : stack_(stack), values_(stack.end() - static_cast<std::ptrdiff_t>(n), stack.end()) {
        stack.erase(stack.end() - static_cast<std::ptrdiff_t>(n), stack.end());
    }
    c10::IValue const& operator[](std::size_t i) const { return values_[i]; }
    at::Tensor const& tensor(std::size_t i) const { return values_[i].toTensor(); }
    template <class... Tensors>
    void give(Tensors&&... results) { (stack_.emplace_back(std::forward<Tensors>(results)), ...); }

private:
    Stack& stack_;
    std::vector<c10::IValue> values_;
};

template <std::size_t N>
void like_first(Stack& s) { arguments a(s, N); a.give(like(a.tensor(0))); }

template <std::size_t N, std::size_t Which>
void like_argument(Stack& s) { arguments a(s, N); a.give(like(a.tensor(Which))); }

template <std::size_t N, std::size_t Which>
void dense_as(Stack& s) { arguments a(s, N); a.give(make(a.tensor(Which).sizes(), a.tensor(Which).scalar_type())); }

template <std::size_t N>
void scalar_of_first(Stack& s) { arguments a(s, N); a.give(make({}, a.tensor(0).scalar_type())); }

at::ScalarType promoted(at::Tensor const& x, at::Tensor const& y) {
    return at::native::result_type(at::native::update_result_type_state(y, at::native::update_result_type_state(x, {})));
}

void broadcast_two(Stack& s) {
    arguments a(s, 2);
    a.give(make(at::infer_size(a.tensor(0).sizes(), a.tensor(1).sizes()), promoted(a.tensor(0), a.tensor(1))));
}

/// rsub.Tensor(self, other, alpha)
void broadcast_two_scaled(Stack& s) {
    s.pop_back();
    broadcast_two(s);
}

void where_self(Stack& s) {
    arguments a(s, 3);
    auto const& x = a.tensor(1);
    auto const& y = a.tensor(2);
    auto const sizes = at::infer_size(a.tensor(0).sizes(), at::infer_size(x.sizes(), y.sizes()));
    auto const type = promoted(x, y);
    // As TensorIterator: the strides of an operand that has the whole shape are kept.
    for (auto const* t : {&a.tensor(0), &x, &y})
        if (t->sizes() == at::IntArrayRef(sizes)) return a.give(like(*t, type));
    a.give(make(sizes, type));
}

void embedding(Stack& s) {
    arguments a(s, 5);
    auto sizes = a.tensor(1).sizes().vec();
    sizes.push_back(a.tensor(0).size(1));
    a.give(make(sizes, a.tensor(0).scalar_type()));
}

void embedding_dense_backward(Stack& s) {
    arguments a(s, 5);
    a.give(make({a[2].toInt(), a.tensor(0).size(-1)}, a.tensor(0).scalar_type()));
}

void index_select(Stack& s) {
    arguments a(s, 3);
    auto sizes = a.tensor(0).sizes().vec();
    auto const dim = at::maybe_wrap_dim(a[1].toInt(), static_cast<std::int64_t>(sizes.size()));
    if (!sizes.empty()) sizes[static_cast<std::size_t>(dim)] = a.tensor(2).numel();
    a.give(make(sizes, a.tensor(0).scalar_type()));
}

/// Statistics are float32 below float64, as on GPUs. (CPU kernels keep them in the type of a bfloat16 input; replay knows.)
at::ScalarType statistics_type(at::Tensor const& t) { return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

/// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (out, mean, rstd)
void layer_norm(Stack& s) {
    arguments a(s, 5);
    auto const& input = a.tensor(0);
    auto sizes = input.sizes().vec();
    std::fill(sizes.end() - static_cast<std::ptrdiff_t>(a[1].toDimVector().size()), sizes.end(), 1);
    a.give(make(input.sizes(), input.scalar_type()), make(sizes, statistics_type(input)), make(sizes, statistics_type(input)));
}

/// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) -> (out, mean, rstd)
void group_norm(Stack& s) {
    arguments a(s, 8);
    auto const& input = a.tensor(0);
    std::array<std::int64_t, 2> const groups{a[3].toInt(), a[6].toInt()};
    a.give(like(input), make(groups, statistics_type(input)), make(groups, statistics_type(input)));
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)
void layer_norm_backward(Stack& s) {
    arguments a(s, 8);
    auto const mask = a[7].toBoolList();
    auto const& input = a.tensor(1);
    at::Tensor grad_input, grad_weight, grad_bias;
    if (mask[0]) grad_input = make(input.sizes(), input.scalar_type());
    if (mask[1]) grad_weight = like(a.tensor(5));
    if (mask[2]) grad_bias = like(a[6].isTensor() ? a.tensor(6) : a.tensor(5));
    a.give(grad_input, grad_weight, grad_bias);
}

/// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask)
void group_norm_backward(Stack& s) {
    arguments a(s, 10);
    auto const mask = a[9].toBoolList();
    auto const& input = a.tensor(1);
    at::Tensor grad_input, grad_weight, grad_bias;
    if (mask[0]) grad_input = like(input);
    if (mask[1]) grad_weight = make({a[6].toInt()}, input.scalar_type());
    if (mask[2]) grad_bias = make({a[6].toInt()}, input.scalar_type());
    a.give(grad_input, grad_weight, grad_bias);
}

/// native_dropout(input, p, train?) -> (output, mask)
void native_dropout(Stack& s) {
    arguments a(s, 3);
    a.give(like(a.tensor(0)), like(a.tensor(0), at::kBool));
}

/// std.correction and var.correction(self, dim?, *, correction?, keepdim); the _mean forms give two tensors.
std::vector<std::int64_t> reduced_sizes(at::Tensor const& t, c10::IValue const& dims, bool keep) {
    std::vector<bool> gone(static_cast<std::size_t>(t.dim()), dims.isNone() || dims.toIntVector().empty());
    if (!dims.isNone())
        for (auto d : dims.toIntVector()) gone[static_cast<std::size_t>(at::maybe_wrap_dim(d, t.dim()))] = true;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < gone.size(); ++i) {
        if (!gone[i]) sizes.push_back(t.size(static_cast<std::int64_t>(i)));
        else if (keep) sizes.push_back(1);
    }
    return sizes;
}
void variance(Stack& s) {
    arguments a(s, 4);
    a.give(make(reduced_sizes(a.tensor(0), a[1], a[3].toBool()), a.tensor(0).scalar_type()));
}
void variance_and_mean(Stack& s) {
    arguments a(s, 4);
    auto const sizes = reduced_sizes(a.tensor(0), a[1], a[3].toBool());
    a.give(make(sizes, a.tensor(0).scalar_type()), make(sizes, a.tensor(0).scalar_type()));
}

/// _safe_softmax(self, dim, dtype?)
void safe_softmax(Stack& s) {
    arguments a(s, 3);
    a.give(like(a.tensor(0), a[2].isNone() ? a.tensor(0).scalar_type() : a[2].toScalarType()));
}

/// prod(self, *, dtype?)
void product(Stack& s) {
    arguments a(s, 2);
    auto type = a.tensor(0).scalar_type();
    if (!a[1].isNone()) type = a[1].toScalarType();
    else if (at::isIntegralType(type, true)) type = at::kLong;
    a.give(make({}, type));
}

void is_nan(Stack& s) {
    arguments a(s, 1);
    a.give(like(a.tensor(0), at::kBool));
}

/// log_sigmoid_forward(self) -> (output, buffer); the buffer is as large as the input on CPU.
void log_sigmoid_forward(Stack& s) {
    arguments a(s, 1);
    a.give(like(a.tensor(0)), like(a.tensor(0)));
}

/// binary_cross_entropy and huber_loss end in a reduction argument.
template <std::size_t N, std::size_t Reduction>
void loss(Stack& s) {
    arguments a(s, N);
    if (a[Reduction].toInt() == 0) a.give(like(a.tensor(0)));
    else a.give(make({}, a.tensor(0).scalar_type()));
}

/// glu_backward(grad_output, self, dim)
constexpr auto glu_backward = &like_argument<3, 1>;

constexpr std::pair<std::string_view, shape_function> table[] = {
    {"aten::_prelu_kernel", &like_first<2>},
    {"aten::_safe_softmax", &safe_softmax},
    {"aten::abs", &like_first<1>},
    {"aten::binary_cross_entropy", &loss<4, 3>},
    {"aten::binary_cross_entropy_backward", &like_argument<5, 1>},
    {"aten::dot", &scalar_of_first<2>},
    {"aten::embedding", &embedding},
    {"aten::embedding_dense_backward", &embedding_dense_backward},
    {"aten::flip", &like_first<2>},
    {"aten::floor_divide", &broadcast_two},
    {"aten::glu_backward", glu_backward},
    {"aten::hardswish", &like_first<1>},
    {"aten::hardswish_backward", &like_argument<2, 1>},
    {"aten::hardtanh", &like_first<3>},
    {"aten::hardtanh_backward", &like_argument<4, 1>},
    {"aten::huber_loss", &loss<4, 2>},
    {"aten::index_select", &index_select},
    {"aten::isnan", &is_nan},
    {"aten::log_sigmoid_backward", &like_argument<3, 1>},
    {"aten::log_sigmoid_forward", &log_sigmoid_forward},
    {"aten::logit", &like_first<2>},
    {"aten::max", &scalar_of_first<1>},
    {"aten::min", &scalar_of_first<1>},
    {"aten::mse_loss_backward", &dense_as<4, 1>},
    {"aten::native_dropout", &native_dropout},
    {"aten::native_dropout_backward", &like_first<3>},
    {"aten::native_group_norm", &group_norm},
    {"aten::native_group_norm_backward", &group_norm_backward},
    {"aten::native_layer_norm", &layer_norm},
    {"aten::native_layer_norm_backward", &layer_norm_backward},
    {"aten::prod", &product},
    {"aten::relu", &like_first<1>},
    {"aten::remainder.Scalar_Tensor", &like_argument<2, 1>},
    {"aten::roll", &dense_as<3, 0>},
    {"aten::rsub.Tensor", &broadcast_two_scaled},
    {"aten::std.correction", &variance},
    {"aten::std_mean.correction", &variance_and_mean},
    {"aten::trace", &scalar_of_first<1>},
    {"aten::var.correction", &variance},
    {"aten::var_mean.correction", &variance_and_mean},
    {"aten::vdot", &scalar_of_first<2>},
    {"aten::where.self", &where_self},
};

}  // namespace

shape_function const* find_shape_function(c10::OperatorHandle const& handle) {
    // Looked up once per op and thread: a captured model asks thousands of times for a few dozen ops.
    thread_local std::unordered_map<c10::OperatorName, shape_function> cache;
    auto const [it, fresh] = cache.try_emplace(handle.operator_name(), nullptr);
    if (fresh) {
        auto const name = c10::toString(handle.operator_name());
        for (auto const& [op, function] : table)
            if (op == name) it->second = function;
    }
    return it->second ? &it->second : nullptr;
}

}  // namespace cantle::libtorch
