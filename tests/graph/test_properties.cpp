// SPDX-License-Identifier: BSL-1.0
// Graph types of one's own come in as training graphs, or as numbered errors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/properties.hpp>
#include <cantle/graph/validate.hpp>

#include <boost/iterator/counting_iterator.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace own {

struct node {
    std::string op;
    std::vector<std::pair<int, int>> reads;
    cantle::shape sizes;
    std::optional<int> of = {};
};
struct graph { std::vector<node> nodes; };

inline std::pair<boost::counting_iterator<int>, boost::counting_iterator<int>> vertices(graph const& g) {
    return {boost::counting_iterator<int>(0), boost::counting_iterator<int>(static_cast<int>(g.nodes.size()))};
}
inline std::size_t num_vertices(graph const& g) { return g.nodes.size(); }

template <class Tag>
struct map { graph const* of; };
template <class Tag>
map<Tag> get(Tag, graph const& g) { return {&g}; }
template <class Tag>
node const& at(map<Tag> m, int v) { return m.of->nodes[static_cast<std::size_t>(v)]; }

inline cantle::op get(map<cantle::vertex_op_t> m, int v) { return {at(m, v).op, {}}; }
inline std::vector<std::pair<int, int>> get(map<cantle::vertex_operands_t> m, int v) { return at(m, v).reads; }
inline std::vector<cantle::tensor_meta> get(map<cantle::vertex_outputs_t> m, int v) {
    return {cantle::contiguous_meta(at(m, v).sizes, cantle::dtype::float32)};
}
inline std::optional<int> get(map<cantle::vertex_of_t> m, int v) { return at(m, v).of; }

}  // namespace own

template <>
struct boost::graph_traits<own::graph> {
    using vertex_descriptor = int;
    using vertex_iterator = boost::counting_iterator<int>;
    using vertices_size_type = std::size_t;
    using directed_category = boost::directed_tag;
    using edge_parallel_category = boost::allow_parallel_edge_tag;
    using traversal_category = boost::vertex_list_graph_tag;
};

using namespace cantle;

namespace {

// 0 gradient of 1 reads 2; 1 parameter; 2 relu reads 1: not in topological order
own::graph backwards() {
    return {{{"cantle::gradient", {{2, 0}}, {4}, 1}, {"cantle::parameter", {}, {4}}, {"aten::relu", {{1, 0}}, {4}}}};
}
error_code failure(own::graph const& g) {
    try {
        import_graph(g);
    } catch (error const& e) {
        return e.code();
    }
    FAIL_CHECK("no numbered error");
    return error_code::broken_json;
}

}  // namespace

TEST_CASE("a graph of one's own comes into order, with its operands and what its gradients belong to") {
    auto const in = import_graph(backwards());
    CHECK_NOTHROW(validate(in.graph));
    CHECK(in.source_position == std::vector<std::size_t>{1, 2, 0});
    CHECK(in.graph[2].role == node_role::gradient);
    CHECK(in.graph[2].of == 0u);
}

TEST_CASE("vertices that the graph does not list are dangling, as operands and as what a gradient belongs to") {
    auto g = backwards();
    g.nodes[2].reads[0].first = 77;
    CHECK(failure(g) == error_code::dangling_tensor);
    for (int wrong : {77, -3}) {
        g = backwards();
        g.nodes[0].of = wrong;
        CHECK(failure(g) == error_code::dangling_tensor);
    }
}
