// SPDX-License-Identifier: BSL-1.0
#pragma once
// BERT (Devlin et al., 2018) with its masked-language-model head: an encoder with LayerNorm after each part, and a decoder tied to the
// word embedding.
#include <torch/torch.h>

namespace cantle_models {

struct bert_config {
    std::int64_t dim, layers, heads, ffn, vocab, positions, types;
    double dropout = 0.0;  ///< of the embeddings, of attention probabilities and in front of every residual sum
};

struct bert_embeddings_impl : torch::nn::Module {
    explicit bert_embeddings_impl(bert_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens, torch::Tensor const& token_types);
    torch::nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
    torch::nn::LayerNorm norm;
    double dropout;
    torch::Tensor position_ids;  // [positions], int64
};
TORCH_MODULE_IMPL(bert_embeddings, bert_embeddings_impl);

struct bert_attention_impl : torch::nn::Module {
    explicit bert_attention_impl(bert_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    bert_config config;
    torch::nn::Linear query, key, value, output;
    torch::nn::LayerNorm norm;
};
TORCH_MODULE_IMPL(bert_attention, bert_attention_impl);

struct bert_layer_impl : torch::nn::Module {
    explicit bert_layer_impl(bert_config const& config);
    torch::Tensor forward(torch::Tensor const& x);
    bert_attention attention;
    torch::nn::Linear intermediate, output;
    torch::nn::LayerNorm norm;
    double dropout;
};
TORCH_MODULE_IMPL(bert_layer, bert_layer_impl);

/// dense, gelu, LayerNorm, then the word embedding transposed and a bias.
struct bert_head_impl : torch::nn::Module {
    bert_head_impl(bert_config const& config, torch::Tensor const& word_embedding);
    torch::Tensor forward(torch::Tensor const& x);
    torch::nn::Linear dense;
    torch::nn::LayerNorm norm;
    torch::Tensor weight, bias;
};
TORCH_MODULE_IMPL(bert_head, bert_head_impl);

/// Tokens and token types, both [B, S] -> logits [B, S, vocab].
struct bert_impl : torch::nn::Module {
    explicit bert_impl(bert_config const& config);
    torch::Tensor forward(torch::Tensor const& tokens, torch::Tensor const& token_types);
    bert_embeddings embeddings;
    torch::nn::ModuleList layer;
    bert_head head;
};
TORCH_MODULE_IMPL(bert, bert_impl);

}  // namespace cantle_models
