// SPDX-License-Identifier: BSL-1.0
#pragma once
// batch_norm over input [N, C, ...] and its backward, in evaluation (running statistics) and in training (statistics of the batch). A cut
// of the channels passes everywhere (case A34). Without training so does a cut of any other dim; in training it needs two reductions over
// [C] inside: forward of the sum and of the squared deviations, backward of the sums of the gradient with and without the normalised input.
#include <cantle/rules/local_steps.hpp>
#include <cantle/rules/normalisation.hpp>

namespace cantle::rules {

namespace detail {
inline bool is_training(op const& o) { return o.get<bool>("training", o.get<bool>("train", false)); }
/// Channels: of the statistics dim 0. Statistics that an evaluation does not keep have size 0.
inline placement channel_cut(tensor_meta const& t, std::int64_t channels) {
    if (!t.defined || t.rank() == 0) return placement::replicate();
    return t.rank() > 1 ? placement::shard(1) : t.sizes[0] == channels ? placement::shard(0) : placement::replicate();
}
inline void add_channel_row(op_query const& q, std::int64_t channels, row_list& rows) {
    axis_row row;
    for (auto const& t : q.operands) row.operands.push_back(channel_cut(t, channels));
    for (auto const& t : q.outputs) row.outputs.push_back(channel_cut(t, channels));
    rows.add(std::move(row));
}
}  // namespace detail

/// (input, weight?, bias?, running_mean?, running_var?, training, momentum, eps) -> (output, save_mean, save_invstd), and the new running
/// statistics where the op is functional.
inline void batch_norm_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const& sizes = q.operands[0].sizes;
    detail::add_channel_row(q, sizes[1], rows);
    bool const training = detail::is_training(*q.operation);
    inner_collective const sum{collective_kind::all_reduce, reduction::sum, true, 1};
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (d == 1) continue;
        axis_row row{std::vector<placement>(q.operands.size()), std::vector<placement>(q.outputs.size())};
        row.operands[0] = row.outputs[0] = placement::shard(d);
        if (training) row.inner = {sum, sum};
        rows.add(std::move(row));
    }
    detail::add_weight_and_bias(q, rows);
    auto const b = q.operation->slot("bias"), mean = q.operation->slot("running_mean");
    // (x - mean) s + b is linear in x, mean and b together; a functional op also gives the running mean back.
    if (!training) affine_rows(q, rows).jointly({0, mean, b}, {true, false, false, true});
}

/// (grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask) -> (grad_input, grad_weight,
/// grad_bias).
inline void batch_norm_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const& sizes = q.operands[0].sizes;
    detail::add_channel_row(q, sizes[1], rows);
    bool const training = detail::is_training(*q.operation);
    auto const mean = q.operation->slot("save_mean");
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (d == 1 || (training && !mean)) continue;
        auto const S = placement::shard(d);
        axis_row row{detail::only(q, {"grad_out", "input"}, S), detail::gradients(q, S, placement::partial()), {}, false};
        if (training) {
            inner_collective const sum{collective_kind::all_reduce, reduction::sum, false, *mean};
            row.outputs = detail::gradients(q, S, placement::replicate());
            row.inner = {sum, sum};
        }
        rows.add(std::move(row));
    }
    detail::add_backward_partials(q, rows);
    // Without training x - mean is linear in both, and only the weight's gradient sees it.
    if (!training)
        affine_rows(q, rows).jointly({q.operation->slot("input"), q.operation->slot("running_mean")}, {false, true, false});
}

namespace detail {
/// What both directions need of a cut batch: which dims and axes to sum over, and the global number of elements per channel.
struct batch_sums {
    local_program& p;
    dtype type;
    shape over{}, as_channels{};
    std::uint32_t axes = 0;
    double count = 1;

    batch_sums(local_program& program, port_view const& input, dtype statistics) : p(program), type(statistics) {
        for (std::size_t d = 0; d < input.global.rank(); ++d) {
            as_channels.push_back(d == 1 ? input.sizes()[1] : 1);
            if (d == 1) continue;
            over.push_back(static_cast<std::int64_t>(d));
            axes |= input.cut_axes(d);
            count *= static_cast<double>(input.global.sizes[d]);
        }
    }
    local_value binary(char const* name, local_value a, local_value b) const { return step(p, name, {{"self", a}, {"other", b}}); }
    local_value minus(local_value a, local_value b) const { return binary("aten::sub.Tensor", a, b); }
    local_value plus(local_value a, local_value b) const { return binary("aten::add.Tensor", a, b); }
    local_value times(local_value a, local_value b) const { return binary("aten::mul.Tensor", a, b); }
    local_value scaled(local_value a, double by) const { return step(p, "aten::mul.Scalar", {{"self", a}, {"other", by}}); }
    local_value mean_of(local_value sum) const { return step(p, "aten::div.Scalar", {{"self", sum}, {"other", count}}); }
    /// Over the batch of all ranks; [1, C, 1...].
    local_value sum(local_value x) const {
        return p.all_reduce(step(p, "aten::sum.dim_IntList", {{"self", x}, {"dim", over}, {"keepdim", true}}), axes, reduction::sum);
    }
    local_value broadcast(local_value c, dtype is) const {
        return step(p, "aten::view", {{"self", in_type(p, c, is, type)}, {"size", as_channels}});
    }
    local_value flat(local_value c, dtype wanted) const {
        return step(p, "aten::view", {{"self", in_type(p, c, type, wanted)}, {"size", shape{as_channels[1]}}});
    }
};
inline bool batch_is_cut(port_view const& input) {
    bool cut = false;
    for (std::size_t d = 0; d < input.global.rank(); ++d) cut = cut || (d != 1 && input.is_cut(d));
    return cut;
}
}  // namespace detail

inline void batch_norm_local(local_view const& v, local_program& p) {
    auto const& o = *v.operation;
    auto const& input = v.operands[0];
    if (!detail::is_training(o) || !detail::batch_is_cut(input)) return run_as_is(v, p);
    auto const type = v.outputs[1].global.type;
    detail::batch_sums const b(p, input, type);
    auto const type_of = [&v](local_value operand) { return v.operands[operand].global.type; };

    auto const x = in_type(p, 0, input.global.type, type);
    auto const mean = b.mean_of(b.sum(x));
    auto const centred = b.minus(x, mean);
    auto const variance = b.mean_of(b.sum(b.times(centred, centred)));
    auto const shifted = step(p, "aten::add.Scalar", {{"self", variance}, {"other", o.get<double>("eps", 1e-5)}});
    auto const inverse = step(p, "aten::rsqrt", {{"self", shifted}});
    auto y = b.times(centred, inverse);
    if (auto const w = o.slot("weight")) y = b.times(y, b.broadcast(*w, type_of(*w)));
    if (auto const c = o.slot("bias")) y = b.plus(y, b.broadcast(*c, type_of(*c)));
    std::vector<local_value> results{in_type(p, y, type, v.outputs[0].global.type), b.flat(mean, type), b.flat(inverse, type)};

    // Running statistics: new values as outputs, or written back where the op does that. The variance is unbiased there.
    double const momentum = o.get<double>("momentum", 0.1);
    bool const functional = v.outputs.size() > 3;
    auto const update = [&](char const* name, local_value of_batch) {
        auto const s = o.slot(name);
        if (!s) return;
        auto const wanted = type_of(*s);
        auto const kept = step(p, "aten::mul.Scalar", {{"self", local_value{*s}}, {"other", 1 - momentum}});
        auto const fresh = b.plus(kept, b.flat(b.scaled(of_batch, momentum), wanted));
        if (functional) results.push_back(fresh);
        else step(p, "aten::copy_", {{"self", local_value{*s}}, {"src", fresh}});
    };
    update("running_mean", mean);
    update("running_var", b.scaled(variance, b.count / (b.count - 1)));
    p.returns(std::move(results));
}

inline void batch_norm_backward_local(local_view const& v, local_program& p) {
    auto const& o = *v.operation;
    auto const& input = *v.operand("input");
    if (!detail::is_training(o) || !detail::batch_is_cut(input)) return run_as_is(v, p);
    auto const& mean = *v.operand("save_mean");
    auto const type = mean.global.type;
    detail::batch_sums const b(p, input, type);
    auto const value = [&](char const* name) { return local_value{*o.slot(name)}; };

    auto const grad = in_type(p, value("grad_out"), v.operand("grad_out")->global.type, type);
    auto const x = in_type(p, value("input"), input.global.type, type);
    auto const inverse = b.broadcast(value("save_invstd"), v.operand("save_invstd")->global.type);
    auto const normal = b.times(b.minus(x, b.broadcast(value("save_mean"), type)), inverse);
    auto const grad_bias = b.sum(grad), grad_weight = b.sum(b.times(grad, normal));
    auto const common = b.plus(b.mean_of(grad_bias), b.times(normal, b.mean_of(grad_weight)));
    auto grad_input = b.times(b.minus(grad, common), inverse);
    if (auto const w = v.operand("weight")) grad_input = b.times(grad_input, b.broadcast(value("weight"), w->global.type));

    // An output that nobody asked for stays undefined: the op itself, asked for nothing, makes such values.
    std::vector<local_value> results{in_type(p, grad_input, type, v.outputs[0].global.type), b.flat(grad_weight, v.outputs[1].global.type),
                                     b.flat(grad_bias, v.outputs[2].global.type)};
    bool all = true;
    for (auto const& out : v.outputs) all = all && out.global.defined;
    if (!all) {
        op call = o;
        set_argument(call, "output_mask", std::vector<bool>{false, false, false});
        std::vector<local_value> operands(v.operands.size());
        for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = static_cast<local_value>(i);
        auto const nothing = p.call(std::move(call), std::move(operands), 3);
        for (std::size_t i = 0; i < 3; ++i)
            if (!v.outputs[i].global.defined) results[i] = nothing + static_cast<local_value>(i);
    }
    p.returns(std::move(results));
}

inline void add_batch_norm_rules(rule_registry& r) {
    r.add_all({"aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit.no_stats",
               "aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit_no_training"},
              batch_norm_rule, batch_norm_local);
    r.add("aten::native_batch_norm_backward", batch_norm_backward_rule, batch_norm_backward_local);
}

}  // namespace cantle::rules
