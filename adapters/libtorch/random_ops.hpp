// SPDX-License-Identifier: BSL-1.0
#pragma once
// The ops that ranks call for random numbers, cantle::counter_*: every element is a function of the current run's seed (run_context.hpp; 0
// outside every run), the number of the draw and the element's global index. CPU tensors are filled by a kernel of our own; on any other
// device the same bits are computed with whole-number ops of ATen. docs/random.md lists the ops.

namespace cantle::libtorch {

/// While one lives, CPU tensors of this thread are drawn as those of other devices are: for tests.
class portable_draws_guard {
public:
    portable_draws_guard();
    ~portable_draws_guard();
    portable_draws_guard(portable_draws_guard const&) = delete;
    portable_draws_guard& operator=(portable_draws_guard const&) = delete;

private:
    bool before_;
};

}  // namespace cantle::libtorch
