// SPDX-License-Identifier: BSL-1.0
#pragma once
// Vector norms. A cut of a reduced dim leaves a sum for the 1-norm (and for the count, ord 0), a maximum or minimum for the infinite ones.
// For the others the powers are summed up inside the op (an inner collective), so that clipping by norm never gathers a gradient; there is
// no Partial kind for them (cases A16, A19), and no norm passes a partial operand (case A17).
#include <cantle/rules/reduction.hpp>

namespace cantle::rules {

namespace detail {
/// "ord" of linalg_vector_norm, "p" of norm; None means 2.
inline double order_of_norm(op const& o) { return number(o, "ord").value_or(number(o, "p", 2)); }
/// What ranks that hold shares of the vector are left with, or nothing where no reduction of norms is the norm.
inline std::optional<reduction> kind_of_norm(double order) {
    if (std::isinf(order)) return order > 0 ? reduction::max : reduction::min;
    if (order == 0 || order == 1) return reduction::sum;
    return std::nullopt;
}
/// May the powers be summed: a positive order, and an output that does not round the powers to a few bits.
inline bool sums_powers(double order, dtype out) { return order > 0 && std::isfinite(order) && element_bytes(out) >= 4; }
/// The norm of the whole from a rank's norm: its power, summed over the axes of the mask, and the root.
inline local_value add_up_powers(local_program& p, local_value norm, std::uint32_t axes, double order) {
    auto const power = [&p](local_value of, double exponent) {
        return p.call({"aten::pow.Tensor_Scalar", {{"self", operand_slot{0}}, {"exponent", exponent}}}, {of});
    };
    return power(p.all_reduce(power(norm, order), axes, reduction::sum), 1 / order);
}
}  // namespace detail

inline void norm_rule(op_query const& q, std::int64_t n, row_list& rows) {
    double const order = detail::order_of_norm(*q.operation);
    auto const kind = detail::kind_of_norm(order);
    reduction_rule(kind)(q, n, rows);
    if (kind || !detail::sums_powers(order, q.outputs[0].type)) return;
    detail::for_each_dim(q, [&](std::size_t d, bool reduced, std::size_t) {
        if (reduced)
            rows.add(axis_row{{placement::shard(d)}, {placement::replicate()}, {{collective_kind::all_reduce, reduction::sum, true, 0}}});
    });
}
inline void norm_local(local_view const& v, local_program& p) {
    double const order = detail::order_of_norm(*v.operation);
    if (detail::kind_of_norm(order)) return run_as_is(v, p);
    tensor_meta const in[] = {v.operands[0].global}, out[] = {v.outputs[0].global};
    std::uint32_t axes = 0;
    detail::for_each_dim(op_query{v.operation, in, out}, [&](std::size_t d, bool reduced, std::size_t) {
        if (reduced) axes |= v.operands[0].cut_axes(d);
    });
    if (!axes) return run_as_is(v, p);
    auto const norm = p.call(*v.operation, {0});
    p.returns({detail::add_up_powers(p, norm, axes, order)});
}

inline void add_norm_rules(rule_registry& r) {
    r.add_all({"aten::linalg_vector_norm", "aten::norm.Scalar", "aten::norm.ScalarOpt_dim", "aten::norm.ScalarOpt_dim_dtype",
               "aten::norm.ScalarOpt_dtype"},
              norm_rule, norm_local);
}

}  // namespace cantle::rules
