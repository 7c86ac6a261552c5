// SPDX-License-Identifier: BSL-1.0
// Operands with a cost are named first: C++ leaves the order of evaluation of a * b open, and a captured graph should not depend on it.
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/decoder_parts.hpp>

namespace cantle_models {
using cantle::libtorch::module_scope;

torch::nn::Linear projection(std::int64_t in, std::int64_t out) { return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(false)); }

torch::Tensor rotate(torch::Tensor const& x, torch::Tensor const& cos, torch::Tensor const& sin) {
    auto const halves = x.chunk(2, -1);
    auto const turned = torch::cat({-halves[1], halves[0]}, -1);
    auto const along = x * cos;
    return along + turned * sin;
}

std::pair<torch::Tensor, torch::Tensor> rotary_tables(std::int64_t sequence, std::int64_t head_dim, double theta) {
    auto const exponents = torch::arange(0, head_dim, 2, torch::kFloat) / static_cast<double>(head_dim);
    auto const angles = torch::outer(torch::arange(sequence, torch::kFloat), torch::pow(theta, -exponents));
    auto const both = torch::cat({angles, angles}, -1);
    return {both.cos(), both.sin()};
}

rms_norm_impl::rms_norm_impl(std::int64_t dim, double eps_) : eps(eps_) { weight = register_parameter("weight", torch::ones({dim})); }

torch::Tensor rms_norm_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const wide = x.to(torch::kFloat);
    auto const scale = torch::rsqrt(wide.pow(2).mean(-1, true) + eps);
    return (wide * scale).to(x.scalar_type()) * weight;
}

swiglu_impl::swiglu_impl(std::int64_t dim, std::int64_t hidden)
    : w1(projection(dim, hidden)), w2(projection(hidden, dim)), w3(projection(dim, hidden)) {
    register_module("w1", w1);
    register_module("w2", w2);
    register_module("w3", w3);
}

torch::Tensor swiglu_impl::forward(torch::Tensor const& x) {
    module_scope const scope(this);
    auto const gate = torch::silu(w1(x));
    return w2(gate * w3(x));
}

}  // namespace cantle_models
