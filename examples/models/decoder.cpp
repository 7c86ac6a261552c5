// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <adapters/libtorch/region.hpp>
#include <examples/models/decoder.hpp>

#include <ATen/OpMathType.h>

#include <cmath>
#include <limits>
#include <string>

namespace cantle_models {
using cantle::libtorch::module_scope;

namespace {

using tensors = std::vector<at::Tensor>;

torch::Tensor attend(torch::Tensor const& q, torch::Tensor const& k, torch::Tensor const& v, torch::Tensor const& mask) {
    auto const bias = mask.defined() ? std::optional<torch::Tensor>(mask) : std::nullopt;
    return at::scaled_dot_product_attention(q, k, v, bias, /*dropout_p=*/0.0, /*is_causal=*/!mask.defined(), /*scale=*/{},
                                            /*enable_gqa=*/q.size(1) != k.size(1));
}

// [local_attention]
/// On one rank of cp: its block of queries against all blocks of keys and values, which go round the ring. Softmax over all blocks needs
/// their maximum and sum as they come: what was added up before is scaled whenever the maximum grows.
tensors attend_round_the_ring(cantle::libtorch::region_ranks& ranks, tensors const& in) {
    auto const& q = in[0];
    auto k = in[1], v = in[2];
    auto const blocks = ranks.size("cp?"), mine = ranks.coordinate("cp?"), s = q.size(2), groups = q.size(1) / k.size(1);
    auto const wide = at::toOpMathType(q.scalar_type());
    auto const later = at::ones({s, s}, q.options().dtype(at::kBool)).triu(1);
    at::Tensor maximum, sum, mixed;  // [B, H, s, 1], [B, H, s, 1], [B, H, s, E]
    for (std::int64_t step = 0; step < blocks; ++step) {
        if (step > 0) {  // all ranks shift, whether they need the block or not
            k = ranks.shift(k, "cp?");
            v = ranks.shift(v, "cp?");
        }
        auto const block = (mine - step + blocks) % blocks;
        if (block > mine) continue;  // all its keys come later than my queries
        auto scores = at::matmul(q, k.repeat_interleave(groups, 1).transpose(2, 3)).to(wide) / std::sqrt(static_cast<double>(q.size(3)));
        if (block == mine) scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
        auto top = scores.detach().amax(-1, true);  // finite: the first block is the rank's own
        if (maximum.defined()) top = at::maximum(top, maximum);
        auto const weights = at::exp(scores - top);
        auto const part = at::matmul(weights, v.repeat_interleave(groups, 1).to(wide));
        if (maximum.defined()) {
            auto const shrink = at::exp(maximum - top);
            sum = sum * shrink + weights.sum(-1, true);
            mixed = mixed * shrink + part;
        } else {
            sum = weights.sum(-1, true);
            mixed = part;
        }
        maximum = top;
    }
    return {(mixed / sum).to(q.scalar_type())};
}
// [/local_attention]

// [attention]
/// Query [B, H, S, E], key and value [B, Hk, S, E] -> [B, H, S, E], causal.
cantle::libtorch::region_spec ring_attention(std::int64_t sequence) {
    std::string const lies = "*=S0, cp?=S2, tp?=S1";
    cantle::libtorch::region_spec spec;
    spec.options.name = "ring_attention";
    spec.options.inputs = {lies, lies, lies};
    spec.options.outputs = {lies};
    spec.options.flops_per_element = 4.0 * static_cast<double>(sequence);  // a row of scores and a row of the output, multiply and add
    spec.options.collectives = "cp?:permute:in1*ring, cp?:permute:in2*ring";
    spec.reference = [](tensors const& in) { return tensors{attend(in[0], in[1], in[2], {})}; };
    spec.shapes = [](tensors const& in) { return tensors{at::empty_like(in[0])}; };
    spec.local = attend_round_the_ring;
    return spec;
}
// [/attention]

}  // namespace

decoder_attention_impl::decoder_attention_impl(decoder_config const& c)
    : config(c), wq(projection(c.dim, c.heads * c.head_dim)), wk(projection(c.dim, c.kv_heads * c.head_dim)),
      wv(projection(c.dim, c.kv_heads * c.head_dim)), wo(projection(c.heads * c.head_dim, c.dim)) {
    register_module("wq", wq);
    register_module("wk", wk);
    register_module("wv", wv);
    register_module("wo", wo);
    if (c.head_norm) {
        q_norm = register_module("q_norm", rms_norm(c.head_dim, c.eps));
        k_norm = register_module("k_norm", rms_norm(c.head_dim, c.eps));
    }
    if (c.ring) cantle::libtorch::register_region(ring_attention(c.sequence));
}

torch::Tensor decoder_attention_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin,
                                              torch::Tensor const& mask) {
    module_scope const scope(this);
    auto const b = x.size(0), s = x.size(1);
    auto const heads = [&](torch::Tensor const& t, std::int64_t n) { return t.view({b, s, n, config.head_dim}); };
    auto q = heads(wq(x), config.heads);
    auto k = heads(wk(x), config.kv_heads);
    if (config.head_norm) {
        q = q_norm(q);
        k = k_norm(k);
    }
    q = rotate(q.transpose(1, 2), cos, sin);
    k = rotate(k.transpose(1, 2), cos, sin);
    auto const v = heads(wv(x), config.kv_heads).transpose(1, 2);
    auto const mixed = config.ring ? cantle::libtorch::region(ring_attention(s), {q, k, v})[0] : attend(q, k, v, mask);
    return wo(mixed.transpose(1, 2).reshape({b, s, config.heads * config.head_dim}));
}

decoder_layer_impl::decoder_layer_impl(decoder_config const& c)
    : attention_norm(c.dim, c.eps), attention(c), ffn_norm(c.dim, c.eps), feed_forward(c.dim, c.ffn) {
    register_module("attention_norm", attention_norm);
    register_module("attention", attention);
    register_module("ffn_norm", ffn_norm);
    register_module("feed_forward", feed_forward);
}

torch::Tensor decoder_layer_impl::forward(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin,
                                          torch::Tensor const& mask) {
    module_scope const scope(this);
    auto const h = x + attention(attention_norm(x), cos, sin, mask);
    return h + feed_forward(ffn_norm(h));
}

decoder_impl::decoder_impl(decoder_config const& c)
    : config(c), tok_embeddings(c.vocab, c.dim), norm(c.dim, c.eps), output(projection(c.dim, c.vocab)) {
    register_module("tok_embeddings", tok_embeddings);
    for (std::int64_t i = 0; i < c.layers; ++i) layers->push_back(decoder_layer(c));
    register_module("layers", layers);
    register_module("norm", norm);
    register_module("output", output);
    auto const [cos, sin] = rotary_tables(c.sequence, c.head_dim, c.theta);
    rope_cos = register_buffer("rope_cos", cos);
    rope_sin = register_buffer("rope_sin", sin);
    if (c.window > 0) {
        auto const ones = torch::ones({c.sequence, c.sequence}, torch::kBool);
        auto const seen = ones.tril() & ones.triu(1 - c.window);
        auto const mask = torch::zeros({c.sequence, c.sequence}).masked_fill(~seen, -std::numeric_limits<double>::infinity());
        window_mask = register_buffer("window_mask", mask.view({1, 1, c.sequence, c.sequence}));
    }
}

torch::Tensor decoder_impl::forward(torch::Tensor const& tokens) {
    module_scope const scope(this);
    auto const s = tokens.size(1);
    auto const cos = rope_cos.slice(0, 0, s);
    auto const sin = rope_sin.slice(0, 0, s);
    auto const mask = window_mask.defined() ? window_mask.slice(2, 0, s).slice(3, 0, s) : torch::Tensor();
    auto x = tok_embeddings(tokens);
    std::int64_t i = 0;
    for (auto const& layer : *layers) {
        bool const full = ++i % config.full_every == 0;
        x = layer->as<decoder_layer_impl>()->forward(x, cos, sin, full ? torch::Tensor() : mask);
    }
    return output(norm(x));
}

}  // namespace cantle_models
