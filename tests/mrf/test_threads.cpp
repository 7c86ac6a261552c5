// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// The thread sanitizer runs this too. Graphs are large enough for every part that uses threads to use them.
#include "random_graphs.hpp"

#include <cantle/mrf/solve.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stop_token>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
/// A ring of `n` variables with `labels` labels each and one chord: 0-1-2-..-(n-1)-0 and 0-(n/2).
factor_graph ring(std::uint32_t n, std::uint32_t labels, dice& d) {
    factor_graph g;
    for (std::uint32_t v = 0; v < n; ++v) {
        std::vector<double> unary(labels);
        for (double& x : unary) x = d.unit() * 100;
        g.add_variable(std::move(unary));
    }
    for (std::uint32_t v = 0; v <= n; ++v) {
        cost_table t{labels, labels, std::vector<double>(std::size_t{labels} * labels)};
        for (double& x : t.values) x = d.chance(0.2) ? forbidden : d.unit() * 100;
        if (v < n) g.add_edge(variable_id(v), variable_id((v + 1) % n), std::move(t));
        else g.add_edge(variable_id(0), variable_id(n / 2), std::move(t));
    }
    return g;
}
}  // namespace

TEST_CASE("a solve gives the same bits with one, two and four threads") {
    dice d(5);
    auto const g = ring(8, 400, d);
    std::vector<solve_options> kinds(3);
    kinds[1].reduce.max_table = 0;  // no elimination before the sweeps, and none of the whole
    kinds[1].max_elimination_entries = 0;
    kinds[1].max_sweeps = 6;
    kinds[2].reduce.max_table = 0;  // elimination of the whole
    kinds[2].max_sweeps = 1;
    for (auto options : kinds) {
        options.threads = 1;
        auto const one = solve(g, options);
        CHECK(!one.labels.empty());
        for (unsigned threads : {2U, 4U}) {
            options.threads = threads;
            auto const more = solve(g, options);
            CHECK(more.labels == one.labels);
            CHECK(more.energy == one.energy);
            CHECK(more.lower_bound == one.lower_bound);
            CHECK(more.status == one.status);
            CHECK(more.stats.sweeps == one.stats.sweeps);
        }
    }
}

TEST_CASE("a solve that is stopped before it begins returns a valid bound, and a valid labelling if any") {
    dice d(6);
    auto const g = ring(6, 150, d);
    auto const full = solve(g);
    REQUIRE(full.status == solve_status::optimal);
    std::stop_source source;
    source.request_stop();
    for (unsigned threads : {1U, 2U}) {
        solve_options options;
        options.threads = threads;
        auto const r = solve(g, options, {.deadline = {}, .stop = source.get_token(), .progress = {}});
        CHECK(r.status == solve_status::stopped);
        CHECK(r.stats.sweeps == 1);
        CHECK(r.lower_bound > 0);
        CHECK(r.lower_bound <= full.energy);
        CHECK(r.energy >= full.lower_bound);
        if (!r.labels.empty()) CHECK(energy(g, r.labels) == r.energy);
    }
}

TEST_CASE("exact elimination that is stopped says so") {
    dice d(7);
    auto const g = ring(6, 30, d);
    auto const plan = plan_elimination(g, 1e9, 1e9);
    REQUIRE(plan);
    std::stop_source source;
    source.request_stop();
    CHECK(bucket_elimination(g, *plan, 2, {.deadline = {}, .stop = source.get_token(), .progress = {}}).stopped);
    CHECK(!bucket_elimination(g, *plan, 2).stopped);
}
