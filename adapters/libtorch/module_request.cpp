// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_request.hpp>

#include <torch/nn/module.h>

namespace cantle::libtorch {

capture_request request_of(torch::nn::Module const& module) {
    capture_request request;
    for (auto const& item : module.named_parameters()) request.parameters.push_back({item.key(), item.value()});
    for (auto const& item : module.named_buffers()) request.buffers.push_back({item.key(), item.value()});
    // Walked by hand: named_modules() wants modules to be owned by shared pointers, which a module on the stack is not.
    auto const walk = [&request](auto const& self, torch::nn::Module const& m, std::string const& path) -> void {
        request.modules.emplace_back(&m, path);
        for (auto const& child : m.named_children()) self(self, *child.value(), path.empty() ? child.key() : path + "." + child.key());
    };
    walk(walk, module, "");
    return request;
}

}  // namespace cantle::libtorch
