// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ranks on NVIDIA GPUs that talk through NCCL, one process per GPU. In a library of its own (cantle_libtorch_nccl), since it loads CUDA.
// It has compiled, linked and refused machines without a GPU so far; it has not run on one.
#include <adapters/libtorch/c10d_ranks.hpp>

namespace cantle::libtorch {

/// As c10d_communicator, over NCCL. A result is there for the kernels of the current stream, not yet for the CPU. Throws rank_failed where
/// this machine has no GPU that CUDA can use.
std::unique_ptr<communicator> nccl_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh const& mesh, std::int64_t rank,
                                                std::vector<std::vector<std::uint8_t>> const& groups);

}  // namespace cantle::libtorch
