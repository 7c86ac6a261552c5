// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that autograd or composite kernels take apart before the listening key sees them, and that a capture keeps whole: linear (also as
// matmul or addmm with a transposed weight, which is how torch::nn::Linear writes it), scaled_dot_product_attention, cross_entropy_loss.
// They are caught at a mode key above autograd and become autograd functions over cantle's own ops. No kernel of PyTorch is replaced:
// outside of the guard nothing changes for anyone in the process.
#include <memory>

namespace cantle::libtorch {

/// While one lives, this thread's whole ops are on.
class whole_ops_guard {
public:
    whole_ops_guard();
    ~whole_ops_guard();
    static bool active();  ///< whether one lives in this thread, and no op that is kept whole runs just now
    whole_ops_guard(whole_ops_guard const&) = delete;
    whole_ops_guard& operator=(whole_ops_guard const&) = delete;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace cantle::libtorch
