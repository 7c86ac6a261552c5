// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that touch some dims from end to end and leave the others alone: padding, flip, roll. A touched dim is not cut: its first element may
// come from the last rank.
#include <cantle/rules/moving.hpp>

#include <string>

namespace cantle::rules {

namespace detail {
/// Shards of all dims that are not touched, on all operands and outputs.
inline void untouched_rows(std::vector<bool> const& touched, row_list& rows) {
    for (std::size_t d = 0; d < touched.size(); ++d)
        if (!touched[d])
            rows.add(std::vector<placement>(rows.operand_count(), placement::shard(d)),
                     std::vector<placement>(rows.output_count(), placement::shard(d)));
}
/// Pads come in pairs (before, behind), of the last dim first.
inline std::vector<bool> padded_dims(std::vector<std::int64_t> const& pads, std::size_t rank) {
    std::vector<bool> touched(rank, false);
    for (std::size_t i = 0; i + 1 < pads.size() && i / 2 < rank; i += 2) touched[rank - 1 - i / 2] = pads[i] != 0 || pads[i + 1] != 0;
    return touched;
}
}  // namespace detail

/// constant_pad_nd(self, pad, value): every rank pads with the value itself, so a sum over ranks has it too often unless it is 0. The
/// average, maximum and minimum of equal values is that value.
inline void constant_pad_rule(op_query const& q, std::int64_t, row_list& rows) {
    detail::untouched_rows(detail::padded_dims(q.operation->get<std::vector<std::int64_t>>("pad", {}), q.operands[0].rank()), rows);
    bool pads = false;  // negative ones only take away
    for (auto const pad : q.operation->get<std::vector<std::int64_t>>("pad", {})) pads = pads || pad > 0;
    pads = pads && q.operation->get<std::string>("mode", "constant") == "constant";
    bool const zero = q.operation->get<double>("value", 0.0) == 0.0;
    detail::add_filled_rows(rows, {0}, !pads || zero);
}

/// reflection_pad, replication_pad: copies of elements.
inline void copying_pad_rule(op_query const& q, std::int64_t, row_list& rows) {
    detail::untouched_rows(detail::padded_dims(q.operation->get<std::vector<std::int64_t>>("padding", {}), q.operands[0].rank()), rows);
    detail::add_partial_rows(rows);
}
/// Their backward(grad, self, padding): linear in grad; of self only the sizes count.
inline void copying_pad_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    detail::untouched_rows(detail::padded_dims(q.operation->get<std::vector<std::int64_t>>("padding", {}), q.operands[0].rank()), rows);
    detail::add_linear_rows(rows, {0});
}

/// flip(self, dims), roll(self, shifts, dims): without dims roll runs over the flat tensor.
inline void reorder_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const dims = q.operation->get<std::vector<std::int64_t>>("dims", {});
    std::size_t const rank = q.operands[0].rank();
    std::vector<bool> touched(rank, dims.empty() && q.name() == "aten::roll");
    for (auto d : dims) touched[detail::absolute_dim(d, rank)] = true;
    detail::untouched_rows(touched, rows);
    detail::add_partial_rows(rows);
}

inline void add_padding_rules(rule_registry& r) {
    r.add_all({"aten::constant_pad_nd", "aten::pad"}, constant_pad_rule);
    r.add_all({"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::replication_pad1d", "aten::replication_pad2d"}, copying_pad_rule);
    r.add_all({"aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward", "aten::replication_pad1d_backward",
               "aten::replication_pad2d_backward"},
              copying_pad_backward_rule);
    r.add_all({"aten::flip", "aten::roll"}, reorder_rule);
}

}  // namespace cantle::rules
