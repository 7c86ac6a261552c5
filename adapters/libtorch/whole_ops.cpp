// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/whole_ops.hpp>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

namespace cantle::libtorch {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A mode key above autograd, for which LibTorch registers nothing. It falls through for all ops but those below.
constexpr c10::DispatchKey whole_ops_key = c10::DispatchKey::TESTING_ONLY_GenericMode;

struct below_whole_ops {
    c10::impl::ExcludeDispatchKeyGuard off{whole_ops_key};
};

template <class Signature>
c10::TypedOperatorHandle<Signature> own_op(char const* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// ---- linear ----

using pair_signature = Tensor(Tensor const&, Tensor const&);

struct linear_function : torch::autograd::Function<linear_function> {
    static Tensor forward(AutogradContext* context, Tensor const& input, Tensor const& weight) {
        static auto const linear = own_op<pair_signature>("cantle::linear");
        context->save_for_backward({input, weight});
        at::AutoDispatchBelowADInplaceOrView const below_autograd;
        return linear.call(input, weight);
    }
    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        static auto const grad_input = own_op<pair_signature>("cantle::linear_grad_input");
        static auto const grad_weight = own_op<pair_signature>("cantle::linear_grad_weight");
        auto const saved = context->get_saved_variables();
        variable_list result(2);
        if (!gradients[0].defined()) return result;
        if (context->needs_input_grad(0)) result[0] = grad_input.call(gradients[0], saved[1]);
        if (context->needs_input_grad(1)) result[1] = grad_weight.call(gradients[0], saved[0]);
        return result;
    }
};

/// The bias, added by a node of its own: its gradient is one sum over the leading dims, with no view around it.
struct add_bias_function : torch::autograd::Function<add_bias_function> {
    static Tensor forward(AutogradContext* context, Tensor const& input, Tensor const& bias) {
        static auto const add_bias = own_op<pair_signature>("cantle::add_bias");
        context->saved_data["rank"] = input.dim();
        at::AutoDispatchBelowADInplaceOrView const below_autograd;
        return add_bias.call(input, bias);
    }
    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        variable_list result(2);
        if (!gradients[0].defined()) return result;
        result[0] = gradients[0];
        if (context->needs_input_grad(1)) {
            std::vector<std::int64_t> leading(static_cast<std::size_t>(context->saved_data["rank"].toInt() - 1));
            std::iota(leading.begin(), leading.end(), 0);
            result[1] = leading.empty() ? gradients[0] : at::sum(gradients[0], leading);
        }
        return result;
    }
};

Tensor linear_whole(Tensor const& input, Tensor const& weight, std::optional<Tensor> const& bias) {
    below_whole_ops const below;
    bool const has_bias = bias && bias->defined();
    if (weight.dim() != 2 || input.dim() < 1 || (has_bias && bias->dim() != 1)) return at::linear(input, weight, bias);
    auto const out = linear_function::apply(input, weight);
    return has_bias ? add_bias_function::apply(out, *bias) : out;
}

/// The matrix whose transpose this is, where the transpose is a view: torch::nn::Linear writes x.matmul(weight.t()) in C++.
std::optional<Tensor> transposed_base(Tensor const& t) {
    if (t.dim() != 2 || !t.is_view()) return std::nullopt;
    Tensor base(t._base());
    bool const turned = base.dim() == 2 && base.size(0) == t.size(1) && base.size(1) == t.size(0) && base.stride(0) == t.stride(1) &&
                        base.stride(1) == t.stride(0) && base.storage_offset() == t.storage_offset() &&
                        base.scalar_type() == t.scalar_type() && base.requires_grad() == t.requires_grad();
    return turned ? std::optional<Tensor>(std::move(base)) : std::nullopt;
}

Tensor matmul_whole(Tensor const& input, Tensor const& other) {
    below_whole_ops const below;
    if (input.dim() >= 2)
        if (auto const weight = transposed_base(other)) return linear_function::apply(input, *weight);
    return at::matmul(input, other);
}

Tensor addmm_whole(Tensor const& bias, Tensor const& input, Tensor const& other, c10::Scalar const& beta, c10::Scalar const& alpha) {
    below_whole_ops const below;
    if (bias.dim() == 1 && beta.equal(1) && alpha.equal(1))
        if (auto const weight = transposed_base(other)) return add_bias_function::apply(linear_function::apply(input, *weight), bias);
    return at::addmm(bias, input, other, beta, alpha);
}

// ---- attention ----

using sdpa_signature = std::tuple<Tensor, Tensor>(Tensor const&, Tensor const&, Tensor const&, std::optional<Tensor> const&, double, bool,
                                                  std::optional<double>, bool);
using sdpa_backward_signature = std::tuple<Tensor, Tensor, Tensor>(Tensor const&, Tensor const&, Tensor const&, Tensor const&,
                                                                   Tensor const&, Tensor const&, std::optional<Tensor> const&, double, bool,
                                                                   std::optional<double>, bool);

struct sdpa_function : torch::autograd::Function<sdpa_function> {
    static Tensor forward(AutogradContext* context, Tensor const& query, Tensor const& key, Tensor const& value,
                          std::optional<Tensor> const& mask, bool is_causal, std::optional<double> scale, bool enable_gqa) {
        static auto const sdpa = own_op<sdpa_signature>("cantle::sdpa");
        Tensor out, logsumexp;
        {
            at::AutoDispatchBelowADInplaceOrView const below_autograd;
            std::tie(out, logsumexp) = sdpa.call(query, key, value, mask, 0.0, is_causal, scale, enable_gqa);
        }
        context->save_for_backward({query, key, value, out, logsumexp, mask.value_or(Tensor())});
        context->saved_data["is_causal"] = is_causal;
        context->saved_data["scale"] = scale;
        context->saved_data["enable_gqa"] = enable_gqa;
        return out;
    }
    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        static auto const sdpa_backward = own_op<sdpa_backward_signature>("cantle::sdpa_backward");
        variable_list result(7);
        if (!gradients[0].defined()) return result;
        auto const s = context->get_saved_variables();
        auto const mask = s[5].defined() ? std::optional<Tensor>(s[5]) : std::nullopt;
        std::tie(result[0], result[1], result[2]) =
            sdpa_backward.call(gradients[0], s[0], s[1], s[2], s[3], s[4], mask, 0.0, context->saved_data["is_causal"].toBool(),
                               context->saved_data["scale"].toOptional<double>(), context->saved_data["enable_gqa"].toBool());
        return result;
    }
};

Tensor sdpa_whole(Tensor const& query, Tensor const& key, Tensor const& value, std::optional<Tensor> const& mask, double dropout_p,
                     bool is_causal, std::optional<double> scale, bool enable_gqa) {
    below_whole_ops const below;
    bool const has_mask = mask && mask->defined();
    // What the fused kernels take: four dims, no dropout (its mask is no tensor that a graph could carry), no gradient of the mask.
    bool const fused = dropout_p == 0.0 && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
                       value.size(3) <= query.size(3) && at::isFloatingType(query.scalar_type()) && !(has_mask && mask->requires_grad());
    if (!fused) return at::scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
    std::optional<Tensor> additive = has_mask ? mask : std::nullopt;
    if (has_mask && mask->scalar_type() == at::kBool)
        additive = at::zeros_like(*mask, query.options()).masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
    // One key and value head that broadcasts over the query's heads (multi-query) is grouped-query attention with one group.
    bool const one_head = key.size(1) == 1 && value.size(1) == 1 && query.size(1) > 1;
    return sdpa_function::apply(query, key, value, additive, is_causal, scale, enable_gqa || one_head);
}

// ---- cross-entropy ----

using cross_entropy_signature = std::tuple<Tensor, Tensor, Tensor>(Tensor const&, Tensor const&, std::int64_t, std::string_view);
using cross_entropy_backward_signature = Tensor(Tensor const&, Tensor const&, Tensor const&, Tensor const&, Tensor const&, std::int64_t,
                                                std::string_view);

struct cross_entropy_function : torch::autograd::Function<cross_entropy_function> {
    static Tensor forward(AutogradContext* context, Tensor const& logits, Tensor const& target, std::int64_t ignore_index,
                          std::string const& reduction) {
        static auto const cross_entropy = own_op<cross_entropy_signature>("cantle::cross_entropy");
        Tensor loss, logsumexp, total_weight;
        {
            at::AutoDispatchBelowADInplaceOrView const below_autograd;
            std::tie(loss, logsumexp, total_weight) = cross_entropy.call(logits, target, ignore_index, reduction);
        }
        context->save_for_backward({logits, target, logsumexp, total_weight});
        context->saved_data["ignore_index"] = ignore_index;
        context->saved_data["reduction"] = reduction;
        return loss;
    }
    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        static auto const cross_entropy_backward = own_op<cross_entropy_backward_signature>("cantle::cross_entropy_backward");
        variable_list result(4);
        if (!gradients[0].defined()) return result;
        auto const s = context->get_saved_variables();
        result[0] = cross_entropy_backward.call(gradients[0], s[0], s[1], s[2], s[3], context->saved_data["ignore_index"].toInt(),
                                                context->saved_data["reduction"].toStringRef());
        return result;
    }
};

/// Whether `flat` is `whole` with its leading dims (all but the last `kept`) flattened to one.
bool flattens(Tensor const& flat, Tensor const& whole, std::int64_t kept) {
    if (whole.dim() < 1 + kept || flat.dim() != 1 + kept || whole.numel() != flat.numel() || !whole.is_contiguous() ||
        !flat.is_contiguous())
        return false;
    return kept == 0 || whole.size(-1) == flat.size(-1);
}

Tensor cross_entropy_whole(Tensor const& logits, Tensor const& target, std::optional<Tensor> const& weight, std::int64_t reduction,
                              c10::SymInt ignore_index, double label_smoothing) {
    below_whole_ops const below;
    bool const whole = !(weight && weight->defined()) && label_smoothing == 0.0 && target.scalar_type() == at::kLong &&
                       logits.dim() == 2 && target.dim() == 1 && (reduction == at::Reduction::Mean || reduction == at::Reduction::Sum);
    if (!whole) return at::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignore_index), label_smoothing);
    // Users flatten [B, S, V] before they call; the op takes it whole, so look behind the view. The view itself is then dead code.
    Tensor wide = logits, labels = target;
    if (logits.is_view()) {
        auto const base = static_cast<Tensor>(logits._base());
        if (flattens(logits, base, 1) && base.requires_grad() == logits.requires_grad() && base.scalar_type() == logits.scalar_type()) {
            wide = base;
            auto const leading = base.sizes().slice(0, static_cast<std::size_t>(base.dim() - 1));
            Tensor const target_base = target.is_view() ? Tensor(target._base()) : target;
            labels = flattens(target, target_base, 0) && target_base.sizes() == leading ? target_base : target.view(leading);
        }
    }
    return cross_entropy_function::apply(wide, labels, ignore_index.guard_int(__FILE__, __LINE__),
                                         std::string(reduction == at::Reduction::Mean ? "mean" : "sum"));
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, m) {
    m.impl("linear", linear_whole);
    m.impl("matmul", matmul_whole);
    m.impl("addmm", addmm_whole);
    m.impl("scaled_dot_product_attention", sdpa_whole);
    m.impl("cross_entropy_loss", cross_entropy_whole);
}

}  // namespace

struct whole_ops_guard::state {
    c10::impl::IncludeDispatchKeyGuard include{whole_ops_key};
};
whole_ops_guard::whole_ops_guard() : state_(std::make_unique<state>()) {}
whole_ops_guard::~whole_ops_guard() = default;
bool whole_ops_guard::active() {
    return c10::impl::tls_is_dispatch_key_included(whole_ops_key) && !c10::impl::tls_is_dispatch_key_excluded(whole_ops_key);
}

}  // namespace cantle::libtorch
