// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/base/distance_transform.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

using namespace cantle;

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<weighted_edge> random_edges(std::mt19937_64& rng, std::uint32_t n, std::size_t m) {
    std::vector<weighted_edge> edges;
    for (std::size_t i = 0; i < m; ++i)
        edges.push_back({static_cast<std::uint32_t>(rng() % n), static_cast<std::uint32_t>(rng() % n), static_cast<double>(rng() % 50)});
    return edges;
}

/// Floyd and Warshall: [from][to].
std::vector<std::vector<double>> all_distances(std::uint32_t n, std::vector<weighted_edge> const& edges) {
    std::vector<std::vector<double>> d(n, std::vector<double>(n, inf));
    for (std::uint32_t v = 0; v < n; ++v) d[v][v] = 0;
    for (auto const& e : edges) d[e.from][e.to] = std::min(d[e.from][e.to], e.length);
    for (std::uint32_t k = 0; k < n; ++k)
        for (std::uint32_t i = 0; i < n; ++i)
            for (std::uint32_t j = 0; j < n; ++j) d[i][j] = std::min(d[i][j], d[i][k] + d[k][j]);
    return d;
}
}  // namespace

TEST_CASE("a transform is the min-plus product with the matrix of all distances") {
    std::mt19937_64 rng(1);
    for (int round = 0; round < 200; ++round) {
        std::uint32_t const n = 1 + static_cast<std::uint32_t>(rng() % 20);
        auto const edges = random_edges(rng, n, rng() % (4 * n));
        distance_graph const graph(n, edges);
        REQUIRE(graph.edge_count() == edges.size());
        auto const dist = all_distances(n, edges);
        std::vector<double> in(n);
        for (double& x : in) x = rng() % 3 == 0 ? inf : static_cast<double>(rng() % 200);
        auto d = in;
        graph.transform(d.data());
        for (std::uint32_t k = 0; k < n; ++k) {
            double least = inf;
            for (std::uint32_t j = 0; j < n; ++j) least = std::min(least, in[j] + dist[j][k]);
            CHECK(d[k] == least);
        }
        auto back = edges;
        for (auto& e : back) std::swap(e.from, e.to);
        auto with_reverse = in;
        graph.transform(with_reverse.data(), distance_graph(n, back));
        CHECK(with_reverse == d);
    }
}

TEST_CASE("several vectors closed at once are each closed as alone") {
    std::mt19937_64 rng(2);
    std::uint32_t const n = 40;
    distance_graph const graph(n, random_edges(rng, n, 120));
    std::vector<double> many(n * distance_graph::lanes);
    for (double& x : many) x = rng() % 2 ? inf : static_cast<double>(rng() % 100);
    auto closed = many;
    graph.transform_many(closed.data());
    for (std::size_t lane = 0; lane < distance_graph::lanes; ++lane) {
        std::vector<double> one(n);
        for (std::size_t v = 0; v < n; ++v) one[v] = many[v * distance_graph::lanes + lane];
        graph.transform(one.data());
        for (std::size_t v = 0; v < n; ++v) CHECK(closed[v * distance_graph::lanes + lane] == one[v]);
    }
}

TEST_CASE("a long path against the order of the vertices is followed to its end") {
    std::uint32_t const n = 100;  // 99 -> 1 -> 98 -> 2 -> ... : every pass serves a step or two
    std::vector<std::uint32_t> path;
    for (std::uint32_t i = 0; i < n / 2; ++i) path.insert(path.end(), {n - 1 - i, i});
    std::vector<weighted_edge> edges;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) edges.push_back({path[i], path[i + 1], 1});
    distance_graph const graph(n, edges);
    std::vector<double> d(n, inf);
    d[path[0]] = 0;
    graph.transform(d.data());
    for (std::size_t i = 0; i < path.size(); ++i) CHECK(d[path[i]] == static_cast<double>(i));
}

TEST_CASE("a graph without edges changes nothing, and one without vertices is no trouble") {
    distance_graph const none(0, {});
    CHECK(none.transform(nullptr) == 1);
    std::vector<double> d{3, inf};
    CHECK(distance_graph(2, {}).transform(d.data()) == 1);
    CHECK(d == std::vector<double>{3, inf});
}
