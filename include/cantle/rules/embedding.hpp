// SPDX-License-Identifier: BSL-1.0
#pragma once
// Embedding and its backward. A vocabulary-sharded table zeroes foreign rows locally (the offset belongs to the op instance, case A47) and
// yields Partial(sum); the backward of a vocabulary-sharded table keeps the rank's own rows.
#include <cantle/rules/local_steps.hpp>
#include <cantle/rules/moving.hpp>

namespace cantle::rules {

/// embedding(weight[V, D], indices[...], padding_idx, ...) -> [..., D].
inline void embedding_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const indices = q.operands[1].rank();
    for (std::size_t d = 0; d < indices; ++d) rows.add({placement::replicate(), placement::shard(d)}, {placement::shard(d)});
    rows.add({placement::shard(1), placement::replicate()}, {placement::shard(indices)});
    rows.add(axis_row{{placement::shard(0), placement::replicate()}, {placement::partial()}, {}, true});
    detail::add_moved_rows(rows, {0});
}

/// embedding_dense_backward(grad[..., D], indices[...], num_weights, padding_idx, scale_grad_by_freq) -> [V, D]. Linear in grad.
/// scale_grad_by_freq counts indices over the whole batch: then no cut of the indices is sound.
inline void embedding_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const indices = q.operands[1].rank();
    if (!q.operation->get<bool>("scale_grad_by_freq", false))
        for (std::size_t d = 0; d < indices; ++d) rows.add({placement::shard(d), placement::shard(d)}, {placement::partial()});
    rows.add({placement::shard(indices), placement::replicate()}, {placement::shard(1)});
    rows.add(axis_row{{placement::replicate(), placement::replicate()}, {placement::shard(0)}, {}, true});
    detail::add_linear_rows(rows, {0});
}

/// A table cut along its rows: foreign rows give zero.
inline void embedding_local(local_view const& v, local_program& p) {
    auto const& weight = *v.operand("weight");
    if (!weight.is_cut(0)) return run_as_is(v, p);
    need_interval(v, weight, 0);
    auto const w = *v.operation->slot("weight"), i = *v.operation->slot("indices");
    auto const own = made_local(p, i, weight.offset(0), weight.sizes()[0]);
    op call = *v.operation;
    set_argument(call, "padding_idx", std::int64_t{-1});  // has no part in forward, and need not be a row of this rank
    std::vector<local_value> in(2);
    in[w] = w;
    in[i] = own.local;
    p.returns({filled(p, p.call(std::move(call), std::move(in)), trailing_dim(p, own.foreign), 0.0)});
}

/// The gradient of a table cut along its rows: foreign tokens go to one row more, which is cut off. They must not go to an own row with
/// gradient zero, because scale_grad_by_freq would count them there.
inline void embedding_backward_local(local_view const& v, local_program& p) {
    auto const& weight = v.outputs[0];
    if (!weight.is_cut(0)) return run_as_is(v, p);
    need_interval(v, weight, 0);
    auto const first = weight.offset(0), rows = weight.sizes()[0];
    auto const padding = v.operation->get<std::int64_t>("padding_idx", -1);
    auto const g = *v.operation->slot("grad_output"), i = *v.operation->slot("indices");
    auto const own = made_local(p, i, first, rows, rows);
    op call = *v.operation;
    set_argument(call, "num_weights", rows + 1);
    set_argument(call, "padding_idx", padding >= first && padding < first + rows ? padding - first : std::int64_t{-1});
    std::vector<local_value> in(2);
    in[g] = g;
    in[i] = own.local;
    auto const all = p.call(std::move(call), std::move(in));
    p.returns({step(p, "aten::slice.Tensor", {{"self", all}, {"dim", 0}, {"start", 0}, {"end", rows}, {"step", 1}})});
}

inline void add_embedding_rules(rule_registry& r) {
    r.add("aten::embedding", embedding_rule, embedding_local);
    r.add("aten::embedding_dense_backward", embedding_backward_rule, embedding_backward_local);
}

}  // namespace cantle::rules
