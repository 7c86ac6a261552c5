// SPDX-License-Identifier: BSL-1.0
#pragma once
// What capture needs of a torch::nn::Module: its parameters, buffers and module paths. (Free of torch/torch.h.)
#include <adapters/libtorch/capture.hpp>

namespace torch::nn {
class Module;
}

namespace cantle::libtorch {

/// A request with parameters, buffers and module paths filled in, under the names of Python's state_dict.
capture_request request_of(torch::nn::Module const& module);

}  // namespace cantle::libtorch
