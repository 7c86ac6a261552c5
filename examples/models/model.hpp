// SPDX-License-Identifier: BSL-1.0
#pragma once
// The example models: ordinary torch::nn code, any size. What stands here is free of torch/torch.h.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace cantle_models {

/// Sizes by name: {"dim", 4096}, {"layers", 32}, ...
using sizes = std::vector<std::pair<std::string, std::int64_t>>;

/// One batch: what goes into forward, and what the loss compares with.
struct batch {
    std::vector<std::pair<std::string, at::Tensor>> inputs;
    at::Tensor target;
};

/// A model that was built: a module and how to use it.
struct model {
    std::string name;
    sizes config;                                                    ///< all its sizes, overrides applied
    std::shared_ptr<torch::nn::Module> module;
    std::function<at::Tensor(std::vector<at::Tensor> const&)> forward;  ///< inputs, in the order of batch::inputs -> logits
    std::function<at::Tensor(at::Tensor const&, at::Tensor const&)> loss;  ///< logits, target -> scalar
    /// A random batch on the device and of the type of the module's first parameter. `sequence` is not used by the mlp.
    std::function<batch(std::int64_t batch_size, std::int64_t sequence)> example;
};

/// A model that can be made.
struct model_info {
    std::string name, what;
    sizes defaults;
};

/// All models, in a fixed order.
std::vector<model_info> const& list_models();

/// Builds a model with the sizes of list_models() and the given ones in their place. `sequence` is the longest one it must take.
/// Throws cantle::error 603 for an unknown name, 701 for a size the model does not have or that does not fit the others.
model make_model(std::string_view name, sizes const& overrides, std::int64_t sequence);

/// Casts all floating point parameters and buffers. (Module::to would cast integer buffers as well.)
void cast(torch::nn::Module& module, at::ScalarType type);

}  // namespace cantle_models
