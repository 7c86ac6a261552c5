// SPDX-License-Identifier: BSL-1.0
#pragma once
// Building a model without memory: while a meta_scope lives, every tensor that this thread creates is a meta tensor, whatever device its
// creator names. So ordinary torch::nn constructors build LLaMA 3 70B in milliseconds. (Python has torch.device("meta") for it; C++ has
// not.)
#include <memory>

namespace cantle::libtorch {

/// All factory ops of this thread give meta tensors until the end of the scope. Code that writes elements through a data pointer
/// (torch::tensor({...})) gets an exception from PyTorch instead of a null pointer.
class meta_scope {
public:
    meta_scope();
    ~meta_scope();
    meta_scope(meta_scope const&) = delete;
    meta_scope& operator=(meta_scope const&) = delete;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace cantle::libtorch
