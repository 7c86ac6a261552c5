// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that move elements without changing them: reshapes, permutations, expand, slices, cat. Partial passes all of them.
//
// A reshape is a list of blocks of equal element count on both sides. A cut of an input dim is a digit [before][n][after] of its block; it
// is a cut of the output dim that contains that digit whole (with `before` split off as whole factor where it reaches into the dim), and
// no placement where it would straddle two output dims (cases A1, A2, A5, E2). Rules see local shapes, so after an outer axis has used up
// a dim of size 2 the next axis finds size 1 there and goes on to the next dim (case E2).
#include <cantle/rules/registry.hpp>

#include <optional>

namespace cantle::rules {

namespace detail {

/// The placement on `to` of the cut [prefix][n] of a block that consists of dims [first, last) of `to`.
inline std::optional<placement> digit_to_dim(shape const& to, std::size_t first, std::size_t last, std::int64_t prefix, std::int64_t n) {
    for (std::size_t e = first; e < last; ++e) {
        if (to[e] > 0 && prefix % to[e] == 0) {
            prefix /= to[e];
            continue;
        }
        if (to[e] % prefix != 0 || to[e] / prefix % n != 0) return std::nullopt;
        return placement::shard(e, prefix);
    }
    return std::nullopt;
}

/// visit(dim of `from`, placement on `to`) for every plain shard of `from` by `n` that a reshape carries over.
template <class Visit>
void for_each_carried_cut(shape const& from, shape const& to, std::int64_t n, Visit visit) {
    std::size_t i = 0, j = 0;
    while (i < from.size() && j < to.size()) {
        std::size_t const i0 = i, j0 = j;
        std::int64_t a = from[i++], b = to[j++];
        while (a != b) {
            if (a < b && i < from.size()) a *= from[i++];
            else if (b < a && j < to.size()) b *= to[j++];
            else return;
        }
        while (i < from.size() && from[i] == 1) ++i;  // trailing ones belong to the block before
        while (j < to.size() && to[j] == 1) ++j;
        std::int64_t prefix = 1;
        for (std::size_t d = i0; d < i; ++d) {
            if (from[d] % n == 0)
                if (auto p = digit_to_dim(to, j0, j, prefix, n)) visit(d, *p);
            prefix *= from[d];
        }
    }
}

inline void add_partial_rows(row_list& rows) {
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        rows.add(std::vector<placement>(rows.operand_count(), placement::partial(kind)),
                 std::vector<placement>(rows.output_count(), placement::partial(kind)));
}

/// A possibly negative dim argument made absolute.
inline std::size_t absolute_dim(std::int64_t d, std::size_t rank) {
    return static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d);
}
}  // namespace detail

inline void reshape_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const& from = q.operands[0].sizes;
    auto const& to = q.outputs[0].sizes;
    if (element_count(from) > 0) {
        detail::for_each_carried_cut(from, to, n, [&](std::size_t d, placement p) { rows.add({placement::shard(d)}, {p}); });
        // The other way round: plain shards of the output that need a whole factor in the input.
        detail::for_each_carried_cut(to, from, n, [&](std::size_t d, placement p) {
            if (p.outer > 1) rows.add({p}, {placement::shard(d)});
        });
    }
    detail::add_partial_rows(rows);
}

/// Any op that only renames dims: map[input dim] = output dim.
inline void renaming_rows(std::vector<std::optional<std::size_t>> const& map, row_list& rows) {
    for (std::size_t d = 0; d < map.size(); ++d)
        if (map[d]) rows.add({placement::shard(d)}, {placement::shard(*map[d])});
    detail::add_partial_rows(rows);
}

inline void permute_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    std::vector<std::optional<std::size_t>> map(rank);
    if (q.name() == "aten::permute") {
        auto const dims = q.operation->get<std::vector<std::int64_t>>("dims", {});
        for (std::size_t i = 0; i < dims.size() && i < rank; ++i) map[detail::absolute_dim(dims[i], rank)] = i;
    } else {  // t (case A8: of a vector it is the identity) and transpose.int
        for (std::size_t d = 0; d < rank; ++d) map[d] = d;
        if (rank >= 2) {
            bool const t = q.name() == "aten::t";
            auto const a = t ? 0 : detail::absolute_dim(q.operation->get<std::int64_t>("dim0", 0), rank);
            auto const b = t ? 1 : detail::absolute_dim(q.operation->get<std::int64_t>("dim1", 0), rank);
            map[a] = b;
            map[b] = a;
        }
    }
    renaming_rows(map, rows);
}

/// expand: a dim of size 1 that grows can be cut at will (every rank expands to its own share); the others keep their place from the right.
inline void expand_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const& from = q.operands[0].sizes;
    auto const& to = q.outputs[0].sizes;
    std::size_t const fresh = to.size() - from.size();
    for (std::size_t d = 0; d < to.size(); ++d) {
        bool const grown = d < fresh || (from[d - fresh] == 1 && to[d] != 1);
        rows.add({grown ? placement::replicate() : placement::shard(d - fresh)}, {placement::shard(d)});
    }
    detail::add_partial_rows(rows);
}

/// Ops that touch one dim (slice, select, cat, split, slice_backward, flip, cumsum): all other dims pass, on all operands and outputs.
/// `removes`: the output lacks the dim (select); `inserts`: the output has it in addition (select_backward, stack).
inline axis_rule along_dim_rule(bool removes = false, bool inserts = false) {
    return [removes, inserts](op_query const& q, std::int64_t, row_list& rows) {
        std::size_t const rank = q.operands[0].rank(), range = rank + (inserts ? 1 : 0);
        std::size_t const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), range);
        // A slice that takes the whole dim touches nothing.
        bool const whole = !removes && !inserts && q.operands.size() == 1 && q.outputs.size() == 1 &&
                           q.operands[0].sizes == q.outputs[0].sizes && q.name() == "aten::slice.Tensor";
        for (std::size_t d = 0; d < rank; ++d) {
            if (d == dim && !inserts && !whole) continue;
            std::size_t const out = removes && d > dim ? d - 1 : inserts && d >= dim ? d + 1 : d;
            rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)),
                     std::vector<placement>(q.outputs.size(), placement::shard(out)));
        }
        detail::add_partial_rows(rows);
    };
}

inline void unsqueeze_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    std::size_t const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), rank + 1);
    std::vector<std::optional<std::size_t>> map(rank);
    for (std::size_t d = 0; d < rank; ++d) map[d] = d + (d >= dim ? 1 : 0);
    renaming_rows(map, rows);
}

/// squeeze in all its forms: sizes tell which dims of size 1 went away.
inline void squeeze_rule(op_query const& q, std::int64_t n, row_list& rows) { reshape_rule(q, n, rows); }

/// Local sizes stand in "shape" and "stride" too, where an op names them so.
inline void reshape_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const& sizes = v.outputs[0].sizes();
    set_argument(o, "size", sizes);
    set_argument(o, "shape", sizes);
    set_argument(o, "stride", contiguous_strides(sizes));
    run_whole(std::move(o), v, p);
}
/// A dim that is cut down to 1 must stay: ranks reshape.
inline void squeeze_local(local_view const& v, local_program& p) {
    run_whole({"aten::reshape", {{"self", operand_slot{0}}, {"shape", v.outputs[0].sizes()}}}, v, p);
}
/// A slice over a whole dim has the bounds of the rank's piece.
inline void slice_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    if (v.operands[0].global.sizes == v.outputs[0].global.sizes) {
        set_argument(o, "start", std::monostate{});
        set_argument(o, "end", std::monostate{});
    }
    run_whole(std::move(o), v, p);
}
/// slice_backward and select_backward name the sizes of their output.
inline void input_sizes_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    set_argument(o, "input_sizes", v.outputs[0].sizes());
    run_whole(std::move(o), v, p);
}

inline void add_view_rules(rule_registry& r) {
    r.add_all({"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias"}, reshape_rule, reshape_local);
    r.add_all({"aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims"}, squeeze_rule, squeeze_local);
    r.add_all({"aten::permute", "aten::transpose.int", "aten::t"}, permute_rule);
    r.add("aten::expand", expand_rule);
    r.add("aten::unsqueeze", unsqueeze_rule);
    r.add("aten::slice.Tensor", along_dim_rule(), slice_local);
    r.add("aten::slice_backward", along_dim_rule(), input_sizes_local);
    r.add_all({"aten::cat", "aten::split.Tensor", "aten::split_with_sizes", "aten::narrow"}, along_dim_rule());
    r.add("aten::select.int", along_dim_rule(true));
    r.add("aten::select_backward", along_dim_rule(false, true), input_sizes_local);
    r.add("aten::stack", along_dim_rule(false, true));
}

}  // namespace cantle::rules
