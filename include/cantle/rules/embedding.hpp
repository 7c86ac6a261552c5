// SPDX-License-Identifier: BSL-1.0
#pragma once
// Embedding and its backward. A vocabulary-sharded table zeroes foreign rows locally (the offset belongs to the op instance, case A47) and
// yields Partial(sum); the backward of a vocabulary-sharded table keeps the rank's own rows.
#include <cantle/rules/registry.hpp>

namespace cantle::rules {

/// embedding(weight[V, D], indices[...], padding_idx, ...) -> [..., D].
inline void embedding_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const indices = q.operands[1].rank();
    for (std::size_t d = 0; d < indices; ++d) rows.add({placement::replicate(), placement::shard(d)}, {placement::shard(d)});
    rows.add({placement::shard(1), placement::replicate()}, {placement::shard(indices)});
    rows.add(axis_row{{placement::shard(0), placement::replicate()}, {placement::partial()}, {}, true});
    rows.add({placement::partial(), placement::replicate()}, {placement::partial()});
}

/// embedding_dense_backward(grad[..., D], indices[...], num_weights, padding_idx, scale_grad_by_freq) -> [V, D]. Linear in grad.
/// scale_grad_by_freq counts indices over the whole batch: then no cut of the indices is sound.
inline void embedding_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const indices = q.operands[1].rank();
    if (!q.operation->get<bool>("scale_grad_by_freq", false))
        for (std::size_t d = 0; d < indices; ++d) rows.add({placement::shard(d), placement::shard(d)}, {placement::partial()});
    rows.add({placement::shard(indices), placement::replicate()}, {placement::shard(1)});
    rows.add(axis_row{{placement::replicate(), placement::replicate()}, {placement::shard(0)}, {}, true});
    rows.add({placement::partial(), placement::replicate()}, {placement::partial()});
}

inline void add_embedding_rules(rule_registry& r) {
    r.add("aten::embedding", embedding_rule);
    r.add("aten::embedding_dense_backward", embedding_backward_rule);
}

}  // namespace cantle::rules
