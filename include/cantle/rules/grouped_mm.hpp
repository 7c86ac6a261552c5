// SPDX-License-Identifier: BSL-1.0
#pragma once
// aten::_grouped_mm: a product per group, the groups being runs of one dim that end at `offs` (experts and their tokens). Free and
// contracted dims behave as in bmm. A cut of the dim that holds the runs is true as well: the rank clips the ends to its own part, and so
// needs its offset. (A cut of the experts themselves is a region's business: it moves tokens.)
#include <cantle/rules/contraction.hpp>
#include <cantle/rules/local_steps.hpp>

namespace cantle::rules {

namespace detail {
/// Letters of self, mat2 and output; 't' is the dim of the runs, 'g' the groups.
struct grouped_letters { std::string self, mat2, out; };
inline grouped_letters letters_of_grouped_mm(std::size_t self_rank, std::size_t mat2_rank) {
    if (self_rank == 2 && mat2_rank == 3) return {"tk", "gkn", "tn"};
    if (self_rank == 3 && mat2_rank == 2) return {"gmk", "kt", "mt"};
    if (self_rank == 2) return {"mt", "tn", "gmn"};
    return {"gmk", "gkn", "gmn"};
}
/// The kernels want rows that start at multiples of 16 bytes.
inline bool keeps_alignment(tensor_meta const& t, placement p, std::int64_t n) {
    return !p.is_shard(t.rank() - 1) || t.sizes.back() / n * element_bytes(t.type) % 16 == 0;
}
}  // namespace detail

inline void grouped_mm_rule(op_query const& q, std::int64_t n, row_list& rows) {
    if (q.operation->slot("bias") || q.operands.size() < 2) return;
    auto const l = detail::letters_of_grouped_mm(q.operands[0].rank(), q.operands[1].rank());
    contraction const c{{{0, l.self}, {1, l.mat2}}, l.out, std::nullopt, 1, {}};
    for (char x : std::string("mtnkg")) {
        if (l.self.find(x) == std::string::npos && l.mat2.find(x) == std::string::npos) continue;
        if (x == 'g' && l.self[0] + l.mat2[0] != 'g' + 'g') continue;  // groups lie in a dim of both, or are runs of another dim
        auto row = contraction_row(q, c, x);
        row.masked = x == 't';
        row.even_only = true;  // the smallest of uneven pieces could miss the alignment
        if (detail::keeps_alignment(q.operands[0], row.operands[0], n) && detail::keeps_alignment(q.operands[1], row.operands[1], n))
            rows.add(std::move(row));
    }
    affine_rows(q, rows).jointly({0}).jointly({1});
}

inline void grouped_mm_local(local_view const& v, local_program& p) {
    auto const offs = v.operation->slot("offs");
    auto const l = detail::letters_of_grouped_mm(v.operands[0].global.rank(), v.operands[1].global.rank());
    bool const in_self = l.self.find('t') != std::string::npos;
    auto const& port = v.operands[in_self ? 0 : 1];
    auto const dim = (in_self ? l.self : l.mat2).find('t');
    if (!offs || dim == std::string::npos || !port.is_cut(dim)) return run_as_is(v, p);
    need_interval(v, port, dim);
    auto const shifted = step(p, "aten::sub.Scalar", {{"self", local_value{*offs}}, {"other", port.offset(dim)}});
    auto const clipped = step(p, "aten::clamp", {{"self", shifted}, {"min", 0}, {"max", port.sizes()[dim]}});
    p.returns({p.call(*v.operation, {0, 1, clipped})});
}

inline void add_grouped_mm_rules(rule_registry& r) { r.add("aten::_grouped_mm", grouped_mm_rule, grouped_mm_local); }

}  // namespace cantle::rules
