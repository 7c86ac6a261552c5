// SPDX-License-Identifier: BSL-1.0
#pragma once
// Functions of one tensor: roots, exponentials, roundings, activations; and the backward of activations. Rising functions pass max and min;
// those that rise only from some value on (sqrt, log) pass min alone, because the parts of a maximum may lie below it. The backward ops are
// linear in the gradient, and where the activation never falls they scale it by something not negative: then all kinds pass.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

/// leaky_relu and elu rise unless their negative branch is turned round.
inline void bent_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    bool rises = true;
    for (auto name : {"negative_slope", "alpha", "scale", "input_scale"}) rises = rises && number(*q.operation, name, 1) >= 0;
    add_partials(q, rows, {"self"}, rises ? extremes : no_kinds);
}
/// Their backward. elu's may read the result in place of the input; only the input tells that the slope is not negative.
inline void bent_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    bool rises = !q.operation->get<bool>("is_result", false);
    for (auto name : {"negative_slope", "alpha", "scale", "input_scale"}) rises = rises && number(*q.operation, name, 1) >= 0;
    add_partials(q, rows, {"grad_output"}, rises ? all_kinds : sums);
}

/// softplus is x above its threshold and jumps down there by log(1 + exp(-threshold)): nothing from 20 on, but not below.
inline void softplus_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    bool const rises = number(*q.operation, "beta", 1) > 0 && number(*q.operation, "threshold", 20) >= 20;
    add_partials(q, rows, {"self"}, rises ? extremes : no_kinds);
}
/// x where x > threshold, else value.
inline void threshold_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    bool const rises = number(*q.operation, "value", 0) <= number(*q.operation, "threshold", 0);
    add_partials(q, rows, {"self"}, rises ? extremes : no_kinds);
}

/// glu(x, dim): halves dim, so that its cut would part the halves. glu_backward is linear in the gradient.
inline void glu_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.outputs[0].rank();
    auto const given = q.operation->get<std::int64_t>("dim", -1);
    auto const dim = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(rank) : given);
    for (std::size_t d = 0; d < rank; ++d)
        if (d != dim) rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d)});
    add_partials(q, rows, {"grad_output"}, sums);
}

inline void add_activation_rules(rule_registry& r) {
    r.add_all({"aten::sign", "aten::relu", "aten::relu6", "aten::exp", "aten::exp2", "aten::expm1", "aten::tanh", "aten::sigmoid",
               "aten::erf", "aten::floor", "aten::ceil", "aten::round", "aten::round.decimals", "aten::trunc", "aten::atan", "aten::sinh",
               "aten::asinh", "aten::hardtanh", "aten::hardsigmoid", "aten::selu", "aten::celu", "aten::softshrink",
               "aten::hardshrink", "aten::sgn"},
              passing_rule(extremes));
    r.add_all({"aten::sqrt", "aten::log", "aten::log2", "aten::log10", "aten::log1p"}, passing_rule(minima));
    r.add("aten::neg", passing_rule(sums));
    r.add_all({"aten::leaky_relu", "aten::elu"}, bent_rule);
    r.add("aten::softplus", softplus_rule);
    r.add("aten::threshold", threshold_rule);
    r.add_all({"aten::abs", "aten::square", "aten::rsqrt", "aten::reciprocal", "aten::sin", "aten::cos", "aten::tan", "aten::cosh",
               "aten::asin", "aten::acos", "aten::erfc", "aten::erfinv", "aten::logit", "aten::frac", "aten::silu", "aten::gelu",
               "aten::mish", "aten::hardswish", "aten::log_sigmoid_forward", "aten::isnan", "aten::isinf", "aten::isfinite",
               "aten::nan_to_num"},
              pointwise_rule());

    r.add_all({"aten::silu_backward", "aten::gelu_backward", "aten::mish_backward", "aten::hardswish_backward", "aten::tanh_backward",
               "aten::sigmoid_backward"},
              passing_rule(sums));
    r.add_all({"aten::threshold_backward", "aten::hardtanh_backward", "aten::hardsigmoid_backward", "aten::softplus_backward",
               "aten::log_sigmoid_backward"},
              passing_rule(all_kinds));
    r.add_all({"aten::leaky_relu_backward", "aten::elu_backward"}, bent_backward_rule);
    r.add_all({"aten::glu", "aten::glu_backward"}, glu_rule);
}

}  // namespace cantle::rules
