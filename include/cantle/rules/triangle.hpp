// SPDX-License-Identifier: BSL-1.0
#pragma once
// Matrices known by their diagonal: tril, triu and eye. A cut of rows or columns moves the diagonal by the rank's offset.
#include <cantle/rules/factory.hpp>

namespace cantle::rules {

/// tril, triu: some elements, zeros for the rest. All dims may be cut, and every kind passes.
inline void triangle_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"self"}, all_kinds);
}
/// Row i and column j of a rank are i + rows and j + columns of the whole: j - i against diagonal + rows - columns.
inline void triangle_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const& x = v.outputs[0];
    std::size_t const rank = x.sizes().size();
    set_argument(o, "diagonal", o.get<std::int64_t>("diagonal", 0) + x.offset(rank - 2) - x.offset(rank - 1));
    run_whole(std::move(o), v, p);
}

/// eye(n), eye(n, m): where the row's number is the column's.
inline void eye_local(local_view const& v, local_program& p) {
    auto const& x = v.outputs[0];
    argument_value const device = v.operation->find("device") ? *v.operation->find("device") : argument_value{};
    auto const numbers = [&](std::size_t dim) {
        auto const first = x.offset(dim);
        return p.call({"aten::arange.start_step",
                       {{"start", first}, {"end", first + x.sizes()[dim]}, {"step", std::int64_t{1}}, {"dtype", dtype::int64},
                        {"layout", {}}, {"device", device}, {"pin_memory", {}}}}, {});
    };
    auto const row = numbers(0), column = numbers(1);
    auto const upright = p.call({"aten::unsqueeze", {{"self", operand_slot{0}}, {"dim", std::int64_t{1}}}}, {row});
    auto const equal = p.call({"aten::eq.Tensor", {{"self", operand_slot{0}}, {"other", operand_slot{1}}}}, {upright, column});
    p.returns({p.call({"aten::_to_copy", {{"self", operand_slot{0}}, {"dtype", x.global.type}}}, {equal})});
}

inline void add_triangle_rules(rule_registry& r) {
    r.add_all({"aten::tril", "aten::triu"}, triangle_rule, triangle_local);
    r.add_all({"aten::eye", "aten::eye.m"}, fill_rule, eye_local);
}

}  // namespace cantle::rules
