// SPDX-License-Identifier: BSL-1.0
#pragma once
// T5 (Raffel et al., 2020): an encoder and a decoder that looks at it. Positions are told by a learned bias on the scores, one per head and
// bucket of distances, which the layers of a stack share; scores are not scaled, the head is tied to the embedding instead.
#include <examples/models/decoder_parts.hpp>
#include <examples/models/gpt2.hpp>

#include <torch/torch.h>

namespace cantle_models {

struct t5_config {
    std::int64_t dim, layers, heads, head_dim, ffn, vocab;  // layers: of each stack
    std::int64_t buckets, max_distance, sequence;
    double eps = 1e-6;
};

/// Buckets of the distances between all positions, [sequence, sequence] int64: one each for near ones, then logarithmically wider ones.
/// With `both_ways` one half of the buckets is for what comes later; else all of that is in bucket 0.
torch::Tensor distance_buckets(std::int64_t sequence, std::int64_t buckets, std::int64_t max_distance, bool both_ways);

/// x [B, S, dim] asks, memory [B, T, dim] answers -> [B, S, dim]. bias: [1, heads, S, T], added to the scores; may be undefined.
struct t5_attention_impl : torch::nn::Module {
    explicit t5_attention_impl(t5_config const& config);
    torch::Tensor forward(torch::Tensor const& x, torch::Tensor const& memory, torch::Tensor const& bias);
    t5_config config;
    torch::nn::Linear q, k, v, o;
};
TORCH_MODULE_IMPL(t5_attention, t5_attention_impl);

struct t5_feed_forward_impl : torch::nn::Module {
    explicit t5_feed_forward_impl(t5_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    torch::nn::Linear wi, wo;
};
TORCH_MODULE_IMPL(t5_feed_forward, t5_feed_forward_impl);

/// `decodes`: it attends to the encoder's result as well.
struct t5_layer_impl : torch::nn::Module {
    t5_layer_impl(t5_config const& config, bool decodes);
    torch::Tensor forward(torch::Tensor x, torch::Tensor const& bias, torch::Tensor const& memory);
    rms_norm attention_norm;
    t5_attention attention;
    rms_norm cross_norm{nullptr};
    t5_attention cross{nullptr};
    rms_norm ffn_norm;
    t5_feed_forward feed_forward;
};
TORCH_MODULE_IMPL(t5_layer, t5_layer_impl);

/// All layers of one kind, with the position bias that they share. [B, S, dim] -> [B, S, dim]
struct t5_stack_impl : torch::nn::Module {
    t5_stack_impl(t5_config const& config, bool decodes);
    torch::Tensor forward(torch::Tensor x, torch::Tensor const& memory);
    bool decodes;
    torch::nn::Embedding position_bias;  // [buckets, heads]
    torch::nn::ModuleList layers;
    rms_norm norm;
    torch::Tensor distances;             // [sequence, sequence], int64
};
TORCH_MODULE_IMPL(t5_stack, t5_stack_impl);

/// Tokens of both sides, each [B, S] -> logits [B, S, vocab].
struct t5_impl : torch::nn::Module {
    explicit t5_impl(t5_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens, torch::Tensor const& decoder_tokens);
    t5_config config;
    torch::nn::Embedding shared;
    t5_stack encoder, decoder;
    tied_head lm_head;
};
TORCH_MODULE_IMPL(t5, t5_impl);

}  // namespace cantle_models
