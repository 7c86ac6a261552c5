// SPDX-License-Identifier: BSL-1.0
#pragma once
// One form for graphs that mean the same: equal pure ops are one node, identities and views of views are gone, dead nodes are removed, and
// linear layers are whole over their unflattened dims. The last matters most: view -> mm -> view over [B*S,K] cannot say that B and S are
// both sharded (case E1), and a bias inside addmm forbids row-parallel products (case E6).
//
//   addmm(b, view(x [B,S,K]), t(w [N,K])) -> view     becomes   add(linear(x, w), b)
//   mm(view(g [B,S,N]), w) -> view                    becomes   linear_grad_input(g, w)
//   mm(t(view(g)), view(x))                           becomes   linear_grad_weight(g, x)
//   sum(view(g), [0], keepdim) -> view [N]            becomes   sum(g, [0,1])
//
// Values are those of the input graph; only the bias is now added after the product is rounded (DECISIONS 5; execution may fuse it again).
// Passes over the graph repeat until nothing changes, so the result is a fixpoint: canonicalize twice is
// canonicalize once. A pass is O(n + e) expected.
#include <cantle/base/assert.hpp>
#include <cantle/graph/canonical_rewriter.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/training_graph.hpp>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace cantle {

/// Removes nodes that no sink needs. Sources stay (they are the boundary; constants go), and so do random ops, whose removal would shift
/// the random numbers of the others, and ops with effects. Links to removed nodes are cleared. Returns whether anything was removed.
inline bool remove_dead_nodes(training_graph& g) {
    std::vector<bool> live(g.size(), false);
    std::vector<vertex> stack;
    auto mark = [&](vertex v) {
        if (!live[v]) {
            live[v] = true;
            stack.push_back(v);
        }
    };
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        bool const kept = is_source(n.role) ? n.role != node_role::constant : is_sink(n.role) || !is_pure(n.operation);
        if (kept) mark(v);
    }
    while (!stack.empty()) {
        vertex const v = stack.back();
        stack.pop_back();
        for (auto const& r : g[v].operands) mark(r.node);
    }
    constexpr vertex gone = std::numeric_limits<vertex>::max();
    std::vector<vertex> place(g.size(), gone);
    vertex count = 0;
    for (vertex v = 0; v < g.size(); ++v)
        if (live[v]) place[v] = count++;
    if (count == g.size()) return false;
    std::vector<graph_node> nodes;
    nodes.reserve(count);
    auto follow = [&](std::optional<vertex>& link) {
        if (link && place[*link] == gone) link.reset();
        else if (link) link = place[*link];
    };
    for (vertex v = 0; v < g.size(); ++v) {
        if (!live[v]) continue;
        auto& n = nodes.emplace_back(std::move(g[v]));
        for (auto& r : n.operands) r.node = place[r.node];
        follow(n.forward_node);
        follow(n.of);
    }
    g.nodes = std::move(nodes);
    return true;
}

/// The canonical form of a valid graph (see the head of this file); names, phases and links are kept for all nodes that stay, and a node
/// that is rewritten keeps its name on the op that does its work. Pre: validate(g) passes. Deterministic.
inline training_graph canonicalize(training_graph g, canonical_options const& options = {}) {
    for (int pass = 0;; ++pass) {
        CANTLE_ASSERT(pass < 100, "canonical rewriting ends");
        detail::canonical_rewriter rewriter(std::move(g), options);
        bool changed = rewriter.run();
        g = rewriter.take();
        changed = remove_dead_nodes(g) || changed;
        if (!changed) return g;
    }
}

}  // namespace cantle
