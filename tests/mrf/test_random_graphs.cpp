// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// Ten thousand small problems against brute force: five shapes, four kinds of costs, three densities of forbidden pairs. Every case has a
// seed of its own, which a failure prints.
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/potential.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/mrf/trws_search.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
constexpr char const* shapes[] = {"tree", "grid", "full", "star", "transformer-like"};

// The residual stream s0 - s1 - s2 .., one branch b per layer between two of its points, and one hub w (a weight's layout) for all b:
//
//      s0 --- s1 --- s2          edges s-s, s-b, b-s, b-w: as in planning problems, chains of diamonds with a shared end
//       \ b0 / \ b1 /
//         |      |
//         w -----+
std::vector<std::pair<std::uint32_t, std::uint32_t>> transformer_edges(std::uint32_t n) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> e;
    for (std::uint32_t s = 1; s + 2 < n; s += 2) {  // variables: 0 = w, then s0 b0 s1 b1 s2 ..
        e.emplace_back(s, s + 1);
        e.emplace_back(s + 1, s + 2);
        e.emplace_back(s, s + 2);
        e.emplace_back(0, s + 1);
    }
    return e;
}

struct drawn {
    factor_graph graph;
    std::string what;
};

/// Case number `seed`; nothing else decides what it is.
drawn draw_case(std::uint64_t seed) {
    dice d(seed);
    auto const which = seed % 5;
    auto const kind = all_costs[seed / 5 % 4];
    double const forbids[] = {0.0, 0.1, 0.35};
    graph_options o{.variables = 4 + d.below(4), .labels = 3, .forbidden_pairs = forbids[seed / 20 % 3]};
    drawn c;
    c.what = std::string(shapes[which]) + ", costs " + std::to_string(static_cast<int>(kind)) + ", forbidden " +
             std::to_string(o.forbidden_pairs) + ", seed " + std::to_string(seed);
    if (which < 4) {
        shape const plain[] = {shape::tree, shape::grid, shape::full, shape::star};
        c.graph = random_graph(plain[which], kind, o, d);
        return c;
    }
    for (std::uint32_t v = 0; v < o.variables; ++v) {
        std::vector<double> unary(1 + d.below(o.labels));
        for (double& x : unary) x = draw(d, kind);
        c.graph.add_variable(std::move(unary));
    }
    for (auto const [u, v] : transformer_edges(o.variables)) {
        cost_table t{c.graph.label_count(variable_id(u)), c.graph.label_count(variable_id(v)), {}};
        for (std::size_t i = 0; i < std::size_t{t.rows} * t.cols; ++i)
            t.values.push_back(d.chance(o.forbidden_pairs) ? forbidden : draw(d, kind));
        c.graph.add_edge(variable_id(u), variable_id(v), std::move(t));
    }
    return c;
}
}  // namespace

TEST_CASE("in ten thousand cases the bound is below the optimum and the optimum below the energy") {
    std::size_t infeasible = 0, certified = 0, tight = 0, feasible = 0;
    for (std::uint64_t seed = 0; seed < 10000; ++seed) {
        auto const c = draw_case(seed);
        INFO(c.what);
        auto const& g = c.graph;
        auto const optimum = brute_force(g).energy;
        auto const whole_way = solve(g);
        auto const sweeps = trws_search(g, trws_params{.max_sweeps = 60});
        CHECK(whole_way.lower_bound <= optimum);
        CHECK(optimum <= whole_way.energy);
        CHECK(sweeps.lower_bound <= optimum);
        CHECK(optimum <= sweeps.energy);
        if (optimum == forbidden) {
            ++infeasible;
            CHECK(whole_way.status == solve_status::infeasible);
            CHECK(sweeps.labels.empty());
            continue;
        }
        ++feasible;
        CHECK(sweeps.lower_bound < forbidden);
        REQUIRE(whole_way.status == solve_status::optimal);
        CHECK(whole_way.energy == doctest::Approx(optimum).epsilon(1e-12));
        CHECK(whole_way.energy == energy(g, whole_way.labels));
        if (sweeps.status == solve_status::optimal) CHECK(sweeps.energy == doctest::Approx(optimum).epsilon(1e-7));
        certified += sweeps.status == solve_status::optimal;
        tight += sweeps.energy == optimum;
    }
    CHECK(feasible > 8000);
    CHECK(infeasible > 500);
    CHECK(certified > feasible / 2);  // by sweeps alone
    CHECK(tight > feasible * 9 / 10);
    std::printf("%zu feasible, %zu infeasible; TRW-S alone: %zu certified, %zu with the optimum\n", feasible, infeasible, certified, tight);
}

// A price of 10^k beside prices of 10^-k, k up to 14: the grid of the large one hides the small ones, and the bound must not be lifted
// by what it hides.
TEST_CASE("with costs of very different size the bound is still below the optimum") {
    std::size_t hidden = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        dice d(seed);
        INFO("seed ", seed);
        auto c = draw_case(seed);
        factor_graph g;
        auto const scaled = [&](double x) {
            if (x == forbidden) return x;
            int const k = static_cast<int>(d.below(29)) - 14;
            return x * std::pow(10.0, d.chance(0.3) ? k : -14);
        };
        for (std::uint32_t v = 0; v < c.graph.variable_count(); ++v) {
            auto const of_v = c.graph.costs(variable_id(v));
            std::vector<double> costs(of_v.begin(), of_v.end());
            for (double& x : costs) x = scaled(x);
            g.add_variable(std::move(costs));
        }
        for (auto const& e : c.graph.edges()) {
            cost_table t = c.graph.table(e.table);
            for (double& x : t.values) x = scaled(x);
            g.add_edge(e.u, e.v, g.add_table(std::move(t)), e.use);
        }
        auto const optimum = brute_force(g).energy;
        auto const sweeps = trws_search(g, trws_params{.max_sweeps = 40});
        auto const whole_way = solve(g);
        CHECK(sweeps.lower_bound <= optimum);
        CHECK(optimum <= sweeps.energy);
        CHECK(whole_way.lower_bound <= optimum);
        CHECK(optimum <= whole_way.energy);
        hidden += optimum != forbidden && sweeps.error_bound > 1e-6 * std::abs(optimum);
    }
    CHECK(hidden > 100);  // the grid was coarse beside the optimum
}
