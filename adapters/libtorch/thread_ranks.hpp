// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ranks as threads of one process: for tests, for `cantle verify`, and wherever no second device is at hand. Reductions add in the order of
// the members, so results do not depend on timing. A rank that throws, ends early or runs another collective ends all ranks, those too that
// wait for a collective started before (cantle/program/thread_group.hpp).
#include <adapters/libtorch/executor.hpp>

#include <cantle/mesh/layout.hpp>

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace cantle::libtorch {

/// A transfer that a rank ran.
struct ran_collective {
    collective_kind kind = collective_kind::slice;
    std::vector<std::uint8_t> axes;
    std::int64_t bytes = 0;  ///< of the buffer that the rank gave
    bool operator==(ran_collective const&) const = default;
};

struct thread_run {
    std::vector<std::vector<at::Tensor>> outputs;         ///< [rank][sink]
    std::vector<std::vector<ran_collective>> collectives; ///< [rank], in order
};

/// Runs one executor per rank of the mesh (in order of rank), each in a thread of its own. `inputs`: [rank][source]. Throws the error of
/// the first rank that failed (lowest rank among those that did not merely follow another).
thread_run run_on_threads(std::vector<rank_executor> const& ranks, std::vector<std::vector<at::Tensor>> inputs, std::uint64_t seed = 0);

/// Runs body(rank, its communicator) for every rank of the mesh in a thread of its own. Throws as run_on_threads.
void run_with_threads(device_mesh const& mesh, std::function<void(std::int64_t, communicator&)> const& body);

/// The ranks of the group that `rank` belongs to on `axes`, in the order of the members.
std::vector<std::int64_t> ranks_of_group(device_mesh const& mesh, std::vector<std::uint8_t> const& axes, std::int64_t rank);

}  // namespace cantle::libtorch
