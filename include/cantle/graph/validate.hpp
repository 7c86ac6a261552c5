// SPDX-License-Identifier: BSL-1.0
#pragma once
// The invariants of a training graph, checked where a graph enters from outside (file, builder, adapter) and in tests after each pass.
#include <cantle/base/error.hpp>
#include <cantle/graph/shape_check.hpp>
#include <cantle/graph/topological_order.hpp>
#include <cantle/graph/training_graph.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cantle {

/// Most elements that a tensor (or what its strides span) may have: byte counts then fit 63 bits with room to add a few.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 56;

/// What is wrong with a meta, or an empty string: sizes and strides not negative, as many strides as sizes (or none), counts that fit.
inline std::string meta_problem(tensor_meta const& m) {
    if (!m.strides.empty() && m.strides.size() != m.sizes.size())
        return "has " + std::to_string(m.sizes.size()) + " sizes but " + std::to_string(m.strides.size()) + " strides";
    if (m.sizes.size() > most_dims) return "has more than " + std::to_string(most_dims) + " dims";
    std::int64_t count = 1;
    for (auto const size : m.sizes) {
        if (size < 0) return "has the negative size " + std::to_string(size);
        if (size > 1 && count > most_elements / size) return "has more than 2^56 elements";
        count *= size > 1 ? size : 1;  // an empty dim must not hide that the others overflow
    }
    for (auto const stride : m.strides)
        if (stride < 0 || stride > most_elements) return "has the stride " + std::to_string(stride);
    if (static_cast<std::size_t>(m.type) >= detail::dtype_rows.size()) return "has no known element type";
    return {};
}

namespace detail {
[[noreturn]] inline void graph_error(error_code code, std::string const& node, std::string const& problem, std::string const& remedy) {
    throw error(code, "node '" + node + "'", problem, remedy);
}

inline void check_operands(training_graph const& g, vertex v) {
    auto const& n = g[v];
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
        auto const r = n.operands[i];
        auto const which = "operand " + std::to_string(i) + " (" + n.operation.name + ")";
        if (r.node >= g.size())
            graph_error(error_code::dangling_tensor, n.name, which + " names node " + std::to_string(r.node) + ", but there are only " +
                        std::to_string(g.size()), "let it name a node of this graph");
        if (r.output >= g[r.node].outputs.size())
            graph_error(error_code::dangling_tensor, n.name, which + " names output " + std::to_string(r.output) + " of node '" +
                        g[r.node].name + "', which has " + std::to_string(g[r.node].outputs.size()), "let it name an output that exists");
        if (!g.meta(r).defined)
            graph_error(error_code::dangling_tensor, n.name, which + " names output " + std::to_string(r.output) + " of node '" +
                        g[r.node].name + "', which that node does not produce (it is marked undefined)", "pass None instead");
    }
}

inline void check_slots(graph_node const& n) {
    auto const count = static_cast<std::int64_t>(n.operands.size());
    auto check = [&](std::string const& argument, std::int64_t slot) {
        if (slot >= count)
            graph_error(error_code::dangling_tensor, n.name, "argument '" + argument + "' of " + n.operation.name + " takes operand " +
                        std::to_string(slot) + ", but the node has " + std::to_string(count), "list the operand or correct the slot");
    };
    for (auto const& a : n.operation.arguments) {
        if (auto const* s = std::get_if<operand_slot>(&a.value)) check(a.name, s->index);
        if (auto const* list = std::get_if<operand_slots>(&a.value))
            for (auto const s : list->indices) {
                if (s < -1)
                    graph_error(error_code::bad_graph, n.name, "argument '" + a.name + "' has the slot " + std::to_string(s),
                                "use -1 for None and operand indices otherwise");
                check(a.name, s);
            }
    }
}

inline void check_source(graph_node const& n) {
    auto const op_name = "cantle::" + std::string(to_string(n.role));
    auto const remedy = "a " + std::string(to_string(n.role)) + " is a node with op " + op_name + ", no operands and one output";
    if (n.operation.name != op_name) graph_error(error_code::bad_graph, n.name, "its op is " + n.operation.name, remedy);
    if (!n.operands.empty()) graph_error(error_code::bad_graph, n.name, "it is a source, yet has operands", remedy);
    if (n.outputs.size() != 1 || !n.outputs[0].defined)
        graph_error(error_code::bad_graph, n.name, "it has " + std::to_string(n.outputs.size()) + " outputs, or an undefined one", remedy);
    if (n.role == node_role::constant && static_cast<std::int64_t>(n.constant_data.size()) != n.outputs[0].elements())
        graph_error(error_code::bad_graph, n.name, "it has " + std::to_string(n.constant_data.size()) + " values for " +
                    std::to_string(n.outputs[0].elements()) + " elements", "give a constant one value per element");
}

inline void check_sink(training_graph const& g, graph_node const& n) {
    auto const remedy = "a sink is a node with op cantle::output, one operand and one output of the operand's sizes and type";
    if (n.operation.name != "cantle::output") graph_error(error_code::bad_graph, n.name, "its op is " + n.operation.name, remedy);
    if (n.operands.size() != 1 || n.outputs.size() != 1)
        graph_error(error_code::bad_graph, n.name, "it has " + std::to_string(n.operands.size()) + " operands and " +
                    std::to_string(n.outputs.size()) + " outputs", remedy);
    auto const& in = g.meta(n.operands[0]);
    if (in.sizes != n.outputs[0].sizes || in.type != n.outputs[0].type || !n.outputs[0].defined)
        graph_error(error_code::bad_graph, n.name, "sizes or type of its output differ from those of its operand", remedy);
}

inline void check_links(training_graph const& g, graph_node const& n) {
    if (n.forward_node && *n.forward_node >= g.size())
        graph_error(error_code::bad_graph, n.name, "forward_node is " + std::to_string(*n.forward_node) + ", but there are only " +
                    std::to_string(g.size()) + " nodes", "let it name a node of this graph or leave it out");
    if (n.role == node_role::gradient && !n.of)
        graph_error(error_code::bad_graph, n.name, "a gradient does not say what it is the gradient of", "set `of`");
    if (!n.of) return;
    if (*n.of >= g.size())
        graph_error(error_code::bad_graph, n.name, "`of` is " + std::to_string(*n.of) + ", but there are only " + std::to_string(g.size()) +
                    " nodes", "let it name a node of this graph");
    auto const& other = g[*n.of];
    if (n.role == node_role::gradient) {
        if (!is_source(other.role) || other.outputs.size() != 1 || other.outputs[0].sizes != n.outputs[0].sizes)
            graph_error(error_code::bad_graph, n.name, "it is the gradient of '" + other.name + "', which is no source of equal sizes",
                        "let `of` name the parameter or input");
    } else if (n.role == node_role::tangent) {
        if (!is_sink(other.role))
            graph_error(error_code::bad_graph, n.name, "it is the tangent of '" + other.name + "', which is no sink",
                        "let `of` name the output");
    } else {
        graph_error(error_code::bad_graph, n.name, "`of` is set, but the node is neither gradient nor tangent", "leave `of` out");
    }
}
}  // namespace detail

/// Throws unless all invariants of training_graph hold. Errors: graph_has_cycle (301) naming a cycle; dangling_tensor (302) naming node
/// and operand; bad_graph (303) for order, names, sources and sinks, links, metas, and shapes that the op does
/// not give. O(n log n + e).
inline void validate(training_graph const& g) {
    if (g.size() >= std::numeric_limits<vertex>::max()) throw error(error_code::bad_graph, "graph", "it has too many nodes", "split it");
    std::map<std::string_view, vertex> names;
    auto claim = [&](std::string_view name, vertex v) {
        if (name.empty())
            throw error(error_code::bad_graph, "node " + std::to_string(v) + " (" + g[v].operation.name + ")", "it has no name",
                        "name it");
        if (!names.emplace(name, v).second)
            detail::graph_error(error_code::bad_graph, std::string(name), "the name stands for two nodes", "make names unique");
    };
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        claim(n.name, v);
        for (auto const& other : n.also_named) claim(other, v);
        if (n.operation.name.empty()) detail::graph_error(error_code::bad_graph, n.name, "its op has no name", "name the op");
        for (std::size_t i = 0; i < n.outputs.size(); ++i)
            if (auto const problem = meta_problem(n.outputs[i]); !problem.empty())
                detail::graph_error(error_code::bad_graph, n.name, "output " + std::to_string(i) + " " + problem, "correct the meta");
    }
    for (vertex v = 0; v < g.size(); ++v) {
        detail::check_operands(g, v);
        detail::check_slots(g[v]);
    }
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (is_source(n.role)) detail::check_source(n);
        if (is_sink(n.role)) detail::check_sink(g, n);
        if (n.role != node_role::constant && !n.constant_data.empty())
            detail::graph_error(error_code::bad_graph, n.name, "it has values, but is no constant",
                                "drop the values or make it a constant");
        detail::check_links(g, n);
    }
    if (!is_topologically_ordered(g)) {
        topological_order(g);  // throws where there is a cycle
        for (vertex v = 0; v < g.size(); ++v)
            for (auto const& r : g[v].operands)
                if (r.node >= v)
                    detail::graph_error(error_code::bad_graph, g[v].name, "it comes before its operand '" + g[r.node].name + "'",
                                        "list nodes in topological order: reorder(g, topological_order(g))");
    }
    for (auto const& n : g.nodes)
        if (n.role == node_role::computation) detail::check_shapes(g, n);
}

}  // namespace cantle
