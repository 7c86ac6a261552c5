// SPDX-License-Identifier: BSL-1.0
#pragma once
// HiGHS [1] as the exact reference: integer_program.hpp, solved by its branch and cut. It knows nothing of the graph and serves as the
// rival that cantle's own solver is compared with; instances of one or two mesh axes are within its reach.
//
// The bound is HiGHS' own dual bound, as reported: floating-point linear programming with tolerances of 1e-6, no theorem. `optimal` is
// HiGHS' word for a gap of at most relative_gap; the energy is that of the labelling in the costs of the graph.
//
// The wheel highsbox is built with the old ABI of std::string, so its C++ classes cannot be used from here; its C API can. The library is
// loaded when the first solve asks for it (its start takes longer than most plans), from where the wheel lay when cantle was configured or
// from $CANTLE_HIGHS_LIBRARY.
// [1] Q. Huangfu, J. Hall, "Parallelizing the dual revised simplex method", Math. Prog. Comp. 10 (2018); https://highs.dev, version 1.15.
#include <cantle/base/control.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/solve.hpp>

#include <cstdint>

namespace cantle::highs {

struct highs_options {
    double relative_gap = 0;    ///< (energy - bound) / energy at which to stop; 0: to the end
    std::int32_t threads = 0;   ///< 0: as many as HiGHS likes (half the cores)
};

/// Minimises the energy of g. Ends at the deadline (HiGHS looks at it between its steps) or when stop is requested; progress: stage
/// "highs", one event per better solution, done = nodes of the tree. stats.sweeps stays 0; status `stalled` when HiGHS gave up.
/// Throws adapter_missing when the library is not there or of another version, out_of_memory when the program has more than 2^31 entries.
mrf::solve_result solve(mrf::factor_graph const& g, highs_options const& options = {}, control const& limits = {});

}  // namespace cantle::highs
