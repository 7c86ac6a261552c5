// SPDX-License-Identifier: BSL-1.0
#pragma once
// Casts, copies and aliases: Partial passes where the change of type allows it (case E5); complex numbers and pairs of real ones; bits read
// as another type.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

/// copy(self, src): src in self's shape and type. Both partial or src alone (case A20); what self holds is not read.
inline void copy_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    kind_set const kinds = carried(kinds_of(q.operands[0].type), q.operands[1].type, q.outputs[0].type);
    add_partials_of(q, rows, {1}, kinds);
    add_partials_of(q, rows, {0, 1}, kinds);
    for (auto kind : every_kind)
        if (kinds_of(q.operands[0].type) & kind_bit(kind))
            rows.add({placement::partial(kind), placement::replicate()}, {placement::replicate()});
}

/// Bits of one type read as another (case A13): elements that change their size take the last dim whole. No Partial of other numbers.
inline void reinterpret_rule(op_query const& q, std::int64_t, row_list& rows) {
    bool const same_size = element_bytes(q.operands[0].type) == element_bytes(q.outputs[0].type);
    std::size_t const rank = q.operands[0].rank(), dims = same_size ? rank : rank - (rank ? 1 : 0);
    for (std::size_t d = 0; d < dims; ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
    if (q.operands[0].type == q.outputs[0].type) add_partials(q, rows, std::vector<std::size_t>{0}, all_kinds);
}

/// Linear maps between complex and real tensors. A pair of reals is a last dim of 2, which is no dim of the complex tensor.
inline void complex_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const rank = std::min(q.operands[0].rank(), q.outputs[0].rank());
    for (std::size_t d = 0; d < rank; ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
    add_partials_of(q, rows, {0}, sums);
}
/// abs * (cos + i sin): linear in abs alone.
inline void polar_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"abs"}, sums);
}
/// real + i imag: linear in both, and the whole other part is not counted once per rank under avg.
inline void join_complex_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"real", "imag"}, sums);
    add_partials(q, rows, {"real"}, averages);
    add_partials(q, rows, {"imag"}, averages);
}

inline void add_cast_rules(rule_registry& r) {
    r.add_all({"aten::_to_copy", "aten::to.dtype", "aten::clone", "aten::contiguous", "aten::alias", "aten::detach", "aten::lift_fresh",
               "aten::lift_fresh_copy", "aten::resolve_conj", "aten::resolve_neg"},
              passing_rule(all_kinds));
    r.add("aten::copy", copy_rule);
    r.add_all({"aten::view.dtype", "aten::view_copy.dtype"}, reinterpret_rule);
    r.add_all({"aten::real", "aten::imag"}, complex_rule);
    r.add_all({"aten::_conj", "aten::_conj_physical", "aten::conj_physical"}, passing_rule(all_kinds));  // of a real tensor: itself
    r.add("aten::_neg_view", passing_rule(sums));
    r.add("aten::polar", polar_rule);
    r.add("aten::complex", join_complex_rule);
}

}  // namespace cantle::rules
