// SPDX-License-Identifier: BSL-1.0
#pragma once
// GPT-2 (Radford et al., 2019): a decoder with LayerNorm, learned positions, biases everywhere and an output head tied to the embedding.
#include <torch/torch.h>

namespace cantle_models {

struct gpt2_config {
    std::int64_t dim, layers, heads, vocab, positions;
    double dropout = 0.0;
};

struct gpt2_attention_impl : torch::nn::Module {
    explicit gpt2_attention_impl(gpt2_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    gpt2_config config;
    torch::nn::Linear c_attn, c_proj;
};
TORCH_MODULE_IMPL(gpt2_attention, gpt2_attention_impl);

struct gpt2_mlp_impl : torch::nn::Module {
    explicit gpt2_mlp_impl(gpt2_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    torch::nn::Linear c_fc, c_proj;
};
TORCH_MODULE_IMPL(gpt2_mlp, gpt2_mlp_impl);

struct gpt2_block_impl : torch::nn::Module {
    explicit gpt2_block_impl(gpt2_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    double dropout;
    torch::nn::LayerNorm ln_1;
    gpt2_attention attn;
    torch::nn::LayerNorm ln_2;
    gpt2_mlp mlp;
};
TORCH_MODULE_IMPL(gpt2_block, gpt2_block_impl);

/// A linear layer without bias whose weight belongs to another module too.
struct tied_head_impl : torch::nn::Module {
    explicit tied_head_impl(torch::Tensor const& shared);
    torch::Tensor forward(torch::Tensor const& x);
    torch::Tensor weight;
};
TORCH_MODULE_IMPL(tied_head, tied_head_impl);

/// Tokens [B, S] -> logits [B, S, vocab].
struct gpt2_impl : torch::nn::Module {
    explicit gpt2_impl(gpt2_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens);
    double dropout;
    torch::nn::Embedding wte, wpe;
    torch::nn::ModuleList h;
    torch::nn::LayerNorm ln_f;
    tied_head lm_head;
    torch::Tensor position_ids;  // [positions], int64
};
TORCH_MODULE_IMPL(gpt2, gpt2_impl);

}  // namespace cantle_models
