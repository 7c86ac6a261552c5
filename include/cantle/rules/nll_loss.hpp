// SPDX-License-Identifier: BSL-1.0
#pragma once
// nll_loss and nll_loss2d: of log-probabilities [N, C] or [C] (2d: [N, C, H, W]) the one at each target, weighted by class, with reduction
// none (0), mean (1) or sum (2). The mean divides by the total weight of all targets: a cut sums that inside and leaves Partial(sum), never
// an average of averages (cases A25, A26). A cut of the classes ignores foreign targets: the rank needs its offset.
#include <cantle/rules/elementwise_loss.hpp>

namespace cantle::rules {

namespace detail {
inline std::size_t class_dim(std::size_t rank) { return rank == 1 ? 0 : 1; }
/// The dim of the targets that is dim d of the log-probabilities.
inline std::size_t target_dim(std::size_t d) { return d == 0 ? 0 : d - 1; }
}  // namespace detail

/// (self, target, weight?, reduction, ignore_index) -> (output, total_weight). Without reduction the total is 0, but for
/// a single target.
inline void nll_loss_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const R = placement::replicate(), P = placement::partial();
    std::size_t const rank = q.operands[0].rank(), classes = detail::class_dim(rank);
    auto const how = detail::reduction_literal(*q.operation);
    bool const weighted = q.operands.size() > 2, totals = how == 2 || (how == 0 && rank == 1);
    auto const add = [&](placement self, placement target, placement weight, placement loss, bool masked) {
        std::vector<placement> in{self, target};
        if (weighted) in.push_back(weight);
        axis_row row{std::move(in), {loss, totals ? P : R}, {}, masked};
        if (how == 1) row.inner = {inner_collective{collective_kind::all_reduce, reduction::sum, true, 1}};
        rows.add(std::move(row));
    };
    for (std::size_t d = 0; d < rank; ++d)
        if (d != classes) {
            auto const T = placement::shard(detail::target_dim(d));
            add(placement::shard(d), T, R, how == 0 ? T : P, false);
        }
    add(placement::shard(classes), R, placement::shard(0), P, true);
    affine_rows partial(q, rows);
    partial.jointly({0}, {true, false});
    if (how != 1) partial.jointly({q.operation->slot("weight")}, {true, totals});
}

/// (grad_output, self, target, weight?, reduction, ignore_index, total_weight) -> grad_self. Linear in the gradient and in the weight.
inline void nll_loss_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.outputs[0].rank(), classes = detail::class_dim(rank);
    auto const how = detail::reduction_literal(*q.operation);
    auto const slot = [&q](char const* name) { return q.operation->slot(name); };
    for (std::size_t d = 0; d < rank; ++d) {
        axis_row row{std::vector<placement>(q.operands.size()), {placement::shard(d)}, {}, d == classes};
        row.operands[*slot("self")] = placement::shard(d);
        if (d == classes) {
            if (auto const w = slot("weight")) row.operands[*w] = placement::shard(0);
        } else {
            row.operands[*slot("target")] = placement::shard(detail::target_dim(d));
            if (how == 0) row.operands[*slot("grad_output")] = placement::shard(detail::target_dim(d));
        }
        rows.add(row);
        // A sum does not read the total weight, which forward leaves Partial.
        if (how == 2) {
            row.operands[*slot("total_weight")] = placement::partial();
            rows.add(std::move(row));
        }
    }
    affine_rows(q, rows).jointly({slot("grad_output")}).jointly({slot("weight")});
}

namespace detail {
/// Targets of the rank's own classes; all others, and those to ignore, become -100.
inline local_value own_targets(local_view const& v, local_program& p, port_view const& self, std::size_t classes) {
    need_interval(v, self, classes);
    auto const target = *v.operation->slot("target");
    auto const own = made_local(p, target, self.offset(classes), self.sizes()[classes], -100);
    auto const ignored = step(p, "aten::eq.Scalar", {{"self", local_value{target}},
                                                     {"other", v.operation->get<std::int64_t>("ignore_index", -100)}});
    return filled(p, own.local, ignored, std::int64_t{-100});
}
}  // namespace detail

/// Forward and backward, nll_loss and nll_loss2d.
inline void nll_loss_local(local_view const& v, local_program& p) {
    auto const& self = *v.operand("self");
    auto const classes = detail::class_dim(self.global.rank());
    bool const backward = v.operation->slot("grad_output").has_value();
    std::uint32_t axes = 0;
    for (std::size_t d = 0; d < self.global.rank(); ++d) axes |= self.cut_axes(d);
    bool const mean = !backward && detail::reduction_literal(*v.operation) == 1;
    if (!axes || (!mean && !self.is_cut(classes))) return run_as_is(v, p);

    op o = *v.operation;
    std::vector<local_value> in(v.operands.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<local_value>(i);
    if (self.is_cut(classes)) {
        in[*o.slot("target")] = detail::own_targets(v, p, self, classes);
        set_argument(o, "ignore_index", std::int64_t{-100});
    }
    if (mean) set_argument(o, "reduction", std::int64_t{2});
    auto const first = p.call(std::move(o), std::move(in), static_cast<std::uint32_t>(v.outputs.size()));
    if (backward) return p.returns({first});
    if (!mean) return p.returns({first, first + 1});
    auto const total = p.all_reduce(first + 1, axes, reduction::sum);
    p.returns({step(p, "aten::div.Tensor", {{"self", first}, {"other", total}}), total});
}

inline void add_nll_loss_rules(rule_registry& r) {
    for (std::string name : {"aten::nll_loss", "aten::nll_loss2d"}) {
        r.add(name + "_forward", nll_loss_rule, nll_loss_local);
        r.add(name + "_backward", nll_loss_backward_rule, nll_loss_local);
    }
}

}  // namespace cantle::rules
