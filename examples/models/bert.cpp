// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/bert.hpp>

namespace cantle_models {
using cantle::libtorch::module_scope;

namespace {
torch::nn::LayerNorm layer_norm(std::int64_t dim) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({dim}).eps(1e-12)); }
torch::Tensor drop(torch::Tensor const& x, double p, bool training) { return p > 0.0 ? torch::dropout(x, p, training) : x; }
}  // namespace

bert_embeddings_impl::bert_embeddings_impl(bert_config const& c)
    : word_embeddings(c.vocab, c.dim),
      position_embeddings(c.positions, c.dim),
      token_type_embeddings(c.types, c.dim),
      norm(layer_norm(c.dim)),
      dropout(c.dropout) {
    register_module("word_embeddings", word_embeddings);
    register_module("position_embeddings", position_embeddings);
    register_module("token_type_embeddings", token_type_embeddings);
    register_module("norm", norm);
    position_ids = register_buffer("position_ids", torch::arange(c.positions, torch::kLong));
}

torch::Tensor bert_embeddings_impl::forward(torch::Tensor const& tokens, torch::Tensor const& token_types) {
    module_scope const scope(this);
    auto x = word_embeddings(tokens);
    x = x + token_type_embeddings(token_types);
    return drop(norm(x + position_embeddings(position_ids.slice(0, 0, tokens.size(1)))), dropout, is_training());
}

bert_attention_impl::bert_attention_impl(bert_config const& c)
    : config(c), query(c.dim, c.dim), key(c.dim, c.dim), value(c.dim, c.dim), output(c.dim, c.dim), norm(layer_norm(c.dim)) {
    register_module("query", query);
    register_module("key", key);
    register_module("value", value);
    register_module("output", output);
    register_module("norm", norm);
}

torch::Tensor bert_attention_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const b = x.size(0), s = x.size(1);
    auto const heads = [&](torch::Tensor const& t) { return t.view({b, s, config.heads, config.dim / config.heads}).transpose(1, 2); };
    auto const q = heads(query(x)), k = heads(key(x)), v = heads(value(x));
    auto const mixed = at::scaled_dot_product_attention(q, k, v, {}, is_training() ? config.dropout : 0.0);
    return norm(drop(output(mixed.transpose(1, 2).reshape({b, s, config.dim})), config.dropout, is_training()) + x);
}

bert_layer_impl::bert_layer_impl(bert_config const& c)
    : attention(c), intermediate(c.dim, c.ffn), output(c.ffn, c.dim), norm(layer_norm(c.dim)), dropout(c.dropout) {
    register_module("attention", attention);
    register_module("intermediate", intermediate);
    register_module("output", output);
    register_module("norm", norm);
}

torch::Tensor bert_layer_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const y = attention(x);
    return norm(drop(output(torch::gelu(intermediate(y))), dropout, is_training()) + y);
}

bert_head_impl::bert_head_impl(bert_config const& c, torch::Tensor const& word_embedding) : dense(c.dim, c.dim), norm(layer_norm(c.dim)) {
    register_module("dense", dense);
    register_module("norm", norm);
    weight = register_parameter("weight", word_embedding);
    bias = register_parameter("bias", torch::zeros({c.vocab}));
}

torch::Tensor bert_head_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    return at::linear(norm(torch::gelu(dense(x))), weight, bias);
}

bert_impl::bert_impl(bert_config const& c) : embeddings(c), head(c, embeddings->word_embeddings->weight) {
    register_module("embeddings", embeddings);
    for (std::int64_t i = 0; i < c.layers; ++i) layer->push_back(bert_layer(c));
    register_module("layer", layer);
    register_module("head", head);
}

torch::Tensor bert_impl::forward(torch::Tensor const& tokens, torch::Tensor const& token_types) {
    module_scope const scope(this);
    auto x = embeddings(tokens, token_types);
    for (auto const& l : *layer) x = l->as<bert_layer_impl>()->forward(x);
    return head(x);
}

}  // namespace cantle_models
