// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rank does with its tensor before and after a collective: parts of uneven dims spread and closed, members brought to the front.
#include <cantle/program/transfer.hpp>

#include <ATen/core/Tensor.h>

namespace cantle::libtorch {

/// The buffer that goes into the collective, contiguous: sizes t.sent(). Of a slice: this rank's part. Where t.before is empty (a value
/// made inside an op, known only now) the tensor itself, contiguous.
at::Tensor packed(at::Tensor const& value, transfer const& t);

/// The tensor of sizes t.after, contiguous, from what the collective gave (sizes t.received()).
at::Tensor unpacked(at::Tensor const& buffer, transfer const& t);

}  // namespace cantle::libtorch
