// SPDX-License-Identifier: BSL-1.0
#pragma once
// What each command of the program `cantle` takes and does. main.cpp fills the options from the command line; a command throws
// cantle::error for bad input and returns nothing: it succeeded.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle::cli {

struct plan_command {
    std::string graph;                    ///< path; "-": stdin
    std::string mesh, names, cluster = "h100";
    std::optional<std::string> plan_file, svg_file;  ///< absent: not written
    bool json = false;                    ///< report for machines on stdout
    std::string inputs, outputs;          ///< layouts; empty: the default
    std::string parameters = "fully_sharded";
    std::string replica_axes;             ///< names joined by commas
    std::vector<std::string> pins;        ///< NAME=LAYOUT
    bool clustering = true;
    bool polish = false;                  ///< then every copy decides for itself
    std::optional<double> gap, tie_break; ///< absent: the default
    std::optional<std::int64_t> max_sweeps;
    std::optional<std::int64_t> seed_radius;
    std::vector<std::string> cost;        ///< KEY=VALUE
    std::vector<std::string> budgets;     ///< NAME=SIZE
    std::optional<double> optimizer_factor;
    bool uneven = false;                  ///< shards may be nested ceil chunks
    std::string fallback = "none";        ///< of ops without a rule: none or replicate
};
void run(plan_command const& command);

struct show_command {
    std::string plan, graph;              ///< graph empty: the report without projections
    bool json = false;
    std::optional<std::string> svg_file;
    std::optional<std::int64_t> program_of_rank;  ///< instead of the report: the program of this rank
};
void run(show_command const& command);
void show_program(show_command const& command);

struct timeline_command {
    std::string plan, graph;
    std::string cluster;                  ///< empty: the one whose prices the plan was made with
    std::int64_t rank = 0;
    std::string streams = "one";          ///< of collectives: one or per_communicator
    bool serial = false, json = false;
    std::optional<std::string> trace_file;
};
void run(timeline_command const& command);

struct graph_command {
    std::string graph;
};
void run(graph_command const& command);

struct solve_command {
    std::string instance;                 ///< path, xz or not; "-": stdin
    std::string solver = "cantle";        ///< cantle, highs or elimination
    bool clustered = true;                ///< of an ap-instance: copies share a decision
    bool reduce = false;                  ///< exactly, before the solver sees the graph
    bool json = false;
    std::optional<double> time_limit;     ///< seconds of solving
    std::optional<double> gap;            ///< at which to stop
    std::optional<std::string> solution_file;
    std::optional<std::string> evaluate;     ///< instead of solving: the energy of the labels in this file
    std::optional<std::string> export_file;  ///< instead of solving: write the problem in another format
};
void run(solve_command const& command);

struct clusters_command {};
void run(clusters_command const& command);

/// capture, models, check-rules and verify: starts cantle-libtorch with the same arguments and becomes it; returns only by throwing. The
/// program is $CANTLE_LIBTORCH_PROGRAM, else cantle-libtorch in the folder of this program. Errors: adapter_missing (702).
struct libtorch_command {
    std::vector<std::string> arguments;   ///< of the whole command line, the command included
};
[[noreturn]] void run(libtorch_command const& command);

}  // namespace cantle::cli
