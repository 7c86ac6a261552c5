// SPDX-License-Identifier: BSL-1.0
// Operands with a cost are named first: C++ leaves the order of evaluation of a * b open, and a captured graph should not depend on it.
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/decoder_parts.hpp>
#include <examples/models/llama3.hpp>

namespace cantle_models {
namespace F = torch::nn::functional;
using cantle::libtorch::module_scope;

llama3_attention_impl::llama3_attention_impl(llama3_config const& c)
    : config(c), wq(projection(c.dim, c.heads * c.head_dim())), wk(projection(c.dim, c.kv_heads * c.head_dim())),
      wv(projection(c.dim, c.kv_heads * c.head_dim())), wo(projection(c.heads * c.head_dim(), c.dim)) {
    register_module("wq", wq);
    register_module("wk", wk);
    register_module("wv", wv);
    register_module("wo", wo);
}

torch::Tensor llama3_attention_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin) {
    module_scope const scope(this);
    auto const b = x.size(0), s = x.size(1);
    auto const heads = [&](torch::Tensor const& t, std::int64_t n) { return t.view({b, s, n, config.head_dim()}).transpose(1, 2); };
    auto const q = rotate(heads(wq(x), config.heads), cos, sin);
    auto const k = rotate(heads(wk(x), config.kv_heads), cos, sin);
    auto const v = heads(wv(x), config.kv_heads);
    auto const mixed = at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true, /*scale=*/{},
                                                        /*enable_gqa=*/config.kv_heads != config.heads);
    return wo(mixed.transpose(1, 2).reshape({b, s, config.heads * config.head_dim()}));
}

llama3_layer_impl::llama3_layer_impl(llama3_config const& c)
    : attention_norm(c.dim, c.eps), attention(c), ffn_norm(c.dim, c.eps), feed_forward(c.dim, c.ffn) {
    register_module("attention_norm", attention_norm);
    register_module("attention", attention);
    register_module("ffn_norm", ffn_norm);
    register_module("feed_forward", feed_forward);
}

torch::Tensor llama3_layer_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin) {
    module_scope const scope(this);
    auto const h = x + attention(attention_norm(x), cos, sin);
    return h + feed_forward(ffn_norm(h));
}

llama3_impl::llama3_impl(llama3_config const& c)
    : config(c), tok_embeddings(c.vocab, c.dim), norm(c.dim, c.eps), output(projection(c.dim, c.vocab)) {
    register_module("tok_embeddings", tok_embeddings);
    for (std::int64_t i = 0; i < c.layers; ++i) layers->push_back(llama3_layer(c));
    register_module("layers", layers);
    register_module("norm", norm);
    register_module("output", output);

    auto const [cos, sin] = rotary_tables(c.sequence, c.head_dim(), c.theta);
    rope_cos = register_buffer("rope_cos", cos);
    rope_sin = register_buffer("rope_sin", sin);
}

torch::Tensor llama3_impl::forward(torch::Tensor const& tokens) {
    module_scope const scope(this);
    auto const cos = rope_cos.slice(0, 0, tokens.size(1));
    auto const sin = rope_sin.slice(0, 0, tokens.size(1));
    auto x = tok_embeddings(tokens);
    for (auto const& layer : *layers) x = layer->as<llama3_layer_impl>()->forward(x, cos, sin);
    return output(norm(x));
}

}  // namespace cantle_models
