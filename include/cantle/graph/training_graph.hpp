// SPDX-License-Identifier: BSL-1.0
#pragma once
// The joint forward-backward graph as a value: a vector of nodes in topological order. It models Boost's VertexListGraph; planner.hpp reads
// it through the property functions of graph/properties.hpp, as it reads a stranger's graph.
//
// Sources (role parameter ... constant) are nodes with op "cantle::<role>" and no operands. Sinks are nodes with op "cantle::output", one
// operand and one output of the same meta; their role says what they are (loss, gradient, output).
#include <cantle/graph/op.hpp>
#include <cantle/graph/tensor_meta.hpp>

#include <boost/graph/graph_traits.hpp>
#include <boost/iterator/counting_iterator.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// Index of a node in a training_graph.
using vertex = std::uint32_t;

/// One output of one node.
struct value_ref {
    vertex node = 0;
    std::uint32_t output = 0;
    bool operator==(value_ref const&) const = default;
    auto operator<=>(value_ref const&) const = default;
};

/// What a node is for. Sources: parameter, buffer, input, target, tangent, constant. Sinks: loss, gradient, output. Else computation.
enum class node_role : std::uint8_t { computation, parameter, buffer, input, target, tangent, constant, loss, gradient, output };

enum class phase : std::uint8_t { forward, backward };

constexpr std::string_view to_string(node_role r) {
    constexpr std::string_view names[] = {"computation", "parameter", "buffer", "input",    "target",
                                          "tangent",     "constant",  "loss",   "gradient", "output"};
    return names[static_cast<std::size_t>(r)];
}
constexpr std::optional<node_role> parse_node_role(std::string_view s) {
    for (int i = 0; i <= static_cast<int>(node_role::output); ++i)
        if (to_string(static_cast<node_role>(i)) == s) return static_cast<node_role>(i);
    return std::nullopt;
}
constexpr std::string_view to_string(phase p) { return p == phase::forward ? "forward" : "backward"; }
constexpr bool is_source(node_role r) { return r >= node_role::parameter && r <= node_role::constant; }
constexpr bool is_sink(node_role r) { return r >= node_role::loss; }

/// One node.
struct graph_node {
    cantle::op operation;
    std::vector<value_ref> operands;        ///< tensor operands; op arguments refer to them by slot
    std::vector<tensor_meta> outputs;       ///< global metas, one per output
    node_role role = node_role::computation;
    cantle::phase in_phase = phase::forward;
    std::string name;  ///< unique and as a user would know it: "layers.0.attention.wq.weight", "layers.0.attention/linear"
    std::string module_path;                ///< "layers.0.attention"; empty at the root. Parameters: the module that owns them
    std::optional<vertex> forward_node;     ///< of a backward node: the forward node whose derivative it belongs to
    std::optional<vertex> of;  ///< gradient sink: the parameter or input it belongs to; tangent: the output sink (may come later in order)
    std::vector<std::string> also_named;    ///< tied storages: the other names of this parameter or buffer
    std::vector<double> constant_data;      ///< role constant: its values (a scalar has one); metas say the dtype
};

/// Where a graph came from, so that it can be captured again at another size (DECISIONS 14). All strings as the user gave them.
struct graph_origin {
    std::string model, recipe, precision;   ///< "llama3-8b", "train" or "table3", "bf16" or "fp32"
    std::int64_t batch = 0, sequence = 0;
    std::vector<std::pair<std::string, std::int64_t>> config;  ///< model sizes: {"dim", 4096}, ...
};

/// A vector of nodes in topological order (operands come before their users).
struct training_graph {
    std::vector<graph_node> nodes;
    graph_origin origin;

    graph_node const& operator[](vertex v) const { return nodes[v]; }
    graph_node& operator[](vertex v) { return nodes[v]; }
    std::size_t size() const { return nodes.size(); }
    tensor_meta const& meta(value_ref r) const { return nodes[r.node].outputs[r.output]; }
};

/// Uses of every output of every node: uses[v][output] = list of (user, operand slot), in topological order.
inline std::vector<std::vector<std::vector<std::pair<vertex, std::uint32_t>>>> collect_uses(training_graph const& g) {
    std::vector<std::vector<std::vector<std::pair<vertex, std::uint32_t>>>> uses(g.size());
    for (vertex v = 0; v < g.size(); ++v) uses[v].resize(g[v].outputs.size());
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t s = 0; s < g[v].operands.size(); ++s) {
            auto const r = g[v].operands[s];
            uses[r.node][r.output].emplace_back(v, s);
        }
    return uses;
}

inline std::pair<boost::counting_iterator<vertex>, boost::counting_iterator<vertex>> vertices(training_graph const& g) {
    return {boost::counting_iterator<vertex>(0), boost::counting_iterator<vertex>(static_cast<vertex>(g.size()))};
}
inline vertex num_vertices(training_graph const& g) { return static_cast<vertex>(g.size()); }

}  // namespace cantle

template <>
struct boost::graph_traits<cantle::training_graph> {
    using vertex_descriptor = cantle::vertex;
    using vertex_iterator = boost::counting_iterator<cantle::vertex>;
    using vertices_size_type = cantle::vertex;
    using directed_category = boost::directed_tag;
    using edge_parallel_category = boost::allow_parallel_edge_tag;
    using traversal_category = boost::vertex_list_graph_tag;
    static vertex_descriptor null_vertex() { return static_cast<cantle::vertex>(-1); }
};
