// SPDX-License-Identifier: BSL-1.0
#pragma once
// Order of a training graph: is it topological, a stable topological order, and renumbering. The graph promises topological order; files
// and passes restore it with these functions.
#include <cantle/base/error.hpp>
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// True when every operand comes before its user. Operands must exist.
inline bool is_topologically_ordered(training_graph const& g) {
    for (vertex v = 0; v < g.size(); ++v)
        for (auto const& r : g[v].operands)
            if (r.node >= v) return false;
    return true;
}

namespace detail {
/// One cycle among the nodes that are not `done`, in the direction of flow: "a -> b -> a" (long ones are cut in the middle).
inline std::string describe_cycle(training_graph const& g, std::vector<bool> const& done) {
    vertex v = 0;
    while (done[v]) ++v;
    std::vector<std::size_t> position(g.size(), g.size());
    std::vector<vertex> walk;
    while (position[v] == g.size()) {  // every node left has an operand that is left too, so the walk upstream must close
        position[v] = walk.size();
        walk.push_back(v);
        for (auto const& r : g[v].operands)
            if (!done[r.node]) {
                v = r.node;
                break;
            }
    }
    std::vector<vertex> cycle(walk.begin() + static_cast<std::ptrdiff_t>(position[v]), walk.end());
    std::reverse(cycle.begin(), cycle.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    std::string text;
    constexpr std::size_t shown = 12;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        if (cycle.size() > shown && i == shown - 1) {
            text += "(" + std::to_string(cycle.size() - shown) + " more) -> ";
            i = cycle.size() - 1;
        }
        text += "'" + g[cycle[i]].name + "' -> ";
    }
    return text + "'" + g[cycle.front()].name + "'";
}
}  // namespace detail

/// The vertices in topological order; among those that are free, the smallest first, so an ordered graph keeps its order.
/// Pre: every operand names an existing node. Errors: graph_has_cycle (301), naming the nodes of one cycle. O((n + e) log n).
inline std::vector<vertex> topological_order(training_graph const& g) {
    std::vector<std::uint32_t> waiting(g.size(), 0), start(g.size() + 1, 0);
    for (auto const& node : g.nodes)
        for (auto const& r : node.operands) ++start[r.node + 1];
    for (std::size_t v = 0; v < g.size(); ++v) start[v + 1] += start[v];
    std::vector<vertex> users(start.back());
    auto fill = start;
    for (vertex v = 0; v < g.size(); ++v) {
        waiting[v] = static_cast<std::uint32_t>(g[v].operands.size());
        for (auto const& r : g[v].operands) users[fill[r.node]++] = v;
    }
    std::priority_queue<vertex, std::vector<vertex>, std::greater<>> free;
    for (vertex v = 0; v < g.size(); ++v)
        if (waiting[v] == 0) free.push(v);
    std::vector<vertex> order;
    std::vector<bool> done(g.size(), false);
    while (!free.empty()) {
        vertex const v = free.top();
        free.pop();
        order.push_back(v);
        done[v] = true;
        for (auto i = start[v]; i < start[v + 1]; ++i)
            if (--waiting[users[i]] == 0) free.push(users[i]);
    }
    if (order.size() < g.size())
        throw error(error_code::graph_has_cycle, "graph", "its nodes form a cycle: " + detail::describe_cycle(g, done),
                    "a training graph must be acyclic; unroll the loop or cut it at a graph input and output");
    return order;
}

/// The graph with its nodes in the given order; operands, forward_node and `of` follow. Pre: a permutation of all vertices.
inline training_graph reorder(training_graph g, std::vector<vertex> const& order) {
    std::vector<vertex> place(g.size());
    for (vertex i = 0; i < order.size(); ++i) place[order[i]] = i;
    training_graph result;
    result.origin = std::move(g.origin);
    result.nodes.reserve(g.size());
    for (vertex old : order) {
        auto& node = result.nodes.emplace_back(std::move(g.nodes[old]));
        for (auto& r : node.operands) r.node = place[r.node];
        if (node.forward_node) node.forward_node = place[*node.forward_node];
        if (node.of) node.of = place[*node.of];
    }
    return result;
}

}  // namespace cantle
