// SPDX-License-Identifier: BSL-1.0
#pragma once
// Some kernels trust their callers: shapes that do not fit, or indices out of range, make them read and write foreign memory instead of
// refusing. The oracle runs ops on operands that need not fit, so it asks here first.
#include <cantle/graph/op.hpp>

#include <ATen/core/Tensor.h>

#include <span>

namespace cantle::libtorch {

/// Throws bad_rule where the op of that name would not check its operands itself and they do not fit.
void guard_kernel(op const& call, std::span<at::Tensor const> operands);

}  // namespace cantle::libtorch
