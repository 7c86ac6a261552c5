// SPDX-License-Identifier: BSL-1.0
#pragma once
// Elementwise ops with broadcasting: what their rules are made of. A cut of an output dim is the same cut of every operand that has that
// dim. Partial passes where the function allows it, with f taken in the operands that hold it and the others whole:
//   linear f (f(x+y) = f(x)+f(y)):  sum and avg           affine f (x + c):  avg only, since sum would count c once per rank (case E6)
//   rising f (order is kept):       max and min           falling f: none, as max would become min, and a row has one kind
//   a positive multiple of x: all four; a choice of elements (where, masked_fill): avg, max and min, and all four in both branches.
#include <cantle/rules/partial_kinds.hpp>
#include <cantle/rules/registry.hpp>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace cantle::rules {

/// Placement of an operand of shape `operand` when dim `d` of the broadcast shape `full` is cut: its own dim, or R where it is broadcast.
inline placement broadcast_shard(shape const& operand, shape const& full, std::size_t d) {
    std::size_t const missing = full.size() - operand.size();
    if (d < missing || (operand[d - missing] == 1 && full[d] != 1)) return placement::replicate();
    return placement::shard(d - missing);
}

/// A row per dim of the output: that dim cut everywhere.
inline void add_cuts(op_query const& q, row_list& rows) {
    auto const& full = q.outputs[0].sizes;
    for (std::size_t d = 0; d < full.size(); ++d) {
        axis_row row;
        for (auto const& x : q.operands) row.operands.push_back(broadcast_shard(x.sizes, full, d));
        for (auto const& y : q.outputs)  // an output of another shape is a workspace that this device leaves empty
            row.outputs.push_back(y.defined && y.sizes.size() == full.size() ? placement::shard(d) : placement::replicate());
        rows.add(std::move(row));
    }
}

/// A row per kind: the operands `in` hold it, and so do all outputs. Whether types allow it is the caller's concern.
inline void add_partials_of(op_query const& q, row_list& rows, std::vector<std::size_t> const& in, kind_set kinds) {
    for (auto kind : every_kind) {
        if (!(kinds & kind_bit(kind))) continue;
        axis_row row{std::vector<placement>(q.operands.size()), {}};
        for (auto i : in) row.operands[i] = placement::partial(kind);
        for (auto const& y : q.outputs) row.outputs.push_back(y.defined ? placement::partial(kind) : placement::replicate());
        rows.add(std::move(row));
    }
}
/// The same, less the kinds that get lost between the operands' types and the output's.
inline void add_partials(op_query const& q, row_list& rows, std::vector<std::size_t> const& in, kind_set kinds) {
    for (auto i : in) kinds = carried(kinds, q.operands[i].type, q.outputs[0].type);
    add_partials_of(q, rows, in, kinds);
}
/// Operands by the names of their arguments; no row where one of them is a literal or absent.
inline std::vector<std::size_t> slots(op_query const& q, std::initializer_list<std::string_view> names) {
    std::vector<std::size_t> found;
    for (auto name : names)
        if (auto const s = q.operation->slot(name)) found.push_back(*s);
    return found.size() == names.size() ? found : std::vector<std::size_t>{};
}
inline void add_partials(op_query const& q, row_list& rows, std::initializer_list<std::string_view> names, kind_set kinds) {
    if (auto const in = slots(q, names); !in.empty()) add_partials(q, rows, in, kinds);
}

/// The number of that name, or nothing where it is a tensor, None or absent.
inline std::optional<double> number(op const& o, std::string_view name) {
    auto const* v = o.find(name);
    if (!v) return std::nullopt;
    if (auto const* i = std::get_if<std::int64_t>(v)) return static_cast<double>(*i);
    if (auto const* d = std::get_if<double>(v)) return *d;
    if (auto const* b = std::get_if<bool>(v)) return *b ? 1.0 : 0.0;
    return std::nullopt;
}
inline double number(op const& o, std::string_view name, double fallback) { return number(o, name).value_or(fallback); }
inline bool all_boolean(op_query const& q) {
    for (auto const& x : q.operands)
        if (x.type != dtype::boolean) return false;
    return true;
}

/// A function of one operand, or of its first operand while the others are whole, that passes these kinds.
inline axis_rule passing_rule(kind_set kinds) {
    return [kinds](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        if (!q.operands.empty()) add_partials(q, rows, std::vector<std::size_t>{0}, kinds);
    };
}

/// How an elementwise op of yours treats Partial; by default it stops it.
struct pointwise_traits {
    bool linear = false;                        ///< linear in the `linear_in` operands together: all of them sum or avg, the others R
    std::vector<std::size_t> linear_in{};       ///< empty: all operands
    std::vector<std::size_t> multilinear_in{};  ///< linear in each of these alone: one of them sum or avg, all others R
    std::vector<std::size_t> rising_in{};       ///< never falls when one of these alone grows: max and min pass
};
inline axis_rule pointwise_rule(pointwise_traits traits = {}) {
    return [traits](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        std::size_t const n = q.operands.size();
        auto const pass = [&](std::vector<std::size_t> const& which, kind_set kinds) {
            for (auto i : which)
                if (i >= n) return;
            add_partials(q, rows, which, kinds);
        };
        if (traits.linear && n > 0) {
            std::vector<std::size_t> which = traits.linear_in;
            for (std::size_t i = 0; traits.linear_in.empty() && i < n; ++i) which.push_back(i);
            pass(which, sums);
        }
        for (auto i : traits.multilinear_in) pass({i}, sums);
        for (auto i : traits.rising_in) pass({i}, extremes);
    };
}

}  // namespace cantle::rules
