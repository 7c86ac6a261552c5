// SPDX-License-Identifier: BSL-1.0
#pragma once
// Everything that a report of one run may show. The plan is all that must be there; the rest is shown where it is known.
#include <cantle/mesh/cluster.hpp>
#include <cantle/planner.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// One option of the run in words, e.g. {"clustering", "on", true}.
struct reported_option {
    std::string name, value;
    bool is_default = false;
};

struct run_report {
    sharding_plan const* plan = nullptr;                    ///< never null
    training_graph const* graph = nullptr;                  ///< null: no projections, no patterns, no cargo
    cantle::cluster const* machine = nullptr;               ///< null: not known (a plan read from a file)
    planning_statistics const* statistics = nullptr;
    std::vector<std::pair<std::string, double>> seconds;    ///< per stage of the run, in order
    std::int64_t peak_bytes = 0;                            ///< most memory of the process; 0: not measured
    std::vector<reported_option> options;

    double total_seconds() const {
        double sum = 0;
        for (auto const& s : seconds) sum += s.second;
        return sum;
    }
};

}  // namespace cantle
