// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reductions over dims: a shard of a kept dim passes, a shard of a reduced dim gives the reduction's own Partial kind.
// sum -> P(sum), mean -> P(avg) (shards are even), amax -> P(max), amin -> P(min). Index results (max.dim, argmax) never do (cases A22,
// A23).
#include <cantle/rules/pointwise.hpp>
#include <cantle/rules/view.hpp>

#include <algorithm>

namespace cantle::rules {

namespace detail {
/// The reduced dims: "dim" as a list, as an int, or absent (all).
inline std::vector<bool> reduced_dims(op_query const& q) {
    std::size_t const rank = q.operands[0].rank();
    std::vector<bool> reduced(rank, false);
    if (rank == 0) return reduced;  // dim 0 or -1 of a scalar names nothing that could be cut
    auto const list = q.operation->get<std::vector<std::int64_t>>("dim", {});
    auto const* one = q.operation->find("dim");
    if (one && std::holds_alternative<std::int64_t>(*one)) reduced[absolute_dim(std::get<std::int64_t>(*one), rank)] = true;
    else if (list.empty()) reduced.assign(rank, true);
    for (auto d : list) reduced[absolute_dim(d, rank)] = true;
    return reduced;
}
}  // namespace detail

/// `kind`: what a cut of a reduced dim leaves; `linear`: Partial(sum) passes.
inline axis_rule reduction_rule(reduction kind, bool linear) {
    return [kind, linear](op_query const& q, std::int64_t, row_list& rows) {
        auto const reduced = detail::reduced_dims(q);
        bool const keep = q.operation->get<bool>("keepdim", false);
        std::size_t out = 0;
        for (std::size_t d = 0; d < reduced.size(); ++d) {
            rows.add({placement::shard(d)}, {reduced[d] ? placement::partial(kind) : placement::shard(out)});
            if (!reduced[d] || keep) ++out;
        }
        // The same kind of Partial passes a max or min; sum and mean pass sum, and avg alike.
        if (linear && carries_sums(q.operands[0].type, q.outputs[0].type)) {
            rows.add({placement::partial()}, {placement::partial()});
            rows.add({placement::partial(reduction::avg)}, {placement::partial(reduction::avg)});
        }
        if (!linear) rows.add({placement::partial(kind)}, {placement::partial(kind)});
    };
}

/// Softmax and its kin along one dim: all other dims pass (case A31). The backward takes grad and output alike and is linear in neither
/// alone together with the other, but in grad (operand 0).
inline axis_rule softmax_rule(bool backward) {
    return [backward](op_query const& q, std::int64_t, row_list& rows) {
        std::size_t const rank = q.operands[0].rank();
        std::size_t const dim = rank ? detail::absolute_dim(q.operation->get<std::int64_t>("dim", -1), rank) : 0;
        for (std::size_t d = 0; d < rank; ++d)
            if (d != dim) rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d)});
        if (backward && carries_sums(q.operands[0].type, q.outputs[0].type))
            rows.add({placement::partial(), placement::replicate()}, {placement::partial()});
    };
}

inline void add_reduction_rules(rule_registry& r) {
    r.add_all({"aten::sum.dim_IntList", "aten::sum"}, reduction_rule(reduction::sum, true));
    r.add_all({"aten::mean.dim", "aten::mean"}, reduction_rule(reduction::avg, true));
    r.add("aten::amax", reduction_rule(reduction::max, false));
    r.add("aten::amin", reduction_rule(reduction::min, false));
    r.add_all({"aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax"}, softmax_rule(false));
    r.add_all({"aten::_softmax_backward_data", "aten::_log_softmax_backward_data"}, softmax_rule(true));
}

}  // namespace cantle::rules
