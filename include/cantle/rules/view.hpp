// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that give a tensor other dims without touching its elements: reshapes, permutations, expand, repeat. Partial passes all of them.
//
// A reshape is a list of blocks of equal element count on both sides. A cut of an input dim is a digit [before][n][after] of its block; it
// is a cut of the output dim that contains that digit whole (with `before` split off as whole factor where it reaches into the dim), and
// no placement where it would straddle two output dims (cases A1, A2, A5, E2). Rules see local shapes, so after an outer axis has used up
// a dim of size 2 the next axis finds size 1 there and goes on to the next dim (case E2).
#include <cantle/rules/moving.hpp>

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

/// Where a block has one dim that is not 1 on each side, that dim of `to`: nothing is split or merged.
inline std::optional<std::size_t> kept_dim(shape const& from, std::size_t i0, std::size_t i, shape const& to, std::size_t j0,
                                           std::size_t j) {
    std::optional<std::size_t> dim;
    std::size_t left = 0, right = 0;
    for (std::size_t d = i0; d < i; ++d) left += from[d] != 1;
    for (std::size_t e = j0; e < j; ++e)
        if (to[e] != 1) {
            ++right;
            dim = e;
        }
    return left == 1 && right == 1 ? dim : std::nullopt;
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
            if (from[d] % n == 0) {
                if (auto p = digit_to_dim(to, j0, j, prefix, n)) visit(d, *p);
            } else if (auto const kept = kept_dim(from, i0, i, to, j0, j); kept && from[d] != 1)
                visit(d, placement::shard(*kept));  // does not divide: for uneven shards
            prefix *= from[d];
        }
    }
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
/// Ranks reshape to the sizes that they hold, whatever the op calls them: squeeze must keep a dim that is cut down to 1, -1 and the dims of
/// flatten and unflatten are resolved.
inline void reshape_local(local_view const& v, local_program& p) {
    run_whole({"aten::reshape", {{"self", operand_slot{0}}, {"shape", v.outputs[0].sizes()}}}, v, p);
}

/// as_strided reads memory by strides that rules do not know (DECISIONS 20): it is done whole, on partial values too.
inline void strided_rule(op_query const&, std::int64_t, row_list& rows) { detail::add_partial_rows(rows); }
/// Ranks hold contiguous tensors: strides of another memory would read other elements.
inline void contiguous_only(local_view const& v, local_program& p) {
    auto const& t = v.operands[0].global;
    if (!t.strides.empty() && t.strides != contiguous_strides(t.sizes))
        throw error(error_code::bad_graph, v.operation->name, "its operand is not contiguous, and programs of ranks know no strides",
                    "put .contiguous() in front of as_strided");
    run_unchanged(v, p);
}

namespace detail {
/// Where permute, movedim, transpose and t put each dim.
inline std::vector<std::size_t> permutation_of(op const& o, std::size_t rank) {
    using list = std::vector<std::int64_t>;
    std::vector<std::size_t> to(rank);
    if (o.find("dims")) {
        auto const dims = o.get<list>("dims", {});
        for (std::size_t i = 0; i < dims.size() && i < rank; ++i) to[absolute_dim(dims[i], rank)] = i;
    } else if (o.find("source")) {
        // The dims named go to their places, the others fill the rest in order.
        auto const source = o.get<list>("source", {o.get<std::int64_t>("source", 0)});
        auto const destination = o.get<list>("destination", {o.get<std::int64_t>("destination", 0)});
        std::vector<bool> moved(rank, false), taken(rank, false);
        for (std::size_t i = 0; i < source.size(); ++i) {
            auto const s = absolute_dim(source[i], rank), d = absolute_dim(destination[i], rank);
            to[s] = d;
            moved[s] = taken[d] = true;
        }
        for (std::size_t s = 0, d = 0; s < rank; ++s) {
            if (moved[s]) continue;
            while (taken[d]) ++d;
            to[s] = d++;
        }
    } else {
        for (std::size_t d = 0; d < rank; ++d) to[d] = d;
        if (rank < 2) return to;  // case A8: t of a vector is the identity
        bool const t = !o.find("dim0");
        auto const a = t ? 0 : absolute_dim(o.get<std::int64_t>("dim0", 0), rank);
        auto const b = t ? 1 : absolute_dim(o.get<std::int64_t>("dim1", 0), rank);
        std::swap(to[a], to[b]);
    }
    return to;
}
}  // namespace detail

inline void permute_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const to = detail::permutation_of(*q.operation, q.operands[0].rank());
    for (std::size_t d = 0; d < to.size(); ++d) rows.add({placement::shard(d)}, {placement::shard(to[d])});
    detail::add_partial_rows(rows);
}

inline void unsqueeze_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    std::size_t const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), rank + 1);
    for (std::size_t d = 0; d < rank; ++d) rows.add({placement::shard(d)}, {placement::shard(d < dim ? d : d + 1)});
    detail::add_partial_rows(rows);
}

/// Complex numbers are pairs of a last dim of size 2. They have no maximum.
inline void complex_view_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = std::min(q.operands[0].rank(), q.outputs[0].rank());
    for (std::size_t d = 0; d < rank; ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
    detail::add_linear_rows(rows, {0});
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

/// repeat and repeat_interleave are a view of an operand with dims of copies put between its own: [3][8] repeated by (1, 2) is
/// [3][2 copies][8] as [3][16]. A dim of copies is cut freely, every rank makes its share of them.
class copies_between {
public:
    copies_between& own(std::size_t d, std::int64_t size) { return put(size, d); }
    copies_between& copies(std::int64_t count) { return put(count, {}); }
    void add_rows(shape const& to, std::int64_t n, row_list& rows) const {
        if (element_count(to) > 0)
            detail::for_each_carried_cut(sizes_, to, n, [&](std::size_t v, placement p) {
                rows.add({dims_[v] ? placement::shard(*dims_[v]) : placement::replicate()}, {p});
            });
        detail::add_partial_rows(rows);
    }

private:
    shape sizes_;
    std::vector<std::optional<std::size_t>> dims_;  // the operand's dim, nothing for copies
    copies_between& put(std::int64_t size, std::optional<std::size_t> d) {
        sizes_.push_back(size);
        dims_.push_back(d);
        return *this;
    }
};

/// repeat(self, repeats), tile(self, dims): copies stand outside each dim. How many a rank makes is read off its sizes.
inline void repeat_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &from = q.operands[0].sizes, &to = q.outputs[0].sizes;
    std::size_t const fresh = to.size() - from.size();
    copies_between all;
    for (std::size_t d = 0; d < to.size(); ++d) {
        auto const own = d < fresh ? 1 : from[d - fresh];
        all.copies(own > 0 ? to[d] / own : 0);
        if (d >= fresh) all.own(d - fresh, own);
    }
    all.add_rows(to, n, rows);
}
inline void repeat_local(local_view const& v, local_program& p) {
    auto const &from = v.operands[0].sizes(), &to = v.outputs[0].sizes();
    std::size_t const fresh = to.size() - from.size();
    shape repeats;
    for (std::size_t d = 0; d < to.size(); ++d) {
        auto const own = d < fresh ? 1 : from[d - fresh];
        repeats.push_back(own > 0 ? to[d] / own : 0);
    }
    run_whole({"aten::repeat", {{"self", operand_slot{0}}, {"repeats", repeats}}}, v, p);
}

/// repeat_interleave(self, repeats, dim, output_size): copies stand inside the dim, without one inside the flat tensor.
inline void repeat_interleave_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const &from = q.operands[0].sizes, &to = q.outputs[0].sizes;
    auto const* literal = q.operation->find("dim");
    auto const* dim = literal ? std::get_if<std::int64_t>(literal) : nullptr;
    auto const elements = element_count(from);
    auto const count = elements > 0 ? element_count(to) / elements : 0;
    copies_between all;
    for (std::size_t d = 0; d < from.size(); ++d) {
        all.own(d, from[d]);
        if (dim && d == detail::absolute_dim(*dim, from.size())) all.copies(count);
    }
    if (!dim) all.copies(count);
    all.add_rows(to, n, rows);
}
inline void repeat_interleave_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const elements = element_count(v.operands[0].sizes());
    if (elements > 0) set_argument(o, "repeats", element_count(v.outputs[0].sizes()) / elements);
    set_argument(o, "output_size", std::monostate{});
    run_whole(std::move(o), v, p);
}

inline void add_view_rules(rule_registry& r) {
    r.add_all({"aten::view", "aten::_unsafe_view", "aten::view_copy", "aten::reshape", "aten::_reshape_alias", "aten::flatten.using_ints",
               "aten::unflatten.int", "aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims", "aten::squeeze_copy",
               "aten::squeeze_copy.dim", "aten::squeeze_copy.dims"},
              reshape_rule, reshape_local);
    r.add_all({"aten::as_strided", "aten::as_strided_copy"}, strided_rule, contiguous_only);
    r.add_all({"aten::permute", "aten::permute_copy", "aten::transpose.int", "aten::transpose_copy.int", "aten::t", "aten::t_copy",
               "aten::movedim.int", "aten::movedim.intlist"},
              permute_rule);
    r.add_all({"aten::unsqueeze", "aten::unsqueeze_copy"}, unsqueeze_rule);
    r.add_all({"aten::view_as_complex", "aten::view_as_real"}, complex_view_rule);
    r.add_all({"aten::expand", "aten::expand_copy"}, expand_rule);
    r.add_all({"aten::repeat", "aten::tile"}, repeat_rule, repeat_local);
    r.add("aten::repeat_interleave.self_int", repeat_interleave_rule, repeat_interleave_local);
}

}  // namespace cantle::rules
