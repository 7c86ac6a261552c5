// SPDX-License-Identifier: BSL-1.0
#pragma once
// Fused attention over query [B, H, S, E], key and value [B, Hk, T, E]: cuts of batch and heads only (case A40). With grouped queries
// (H a multiple of Hk) both head counts must divide; contiguous cuts then keep every query head with its key head.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

namespace detail {
/// One operand's placement under a cut of batch (0) or heads (1). A mask [B|1, H|1, S, T] (or of lower rank) broadcasts.
inline placement attention_operand(op_query const& q, std::size_t i, std::optional<std::uint32_t> mask, std::size_t d) {
    if (mask && *mask == i) {
        shape full = q.operands[0].sizes;
        full[3] = q.operands[i].sizes.back();
        if (q.operands[i].rank() > 4) return placement::replicate();
        return broadcast_shard(q.operands[i].sizes, full, d);
    }
    return placement::shard(d);
}
}  // namespace detail

inline void sdpa_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const mask = q.operation->slot("attn_mask");
    for (std::size_t d = 0; d < 2; ++d) {
        axis_row row{{}, std::vector<placement>(q.outputs.size(), placement::shard(d))};
        for (std::size_t i = 0; i < q.operands.size(); ++i) row.operands.push_back(detail::attention_operand(q, i, mask, d));
        rows.add(std::move(row));
    }
}

/// Operands grad_out, query, key, value, out, logsumexp (and mask); linear in grad_out.
inline void sdpa_backward_rule(op_query const& q, std::int64_t n, row_list& rows) {
    sdpa_rule(q, n, rows);
    std::vector<placement> in(q.operands.size());
    if (auto const g = q.operation->slot("grad_out")) {
        in[*g] = placement::partial();
        rows.add(std::move(in), std::vector<placement>(q.outputs.size(), placement::partial()));
    }
}

inline void add_attention_rules(rule_registry& r) {
    r.add("cantle::sdpa", sdpa_rule);
    r.add("cantle::sdpa_backward", sdpa_backward_rule);
}

}  // namespace cantle::rules
