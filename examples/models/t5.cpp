// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/t5.hpp>

#include <cmath>
#include <limits>

namespace cantle_models {
using cantle::libtorch::module_scope;

torch::Tensor distance_buckets(std::int64_t sequence, std::int64_t buckets, std::int64_t max_distance, bool both_ways) {
    auto const position = torch::arange(sequence, torch::kLong);
    if (position.is_meta()) return torch::empty({sequence, sequence}, torch::kLong);  // not all that follows has a kernel there
    auto const ahead = position.unsqueeze(0) - position.unsqueeze(1);  // how far the key is ahead of the query
    auto const side = both_ways ? buckets / 2 : buckets;               // buckets of one direction
    auto const distance = both_ways ? ahead.abs() : -ahead.clamp_max(0);
    auto const near = side / 2;
    auto const growth = std::log(static_cast<double>(max_distance) / static_cast<double>(near));
    auto const wide =
        (distance.clamp_min(1).to(torch::kFloat) / static_cast<double>(near)).log() / growth * static_cast<double>(side - near);
    auto const far = (near + wide.to(torch::kLong)).clamp_max(side - 1);
    auto const bucket = torch::where(distance < near, distance, far);
    return both_ways ? bucket + (ahead > 0).to(torch::kLong) * side : bucket;
}

t5_attention_impl::t5_attention_impl(t5_config const& c)
    : config(c), q(projection(c.dim, c.heads * c.head_dim)), k(projection(c.dim, c.heads * c.head_dim)),
      v(projection(c.dim, c.heads * c.head_dim)), o(projection(c.heads * c.head_dim, c.dim)) {
    register_module("q", q);
    register_module("k", k);
    register_module("v", v);
    register_module("o", o);
}

torch::Tensor t5_attention_impl::forward(torch::Tensor const& x, torch::Tensor const& memory, torch::Tensor const& bias) {
    module_scope const scope(this);
    auto const heads = [&](torch::Tensor const& t) {
        return t.view({t.size(0), t.size(1), config.heads, config.head_dim}).transpose(1, 2);
    };
    auto scores = at::matmul(heads(q(x)), heads(k(memory)).transpose(-1, -2));
    if (bias.defined()) scores = scores + bias;
    auto const shares = at::softmax(scores.to(torch::kFloat), -1).to(scores.scalar_type());
    auto const mixed = at::matmul(shares, heads(v(memory))).transpose(1, 2);
    return o(mixed.reshape({x.size(0), x.size(1), config.heads * config.head_dim}));
}

t5_feed_forward_impl::t5_feed_forward_impl(t5_config const& c) : wi(projection(c.dim, c.ffn)), wo(projection(c.ffn, c.dim)) {
    register_module("wi", wi);
    register_module("wo", wo);
}

torch::Tensor t5_feed_forward_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    return wo(torch::relu(wi(x)));
}

t5_layer_impl::t5_layer_impl(t5_config const& c, bool decodes)
    : attention_norm(c.dim, c.eps), attention(c), ffn_norm(c.dim, c.eps), feed_forward(c) {
    register_module("attention_norm", attention_norm);
    register_module("attention", attention);
    if (decodes) {
        cross_norm = register_module("cross_norm", rms_norm(c.dim, c.eps));
        cross = register_module("cross", t5_attention(c));
    }
    register_module("ffn_norm", ffn_norm);
    register_module("feed_forward", feed_forward);
}

torch::Tensor t5_layer_impl::forward(torch::Tensor x, torch::Tensor const& bias, torch::Tensor const& memory) {
    module_scope const scope(this);
    auto const own = attention_norm(x);
    x = x + attention(own, own, bias);
    if (cross) x = x + cross(cross_norm(x), memory, torch::Tensor());
    return x + feed_forward(ffn_norm(x));
}

t5_stack_impl::t5_stack_impl(t5_config const& c, bool d) : decodes(d), position_bias(c.buckets, c.heads), norm(c.dim, c.eps) {
    register_module("position_bias", position_bias);
    for (std::int64_t i = 0; i < c.layers; ++i) layers->push_back(t5_layer(c, decodes));
    register_module("layers", layers);
    register_module("norm", norm);
    distances = register_buffer("distances", distance_buckets(c.sequence, c.buckets, c.max_distance, !decodes));
}

torch::Tensor t5_stack_impl::forward(torch::Tensor x, torch::Tensor const& memory) {
    module_scope const scope(this);
    auto const s = x.size(1);
    auto bias = position_bias(distances.slice(0, 0, s).slice(1, 0, s)).permute({2, 0, 1}).unsqueeze(0);
    if (decodes) bias = bias + torch::full({s, s}, -std::numeric_limits<double>::infinity(), bias.options().requires_grad(false)).triu(1);
    for (auto const& layer : *layers) x = layer->as<t5_layer_impl>()->forward(x, bias, memory);
    return norm(x);
}

t5_impl::t5_impl(t5_config const& c) : config(c), shared(c.vocab, c.dim), encoder(c, false), decoder(c, true), lm_head(shared->weight) {
    register_module("shared", shared);
    register_module("encoder", encoder);
    register_module("decoder", decoder);
    register_module("lm_head", lm_head);
}

torch::Tensor t5_impl::forward(torch::Tensor const& tokens, torch::Tensor const& decoder_tokens) {
    module_scope const scope(this);
    auto const memory = encoder(shared(tokens), torch::Tensor());
    auto const x = decoder(shared(decoder_tokens), memory);
    return lm_head(x * (1.0 / std::sqrt(static_cast<double>(config.dim))));
}

}  // namespace cantle_models
