// SPDX-License-Identifier: BSL-1.0
#pragma once
// Elementwise ops with broadcasting: a shard of an output dim is the same shard of every operand that has that dim.
// Partial passes only where the op is linear: jointly (add: P,P -> P) or in one operand while the others are Replicate (mul: P,R -> P).
#include <cantle/rules/registry.hpp>

namespace cantle::rules {

/// True when every value of `from` is a value of `to`, so that casting commutes with adding up (case E5: fp32 -> bf16 does not).
inline bool is_value_preserving(dtype from, dtype to) {
    auto const rank = [](dtype t) {
        switch (t) {
            case dtype::float64: return 4;
            case dtype::float32: return 3;
            case dtype::bfloat16: case dtype::float16: return 2;
            case dtype::float8_e4m3fn: case dtype::float8_e5m2: return 1;
            default: return 0;
        }
    };
    return from == to || (rank(from) > 0 && rank(to) > rank(from));
}

/// True when adding up values of `from` and casting to `to` may change places: no rounding cast, and no bool, whose sum is "or" (case E5).
inline bool carries_sums(dtype from, dtype to) { return to != dtype::boolean && is_value_preserving(from, to); }

/// How an elementwise op treats Partial(sum).
struct pointwise_traits {
    bool linear = false;                          ///< linear in the `linear_in` operands together: all of them P, the others R
    std::vector<std::size_t> linear_in{};         ///< empty: all operands
    std::vector<std::size_t> multilinear_in{};    ///< linear in each of these alone: one of them P, all others R
};

/// Placement of an operand of shape `operand` when dim `d` of the broadcast shape `full` is cut: its own dim, or R where it is broadcast.
inline placement broadcast_shard(shape const& operand, shape const& full, std::size_t d) {
    std::size_t const missing = full.size() - operand.size();
    if (d < missing || (operand[d - missing] == 1 && full[d] != 1)) return placement::replicate();
    return placement::shard(d - missing);
}

inline axis_rule pointwise_rule(pointwise_traits traits = {}) {
    return [traits](op_query const& q, std::int64_t, row_list& rows) {
        auto const& full = q.outputs[0].sizes;
        std::size_t const n = q.operands.size();
        for (std::size_t d = 0; d < full.size(); ++d) {
            axis_row row;
            for (auto const& x : q.operands) row.operands.push_back(broadcast_shard(x.sizes, full, d));
            for (auto const& y : q.outputs) row.outputs.push_back(y.defined ? broadcast_shard(y.sizes, full, d) : placement::replicate());
            rows.add(std::move(row));
        }
        auto const add_partial = [&](std::vector<std::size_t> const& which) {
            std::vector<placement> in(n);
            for (auto i : which) {
                if (i >= n || !carries_sums(q.operands[i].type, q.outputs[0].type)) return;
                in[i] = placement::partial();
            }
            rows.add(std::move(in), std::vector<placement>(q.outputs.size(), placement::partial()));
        };
        if (traits.linear && n > 0) {
            std::vector<std::size_t> which = traits.linear_in;
            for (std::size_t i = 0; traits.linear_in.empty() && i < n; ++i) which.push_back(i);
            add_partial(which);
        }
        for (auto i : traits.multilinear_in) add_partial({i});
    };
}

/// Casts and copies: Partial of any kind passes where the cast preserves values.
inline void cast_rule(op_query const& q, std::int64_t n, row_list& rows) {
    pointwise_rule()(q, n, rows);
    if (!is_value_preserving(q.operands[0].type, q.outputs[0].type)) return;
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        rows.add({placement::partial(kind)}, {placement::partial(kind)});
}

/// add(x, y, alpha), sub: linear in both together, never in one alone (DECISIONS 5, case E6). With integers of one type still exact.
inline void add_rule(op_query const& q, std::int64_t n, row_list& rows) {
    // A single tensor operand plus a literal is affine, not linear.
    pointwise_rule({.linear = q.operands.size() == 2, .linear_in = {}, .multilinear_in = {}})(q, n, rows);
}
/// mul(x, y): linear in each alone. A literal factor leaves one operand: linear.
inline void mul_rule(op_query const& q, std::int64_t n, row_list& rows) {
    pointwise_rule({.linear = false, .linear_in = {}, .multilinear_in = {0, 1}})(q, n, rows);
}
/// div(x, y): linear in the numerator, unless it rounds.
inline void div_rule(op_query const& q, std::int64_t n, row_list& rows) {
    bool const rounds = !q.operation->get<std::string>("rounding_mode", "").empty() || !is_floating_point(q.outputs[0].type);
    pointwise_rule({.linear = false, .linear_in = {}, .multilinear_in = rounds ? std::vector<std::size_t>{} : std::vector<std::size_t>{0}})(
        q, n, rows);
}

inline void add_pointwise_rules(rule_registry& r) {
    r.add_all({"aten::add.Tensor", "aten::sub.Tensor", "aten::add.Scalar", "aten::sub.Scalar"}, add_rule);
    r.add_all({"aten::mul.Tensor", "aten::mul.Scalar"}, mul_rule);
    r.add_all({"aten::div.Tensor", "aten::div.Scalar", "aten::div.Tensor_mode"}, div_rule);
    r.add("aten::neg", pointwise_rule({.linear = true, .linear_in = {}, .multilinear_in = {}}));
    r.add_all({"aten::_to_copy", "aten::clone", "aten::contiguous", "aten::alias", "aten::detach"}, cast_rule);
    // f'(x) * grad: linear in grad, which comes first
    pointwise_traits const in_grad{.linear = true, .linear_in = {0}, .multilinear_in = {}};
    r.add_all({"aten::silu_backward", "aten::gelu_backward", "aten::tanh_backward", "aten::sigmoid_backward", "aten::threshold_backward"},
              pointwise_rule(in_grad));
    // where(condition, x, y): linear in x and y together
    r.add("aten::where.self", pointwise_rule({.linear = true, .linear_in = {1, 2}, .multilinear_in = {}}));
    r.add_all({"aten::pow.Tensor_Scalar", "aten::pow.Tensor_Tensor", "aten::pow.Scalar", "aten::rsqrt", "aten::sqrt", "aten::reciprocal",
               "aten::exp", "aten::log", "aten::sin", "aten::cos", "aten::tanh", "aten::sigmoid", "aten::erf", "aten::abs", "aten::sign",
               "aten::silu", "aten::gelu", "aten::relu", "aten::maximum", "aten::minimum", "aten::clamp", "aten::clamp_min",
               "aten::bitwise_not", "aten::logical_not", "aten::bitwise_and.Tensor", "aten::bitwise_or.Tensor", "aten::logical_and",
               "aten::logical_or", "aten::eq.Tensor", "aten::ne.Tensor", "aten::lt.Tensor", "aten::le.Tensor", "aten::gt.Tensor",
               "aten::ge.Tensor", "aten::eq.Scalar", "aten::ne.Scalar", "aten::lt.Scalar", "aten::le.Scalar", "aten::gt.Scalar",
               "aten::ge.Scalar", "aten::masked_fill.Scalar", "aten::masked_fill.Tensor", "aten::ones_like", "aten::zeros_like",
               "aten::full_like", "aten::empty_like", "aten::rsub.Scalar"},
              pointwise_rule());
}

}  // namespace cantle::rules
