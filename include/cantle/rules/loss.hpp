// SPDX-License-Identifier: BSL-1.0
#pragma once
// Cross-entropy as one op over logits [..., V] and target [...]: outputs loss, logsumexp [...] and total_weight (the number of targets that
// count). The mean divides by the global count, so a cut of the tokens sums the counts first and leaves Partial(sum) (cases A25, A26).
// A cut of the vocabulary is exact with three reductions over [...]: of the maximum, of the sum of exponentials, of the target's logit.
#include <cantle/rules/registry.hpp>

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
    rows.add({placement::partial(), R, R, R, R}, {placement::partial()});
}

inline void add_loss_rules(rule_registry& r) {
    r.add("cantle::cross_entropy", cross_entropy_rule);
    r.add("cantle::cross_entropy_backward", cross_entropy_backward_rule);
}

}  // namespace cantle::rules
