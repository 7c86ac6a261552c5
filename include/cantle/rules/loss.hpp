// SPDX-License-Identifier: BSL-1.0
#pragma once
// Cross-entropy as one op over logits [..., V] and target [...]: outputs loss, logsumexp [...] and total_weight (the number of targets that
// count). The mean divides by the global count, so a cut of the tokens sums the counts first and leaves Partial(sum) (cases A25, A26).
// A cut of the vocabulary is exact with three reductions over [...]: of the maximum, of the sum of exponentials, of the target's logit.
#include <cantle/rules/elementwise_loss.hpp>
#include <cantle/rules/local_steps.hpp>
#include <cantle/rules/nll_loss.hpp>

namespace cantle::rules {

/// cantle::cross_entropy(logits, target, ignore_index, reduction) -> (loss, logsumexp, total_weight). With reduction "none" the loss is
/// [...] and lies like the tokens.
inline void cross_entropy_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const R = placement::replicate();
    std::size_t const last = q.operands[0].rank() - 1;
    inner_collective const count{collective_kind::all_reduce, reduction::sum, true, 2};
    bool const per_token = q.outputs[0].rank() > 0;
    for (std::size_t d = 0; d < last; ++d) {
        auto const S = placement::shard(d);
        rows.add(axis_row{{S, S}, {per_token ? S : placement::partial(), S, R}, {count}});
    }
    inner_collective const maximum{collective_kind::all_reduce, reduction::max, true, 1},
        sum{collective_kind::all_reduce, reduction::sum, true, 1};
    rows.add(axis_row{{placement::shard(last), R}, {R, R, R}, {maximum, sum, sum}, true});
}

/// cantle::cross_entropy_backward(grad, logits, target, logsumexp, total_weight, ...) -> grad_logits. Linear in grad.
inline void cross_entropy_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const R = placement::replicate();
    std::size_t const last = q.operands[1].rank() - 1;
    for (std::size_t d = 0; d < last; ++d) {
        auto const S = placement::shard(d);
        rows.add({q.operands[0].rank() > 0 ? S : R, S, S, S, R}, {S});
    }
    rows.add(axis_row{{R, placement::shard(last), R, R, R}, {placement::shard(last)}, {}, true});
    affine_rows(q, rows).jointly({0});
}

namespace detail {
/// Tokens cut: the mean divides by the count of all ranks, whether or not a rank has any target that counts.
inline void cross_entropy_over_tokens(local_view const& v, local_program& p, std::uint32_t token_axes) {
    bool const mean = v.operation->get<std::string>("reduction", "mean") == "mean";
    op call = *v.operation;
    if (mean) set_argument(call, "reduction", std::string("sum"));
    auto const loss = p.call(std::move(call), {0, 1}, 3), logsumexp = loss + 1;
    auto const count = p.all_reduce(loss + 2, token_axes, reduction::sum);
    if (!mean) return p.returns({loss, logsumexp, count});
    auto const divisor = in_type(p, count, v.outputs[2].global.type, v.outputs[0].global.type);
    p.returns({step(p, "aten::div.Tensor", {{"self", loss}, {"other", divisor}}), logsumexp, count});
}

/// Vocabulary cut (tokens perhaps too): three reductions over [...], in the type of the statistics.
inline void cross_entropy_over_vocabulary(local_view const& v, local_program& p, std::uint32_t token_axes, std::uint32_t vocabulary_axes) {
    auto const how = v.operation->get<std::string>("reduction", "mean");
    auto const& logits = v.operands[0];
    auto const type = v.outputs[1].global.type;
    auto const last = logits.global.rank() - 1;
    need_interval(v, logits, last);
    shape const over{-1};
    auto const x = in_type(p, 0, logits.global.type, type);
    auto const own = made_local(p, 1, logits.offset(last), logits.sizes()[last]);

    auto const local_maximum = step(p, "aten::amax", {{"self", x}, {"dim", over}, {"keepdim", true}});
    auto const maximum = p.all_reduce(local_maximum, vocabulary_axes, reduction::max);
    auto const shifted = step(p, "aten::sub.Tensor", {{"self", x}, {"other", maximum}});
    auto const powers = step(p, "aten::exp", {{"self", shifted}});
    auto const local_sum = step(p, "aten::sum.dim_IntList", {{"self", powers}, {"dim", over}, {"keepdim", true}});
    auto const sum = p.all_reduce(local_sum, vocabulary_axes, reduction::sum);
    auto const found = step(p, "aten::gather", {{"self", x}, {"dim", -1}, {"index", trailing_dim(p, own.local)}});
    auto const picked = p.all_reduce(filled(p, found, trailing_dim(p, own.foreign), 0.0), vocabulary_axes, reduction::sum);

    auto const log = step(p, "aten::log", {{"self", sum}});
    auto const kept = step(p, "aten::add.Tensor", {{"self", maximum}, {"other", log}});
    auto const logsumexp = step(p, "aten::squeeze.dim", {{"self", kept}, {"dim", -1}});
    auto const kept_loss = step(p, "aten::sub.Tensor", {{"self", kept}, {"other", picked}});
    auto const ignore_index = v.operation->get<std::int64_t>("ignore_index", -100);
    auto const ignored = step(p, "aten::eq.Scalar", {{"self", local_value{1}}, {"other", ignore_index}});
    auto loss = filled(p, step(p, "aten::squeeze.dim", {{"self", kept_loss}, {"dim", -1}}), ignored, 0.0);
    // The op gives no count where nothing is reduced.
    auto const counts = step(p, how == "none" ? "aten::zeros_like" : "aten::logical_not", {{"self", ignored}});
    auto const count = p.all_reduce(step(p, "aten::sum", {{"self", counts}, {"dtype", type}}), token_axes, reduction::sum);
    if (how != "none") loss = step(p, "aten::sum", {{"self", loss}});
    if (how == "mean") loss = step(p, "aten::div.Tensor", {{"self", loss}, {"other", count}});
    p.returns({in_type(p, loss, type, v.outputs[0].global.type), logsumexp, count});
}
}  // namespace detail

inline void cross_entropy_local(local_view const& v, local_program& p) {
    auto const& logits = v.operands[0];
    auto const last = logits.global.rank() - 1;
    std::uint32_t token_axes = 0;
    for (std::size_t d = 0; d < last; ++d) token_axes |= logits.cut_axes(d);
    if (logits.is_cut(last)) detail::cross_entropy_over_vocabulary(v, p, token_axes, logits.cut_axes(last));
    else if (token_axes) detail::cross_entropy_over_tokens(v, p, token_axes);
    else run_as_is(v, p);
}

/// The gradient of a rank's share of the vocabulary: softmax from the global logsumexp, less 1 at the target if it is the rank's own.
inline void cross_entropy_backward_local(local_view const& v, local_program& p) {
    auto const& logits = v.operands[1];
    auto const last = logits.global.rank() - 1;
    if (!logits.is_cut(last)) return run_as_is(v, p);
    need_interval(v, logits, last);
    enum : local_value { grad_in, logits_in, target_in, logsumexp_in, total_in };
    auto const type = v.operands[3].global.type, given = logits.global.type;
    auto const x = in_type(p, logits_in, given, type);
    auto const own = made_local(p, target_in, logits.offset(last), logits.sizes()[last]);
    auto const shifted = step(p, "aten::sub.Tensor", {{"self", x}, {"other", trailing_dim(p, logsumexp_in)}});
    auto const softmax = step(p, "aten::exp", {{"self", shifted}});
    auto const hit = step(p, "aten::logical_not", {{"self", own.foreign}});
    auto const less = step(p, "aten::neg", {{"self", in_type(p, hit, dtype::boolean, type)}});
    auto const difference = step(p, "aten::scatter_add", {{"self", softmax}, {"dim", -1}, {"index", trailing_dim(p, own.local)},
                                                          {"src", trailing_dim(p, less)}});
    auto scale = in_type(p, grad_in, v.operands[0].global.type, type);
    if (v.operation->get<std::string>("reduction", "mean") == "mean")
        scale = step(p, "aten::div.Tensor", {{"self", scale}, {"other", local_value{total_in}}});
    auto const scaled = step(p, "aten::mul.Tensor", {{"self", difference}, {"other", trailing_dim(p, scale)}});
    auto const ignored = step(p, "aten::eq.Scalar", {{"self", local_value{target_in}},
                                                     {"other", v.operation->get<std::int64_t>("ignore_index", -100)}});
    p.returns({in_type(p, filled(p, scaled, trailing_dim(p, ignored), 0.0), type, given)});
}

inline void add_loss_rules(rule_registry& r) {
    r.add("cantle::cross_entropy", cross_entropy_rule, cross_entropy_local);
    r.add("cantle::cross_entropy_backward", cross_entropy_backward_rule, cross_entropy_backward_local);
    add_nll_loss_rules(r);
    add_elementwise_loss_rules(r);
}

}  // namespace cantle::rules
