// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

namespace {
/// An optional tensor argument.
sample& optional(sample& made, char const* name, at::Tensor const& t) { return t.defined() ? made.arg(name, t) : made.arg(name, none); }
/// What a split into large parts that cancel leaves of its digits must suffice: values well above 1.
at::Tensor large(shape const& x) { return eighths(x) * 32; }
std::vector<std::vector<bool>> const masks{{true, true, true},   {true, false, true}, {false, true, true},
                                           {true, false, false}, {true, true, false}, {false, true, false}};
}  // namespace

void add_layer_norm_samples(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 24}, {24}}, {{2, 12, 8}, {8}}, {{12, 4, 6}, {4, 6}},
                                             {{24}, {24}},     {{1, 12, 5}, {5}}, {{2, 3, 4, 6}, {6}}};
    for (auto const& [x, normalised] : cases) {
        auto const input = eighths(x), weight = large(normalised), bias = large(normalised);
        for (auto const& parameters : {std::pair{weight, bias}, std::pair{weight, at::Tensor()}, std::pair{at::Tensor(), bias},
                                       std::pair{at::Tensor(), at::Tensor()}}) {
            auto forward = sample("aten::native_layer_norm").arg("input", input).arg("normalized_shape", normalised);
            optional(optional(forward, "weight", parameters.first), "bias", parameters.second).arg("eps", 1e-5);
            s.push_back(forward);
            auto const out = call_op(forward.made.operation, forward.made.operands);
            for (auto const& mask : masks) {
                if ((mask[1] && !parameters.first.defined()) || (mask[2] && !parameters.second.defined())) continue;
                auto backward = sample("aten::native_layer_norm_backward").arg("grad_out", large(x)).arg("input", input);
                backward.arg("normalized_shape", normalised).arg("mean", out[1]).arg("rstd", out[2]);
                optional(optional(backward, "weight", parameters.first), "bias", parameters.second).arg("output_mask", mask);
                s.push_back(backward);
            }
        }
        for (auto const& w : {weight, at::Tensor()}) {
            auto rms = sample("aten::_fused_rms_norm").arg("input", input).arg("normalized_shape", normalised);
            s.push_back(optional(rms, "weight", w).arg("eps", 1e-5));
        }
    }
}

void add_group_norm_samples(sample_list& s) {
    struct shape_of {
        shape x;
        std::int64_t groups;
    };
    for (auto const& c : {shape_of{{12, 24, 2, 2}, 12}, shape_of{{2, 12, 4}, 4}, shape_of{{4, 12, 2, 3}, 1}, shape_of{{3, 12, 6}, 12},
                          shape_of{{1, 6, 3, 2, 2}, 2}, shape_of{{2, 12, 4}, 6}}) {
        auto const n = c.x[0], channels = c.x[1], pixels = element_count(c.x) / n / channels;
        auto const input = eighths(c.x), weight = large({channels}), bias = large({channels});
        for (auto const& parameters : {std::pair{weight, bias}, std::pair{weight, at::Tensor()}, std::pair{at::Tensor(), at::Tensor()}}) {
            auto const sizes = [&](sample& made) -> sample& {
                return made.arg("N", n).arg("C", channels).arg("HxW", pixels).arg("group", c.groups);
            };
            auto forward = sample("aten::native_group_norm").arg("input", input);
            optional(optional(forward, "weight", parameters.first), "bias", parameters.second);
            s.push_back(sizes(forward).arg("eps", 1e-5));
            auto const out = call_op(forward.made.operation, forward.made.operands);
            for (auto const& mask : masks) {
                if ((mask[1] && !parameters.first.defined()) || (mask[2] && !parameters.second.defined())) continue;
                auto backward = sample("aten::native_group_norm_backward").arg("grad_out", large(c.x)).arg("input", input);
                backward.arg("mean", out[1]).arg("rstd", out[2]);
                s.push_back(sizes(optional(backward, "weight", parameters.first)).arg("output_mask", mask));
            }
        }
    }
}

void add_batch_norm_samples(sample_list& s) {
    for (shape const& x : {shape{12, 24}, shape{4, 12, 6}, shape{2, 12, 4, 3}, shape{3, 4, 2, 2, 2}, shape{12, 5, 2}}) {
        auto const c = x[1];
        auto const input = eighths(x), weight = large({c}), bias = large({c}), mean = eighths({c}), variance = eighths({c}, true);
        for (auto const& parameters : {std::pair{weight, bias}, std::pair{weight, at::Tensor()}, std::pair{at::Tensor(), at::Tensor()}})
            for (bool training : {true, false}) {
                // Every sample has running statistics of its own: some of these ops write them.
                auto const forward = [&](char const* name, bool statistics, bool says) {
                    auto made = sample(name).arg("input", input);
                    optional(optional(made, "weight", parameters.first), "bias", parameters.second);
                    if (statistics) made.arg("running_mean", mean.clone()).arg("running_var", variance.clone());
                    if (says) made.arg("training", training);
                    return made.arg("momentum", 0.25).arg("eps", 1e-5);
                };
                auto const made = forward("aten::native_batch_norm", true, true);
                s.push_back(made);
                s.push_back(forward("aten::_native_batch_norm_legit", true, true));
                s.push_back(forward("aten::_native_batch_norm_legit_functional", true, true));
                if (training)
                    s.push_back(forward("aten::_native_batch_norm_legit.no_stats", false, true));
                else
                    s.push_back(forward("aten::_native_batch_norm_legit_no_training", true, false));
                auto const again = forward("aten::native_batch_norm", true, true);
                auto const out = call_op(again.made.operation, again.made.operands);
                for (auto const& mask : masks) {
                    if ((mask[1] && !parameters.first.defined()) || (mask[2] && !parameters.second.defined())) continue;
                    auto backward = sample("aten::native_batch_norm_backward").arg("grad_out", large(x)).arg("input", input);
                    optional(backward, "weight", parameters.first).arg("running_mean", mean).arg("running_var", variance);
                    s.push_back(backward.arg("save_mean", out[1])
                                    .arg("save_invstd", out[2])
                                    .arg("train", training)
                                    .arg("eps", 1e-5)
                                    .arg("output_mask", mask));
                }
            }
    }
}

}  // namespace cantle::libtorch
