// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

namespace {
/// Numbers between 0 and 1.
at::Tensor chances(shape const& x) {
    auto const n = element_count(x);
    return n == 1 ? eighths(x) / 4 : eighths(x, true) / (static_cast<double>(n) + 1) * 8;
}
}  // namespace

void add_elementwise_loss_samples(sample_list& s) {
    std::pair<shape, shape> const pairs[] = {{{12, 4}, {12, 4}}, {{2, 12, 3}, {2, 12, 3}}, {{12}, {12}}, {{12, 6}, {6}},
                                             {{}, {}},           {{5, 12}, {5, 1}}};
    for (auto const& [x, t] : pairs)
        for (std::int64_t how : {0, 1, 2}) {
            auto const with = [&, x = x, t = t](char const* name) {
                return sample(name).arg("self", eighths(x)).arg("target", eighths(t));
            };
            s.push_back(with("aten::mse_loss").arg("reduction", how));
            s.push_back(with("aten::l1_loss").arg("reduction", how));
            s.push_back(with("aten::smooth_l1_loss").arg("reduction", how).arg("beta", 0.5));
            s.push_back(with("aten::huber_loss").arg("reduction", how).arg("delta", 1.5));
            if (x != t) continue;
            for (bool log_target : {false, true})
                s.push_back(sample("aten::kl_div")
                                .arg("self", eighths(x))
                                .arg("target", chances(t))
                                .arg("reduction", how)
                                .arg("log_target", log_target));
            auto const grad = how == 0 ? eighths(x) : scalar(1.625);
            auto const back = [&, x = x, t = t](char const* name) {
                return sample(name).arg("grad_output", grad).arg("self", eighths(x)).arg("target", eighths(t)).arg("reduction", how);
            };
            s.push_back(back("aten::mse_loss_backward"));
            s.push_back(back("aten::smooth_l1_loss_backward").arg("beta", 0.5));
            s.push_back(back("aten::huber_loss_backward").arg("delta", 1.5));
            std::vector<at::Tensor> weights{at::Tensor(), eighths(x, true) * 32};
            if (x.size() > 1) weights.push_back(eighths({x.back()}, true) * 32);
            for (auto const& w : weights) {
                auto const weighted = [&w](sample made) {
                    w.defined() ? made.arg("weight", w) : made.arg("weight", none);
                    return made;
                };
                s.push_back(
                    weighted(sample("aten::binary_cross_entropy").arg("self", chances(x)).arg("target", chances(t))).arg("reduction", how));
                s.push_back(weighted(sample("aten::binary_cross_entropy_backward")
                                         .arg("grad_output", grad)
                                         .arg("self", chances(x))
                                         .arg("target", chances(t)))
                                .arg("reduction", how));
                for (bool positive : {false, true}) {
                    auto made =
                        weighted(sample("aten::binary_cross_entropy_with_logits").arg("self", eighths(x) / 4).arg("target", chances(t)));
                    positive ? made.arg("pos_weight", eighths({x.empty() ? 1 : x.back()}, true)) : made.arg("pos_weight", none);
                    if (positive && x.empty()) continue;
                    s.push_back(made.arg("reduction", how));
                }
            }
        }
}

void add_nll_loss_samples(sample_list& s) {
    // [N, C], [C] and [N, C, H, W]; ignored targets, by a number that is no class and by one that is.
    for (shape const& x : {shape{12, 24}, shape{4, 12}, shape{24}, shape{3, 5}, shape{2, 12, 4, 3}, shape{12, 6, 2, 4}, shape{24, 12}})
        for (std::int64_t how : {0, 1, 2})
            for (bool weighted : {false, true})
                for (std::int64_t ignore : {-100, 3}) {
                    std::string const name = x.size() == 4 ? "aten::nll_loss2d" : "aten::nll_loss";
                    auto const classes = x.size() == 1 ? x[0] : x[1];
                    shape t = x;
                    t.erase(t.begin() + (x.size() == 1 ? 0 : 1));
                    auto const self = eighths(x), weight = eighths({classes}, true);
                    auto target = indices(t, classes);
                    if (ignore == -100 && !t.empty()) target.view({-1}).slice(0, 0, target.numel() / 4).fill_(-100);
                    if (t.empty()) target.fill_(5);
                    auto const common = [&](sample& made) -> sample& {
                        made.arg("self", self).arg("target", target);
                        weighted ? made.arg("weight", weight) : made.arg("weight", none);
                        return made.arg("reduction", how).arg("ignore_index", ignore);
                    };
                    auto forward = sample(name + "_forward");
                    s.push_back(common(forward));
                    auto const out = call_op(forward.made.operation, forward.made.operands);
                    auto backward = sample(name + "_backward").arg("grad_output", how == 0 ? eighths(t) : scalar(1.625));
                    s.push_back(common(backward).arg("total_weight", out[1]));
                }
}

}  // namespace cantle::libtorch
