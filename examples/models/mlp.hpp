// SPDX-License-Identifier: BSL-1.0
#pragma once
// A multi-layer perceptron that sorts vectors into classes: the smallest model to look at.
#include <torch/torch.h>

namespace cantle_models {

struct mlp_config {
    std::int64_t dim, hidden, layers, classes;
};

/// [B, dim] -> logits [B, classes]: `layers` linear layers with ReLU between them.
struct mlp_impl : torch::nn::Module {
    explicit mlp_impl(mlp_config const& config);
    torch::Tensor forward(torch::Tensor x);
    torch::nn::ModuleList layers;
};
TORCH_MODULE_IMPL(mlp, mlp_impl);

}  // namespace cantle_models
