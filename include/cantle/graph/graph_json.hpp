// SPDX-License-Identifier: BSL-1.0
#pragma once
// The JSON form of a training graph: complete enough to replay it, one node per line, no framework needed. "cantle-graph", version 1:
//
//   {"format":"cantle-graph","version":1,
//   "origin":{"model":"mlp","recipe":"train","precision":"fp32","batch":4,"sequence":0,"config":[["dim",8]]},
//   "ops":[
//   {"key":"cantle::parameter"},
//   {"key":"aten::linear","args":[["input",{"tensor":0}],["weight",{"tensor":1}],["bias",null]]}],
//   "nodes":[
//   {"id":0,"name":"w","op":"cantle::parameter","out":["float32[8,8]"],"role":"parameter","module":"fc"},
//   ...
//   {"id":2,"name":"fc/linear","op":"aten::linear","in":[1,0],"out":["float32[4,8]"],"module":"fc"}]}
//
// ops: each distinct op once, under a key that nodes use ("name" only where it differs from the key). args in schema order. A value is null
// (None), true/false, an integer, a double (always with . or e), a string, a list of integers, or an object with one tag: tensor (operand
// slot), tensors (slots, -1 None), double ("nan", "inf", "-inf"), doubles, bools, dtype, symbol ([kind, text]).
// nodes: in = operands, node or [node, output], by place in the list; a later place is allowed as long as there is no cycle. out = metas:
// type[sizes], {strides} where not contiguous ("{}": strides left empty), "undefined " before an output that is not produced. Optional:
// role, phase, module, forward (forward_node), of, also_named, data (constant_data). id, if given, is the place.
#include <cantle/base/atomic_file.hpp>
#include <cantle/graph/graph_json_reader.hpp>
#include <cantle/graph/graph_json_writer.hpp>
#include <cantle/graph/training_graph.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace cantle {

/// The graph as JSON text; equal graphs give equal bytes. Does not validate. Errors: bad_graph (303) for names that are not UTF-8.
inline std::string graph_to_json(training_graph const& g) { return detail::graph_json_writer(g).write(); }

/// The graph of a JSON text, in topological order and validated. `source_name` is named in errors (the file, usually).
/// Errors: broken_json (103, with the byte), wrong_format (104), bad_field (105, with node and field), graph_has_cycle (301),
/// dangling_tensor (302), bad_graph (303).
inline training_graph graph_from_json(std::string_view text, std::string_view source_name) {
    return detail::graph_json_reader(source_name).read(text);
}

/// Writes the graph in one step: a reader sees the old file or the whole new one. Errors: file_not_written (102), bad_graph (303).
inline void write_graph_json(training_graph const& g, std::filesystem::path const& path) { write_file_atomically(path, graph_to_json(g)); }

/// Reads and validates a graph file. Errors: file_not_found (101) and those of graph_from_json.
inline training_graph read_graph_json(std::filesystem::path const& path) { return graph_from_json(read_file(path), path.string()); }

}  // namespace cantle
