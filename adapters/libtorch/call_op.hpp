// SPDX-License-Identifier: BSL-1.0
#pragma once
// Calling an op of a graph with real tensors: a boxed call through PyTorch's dispatcher, below autograd. Ops of cantle's own (whole
// linears, fused attention, cross-entropy) are registered there too and are called in the same way.
#include <cantle/graph/op.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <span>
#include <vector>

namespace cantle::libtorch {

/// An op looked up once and callable many times. Holds a copy of its literals.
class op_caller {
public:
    /// Throws error 401 where PyTorch knows no op of that name, 105 where a required argument is missing.
    explicit op_caller(op operation);
    op_caller(op_caller const&) = delete;
    op_caller& operator=(op_caller const&) = delete;

    /// Calls the op. Operand slots refer to `operands`; a neutral device literal becomes `device`. Returns the tensor outputs in schema
    /// order, lists of tensors flattened; an output that the op does not produce is an undefined tensor. Gradients are not recorded.
    std::vector<at::Tensor> operator()(std::span<at::Tensor const> operands, c10::Device device) const;

    c10::OperatorHandle const& handle() const { return handle_; }

private:
    op operation_;
    c10::OperatorHandle handle_;
    bool wants_contiguous_;                      // its kernel would read strided operands wrongly
    std::vector<argument_value const*> values_;  // by schema argument; nullptr: the schema's default
};

/// One call. Same as op_caller(operation)(operands, device).
std::vector<at::Tensor> call_op(op const& operation, std::span<at::Tensor const> operands, c10::Device device = c10::kCPU);

}  // namespace cantle::libtorch
