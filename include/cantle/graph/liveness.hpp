// SPDX-License-Identifier: BSL-1.0
#pragma once
// When values are used last, and how many bytes the unsharded graph holds at its peak when it runs in order and frees at last use.
#include <cantle/base/units.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cantle {

/// last_use[v][o]: the last node that reads output o of v or, where v owns the memory, a view of it; v itself where nobody does; the last
/// node of the graph for what a sink hands out and for sources, which the caller owns. bytes_at[v]: bytes held while v runs, its operands
/// and outputs included.
struct liveness_result {
    std::vector<std::vector<vertex>> last_use;
    std::vector<bytes> bytes_at;
    bytes peak{0};         ///< the largest of bytes_at
    vertex peak_node = 0;  ///< the first node where it is reached
};

/// Liveness of a graph in its order. Views (op_traits.hpp) and sinks share their operand's memory; a tensor of strides is counted by its
/// elements. Pre: validate(g) passes. O(n + e).
inline liveness_result liveness(training_graph const& g) {
    liveness_result result;
    vertex const end = g.size() == 0 ? 0 : static_cast<vertex>(g.size() - 1);
    result.last_use.resize(g.size());
    std::vector<std::vector<value_ref>> owner(g.size());  // the value whose memory this one shares
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        bool const shares = (is_sink(n.role) || (n.role == node_role::computation && is_alias(n.operation))) && !n.operands.empty();
        for (std::uint32_t o = 0; o < n.outputs.size(); ++o) {
            owner[v].push_back(shares ? owner[n.operands[0].node][n.operands[0].output] : value_ref{v, o});
            result.last_use[v].push_back(is_source(n.role) || is_sink(n.role) ? end : v);
        }
        for (auto const r : n.operands) {
            auto const base = owner[r.node][r.output];
            auto const until = is_sink(n.role) ? end : v;
            for (auto const& value : {r, base}) {
                auto& last = result.last_use[value.node][value.output];
                last = std::max(last, until);
            }
        }
    }
    std::vector<std::int64_t> change(g.size() + 1, 0);
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) {
            if (owner[v][o] != value_ref{v, o}) continue;
            auto const size = g[v].outputs[o].size_in_bytes().count;
            change[is_source(g[v].role) ? 0 : v] += size;
            change[result.last_use[v][o] + 1] -= size;
        }
    std::int64_t held = 0;
    for (vertex v = 0; v < g.size(); ++v) {
        held += change[v];
        result.bytes_at.push_back(bytes{held});
        if (bytes{held} > result.peak) {
            result.peak = bytes{held};
            result.peak_node = v;
        }
    }
    return result;
}

}  // namespace cantle
