// SPDX-License-Identifier: BSL-1.0
#pragma once
// Convolution of input [N, C, ...] and weight [out, C/groups, ...] (transposed: [C, out/groups, ...]) and its backward; bilinear, so the
// rows are those of a product: batch, output channels, input channels (contracted: the bias is then Partial as well, case E6), and image
// dims whose windows do not overlap. Groups: whole groups may be cut; channels inside of the groups too, behind a whole factor.
#include <cantle/rules/affine.hpp>
#include <cantle/rules/local_program.hpp>
#include <cantle/rules/windows.hpp>

namespace cantle::rules {

namespace detail {
/// Groups of local tensors: a cut of whole groups leaves fewer of them. `out` is the output or its gradient.
inline std::int64_t local_groups(op const& o, shape const& input, shape const& weight, shape const& out) {
    if (o.get<std::int64_t>("groups", 1) == 1 || weight[1] == 0) return 1;
    return (o.get<bool>("transposed", false) ? out[1] : input[1]) / weight[1];
}

/// A cut of input, weight, bias and output alike, forward or backward. The bias of contracted channels is Partial, its gradient whole.
struct convolution_cut { placement input, weight, bias, output; };

inline std::vector<convolution_cut> convolution_cuts(op_query const& q, tensor_meta const& input, tensor_meta const& weight,
                                                     tensor_meta const& out, std::int64_t n) {
    auto const R = placement::replicate();
    auto const S = [](std::size_t d, std::int64_t outer = 1) { return placement::shard(d, outer); };
    auto const& o = *q.operation;
    bool const transposed = o.get<bool>("transposed", false);
    auto const groups = local_groups(o, input.sizes, weight.sizes, out.sizes);
    std::vector<convolution_cut> cuts{{S(0), R, R, S(0)}};
    for (std::size_t d = 2; d < input.rank(); ++d) {
        auto const stride = entry_of(o, "stride", d - 2, 1), padding = entry_of(o, "padding", d - 2, 0);
        auto extent = entry_of(o, "dilation", d - 2, 1) * (weight.sizes[d] - 1) + 1;
        // A transposed convolution spreads every input element over a window of the output.
        if (transposed) extent += entry_of(o, "output_padding", d - 2, 0);
        bool const tile = transposed ? windows_tile(out.sizes[d], input.sizes[d], extent, stride, padding)
                                     : windows_tile(input.sizes[d], out.sizes[d], extent, stride, padding);
        if (tile) cuts.push_back({S(d), R, R, S(d)});
    }
    if (groups > 1 && groups % n == 0) cuts.push_back({S(1), S(0), S(0), S(1)});
    auto const weight_in = transposed ? S(0, groups) : S(1), weight_out = transposed ? S(1) : S(0, groups);
    cuts.push_back({R, weight_out, S(0, groups), S(1, groups)});
    cuts.push_back({S(1, groups), weight_in, placement::partial(), placement::partial()});
    return cuts;
}
}  // namespace detail

/// convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups).
inline void convolution_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const bias = q.operation->slot("bias");
    for (auto const& c : detail::convolution_cuts(q, q.operands[0], q.operands[1], q.outputs[0], n)) {
        std::vector<placement> in{c.input, c.weight};
        if (bias) in.push_back(c.bias);
        rows.add(std::move(in), {c.output});
    }
    affine_rows(q, rows).jointly({0, bias}).jointly({1, bias}).addend(bias);
}

/// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask) -> (grad_input, grad_weight, grad_bias).
inline void convolution_backward_rule(op_query const& q, std::int64_t n, row_list& rows) {
    auto const P = placement::partial(), R = placement::replicate();
    for (auto const& c : detail::convolution_cuts(q, q.operands[1], q.operands[2], q.operands[0], n)) {
        bool const contracted = c.output.is_partial();
        // The gradient of a tensor that the cut leaves whole adds up over the ranks; that of a bias follows the gradient given.
        std::vector<placement> out{c.input.is_replicate() ? P : c.input, c.weight.is_replicate() ? P : c.weight,
                                   contracted ? R : c.bias.is_replicate() ? P : c.bias};
        for (std::size_t o = 0; o < 3; ++o)
            if (!q.outputs[o].defined) out[o] = R;
        rows.add({contracted ? R : c.output, c.input, c.weight}, std::move(out));
    }
    affine_rows partial(q, rows);
    partial.jointly({0}).jointly({1}, {false, true, false}).jointly({2}, {true, false, false});
    for (auto kind : {reduction::sum, reduction::avg})
        if (q.outputs[0].defined && q.outputs[1].defined) partial.passing({1, 2}, kind, {true, true, false});
}

/// The literals groups and bias_sizes of what the rank holds.
inline void convolution_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const* grad = v.operand("grad_output");
    auto const& out = grad ? grad->sizes() : v.outputs[0].sizes();
    set_argument(o, "groups", detail::local_groups(o, v.operand("input")->sizes(), v.operand("weight")->sizes(), out));
    if (auto const* sizes = o.find("bias_sizes"); grad && sizes && std::holds_alternative<std::vector<std::int64_t>>(*sizes))
        set_argument(o, "bias_sizes", shape{out[1]});
    run_whole(std::move(o), v, p);
}

inline void add_convolution_rules(rule_registry& r) {
    r.add("aten::convolution", convolution_rule, convolution_local);
    r.add("aten::convolution_backward", convolution_backward_rule, convolution_local);
}

}  // namespace cantle::rules
