// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/solve.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
/// Everything but TRW-S, decoding, descent and fixing switched off.
solve_options const bare{.max_elimination_entries = 0,
                         .max_elimination_work = 0,
                         .max_block_work = 0,
                         .max_branch_entries = 0,
                         .reduce = {.max_table = 0, .max_work = 0}};
solve_options const no_elimination{.max_elimination_entries = 0, .max_elimination_work = 0, .max_block_work = 0, .max_branch_entries = 0};
/// No elimination of the whole, so that block search and branch and bound must do it.
solve_options const branching{.max_elimination_entries = 0, .max_elimination_work = 0, .reduce = {.max_table = 0, .max_work = 0}};

void check_result(factor_graph const& g, solve_result const& r, double optimum) {
    CHECK(r.lower_bound <= optimum);
    CHECK(r.lower_bound <= r.energy);
    CHECK(r.energy >= optimum);
    if (!r.labels.empty()) CHECK(energy(g, r.labels) == r.energy);
    if (r.status == solve_status::infeasible) {
        CHECK(optimum == forbidden);
        CHECK(r.labels.empty());
    }
    if (r.status == solve_status::optimal) CHECK(r.energy - optimum <= r.stats.error_bound + 1e-15 * std::abs(optimum));
}

/// A grid of `side` x `side` with whole costs, too large for brute force; bucket elimination is the measure.
factor_graph large_grid(std::uint32_t side, std::uint32_t labels, costs c, double forbidden_pairs, dice& d) {
    factor_graph g;
    for (std::uint32_t v = 0; v < side * side; ++v) {
        std::vector<double> unary(labels);
        for (double& x : unary) x = draw(d, c);
        g.add_variable(std::move(unary));
    }
    for (std::uint32_t v = 0; v < side * side; ++v)
        for (std::uint32_t w : {v + 1, v + side}) {
            if (w >= side * side || (w == v + 1 && w % side == 0)) continue;
            cost_table t{labels, labels, std::vector<double>(std::size_t{labels} * labels)};
            for (double& x : t.values) x = d.chance(forbidden_pairs) ? forbidden : draw(d, c);
            g.add_edge(variable_id(v), variable_id(w), std::move(t));
        }
    return g;
}
}  // namespace

TEST_CASE("bound, optimum and energy are in this order on every kind of graph, and the default solves them all") {
    for_random_graphs(100, 4, {.variables = 7, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        double const optimum = brute_force(g).energy;
        auto const r = solve(g);
        check_result(g, r, optimum);
        CHECK(r.status == (optimum == forbidden ? solve_status::infeasible : solve_status::optimal));
        check_result(g, solve(g, no_elimination), optimum);
        check_result(g, solve(g, bare), optimum);
        auto few = bare;
        few.max_sweeps = 2;
        check_result(g, solve(g, few), optimum);
    });
}

TEST_CASE("an empty graph, single labels and lone variables are optimal at once") {
    auto r = solve(factor_graph{});
    CHECK(r.status == solve_status::optimal);
    CHECK(r.energy == 0);
    CHECK(r.lower_bound == 0);
    CHECK(r.labels.empty());
    factor_graph g;
    g.add_variable({3});
    g.add_variable({5, 4});
    r = solve(g);
    CHECK(r.status == solve_status::optimal);
    CHECK(r.energy == 7);
    CHECK(r.labels == std::vector<label>{0, 1});
}

// Grids on which fixing builds level after level: a regression for a best energy taken in the coordinates of another level.
TEST_CASE("levels of reduced-cost fixing keep the optimum that bucket elimination finds") {
    std::size_t by_fixing = 0, many_sweeps = 0;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        costs const c = seed % 3 == 0 ? costs::real : seed % 3 == 1 ? costs::whole : costs::magnitude;
        auto const g = large_grid(5, 6, c, seed % 2 ? 0.1 : 0.0, d);
        auto const whole = quantise(g);
        auto const plan = plan_elimination(whole.graph, 1e9, 1e9);
        REQUIRE(plan);
        auto const exact = bucket_elimination(whole.graph, *plan);
        double const optimum = exact.energy == forbidden ? forbidden : energy(g, exact.labels);  // up to error_bound
        for (auto const& options : {solve_options{}, no_elimination, bare}) {
            auto const r = solve(g, options);
            CHECK(r.lower_bound <= optimum);
            CHECK(r.energy >= optimum - whole.error_bound());
            if (r.status == solve_status::optimal) CHECK(r.energy <= optimum + whole.error_bound());
            many_sweeps += r.stats.sweeps > 40;
            by_fixing += r.status == solve_status::optimal && !r.stats.exact_elimination && r.stats.sweeps > 0;
        }
        CHECK(solve(g).status == (exact.energy == forbidden ? solve_status::infeasible : solve_status::optimal));
    }
    CHECK(by_fixing > 20);
    CHECK(many_sweeps > 5);
}

// Costs from 10^-3 to 10^9 with both signs: the grid is coarse beside the small ones, and the bound must still be below.
TEST_CASE("magnitudes from a thousandth to a thousand million never lift the bound above the optimum") {
    for (std::uint64_t seed = 500; seed < 560; ++seed)
        for (shape s : {shape::grid, shape::full}) {
            INFO(name(s), " seed ", seed);
            dice d(seed);
            auto const g = random_graph(s, costs::magnitude, {.variables = 7, .labels = 3, .equal_labels = true}, d);
            auto const optimum = brute_force(g).energy;
            for (auto const& options : {solve_options{}, no_elimination, bare}) check_result(g, solve(g, options), optimum);
        }
}

// K4 with three labels, all four different: impossible, but every pair of labels is allowed somewhere and every label has partners.
TEST_CASE("infeasibility that no edge shows is found by exact elimination, and never mistaken for an optimum without it") {
    factor_graph g;
    for (int v = 0; v < 4; ++v) g.add_variable({0, 1, 2});
    auto const differ = g.add_table({3, 3, {forbidden, 0, 0, 0, forbidden, 0, 0, 0, forbidden}});
    for (std::uint32_t u = 0; u < 4; ++u)
        for (std::uint32_t v = u + 1; v < 4; ++v) g.add_edge(variable_id(u), variable_id(v), differ);
    auto const r = solve(g);
    CHECK(r.status == solve_status::infeasible);
    CHECK(r.lower_bound == forbidden);
    CHECK(r.labels.empty());
    auto const without = solve(g, no_elimination);
    CHECK((without.status == solve_status::sweep_limit || without.status == solve_status::stalled ||
           without.status == solve_status::infeasible));
    CHECK(without.labels.empty());
    CHECK(without.energy == forbidden);
}

TEST_CASE("the same call gives the same labels, energy, bound and sweeps") {
    dice d(42);
    auto const g = large_grid(6, 5, costs::tied, 0.05, d);
    auto const a = solve(g), b = solve(g);
    CHECK(a.labels == b.labels);
    CHECK(a.energy == b.energy);
    CHECK(a.lower_bound == b.lower_bound);
    CHECK(a.stats.sweeps == b.stats.sweeps);
}

TEST_CASE("a wanted gap ends the search early, with a gap as wanted") {
    std::size_t early = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = large_grid(7, 8, costs::real, 0, d);
        auto options = bare;
        auto const full = solve(g, options);
        options.relative_gap = 0.5;
        auto const r = solve(g, options);
        CHECK(r.stats.sweeps <= full.stats.sweeps);
        CHECK(r.relative_gap() <= 0.5);
        CHECK((r.status == solve_status::within_gap || r.status == solve_status::optimal));
        early += r.stats.sweeps < full.stats.sweeps;
    }
    CHECK(early > 0);
}

TEST_CASE("a deadline that has passed still gives bound and status, and the observer hears of sweeps") {
    dice d(1);
    auto const g = large_grid(7, 8, costs::real, 0, d);
    control limits;
    limits.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    auto const r = solve(g, bare, limits);
    CHECK(r.status == solve_status::stopped);
    CHECK(r.lower_bound <= solve(g).energy);
    CHECK_FALSE(r.labels.empty());
    CHECK(r.energy >= r.lower_bound);
    std::size_t events = 0;
    control watched;
    watched.progress = [&](progress_event const& e) {
        ++events;
        CHECK(e.stage == "trws");
    };
    auto const seen = solve(g, bare, watched);
    CHECK(events == seen.stats.sweeps);
}

TEST_CASE("progress figures are in the unit of the costs") {
    dice d(3);
    auto const g = large_grid(6, 6, costs::real, 0, d);
    double last_energy = 0, last_bound = 0;
    control watched;
    watched.progress = [&](progress_event const& e) {
        last_energy = e.energy;
        last_bound = e.bound;
    };
    auto const r = solve(g, bare, watched);
    REQUIRE(r.stats.sweeps > 0);
    REQUIRE(r.stats.components == 1);
    CHECK(last_energy == doctest::Approx(r.energy).epsilon(1e-9));
    CHECK(last_bound <= last_energy);
}

TEST_CASE("components are solved each on its own") {
    factor_graph g;
    dice d(17);
    double optimum = 0;
    for (int piece = 0; piece < 3; ++piece) {
        dice mine(static_cast<std::uint64_t>(piece));
        auto const p = random_graph(shape::full, costs::whole, {.variables = 5, .labels = 3, .equal_labels = true}, mine);
        optimum += brute_force(p).energy;
        auto const base = static_cast<std::uint32_t>(g.variable_count());
        for (std::uint32_t v = 0; v < 5; ++v) g.add_variable({p.costs(variable_id(v)).begin(), p.costs(variable_id(v)).end()});
        for (auto const& e : p.edges())
            g.add_edge(variable_id(base + e.u.value), variable_id(base + e.v.value), g.add_table(p.table(e.table)), e.use);
    }
    auto const r = solve(g, {.reduce = {.max_table = 0, .max_work = 0}});
    CHECK(r.stats.components == 3);
    CHECK(r.energy == optimum);
    CHECK(r.lower_bound == optimum);
    CHECK(r.status == solve_status::optimal);
}

// One label of one variable, or one pair, carries a price that no good labelling pays; it must change nothing. Grid of 3 x 3, four labels.
TEST_CASE("a finite price that nobody pays neither hides the other costs nor makes a dear labelling optimal") {
    for (double price : {1e6, 1e12, 1e15, 1e18, 1e30, 1e100, 1e200}) {
        INFO("price ", price);
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
            INFO("seed ", seed);
            dice d(seed);
            auto const plain = large_grid(3, 4, costs::real, 0, d);
            double const optimum = brute_force(plain).energy;
            auto const best = brute_force(plain).labels;
            factor_graph g;
            for (std::uint32_t v = 0; v < plain.variable_count(); ++v) {
                auto const c = plain.costs(variable_id(v));
                std::vector<double> unary(c.begin(), c.end());
                if (v % 2 == 0) unary[(best[v] + 1) % 4] = price;
                g.add_variable(std::move(unary));
            }
            for (auto const& e : plain.edges()) {
                auto t = plain.table(e.table);
                if (e.u.value % 3 == 1) t.values[std::size_t{(best[e.u.value] + 2) % 4} * 4 + best[e.v.value]] = price;
                g.add_edge(e.u, e.v, std::move(t));
            }
            auto const r = solve(g);
            CHECK(r.status == solve_status::optimal);
            CHECK(r.energy == doctest::Approx(optimum).epsilon(1e-12));
            CHECK(r.lower_bound <= optimum);
            CHECK(r.lower_bound >= optimum - 1e-8 * std::abs(optimum));
            check_result(g, solve(g, bare), optimum);
        }
    }
}

// Prices of several sizes at once: each cap uncovers the next one.
TEST_CASE("unwanted prices of many magnitudes are taken away one after another") {
    factor_graph g;
    std::vector<double> const prices{1e250, 1e200, 1e150, 1e100, 1e50, 1e20};
    for (double p : prices) g.add_variable({3.25, 1.5, p});
    for (std::uint32_t v = 0; v + 1 < prices.size(); ++v)
        g.add_edge(variable_id(v), variable_id(v + 1), {3, 3, {0, 5, 0, 5, 0.125, 0, 0, 0, 0}});
    auto const r = solve(g);
    CHECK(r.energy == 6 * 1.5 + 5 * 0.125);
    CHECK(r.status == solve_status::optimal);
    CHECK(r.lower_bound > r.energy - 1e-7);
}

// Two terms of 1e17 that cancel leave 1: below what doubles hold of the terms, so nothing is lost; what the grid hides is part of the gap.
TEST_CASE("where the grid hides more than a hundred millionth of what is paid, the status is not optimal unless the gap is closed") {
    factor_graph g;
    g.add_variable({-1e17, 0});
    g.add_variable({1e17, 1e17 + 64});
    g.add_edge(variable_id(0), variable_id(1), {2, 2, {1, 2, 3, 4}});
    auto const r = solve(g);
    CHECK(r.lower_bound <= r.energy);
    if (r.status == solve_status::optimal) CHECK(r.energy - r.lower_bound <= 1e-8 * 2e17);
}

TEST_CASE("a search that no longer gets on says so, and not that more sweeps would help") {
    std::size_t stalled = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = large_grid(7, 8, costs::tied, 0.2, d);
        auto const r = solve(g, bare);
        CHECK((r.status == solve_status::sweep_limit) == (r.stats.sweeps >= bare.max_sweeps && r.lower_bound < r.energy));
        if (r.status != solve_status::stalled) continue;
        ++stalled;
        auto more = bare;
        more.max_sweeps = 2 * bare.max_sweeps;
        auto const again = solve(g, more);
        CHECK(again.status == solve_status::stalled);
        CHECK(again.lower_bound == r.lower_bound);
        more.max_sweeps = 3;
        CHECK(solve(g, more).status == solve_status::sweep_limit);
    }
    CHECK(stalled > 0);
}

// Grids with tied costs and forbidden pairs: their bound stalls, see above. What branching says must be what elimination says.
TEST_CASE("branch and bound closes gaps that sweeps leave, at the optimum that bucket elimination finds") {
    std::size_t closed = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = large_grid(5, 6, seed % 3 == 0 ? costs::tied : seed % 3 == 1 ? costs::whole : costs::real, 0.3, d);
        auto const whole = quantise(g);
        auto const plan = plan_elimination(whole.graph, 1e9, 1e9);
        REQUIRE(plan);
        auto const exact = bucket_elimination(whole.graph, *plan);
        auto const r = solve(g, branching), without = solve(g, bare);
        CHECK(r.lower_bound >= without.lower_bound);
        if (exact.energy == forbidden) {
            CHECK(r.energy == forbidden);
            continue;
        }
        double const optimum = energy(g, exact.labels);
        CHECK(r.lower_bound <= optimum);
        CHECK(r.energy >= optimum - whole.error_bound());
        if (!without.labels.empty()) CHECK(r.energy <= without.energy + whole.error_bound());
        if (r.status != solve_status::optimal) continue;
        CHECK(r.energy <= optimum + whole.error_bound());
        closed += without.status != solve_status::optimal;
    }
    CHECK(closed > 0);
}

TEST_CASE("block search never makes a labelling worse and gets out of optima of pairs") {
    std::size_t better = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = quantise(large_grid(5, 5, seed % 2 ? costs::tied : costs::real, 0.1, d)).graph;
        std::vector<label> labels(g.variable_count(), 0);
        coordinate_descent(g).run(labels);
        double const before = energy(g, labels);
        if (before == forbidden) continue;
        auto found = labels;
        bool const changed = block_search(g, 4096).run(found, 1e7);
        CHECK((energy(g, found) < before) == changed);
        CHECK((found == labels) == !changed);
        better += changed;
        auto again = labels;
        block_search(g, 4096).run(again, 1e7);
        CHECK(again == found);
    }
    CHECK(better > 5);
}
