// SPDX-License-Identifier: BSL-1.0
// Budgets over factor graphs, against every labelling of small graphs.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/lagrangian.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {

struct exact {
    double energy = forbidden;             ///< within the budgets
    std::vector<double> least;             ///< [budget] of all labellings without forbidden pairs
    double free = forbidden;               ///< without budgets
};

/// Every labelling. Precondition: few.
exact every_labelling(factor_graph const& g, std::vector<linear_budget> const& budgets) {
    exact out;
    out.least.assign(budgets.size(), forbidden);
    std::vector<label> x(g.variable_count(), 0);
    while (true) {
        if (double const e = energy(g, x); e != forbidden) {
            bool keeps = true;
            out.free = std::min(out.free, e);
            for (std::size_t k = 0; k < budgets.size(); ++k) {
                double const use = budget_use(g, budgets[k], x);
                out.least[k] = std::min(out.least[k], use);
                keeps = keeps && use <= budgets[k].limit;
            }
            if (keeps) out.energy = std::min(out.energy, e);
        }
        std::size_t v = x.size();
        while (v > 0 && ++x[v - 1] == g.label_count(variable_id(static_cast<std::uint32_t>(v - 1)))) x[--v] = 0;
        if (v == 0) return out;
    }
}

/// Weights on about two thirds of the variables and, sometimes, a third of the edges. The limit is somewhere around what is reachable.
linear_budget random_budget(factor_graph const& g, std::string name, costs c, dice& d) {
    linear_budget b;
    b.name = std::move(name);
    b.of_variable.resize(g.variable_count());
    double low = 0, high = 0;
    auto const count = [&](std::vector<double> const& w) {
        low += *std::min_element(w.begin(), w.end());
        high += *std::max_element(w.begin(), w.end());
    };
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        if (d.chance(0.35)) continue;
        std::vector<double> w(g.label_count(variable_id(v)));
        for (double& x : w) x = draw(d, c);
        count(w);
        b.of_variable[v] = std::make_shared<std::vector<double> const>(std::move(w));
    }
    if (d.chance(0.5)) {
        b.of_edge.resize(g.edge_count());
        for (std::uint32_t i = 0; i < g.edge_count(); ++i) {
            if (d.chance(0.65)) continue;
            auto const& e = g.edge(edge_id(i));
            cost_table w{g.label_count(e.u), g.label_count(e.v), {}};
            for (std::size_t j = 0; j < std::size_t{w.rows} * w.cols; ++j) w.values.push_back(draw(d, c));
            count(w.values);
            b.of_edge[i] = std::make_shared<cost_table const>(std::move(w));
        }
    }
    b.limit = low + (high - low) * (d.unit() * 0.6 + 0.1);
    if (c == costs::tied || c == costs::whole) b.limit = std::floor(b.limit);
    return b;
}

void check_result(factor_graph const& g, std::vector<linear_budget> const& budgets, budget_result const& r, exact const& want) {
    CHECK(r.lower_bound <= want.energy);
    CHECK(r.lower_bound <= r.energy);
    CHECK(r.energy >= want.energy);
    for (std::size_t k = 0; k < budgets.size(); ++k) CHECK(r.least[k] <= want.least[k]);
    if (r.labels.empty()) {
        CHECK(r.energy == forbidden);
    } else {
        CHECK(energy(g, r.labels) == r.energy);
        for (std::size_t k = 0; k < budgets.size(); ++k) {
            CHECK(budget_use(g, budgets[k], r.labels) == r.use[k]);
            CHECK(r.use[k] <= budgets[k].limit);
        }
    }
    if (r.status == solve_status::infeasible) CHECK(want.energy == forbidden);
    if (r.unreachable) CHECK(want.least[*r.unreachable] > budgets[*r.unreachable].limit);
    for (double m : r.multipliers) CHECK(m >= 0);
}

/// A chain of `n` variables with skips, as layers with residuals are: 0-1-2-3-.. and 0-2, 2-4, ..
factor_graph residual_chain(std::uint32_t n, std::uint32_t labels, costs c, dice& d) {
    factor_graph g;
    for (std::uint32_t v = 0; v < n; ++v) {
        std::vector<double> unary(labels);
        for (double& x : unary) x = draw(d, c);
        g.add_variable(std::move(unary));
    }
    auto const join = [&](std::uint32_t u, std::uint32_t v) {
        cost_table t{labels, labels, std::vector<double>(std::size_t{labels} * labels)};
        for (double& x : t.values) x = draw(d, c);
        g.add_edge(variable_id(u), variable_id(v), std::move(t));
    };
    for (std::uint32_t v = 0; v + 1 < n; ++v) join(v, v + 1);
    for (std::uint32_t v = 0; v + 2 < n; v += 2) join(v, v + 2);
    return g;
}

linear_budget unary_budget(std::string name, double limit, std::vector<std::vector<double>> const& weights) {
    linear_budget b;
    b.name = std::move(name);
    b.limit = limit;
    for (auto const& w : weights) b.of_variable.push_back(w.empty() ? nullptr : std::make_shared<std::vector<double> const>(w));
    return b;
}

}  // namespace

TEST_CASE("bound, optimum within the budgets and energy are in this order, and the default closes the gap") {
    std::size_t binding = 0, refuted = 0, cases = 0, branched = 0;
    auto const check = [&](factor_graph const& g, std::string const& what) {
        INFO(what);
        dice d(cases++ + 77);
        std::vector<linear_budget> budgets;
        costs const weights = all_costs[d.below(4)];
        for (std::uint32_t k = 0, n = 1 + d.below(3); k < n; ++k) budgets.push_back(random_budget(g, "b" + std::to_string(k), weights, d));
        auto const want = every_labelling(g, budgets);
        auto const r = solve_with_budgets(g, budgets);
        check_result(g, budgets, r, want);
        CHECK(r.status == (want.energy == forbidden ? solve_status::infeasible : solve_status::optimal));
        if (r.status == solve_status::optimal) CHECK(r.energy <= want.energy + 1e-8 * (std::abs(want.energy) + 1));
        binding += want.energy != forbidden && want.energy > want.free;
        refuted += want.energy == forbidden && want.free != forbidden;
        branched += r.stats.halves > 0;
    };
    for_random_graphs(9000, 24, {.variables = 6, .labels = 3}, check);
    for_random_graphs(19000, 4, {.variables = 9, .labels = 2, .equal_labels = true}, check);
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        dice d(seed);
        check(residual_chain(7, 3, all_costs[seed % 4], d), "residual chain, seed " + std::to_string(seed));
    }
    MESSAGE(cases, " cases: ", binding, " with a budget that binds, ", refuted, " without a labelling inside, ", branched, " branched");
    CHECK(binding > 800);
    CHECK(refuted > 100);
    CHECK(branched > 400);
}

// Limits so low that hardly anything is proven, and inner solvers that stop early: what is said must still be true.
TEST_CASE("cut short anywhere, the bound stays below the optimum and the labelling within the budgets") {
    std::size_t cases = 0, open = 0;
    for_random_graphs(40000, 6, {.variables = 6, .labels = 3}, [&](factor_graph const& g, std::string const& what) {
        INFO(what);
        dice d(cases++ + 5);
        std::vector<linear_budget> budgets;
        for (std::uint32_t k = 0, n = 1 + d.below(3); k < n; ++k)
            budgets.push_back(random_budget(g, "b" + std::to_string(k), all_costs[d.below(4)], d));
        auto const want = every_labelling(g, budgets);
        solve_options const bare{.max_sweeps = 1 + d.below(3),
                                 .max_elimination_entries = 0,
                                 .max_elimination_work = 0,
                                 .max_block_work = 0,
                                 .max_branch_entries = 0,
                                 .reduce = {.max_table = 0, .max_work = 0}};
        for (auto const& options : {budget_options{.max_evaluations = 1 + d.below(12)},
                                    budget_options{.inner = bare, .max_evaluations = 30},
                                    budget_options{.inner = {.relative_gap = 0.2}}}) {
            auto const r = solve_with_budgets(g, budgets, options);
            check_result(g, budgets, r, want);
            if (r.status == solve_status::optimal) CHECK(r.energy <= want.energy + 1e-8 * (std::abs(want.energy) + 1));
            if (r.status == solve_status::within_gap) CHECK(r.relative_gap() <= 0.2);
            open += r.status != solve_status::optimal && r.status != solve_status::infeasible;
        }
    });
    CHECK(open > 50);
}

// Parts that are closed early still hold labellings below the one found.
TEST_CASE("with a gap to stop at the bound is that of all parts, also of those that were not searched to the end") {
    std::size_t early = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = residual_chain(7, 3, costs::real, d);
        std::vector const budgets{random_budget(g, "a", costs::real, d), random_budget(g, "b", costs::tied, d)};
        auto const want = every_labelling(g, budgets);
        for (double gap : {0.02, 0.1, 0.5}) {
            auto const r = solve_with_budgets(g, budgets, {.inner = {.relative_gap = gap}});
            check_result(g, budgets, r, want);
            early += r.status == solve_status::within_gap && r.energy > want.energy + 1e-6;
        }
    }
    CHECK(early > 10);
}

//  cost 0 4    weight 3 0   two variables, no edge: each unit of the limit above 0 saves what a variable can
//  cost 0 9    weight 3 0
TEST_CASE("a tighter limit never costs less, multipliers are what a larger one saves, and a limit that binds nothing costs nothing") {
    factor_graph g;
    g.add_variable({0, 4});
    g.add_variable({0, 9});
    double last = forbidden;
    double const expected[] = {13, 13, 13, 4, 4, 4, 0, 0};
    for (int limit = 0; limit <= 7; ++limit) {
        std::vector const budgets{unary_budget("w", limit, {{3, 0}, {3, 0}})};
        auto const r = solve_with_budgets(g, budgets);
        CHECK(r.status == solve_status::optimal);
        CHECK(r.energy == expected[limit]);
        CHECK(r.energy <= last);
        last = r.energy;
        if (limit == 4) CHECK(r.multipliers[0] == doctest::Approx(4.0 / 3));
        if (limit >= 6) CHECK(r.multipliers[0] == 0);
    }
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        dice d(seed);
        auto const chain = residual_chain(9, 4, costs::real, d);
        auto b = random_budget(chain, "w", costs::real, d);
        last = -forbidden;
        for (double limit = b.limit + 200; limit > b.limit - 200; limit -= 25) {
            b.limit = limit;
            auto const r = solve_with_budgets(chain, std::vector{b});
            if (r.status == solve_status::infeasible) break;
            CHECK(r.status == solve_status::optimal);
            CHECK(r.energy >= last - 1e-9);
            last = r.energy;
        }
    }
}

TEST_CASE("a budget that cannot be kept is named with the least that can be reached, and one by one is not together") {
    factor_graph g;
    g.add_variable({0, 1, 2});
    g.add_variable({0, 1, 2});
    // allowed pairs: (0,0) (1,1) (2,2)
    g.add_edge(variable_id(0), variable_id(1),
               cost_table{3, 3, {0, forbidden, forbidden, forbidden, 0, forbidden, forbidden, forbidden, 0}});
    auto r = solve_with_budgets(g, std::vector{unary_budget("wide", 100, {{1, 2, 3}}), unary_budget("deep", 6, {{9, 8, 7}, {9, 9, 0}})});
    CHECK(r.status == solve_status::infeasible);
    REQUIRE(r.unreachable);
    CHECK(*r.unreachable == 1);
    CHECK(r.least[1] == doctest::Approx(7));
    CHECK(r.least[1] <= 7);

    r = solve_with_budgets(g, std::vector{unary_budget("up", 1, {{0, 1, 2}}), unary_budget("down", 0, {{}, {2, 1, 0}})});
    CHECK(r.status == solve_status::infeasible);  // up wants 0 or 1, down wants 2
    CHECK(!r.unreachable);

    factor_graph none;  // no labelling at all: no budget is to blame
    none.add_variable({0, 1});
    none.add_variable({0, 1});
    none.add_edge(variable_id(0), variable_id(1), cost_table{2, 2, {forbidden, forbidden, forbidden, forbidden}});
    r = solve_with_budgets(none, std::vector{unary_budget("w", 1, {{0, 1}})});
    CHECK(r.status == solve_status::infeasible);
    CHECK(!r.unreachable);
}

TEST_CASE("no variables, no budgets and budgets without weights") {
    CHECK(solve_with_budgets(factor_graph{}, std::vector{unary_budget("w", 0, {})}).status == solve_status::optimal);
    CHECK(solve_with_budgets(factor_graph{}, std::vector{unary_budget("w", -1, {})}).status == solve_status::infeasible);
    factor_graph g;
    g.add_variable({3, 2});
    CHECK(solve_with_budgets(g, {}).energy == 2);
    CHECK(solve_with_budgets(g, std::vector{unary_budget("w", 0, {})}).energy == 2);
    CHECK(solve_with_budgets(g, std::vector{unary_budget("w", -1, {})}).unreachable == 0U);
}

TEST_CASE("a budget that does not fit the graph is an error that names it") {
    factor_graph g;
    g.add_variable({3, 2});
    auto const refused = [&](linear_budget b) {
        try {
            solve_with_budgets(g, std::vector{std::move(b)});
        } catch (error const& e) {
            CHECK(e.code() == error_code::bad_field);
            CHECK(e.subject() == "budget 'w'");
            return true;
        }
        return false;
    };
    double const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(refused(unary_budget("w", nan, {})));
    CHECK(refused(unary_budget("w", 1, {{1, nan}})));
    CHECK(refused(unary_budget("w", 1, {{1, forbidden}})));
    CHECK(refused(unary_budget("w", 1, {{1, 2, 3}})));
    CHECK(refused(unary_budget("w", 1, {{1, 2}, {1, 2}})));
    CHECK(!refused(unary_budget("w", 1, {{1, 2}})));
}

TEST_CASE("the same problem gives the same result, evaluation by evaluation") {
    dice d(3);
    auto const g = residual_chain(24, 5, costs::real, d);
    std::vector<linear_budget> budgets;
    for (auto const* name : {"a", "b"}) budgets.push_back(random_budget(g, name, costs::real, d));
    auto const first = solve_with_budgets(g, budgets), second = solve_with_budgets(g, budgets);
    CHECK(first.labels == second.labels);
    CHECK(first.lower_bound == second.lower_bound);
    CHECK(first.multipliers == second.multipliers);
    CHECK(first.stats.evaluations == second.stats.evaluations);
}
