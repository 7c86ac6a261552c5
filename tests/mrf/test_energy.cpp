// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/coordinate_descent.hpp>
#include <cantle/mrf/energy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
std::vector<label> random_labels(factor_graph const& g, dice& d) {
    std::vector<label> x(g.variable_count());
    for (std::uint32_t v = 0; v < x.size(); ++v) x[v] = d.below(g.label_count(variable_id(v)));
    return x;
}
std::size_t clashes(factor_graph const& g, std::vector<label> const& x) {
    std::size_t n = 0;
    for (auto const& e : g.edges()) n += g.pair_cost(e, x[e.u.value], x[e.v.value]) == forbidden;
    return n;
}
}  // namespace

TEST_CASE("the energy of an empty graph is zero and a forbidden pair makes it infinite") {
    factor_graph g;
    CHECK(energy(g, {}) == 0);
    auto const a = g.add_variable({1, 2}), b = g.add_variable({4});
    g.add_edge(a, b, {2, 1, {8, forbidden}});
    CHECK(energy(g, std::vector<label>{0, 0}) == 13);
    CHECK(energy(g, std::vector<label>{1, 0}) == forbidden);
    CHECK_THROWS_AS(energy(g, std::vector<label>{2, 0}), error);
    CHECK_THROWS_AS(energy(g, std::vector<label>{0}), error);
}

TEST_CASE("small terms are not lost beside large ones") {
    factor_graph g;
    g.add_variable({1e17});
    for (int i = 0; i < 1000; ++i) g.add_variable({1.0});
    g.add_variable({-1e17});
    CHECK(energy(g, std::vector<label>(1002, 0)) == 1000.0);
}

TEST_CASE("the delta of every move equals the recomputed energy") {
    std::size_t finite = 0, infinite = 0;
    for_random_graphs(20261, 2, {.variables = 6, .labels = 3}, [&](factor_graph const& g, std::string const& what) {
        INFO(what);
        dice d(5);
        auto const x = random_labels(g, d);
        double const before = energy(g, x);
        double scale = 1;
        for (auto const& e : g.edges())
            for (double c : g.table(e.table).values)
                if (c != forbidden) scale = std::max(scale, std::abs(c));
        auto const check = [&](std::vector<label> const& y, double delta, bool part_forbidden) {
            double const after = energy(g, y);
            if (before != forbidden && after != forbidden) {
                CHECK(delta == doctest::Approx(after - before).epsilon(1e-12).scale(100 * scale));
                ++finite;
            } else if (before != forbidden) {
                CHECK(delta == forbidden);
                ++infinite;
            } else if (after != forbidden) {
                CHECK(delta == -forbidden);
            } else if (part_forbidden) {
                CHECK(delta == 0);
            }
        };
        for (std::uint32_t v = 0; v < x.size(); ++v)
            for (label l = 0; l < g.label_count(variable_id(v)); ++l) {
                auto y = x;
                y[v] = l;
                bool const both = local_energy(g, x, variable_id(v), x[v]) == forbidden &&
                                  local_energy(g, x, variable_id(v), l) == forbidden;
                check(y, move_delta(g, x, variable_id(v), l), both);
                for (std::uint32_t w = 0; w < v; ++w) {
                    auto const k = d.below(g.label_count(variable_id(w)));
                    y[w] = k;
                    check(y, move_delta(g, x, variable_id(v), l, variable_id(w), k), false);
                    y[w] = x[w];
                }
            }
    });
    CHECK(finite > 1000);
    CHECK(infinite > 100);
}

TEST_CASE("coordinate descent never makes a labelling worse and ends where no single move helps") {
    for_random_graphs(77, 3, {.variables = 7, .labels = 4}, [&](factor_graph const& g, std::string const& what) {
        INFO(what);
        dice d(9);
        auto const start = random_labels(g, d);
        auto x = start;
        coordinate_descent descent(g);
        descent.run(x);
        descent.single_moves(x);
        CHECK(clashes(g, x) <= clashes(g, start));
        if (clashes(g, x) == clashes(g, start)) CHECK(energy(g, x) <= energy(g, start) + 1e-9 * std::abs(energy(g, start)));
        if (energy(g, x) == forbidden) return;
        for (std::uint32_t v = 0; v < x.size(); ++v)
            for (label l = 0; l < g.label_count(variable_id(v)); ++l)
                CHECK(move_delta(g, x, variable_id(v), l) >= -1e-9 * std::abs(local_energy(g, x, variable_id(v), x[v])));
    });
}

// a - b with costs 0 on (0,0), -1 on (1,1), 5 elsewhere: from (0,0) each single move costs 5, both together gain 1.
TEST_CASE("a pair move escapes where two variables must change at once") {
    factor_graph g;
    auto const a = g.add_variable({0, 0}), b = g.add_variable({0, 0});
    g.add_edge(a, b, {2, 2, {0, 5, 5, -1}});
    std::vector<label> x{0, 0};
    coordinate_descent descent(g);
    CHECK_FALSE(descent.single_moves(x));
    CHECK(descent.pair_moves(x));
    CHECK(x == std::vector<label>{1, 1});
}

// a = b = c by forbidden pairs, start (0,1,0): the descent repairs before it saves cost.
TEST_CASE("coordinate descent repairs forbidden pairs first") {
    factor_graph g;
    auto const a = g.add_variable({0, 0}), b = g.add_variable({9, 0}), c = g.add_variable({0, 0});
    auto const equal = g.add_table({2, 2, {0, forbidden, forbidden, 0}});
    g.add_edge(a, b, equal);
    g.add_edge(b, c, equal);
    std::vector<label> x{0, 1, 0};
    coordinate_descent(g).single_moves(x);
    CHECK(clashes(g, x) == 0);
}
