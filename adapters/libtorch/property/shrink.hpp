// SPDX-License-Identifier: BSL-1.0
#pragma once
// From a failing case to a minimal one that fails in the same way. Every candidate is a whole case again (its ops take strategies of their
// rules), so what is left at the end is a fault and no artefact of shrinking.
#include <adapters/libtorch/property/placements.hpp>

#include <cstddef>

namespace cantle::libtorch {

struct shrunk_case {
    run_case small;
    run_failure failure;
    std::size_t tried = 0;  ///< candidates that were run
};

/// Drops sinks and ops (an op in front of the fault becomes an input that holds its numbers), relays, mesh axes, cuts and elements, as long
/// as the case fails with the same kind. Deterministic. Precondition: failure_of(c, tamper) is `failure`.
shrunk_case shrink(run_case const& c, run_failure const& failure, tamper_programs const& tamper = {}, std::size_t most = 4000);

}  // namespace cantle::libtorch
