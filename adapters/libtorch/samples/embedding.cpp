// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_embedding_samples(sample_list& s) {
    for (shape const& tokens : {shape{12}, shape{4, 12}, shape{2, 3, 12}})
        for (int padding : {-1, 5}) {
            s.push_back(sample("aten::embedding")
                            .arg("weight", eighths({24, 12}))
                            .arg("indices", indices(tokens, 24))
                            .arg("padding_idx", padding)
                            .arg("scale_grad_by_freq", false)
                            .arg("sparse", false));
            auto grad = tokens;
            grad.push_back(12);
            for (bool scale : {false, true})
                s.push_back(sample("aten::embedding_dense_backward")
                                .arg("grad_output", eighths(grad))
                                .arg("indices", indices(tokens, 24))
                                .arg("num_weights", 24)
                                .arg("padding_idx", padding)
                                .arg("scale_grad_by_freq", scale));
        }
}

}  // namespace cantle::libtorch
