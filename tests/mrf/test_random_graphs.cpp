// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// Ten thousand small problems against brute force: five shapes, four kinds of costs, three densities of forbidden pairs. Every case has a
// seed of its own, which a failure prints.
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/mrf/trws_search.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
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
    for (auto [u, v] : transformer_edges(o.variables)) {
        cost_table t{c.graph.label_count(variable_id(u)), c.graph.label_count(variable_id(v)), {}};
        for (std::size_t i = 0; i < std::size_t{t.rows} * t.cols; ++i)
            t.values.push_back(d.chance(o.forbidden_pairs) ? forbidden : draw(d, kind));
        c.graph.add_edge(variable_id(u), variable_id(v), std::move(t));
    }
    return c;
}
}  // namespace

TEST_CASE("in ten thousand cases the bound is below the optimum and the optimum below the energy") {
    std::size_t infeasible = 0, proven = 0, certified = 0, tight = 0, feasible = 0;
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
        if (whole_way.status == solve_status::optimal) {
            ++proven;
            CHECK(whole_way.energy == doctest::Approx(optimum).epsilon(1e-12));
        } else {  // costs of 10^9 that cancel: what is left is below the grid of what is paid
            CHECK(whole_way.energy - whole_way.lower_bound <= whole_way.stats.error_bound);
        }
        CHECK(whole_way.energy == energy(g, whole_way.labels));
        if (sweeps.status == solve_status::optimal) CHECK(sweeps.energy == doctest::Approx(optimum).epsilon(1e-7));
        certified += sweeps.status == solve_status::optimal;
        tight += sweeps.energy == optimum;
    }
    CHECK(feasible > 7500);
    CHECK(infeasible > 1500);
    CHECK(proven >= feasible - 10);
    CHECK(certified > feasible * 9 / 10);  // by sweeps alone
    CHECK(tight > feasible * 9 / 10);
    std::printf("%zu feasible, %zu infeasible; %zu proven optimal; TRW-S alone: %zu certified, %zu with the optimum\n", feasible,
                infeasible, proven, certified, tight);
}

// Whole costs, where every reduction is exact: arc consistency alone, and on top of it each other reduction alone, all but it, and all.
TEST_CASE("every reduction alone, all but one and all together keep the optimum") {
    struct choice {
        char const* what;
        reduce_options options;
    };
    double const work = 2e8;
    choice const choices[] = {
        {"consistency alone", {.max_work = 0, .rules = {false, false, false}}},
        {"split alone", {.max_work = 0, .rules = {true, false, false}}},
        {"merge alone", {.max_work = 0, .rules = {false, true, false}}},
        {"leaves alone", {.max_table = 0, .max_work = 0, .rules = {false, false, true}}},
        {"leaves and chains alone", {.max_work = 0, .rules = {false, false, true}}},
        {"dominance alone", {.max_work = work, .rules = {false, false, false}}},
        {"all but split", {.rules = {false, true, true}}},
        {"all but merge", {.rules = {true, false, true}}},
        {"all but elimination", {.rules = {true, true, false}}},
        {"all but dominance", {.max_work = 0}},
        {"all", {}},
    };
    std::size_t labels_gone[std::size(choices)] = {}, variables_gone[std::size(choices)] = {}, edges_gone[std::size(choices)] = {};
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        auto const c = draw_case(seed * 5 + seed % 5);
        INFO(c.what);
        auto g = quantise(c.graph).graph;
        if (g.edge_count() > 0) {  // what random tables hardly ever are: an edge that splits, and one that determines
            auto const first = g.edge(edge_id(0));
            auto const rows = g.label_count(first.u), cols = g.label_count(first.v);
            auto const copy = g.add_variable(std::vector<double>(rows, 1.0));
            cost_table equal{rows, rows, std::vector<double>(std::size_t{rows} * rows, forbidden)}, sum{rows, cols, {}};
            for (label r = 0; r < rows; ++r) {
                equal.values[std::size_t{r} * rows + r] = r;
                for (label k = 0; k < cols; ++k) sum.values.push_back(3.0 * r + 5.0 * k);
            }
            g.add_edge(first.u, copy, std::move(equal));
            g.add_edge(copy, first.v, std::move(sum));
        }
        auto const best = brute_force(g);
        for (std::size_t i = 0; i < std::size(choices); ++i) {
            INFO(choices[i].what);
            reduction const r(g, choices[i].options);
            if (r.infeasible()) {
                CHECK(best.energy == forbidden);
                continue;
            }
            auto const small = brute_force(r.graph());
            CHECK(r.constant() + small.energy == best.energy);
            if (best.energy != forbidden) CHECK(energy(g, r.reconstruct(small.labels)) == best.energy);
            variables_gone[i] += g.variable_count() - r.graph().variable_count();
            edges_gone[i] += g.edge_count() - r.graph().edge_count();
            for (std::uint32_t v = 0; v < r.graph().variable_count(); ++v)
                labels_gone[i] += g.label_count(r.original(variable_id(v))) - r.graph().label_count(variable_id(v));
        }
    }
    // Each reduction had something to do, and only what it is for.
    CHECK(labels_gone[0] > 1000);
    CHECK(variables_gone[0] == 0);
    CHECK(edges_gone[1] > edges_gone[0] + 1000);
    CHECK(variables_gone[2] > 1000);
    CHECK(variables_gone[3] > 1000);
    CHECK(variables_gone[4] > variables_gone[3] + 1000);
    CHECK(labels_gone[5] > labels_gone[0] + 1000);
    CHECK(variables_gone[std::size(choices) - 1] > variables_gone[4]);
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
