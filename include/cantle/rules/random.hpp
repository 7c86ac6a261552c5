// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random ops. The executor draws every number by its global index (a counter-based generator), so that a rank's share is the same numbers
// as on one device: random ops are cut like factories and elementwise ops, and copies agree. Only a permutation needs the whole.
#include <cantle/rules/factory.hpp>

namespace cantle::rules {

/// native_dropout(x, p, train) -> (x * mask * scale, mask): the mask is drawn, so it is the same whatever part of x a rank holds.
inline void dropout_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    for (auto kind : every_kind)
        if (carried(all_kinds, q.operands[0].type, q.outputs[0].type) & kind_bit(kind))
            rows.add({placement::partial(kind)}, {placement::partial(kind), placement::replicate()});
}
/// grad * mask * scale.
inline void dropout_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"grad_output"}, number(*q.operation, "scale", -1) >= 0 ? all_kinds : sums);
}

inline void add_random_rules(rule_registry& r) {
    r.add_all({"aten::rand", "aten::randn", "aten::randint", "aten::randint.low", "aten::normal.float_float"}, fill_rule);
    r.add_all({"aten::rand_like", "aten::randn_like", "aten::randint_like", "aten::randint_like.low_dtype", "aten::bernoulli.p",
               "aten::normal_functional", "aten::uniform", "aten::exponential"},
              like_rule);
    r.add_all({"aten::bernoulli", "aten::bernoulli.Tensor", "aten::normal.Tensor_float", "aten::normal.float_Tensor",
               "aten::normal.Tensor_Tensor"},
              pointwise_rule());  // their operands are probabilities, means and deviations
    r.add("aten::randperm", whole_rule);
    r.add("aten::native_dropout", dropout_rule);
    r.add("aten::native_dropout_backward", dropout_backward_rule);
}

}  // namespace cantle::rules
