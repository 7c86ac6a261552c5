// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <doctest/doctest.h>

#include <boost/graph/graph_concepts.hpp>

#include <array>
#include <cmath>
#include <limits>

using namespace cantle;
using namespace cantle::mrf;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<factor_graph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<factor_graph>));

namespace {
error_code code_of(auto&& f) {
    try {
        f();
    } catch (error const& e) {
        return e.code();
    }
    return error_code{};
}
}  // namespace

TEST_CASE("equal tables are stored once and different ones are not") {
    factor_graph g;
    auto const a = g.add_table({2, 2, {0, 1, 2, 3}});
    CHECK(g.add_table({2, 2, {0, 1, 2, 3}}) == a);
    CHECK(g.add_table(std::make_shared<cost_table const>(cost_table{2, 2, {0, 1, 2, 3}})) == a);
    CHECK(g.add_table({1, 4, {0, 1, 2, 3}}) != a);
    CHECK(g.add_table({2, 2, {0, 1, 2, forbidden}}) != a);
    CHECK(g.table_count() == 3);
}

// a(2 labels) - b(3 labels): one table read straight from a, and transposed from b.
TEST_CASE("an edge may read its table transposed, and parallel edges add up") {
    factor_graph g;
    auto const a = g.add_variable({0, 0}), b = g.add_variable({0, 0, 0});
    auto const t = g.add_table({2, 3, {1, 2, 3, 4, 5, 6}});
    g.add_edge(a, b, t);
    g.add_edge(b, a, t, table_use::transposed);
    for (label i = 0; i < 2; ++i)
        for (label j = 0; j < 3; ++j) {
            CHECK(g.pair_cost(g.edge(edge_id(0)), i, j) == 1 + 3 * i + j);
            CHECK(g.pair_cost(g.edge(edge_id(1)), j, i) == 1 + 3 * i + j);
            CHECK(energy(g, std::array<label, 2>{i, j}) == 2 * (1 + 3 * i + j));
        }
    CHECK(g.incident(a).size() == 2);
}

TEST_CASE("bad variables, tables and edges are errors that name the thing") {
    factor_graph g;
    auto const a = g.add_variable({0, 0}), b = g.add_variable({0, 0, 0});
    double const nan = std::nan("");
    CHECK(code_of([&] { g.add_variable({}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_variable({1, forbidden}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_variable({nan}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_table({2, 2, {1, 2, 3}}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_table({0, 2, {}}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_table({1, 1, {nan}}); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_table({1, 1, {-forbidden}}); }) == error_code::bad_field);
    auto const t = g.add_table({2, 3, {1, 2, 3, 4, 5, 6}});
    CHECK(code_of([&] { g.add_edge(b, a, t); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_edge(a, a, t); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_edge(a, variable_id(7), t); }) == error_code::bad_field);
    CHECK(code_of([&] { g.add_edge(a, b, table_id(7)); }) == error_code::bad_field);
    CHECK(g.edge_count() == 0);
    CHECK(g.variable_count() == 2);
}

TEST_CASE("boost's functions walk the graph") {
    factor_graph g;
    auto const a = g.add_variable({0}), b = g.add_variable({0}), c = g.add_variable({0});
    g.add_edge(a, b, {1, 1, {1}});
    g.add_edge(c, b, {1, 1, {1}});
    CHECK(num_vertices(g) == 3);
    CHECK(num_edges(g) == 2);
    std::size_t seen = 0;
    for (auto [v, end] = vertices(g); v != end; ++v) CHECK((*v).value == seen++);
    CHECK(seen == 3);
    auto [e, end] = edges(g);
    CHECK(source(*e, g) == a);
    CHECK(target(*e, g) == b);
    CHECK(source(*++e, g) == c);
    CHECK(++e == end);
}
