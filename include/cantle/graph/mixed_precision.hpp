// SPDX-License-Identifier: BSL-1.0
#pragma once
// Mixed precision as a graph pass (DECISIONS 12): a graph captured with parameters in the compute type becomes one that stores parameters
// in fp32, casts each once and casts each parameter's gradient back before it leaves. So weight gathers can run in bf16 (behind the
// parameter cast) and gradients are reduced in fp32 (behind the gradient cast).
//
//   w bf16 ---> uses          becomes   w fp32 -> _to_copy "w/cast" bf16 ---> uses
//   g bf16 -> "w.grad"        becomes   g bf16 -> _to_copy "w.grad/cast" fp32 -> "w.grad" fp32
#include <cantle/graph/op.hpp>
#include <cantle/graph/training_graph.hpp>

#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace cantle {

namespace detail {
/// `x` (first operand) as another type; ATen's schema of _to_copy with all defaults.
inline op to_copy_op(dtype type) {
    return {"aten::_to_copy", {{"self", operand_slot{0}}, {"dtype", type}, {"layout", std::monostate{}}, {"device", std::monostate{}},
                               {"pin_memory", std::monostate{}}, {"non_blocking", false}, {"memory_format", std::monostate{}}}};
}
}  // namespace detail

/// Parameters of type `compute` are stored as `storage` and cast once; their gradient sinks give `storage`. Everything else (buffers,
/// inputs, parameters of other types, gradients of inputs) stays. A second application changes nothing. Pre: a valid graph. O(n + e).
inline training_graph mixed_precision(training_graph const& g, dtype compute = dtype::bfloat16, dtype storage = dtype::float32) {
    if (compute == storage) return g;
    constexpr vertex nothing = std::numeric_limits<vertex>::max();
    std::unordered_set<std::string> names;  // only looked up
    for (auto const& n : g.nodes) {
        names.insert(n.name);
        names.insert(n.also_named.begin(), n.also_named.end());
    }
    training_graph result;
    result.origin = g.origin;
    std::vector<vertex> place(g.size(), nothing), cast_of(g.size(), nothing);  // old node -> its new node; old parameter -> its cast
    auto is_converted = [&](vertex v) { return g[v].role == node_role::parameter && g[v].outputs[0].type == compute; };
    auto push_cast = [&](value_ref from, dtype type, std::string const& owner, graph_node const& parameter, phase in_phase) {
        graph_node cast;
        cast.operation = detail::to_copy_op(type);
        cast.operands = {from};
        cast.outputs = {result.meta(from)};
        cast.outputs[0].type = type;
        cast.in_phase = in_phase;
        cast.module_path = parameter.module_path;
        cast.name = owner + "/cast";
        for (int i = 2; !names.insert(cast.name).second; ++i) cast.name = owner + "/cast_" + std::to_string(i);
        result.nodes.push_back(std::move(cast));
        return static_cast<vertex>(result.size() - 1);
    };
    for (vertex v = 0; v < g.size(); ++v) {
        auto n = g[v];
        for (auto& r : n.operands) {
            if (cast_of[r.node] != nothing) r = {cast_of[r.node], 0};
            else r.node = place[r.node];
        }
        bool const gradient = n.role == node_role::gradient && n.of && is_converted(*n.of);
        if (gradient && result.meta(n.operands[0]).type != storage)
            n.operands[0] = {push_cast(n.operands[0], storage, n.name, g[*n.of], phase::backward), 0};
        if (gradient) n.outputs[0] = result.meta(n.operands[0]);
        if (is_converted(v)) n.outputs[0].type = storage;
        place[v] = static_cast<vertex>(result.size());
        result.nodes.push_back(std::move(n));
        if (is_converted(v)) cast_of[v] = push_cast({place[v], 0}, compute, g[v].name, g[v], phase::forward);
    }
    for (vertex v = 0; v < g.size(); ++v) {  // links may point forward, so they follow when all places are known
        auto& n = result[place[v]];
        if (n.forward_node) n.forward_node = place[*n.forward_node];
        if (!n.of) continue;
        vertex const old_of = *n.of;
        n.of = place[old_of];
        // the gradient's cast is the derivative of the parameter's
        if (n.role == node_role::gradient && cast_of[old_of] != nothing && g[v].outputs[0].type != storage)
            result[n.operands[0].node].forward_node = cast_of[old_of];
    }
    return result;
}

}  // namespace cantle
