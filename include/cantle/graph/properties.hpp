// SPDX-License-Identifier: BSL-1.0
#pragma once
// How a graph type of your own becomes plannable. It models Boost's VertexListGraph and offers three property maps, found like Boost's
// interior properties through get(tag, graph):
//
//     get(cantle::vertex_op, g)        -> map: vertex -> cantle::op
//     get(cantle::vertex_outputs, g)   -> map: vertex -> range of cantle::tensor_meta
//     get(cantle::vertex_operands, g)  -> map: vertex -> range of pairs (vertex_descriptor, output index)
//
// Optional, with these defaults: vertex_role (from the op name: "cantle::parameter" etc. are sources; "cantle::loss", "cantle::gradient"
// and "cantle::output" are sinks; all else computes), vertex_phase (forward), vertex_name ("v0", "v1", ...), vertex_module ("" : no
// clustering), vertex_of (std::optional<vertex_descriptor>: what a gradient or tangent belongs to; none).
// Parallel operands (x * x) are two entries. Vertices may come in any order; see examples/own_graph.cpp.
#include <cantle/base/error.hpp>
#include <cantle/graph/topological_order.hpp>
#include <cantle/graph/training_graph.hpp>

#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/graph_traits.hpp>
#include <boost/property_map/property_map.hpp>

#include <concepts>
#include <map>
#include <string>
#include <utility>

namespace cantle {

struct vertex_op_t {};
struct vertex_outputs_t {};
struct vertex_operands_t {};
struct vertex_role_t {};
struct vertex_phase_t {};
struct vertex_name_t {};
struct vertex_module_t {};
struct vertex_of_t {};
inline constexpr vertex_op_t vertex_op{};
inline constexpr vertex_outputs_t vertex_outputs{};
inline constexpr vertex_operands_t vertex_operands{};
inline constexpr vertex_role_t vertex_role{};
inline constexpr vertex_phase_t vertex_phase{};
inline constexpr vertex_name_t vertex_name{};
inline constexpr vertex_module_t vertex_module{};
inline constexpr vertex_of_t vertex_of{};

template <class G>
using vertex_descriptor_of = typename boost::graph_traits<G>::vertex_descriptor;

namespace detail {
/// get(get(tag, g), v), both found by argument-dependent lookup.
template <class Tag, class G>
decltype(auto) vertex_property(Tag tag, G const& g, vertex_descriptor_of<G> v) {
    return get(get(tag, g), v);
}
template <class Tag, class G>
concept HasVertexProperty = requires(Tag tag, G const& g, vertex_descriptor_of<G> v) { get(get(tag, g), v); };
}  // namespace detail

/// Satisfied by a graph whose vertices(g) and num_vertices(g) are those of Boost's VertexListGraph.
template <class G>
concept ListsVertices = requires(G const& g) {
    typename boost::graph_traits<G>::vertex_descriptor;
    { vertices(g).first == vertices(g).second } -> std::convertible_to<bool>;
    { num_vertices(g) } -> std::convertible_to<std::size_t>;
};
/// Satisfied by get(cantle::vertex_op, g): a readable property map to something convertible to cantle::op const&.
template <class G>
concept HasOps = requires(G const& g, vertex_descriptor_of<G> v) { { get(get(vertex_op, g), v) } -> std::convertible_to<op>; };
/// Satisfied by get(cantle::vertex_outputs, g): a readable property map to a range of tensor_meta.
template <class G>
concept HasOutputs = requires(G const& g, vertex_descriptor_of<G> v) {
    { *std::begin(get(get(vertex_outputs, g), v)) } -> std::convertible_to<tensor_meta>;
};
/// Satisfied by get(cantle::vertex_operands, g): a readable property map to a range of (vertex, output index).
template <class G>
concept HasOperands = requires(G const& g, vertex_descriptor_of<G> v) {
    { std::begin(get(get(vertex_operands, g), v))->first } -> std::convertible_to<vertex_descriptor_of<G>>;
    { std::begin(get(get(vertex_operands, g), v))->second } -> std::convertible_to<std::size_t>;
};

/// A graph that plan() takes: training_graph itself, or any type with the three property maps.
template <class G>
concept PlannableGraph = std::same_as<G, training_graph> || (ListsVertices<G> && HasOps<G> && HasOutputs<G> && HasOperands<G>);

/// Called at a public door: one clear sentence per missing part.
template <class G>
constexpr void require_plannable_graph() {
    if constexpr (!std::same_as<G, training_graph>) {
        static_assert(ListsVertices<G>, "a plannable graph needs vertices(g) and num_vertices(g), as Boost's VertexListGraph");
        static_assert(HasOps<G>, "a plannable graph needs get(cantle::vertex_op, g): a property map from vertex to cantle::op");
        static_assert(
            HasOutputs<G>,
            "a plannable graph needs get(cantle::vertex_outputs, g): a property map from vertex to a range of cantle::tensor_meta");
        static_assert(
            HasOperands<G>,
            "a plannable graph needs get(cantle::vertex_operands, g): a property map from vertex to a range of (vertex, output index)");
    }
}

/// A graph with the position of its vertices in the source: source_position[v] counts along vertices(source).
struct imported_graph {
    training_graph graph;
    std::vector<std::size_t> source_position;
};

namespace detail {
inline node_role role_of_op_name(std::string const& name) {
    if (name.rfind("cantle::", 0) == 0)
        if (auto const r = parse_node_role(name.substr(8))) return *r;
    return node_role::computation;
}
}  // namespace detail

/// Copy a graph of any plannable type into a training_graph in topological order. Throws dangling_tensor, graph_has_cycle.
template <PlannableGraph G>
imported_graph import_graph(G const& source) {
    using descriptor = vertex_descriptor_of<G>;
    imported_graph result;
    std::map<descriptor, vertex> position;
    auto const [first, last] = vertices(source);
    for (auto i = first; i != last; ++i) position.emplace(*i, static_cast<vertex>(position.size()));
    for (auto i = first; i != last; ++i) {
        descriptor const v = *i;
        graph_node n;
        n.operation = detail::vertex_property(vertex_op, source, v);
        n.name = "v" + std::to_string(result.graph.nodes.size());
        if constexpr (detail::HasVertexProperty<vertex_name_t, G>) n.name = detail::vertex_property(vertex_name, source, v);
        for (auto const& t : detail::vertex_property(vertex_outputs, source, v)) n.outputs.push_back(t);
        for (auto const& r : detail::vertex_property(vertex_operands, source, v)) {
            auto const at = position.find(r.first);
            if (at == position.end())
                throw error(error_code::dangling_tensor, "operand " + std::to_string(n.operands.size()) + " of '" + n.name + "'",
                            "it names a vertex that the graph does not list", "list every vertex in vertices(g)");
            n.operands.push_back({at->second, static_cast<std::uint32_t>(r.second)});
        }
        if constexpr (detail::HasVertexProperty<vertex_role_t, G>) n.role = detail::vertex_property(vertex_role, source, v);
        else {
            n.role = detail::role_of_op_name(n.operation.name);
            if (is_sink(n.role)) n.operation.name = "cantle::output";  // inside, a sink's role is told by its role alone
        }
        if (n.role == node_role::constant) {  // its values stay with the owner of the graph; to the planner it is a buffer
            n.role = node_role::buffer;
            n.operation.name = "cantle::buffer";
        }
        if constexpr (detail::HasVertexProperty<vertex_phase_t, G>) n.in_phase = detail::vertex_property(vertex_phase, source, v);
        if constexpr (detail::HasVertexProperty<vertex_module_t, G>) n.module_path = detail::vertex_property(vertex_module, source, v);
        if constexpr (detail::HasVertexProperty<vertex_of_t, G>)
            if (std::optional<descriptor> const of = detail::vertex_property(vertex_of, source, v)) {
                auto const at = position.find(*of);
                if (at == position.end())
                    throw error(error_code::dangling_tensor, "vertex_of of '" + n.name + "'",
                                "it names a vertex that the graph does not list", "name the parameter, input or output that it belongs to");
                n.of = at->second;
            }
        result.graph.nodes.push_back(std::move(n));
    }
    std::size_t const count = result.graph.size();
    auto const order = topological_order(result.graph);
    std::vector<vertex> place(count);
    for (vertex i = 0; i < count; ++i) place[order[i]] = i;
    training_graph sorted;
    for (auto old : order) {
        auto n = std::move(result.graph.nodes[old]);
        for (auto& r : n.operands) r.node = place[r.node];
        if (n.of) n.of = place[*n.of];
        sorted.nodes.push_back(std::move(n));
        result.source_position.push_back(old);
    }
    result.graph = std::move(sorted);
    return result;
}

}  // namespace cantle
