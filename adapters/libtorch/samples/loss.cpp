// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_loss_samples(sample_list& s) {
    for (shape const& tokens : {shape{12}, shape{4, 12}, shape{12, 2}})
        for (auto reduce : {"mean", "sum", "none"})
            for (bool ignoring : {false, true}) {
                auto sizes = tokens;
                sizes.push_back(24);
                auto const logits = eighths(sizes) / 16;
                auto target = indices(tokens, 24);
                // The first quarter of the tokens does not count: some ranks have none that does.
                if (ignoring) target.view({-1}).slice(0, 0, target.numel() / 4).fill_(-100);
                auto const forward = sample("cantle::cross_entropy")
                                         .arg("logits", logits)
                                         .arg("target", target)
                                         .arg("ignore_index", -100)
                                         .arg("reduction", reduce);
                s.push_back(forward);
                auto const out = call_op(forward.made.operation, forward.made.operands);
                auto const grad = std::string(reduce) == "none" ? eighths(tokens) : scalar(1.625);
                s.push_back(sample("cantle::cross_entropy_backward")
                                .arg("grad", grad)
                                .arg("logits", logits)
                                .arg("target", target)
                                .arg("logsumexp", out[1])
                                .arg("total_weight", out[2])
                                .arg("ignore_index", -100)
                                .arg("reduction", reduce));
            }
}

}  // namespace cantle::libtorch
