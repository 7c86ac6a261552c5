// SPDX-License-Identifier: BSL-1.0
#pragma once
// What is to be decided. A variable stands for every vertex (an op's strategy, a source's or sink's layout) and for every relay (the layout
// to which a tensor with several uses is moved once). Variables that must agree form a group with one label domain.
#include <cantle/graph/training_graph.hpp>
#include <cantle/problem/gradient_chains.hpp>
#include <cantle/problem/op_classes.hpp>
#include <cantle/problem/redistribution_tables.hpp>

#include <cstdint>
#include <vector>

namespace cantle {

/// Index of a variable: vertices first (variable v is vertex v), then relays.
using variable_index = std::uint32_t;

/// A tensor on its way from one variable to the next. Ports count operands, then outputs, of an op; layout variables have one port.
struct flow_edge {
    variable_index from = 0, to = 0;
    std::uint32_t from_port = 0, to_port = 0;
    value_ref value;                   ///< the tensor
    tensor_class_id tensor_class = 0;
    bool free_only = false;            ///< no move that costs anything (the cheap side of a cast, DECISIONS 12)
    bool keeps_partial = false;        ///< no reduction: a gradient in a narrower type than its sink's (gradient_chains.hpp)
};

/// Variables that take one decision. Labels of ops index `strategies` (of the class' table); labels of layout variables index `layouts`.
struct decision_group {
    bool of_strategies = false;
    std::uint32_t op_class = 0;
    std::vector<std::uint32_t> strategies;
    std::vector<layout_id> layouts;
    std::vector<variable_index> members;

    std::size_t label_count() const { return of_strategies ? strategies.size() : layouts.size(); }
};

/// Relays of a graph: every output with two or more uses has one (operand slots and graph outputs count).
struct relay_table {
    std::vector<value_ref> values;                       ///< [relay]
    std::vector<std::vector<std::uint32_t>> relay_of;    ///< [vertex][output] -> relay, or none
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
};

inline relay_table find_relays(training_graph const& g) {
    relay_table t;
    auto const uses = collect_uses(g);
    t.relay_of.resize(g.size());
    for (vertex v = 0; v < g.size(); ++v) {
        t.relay_of[v].assign(uses[v].size(), relay_table::none);
        for (std::uint32_t o = 0; o < uses[v].size(); ++o)
            if (uses[v][o].size() >= 2) {
                t.relay_of[v][o] = static_cast<std::uint32_t>(t.values.size());
                t.values.push_back({v, o});
            }
    }
    return t;
}

/// The edge between a parameter and its cast, and into the cast of a parameter's gradient, must cost nothing: gathers run in the compute
/// type after the first, reductions in the storage type after the second (case B20).
class cast_sides {
public:
    explicit cast_sides(training_graph const& g) : into_cast_free_(g.size(), false), parameter_cast_(g.size(), false) {
        for (vertex v = 0; v < g.size(); ++v) {
            if (g[v].role == node_role::gradient && g[g[v].of.value_or(v)].role == node_role::parameter) {
                vertex const p = g[v].operands[0].node;
                if (is_cast(g[p])) into_cast_free_[p] = true;
            }
            if (is_cast(g[v]) && g[g[v].operands[0].node].role == node_role::parameter) into_cast_free_[v] = parameter_cast_[v] = true;
        }
    }
    bool operand_is_free(vertex v) const { return into_cast_free_[v]; }
    bool is_parameter_cast(vertex v) const { return parameter_cast_[v]; }

private:
    std::vector<bool> into_cast_free_, parameter_cast_;
    static bool is_cast(graph_node const& n) { return n.operation.name == "aten::_to_copy" && n.operands.size() == 1; }
};

/// All flow edges: producer -> use, or producer -> relay and relay -> use. Tensor classes are created in `tables`.
inline std::vector<flow_edge> collect_edges(training_graph const& g, relay_table const& relays, cast_sides const& casts,
                                            gradient_chains const& chains, redistribution_tables& tables) {
    std::vector<flow_edge> edges;
    auto const first_relay = static_cast<variable_index>(g.size());
    auto const output_port = [&](value_ref r) {
        return g[r.node].role == node_role::computation ? static_cast<std::uint32_t>(g[r.node].operands.size()) + r.output : 0u;
    };
    for (std::uint32_t i = 0; i < relays.values.size(); ++i) {
        auto const r = relays.values[i];
        edges.push_back({r.node, first_relay + i, output_port(r), 0, r, tables.class_of(g.meta(r)), false,
                         chains.holds_value(r)});
    }
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t s = 0; s < g[v].operands.size(); ++s) {
            auto const r = g[v].operands[s];
            auto const relay = relays.relay_of[r.node][r.output];
            bool const through_relay = relay != relay_table::none;
            std::uint32_t const to_port = g[v].role == node_role::computation ? s : 0;
            edges.push_back({through_relay ? first_relay + relay : r.node, v, through_relay ? 0 : output_port(r), to_port, r,
                             tables.class_of(g.meta(r)), casts.operand_is_free(v), chains.holds_operand(v, s)});
        }
    return edges;
}

}  // namespace cantle
