// SPDX-License-Identifier: BSL-1.0
#pragma once
// LLaMA 3 (Llama team, "The Llama 3 herd of models", 2024): a decoder with RMSNorm before attention and feed-forward, rotary positions,
// grouped key and value heads, SwiGLU, and no biases.
#include <examples/models/decoder_parts.hpp>

#include <torch/torch.h>

namespace cantle_models {

struct llama3_config {
    std::int64_t dim, layers, heads, kv_heads, ffn, vocab, sequence;
    double theta = 500000.0, eps = 1e-5;
    std::int64_t head_dim() const { return dim / heads; }
};

/// Causal attention with rotary positions: [B, S, dim] -> [B, S, dim]. cos and sin are [S, head_dim].
struct llama3_attention_impl : torch::nn::Module {
    explicit llama3_attention_impl(llama3_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin);
    llama3_config config;
    torch::nn::Linear wq, wk, wv, wo;
};
TORCH_MODULE_IMPL(llama3_attention, llama3_attention_impl);

struct llama3_layer_impl : torch::nn::Module {
    explicit llama3_layer_impl(llama3_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin);
    rms_norm attention_norm;
    llama3_attention attention;
    rms_norm ffn_norm;
    swiglu feed_forward;
};
TORCH_MODULE_IMPL(llama3_layer, llama3_layer_impl);

/// Tokens [B, S] -> logits [B, S, vocab].
struct llama3_impl : torch::nn::Module {
    explicit llama3_impl(llama3_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens);
    llama3_config config;
    torch::nn::Embedding tok_embeddings;
    torch::nn::ModuleList layers;
    rms_norm norm;
    torch::nn::Linear output;
    torch::Tensor rope_cos, rope_sin;  // [sequence, head_dim]
};
TORCH_MODULE_IMPL(llama3, llama3_impl);

}  // namespace cantle_models
