// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/chain_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

using namespace cantle::mrf;
using cantle::mrf::testing::dice;

namespace {
using list = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Neighbour lists of `edges` with vertex v called name[v].
detail::neighbour_lists lists(list const& edges, std::vector<std::uint32_t> const& name) {
    detail::neighbour_lists near(name.size());
    for (auto [u, v] : edges) {
        near[name[u]].push_back(name[v]);
        near[name[v]].push_back(name[u]);
    }
    for (auto& l : near) std::sort(l.begin(), l.end());
    return near;
}
std::vector<std::uint32_t> shuffled(std::uint32_t n, dice& d) {
    std::vector<std::uint32_t> name(n);
    std::iota(name.begin(), name.end(), 0U);
    for (std::uint32_t i = n; i > 1; --i) std::swap(name[i - 1], name[d.below(i)]);
    return name;
}
/// `rungs` steps of a ladder: 0-1, 2-3, .. with rails 0-2-4-.. and 1-3-5-..
list ladder(std::uint32_t rungs) {
    list e;
    for (std::uint32_t r = 0; r < rungs; ++r) {
        e.emplace_back(2 * r, 2 * r + 1);
        if (r + 1 == rungs) break;
        e.emplace_back(2 * r, 2 * r + 2);
        e.emplace_back(2 * r + 1, 2 * r + 3);
    }
    return e;
}
}  // namespace

TEST_CASE("a path in any order is one chain") {
    dice d(1);
    for (std::uint32_t n : {3U, 10U, 200U}) {
        list path;
        for (std::uint32_t v = 0; v + 1 < n; ++v) path.emplace_back(v, v + 1);
        auto const near = lists(path, shuffled(n, d));
        CHECK(chain_count(near, chain_order(near)) == 1);
    }
}

// 0 - 1   Every vertex inside has a rail on both sides and a rung: at most about one chain per rung and the two rails. In a random order
// |   |   a quarter of all vertices are ends.
// 2 - 3
TEST_CASE("a shuffled ladder needs about as many chains as a straight one") {
    dice d(2);
    std::uint32_t const rungs = 100;
    std::vector<std::uint32_t> straight(2 * rungs);
    std::iota(straight.begin(), straight.end(), 0U);
    auto const best = chain_count(lists(ladder(rungs), straight), straight);
    for (int round = 0; round < 10; ++round) {
        auto const near = lists(ladder(rungs), shuffled(2 * rungs, d));
        auto const found = chain_count(near, chain_order(near));
        CHECK(found <= best + best / 10);
        CHECK(found < chain_count(near, straight));
    }
}

TEST_CASE("an order is a permutation and never has more chains than the one given") {
    dice d(3);
    for (int round = 0; round < 300; ++round) {
        auto const n = 1 + d.below(30);
        list edges;
        for (std::uint32_t v = 1; v < n; ++v) edges.emplace_back(d.below(v), v);
        for (std::uint32_t v = 2; v < n; ++v)
            if (auto const u = d.below(v - 1); d.chance(0.5) && std::find(edges.begin(), edges.end(), std::pair{u, v}) == edges.end())
                edges.emplace_back(u, v);
        std::vector<std::uint32_t> given(n);
        std::iota(given.begin(), given.end(), 0U);
        auto const near = lists(edges, given);
        auto order = chain_order(near);
        INFO("seed 3, round " << round);
        CHECK(chain_count(near, order) <= chain_count(near, given));
        std::sort(order.begin(), order.end());
        CHECK(order == given);
    }
}

// A star: the hub can be in the middle at best, so half of its edges make chains of two.
TEST_CASE("the chains of a star are half its edges") {
    dice d(4);
    list star;
    for (std::uint32_t v = 1; v < 9; ++v) star.emplace_back(0, v);
    std::vector<std::uint32_t> middle{1, 2, 3, 4, 0, 5, 6, 7, 8};
    std::vector<std::uint32_t> given(9);
    std::iota(given.begin(), given.end(), 0U);
    CHECK(chain_count(lists(star, given), given) == 8);
    CHECK(chain_count(lists(star, given), middle) == 4);
}
