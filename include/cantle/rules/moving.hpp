// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the rules of ops that move values share. An output element is an input element or a constant: so Partial of any kind passes, if all
// operands that values come from are Partial of that kind together. With one of them Replicate a sum over ranks would count it too often.
#include <cantle/rules/local_program.hpp>
#include <cantle/rules/registry.hpp>

#include <cstdint>
#include <vector>

namespace cantle::rules {

namespace detail {

/// One row per kind: the operands `which` are Partial of it, the others Replicate, all outputs Partial.
inline void add_kind_rows(row_list& rows, std::vector<reduction> const& kinds, std::vector<std::size_t> const& which) {
    for (auto kind : kinds) {
        std::vector<placement> in(rows.operand_count());
        for (auto i : which) in[i] = placement::partial(kind);
        rows.add(std::move(in), std::vector<placement>(rows.output_count(), placement::partial(kind)));
    }
}
/// Values come from the operands `which` and are not changed.
inline void add_moved_rows(row_list& rows, std::vector<std::size_t> const& which) {
    add_kind_rows(rows, {reduction::sum, reduction::avg, reduction::max, reduction::min}, which);
}
/// Values come from all operands.
inline void add_partial_rows(row_list& rows) {
    std::vector<std::size_t> all(rows.operand_count());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    add_moved_rows(rows, all);
}
/// Values come from the operands `which` and stand among constants, which every rank writes: n times too much for a sum, unless 0.
inline void add_filled_rows(row_list& rows, std::vector<std::size_t> const& which, bool zero) {
    if (zero) add_moved_rows(rows, which);
    else add_kind_rows(rows, {reduction::avg, reduction::max, reduction::min}, which);
}
/// Values are added up: linear in the operands `which` together.
inline void add_linear_rows(row_list& rows, std::vector<std::size_t> const& which) {
    add_kind_rows(rows, {reduction::sum, reduction::avg}, which);
}
/// Something is added to `self`: linear in both, and monotone in self, as long as all ranks add the same.
inline void add_added_rows(row_list& rows, std::size_t self, std::size_t added) {
    add_linear_rows(rows, {self, added});
    add_kind_rows(rows, {reduction::max, reduction::min}, {self});
}

/// A possibly negative dim argument made absolute.
inline std::size_t absolute_dim(std::int64_t d, std::size_t rank) {
    return static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d);
}
}  // namespace detail

/// The op itself, whatever its arguments are called.
inline void run_unchanged(local_view const& v, local_program& p) { run_whole(*v.operation, v, p); }

}  // namespace cantle::rules
