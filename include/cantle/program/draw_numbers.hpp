// SPDX-License-Identifier: BSL-1.0
#pragma once
// Numbers for the random ops of a graph: what a seed is mixed with, so that two dropouts of one shape draw differently. The number is the
// op's place in the graph, whatever the plan. What activation checkpointing draws again in the backward phase must be what the forward op
// drew: such an op computes the same function of the same values, so that equal ops on equal values are looked for.
//
//     forward   x --dropout(7)--> a --gelu--> b --dropout(9)--> c
//     backward  x --dropout(7)--> a'--gelu--> b'--dropout(9)--> c'      a' equals a, so b' equals b, so the second pair is found too
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/training_graph.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// [vertex]: the number of what it draws; of ops that are not random, the vertex. Throws bad_program where a random op without operands is
/// drawn again in the backward phase and several forward ops could be meant.
inline std::vector<std::uint64_t> draw_numbers(training_graph const& g) {
    std::vector<std::uint64_t> numbers(g.size());
    bool again = false;
    for (vertex v = 0; v < g.size(); ++v) {
        numbers[v] = v;
        again = again || (g[v].in_phase == phase::backward && g[v].role == node_role::computation && is_random(g[v].operation));
    }
    if (!again) return numbers;

    using value = std::pair<vertex, std::uint32_t>;  // the first vertex known to compute it, output
    struct computed {
        std::vector<vertex> by;  // pure ops: one; random ops of the forward phase: each that draws
        std::size_t paired = 0;
    };
    std::map<std::pair<digest, std::vector<value>>, computed> seen;
    std::vector<vertex> first(g.size());  // the vertex that computed the same before, or itself
    for (vertex v = 0; v < g.size(); ++v) {
        first[v] = v;
        auto const& n = g[v];
        if (n.role != node_role::computation || has_effects(n.operation)) continue;
        std::vector<value> operands;
        for (auto const& r : n.operands) operands.emplace_back(first[r.node], r.output);
        stable_hasher h;
        n.operation.feed(h);
        for (auto const& t : n.outputs) h.add(t.sizes).add(t.type);
        auto& same = seen[{h.finish(), std::move(operands)}];
        if (!is_random(n.operation)) {
            if (same.by.empty()) same.by.push_back(v);
            first[v] = same.by[0];
        } else if (n.in_phase == phase::forward) same.by.push_back(v);
        else if (same.paired < same.by.size()) {
            if (n.operands.empty() && same.by.size() - same.paired > 1)
                throw error(error_code::bad_program, "'" + n.name + "' (" + n.operation.name + ")",
                            "it is drawn again in the backward phase, and several ops of the forward phase could be meant",
                            "draw with an op that takes a tensor (rand_like, dropout), or do not recompute it");
            numbers[v] = first[v] = same.by[same.paired++];
        }
    }
    return numbers;
}

}  // namespace cantle
