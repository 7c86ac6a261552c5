// SPDX-License-Identifier: BSL-1.0
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL
#endif
#include <adapters/libtorch/nccl_ranks.hpp>

#include <cantle/base/error.hpp>

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace cantle::libtorch {

std::unique_ptr<communicator> nccl_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh const& mesh, std::int64_t rank,
                                                std::vector<std::vector<std::uint8_t>> const& groups) {
    if (c10::cuda::device_count() == 0)
        throw error(error_code::rank_failed, "NCCL, rank " + std::to_string(rank), "this machine has no GPU that CUDA can use",
                    "run on a machine with GPUs, or run the ranks on Gloo or on threads");
    auto const make = [](c10::intrusive_ptr<c10d::Store> own, int member, int members) -> c10d_communicator::backend {
        return c10::make_intrusive<c10d::ProcessGroupNCCL>(std::move(own), member, members);
    };
    return std::make_unique<c10d_communicator>(std::move(store), mesh, rank, false, make, groups);
}

}  // namespace cantle::libtorch
