// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rank needs of the others: the five collectives of cantle/program/transfer.hpp on contiguous buffers. One body per way to run:
// threads of one process (thread_ranks.hpp), c10d process groups.
#include <cantle/program/transfer.hpp>

#include <ATen/core/Tensor.h>

namespace cantle::libtorch {

/// One rank's end. Every call names its group by `t.axes` (members in the order that transfer.hpp defines) and must be made by all members
/// in the same order. `mine` is contiguous; the result is a new tensor.
class communicator {
public:
    virtual ~communicator() = default;
    /// all_gather: [...] -> [members][...]. reduce_scatter: [members][...] -> [...]. all_reduce: same shape. all_to_all: [members][...] ->
    /// [members][...], entry m from member m. permute: the tensor of member t.receive_from.
    virtual at::Tensor run(transfer const& t, at::Tensor const& mine) = 0;
};

}  // namespace cantle::libtorch
