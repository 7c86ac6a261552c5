// SPDX-License-Identifier: BSL-1.0
#pragma once
// layer_norm, RMS norm and group_norm with their backward ops. What is not normalised over passes; gradients of weight and bias are sums
// over it. Outputs are affine in weight and bias; backward is linear in the gradient, and in the weight as far as the input's gradient
// goes. Undefined outputs of an output mask carry no placement (case A35).
#include <cantle/rules/affine.hpp>

namespace cantle::rules {

namespace detail {
/// Outputs (input's gradient, parameters' gradients...) with that placement where they are defined.
inline std::vector<placement> gradients(op_query const& q, placement of_input, placement of_parameters) {
    std::vector<placement> out(q.outputs.size());
    for (std::size_t o = 0; o < out.size(); ++o)
        if (q.outputs[o].defined) out[o] = o == 0 ? of_input : of_parameters;
    return out;
}
/// All operands Replicate but those.
inline std::vector<placement> only(op_query const& q, std::initializer_list<char const*> names, placement p) {
    std::vector<placement> in(q.operands.size());
    for (auto name : names)
        if (auto const s = q.operation->slot(name)) in[*s] = p;
    return in;
}
inline std::size_t normalised_dims(op_query const& q) {
    return q.operation->get<std::vector<std::int64_t>>("normalized_shape", {}).size();
}
/// y = x^ w + b in output 0: without a weight the first term is a constant to b.
inline void add_weight_and_bias(op_query const& q, row_list& rows) {
    auto const w = q.operation->slot("weight"), b = q.operation->slot("bias");
    affine_rows(q, rows).jointly({w, b}, {true}, w.has_value()).addend(b, {true});
}
/// Linear in the gradient; the input's gradient alone is linear in the weight.
inline void add_backward_partials(op_query const& q, row_list& rows) {
    affine_rows(q, rows).jointly({q.operation->slot("grad_out")}).jointly({q.operation->slot("weight")}, {true});
}
}  // namespace detail

/// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd); _fused_rms_norm has no bias and no mean.
inline void layer_norm_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d + detail::normalised_dims(q) < q.operands[0].rank(); ++d)
        rows.add(detail::only(q, {"input"}, placement::shard(d)), std::vector<placement>(q.outputs.size(), placement::shard(d)));
    detail::add_weight_and_bias(q, rows);
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask) -> (grad_input, grad_weight,
/// grad_bias); _fused_rms_norm_backward without mean and bias.
inline void layer_norm_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d + detail::normalised_dims(q) < q.operands[0].rank(); ++d) {
        auto const S = placement::shard(d);
        rows.add(detail::only(q, {"grad_out", "input", "mean", "rstd"}, S), detail::gradients(q, S, placement::partial()));
    }
    detail::add_backward_partials(q, rows);
}

/// native_group_norm(input [N, C, ...], weight?, bias?, N, C, HxW, group, eps) -> (output, mean [N, group], rstd [N, group]). Channels are
/// cut between groups only: that the groups divide shows in the statistics.
inline void group_norm_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const S0 = placement::shard(0), S1 = placement::shard(1);
    rows.add(detail::only(q, {"input"}, S0), {S0, S0, S0});
    auto in = detail::only(q, {"weight", "bias"}, S0);
    in[0] = S1;
    rows.add(std::move(in), {S1, S1, S1});
    detail::add_weight_and_bias(q, rows);
}

/// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask) -> (grad_input, grad_weight, grad_bias).
inline void group_norm_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const S0 = placement::shard(0), S1 = placement::shard(1);
    rows.add(detail::only(q, {"grad_out", "input", "mean", "rstd"}, S0), detail::gradients(q, S0, placement::partial()));
    auto in = detail::only(q, {"grad_out", "input", "mean", "rstd"}, S1);
    if (auto const w = q.operation->slot("weight")) in[*w] = S0;
    rows.add(std::move(in), detail::gradients(q, S1, S0));
    detail::add_backward_partials(q, rows);
}

/// The literals N, C and group of what the rank holds.
inline void group_norm_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const& input = v.operand("input")->sizes();
    auto const& statistics = v.operand("mean") ? v.operand("mean")->sizes() : v.outputs[1].sizes();
    set_argument(o, "N", input[0]);
    set_argument(o, "C", input[1]);
    set_argument(o, "group", statistics[1]);
    run_whole(std::move(o), v, p);
}

inline void add_normalisation_rules(rule_registry& r) {
    r.add_all({"aten::native_layer_norm", "aten::_fused_rms_norm"}, layer_norm_rule);
    r.add_all({"aten::native_layer_norm_backward", "aten::_fused_rms_norm_backward"}, layer_norm_backward_rule);
    r.add("aten::native_group_norm", group_norm_rule, group_norm_local);
    r.add("aten::native_group_norm_backward", group_norm_backward_rule, group_norm_local);
}

}  // namespace cantle::rules
