// SPDX-License-Identifier: BSL-1.0
#pragma once
// Comparisons, logic, the larger and the smaller, choices between tensors. "False" is below "true": x > c rises with x and passes max and
// min as flags; "and" is the minimum of flags and "or" the maximum.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

/// A comparison that rises with the operand `rising` ("" for eq and ne, which rise with none).
inline axis_rule comparison_rule(char const* rising) {
    return [rising](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        if (auto const s = q.operation->slot(rising); s && kinds_of(q.operands[*s].type) & extremes)
            add_partials_of(q, rows, {*s}, extremes);
    };
}

/// "and" (together: minima) or "or" (together: maxima) of flags; bit patterns and numbers have no such order.
inline axis_rule logic_rule(kind_set together) {
    return [together](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        if (!all_boolean(q)) return;
        add_partials(q, rows, {"self", "other"}, together);
        add_partials(q, rows, {"self"}, extremes);
        add_partials(q, rows, {"other"}, extremes);
    };
}

/// maximum (together: maxima), minimum and the clamps: `bound` is the second operand, or a literal.
inline axis_rule bound_rule(kind_set together, char const* bound) {
    return [together, bound](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        add_partials(q, rows, {"self", bound}, together);
        add_partials(q, rows, {"self"}, extremes);
        add_partials(q, rows, {bound}, extremes);
    };
}
/// clamp(x, min, max) = minimum(maximum(x, min), max), bounds being tensors, literals or absent.
inline void clamp_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"self", "min"}, maxima);
    add_partials(q, rows, {"self", "max"}, minima);
    add_partials(q, rows, {"min", "max"}, minima);
    for (auto name : {"self", "min", "max"}) add_partials(q, rows, {name}, extremes);
}

/// Elements of one value or of the other: the condition is whole. A literal 0 in place of the other changes no sum.
inline axis_rule choice_rule(char const* one, char const* other) {
    return [one, other](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        auto const alone = [&](char const* beside) {
            auto const literal = number(*q.operation, beside);
            return literal && *literal == 0 ? all_kinds : averages | extremes;
        };
        add_partials(q, rows, {one, other}, all_kinds);
        add_partials(q, rows, {one}, alone(other));
        add_partials(q, rows, {other}, alone(one));
    };
}
/// where(condition, a, b) of two literals rises with the condition for a >= b.
inline void literal_choice_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    if (number(*q.operation, "self", 0) >= number(*q.operation, "other", 0)) add_partials(q, rows, {"condition"}, extremes);
}
/// Shifts of whole numbers: a product with a power of two, or a quotient rounded down.
inline axis_rule shift_rule(kind_set kinds) {
    return [kinds](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        add_partials(q, rows, {"self"}, kinds);
    };
}

inline void add_comparison_rules(rule_registry& r) {
    r.add_all({"aten::gt.Tensor", "aten::gt.Scalar", "aten::ge.Tensor", "aten::ge.Scalar"}, comparison_rule("self"));
    r.add_all({"aten::lt.Tensor", "aten::lt.Scalar", "aten::le.Tensor", "aten::le.Scalar"}, comparison_rule("other"));
    r.add_all({"aten::eq.Tensor", "aten::eq.Scalar", "aten::ne.Tensor", "aten::ne.Scalar"}, comparison_rule(""));
    r.add_all({"aten::bitwise_and.Tensor", "aten::bitwise_and.Scalar", "aten::logical_and", "aten::__and__.Tensor", "aten::__and__.Scalar"},
              logic_rule(minima));
    r.add_all({"aten::bitwise_or.Tensor", "aten::bitwise_or.Scalar", "aten::logical_or", "aten::__or__.Tensor", "aten::__or__.Scalar"},
              logic_rule(maxima));
    r.add_all({"aten::bitwise_not", "aten::logical_not", "aten::bitwise_xor.Tensor", "aten::bitwise_xor.Scalar", "aten::logical_xor",
               "aten::__xor__.Tensor", "aten::__xor__.Scalar"},
              pointwise_rule());
    r.add_all({"aten::bitwise_left_shift.Tensor", "aten::bitwise_left_shift.Tensor_Scalar", "aten::__lshift__.Scalar"},
              shift_rule(all_kinds));
    r.add_all({"aten::bitwise_right_shift.Tensor", "aten::bitwise_right_shift.Tensor_Scalar", "aten::__rshift__.Scalar"},
              shift_rule(extremes));
    r.add_all({"aten::maximum", "aten::max.other"}, bound_rule(maxima, "other"));
    r.add_all({"aten::minimum", "aten::min.other"}, bound_rule(minima, "other"));
    r.add_all({"aten::clamp_min", "aten::clamp_min.Tensor"}, bound_rule(maxima, "min"));
    r.add_all({"aten::clamp_max", "aten::clamp_max.Tensor"}, bound_rule(minima, "max"));
    r.add_all({"aten::clamp", "aten::clamp.Tensor"}, clamp_rule);
    r.add_all({"aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther"}, choice_rule("self", "other"));
    r.add("aten::where.Scalar", literal_choice_rule);
    r.add_all({"aten::masked_fill.Scalar", "aten::masked_fill.Tensor"}, choice_rule("self", "value"));
}

}  // namespace cantle::rules
