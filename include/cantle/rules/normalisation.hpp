// SPDX-License-Identifier: BSL-1.0
#pragma once
// layer_norm over the trailing dims and its backward. The dims in front pass; the gradients of weight and bias are sums over them.
#include <cantle/rules/registry.hpp>

namespace cantle::rules {

/// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd).
inline void layer_norm_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const trailing = q.operation->get<std::vector<std::int64_t>>("normalized_shape", {}).size();
    for (std::size_t d = 0; d + trailing < q.operands[0].rank(); ++d) {
        std::vector<placement> in(q.operands.size());
        in[0] = placement::shard(d);
        rows.add(std::move(in), std::vector<placement>(q.outputs.size(), placement::shard(d)));
    }
}

/// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask) -> (grad_input, grad_weight,
/// grad_bias). Undefined outputs carry no placement (case A35). Linear in grad_out.
inline void layer_norm_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const trailing = q.operation->get<std::vector<std::int64_t>>("normalized_shape", {}).size();
    auto const outputs = [&](placement grad_input, placement grad_parameter) {
        std::vector<placement> out(q.outputs.size());
        for (std::size_t o = 0; o < out.size(); ++o)
            if (q.outputs[o].defined) out[o] = o == 0 ? grad_input : grad_parameter;
        return out;
    };
    std::size_t const rank = q.operands[0].rank();
    for (std::size_t d = 0; d + trailing < rank; ++d) {
        std::vector<placement> in(q.operands.size());
        for (auto name : {"grad_out", "input", "mean", "rstd"})
            if (auto const s = q.operation->slot(name)) in[*s] = placement::shard(d);
        rows.add(std::move(in), outputs(placement::shard(d), placement::partial()));
    }
    std::vector<placement> in(q.operands.size());
    in[0] = placement::partial();
    rows.add(std::move(in), outputs(placement::partial(), placement::partial()));
}

inline void add_normalisation_rules(rule_registry& r) {
    r.add("aten::native_layer_norm", layer_norm_rule);
    r.add("aten::native_layer_norm_backward", layer_norm_backward_rule);
}

}  // namespace cantle::rules
