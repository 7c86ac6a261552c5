// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/gpt2.hpp>

namespace cantle_models {
using cantle::libtorch::module_scope;

namespace {
torch::nn::LayerNorm layer_norm(std::int64_t dim) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({dim}).eps(1e-5)); }

torch::Tensor drop(torch::Tensor const& x, double p, bool training) { return p > 0.0 ? torch::dropout(x, p, training) : x; }
}  // namespace

gpt2_attention_impl::gpt2_attention_impl(gpt2_config const& c) : config(c), c_attn(c.dim, 3 * c.dim), c_proj(c.dim, c.dim) {
    register_module("c_attn", c_attn);
    register_module("c_proj", c_proj);
}

torch::Tensor gpt2_attention_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const b = x.size(0), s = x.size(1);
    auto const heads = [&](torch::Tensor const& t) { return t.view({b, s, config.heads, config.dim / config.heads}).transpose(1, 2); };
    auto const qkv = c_attn(x).chunk(3, -1);
    auto const q = heads(qkv[0]), k = heads(qkv[1]), v = heads(qkv[2]);
    auto const mixed = at::scaled_dot_product_attention(q, k, v, {}, is_training() ? config.dropout : 0.0, /*is_causal=*/true);
    return drop(c_proj(mixed.transpose(1, 2).reshape({b, s, config.dim})), config.dropout, is_training());
}

gpt2_mlp_impl::gpt2_mlp_impl(gpt2_config const& c) : c_fc(c.dim, 4 * c.dim), c_proj(4 * c.dim, c.dim) {
    register_module("c_fc", c_fc);
    register_module("c_proj", c_proj);
}

torch::Tensor gpt2_mlp_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    return c_proj(torch::gelu(c_fc(x), "tanh"));
}

gpt2_block_impl::gpt2_block_impl(gpt2_config const& c)
    : dropout(c.dropout), ln_1(layer_norm(c.dim)), attn(c), ln_2(layer_norm(c.dim)), mlp(c) {
    register_module("ln_1", ln_1);
    register_module("attn", attn);
    register_module("ln_2", ln_2);
    register_module("mlp", mlp);
}

torch::Tensor gpt2_block_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const y = x + attn(ln_1(x));
    return y + drop(mlp(ln_2(y)), dropout, is_training());
}

tied_head_impl::tied_head_impl(torch::Tensor const& shared) { weight = register_parameter("weight", shared); }

torch::Tensor tied_head_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    return at::linear(x, weight);
}

gpt2_impl::gpt2_impl(gpt2_config const& c)
    : dropout(c.dropout), wte(c.vocab, c.dim), wpe(c.positions, c.dim), ln_f(layer_norm(c.dim)), lm_head(wte->weight) {
    register_module("wte", wte);
    register_module("wpe", wpe);
    for (std::int64_t i = 0; i < c.layers; ++i) h->push_back(gpt2_block(c));
    register_module("h", h);
    register_module("ln_f", ln_f);
    register_module("lm_head", lm_head);
    position_ids = register_buffer("position_ids", torch::arange(c.positions, torch::kLong));
}

torch::Tensor gpt2_impl::forward(torch::Tensor const& tokens) {
    module_scope const scope(this);
    auto const words = wte(tokens);
    auto x = drop(words + wpe(position_ids.slice(0, 0, tokens.size(1))), dropout, is_training());
    for (auto const& block : *h) x = block->as<gpt2_block_impl>()->forward(x);
    return lm_head(ln_f(x));
}

}  // namespace cantle_models
