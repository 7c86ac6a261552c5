// SPDX-License-Identifier: BSL-1.0
#pragma once
// Indexing a dim that is cut. Reading: a rank gives zero for what other ranks hold, the sum over ranks is the result. Writing: what belongs
// to other ranks goes into a spare row behind the rank's own, which is cut off. In both the offset belongs to the op instance (case A47).
#include <cantle/rules/local_steps.hpp>
#include <cantle/rules/moving.hpp>

namespace cantle::rules {

/// What a masked read leaves: all ranks but one give zero, so the result is their sum; booleans have none, but the greatest is the one.
inline placement masked_read(dtype t) { return placement::partial(t == dtype::boolean ? reduction::max : reduction::sum); }

/// Rows of `x` of rank `rank` with one more behind the last of dim d.
inline local_value with_spare_row(local_program& p, local_value x, std::size_t rank, std::size_t d) {
    std::vector<std::int64_t> pad(2 * (rank - d), 0);
    pad.back() = 1;
    return step(p, "aten::constant_pad_nd", {{"self", x}, {"pad", pad}, {"value", 0}});
}
/// The first `count` rows of dim d.
inline local_value without_spare_row(local_program& p, local_value x, std::size_t d, std::int64_t count) {
    return step(p, "aten::slice.Tensor", {{"self", x}, {"dim", d}, {"start", 0}, {"end", count}, {"step", 1}});
}
/// Indices that may count from the end, made to count from the front of a dim of that global size.
inline local_value from_the_front(local_program& p, local_value indices, std::int64_t global_size) {
    return step(p, "aten::remainder.Scalar", {{"self", indices}, {"other", global_size}});
}

/// Operands as inputs of a step, to be changed one by one.
inline std::vector<local_value> operand_values(local_view const& v) {
    std::vector<local_value> in(v.operands.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<local_value>(i);
    return in;
}

/// Local program of ops that write into `self` along one dim by `index`: scatter in all forms, index_add, index_copy, index_fill.
inline void write_along_dim_local(local_view const& v, local_program& p) {
    auto const self = *v.operation->slot("self"), index = *v.operation->slot("index");
    auto const& into = v.operands[self];
    auto const dim = detail::absolute_dim(v.operation->get<std::int64_t>("dim", 0), into.global.rank());
    if (into.global.rank() == 0 || !into.is_cut(dim)) return run_unchanged(v, p);
    need_interval(v, into, dim);
    auto in = operand_values(v);
    auto const count = into.sizes()[dim];
    in[index] = made_local(p, from_the_front(p, in[index], into.global.sizes[dim]), into.offset(dim), count, count).local;
    in[self] = with_spare_row(p, in[self], into.global.rank(), dim);
    p.returns({without_spare_row(p, p.call(*v.operation, std::move(in)), dim, count)});
}

}  // namespace cantle::rules
