// SPDX-License-Identifier: BSL-1.0
// Redistribution as a whole: for all pairs of layouts on meshes of up to three axes the path of the lattice moves the right values, all
// members of a group issue the same collectives, and no other sequence of steps is cheaper.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/placement_lattice.hpp>

#include "simulate.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

using namespace cantle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Multiples of 1/8, so that sums are exact in any order. Seed 0: as a machine would, 5 us and 1/8 us per 64 bytes.
double price_of(collective_call const& c, std::uint64_t seed) {
    if (seed == 0) return 5 + static_cast<double>((c.message_bytes() + c.packed_bytes) / 64) / 8.0;
    stable_hasher h;
    h.add(seed).add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after).add(c.packed_bytes).add(c.reduce);
    return static_cast<double>(h.finish().low % 800) / 8.0;
}

struct instance {
    char const* mesh;
    shape sizes;
    bool every_layout = false;   // with whole factors and all orders of cuts, else plain ones
    shard_policy policy = shard_policy::even;
};
std::vector<instance> const instances{
    {"2", {4, 6}, true}, {"3", {6, 3}, true}, {"4", {8, 4}, true}, {"2x2", {8}, true}, {"2x2", {4, 4}}, {"2x3", {12}, true},
    {"2x3", {6, 12}}, {"3x2", {6, 6}}, {"4x2", {16, 8}}, {"2x1x2", {4, 4}}, {"2x2x2", {8}, true}, {"2x2x2", {8, 4}}, {"2x3x2", {12, 2}},
    {"2x2", {}},
    {"4", {7, 5}, false, shard_policy::uneven}, {"2x2", {5, 6}, false, shard_policy::uneven}, {"2x3", {7, 9}, false, shard_policy::uneven},
    {"2x2x2", {9, 2}, false, shard_policy::uneven}, {"2x3x2", {13}, false, shard_policy::uneven}};

std::vector<layout> layouts_of(instance const& i, device_mesh const& mesh, std::vector<reduction> const& kinds) {
    auto all = simulate::plain_layouts(mesh, i.sizes, kinds, i.policy);
    if (i.every_layout)
        for (auto const& l : simulate::all_layouts(mesh, i.sizes))
            if (std::find(all.begin(), all.end(), l) == all.end()) all.push_back(l);
    return all;
}

/// Prices of the cheapest sequences of steps between all states, by trying every state as a stop in between (Floyd and Warshall).
std::vector<std::vector<double>> brute_force(placement_lattice const& lattice) {
    std::size_t const n = lattice.state_count();
    std::vector<std::vector<double>> best(n, std::vector<double>(n, infinity));
    for (std::size_t s = 0; s < n; ++s) {
        best[s][s] = 0;
        lattice.for_each_edge(s, [&](std::size_t to, double cost, transition const&) { best[s][to] = std::min(best[s][to], cost); });
    }
    for (std::size_t k = 0; k < n; ++k)
        for (std::size_t i = 0; i < n; ++i) {
            if (best[i][k] == infinity) continue;
            for (std::size_t j = 0; j < n; ++j) best[i][j] = std::min(best[i][j], best[i][k] + best[k][j]);
        }
    return best;
}

}  // namespace

TEST_CASE("for all pairs of layouts the path moves the right values, all members issue the same, and nothing is cheaper") {
    std::mt19937 random(20261130);
    std::size_t pairs = 0, steps = 0, unreachable = 0;
    for (auto const& i : instances)
        for (auto const& kinds : {std::vector{reduction::sum, reduction::avg}, {reduction::max}, {reduction::min}})
            for (std::uint64_t seed : {0u, 1u}) {
                auto const mesh = device_mesh::parse(i.mesh);
                if (mesh.dims() > 2 && kinds[0] != reduction::sum && seed == 0) continue;
                auto const partial = mesh.dims() > 2 ? std::vector{kinds[0]} : kinds;
                CAPTURE(i.mesh);
                auto const all = layouts_of(i, mesh, partial);
                placement_lattice const lattice({mesh, i.sizes, 4, {}, i.policy}, all, [&](auto const& c) { return price_of(c, seed); });
                auto const best = brute_force(lattice);
                std::vector<std::size_t> state;
                for (auto const& l : all)
                    for (std::size_t s = 0; s < lattice.state_count(); ++s)
                        if (lattice.state(s) == l) state.push_back(s);
                REQUIRE(state.size() == all.size());
                for (std::size_t a = 0; a < all.size(); ++a) {
                    auto const distance = lattice.distances(all[a], all);
                    auto const start = simulate::distribute(mesh, all[a], i.sizes, random);
                    for (std::size_t b = 0; b < all.size(); ++b) {
                        REQUIRE(distance[b] == best[state[a]][state[b]]);
                        if (distance[b] == infinity) {
                            ++unreachable;
                            continue;
                        }
                        auto const line = mesh.text() + ": " + all[a].text(mesh) + " -> " + all[b].text(mesh);
                        CAPTURE(line);
                        auto blocks = start;
                        layout at = all[a];
                        double sum = 0;
                        for (auto const& p : lattice.path(all[a], all[b])) {
                            // Who takes part with whom, in which order, with how many bytes: the same said by all members of a group.
                            for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
                                auto const members = simulate::group(mesh, r, p.step.axes);
                                for (auto m : members) REQUIRE(simulate::group(mesh, m, p.step.axes) == members);
                                auto const held = static_cast<std::int64_t>(blocks[static_cast<std::size_t>(r)].data.size()) * 4;
                                if (i.policy == shard_policy::even) REQUIRE(held == p.call.bytes_before);
                                else REQUIRE(held <= p.call.bytes_before);
                            }
                            blocks = simulate::execute(mesh, at, p.step, blocks, i.sizes).blocks;
                            at = p.step.to;
                            REQUIRE(simulate::is_right(mesh, at, i.sizes, blocks));
                            sum += p.cost;
                            ++steps;
                        }
                        REQUIRE(at == all[b]);
                        REQUIRE(sum == distance[b]);
                        ++pairs;
                    }
                }
            }
    CHECK(pairs > 20000);
    CHECK(steps > pairs);
    CHECK(unreachable > 0);
}
