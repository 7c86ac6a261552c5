// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <adapters/libtorch/region.hpp>
#include <examples/models/deepseek.hpp>

#include <cmath>
#include <string>
#include <utility>

namespace cantle_models {
using cantle::libtorch::module_scope;

namespace {

using tensors = std::vector<at::Tensor>;

/// Tokens [B, S, D], weights and ids of the chosen experts [B, S, top], w1, w2, w3 -> [B, S, D]. One device: every expert on all tokens.
tensors all_experts(tensors const& in) {
    auto const& x = in[0];
    auto sum = at::zeros_like(x);
    for (std::int64_t e = 0; e < in[3].size(0); ++e) {
        auto const weight = (in[1] * in[2].eq(e)).sum(-1, true);
        auto const gate = at::silu(at::linear(x, in[3][e]));
        auto const up = at::linear(x, in[5][e]);
        sum = sum + weight * at::linear(gate * up, in[4][e]);
    }
    return {sum};
}

// [local_experts]
/// The same on one rank: its tokens travel to the ranks of ep that have their experts, and back. Who sends how many depends on the data.
tensors travelling_tokens(cantle::libtorch::region_ranks& ranks, tensors const& in) {
    auto const top = in[2].size(-1), here = in[3].size(0), all = here * ranks.size("ep?");
    auto const x = in[0].reshape({-1, in[0].size(-1)});
    auto const ids = in[2].reshape({-1});  // one entry per token and choice
    auto const order = at::argsort(ids, /*stable=*/true);
    auto const token = at::floor_divide(order, top);
    auto const trip = ranks.exchange(at::bincount(ids, {}, all).view({-1, here}), "ep?");
    auto const arrived = trip.there(x.index_select(0, token));

    // What arrived lies by sender; every expert wants its rows together.
    auto const counts = trip.counts();  // [senders, experts here]
    auto const expert = at::arange(here).repeat({counts.size(0)}).repeat_interleave(counts.reshape({-1}));
    auto const by_expert = at::argsort(expert, /*stable=*/true).to(x.device());
    auto const rows = arrived.index_select(0, by_expert);
    auto const last = counts.sum(0).cumsum(0);
    tensors results;
    for (std::int64_t e = 0, first = 0; e < here; ++e) {
        auto const end = last[e].item<std::int64_t>();
        auto const mine = rows.slice(0, std::exchange(first, end), end);
        results.push_back(at::linear(at::silu(at::linear(mine, in[3][e])) * at::linear(mine, in[5][e]), in[4][e]));
    }
    auto const returned = trip.back(at::cat(results).index_select(0, at::argsort(by_expert)));
    auto const weighted = in[1].reshape({-1}).index_select(0, order).unsqueeze(1) * returned;
    return {at::zeros_like(x).index_add(0, token, weighted).view_as(in[0])};
}
// [/local_experts]

// [experts]
/// Tokens are cut over all axes; each travels to its experts along ep and back.
cantle::libtorch::region_spec expert_region(deepseek_config const& c) {
    std::string const tokens = "*=S0", weights = "ep?=S0, *=R", top = std::to_string(c.top);
    cantle::libtorch::region_spec spec;
    spec.options.name = "experts";
    spec.options.inputs = {tokens, tokens, tokens, weights, weights, weights};
    spec.options.outputs = {tokens};
    spec.options.flops_per_element = 6.0 * static_cast<double>(c.top * c.expert_ffn);  // three products, multiply and add
    spec.options.collectives =  // the counts, an int64 per expert, then every token as often as it has experts
        "ep?:all_gather:" + std::to_string(8 * c.experts) + "B, ep?:all_to_all:" + top + "in0, ep?:all_to_all:" + top + "out0";
    spec.reference = all_experts;
    spec.shapes = [](tensors const& in) { return tensors{at::empty_like(in[0])}; };
    spec.local = travelling_tokens;
    return spec;
}
// [/experts]

}  // namespace

latent_attention_impl::latent_attention_impl(deepseek_config const& c)
    : config(c), wq(projection(c.dim, c.heads * (c.nope_dim + c.rope_dim))), wkv_a(projection(c.dim, c.kv_rank + c.rope_dim)),
      wkv_b(projection(c.kv_rank, c.heads * (c.nope_dim + c.value_dim))), wo(projection(c.heads * c.value_dim, c.dim)),
      kv_norm(c.kv_rank, c.eps) {
    register_module("wq", wq);
    register_module("wkv_a", wkv_a);
    register_module("kv_norm", kv_norm);
    register_module("wkv_b", wkv_b);
    register_module("wo", wo);
}

torch::Tensor latent_attention_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin) {
    module_scope const scope(this);
    auto const& c = config;
    auto const b = x.size(0), s = x.size(1);
    auto const q = wq(x).view({b, s, c.heads, c.nope_dim + c.rope_dim}).transpose(1, 2);
    auto const q_turned = rotate(q.narrow(3, c.nope_dim, c.rope_dim), cos, sin);
    auto const query = torch::cat({q.narrow(3, 0, c.nope_dim), q_turned}, -1);

    auto const latent = wkv_a(x);
    auto const k_turned = rotate(latent.narrow(2, c.kv_rank, c.rope_dim).view({b, s, 1, c.rope_dim}).transpose(1, 2), cos, sin);
    auto const kv = wkv_b(kv_norm(latent.narrow(2, 0, c.kv_rank))).view({b, s, c.heads, c.nope_dim + c.value_dim}).transpose(1, 2);
    auto const key = torch::cat({kv.narrow(3, 0, c.nope_dim), k_turned.expand({b, c.heads, s, c.rope_dim})}, -1);
    auto const value = kv.narrow(3, c.nope_dim, c.value_dim);

    auto const mixed = at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, /*dropout_p=*/0.0, /*is_causal=*/true);
    return wo(mixed.transpose(1, 2).reshape({b, s, c.heads * c.value_dim}));
}

experts_impl::experts_impl(deepseek_config const& c)
    : config(c), router(projection(c.dim, c.experts)), shared(c.dim, c.shared * c.expert_ffn) {
    register_module("router", router);
    auto const bound = 1.0 / std::sqrt(static_cast<double>(c.dim));
    auto const make = [&](char const* name, std::int64_t out, std::int64_t in) {
        return register_parameter(name, torch::empty({c.experts, out, in}).uniform_(-bound, bound));
    };
    w1 = make("w1", c.expert_ffn, c.dim);
    w2 = make("w2", c.dim, c.expert_ffn);
    w3 = make("w3", c.expert_ffn, c.dim);
    register_module("shared", shared);
    cantle::libtorch::register_region(expert_region(c));
}

torch::Tensor experts_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const scores = torch::softmax(router(x), -1, torch::kFloat);
    auto const [best, ids] = torch::topk(scores, config.top, -1);
    auto const routed = cantle::libtorch::region(expert_region(config), {x, best.to(x.scalar_type()), ids, w1, w2, w3})[0];
    return routed + shared(x);
}

deepseek_layer_impl::deepseek_layer_impl(deepseek_config const& c, bool dense)
    : attention_norm(c.dim, c.eps), attention(c), ffn_norm(c.dim, c.eps) {
    register_module("attention_norm", attention_norm);
    register_module("attention", attention);
    register_module("ffn_norm", ffn_norm);
    if (dense) feed_forward = register_module("feed_forward", swiglu(c.dim, c.ffn));
    else mixture = register_module("mixture", experts(c));
}

torch::Tensor deepseek_layer_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin) {
    module_scope const scope(this);
    auto const h = x + attention(attention_norm(x), cos, sin);
    auto const normed = ffn_norm(h);
    return h + (feed_forward ? feed_forward(normed) : mixture(normed));
}

deepseek_impl::deepseek_impl(deepseek_config const& c)
    : config(c), tok_embeddings(c.vocab, c.dim), norm(c.dim, c.eps), output(projection(c.dim, c.vocab)) {
    register_module("tok_embeddings", tok_embeddings);
    for (std::int64_t i = 0; i < c.layers; ++i) layers->push_back(deepseek_layer(c, i < c.dense_layers));
    register_module("layers", layers);
    register_module("norm", norm);
    register_module("output", output);
    auto const [cos, sin] = rotary_tables(c.sequence, c.rope_dim, c.theta);
    rope_cos = register_buffer("rope_cos", cos);
    rope_sin = register_buffer("rope_sin", sin);
}

torch::Tensor deepseek_impl::forward(torch::Tensor const& tokens) {
    module_scope const scope(this);
    auto const cos = rope_cos.slice(0, 0, tokens.size(1));
    auto const sin = rope_sin.slice(0, 0, tokens.size(1));
    auto x = tok_embeddings(tokens);
    for (auto const& layer : *layers) x = layer->as<deepseek_layer_impl>()->forward(x, cos, sin);
    return output(norm(x));
}

}  // namespace cantle_models
