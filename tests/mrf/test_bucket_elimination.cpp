// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/quantise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

TEST_CASE("bucket elimination finds the optimum in any order") {
    for_random_graphs(2, 4, {.variables = 7, .labels = 3}, [](factor_graph const& raw, std::string const& what) {
        INFO(what);
        auto const g = quantise(raw).graph;
        auto const best = brute_force(g).energy;
        auto plan = plan_elimination(g, 1e9, 1e9);
        REQUIRE(plan);
        elimination_plan reversed = *plan, shuffled = *plan;
        std::reverse(reversed.order.begin(), reversed.order.end());
        dice d(6);
        for (std::uint32_t i = 1; i < shuffled.order.size(); ++i) std::swap(shuffled.order[i], shuffled.order[d.below(i + 1)]);
        for (auto const& p : {*plan, reversed, shuffled}) {
            auto const r = bucket_elimination(g, p);
            CHECK(r.energy == best);
            if (best != forbidden) CHECK(energy(g, r.labels) == best);
        }
    });
}

TEST_CASE("an empty graph has energy zero") {
    factor_graph const g;
    auto const plan = plan_elimination(g, 0, 0);
    REQUIRE(plan);
    CHECK(bucket_elimination(g, *plan).energy == 0);
}

// 0-1-2 / 3-4-5 / 6-7-8 with 4 labels: width 3, so at least one table of 64 entries.
TEST_CASE("the plan says the width and is refused when it exceeds a limit") {
    dice d(4);
    auto const g = random_graph(shape::grid, costs::real, {.variables = 9, .labels = 4, .equal_labels = true}, d);
    auto const plan = plan_elimination(g, 1e9, 1e9);
    REQUIRE(plan);
    CHECK(plan->width == 3);
    CHECK(plan->order.size() == 9);
    CHECK(plan->work <= 4 * plan->entries);
    CHECK_FALSE(plan_elimination(g, plan->entries - 1, 1e9));
    CHECK_FALSE(plan_elimination(g, 1e9, plan->work - 1));
    CHECK(plan_elimination(g, plan->entries, plan->work));
}
