// SPDX-License-Identifier: BSL-1.0
#pragma once
// The JSON form of a plan: lossless, the same bytes for the same plan, one line per vertex. "cantle-plan", version 1:
//
//   {"format":"cantle-plan","version":1,
//   "mesh":[["dp",4],["tp",8]],
//   "made_from":{"graph":"<32 hex digits>","rules":"...","cost":"...","options":"..."},
//   "objective":1234.5,"bound":1234.5,"gap":0.0,"status":"optimal","bounded_problem":"unclustered: ...",
//   "constraints":["inputs and targets: S0,R (default)",...],
//   "budgets":[{"name":"parameters","unit":"bytes","limit":4e9,"use":3.9e9,"multiplier":1e-6}],   (only where a plan was made under some)
//   "fallback":[["mine::op",3]],                      (only where ops without a rule were planned whole on every rank: op, vertices)
//   "cost":{"forward_compute":...,"backward_compute":...,"slice":0.0,"all_gather":...,...,"inner":...,"tie_break":...},
//   "memory":{"parameters_global":...,"parameters_local":...},
//   "layouts":["S0,R",...],
//   "nodes":[
//   {"id":0,"name":"w","out":[1]},
//   {"id":2,"name":"fc/linear","in":[0,2],"out":[3],"compute":7.0}],
//   "relays":[{"value":[2,0],"at":0}],
//   "paths":[{"from":1,"to":2,"cost":15.1,
//             "steps":[{"kind":"all_gather","axes":[0],"reaches":"R,S0","before":64,"after":256,"cost":15.1}]}],
//   "moves":[{"value":[0,0],"user":2,"operand":1,"path":0}]}
//
// Times in microseconds, sizes in bytes. in, out, at, from, to: places in layouts, which are written as layout::parse reads them. Equal
// layouts and paths stand once. A vertex' "inner" lists the collectives inside its op. "name" is for readers; nothing depends on it.
// A move goes from the producer (or from_relay) to to_relay or to one operand of user. No times of the run, no data of the host.
#include <cantle/base/atomic_file.hpp>
#include <cantle/plan/foreign.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/plan/plan_json_reader.hpp>
#include <cantle/plan/plan_json_writer.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace cantle {

/// The plan as JSON text; with `names_from` vertices carry their names.
inline std::string plan_to_json(sharding_plan const& plan, training_graph const* names_from = nullptr) {
    return detail::plan_json_writer(plan, names_from).write();
}

/// The plan of a JSON text. `source_name` is named in errors (the file, usually).
/// Errors: broken_json (103, with the byte), wrong_format (104), bad_field (105, with row and field).
inline sharding_plan plan_from_json(std::string_view text, std::string_view source_name) {
    return detail::plan_json_reader(source_name).read(text);
}

/// Writes the plan in one step: a reader sees the old file or the whole new one. Errors: file_not_written (102).
inline void write_plan_json(sharding_plan const& plan, std::filesystem::path const& path, training_graph const* names_from = nullptr) {
    write_file_atomically(path, plan_to_json(plan, names_from));
}

/// Reads a plan file. Errors: file_not_found (101) and those of plan_from_json.
inline sharding_plan read_plan_json(std::filesystem::path const& path) { return plan_from_json(read_file(path), path.string()); }

}  // namespace cantle
