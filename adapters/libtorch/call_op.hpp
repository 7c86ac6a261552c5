// SPDX-License-Identifier: BSL-1.0
#pragma once
// Calling an op of a graph with real tensors: a boxed call through PyTorch's dispatcher, below autograd. Ops of cantle's own (whole
// linears, fused attention, cross-entropy) are registered there too and are called in the same way.
#include <cantle/graph/op.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <span>
#include <vector>

namespace cantle::libtorch {

/// An op looked up once and callable many times, from several threads. Its literals are boxed once.
class op_caller {
public:
    /// Throws error 401 where PyTorch knows no op of that name, 105 where a required argument is missing.
    explicit op_caller(op const& operation);
    op_caller(op_caller const&) = delete;
    op_caller& operator=(op_caller const&) = delete;

    /// Calls the op. Operand slots refer to `operands`; a neutral device literal becomes `device`. Returns the tensor outputs in schema
    /// order, lists of tensors flattened; an output that the op does not produce is an undefined tensor. Gradients are not recorded.
    std::vector<at::Tensor> operator()(std::span<at::Tensor const> operands, c10::Device device) const;

    /// The same without allocations: slot i is values[operands[i]], output o goes to values[outputs[o]], `stack` is working space. The
    /// caller keeps autograd away (AutoDispatchBelowADInplaceOrView). Gives the number of outputs; those above `outputs` are dropped.
    std::size_t call(torch::jit::Stack& stack, std::span<at::Tensor> values, std::span<std::uint32_t const> operands,
                     std::span<std::uint32_t const> outputs, c10::Device device) const;

    c10::OperatorHandle const& handle() const { return handle_; }

private:
    enum class role : std::uint8_t { literal, device, tensor, tensors, optional_tensors };
    struct boxed_argument {
        role is = role::literal;
        std::uint32_t slot = 0;            // of a tensor
        std::vector<std::int32_t> slots;   // of lists
        c10::IValue literal;
    };
    c10::OperatorHandle handle_;
    bool wants_contiguous_;                  // its kernel would read strided operands wrongly
    std::vector<boxed_argument> arguments_;  // in schema order
    std::uint32_t operands_ = 0;             // the number of operands that slots refer to

    template <class Operand>
    void push(torch::jit::Stack& stack, Operand const& operand, c10::Device device) const;
};

/// One call. Same as op_caller(operation)(operands, device).
std::vector<at::Tensor> call_op(op const& operation, std::span<at::Tensor const> operands, c10::Device device = c10::kCPU);

}  // namespace cantle::libtorch
