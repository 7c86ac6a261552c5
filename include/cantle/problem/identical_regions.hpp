// SPDX-License-Identifier: BSL-1.0
#pragma once
// Clustering: the copies of a layer share one decision. A vertex' key is its op class, phase, module path with list indices erased, and the
// op classes of its operands' producers (DECISIONS 16, case B4). Inside one copy (one choice of list indices) equal keys are numbered, and
// the j-th of one copy matches the j-th of another. Sharing restricts the problem, so any matching is sound; a bad one costs optimality.
#include <cantle/base/stable_hash.hpp>
#include <cantle/graph/training_graph.hpp>

#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// "layers.3.attention" -> "layers.*.attention" and {3}.
struct erased_path {
    std::string text;
    std::vector<std::uint32_t> indices;
};
inline erased_path erase_indices(std::string const& path) {
    erased_path e;
    for (std::size_t i = 0; i < path.size();) {
        std::size_t j = i;
        while (j < path.size() && std::isdigit(static_cast<unsigned char>(path[j]))) ++j;
        bool const whole = j > i && j - i < 10 && (i == 0 || path[i - 1] == '.') && (j == path.size() || path[j] == '.');
        if (whole) {
            e.indices.push_back(static_cast<std::uint32_t>(std::stoul(path.substr(i, j - i))));
            e.text += '*';
            i = j;
        } else {
            while (i < path.size() && path[i] != '.') e.text += path[i++];
            if (i < path.size()) e.text += path[i++];
        }
    }
    return e;
}

/// root[v]: the first vertex with which v shares its decision (v itself when it is no copy). `class_of[v]`: op classes; vertices of
/// different classes never share.
inline std::vector<vertex> identical_regions(training_graph const& g, std::vector<std::uint32_t> const& class_of) {
    std::map<std::pair<digest, std::vector<std::uint32_t>>, std::uint32_t> seen_in_copy;
    std::map<std::pair<digest, std::uint32_t>, vertex> first;
    std::vector<vertex> root(g.size());
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        bool const boundary = is_source(n.role) || is_sink(n.role);
        auto const path = erase_indices(boundary ? n.name : n.module_path);
        stable_hasher h;
        h.add(class_of[v]).add(n.role).add(n.in_phase).add(path.text);
        for (auto const& r : n.operands) h.add(class_of[r.node]).add(r.output);
        auto const key = h.finish();
        auto const nth = seen_in_copy[{key, path.indices}]++;
        root[v] = first.try_emplace({key, nth}, v).first->second;
    }
    return root;
}

}  // namespace cantle
