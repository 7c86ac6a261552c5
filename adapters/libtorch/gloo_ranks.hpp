// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ranks on CPUs that talk through Gloo: processes on one or several machines, or threads.
#include <adapters/libtorch/c10d_ranks.hpp>

namespace cantle::libtorch {

struct gloo_options {
    std::string host = "127.0.0.1";              ///< the address at which others reach this rank; empty: what this machine calls itself
    std::chrono::milliseconds timeout{300'000};  ///< of one collective, and of the meeting at the start
};

/// As c10d_communicator, over Gloo.
std::unique_ptr<communicator> gloo_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh const& mesh, std::int64_t rank,
                                                std::vector<std::vector<std::uint8_t>> const& groups, gloo_options const& options = {});

}  // namespace cantle::libtorch
