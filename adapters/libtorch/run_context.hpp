// SPDX-License-Identifier: BSL-1.0
#pragma once
// What an op's kernel may ask about the run that calls it: the seed (random ops) and the other ranks (regions). Boxed calls carry tensors
// and literals only, so it stands in the thread that runs the rank.
#include <adapters/libtorch/communicator.hpp>

#include <cantle/program/program.hpp>

#include <cstddef>
#include <cstdint>

namespace cantle::libtorch {

/// One rank's run.
struct run_context {
    std::uint64_t seed = 0;             ///< equal on all ranks; random ops are functions of it, of the op and of global indices
    device_mesh const* mesh = nullptr;  ///< never null inside a run
    std::int64_t rank = 0;
    communicator* others = nullptr;     ///< never null inside a run
    rank_program const* program = nullptr;
    std::size_t step = 0;               ///< of program, the one that is running
};

/// The run whose op is being called in this thread; null outside every run.
run_context const* current_run();

/// Makes `context` the current run of this thread for its lifetime.
class run_context_guard {
public:
    explicit run_context_guard(run_context const& context);
    ~run_context_guard();
    run_context_guard(run_context_guard const&) = delete;
    run_context_guard& operator=(run_context_guard const&) = delete;

private:
    run_context const* before_;
};

}  // namespace cantle::libtorch
