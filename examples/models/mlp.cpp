// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <examples/models/mlp.hpp>

namespace cantle_models {

mlp_impl::mlp_impl(mlp_config const& c) {
    for (std::int64_t i = 0; i < c.layers; ++i)
        layers->push_back(torch::nn::Linear(i == 0 ? c.dim : c.hidden, i + 1 == c.layers ? c.classes : c.hidden));
    register_module("layers", layers);
}

torch::Tensor mlp_impl::forward(torch::Tensor x) {
    cantle::libtorch::module_scope const scope(this);
    for (std::size_t i = 0; i < layers->size(); ++i) {
        if (i > 0) x = torch::relu(x);
        x = layers[i]->as<torch::nn::Linear>()->forward(x);
    }
    return x;
}

}  // namespace cantle_models
