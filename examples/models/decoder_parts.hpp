// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the decoder models share: RMSNorm, SwiGLU, rotary positions.
#include <torch/torch.h>

#include <cstdint>
#include <utility>

namespace cantle_models {

/// A linear layer without bias.
torch::nn::Linear projection(std::int64_t in, std::int64_t out);

/// Rotates pairs (i, i + head_dim / 2) of x [B, H, S, head_dim] by the angles of their position. cos and sin are [S, head_dim].
torch::Tensor rotate(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin);

/// Cosines and sines of all positions and pairs, each [sequence, head_dim].
std::pair<torch::Tensor, torch::Tensor> rotary_tables(std::int64_t sequence, std::int64_t head_dim, double theta);

/// x / sqrt(mean(x^2) + eps) * weight over the last dim, computed in float32.
struct rms_norm_impl : torch::nn::Module {
    rms_norm_impl(std::int64_t dim, double eps);
    torch::Tensor forward(torch::Tensor const& x);
    torch::Tensor weight;
    double eps;
};
TORCH_MODULE_IMPL(rms_norm, rms_norm_impl);

/// w2(silu(w1(x)) * w3(x))
struct swiglu_impl : torch::nn::Module {
    swiglu_impl(std::int64_t dim, std::int64_t hidden);
    torch::Tensor forward(torch::Tensor const& x);
    torch::nn::Linear w1, w2, w3;
};
TORCH_MODULE_IMPL(swiglu, swiglu_impl);

}  // namespace cantle_models
