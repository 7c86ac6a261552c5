// SPDX-License-Identifier: BSL-1.0
#pragma once
// Numbered errors: every bad input ends as one cantle::error that names the thing at fault and the remedy. docs/errors.md lists all
// codes; tests/checks/check_errors.py keeps that page and this enumeration equal.
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace cantle {

/// Stable numbers of all errors. A number is never used again for another meaning. Hundreds say the area.
enum class error_code : int {
    // 1xx: files and formats
    file_not_found = 101,       ///< a file to read does not exist or cannot be opened
    file_not_written = 102,     ///< a file could not be written; nothing of it was left behind
    broken_json = 103,          ///< text is not JSON
    wrong_format = 104,         ///< JSON, but not of the expected format or version
    bad_field = 105,            ///< a field is missing, of the wrong type or out of range
    // 2xx: mesh and cluster
    bad_mesh = 201,             ///< a mesh does not parse, or has an axis below 1
    bad_axis_names = 202,       ///< axis names: wrong count, doubled or empty
    unknown_axis = 203,         ///< an axis is named that the mesh does not have
    unknown_cluster = 204,      ///< no cluster of that name
    mesh_does_not_divide = 205, ///< the mesh does not divide a dim that must be sharded, or does not fit the cluster's nodes
    bad_layout = 206,           ///< a layout does not parse or does not fit the tensor
    // 3xx: graph
    graph_has_cycle = 301,      ///< the graph has a cycle
    dangling_tensor = 302,      ///< an operand names a vertex or output that does not exist
    bad_graph = 303,            ///< another broken invariant of a training graph
    // 4xx: rules
    op_without_rule = 401,      ///< ops that no rule covers (all of them at once)
    bad_rule = 402,             ///< a rule returns rows that do not fit its op
    no_strategy = 403,          ///< a rule exists, but no row is applicable
    bad_region = 404,           ///< a region's declaration does not parse or does not fit its tensors
    // 5xx: constraints and solving
    unsatisfiable_constraint = 501, ///< no strategy satisfies a constraint
    unknown_tensor = 502,       ///< a constraint names a tensor that the graph does not have
    out_of_memory = 503,        ///< the memory of the machine, or the limit set for the process, does not suffice
    // 6xx: capture
    data_dependent = 601,       ///< the model reads a value (.item()) or has data-dependent shapes
    no_shape_function = 602,    ///< an op has neither a Meta kernel nor a shape function
    unknown_model = 603,        ///< no model of that name
    capture_failed = 604,       ///< another failure inside capture, with its op and module
    // 7xx: command line
    bad_option = 701,           ///< an option or its value is wrong
    adapter_missing = 702,      ///< a program or library that this command needs is not there
    // 8xx: cost models and plans
    bad_cost = 801,             ///< a cost model returned a negative or non-finite figure, or was made for another mesh
    foreign_plan = 802,         ///< a plan belongs to another graph, mesh or rule set
    bad_program = 803,          ///< ranks would not meet in their collectives, or a value is read that is not there
    rank_failed = 804,          ///< an op or collective of one rank failed; all ranks end
};

/// An error with a stable code, a subject (op, tensor, file as the user wrote it) and a remedy.
/// what() is one line: "cantle error 201: mesh '4x': an axis size is missing. Remedy: write sizes as in 4x8."
class error : public std::runtime_error {
public:
    error(error_code code, std::string subject, std::string problem, std::string remedy)
        : std::runtime_error("cantle error " + std::to_string(static_cast<int>(code)) + ": " + subject + ": " + problem +
                             (remedy.empty() ? "" : ". Remedy: " + remedy)),
          code_(code), subject_(std::move(subject)), problem_(std::move(problem)), remedy_(std::move(remedy)) {}

    error_code code() const noexcept { return code_; }
    int number() const noexcept { return static_cast<int>(code_); }
    std::string const& subject() const noexcept { return subject_; }
    std::string const& problem() const noexcept { return problem_; }
    std::string const& remedy() const noexcept { return remedy_; }

private:
    error_code code_;
    std::string subject_, problem_, remedy_;
};

}  // namespace cantle
