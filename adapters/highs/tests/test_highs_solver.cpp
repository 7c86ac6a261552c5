// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/highs/highs_solver.hpp>
#include <tests/mrf/random_graphs.hpp>

#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/energy.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

// Trees, grids, full graphs, stars, pieces and doubled rings of six variables, all kinds of costs, with and without forbidden pairs.
TEST_CASE("HiGHS finds the optimum of bucket elimination, and infeasibility where there is none") {
    int infeasible = 0;
    for_random_graphs(11, 1, {.variables = 6, .labels = 3}, [&](factor_graph const& g, std::string const& what) {
        INFO(what);
        auto const exact = bucket_elimination(g, *plan_elimination(g, 1e6, 1e6));
        auto const found = highs::solve(g);
        if (exact.energy == forbidden) {
            ++infeasible;
            CHECK(found.status == solve_status::infeasible);
            CHECK(found.labels.empty());
            return;
        }
        double const tolerance = 1e-6 * std::max(1.0, std::abs(exact.energy));
        REQUIRE(found.labels.size() == g.variable_count());
        CHECK(found.energy == energy(g, found.labels));
        CHECK(std::abs(found.energy - exact.energy) <= tolerance);
        CHECK(found.lower_bound <= exact.energy + tolerance);
        CHECK(found.status == solve_status::optimal);
    });
    CHECK(infeasible > 0);
}

TEST_CASE("a graph without variables has energy zero") {
    auto const found = highs::solve(factor_graph{});
    CHECK(found.status == solve_status::optimal);
    CHECK(found.energy == 0);
}

// A full graph of 40 variables with 8 labels and costs without structure: far beyond a tenth of a second.
TEST_CASE("a deadline ends the search with what is known, and progress reports every better solution") {
    dice d(3);
    auto const g = random_graph(shape::full, costs::real, {.variables = 40, .labels = 8, .equal_labels = true}, d);
    control limits;
    double last = forbidden;
    limits.progress = [&](progress_event const& e) {
        CHECK(e.stage == "highs");
        CHECK(e.energy <= last);
        last = e.energy;
    };
    limits.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    auto const found = highs::solve(g, {}, limits);
    CHECK(found.status == solve_status::stopped);
    CHECK(found.lower_bound <= found.energy);
    if (!found.labels.empty()) CHECK(found.energy == energy(g, found.labels));
}

TEST_CASE("a wanted gap that is reached is not called optimal unless it is") {
    dice d(5);
    auto const g = random_graph(shape::full, costs::whole, {.variables = 9, .labels = 3, .equal_labels = true}, d);
    auto const found = highs::solve(g, {.relative_gap = 0.5});
    REQUIRE(!found.labels.empty());
    CHECK((found.status == solve_status::within_gap || found.status == solve_status::optimal));
    CHECK((found.status == solve_status::optimal) == (found.relative_gap() <= 1e-9));
    CHECK(found.relative_gap() <= 0.5 + 1e-9);
}
