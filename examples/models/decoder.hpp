// SPDX-License-Identifier: BSL-1.0
#pragma once
// A LLaMA-like decoder with what later models add: a head dim of its own and RMSNorm per head on queries and keys (Qwen3), sliding-window
// attention in some layers (hybrid models), attention as a context-parallel region (long sequences).
#include <examples/models/decoder_parts.hpp>

#include <torch/torch.h>

namespace cantle_models {

struct decoder_config {
    std::int64_t dim, layers, heads, kv_heads, head_dim, ffn, vocab, sequence;
    bool head_norm = false;       ///< RMSNorm over head_dim of every query and key head
    std::int64_t window = 0;      ///< above 0: a query sees its own and the window - 1 positions before; not in every full_every-th layer
    std::int64_t full_every = 1;
    /// Attention is the region "ring_attention". By axis name: cp cuts the sequence and passes keys and values round a ring, tp cuts the
    /// heads, every other axis cuts the batch; a mesh need not have cp or tp.
    bool ring = false;
    double theta = 1e6, eps = 1e-6;
};

/// [B, S, dim] -> [B, S, dim]. cos and sin are [S, head_dim]; mask [1, 1, S, S] is added to the scores, causal where there is none.
struct decoder_attention_impl : torch::nn::Module {
    explicit decoder_attention_impl(decoder_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin, torch::Tensor const& mask);
    decoder_config config;
    torch::nn::Linear wq, wk, wv, wo;
    rms_norm q_norm{nullptr}, k_norm{nullptr};
};
TORCH_MODULE_IMPL(decoder_attention, decoder_attention_impl);

struct decoder_layer_impl : torch::nn::Module {
    explicit decoder_layer_impl(decoder_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin, torch::Tensor const& mask);
    rms_norm attention_norm;
    decoder_attention attention;
    rms_norm ffn_norm;
    swiglu feed_forward;
};
TORCH_MODULE_IMPL(decoder_layer, decoder_layer_impl);

/// Tokens [B, S] -> logits [B, S, vocab].
struct decoder_impl : torch::nn::Module {
    explicit decoder_impl(decoder_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens);
    decoder_config config;
    torch::nn::Embedding tok_embeddings;
    torch::nn::ModuleList layers;
    rms_norm norm;
    torch::nn::Linear output;
    torch::Tensor rope_cos, rope_sin;  // [sequence, head_dim]
    torch::Tensor window_mask;         // [1, 1, sequence, sequence], where some layer has a window
};
TORCH_MODULE_IMPL(decoder, decoder_impl);

}  // namespace cantle_models
