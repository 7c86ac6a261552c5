// SPDX-License-Identifier: BSL-1.0
#pragma once
// Shapes of ops that have no Meta kernel in C++ (PyTorch registers theirs from Python): a table op name -> function on the boxed stack.
// The list of such ops: shared/facts/aten-ops-without-cpp-meta-kernel.txt. To add one, write its line in shape_functions.cpp.
#include <ATen/core/dispatch/Dispatcher.h>

namespace cantle::libtorch {

/// Replaces an op's arguments on the stack by meta tensors with the shapes, strides and types that the op's CPU kernel gives.
using shape_function = void (*)(torch::jit::Stack&);

/// The shape function of that op, or nullptr where it has none and needs none.
shape_function const* find_shape_function(c10::OperatorHandle const& handle);

}  // namespace cantle::libtorch
