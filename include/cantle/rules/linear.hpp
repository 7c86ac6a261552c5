// SPDX-License-Identifier: BSL-1.0
#pragma once
// Matrix products: y[..., N] = x[..., K] w[N, K]^T whole over the unflattened dims (case E1), its two gradients, and mm, bmm.
// Every one is bilinear: a shard of a free dim passes, a shard of the contracted dim on both sides gives Partial(sum), and Partial(sum) on
// one side passes while the other is Replicate.
#include <cantle/rules/registry.hpp>

namespace cantle::rules {

namespace detail {
inline void add_bilinear_partial(row_list& rows) {
    rows.add({placement::partial(), placement::replicate()}, {placement::partial()});
    rows.add({placement::replicate(), placement::partial()}, {placement::partial()});
}
}  // namespace detail

/// aten::linear(input[..., K], weight[N, K]) -> [..., N]. A bias operand is not canonical and takes no part in Partial rows.
inline void linear_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const last = q.operands[0].rank() - 1;
    bool const bias = q.operands.size() == 3;
    auto const add = [&](placement x, placement w, placement b, placement y) {
        bias ? rows.add({x, w, b}, {y}) : rows.add({x, w}, {y});
    };
    auto const R = placement::replicate();
    for (std::size_t d = 0; d < last; ++d) add(placement::shard(d), R, R, placement::shard(d));
    add(R, placement::shard(0), placement::shard(0), placement::shard(last));
    if (bias) return;
    add(placement::shard(last), placement::shard(1), R, placement::partial());
    detail::add_bilinear_partial(rows);
}

/// cantle::linear_grad_input(grad[..., N], weight[N, K]) -> [..., K].
inline void linear_grad_input_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const last = q.operands[0].rank() - 1;
    for (std::size_t d = 0; d < last; ++d) rows.add({placement::shard(d), placement::replicate()}, {placement::shard(d)});
    rows.add({placement::replicate(), placement::shard(1)}, {placement::shard(last)});
    rows.add({placement::shard(last), placement::shard(0)}, {placement::partial()});
    detail::add_bilinear_partial(rows);
}

/// cantle::linear_grad_weight(grad[..., N], input[..., K]) -> [N, K].
inline void linear_grad_weight_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const last = q.operands[0].rank() - 1;
    for (std::size_t d = 0; d < last; ++d) rows.add({placement::shard(d), placement::shard(d)}, {placement::partial()});
    rows.add({placement::shard(last), placement::replicate()}, {placement::shard(0)});
    rows.add({placement::replicate(), placement::shard(last)}, {placement::shard(1)});
    detail::add_bilinear_partial(rows);
}

/// mm(a[M, K], b[K, N]) and bmm(a[B, M, K], b[B, K, N]).
inline void matmul_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const r = q.operands[0].rank();
    for (std::size_t d = 0; d + 2 < r; ++d) rows.add({placement::shard(d), placement::shard(d)}, {placement::shard(d)});
    rows.add({placement::shard(r - 2), placement::replicate()}, {placement::shard(r - 2)});
    rows.add({placement::replicate(), placement::shard(r - 1)}, {placement::shard(r - 1)});
    rows.add({placement::shard(r - 1), placement::shard(r - 2)}, {placement::partial()});
    detail::add_bilinear_partial(rows);
}

inline void add_linear_rules(rule_registry& r) {
    r.add("aten::linear", linear_rule);
    r.add("cantle::linear_grad_input", linear_grad_input_rule);
    r.add("cantle::linear_grad_weight", linear_grad_weight_rule);
    r.add_all({"aten::mm", "aten::bmm"}, matmul_rule);
}

}  // namespace cantle::rules
