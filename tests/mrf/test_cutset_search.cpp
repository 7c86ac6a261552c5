// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/cutset_search.hpp>
#include <cantle/mrf/energy.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
factor_graph grid(std::uint32_t side, std::uint32_t labels, double forbidden_pairs, dice& d) {
    factor_graph g;
    for (std::uint32_t v = 0; v < side * side; ++v) {
        std::vector<double> unary(labels);
        for (double& x : unary) x = draw(d, costs::whole);
        g.add_variable(std::move(unary));
    }
    for (std::uint32_t v = 0; v < side * side; ++v)
        for (std::uint32_t w : {v + 1, v + side}) {
            if (w >= side * side || (w == v + 1 && w % side == 0)) continue;
            cost_table t{labels, labels, std::vector<double>(std::size_t{labels} * labels)};
            for (double& x : t.values) x = d.chance(forbidden_pairs) ? forbidden : draw(d, costs::whole);
            t.values[0] = 50;  // all variables at label 0 is allowed
            g.add_edge(variable_id(v), variable_id(w), std::move(t));
        }
    return g;
}
}  // namespace

// A grid of 8 x 8 with 4 labels: 4^9 tuples for the last rows. With step_work 4^10 nothing needs to be fixed.
TEST_CASE("with steps large enough one round finds the optimum") {
    dice d(1);
    auto const g = grid(8, 4, 0.1, d);
    auto const plan = plan_elimination(g, 1e9, 1e9);
    REQUIRE(plan);
    auto const exact = bucket_elimination(g, *plan);
    std::vector<label> labels(64, 0);
    cutset_search(g, 1048576.0).run(labels, 1, 1e12);
    CHECK(energy(g, labels) == exact.energy);
}

TEST_CASE("small steps come near the optimum, never grow the energy and keep to what is allowed") {
    double found = 0, optimum = 0, start = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        INFO("seed " << seed);
        dice d(seed);
        auto const g = grid(8, 4, 0.1, d);
        std::vector<label> labels(64, 0);
        double const before = energy(g, labels);
        cutset_search search(g, 64.0);
        CHECK(search.run(labels, 4, 1e12));
        CHECK(energy(g, labels) < before);
        auto again = std::vector<label>(64, 0);
        cutset_search(g, 64.0).run(again, 4, 1e12);
        CHECK(again == labels);
        start += before;
        found += energy(g, labels);
        optimum += bucket_elimination(g, *plan_elimination(g, 1e9, 1e9)).energy;
    }
    CHECK(found >= optimum);
    CHECK(found - optimum < 0.05 * (start - optimum));
}

TEST_CASE("without work allowed nothing changes") {
    dice d(3);
    auto const g = grid(4, 3, 0, d);
    std::vector<label> labels(16, 0);
    CHECK(!cutset_search(g, 64.0).run(labels, 4, 0));
    CHECK(labels == std::vector<label>(16, 0));
}
