// SPDX-License-Identifier: BSL-1.0
#pragma once
// Losses that compare element by element (mse, l1, smooth_l1, huber, binary cross-entropy, kl_div) with reduction none (0), mean (1) or
// sum (2), and their backward. A cut of the elements leaves a share, an average of means, or a sum.
#include <cantle/rules/affine.hpp>
#include <cantle/rules/local_steps.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cantle::rules {

/// Operands in which the loss (or its gradient) is affine: groups of names, each affine together, and linear without a constant.
struct loss_algebra {
    std::vector<std::vector<std::string>> linear{}, affine{};
};

namespace detail {
inline void add_loss_partials(op_query const& q, loss_algebra const& algebra, row_list& rows) {
    affine_rows partial(q, rows);
    auto const add = [&](std::vector<std::string> const& names, bool linear) {
        std::vector<std::optional<std::uint32_t>> slots;
        for (auto const& name : names) slots.push_back(q.operation->slot(name));
        partial.jointly(slots, {}, linear);
    };
    for (auto const& names : algebra.linear) add(names, true);
    for (auto const& names : algebra.affine) add(names, false);
}
inline std::int64_t reduction_literal(op const& o) { return o.get<std::int64_t>("reduction", 1); }
}  // namespace detail

/// (self, target, weights..., reduction) -> loss. Operands broadcast.
inline axis_rule elementwise_loss_rule(loss_algebra algebra = {}) {
    return [algebra](op_query const& q, std::int64_t, row_list& rows) {
        shape full;
        for (auto const& t : q.operands) {
            if (t.rank() > full.size()) full.insert(full.begin(), t.rank() - full.size(), 1);
            for (std::size_t d = 0; d < t.rank(); ++d) {
                auto& extent = full[full.size() - t.rank() + d];
                if (t.sizes[d] != 1) extent = t.sizes[d];
            }
        }
        auto const how = detail::reduction_literal(*q.operation);
        for (std::size_t d = 0; d < full.size(); ++d) {
            std::vector<placement> in;
            for (auto const& t : q.operands) in.push_back(broadcast_shard(t.sizes, full, d));
            rows.add(std::move(in), {how == 0   ? placement::shard(d)
                                     : how == 1 ? placement::partial(reduction::avg)
                                                : placement::partial()});
        }
        detail::add_loss_partials(q, algebra, rows);
    };
}

/// (grad_output, self, target, weights..., reduction) -> grad_self.
inline axis_rule elementwise_loss_backward_rule(loss_algebra algebra) {
    algebra.linear.push_back({"grad_output"});
    return [algebra](op_query const& q, std::int64_t, row_list& rows) {
        auto const& full = q.outputs[0].sizes;
        for (std::size_t d = 0; d < full.size(); ++d) {
            std::vector<placement> in;
            for (auto const& t : q.operands) in.push_back(broadcast_shard(t.sizes, full, d));
            rows.add(std::move(in), {placement::shard(d)});
        }
        detail::add_loss_partials(q, algebra, rows);
    };
}
/// The op divides a mean's gradient by the elements it sees: on a share it is a sum's gradient, divided by all elements.
inline void elementwise_loss_backward_local(local_view const& v, local_program& p) {
    auto const& self = *v.operand("self");
    if (detail::reduction_literal(*v.operation) != 1 || self.sizes() == self.global.sizes) return run_as_is(v, p);
    op o = *v.operation;
    set_argument(o, "reduction", std::int64_t{2});
    std::vector<local_value> in(v.operands.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<local_value>(i);
    auto const grad = *o.slot("grad_output");
    in[grad] = step(p, "aten::div.Scalar", {{"self", local_value{grad}}, {"other", self.global.elements()}});
    p.returns({p.call(std::move(o), std::move(in))});
}

inline void add_elementwise_loss_rules(rule_registry& r) {
    r.add_all({"aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss"}, elementwise_loss_rule());
    // t log s + (1 - t) log(1 - s), times a weight; with logits also a weight of the positive term. Affine in t, but the kernel of the
    // first refuses targets outside of [0, 1], and partial ones may lie anywhere: no row of theirs, in its backward neither.
    r.add("aten::binary_cross_entropy", elementwise_loss_rule({{{"weight"}}, {}}));
    r.add("aten::binary_cross_entropy_with_logits", elementwise_loss_rule({{{"weight"}}, {{"target"}, {"pos_weight"}}}));
    r.add("aten::kl_div", elementwise_loss_rule({{}, {{"self"}}}));  // t log t - t s
    auto const backward = [&r](char const* name, loss_algebra algebra) {
        r.add(name, elementwise_loss_backward_rule(std::move(algebra)), elementwise_loss_backward_local);
    };
    backward("aten::mse_loss_backward", {{{"self", "target"}}, {}});
    backward("aten::smooth_l1_loss_backward", {});
    backward("aten::huber_loss_backward", {});
    backward("aten::binary_cross_entropy_backward", {{{"weight"}}, {}});
}

}  // namespace cantle::rules
