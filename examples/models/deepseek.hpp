// SPDX-License-Identifier: BSL-1.0
#pragma once
// A mixture of experts in the style of DeepSeek-V3 (DeepSeek-AI, "DeepSeek-V3 technical report", 2024): latent attention, and in all layers
// but the first routed experts beside shared ones. The routed experts are the region "experts": expert parallel on the mesh axis named ep.
#include <examples/models/decoder_parts.hpp>

#include <torch/torch.h>

namespace cantle_models {

struct deepseek_config {
    std::int64_t dim, layers, heads, kv_rank, nope_dim, rope_dim, value_dim;  // keys: nope_dim without position, rope_dim with
    std::int64_t dense_layers, ffn;                                           // the first layers are dense
    std::int64_t experts, top, expert_ffn, shared;                            // `shared` experts see every token
    std::int64_t vocab, sequence;
    double theta = 10000.0, eps = 1e-6;
};

/// Keys and values come from one narrow vector per token (kv_rank); the rotated part of the key is one for all heads.
struct latent_attention_impl : torch::nn::Module {
    explicit latent_attention_impl(deepseek_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin);
    deepseek_config config;
    torch::nn::Linear wq, wkv_a, wkv_b, wo;
    rms_norm kv_norm;
};
TORCH_MODULE_IMPL(latent_attention, latent_attention_impl);

/// Every token goes to the `top` experts of highest score, its results weighted by the scores.
struct experts_impl : torch::nn::Module {
    explicit experts_impl(deepseek_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    deepseek_config config;
    torch::nn::Linear router;
    torch::Tensor w1, w2, w3;  // [experts, expert_ffn, dim], [experts, dim, expert_ffn], [experts, expert_ffn, dim]
    swiglu shared;
};
TORCH_MODULE_IMPL(experts, experts_impl);

struct deepseek_layer_impl : torch::nn::Module {
    deepseek_layer_impl(deepseek_config const& config, bool dense);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin);
    rms_norm attention_norm;
    latent_attention attention;
    rms_norm ffn_norm;
    swiglu feed_forward{nullptr};  // one of the two
    experts mixture{nullptr};
};
TORCH_MODULE_IMPL(deepseek_layer, deepseek_layer_impl);

/// Tokens [B, S] -> logits [B, S, vocab].
struct deepseek_impl : torch::nn::Module {
    explicit deepseek_impl(deepseek_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens);
    deepseek_config config;
    torch::nn::Embedding tok_embeddings;
    torch::nn::ModuleList layers;
    rms_norm norm;
    torch::nn::Linear output;
    torch::Tensor rope_cos, rope_sin;  // [sequence, rope_dim]
};
TORCH_MODULE_IMPL(deepseek, deepseek_impl);

}  // namespace cantle_models
