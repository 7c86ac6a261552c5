// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/trws.hpp>
#include <cantle/mrf/trws_search.hpp>

#include <boost/graph/adjacency_list.hpp>

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

namespace {
/// Costs of the same labels, edges and forbidden pairs as g.
factor_graph with_other_costs(factor_graph const& g, dice& d) {
    factor_graph other;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        std::vector<double> c(g.label_count(variable_id(v)));
        for (double& x : c) x = d.below(100);
        other.add_variable(c);
    }
    for (auto const& e : g.edges()) {
        cost_table t = g.table(e.table);
        for (double& x : t.values)
            if (x != forbidden) x = d.below(100);
        other.add_edge(e.u, e.v, other.add_table(std::move(t)), e.use);
    }
    return other;
}
}  // namespace

TEST_CASE("a run that starts from the messages of a finished one has that run's bound at once") {
    std::size_t runs = 0;
    for_random_graphs(2024, 2, {.variables = 8, .labels = 4}, [&](factor_graph const& raw, std::string const& what) {
        INFO(what);
        factor_graph g;
        if (!consistent(raw, g)) return;
        trws finished(g);
        bool in_range = true;
        for (int i = 0; i < 7 && in_range; ++i) in_range = finished.forward() && finished.backward();
        if (!in_range) return;
        trws all_at_once(g), edge_by_edge(g);
        all_at_once.start_from(finished);
        for (std::uint32_t e = 0; e < g.edge_count(); ++e) {
            std::vector<double> later, earlier;  // shifted by a constant each, which changes nothing
            for (double x : finished.into_later(edge_id(e))) later.push_back(x + 7);
            for (double x : finished.into_earlier(edge_id(e))) earlier.push_back(x - 5);
            edge_by_edge.set_messages(edge_id(e), later, earlier);
        }
        for (trws* warm : {&all_at_once, &edge_by_edge}) {
            REQUIRE(warm->backward());
            CHECK(warm->bound() == finished.last_bound());
            CHECK(warm->bound() >= finished.bound());
            CHECK(std::ranges::equal(warm->labels(), finished.labels()));
            for (std::uint32_t e = 0; e < g.edge_count(); ++e) {
                CHECK(std::ranges::equal(warm->into_later(edge_id(e)), finished.into_later(edge_id(e))));
                CHECK(std::ranges::equal(warm->into_earlier(edge_id(e)), finished.into_earlier(edge_id(e))));
            }
        }
        ++runs;
    });
    CHECK(runs > 80);
}

TEST_CASE("messages of other costs, or of nothing at all, never lift the bound above the optimum") {
    for_random_graphs(4048, 2, {.variables = 6, .labels = 3}, [&](factor_graph const& raw, std::string const& what) {
        INFO(what);
        factor_graph g;
        if (!consistent(raw, g)) return;
        dice d(11);
        auto const other = with_other_costs(g, d);
        double const optimum = brute_force(g).energy;
        trws finished(other), warm(g), random(g);
        for (int i = 0; i < 5; ++i) {
            REQUIRE(finished.forward());
            REQUIRE(finished.backward());
        }
        warm.start_from(finished);
        for (std::uint32_t e = 0; e < g.edge_count(); ++e) {
            std::vector<double> later(random.into_later(e).size()), earlier(random.into_earlier(e).size());
            for (double& x : later) x = static_cast<double>(d.below(1U << 30)) - 5e8;
            for (double& x : earlier) x = static_cast<double>(d.below(1U << 30)) - 5e8;
            random.set_messages(e, later, earlier);
        }
        for (trws* t : {&warm, &random})
            for (int i = 0; i < 5; ++i) {
                REQUIRE(t->backward());
                CHECK(t->bound() <= optimum);
                REQUIRE(t->forward());
                CHECK(t->bound() <= optimum);
            }
    });
}

TEST_CASE("messages that do not fit are refused") {
    factor_graph g, other;
    for (auto* f : {&g, &other}) {
        f->add_variable({0, 1});
        f->add_variable({0, 1, 2});
    }
    g.add_edge(variable_id(1), variable_id(0), {3, 2, {0, 1, 2, 3, 4, 5}});
    trws t(g);
    std::vector<double> const three{1, 2, 3}, two{4, 5};
    CHECK_NOTHROW(t.set_messages(0, three, two));
    CHECK(t.into_later(0)[2] == 2);
    CHECK_THROWS_AS(t.set_messages(0, two, three), error);
    CHECK_THROWS_AS(t.set_messages(0, three, std::vector<double>{0.5, 0}), error);
    CHECK_THROWS_AS(t.set_messages(0, three, std::vector<double>{forbidden, 0}), error);
    CHECK_THROWS_AS(t.set_messages(0, three, std::vector<double>{std::nan(""), 0}), error);
    CHECK_THROWS_AS(t.start_from(trws(other)), error);
}

namespace {
struct variable_of {
    std::vector<double> costs;
};
struct edge_of {
    any_potential potential = equality_potential(1);
};
using boost_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, variable_of, edge_of>;

/// A ring of n variables with a chord, each edge of another kind, in both directions; all with k labels.
boost_graph mixed_graph(std::size_t n, std::uint32_t k, costs kind, dice& d) {
    boost_graph g(n);
    auto const numbers = [&] {
        std::vector<double> x(k);
        for (double& c : x) c = draw(d, kind);
        return x;
    };
    auto const table = [&] {
        cost_table t{k, k, std::vector<double>(std::size_t{k} * k)};
        for (double& c : t.values) c = draw(d, kind);
        return t;
    };
    for (std::size_t v = 0; v < n; ++v) {
        g[v].costs = numbers();
        any_potential p = equality_potential(k);
        if (v % 4 == 0) p = dense_potential(table());
        if (v % 4 == 1) p = transposed(any_potential(dense_potential(table(), table_use::transposed)));
        if (v % 4 == 2) p = sum_potential(numbers(), numbers());
        if (v % 3) add_edge(v, (v + 1) % n, {p}, g);
        else add_edge((v + 1) % n, v, {p}, g);
    }
    add_edge(0, n / 2, {dense_potential(table())}, g);
    return g;
}
}  // namespace

TEST_CASE("potentials of all kinds on a Boost graph give the passes that their tables give") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const g = mixed_graph(4 + d.below(6), 1 + d.below(4), costs::whole, d);
        pairwise_problem const problem(g, get(&variable_of::costs, g), get(&edge_of::potential, g));
        auto const tables = as_factor_graph(problem);
        basic_trws<any_potential> mixed(problem);
        trws dense(tables);
        for (int i = 0; i < 6; ++i) {
            REQUIRE(mixed.forward());
            REQUIRE(dense.forward());
            CHECK(mixed.bound() == dense.bound());
            CHECK(std::ranges::equal(mixed.labels(), dense.labels()));
            REQUIRE(mixed.backward());
            REQUIRE(dense.backward());
            CHECK(mixed.bound() == dense.bound());
            CHECK(std::ranges::equal(mixed.labels(), dense.labels()));
        }
        std::vector<label> x(problem.variable_count(), 0), y = x;
        double const reached = descend(g, get(&variable_of::costs, g), get(&edge_of::potential, g), x);
        CHECK(reached == energy(tables, x));
        coordinate_descent(tables).run(y);
        CHECK(x == y);
    }
}

TEST_CASE("the search over a Boost graph brackets the optimum, and names the edge whose entry is no cost") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto g = mixed_graph(4 + d.below(4), 1 + d.below(3), all_costs[seed % 4], d);
        auto const unary = get(&variable_of::costs, g);
        auto const potential = get(&edge_of::potential, g);
        auto const best = brute_force(g, unary, potential);
        auto const found = trws_search(g, unary, potential, {.max_sweeps = 100});
        CHECK(found.lower_bound <= best.energy);
        CHECK(best.energy <= found.energy);
        CHECK(found.energy == energy(g, unary, potential, found.labels));
        auto const again = trws_search(g, unary, potential, get(boost::vertex_index, g), {.max_sweeps = 100});
        CHECK(again.labels == found.labels);
        CHECK(again.lower_bound == found.lower_bound);
        auto const k = static_cast<std::uint32_t>(g[0].costs.size());
        cost_table wrong{k, k, std::vector<double>(std::size_t{k} * k, 1.0)};
        wrong.values.back() = seed % 2 ? std::nan("") : -forbidden;
        add_edge(0, 1, {dense_potential(std::move(wrong))}, g);
        std::string said;
        try {
            trws_search(g, get(&variable_of::costs, g), get(&edge_of::potential, g));
        } catch (error const& e) {
            said = e.what();
        }
        CHECK(said.find("labels " + std::to_string(k - 1) + " and " + std::to_string(k - 1)) != std::string::npos);
    }
}

// 0 = 1 = 2 by equalities, and 0 != 2: no labelling. Without the last edge: the cheapest common label.
TEST_CASE("equalities bind, and what cannot be is told apart from what was not found") {
    boost_graph g(3);
    for (std::size_t v = 0; v < 3; ++v) g[v].costs = {3, 1.0 * static_cast<double>(v), 2};
    add_edge(0, 1, {equality_potential(3)}, g);
    add_edge(2, 1, {equality_potential(3)}, g);
    auto const search = [&] { return trws_search(g, get(&variable_of::costs, g), get(&edge_of::potential, g), {.max_sweeps = 40}); };
    auto const equal = search();
    CHECK(equal.labels == std::vector<label>{1, 1, 1});
    CHECK(equal.lower_bound == 3);
    CHECK(equal.status == solve_status::optimal);
    double const inf = forbidden;
    add_edge(0, 2, {dense_potential(cost_table{3, 3, {inf, 0, 0, 0, inf, 0, 0, 0, inf}})}, g);
    auto const clash = search();
    CHECK(clash.labels.empty());
    CHECK(clash.energy == forbidden);
    CHECK(clash.status != solve_status::optimal);
    add_edge(0, 1, {sum_potential({inf, inf, inf}, {0, 0, 0})}, g);  // this one arc consistency sees
    CHECK(search().status == solve_status::infeasible);
    CHECK(search().lower_bound == forbidden);
}

TEST_CASE("graphs that state no problem are refused") {
    boost_graph g(2);
    auto const read = [&] { return pairwise_problem(g, get(&variable_of::costs, g), get(&edge_of::potential, g)); };
    CHECK_THROWS_AS(read(), error);  // no labels
    g[0].costs = {1, 2};
    g[1].costs = {1, std::nan("")};
    CHECK_THROWS_AS(read(), error);
    g[1].costs = {1, 2, 3};
    CHECK_NOTHROW(read());
    auto const e = add_edge(0, 1, {sum_potential({1, 2, 3}, {1, 2})}, g).first;
    CHECK_THROWS_AS(read(), error);  // rows are labels of the source
    g[e].potential = sum_potential({1, 2}, {1, 2, 3});
    CHECK_NOTHROW(read());
    CHECK_THROWS_AS(pairwise_problem(g, get(&variable_of::costs, g), get(&edge_of::potential, g), std::vector<std::size_t>{1, 1}), error);
    CHECK_THROWS_AS(pairwise_problem(g, get(&variable_of::costs, g), get(&edge_of::potential, g), std::vector<std::size_t>{0, 2}), error);
    add_edge(1, 1, {equality_potential(3)}, g);
    CHECK_THROWS_AS(read(), error);
}

TEST_CASE("a factor graph read through its own maps is the same problem") {
    for_random_graphs(606, 1, {.variables = 6, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        auto const through = trws_search(g, get(vertex_costs, g), get(edge_potential, g), {.max_sweeps = 30});
        auto const direct = trws_search(g, trws_params{.max_sweeps = 30});
        CHECK(through.labels == direct.labels);
        CHECK(through.lower_bound == direct.lower_bound);
        CHECK(brute_force(g, get(vertex_costs, g), get(edge_potential, g)).energy == brute_force(g).energy);
    });
}
