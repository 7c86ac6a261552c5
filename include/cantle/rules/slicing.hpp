// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that take a part of a dim, or put one back: slice, select, split, unbind, unfold, diagonal, their backward and scatter forms. Cuts of
// all other dims pass. A cut of the dim itself passes where every rank's part comes out of its own piece: the whole dim, or every step-th
// element with pieces that the step divides (case A50). Parts are put into zeros on every rank, so Partial of any kind passes.
//
// Rules see local sizes and global literals, so "the whole dim" is read off the sizes, never off start and end.
#include <cantle/rules/moving.hpp>

#include <optional>

namespace cantle::rules {

namespace detail {

/// Does a slice of a dim of size `in` that gives `out` elements pass a cut of that dim by n?
inline bool slice_stays_local(op const& o, std::int64_t in, std::int64_t out, std::int64_t n) {
    if (in == out) return true;
    auto const step = o.get<std::int64_t>("step", 1), start = o.get<std::int64_t>("start", 0);
    return step > 1 && 0 <= start && start < step && in % (n * step) == 0 && out == in / step;
}
/// Bounds of such a slice on a piece of `in` local elements. Nothing changes where the dim is not cut.
inline void localise_slice(op& o, port_view const& whole, port_view const& part, std::size_t dim) {
    if (!whole.is_cut(dim)) return;
    if (whole.global.sizes[dim] == part.global.sizes[dim]) set_argument(o, "start", std::int64_t{0});
    set_argument(o, "end", whole.sizes()[dim]);
}
inline std::size_t dim_of(op const& o, std::size_t rank) { return absolute_dim(o.get<std::int64_t>("dim", 0), rank); }

}  // namespace detail

/// slice, narrow: output sizes tell how much of the dim is taken.
inline void slice_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &from = q.operands[0].sizes, &to = q.outputs[0].sizes;
    auto const dim = detail::dim_of(*q.operation, from.size());
    for (std::size_t d = 0; d < from.size(); ++d)
        if (d != dim || detail::slice_stays_local(*q.operation, from[d], to[d], n)) rows.add({placement::shard(d)}, {placement::shard(d)});
    detail::add_partial_rows(rows);
}
inline void slice_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const dim = detail::dim_of(o, v.operands[0].global.rank());
    detail::localise_slice(o, v.operands[0], v.outputs[0], dim);
    if (v.operands[0].is_cut(dim)) set_argument(o, "length", v.outputs[0].sizes()[dim]);
    run_whole(std::move(o), v, p);
}

/// slice_backward(grad, input_sizes, dim, start, end, step): the grad among zeros.
inline void slice_backward_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &part = q.operands[0].sizes, &whole = q.outputs[0].sizes;
    auto const dim = detail::dim_of(*q.operation, part.size());
    for (std::size_t d = 0; d < part.size(); ++d)
        if (d != dim || detail::slice_stays_local(*q.operation, whole[d], part[d], n))
            rows.add({placement::shard(d)}, {placement::shard(d)});
    detail::add_partial_rows(rows);
}
inline void slice_backward_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    set_argument(o, "input_sizes", v.outputs[0].sizes());
    detail::localise_slice(o, v.outputs[0], v.operands[0], detail::dim_of(o, v.outputs[0].global.rank()));
    run_whole(std::move(o), v, p);
}

/// slice_scatter(self, src, dim, start, end, step): self with src in place of the slice.
inline void slice_scatter_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &whole = q.operands[0].sizes, &part = q.operands[1].sizes;
    auto const dim = detail::dim_of(*q.operation, whole.size());
    for (std::size_t d = 0; d < whole.size(); ++d)
        if (d != dim || detail::slice_stays_local(*q.operation, whole[d], part[d], n))
            rows.add({placement::shard(d), placement::shard(d)}, {placement::shard(d)});
    detail::add_partial_rows(rows);
}
inline void slice_scatter_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    detail::localise_slice(o, v.operands[0], v.operands[1], detail::dim_of(o, v.operands[0].global.rank()));
    run_whole(std::move(o), v, p);
}

/// select, unbind: the dim goes away; select_backward brings it back; select_scatter(self, src, ...) has both.
inline void select_rule(op_query const& q, std::int64_t, row_list& rows) {
    bool const backward = q.name() == "aten::select_backward";
    std::size_t const rank = backward ? q.outputs[0].rank() : q.operands[0].rank();
    auto const dim = detail::dim_of(*q.operation, rank);
    for (std::size_t d = 0; d < rank; ++d) {
        if (d == dim) continue;
        auto const whole = placement::shard(d), part = placement::shard(d < dim ? d : d - 1);
        if (backward) rows.add({part}, {whole});
        else if (q.operands.size() == 2) rows.add({whole, part}, {whole});
        else rows.add({whole}, std::vector<placement>(q.outputs.size(), part));
    }
    detail::add_partial_rows(rows);
}

/// split, chunk in all forms: every output is cut as the input is. Where there is one output only, it is the input.
inline void split_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    auto const dim = detail::dim_of(*q.operation, rank);
    for (std::size_t d = 0; d < rank; ++d)
        if (d != dim || q.outputs.size() == 1) rows.add({placement::shard(d)}, std::vector<placement>(q.outputs.size(), placement::shard(d)));
    detail::add_partial_rows(rows);
}
inline void split_local(local_view const& v, local_program& p) {
    if (v.outputs.size() == 1) return run_whole({"aten::alias", {{"self", operand_slot{0}}}}, v, p);
    run_whole(*v.operation, v, p);
}

/// unfold(self, dimension, size, step): windows along a dim, each one laid out along a new last dim. Windows that do not overlap stay on
/// their rank where the step divides the piece.
inline bool windows_stay_local(op const& o, std::int64_t in, std::int64_t windows, std::int64_t n) {
    auto const size = o.get<std::int64_t>("size", 1), step = o.get<std::int64_t>("step", 1);
    return size <= step && in % (n * step) == 0 && windows == in / step;
}
inline void unfold_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &from = q.operands[0].sizes, &to = q.outputs[0].sizes;
    auto const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dimension", 0), from.size());
    for (std::size_t d = 0; d < from.size(); ++d)
        if (d != dim || windows_stay_local(*q.operation, from[d], to[d], n)) rows.add({placement::shard(d)}, {placement::shard(d)});
    detail::add_partial_rows(rows);
}
/// unfold_backward(grad, input_sizes, dim, size, step) adds up what overlaps.
inline void unfold_backward_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &windows = q.operands[0].sizes, &whole = q.outputs[0].sizes;
    auto const dim = detail::dim_of(*q.operation, whole.size());
    for (std::size_t d = 0; d < whole.size(); ++d)
        if (d != dim || windows_stay_local(*q.operation, whole[d], windows[d], n)) rows.add({placement::shard(d)}, {placement::shard(d)});
    if (q.operation->get<std::int64_t>("size", 1) <= q.operation->get<std::int64_t>("step", 1)) detail::add_partial_rows(rows);
    else detail::add_linear_rows(rows, {0});
}

namespace detail {
/// Where dims of a tensor stand beside its diagonal of dims a and b: the others in order; the diagonal itself comes last.
inline std::vector<std::optional<std::size_t>> dims_beside_diagonal(op const& o, std::size_t rank) {
    auto const a = absolute_dim(o.get<std::int64_t>("dim1", 0), rank), b = absolute_dim(o.get<std::int64_t>("dim2", 1), rank);
    std::vector<std::optional<std::size_t>> at(rank);
    std::size_t next = 0;
    for (std::size_t d = 0; d < rank; ++d)
        if (d != a && d != b) at[d] = next++;
    return at;
}
}  // namespace detail

/// diagonal, diagonal_backward (the diagonal among zeros) and diagonal_scatter(self, src, ...).
inline void diagonal_rule(op_query const& q, std::int64_t, row_list& rows) {
    bool const backward = q.name() == "aten::diagonal_backward";
    auto const at = detail::dims_beside_diagonal(*q.operation, backward ? q.outputs[0].rank() : q.operands[0].rank());
    for (std::size_t d = 0; d < at.size(); ++d) {
        if (!at[d]) continue;
        auto const whole = placement::shard(d), part = placement::shard(*at[d]);
        if (backward) rows.add({part}, {whole});
        else if (q.operands.size() == 2) rows.add({whole, part}, {whole});
        else rows.add({whole}, {part});
    }
    detail::add_partial_rows(rows);
}

/// The backward of a part names the sizes of the whole.
inline void input_sizes_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    set_argument(o, "input_sizes", v.outputs[0].sizes());
    run_whole(std::move(o), v, p);
}

inline void add_slicing_rules(rule_registry& r) {
    r.add_all({"aten::slice.Tensor", "aten::slice_copy.Tensor", "aten::narrow", "aten::narrow_copy"}, slice_rule, slice_local);
    r.add("aten::slice_backward", slice_backward_rule, slice_backward_local);
    r.add("aten::slice_scatter", slice_scatter_rule, slice_scatter_local);
    r.add_all({"aten::select.int", "aten::select_copy.int", "aten::select_scatter", "aten::unbind.int", "aten::unbind_copy.int"}, select_rule);
    r.add("aten::select_backward", select_rule, input_sizes_local);
    r.add_all({"aten::split.Tensor", "aten::split_copy.Tensor", "aten::split_with_sizes", "aten::split_with_sizes_copy", "aten::split.sizes",
               "aten::chunk"},
              split_rule, split_local);
    r.add_all({"aten::unfold", "aten::unfold_copy"}, unfold_rule, run_unchanged);
    r.add("aten::unfold_backward", unfold_backward_rule, input_sizes_local);
    r.add_all({"aten::diagonal", "aten::diagonal_copy", "aten::diagonal_scatter"}, diagonal_rule);
    r.add("aten::diagonal_backward", diagonal_rule, input_sizes_local);
}

}  // namespace cantle::rules
