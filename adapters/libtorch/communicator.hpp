// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rank needs of the others: the five collectives of cantle/program/transfer.hpp on contiguous buffers. One body per way to run:
// threads of one process (thread_ranks.hpp), Gloo (gloo_ranks.hpp), NCCL (nccl_ranks.hpp).
#include <cantle/program/transfer.hpp>

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace cantle::libtorch {

/// A collective that was started. Keeps its buffers alive until it is destroyed; one that is not waited for still takes part.
class pending {
public:
    virtual ~pending() = default;
    /// Would wait() return without waiting for other ranks?
    virtual bool is_done() = 0;
    /// The result, a new tensor. To be called once. Throws where another rank failed or left.
    virtual at::Tensor wait() = 0;
};

/// One rank's end. Every call names its group by `t.axes` (members in the order that transfer.hpp defines); all members must start the
/// same collectives of a group in the same order, and may wait for them in any. `mine` is contiguous and must not be changed while a
/// collective is under way.
/// all_gather: [...] -> [members][...]. reduce_scatter: [members][...] -> [...]. all_reduce: same shape. all_to_all: [members][...] ->
/// [members][...], entry m from member m. permute: the tensor of member t.receive_from.
class communicator {
public:
    virtual ~communicator() = default;
    virtual std::unique_ptr<pending> start(transfer const& t, at::Tensor mine) = 0;
    at::Tensor run(transfer const& t, at::Tensor mine) { return start(t, std::move(mine))->wait(); }
    /// This rank failed and comes to no further collective: ends those that wait for it, as far as the body can. `why` is for their error.
    virtual void fail(std::string const& why) noexcept = 0;
};

}  // namespace cantle::libtorch
