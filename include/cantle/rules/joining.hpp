// SPDX-License-Identifier: BSL-1.0
#pragma once
// cat and stack. Cuts of the dims that are not joined pass; along the joined dim local results are no concatenation (case A53). Partial
// passes where all operands are Partial of that kind.
#include <cantle/rules/moving.hpp>
#include <cantle/rules/partial_kinds.hpp>

namespace cantle::rules {

namespace detail {
/// All operands Partial of one kind, where each keeps it in the type that the joined tensor gets (case E5).
inline void add_joined_partials(op_query const& q, row_list& rows) {
    kind_set kinds = all_kinds;
    for (auto const& t : q.operands)
        if (t.type != q.outputs[0].type) kinds = carried(kinds, t.type, q.outputs[0].type);
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        if (kinds & kind_bit(kind))
            rows.add(std::vector<placement>(q.operands.size(), placement::partial(kind)), {placement::partial(kind)});
}
}  // namespace detail

/// cat(tensors, dim). An operand of shape [0] beside tensors of higher rank is skipped by the op and stays whole.
inline void cat_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.outputs[0].rank();
    auto const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), rank);
    for (std::size_t d = 0; d < rank; ++d) {
        if (d == dim && q.operands.size() > 1) continue;
        std::vector<placement> in;
        for (auto const& t : q.operands) in.push_back(t.rank() == rank ? placement::shard(d) : placement::replicate());
        rows.add(std::move(in), {placement::shard(d)});
    }
    detail::add_joined_partials(q, rows);
}

/// stack(tensors, dim): a new dim of as many as there are operands.
inline void stack_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    auto const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), rank + 1);
    for (std::size_t d = 0; d < rank; ++d)
        rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d < dim ? d : d + 1)});
    detail::add_joined_partials(q, rows);
}

inline void add_joining_rules(rule_registry& r) {
    r.add("aten::cat", cat_rule);
    r.add("aten::stack", stack_rule);
}

}  // namespace cantle::rules
