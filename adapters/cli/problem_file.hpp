// SPDX-License-Identifier: BSL-1.0
#pragma once
// The problems that `cantle solve` reads, in either format, and what their labels mean.
#include <cantle/base/stage_clock.hpp>
#include <cantle/mrf/ap_instance.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cantle::cli {

/// A problem and how its variables are called.
struct problem_file {
    std::string name;                         // of the file, for messages
    mrf::factor_graph graph;
    std::vector<std::string> names;           // [variable]
    std::optional<mrf::ap_instance> instance; // graph moved out; labels still mean its strategies

    /// The strategy of every node, or of a factor graph the labels.
    std::vector<std::uint32_t> solution(std::vector<mrf::label> const& labels) const;
    /// Throws unsatisfiable_constraint with a minimal set of what cannot hold together.
    [[noreturn]] void refuse_as_infeasible() const;
};

/// Stages of the clock: read, build. `clustered`: of an ap-instance, see ap_options. Throws file_not_found, broken_json, wrong_format,
/// bad_field, unsatisfiable_constraint, and bad_option where a factor graph shall be unclustered.
problem_file read_problem(std::string const& path, bool clustered, stage_clock& clock);

/// Labels from a file {"solution": [...]} as `cantle solve` writes it, or {"labels": [one per variable]}. Nothing where a solution has
/// a strategy that the problem's constraints rule out. Throws file_not_found, broken_json, bad_field.
std::optional<std::vector<mrf::label>> read_labels(std::string const& path, problem_file const& problem);

}  // namespace cantle::cli
