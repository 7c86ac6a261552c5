// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that make tensors. Constant fills can be cut along any dim: every rank makes its own share (case A52). arange and scalar_tensor stay
// whole: their slices are free. Random ops are cut like elementwise ones; execution keys them by global index.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

inline void fill_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d < q.outputs[0].rank(); ++d)
        rows.add(std::vector<placement>(q.operands.size()), {placement::shard(d)});
}
inline void whole_rule(op_query const&, std::int64_t, row_list&) {}

inline void add_factory_rules(rule_registry& r) {
    r.add_all(
        {"aten::full", "aten::zeros", "aten::ones", "aten::empty.memory_format", "aten::new_zeros", "aten::new_ones", "aten::new_full"},
        fill_rule);
    r.add_all({"aten::scalar_tensor", "aten::arange", "aten::arange.start", "aten::arange.start_step"}, whole_rule);
    r.add("aten::native_dropout", pointwise_rule());
    // grad * mask * scale: linear in grad
    r.add("aten::native_dropout_backward", pointwise_rule({.linear = true, .linear_in = {0}, .multilinear_in = {}}));
}

}  // namespace cantle::rules
