// SPDX-License-Identifier: BSL-1.0
#pragma once
// Softmax and its kin along one dim, which stays whole; all other dims pass (case A31). The backward is linear in the gradient.
#include <cantle/rules/reduction.hpp>

namespace cantle::rules {

inline void softmax_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d < q.operands[0].rank(); ++d)
        if (!detail::is_dim(q, d)) rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d)});
    add_partials(q, rows, {"grad_output"}, sums);
}

inline void add_softmax_rules(rule_registry& r) {
    r.add_all({"aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax", "aten::_softmax_backward_data",
               "aten::_log_softmax_backward_data"},
              softmax_rule);
}

}  // namespace cantle::rules
