// SPDX-License-Identifier: BSL-1.0
// The ops of cantle's own, as PyTorch ops: linears' gradients over unflattened dims, fused attention without a device in its name, and
// cross-entropy over [..., V] in one piece. On one rank each computes exactly what eager PyTorch computes, kernel for kernel, so that a
// replayed graph has eager's bits. Schemas: the canonical ops of docs.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <torch/library.h>

#include <string_view>
#include <tuple>

namespace cantle::libtorch {
namespace {

using at::Tensor;

Tensor rows(Tensor const& t) { return t.reshape({-1, t.size(-1)}); }

Tensor empty_meta(at::IntArrayRef sizes, at::ScalarType type) { return Tensor(at::detail::empty_meta(sizes, type)); }

/// Type of statistics: float32, and float64 where the data are.
at::ScalarType statistics_type(Tensor const& t) { return t.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

// ---- linear. Forward ops stand for ATen's during a capture only and are recorded under ATen's names (recorder.cpp) ----

Tensor linear(Tensor const& input, Tensor const& weight) { return at::linear(input, weight); }
Tensor linear_meta(Tensor const& input, Tensor const& weight) {
    TORCH_CHECK(input.dim() >= 1 && weight.dim() == 2 && input.size(-1) == weight.size(1), "linear: input of shape ", input.sizes(),
                " does not fit weight of shape ", weight.sizes());
    TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "linear: input is ", input.scalar_type(), " and weight ",
                weight.scalar_type());
    auto sizes = input.sizes().vec();
    sizes.back() = weight.size(0);
    return empty_meta(sizes, input.scalar_type());
}

Tensor add_bias(Tensor const& input, Tensor const& bias) { return at::add(input, bias); }

// Gradients: the mm calls of AddmmBackward and MmBackward.

Tensor linear_grad_input(Tensor const& grad, Tensor const& weight) {
    auto sizes = grad.sizes().vec();
    sizes.back() = weight.size(1);
    return rows(grad).mm(weight).view(sizes);
}
Tensor linear_grad_input_meta(Tensor const& grad, Tensor const& weight) {
    auto sizes = grad.sizes().vec();
    TORCH_CHECK(!sizes.empty() && weight.dim() == 2 && sizes.back() == weight.size(0), "linear_grad_input: shapes ", grad.sizes(), " and ",
                weight.sizes(), " do not fit");
    sizes.back() = weight.size(1);
    return empty_meta(sizes, grad.scalar_type());
}

Tensor linear_grad_weight(Tensor const& grad, Tensor const& input) { return rows(grad).t().mm(rows(input)); }
Tensor linear_grad_weight_meta(Tensor const& grad, Tensor const& input) {
    TORCH_CHECK(grad.dim() >= 1 && grad.dim() == input.dim() && grad.sizes().slice(0, static_cast<std::size_t>(grad.dim() - 1)) ==
                    input.sizes().slice(0, static_cast<std::size_t>(input.dim() - 1)),
                "linear_grad_weight: shapes ", grad.sizes(), " and ", input.sizes(), " do not fit");
    return empty_meta({grad.size(-1), input.size(-1)}, grad.scalar_type());
}

// ---- attention ----

/// The CPU kernel reads rows as if they were contiguous, and other memory where they are not (PyTorch 2.15); eager does not call it then.
Tensor with_dense_rows(Tensor const& t) { return t.size(3) < 2 || t.stride(3) == 1 ? t : t.contiguous(); }

/// The CPU kernel wants one head dim. Latent attention has narrower values: columns of zeros more change nothing.
Tensor widened(Tensor const& t, std::int64_t head_dim) {
    TORCH_CHECK(t.size(3) <= head_dim, "sdpa: values wider than queries are not supported on CPU");
    return t.size(3) == head_dim ? with_dense_rows(t) : at::constant_pad_nd(t, {0, head_dim - t.size(3)});
}

/// The first `dim` columns, in the memory of [B, S, H, E] as the kernel's own results.
Tensor narrowed(Tensor const& t, std::int64_t dim) {
    return t.size(3) == dim ? t : t.narrow(3, 0, dim).transpose(1, 2).contiguous().transpose(1, 2);
}

std::tuple<Tensor, Tensor> sdpa_cpu(Tensor const& query, Tensor const& key, Tensor const& value, std::optional<Tensor> const& attn_mask,
                                    double dropout_p, bool is_causal, std::optional<double> scale, bool /*enable_gqa*/) {
    auto const head_dim = query.size(3), value_dim = value.size(3);
    auto [out, logsumexp] =
        at::_scaled_dot_product_flash_attention_for_cpu(with_dense_rows(query), with_dense_rows(key), widened(value, head_dim), dropout_p,
                                                        is_causal, attn_mask, scale);
    return {narrowed(out, value_dim), logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> sdpa_backward_cpu(Tensor const& grad_out, Tensor const& query, Tensor const& key, Tensor const& value,
                                                     Tensor const& out, Tensor const& logsumexp, std::optional<Tensor> const& attn_mask,
                                                     double dropout_p, bool is_causal, std::optional<double> scale, bool /*enable_gqa*/) {
    auto const head_dim = query.size(3), value_dim = value.size(3);
    auto [grad_query, grad_key, grad_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        widened(grad_out, head_dim), with_dense_rows(query), with_dense_rows(key), widened(value, head_dim), widened(out, head_dim),
        logsumexp, dropout_p, is_causal, attn_mask, scale);
    return {grad_query, grad_key, narrowed(grad_value, value_dim)};
}

/// [B, H, S, E] as the kernels lay it out: the memory of [B, S, H, E].
Tensor heads_meta(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t e, at::ScalarType type) {
    return Tensor(at::detail::empty_strided_meta({b, h, s, e}, {s * h * e, e, h * e, 1}, type));
}

std::tuple<Tensor, Tensor> sdpa_meta(Tensor const& query, Tensor const& key, Tensor const& value,
                                     std::optional<Tensor> const& /*attn_mask*/, double /*dropout_p*/, bool /*is_causal*/,
                                     std::optional<double> /*scale*/, bool enable_gqa) {
    TORCH_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
                "sdpa: query, key and value must be [batch, heads, sequence, head dim]");
    auto const b = query.size(0), h = query.size(1), s = query.size(2);
    TORCH_CHECK(key.size(0) == b && value.size(0) == b && key.size(2) == value.size(2) && key.size(3) == query.size(3) &&
                    key.size(1) == value.size(1) && (enable_gqa ? h % key.size(1) == 0 : h == key.size(1)),
                "sdpa: shapes ", query.sizes(), ", ", key.sizes(), " and ", value.sizes(), " do not fit");
    // As the kernels: the output lies as the query does, [B, S, H, E] or [B, H, S, E] in memory.
    bool const as_query = value.size(3) == query.size(3) && query.is_non_overlapping_and_dense();
    return {as_query ? Tensor(at::detail::empty_strided_meta(query.sizes(), query.strides(), query.scalar_type()))
                     : heads_meta(b, h, s, value.size(3), query.scalar_type()),
            Tensor(at::detail::empty_strided_meta({b, h, s}, {s * h, 1, h}, statistics_type(query)))};
}

std::tuple<Tensor, Tensor, Tensor> sdpa_backward_meta(Tensor const& /*grad_out*/, Tensor const& query, Tensor const& key,
                                                      Tensor const& value, Tensor const& /*out*/, Tensor const& /*logsumexp*/,
                                                      std::optional<Tensor> const& /*attn_mask*/, double /*dropout_p*/, bool /*is_causal*/,
                                                      std::optional<double> /*scale*/, bool /*enable_gqa*/) {
    auto const like = [](Tensor const& t) { return heads_meta(t.size(0), t.size(1), t.size(2), t.size(3), t.scalar_type()); };
    return {like(query), like(key), like(value)};
}

// ---- cross-entropy ----

std::int64_t reduction_number(std::string_view name) {
    if (name == "mean") return at::Reduction::Mean;
    if (name == "sum") return at::Reduction::Sum;
    TORCH_CHECK(name == "none", "cross_entropy: reduction must be mean, sum or none, not '", name, "'");
    return at::Reduction::None;
}

std::tuple<Tensor, Tensor, Tensor> cross_entropy(Tensor const& logits, Tensor const& target, std::int64_t ignore_index,
                                                 std::string_view reduction) {
    auto const log_probabilities = at::_log_softmax(rows(logits), 1, false);
    auto [loss, total] = at::nll_loss_forward(log_probabilities, target.reshape({-1}), {}, reduction_number(reduction), ignore_index);
    auto const statistics = statistics_type(logits);
    if (reduction == "none") loss = loss.view(target.sizes());
    return {loss, at::logsumexp(logits.to(statistics), {-1}), total.to(statistics)};
}

Tensor cross_entropy_backward(Tensor const& grad, Tensor const& logits, Tensor const& target, Tensor const& /*logsumexp*/,
                              Tensor const& total_weight, std::int64_t ignore_index, std::string_view reduction) {
    // Eager keeps the log-probabilities; here they are computed again, with the same kernel and so the same bits.
    auto const log_probabilities = at::_log_softmax(rows(logits), 1, false);
    auto const flat_grad = grad.dim() == 0 ? grad : grad.reshape({-1});
    auto const grad_log = at::nll_loss_backward(flat_grad, log_probabilities, target.reshape({-1}), {}, reduction_number(reduction),
                                                ignore_index, total_weight.to(logits.scalar_type()));
    return at::_log_softmax_backward_data(grad_log, log_probabilities, 1, logits.scalar_type()).view(logits.sizes());
}

std::tuple<Tensor, Tensor, Tensor> cross_entropy_meta(Tensor const& logits, Tensor const& target, std::int64_t /*ignore_index*/,
                                                      std::string_view reduction) {
    auto const leading = logits.sizes().slice(0, static_cast<std::size_t>(logits.dim() - 1));
    TORCH_CHECK(target.sizes() == leading, "cross_entropy: target of shape ", target.sizes(), " does not fit logits of shape ",
                logits.sizes());
    return {empty_meta(reduction == "none" ? leading : at::IntArrayRef{}, logits.scalar_type()),
            empty_meta(leading, statistics_type(logits)), empty_meta({}, statistics_type(logits))};
}
Tensor cross_entropy_backward_meta(Tensor const& /*grad*/, Tensor const& logits, Tensor const& /*target*/, Tensor const& /*logsumexp*/,
                                   Tensor const& /*total_weight*/, std::int64_t /*ignore_index*/, std::string_view /*reduction*/) {
    return empty_meta(logits.sizes(), logits.scalar_type());
}

TORCH_LIBRARY(cantle, m) {
    m.def("linear(Tensor input, Tensor weight) -> Tensor");
    m.def("add_bias(Tensor input, Tensor bias) -> Tensor");
    m.def("linear_grad_input(Tensor grad, Tensor weight) -> Tensor");
    m.def("linear_grad_weight(Tensor grad, Tensor input) -> Tensor");
    m.def("sdpa(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, "
          "float? scale=None, bool enable_gqa=False) -> (Tensor out, Tensor logsumexp)");
    m.def("sdpa_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor? attn_mask=None, "
          "float dropout_p=0.0, bool is_causal=False, float? scale=None, bool enable_gqa=False) "
          "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)");
    m.def("cross_entropy(Tensor logits, Tensor target, int ignore_index=-100, str reduction=\"mean\") "
          "-> (Tensor loss, Tensor logsumexp, Tensor total_weight)");
    m.def("cross_entropy_backward(Tensor grad, Tensor logits, Tensor target, Tensor logsumexp, Tensor total_weight, int ignore_index=-100, "
          "str reduction=\"mean\") -> Tensor");
}
TORCH_LIBRARY_IMPL(cantle, CompositeExplicitAutograd, m) {
    m.impl("linear", linear);
    m.impl("add_bias", add_bias);
    m.impl("linear_grad_input", linear_grad_input);
    m.impl("linear_grad_weight", linear_grad_weight);
    m.impl("cross_entropy", cross_entropy);
    m.impl("cross_entropy_backward", cross_entropy_backward);
}
TORCH_LIBRARY_IMPL(cantle, CPU, m) {
    m.impl("sdpa", sdpa_cpu);
    m.impl("sdpa_backward", sdpa_backward_cpu);
}
TORCH_LIBRARY_IMPL(cantle, Meta, m) {
    m.impl("linear", linear_meta);
    m.impl("linear_grad_input", linear_grad_input_meta);
    m.impl("linear_grad_weight", linear_grad_weight_meta);
    m.impl("sdpa", sdpa_meta);
    m.impl("sdpa_backward", sdpa_backward_meta);
    m.impl("cross_entropy", cross_entropy_meta);
    m.impl("cross_entropy_backward", cross_entropy_backward_meta);
}

}  // namespace
}  // namespace cantle::libtorch
