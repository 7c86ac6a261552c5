// SPDX-License-Identifier: BSL-1.0
#pragma once
// The structural hash of a graph: ops, static arguments, metas, roles, phases, operands and pairings in order. Names and origin are left
// out: a plan is keyed by structure, so it fits an equal graph whatever its modules are called.
#include <cantle/graph/training_graph.hpp>

namespace cantle {

inline digest structural_hash(training_graph const& g) {
    stable_hasher h;
    h.add("cantle-graph-structure-1").add(g.size());
    for (auto const& n : g.nodes) {
        n.operation.feed(h);
        h.add(n.role).add(n.in_phase).add(n.operands.size());
        for (auto const& r : n.operands) h.add(r.node).add(r.output);
        h.add(n.outputs.size());
        for (auto const& t : n.outputs) h.add(t.sizes).add(t.type).add(t.defined);
        h.add(n.of ? static_cast<std::int64_t>(*n.of) : -1).add(n.constant_data);
    }
    return h.finish();
}

}  // namespace cantle
