// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// Minimal conflicts: infeasible together, feasible without any one edge.
#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/conflict.hpp>

#include "random_graphs.hpp"

#include <doctest/doctest.h>

using namespace cantle::mrf;

namespace {
cost_table table(std::uint32_t rows, std::uint32_t cols, std::vector<double> values) { return {rows, cols, std::move(values)}; }
constexpr double no = forbidden;

/// The graph with these edges only.
factor_graph part(factor_graph const& g, std::vector<edge_id> const& edges) {
    factor_graph p;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) p.add_variable({g.costs(variable_id(v)).begin(), g.costs(variable_id(v)).end()});
    for (auto e : edges) p.add_edge(g.edge(e).u, g.edge(e).v, p.add_table(g.table(g.edge(e).table)), g.edge(e).use);
    return p;
}
}  // namespace

TEST_CASE("an odd cycle of two colours conflicts as a whole, and what hangs on it does not belong to it") {
    //   a - b - d      edges: differ; d-e is free of bans
    //    \ /     \ .
    //     c       e
    factor_graph g;
    for (int i = 0; i < 5; ++i) g.add_variable({0.0, 1.0});
    auto const differ = g.add_table(table(2, 2, {no, 1, 2, no}));
    auto const add = [&](std::uint32_t u, std::uint32_t v) { return g.add_edge(variable_id(u), variable_id(v), differ); };
    add(1, 3);
    auto const ab = add(0, 1), bc = add(1, 2);
    g.add_edge(variable_id(3), variable_id(4), table(2, 2, {0, 1, 1, 0}));
    auto const ca = add(2, 0);
    CHECK(minimal_conflict(g) == std::vector<edge_id>{ab, bc, ca});
}

TEST_CASE("a graph with a labelling has no conflict") {
    factor_graph g;
    auto const a = g.add_variable({0.0, 1.0}), b = g.add_variable({0.0, 1.0});
    g.add_edge(a, b, table(2, 2, {no, 1, no, no}));
    CHECK(minimal_conflict(g).empty());
}

TEST_CASE("one edge that forbids everything is a conflict of its own") {
    factor_graph g;
    auto const a = g.add_variable({0.0}), b = g.add_variable({0.0, 1.0}), c = g.add_variable({0.0, 1.0});
    g.add_edge(b, c, table(2, 2, {no, 1, 2, no}));
    auto const wall = g.add_edge(a, b, table(1, 2, {no, no}));
    CHECK(minimal_conflict(g) == std::vector<edge_id>{wall});
}

TEST_CASE("random infeasible graphs: the conflict is infeasible, and feasible without any one of its edges") {
    std::size_t conflicts = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        testing::dice d(seed);
        factor_graph g;
        std::uint32_t const n = 3 + d.below(4);
        for (std::uint32_t v = 0; v < n; ++v) g.add_variable(std::vector<double>(1 + d.below(3), d.unit()));
        for (std::uint32_t v = 1; v < n; ++v)
            for (std::uint32_t u = 0; u < v; ++u) {
                if (!d.chance(0.7)) continue;
                auto t = table(g.label_count(variable_id(u)), g.label_count(variable_id(v)), {});
                for (std::uint32_t i = 0; i < t.rows * t.cols; ++i) t.values.push_back(d.chance(0.55) ? no : d.unit());
                g.add_edge(variable_id(u), variable_id(v), std::move(t));
            }
        bool const infeasible = brute_force(g).energy == forbidden;
        auto const conflict = minimal_conflict(g);
        REQUIRE(conflict.empty() == !infeasible);
        if (!infeasible) continue;
        ++conflicts;
        CHECK(brute_force(part(g, conflict)).energy == forbidden);
        for (std::size_t i = 0; i < conflict.size(); ++i) {
            auto less = conflict;
            less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
            CHECK(brute_force(part(g, less)).energy != forbidden);
        }
    }
    CHECK(conflicts > 100);
}
