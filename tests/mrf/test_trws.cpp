// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/trws.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
/// Least energy of a labelling with label l at v, for all labels one after another.
std::vector<double> min_marginals(factor_graph const& g) {
    std::vector<std::size_t> at(g.variable_count() + 1, 0);
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) at[v + 1] = at[v] + g.label_count(variable_id(v));
    std::vector<double> m(at.back(), forbidden);
    std::vector<label> x(g.variable_count(), 0);
    while (true) {
        double const e = energy(g, x);
        for (std::uint32_t v = 0; v < x.size(); ++v) m[at[v] + x[v]] = std::min(m[at[v] + x[v]], e);
        std::size_t v = x.size();
        while (v > 0 && ++x[v - 1] == g.label_count(variable_id(static_cast<std::uint32_t>(v - 1)))) x[--v] = 0;
        if (v == 0) return m;
    }
}
/// Whole costs and arc consistency, which trws asks for; nothing is eliminated, so that it has the whole shape to work on. Parallel edges
/// merge.
bool consistent(factor_graph const& g, factor_graph& out) {
    factor_graph const whole = quantise(g).graph;
    out = factor_graph{};
    std::vector<std::vector<char>> in(g.variable_count());
    for (std::uint32_t v = 0; v < in.size(); ++v) in[v].assign(g.label_count(variable_id(v)), 1);
    for (bool again = true; again;) {
        again = false;
        for (auto const& e : whole.edges())
            for (int side = 0; side < 2; ++side) {
                auto const v = side ? e.v : e.u, w = side ? e.u : e.v;
                for (label j = 0; j < in[v.value].size(); ++j) {
                    bool supported = false;
                    for (label k = 0; k < in[w.value].size(); ++k)
                        supported |= in[w.value][k] && whole.pair_cost(e, side ? k : j, side ? j : k) != forbidden;
                    if (in[v.value][j] && !supported) {
                        in[v.value][j] = 0;
                        again = true;
                    }
                }
            }
    }
    for (std::uint32_t v = 0; v < in.size(); ++v) {
        std::vector<double> costs;
        for (label j = 0; j < in[v].size(); ++j)
            if (in[v][j]) costs.push_back(whole.costs(variable_id(v))[j]);
        if (costs.empty()) return false;
        out.add_variable(std::move(costs));
    }
    for (auto const& e : whole.edges()) {
        cost_table t{out.label_count(e.u), out.label_count(e.v), {}};
        for (label j = 0; j < in[e.u.value].size(); ++j)
            for (label k = 0; k < in[e.v.value].size(); ++k)
                if (in[e.u.value][j] && in[e.v.value][k]) t.values.push_back(whole.pair_cost(e, j, k));
        out.add_edge(e.u, e.v, std::move(t));
    }
    return true;
}
}  // namespace

TEST_CASE("after every pass the bound is below the optimum, and flagged labels are in no better labelling") {
    std::size_t flagged = 0, tight = 0, graphs = 0;
    for_random_graphs(31337, 3, {.variables = 7, .labels = 3}, [&](factor_graph const& raw, std::string const& what) {
        INFO(what);
        factor_graph g;
        if (!consistent(raw, g)) return;
        auto const m = min_marginals(g);
        double const optimum = m.empty() ? 0 : *std::min_element(m.begin(), m.end());
        if (optimum == forbidden) return;
        ++graphs;
        for (double excess : {0.0, 1.0, 1e6, 1e13}) {  // the best known energy need not be the optimum
            double const best = optimum + excess;
            trws t(g);
            std::vector<char> out(t.label_total(), 0);
            for (int sweep = 0; sweep < 12; ++sweep) {
                REQUIRE(t.forward());
                CHECK(t.bound() <= optimum);
                REQUIRE(t.backward_and_fix(best, out));
                CHECK(t.bound() <= optimum);
                for (std::size_t i = 0; i < out.size(); ++i)
                    if (out[i]) CHECK(m[i] >= best);
            }
            flagged += static_cast<std::size_t>(std::count(out.begin(), out.end(), char{1}));
            tight += t.bound() == optimum;
        }
    });
    CHECK(flagged > 1000);
    CHECK(tight > 2 * graphs);  // of four each: most bounds are tight to the last unit on graphs as small as these
}

TEST_CASE("the reparametrisation that the messages define is exact for every labelling") {
    for_random_graphs(99, 1, {.variables = 6, .labels = 3}, [&](factor_graph const& raw, std::string const& what) {
        INFO(what);
        factor_graph g;
        if (!consistent(raw, g)) return;
        trws t(g);
        for (int i = 0; i < 3; ++i) {
            REQUIRE(t.forward());
            REQUIRE(t.backward());
        }
        dice d(1);
        for (int i = 0; i < 20; ++i) {
            std::vector<label> x(g.variable_count());
            double sum = t.unary_constant();
            for (std::uint32_t v = 0; v < x.size(); ++v) x[v] = d.below(g.label_count(variable_id(v)));
            for (std::uint32_t v = 0; v < x.size(); ++v) {
                std::vector<double> hat(g.label_count(variable_id(v)));
                t.reparametrised(variable_id(v), hat);
                sum += hat[x[v]];
            }
            for (std::uint32_t e = 0; e < g.edge_count(); ++e) {
                auto const& edge = g.edge(edge_id(e));
                auto const lo = std::min(edge.u, edge.v), hi = std::max(edge.u, edge.v);
                sum += g.pair_cost(edge, x[edge.u.value], x[edge.v.value]) - t.into_later(edge_id(e))[x[hi.value]] -
                       t.into_earlier(edge_id(e))[x[lo.value]];
            }
            CHECK(sum == energy(g, x));
        }
    });
}

TEST_CASE("on trees the bound is the optimum after one sweep, and the decoded labelling has it") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = quantise(random_graph(seed % 2 ? shape::tree : shape::star, costs::real, {.variables = 8, .labels = 4}, d)).graph;
        trws t(g);
        for (int i = 0; i < 8; ++i) {
            REQUIRE(t.forward());
            REQUIRE(t.backward());
        }
        auto const best = brute_force(g).energy;
        CHECK(t.bound() == best);
        CHECK(energy(g, t.labels()) == best);
    }
}

TEST_CASE("an empty graph and a single variable have the bound of their least cost") {
    factor_graph g;
    trws empty(g);
    CHECK(empty.forward());
    CHECK(empty.backward());
    CHECK(empty.bound() == 0);
    g.add_variable({7, -3, 4});
    trws one(g);
    CHECK(one.forward());
    CHECK(one.bound() == -3);
    CHECK(one.labels()[0] == 1);
}

// Costs near 2^50 on K5: either a pass reports that it leaves the exact range, or its bound is right.
TEST_CASE("a bound outside the exact range is refused, never wrong") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        factor_graph g;
        for (int v = 0; v < 5; ++v) {
            std::vector<double> c(3);
            for (double& x : c) x = std::floor(std::ldexp(d.unit(), 50));
            g.add_variable(c);
        }
        for (std::uint32_t u = 0; u < 5; ++u)
            for (std::uint32_t v = u + 1; v < 5; ++v) {
                cost_table t{3, 3, std::vector<double>(9)};
                for (double& x : t.values) x = std::floor(std::ldexp(d.unit(), 50));
                g.add_edge(variable_id(u), variable_id(v), std::move(t));
            }
        trws t(g);
        for (int i = 0; i < 50; ++i)
            if (!t.forward() || !t.backward()) break;
        CHECK(t.bound() <= brute_force(g).energy);
    }
}
