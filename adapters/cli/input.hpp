// SPDX-License-Identifier: BSL-1.0
#pragma once
// Graphs from a file or from stdin.
#include <cantle/graph/graph_json.hpp>

#include <string>

namespace cantle::cli {

/// "-" is stdin. Errors: those of read_graph_json.
inline training_graph read_graph(std::string const& path) {
    if (path != "-") return read_graph_json(path);
    return graph_from_json(read_file("/dev/stdin"), "stdin");
}

}  // namespace cantle::cli
