// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_layer_norm_samples(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 24}, {24}}, {{2, 12, 8}, {8}}, {{12, 4, 6}, {4, 6}}};
    for (auto const& [x, normalised] : cases) {
        auto const input = eighths(x), weight = eighths(normalised), bias = eighths(normalised);
        auto const forward = sample("aten::native_layer_norm")
                                 .arg("input", input)
                                 .arg("normalized_shape", normalised)
                                 .arg("weight", weight)
                                 .arg("bias", bias)
                                 .arg("eps", 1e-5);
        s.push_back(forward);
        s.push_back(sample("aten::native_layer_norm")
                        .arg("input", input)
                        .arg("normalized_shape", normalised)
                        .arg("weight", weight)
                        .arg("bias", none)
                        .arg("eps", 1e-5));
        auto const out = call_op(forward.made.operation, forward.made.operands);
        for (auto const& mask : {std::vector<bool>{true, true, true}, std::vector<bool>{true, false, true},
                                 std::vector<bool>{false, true, true}, std::vector<bool>{true, false, false}})
            s.push_back(sample("aten::native_layer_norm_backward")
                            .arg("grad_out", eighths(x))
                            .arg("input", input)
                            .arg("normalized_shape", normalised)
                            .arg("mean", out[1])
                            .arg("rstd", out[2])
                            .arg("weight", weight)
                            .arg("bias", bias)
                            .arg("output_mask", mask));
    }
}

}  // namespace cantle::libtorch
