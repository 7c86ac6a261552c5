// SPDX-License-Identifier: BSL-1.0
#pragma once
// Fused attention over query [B, H, S, E], key and value [B, Hk, T, E], forward (out, logsumexp, ...) and backward, under all the names
// that kernels have. Cuts of batch and heads (case A40). With grouped queries (H a multiple of Hk) both head counts must divide:
// contiguous cuts then keep every query head with its key head; a single key head serves all query heads and stays whole. Rows of the
// query do not see each other, so without causal mask and dropout the query sequence may be cut too, with keys and values whole; the
// gradients of key and value are then Partial. Never a cut of the key sequence: the softmax runs over it.
#include <cantle/rules/affine.hpp>

#include <initializer_list>
#include <string_view>

namespace cantle::rules {

namespace detail {
enum class attention_cut : std::uint8_t { batch, heads, queries };

/// The operands of an attention op by role; names differ between kernels.
struct attention_roles {
    std::optional<std::uint32_t> query, key, value, mask, grad, out, logsumexp;
    explicit attention_roles(op_query const& q) {
        auto const find = [&q](std::initializer_list<std::string_view> names) -> std::optional<std::uint32_t> {
            for (auto name : names)
                if (auto const s = q.operation->slot(name); s && q.operands[*s].defined) return s;
            return std::nullopt;
        };
        query = find({"query"}), key = find({"key"}), value = find({"value"});
        mask = find({"attn_mask", "attn_bias"});
        grad = find({"grad_out", "grad_out_"}), out = find({"out"}), logsumexp = find({"logsumexp"});
    }
};

/// A mask [B|1, H|1, S|1, T], or of lower rank, broadcasts.
inline placement mask_placement(op_query const& q, attention_roles const& a, std::size_t d) {
    auto const& mask = q.operands[*a.mask].sizes;
    shape full = q.operands[*a.query].sizes;
    full[3] = q.operands[*a.key].sizes[2];
    return mask.size() > 4 ? placement::replicate() : broadcast_shard(mask, full, d);
}

/// "Efficient" attention pads the rows of its logsumexp to 32 queries: there only cuts into multiples of 32 keep their shares.
inline bool logsumexp_follows(op const& o, tensor_meta const& logsumexp, std::int64_t queries, std::int64_t n) {
    if (!logsumexp.defined || logsumexp.rank() < 3 || logsumexp.sizes[2] == 0) return true;  // not asked for
    bool const padded = o.name.find("efficient") != std::string::npos;
    return logsumexp.sizes[2] == queries && (!padded || queries / n % 32 == 0);
}

inline void add_attention_row(op_query const& q, attention_roles const& a, attention_cut cut, row_list& rows) {
    auto const R = placement::replicate(), P = placement::partial();
    auto const d = static_cast<std::size_t>(cut);
    auto const S = placement::shard(d);
    bool const one_key_head = cut == attention_cut::heads && q.operands[*a.key].sizes[1] == 1 && q.operands[*a.query].sizes[1] > 1;
    bool const whole_keys = cut == attention_cut::queries || one_key_head;
    axis_row row{std::vector<placement>(q.operands.size()), std::vector<placement>(q.outputs.size())};
    for (auto s : {a.query, a.grad, a.out})
        if (s) row.operands[*s] = S;
    for (auto s : {a.key, a.value}) row.operands[*s] = whole_keys ? R : S;
    auto const lies = [&](tensor_meta const& t) { return t.defined && d < t.rank() && t.sizes[d] != 0 ? S : R; };
    if (a.logsumexp) row.operands[*a.logsumexp] = lies(q.operands[*a.logsumexp]);
    if (a.mask) row.operands[*a.mask] = mask_placement(q, a, d);
    std::size_t const of_rows = a.grad ? 1 : 2;  // outputs that lie like the query: its gradient, or out and logsumexp
    for (std::size_t o = 0; o < q.outputs.size(); ++o) {
        if (!q.outputs[o].defined) continue;
        if (o < of_rows) row.outputs[o] = lies(q.outputs[o]);
        else if (a.grad && o < 3) row.outputs[o] = whole_keys ? P : S;
        else if (a.grad && a.mask) row.outputs[o] = row.operands[*a.mask].is_shard() ? row.operands[*a.mask] : P;
    }
    rows.add(std::move(row));
}
}  // namespace detail

inline void attention_rule(op_query const& q, std::int64_t n, row_list& rows) {
    detail::attention_roles const a(q);
    if (!a.query || !a.key || !a.value || q.operands[*a.query].rank() != 4) return;
    using detail::attention_cut;
    detail::add_attention_row(q, a, attention_cut::batch, rows);
    detail::add_attention_row(q, a, attention_cut::heads, rows);
    // With dropout the ranks draw as they like: no rows that would need equal masks on different ranks.
    if (q.operation->get<double>("dropout_p", 0.0) != 0.0) return;
    auto const queries = q.operands[*a.query].sizes[2];
    bool const follows = a.logsumexp ? detail::logsumexp_follows(*q.operation, q.operands[*a.logsumexp], queries, n)
                                     : q.outputs.size() < 2 || detail::logsumexp_follows(*q.operation, q.outputs[1], queries, n);
    if (!q.operation->get<bool>("is_causal", false) && follows) detail::add_attention_row(q, a, attention_cut::queries, rows);
    affine_rows partial(q, rows);
    if (!a.grad) {
        partial.jointly({a.value}, {true});  // out is a mean of values; the logsumexp does not see them
        return;
    }
    partial.jointly({a.grad});
    // The gradient of the scores is P (grad value^T - grad . out): linear in value and out together. That of the value sees neither.
    partial.jointly({a.value, a.out}, {true, true, false, true});
}

inline std::vector<std::string> attention_op_names() {
    std::vector<std::string> names{"cantle::sdpa", "cantle::sdpa_backward"};
    for (auto kernel : {"flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
                        "fused_attention_overrideable"})
        for (auto direction : {"", "_backward"}) names.push_back("aten::_scaled_dot_product_" + std::string(kernel) + direction);
    return names;
}

inline void add_attention_rules(rule_registry& r) { r.add_all(attention_op_names(), attention_rule); }

}  // namespace cantle::rules
