// SPDX-License-Identifier: BSL-1.0
#pragma once
// Many random cases by seed: what the property test and its long form run.
#include <adapters/libtorch/property/shrink.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cantle::libtorch {

struct drawn_case {
    std::optional<run_case> made;  ///< nothing: the planner refused, for `refused`
    std::string how, refused;      ///< "training graph of 22 ops on 2x3, random labels"
};
/// The case of that seed; the same on every machine.
drawn_case draw_case(std::uint64_t seed);

struct run_cases_report {
    std::size_t cases = 0, exact = 0, refused = 0, ops = 0, moves = 0, steps = 0;
    std::map<std::string, std::size_t> by_op, refusals;
    std::vector<std::string> failures;  ///< seed, what failed, and the minimal case as a test
    std::string text() const;
};
/// Cases of the seeds first, first + 1, ... ; ends after `most_failures` failures.
run_cases_report run_cases(std::uint64_t first, std::uint64_t count, std::size_t most_failures = 5);

}  // namespace cantle::libtorch
