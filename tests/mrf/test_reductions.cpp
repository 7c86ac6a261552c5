// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
void check_reduction(factor_graph const& g, reduce_options const& o) {
    auto const on_grid = quantise(g);
    auto const& whole = on_grid.inexact_terms == 0 ? g : on_grid.graph;  // reductions are exact on both
    auto const best = brute_force(whole);
    reduction const r(whole, o);
    if (r.infeasible()) {
        CHECK(best.energy == forbidden);
        return;
    }
    auto const small = brute_force(r.graph());
    CHECK(r.constant() + small.energy == best.energy);
    if (best.energy != forbidden) CHECK(energy(whole, r.reconstruct(small.labels)) == best.energy);
    // Any labelling of what is left, not only the best one, has the energy that the reduced graph says.
    dice d(3);
    for (int i = 0; i < 5; ++i) {
        std::vector<label> y(r.graph().variable_count());
        for (std::uint32_t v = 0; v < y.size(); ++v) y[v] = d.below(r.graph().label_count(variable_id(v)));
        CHECK(energy(whole, r.reconstruct(y)) == r.constant() + energy(r.graph(), y));
    }
}
}  // namespace

TEST_CASE("rounding down to the grid loses less than the stated error and never lifts an energy") {
    for_random_graphs(4711, 2, {.variables = 6, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        auto const q = quantise(g);
        CHECK(magnitude(q.graph) <= std::ldexp(1.0, 48));
        std::vector<label> x(g.variable_count(), 0);
        double const exact = energy(g, x), down = q.unit * energy(q.graph, x);
        if (exact == forbidden) {
            CHECK(down == forbidden);
            return;
        }
        CHECK(down <= exact);
        CHECK(exact - down <= q.error_bound());
        for (std::uint32_t v = 0; v < g.variable_count(); ++v)
            for (double c : q.graph.costs(variable_id(v))) CHECK(c == std::floor(c));
    });
}

TEST_CASE("whole numbers are on the grid and lose nothing") {
    factor_graph g;
    g.add_variable({3, -5});
    g.add_variable({0.5, 1e6});
    auto const q = quantise(g);
    CHECK(q.inexact_terms == 0);
    CHECK(q.error_bound() == 0);
    CHECK(quantise(factor_graph{}).unit == 1);
}

TEST_CASE("costs too large to add up are an error") {
    factor_graph g;
    g.add_variable({1e300});
    CHECK_THROWS_AS(quantise(g), error);
}

TEST_CASE("reductions keep the optimum and every energy of what is left") {
    for_random_graphs(1, 4, {.variables = 6, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        check_reduction(g, {});
        check_reduction(g, {.max_table = 0});
        check_reduction(g, {.max_work = 0});
        check_reduction(g, {.max_table = 0, .max_work = 0});
    });
}

TEST_CASE("graphs with many fixed variables and forbidden pairs reduce rightly") {
    for_random_graphs(900, 4, {.variables = 8, .labels = 2}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        check_reduction(g, {});
    });
}

TEST_CASE("trees, rings and stars vanish") {
    for (shape s : {shape::tree, shape::star, shape::doubled, shape::pieces}) {
        dice d(8);
        reduction const r(random_graph(s, costs::real, {.variables = 9, .labels = 5}, d));
        CHECK(r.graph().variable_count() == 0);
        CHECK(r.reconstruct({}).size() == 9);
    }
}

// K4 of 0-1-2-3 (nothing can go: degree 3), and a copy 4 of variable 0 by a permutation, joined to 1, 2 and 3 too.
TEST_CASE("a variable that another one determines is merged into it whatever its degree") {
    dice d(12);
    graph_options const o{.variables = 4, .labels = 3, .equal_labels = true};
    auto g = random_graph(shape::full, costs::real, o, d);
    auto const copy = g.add_variable({1, 2, 3});
    g.add_edge(variable_id(0), copy, {3, 3, {forbidden, 0, forbidden, forbidden, forbidden, 1, 2, forbidden, forbidden}});
    for (std::uint32_t v : {1U, 2U, 3U}) {
        cost_table t{3, 3, std::vector<double>(9)};
        for (double& c : t.values) c = draw(d, costs::real);
        g.add_edge(copy, variable_id(v), std::move(t));
    }
    reduction const r(quantise(g).graph, {.max_table = 1, .max_work = 0});
    CHECK(r.graph().variable_count() == 4);
    check_reduction(g, {.max_table = 1, .max_work = 0});
}

// a - b with every pair forbidden; and a triangle a - b - c in which a = b, b = c, a != c.
TEST_CASE("infeasible graphs are found out by arc consistency or elimination") {
    cost_table const equal{2, 2, {0, forbidden, forbidden, 0}}, differ{2, 2, {forbidden, 0, 0, forbidden}};
    factor_graph pair;
    auto a = pair.add_variable({0, 0}), b = pair.add_variable({0, 0});
    pair.add_edge(a, b, {2, 2, {forbidden, forbidden, forbidden, forbidden}});
    CHECK(reduction(pair).infeasible());
    factor_graph triangle;
    a = triangle.add_variable({0, 0});
    b = triangle.add_variable({0, 0});
    auto const c = triangle.add_variable({0, 0});
    triangle.add_edge(a, b, equal);
    triangle.add_edge(b, c, equal);
    triangle.add_edge(a, c, differ);
    CHECK(reduction(triangle).infeasible());
}

// K4; variable 0 has labels of costs (x,y) (x,y)+1 (x,y) (y,x) towards each neighbour: 1 is worse than 0 and 2 is a copy of it; 3 may be
// needed.
TEST_CASE("dominated and duplicate labels go, the lower one of two equals stays") {
    factor_graph g;
    g.add_variable({0, 1, 0, 0});
    for (int v = 1; v < 4; ++v) g.add_variable({0, 0});
    for (std::uint32_t v = 1; v < 4; ++v) {
        double const x = 10.0 * v, y = 45 - x;
        g.add_edge(variable_id(0), variable_id(v), {4, 2, {x, y, x, y, x, y, y, x}});
        for (std::uint32_t w = v + 1; w < 4; ++w) g.add_edge(variable_id(v), variable_id(w), {2, 2, {0, 7, 9, 1}});
    }
    reduction const with(g, {.max_table = 0}), without(g, {.max_table = 0, .max_work = 0});
    REQUIRE(without.graph().label_count(variable_id(0)) == 4);
    REQUIRE(with.graph().variable_count() == 4);
    CHECK(with.graph().label_count(variable_id(0)) == 2);
    CHECK(with.original(variable_id(0), 0) == 0);
    CHECK(with.original(variable_id(0), 1) == 3);
    check_reduction(g, {.max_table = 0});
}
