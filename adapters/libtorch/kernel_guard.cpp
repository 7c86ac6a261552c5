// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/kernel_guard.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Functions.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cantle::libtorch {
namespace {

struct guarded_call {
    op const& call;
    std::span<at::Tensor const> operands;

    /// The operand of that argument, or an undefined tensor.
    at::Tensor operand(std::string_view name) const {
        auto const s = call.slot(name);
        return s && *s < operands.size() ? operands[*s] : at::Tensor();
    }
    void need(bool fits, std::string const& what) const {
        if (!fits)
            throw error(error_code::bad_rule, "operands of " + call.name, what, "place operands so that their local sizes fit each other");
    }
    void need_sizes(std::string_view name, at::IntArrayRef sizes) const {
        auto const t = operand(name);
        need(!t.defined() || t.sizes() == sizes, "sizes of " + std::string(name) + " do not fit");
    }
};

void guard_attention(guarded_call const& c) {
    auto const q = c.operand("query"), k = c.operand("key"), v = c.operand("value"), mask = c.operand("attn_mask");
    if (q.dim() != 4) return;  // only the four-dim kernels are unchecked
    c.need(k.dim() == 4 && v.dim() == 4, "key and value need as many dims as query");
    c.need(k.size(0) == q.size(0) && v.size(0) == q.size(0), "batches differ");
    c.need(k.size(1) == v.size(1) && k.size(2) == v.size(2) && k.size(3) == q.size(3), "key and value do not fit");
    bool const grouped = c.call.get<bool>("enable_gqa", c.call.name.rfind("aten::", 0) == 0);  // the kernel itself has no such flag
    c.need(k.size(1) > 0 && (grouped ? q.size(1) % k.size(1) == 0 : q.size(1) == k.size(1)), "heads do not fit");
    if (mask.defined()) {
        std::int64_t const full[] = {q.size(0), q.size(1), q.size(2), k.size(2)};
        c.need(mask.dim() <= 4, "the mask has too many dims");
        for (std::int64_t d = 1; d <= mask.dim(); ++d)
            c.need(mask.size(-d) == 1 || mask.size(-d) == full[4 - d], "the mask does not fit");
    }
    std::int64_t const out[] = {q.size(0), q.size(1), q.size(2), v.size(3)};
    for (auto name : {"grad_out", "out"}) c.need_sizes(name, out);
    auto const logsumexp = c.operand("logsumexp");
    c.need(!logsumexp.defined() || logsumexp.numel() == q.size(0) * q.size(1) * q.size(2), "logsumexp does not fit");
}

void guard_layer_norm_backward(guarded_call const& c) {
    auto const x = c.operand("input");
    auto const over = c.call.get<std::vector<std::int64_t>>("normalized_shape", {});
    std::int64_t columns = 1;
    for (auto s : over) columns *= s;
    c.need(columns > 0 && x.numel() % columns == 0, "normalized_shape does not fit");
    c.need_sizes("grad_out", x.sizes());
    for (auto name : {"mean", "rstd"}) c.need(c.operand(name).numel() == x.numel() / columns, "statistics do not fit");
    for (auto name : {"weight", "bias"}) c.need_sizes(name, over);
}

void guard_embedding_backward(guarded_call const& c) {
    auto const grad = c.operand("grad_output"), indices = c.operand("indices");
    c.need(grad.dim() == indices.dim() + 1 && grad.sizes().slice(0, static_cast<std::size_t>(indices.dim())) == indices.sizes(),
           "gradient and indices do not fit");
    if (indices.numel() == 0) return;
    c.need(indices.min().item<std::int64_t>() >= 0 && indices.max().item<std::int64_t>() < c.call.get<std::int64_t>("num_weights", 0),
           "an index points outside the table");
}

/// Gradients at targets: the class is written to unchecked.
void guard_targets(guarded_call const& c, std::string_view scores_name, std::string_view grad_name) {
    auto const scores = c.operand(scores_name), target = c.operand("target"), grad = c.operand(grad_name);
    auto const ignore = c.call.get<std::int64_t>("ignore_index", -100);
    c.need(scores.dim() >= 1 && scores.numel() > 0, "no scores");
    auto const classes = c.call.name == "aten::nll_loss2d_backward" ? scores.size(1) : scores.size(-1);
    c.need(target.numel() == scores.numel() / classes, "scores and target do not fit");
    c.need(grad.numel() == 1 || grad.sizes() == target.sizes(), "gradient and target do not fit");
    c.need(c.operand("total_weight").numel() == 1, "total_weight is no number");
    auto const good = at::logical_or(target == ignore, at::logical_and(target >= 0, target < classes));
    c.need(good.all().item<bool>(), "a target is no class");
}

void guard_same_sizes(guarded_call const& c, std::string_view a, std::string_view b) { c.need_sizes(a, c.operand(b).sizes()); }

void guard_pool_backward(guarded_call const& c) {
    auto const grad = c.operand("grad_output"), x = c.operand("self"), indices = c.operand("indices");
    std::int64_t const spatial = c.call.name.find("3d") != std::string::npos ? 3 : 2;
    c.need(x.dim() == grad.dim() && x.dim() > spatial, "gradient and input do not fit");
    auto const planes = static_cast<std::size_t>(x.dim() - spatial);
    c.need(x.sizes().slice(0, planes) == grad.sizes().slice(0, planes), "planes differ");
    if (!indices.defined() || indices.numel() == 0) return;
    guard_same_sizes(c, "grad_output", "indices");
    std::int64_t extent = 1;
    for (std::int64_t d = 1; d <= spatial; ++d) extent *= x.size(-d);
    c.need(indices.min().item<std::int64_t>() >= 0 && indices.max().item<std::int64_t>() < extent,
           "an index points outside the plane");
}

/// Steps of optimizers over lists: parameter by parameter all sizes are alike.
void guard_lists(guarded_call const& c) {
    operand_slots const* first = nullptr;
    for (auto const& a : c.call.arguments) {
        auto const* list = std::get_if<operand_slots>(&a.value);
        if (!list || list->indices.empty() || a.name == "state_steps") continue;
        if (!first) first = list;
        c.need(list->indices.size() == first->indices.size(), "the lists have different lengths");
        for (std::size_t i = 0; i < list->indices.size(); ++i)
            c.need(c.operands[static_cast<std::size_t>(list->indices[i])].sizes() ==
                       c.operands[static_cast<std::size_t>(first->indices[i])].sizes(), "sizes of " + a.name + " do not fit");
    }
}

void guard_batch_norm(guarded_call const& c) {
    auto const x = c.operand("input");
    c.need(x.dim() >= 2, "no channels");
    guard_same_sizes(c, "grad_out", "input");
    for (auto name : {"weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd"})
        if (auto const t = c.operand(name); t.defined() && t.numel() > 0) c.need_sizes(name, {x.size(1)});
}

/// The kernel takes sizes and strides as they are, and reads past the end of a smaller tensor.
void guard_reshape_alias(guarded_call const& c) {
    std::int64_t count = 1;
    for (auto s : c.call.get<std::vector<std::int64_t>>("size", {})) count *= s;
    c.need(c.operand("self").numel() == count, "size does not fit");
}

}  // namespace

void guard_kernel(op const& call, std::span<at::Tensor const> operands) {
    guarded_call const c{call, operands};
    auto const begins = [&](std::string_view prefix) { return call.name.rfind(prefix, 0) == 0; };
    if (begins("cantle::sdpa") || begins("aten::_scaled_dot_product_")) guard_attention(c);
    else if (call.name == "aten::native_layer_norm_backward") guard_layer_norm_backward(c);
    else if (call.name == "aten::embedding_dense_backward") guard_embedding_backward(c);
    else if (call.name == "cantle::cross_entropy_backward") guard_targets(c, "logits", "grad");
    else if (call.name == "aten::nll_loss_backward" || call.name == "aten::nll_loss2d_backward") guard_targets(c, "self", "grad_output");
    else if (call.name == "aten::_softmax_backward_data" || call.name == "aten::_log_softmax_backward_data")
        guard_same_sizes(c, "grad_output", "output");
    else if (call.name.find("_pool") != std::string::npos && call.name.find("_backward") != std::string::npos)
        guard_pool_backward(c);
    else if (begins("aten::_fused_adam") || begins("aten::_fused_sgd") || begins("aten::_fused_adagrad")) guard_lists(c);
    else if (begins("aten::native_batch_norm") || begins("aten::_native_batch_norm"))
        guard_batch_norm(c);
    else if (call.name == "aten::_reshape_alias") guard_reshape_alias(c);
}

}  // namespace cantle::libtorch
