// SPDX-License-Identifier: BSL-1.0
#pragma once
// What every row of every rule must keep to, checked at registration where an example is given, and always at expansion.
#include <cantle/base/error.hpp>
#include <cantle/rules/axis_row.hpp>

#include <string>

namespace cantle {

namespace detail {
inline error bad_row(std::string const& op_name, axis_row const& row, std::string const& why) {
    return error(error_code::bad_rule, "rule of " + op_name + ", row '" + text_of(row) + "'", why,
                 "mend the rule: one placement per operand and output, dims that exist, one kind of Partial in a row");
}

/// One kind of Partial per row: nothing that a rank runs turns one kind into another on the same axis.
inline void check_kinds(std::string const& op_name, axis_row const& row) {
    placement const* first = nullptr;
    for (auto const* list : {&row.operands, &row.outputs})
        for (auto const& p : *list) {
            if (!p.is_partial()) continue;
            if (first && first->reduce != p.reduce)
                throw bad_row(op_name, row, "it mixes kinds of Partial: " + to_string(*first) + " and " + to_string(p));
            first = &p;
        }
}
}  // namespace detail

/// Throws bad_rule naming rule and row where `row` is none of that op: wrong arity, a dim that does not exist, mixed kinds of Partial, an
/// inner collective of no tensor, a value that is none of its enumeration.
inline void check_row(op_query const& q, axis_row const& row) {
    auto const fail = [&](std::string const& why) { return detail::bad_row(q.name(), row, why); };
    if (row.operands.size() != q.operands.size())
        throw fail("it places " + std::to_string(row.operands.size()) + " operands, the op has " + std::to_string(q.operands.size()));
    if (row.outputs.size() != q.outputs.size())
        throw fail("it places " + std::to_string(row.outputs.size()) + " outputs, the op has " + std::to_string(q.outputs.size()));
    auto const check = [&](placement p, tensor_meta const& t, char const* which, std::size_t i) {
        if (p.kind > placement_kind::partial || p.reduce > reduction::min)
            throw fail(which + std::to_string(i) + " has no known placement");
        if (p.is_shard() && p.dim >= t.rank())
            throw fail(which + std::to_string(i) + " has no dim " + std::to_string(p.dim));
        if (p.outer < 1) throw fail(which + std::to_string(i) + " has an outer factor below 1");
    };
    for (std::size_t i = 0; i < row.operands.size(); ++i) check(row.operands[i], q.operands[i], "operand ", i);
    for (std::size_t i = 0; i < row.outputs.size(); ++i)
        if (q.outputs[i].defined) check(row.outputs[i], q.outputs[i], "output ", i);
    detail::check_kinds(q.name(), row);
    for (auto const& c : row.inner) {
        if (c.kind > collective_kind::permute || c.reduce > reduction::min) throw fail("an inner collective is of no known kind");
        if (c.index >= (c.on_output ? row.outputs.size() : row.operands.size()))
            throw fail("an inner collective names a tensor that the op does not have");
        if (c.scale < 1 || c.bytes < 0) throw fail("an inner collective has no message");
    }
}

}  // namespace cantle
