// SPDX-License-Identifier: BSL-1.0
#pragma once
// Sums, products, quotients and powers of tensors and literals. A literal's sign is known to the rule; a tensor's is not.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

/// The kinds that c times x passes.
constexpr kind_set kinds_of_factor(double c) { return c >= 0 ? all_kinds : sums; }

/// a * self + b * other: linear in both together, affine in each (DECISIONS 5, case E6). Only the signs of a and b matter.
inline void weighted_sum_rows(op_query const& q, row_list& rows, double a, double b) {
    add_cuts(q, rows);
    bool const wraps = is_integer(q.outputs[0].type) && element_bytes(q.outputs[0].type) < 4;  // 255 + 10 is 9: no order
    auto const alone = [wraps](double weight) { return weight >= 0 && !wraps ? averages | extremes : averages; };
    if (auto const literal = number(*q.operation, "other")) {
        add_partials(q, rows, {"self"}, alone(a) | (*literal * b == 0 ? sums : no_kinds));
        return;
    }
    add_partials(q, rows, {"self", "other"}, sums);
    add_partials(q, rows, {"self"}, alone(a));
    add_partials(q, rows, {"other"}, alone(b));
    if (all_boolean(q)) add_partials(q, rows, {"self", "other"}, maxima);  // a sum of flags is their "or"
}
inline void add_rule(op_query const& q, std::int64_t, row_list& rows) { weighted_sum_rows(q, rows, 1, number(*q.operation, "alpha", 1)); }
inline void sub_rule(op_query const& q, std::int64_t, row_list& rows) { weighted_sum_rows(q, rows, 1, -number(*q.operation, "alpha", 1)); }
inline void rsub_rule(op_query const& q, std::int64_t, row_list& rows) { weighted_sum_rows(q, rows, -number(*q.operation, "alpha", 1), 1); }

/// mul(x, y): linear in each alone. The product of flags is their "and".
inline void mul_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    auto const factor = number(*q.operation, "other");
    add_partials(q, rows, {"self"}, all_boolean(q) ? extremes : factor ? kinds_of_factor(*factor) : sums);
    add_partials(q, rows, {"other"}, all_boolean(q) ? extremes : sums);
    if (all_boolean(q)) add_partials(q, rows, {"self", "other"}, minima);
}

/// div(x, y): linear in x unless it rounds; rounding keeps the order, so that a positive literal passes max and min all the same.
inline void div_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    bool const rounds = q.name().rfind("aten::floor_divide", 0) == 0 || !q.operation->get<std::string>("rounding_mode", "").empty();
    auto const divisor = number(*q.operation, "other");
    kind_set const kinds = divisor && *divisor > 0 ? all_kinds : sums;
    add_partials(q, rows, {"self"}, rounds ? kinds & extremes : kinds);
}

/// self + w * (end - self).
inline void lerp_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    auto const w = number(*q.operation, "weight");
    add_partials(q, rows, {"self", "end"}, sums);
    add_partials(q, rows, {"self"}, averages | (w && *w <= 1 ? extremes : no_kinds));
    add_partials(q, rows, {"end"}, averages | (w && *w >= 0 ? extremes : no_kinds));
    add_partials(q, rows, {"weight"}, averages);
}

/// self + value * tensor1 * tensor2, or / tensor2 (`divides`), in which nothing is linear in the divisor.
inline axis_rule addc_rule(bool divides) {
    return [divides](op_query const& q, std::int64_t, row_list& rows) {
        add_cuts(q, rows);
        add_partials(q, rows, {"self", "tensor1"}, sums);
        if (!divides) add_partials(q, rows, {"self", "tensor2"}, sums);
        add_partials(q, rows, {"self"}, averages | extremes);
        add_partials(q, rows, {"tensor1"}, averages);
        if (!divides) add_partials(q, rows, {"tensor2"}, averages);
    };
}

/// pow(x, c): the identity, an odd power (which rises everywhere), or a root, which rises from 0 on: the parts of a minimum are not below
/// the whole, those of a maximum may be.
inline void pow_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    double const c = number(*q.operation, "exponent", 0);
    bool const whole = std::floor(c) == c;
    kind_set const kinds = c == 1 ? all_kinds : c <= 0 ? no_kinds : !whole ? minima : std::fmod(c, 2) == 1 ? extremes : no_kinds;
    add_partials(q, rows, {"self"}, kinds);
}
/// pow(c, x): rises with x for c >= 1.
inline void exponential_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"exponent"}, number(*q.operation, "self", 0) >= 1 ? extremes : no_kinds);
}

inline void add_arithmetic_rules(rule_registry& r) {
    r.add_all({"aten::add.Tensor", "aten::add.Scalar"}, add_rule);
    r.add_all({"aten::sub.Tensor", "aten::sub.Scalar"}, sub_rule);
    r.add_all({"aten::rsub.Tensor", "aten::rsub.Scalar"}, rsub_rule);
    r.add_all({"aten::mul.Tensor", "aten::mul.Scalar"}, mul_rule);
    r.add_all({"aten::div.Tensor", "aten::div.Scalar", "aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::floor_divide",
               "aten::floor_divide.Scalar"},
              div_rule);
    r.add_all({"aten::lerp.Scalar", "aten::lerp.Tensor"}, lerp_rule);
    r.add("aten::addcmul", addc_rule(false));
    r.add("aten::addcdiv", addc_rule(true));
    r.add("aten::pow.Tensor_Scalar", pow_rule);
    r.add("aten::pow.Scalar", exponential_rule);
    r.add_all({"aten::pow.Tensor_Tensor", "aten::fmod.Tensor", "aten::fmod.Scalar", "aten::remainder.Tensor", "aten::remainder.Scalar",
               "aten::remainder.Scalar_Tensor", "aten::atan2", "aten::hypot"},
              pointwise_rule());
    r.add("aten::xlogy.Tensor", pointwise_rule());  // x log y, but 0 where x is 0: not linear at y = 0
}

}  // namespace cantle::rules
