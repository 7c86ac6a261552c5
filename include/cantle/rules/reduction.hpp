// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reductions over dims: a cut of a kept dim passes; a cut of a reduced dim leaves the reduction's own kind of Partial, where it has one:
// sum -> P, mean -> P(avg) (shards are even), amax and any -> P(max), amin and all -> P(min). Products, variances, logsumexp and index
// results (max.dim, argmax: cases A22, A23) have none. Scans (cumsum) keep their dim whole.
#include <cantle/rules/pointwise.hpp>
#include <cantle/rules/view.hpp>

#include <algorithm>

namespace cantle::rules {

namespace detail {
/// The reduced dims: "dim" as a list, as an int, or absent (all). Of an empty list the output tells whether it means all or none.
inline std::vector<bool> reduced_dims(op_query const& q) {
    std::size_t const rank = q.operands[0].rank();
    std::vector<bool> reduced(rank, false);
    if (rank == 0) return reduced;  // dim 0 or -1 of a scalar names nothing that could be cut
    auto const list = q.operation->get<std::vector<std::int64_t>>("dim", {});
    auto const* one = q.operation->find("dim");
    bool const keep = q.operation->get<bool>("keepdim", false);
    if (one && std::holds_alternative<std::int64_t>(*one)) reduced[absolute_dim(std::get<std::int64_t>(*one), rank)] = true;
    else if (list.empty()) reduced.assign(rank, keep ? q.outputs[0].sizes != q.operands[0].sizes : q.outputs[0].rank() != rank);
    for (auto d : list) reduced[absolute_dim(d, rank)] = true;
    return reduced;
}
/// visit(dim, is it reduced, its place in the output).
template <class Visit>
void for_each_dim(op_query const& q, Visit visit) {
    auto const reduced = reduced_dims(q);
    bool const keep = q.operation->get<bool>("keepdim", false);
    std::size_t out = 0;
    for (std::size_t d = 0; d < reduced.size(); ++d) {
        visit(d, reduced[d], out);
        if (!reduced[d] || keep) ++out;
    }
}
inline bool is_dim(op_query const& q, std::size_t d) {
    return q.operands[0].rank() > 0 && d == absolute_dim(q.operation->get<std::int64_t>("dim", -1), q.operands[0].rank());
}
}  // namespace detail

/// `leaves`: what a cut of a reduced dim gives, if anything; `passes`: kinds of Partial that the whole operand may be.
inline axis_rule reduction_rule(std::optional<reduction> leaves, kind_set passes = no_kinds) {
    return [leaves, passes](op_query const& q, std::int64_t, row_list& rows) {
        detail::for_each_dim(q, [&](std::size_t d, bool reduced, std::size_t out) {
            if (!reduced) rows.add({placement::shard(d)}, std::vector<placement>(q.outputs.size(), placement::shard(out)));
            else if (leaves) rows.add({placement::shard(d)}, std::vector<placement>(q.outputs.size(), placement::partial(*leaves)));
        });
        add_partials(q, rows, std::vector<std::size_t>{0}, passes);
    };
}

/// any ("or" over the dims, maxima) and all ("and", minima): of flags they pass what they leave; of numbers they ask for zero first.
inline axis_rule flags_rule(reduction leaves) {
    return [leaves](op_query const& q, std::int64_t n, row_list& rows) {
        reduction_rule(leaves, q.operands[0].type == dtype::boolean ? kind_bit(leaves) : no_kinds)(q, n, rows);
    };
}

/// cumsum (linear) and other scans: all dims but their own.
inline axis_rule scan_rule(kind_set passes = no_kinds) {
    return [passes](op_query const& q, std::int64_t, row_list& rows) {
        for (std::size_t d = 0; d < q.operands[0].rank(); ++d)
            if (!detail::is_dim(q, d)) rows.add({placement::shard(d)}, std::vector<placement>(q.outputs.size(), placement::shard(d)));
        add_partials(q, rows, std::vector<std::size_t>{0}, passes);
    };
}

/// dot(x, y): contracts the one dim; linear in each.
inline void dot_rule(op_query const& q, std::int64_t, row_list& rows) {
    rows.add({placement::shard(0), placement::shard(0)}, {placement::partial()});
    for (std::size_t i = 0; i < 2; ++i) add_partials(q, rows, std::vector<std::size_t>{i}, sums);
}

inline void add_reduction_rules(rule_registry& r) {
    r.add_all({"aten::sum.dim_IntList", "aten::sum"}, reduction_rule(reduction::sum, sums));
    r.add_all({"aten::mean.dim", "aten::mean"}, reduction_rule(reduction::avg, sums));
    r.add_all({"aten::amax", "aten::max"}, reduction_rule(reduction::max, maxima));
    r.add_all({"aten::amin", "aten::min"}, reduction_rule(reduction::min, minima));
    r.add_all({"aten::any", "aten::any.dim", "aten::any.dims"}, flags_rule(reduction::max));
    r.add_all({"aten::all", "aten::all.dim", "aten::all.dims"}, flags_rule(reduction::min));
    r.add_all({"aten::count_nonzero", "aten::count_nonzero.dim_IntList"}, reduction_rule(reduction::sum));
    r.add_all({"aten::max.dim", "aten::min.dim", "aten::argmax", "aten::argmin", "aten::aminmax", "aten::prod", "aten::prod.dim_int",
               "aten::var", "aten::var.dim", "aten::var.correction", "aten::var_mean", "aten::var_mean.dim", "aten::var_mean.correction",
               "aten::std", "aten::std.dim", "aten::std.correction", "aten::std_mean", "aten::std_mean.dim", "aten::std_mean.correction",
               "aten::logsumexp"},
              reduction_rule(std::nullopt));
    r.add("aten::cumsum", scan_rule(sums));
    r.add_all({"aten::cumprod", "aten::logcumsumexp", "aten::cummax", "aten::cummin"}, scan_rule());
    r.add_all({"aten::dot", "aten::vdot"}, dot_rule);
}

}  // namespace cantle::rules
