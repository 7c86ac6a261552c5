// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/placement_lattice.hpp>

#include "simulate.hpp"

#include <bit>
#include <limits>
#include <string>

using namespace cantle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// 5 us and 100 GB/s on every axis; an all-reduce moves everything twice.
struct latency_bandwidth {
    double operator()(collective_call const& c) const {
        return 5 + static_cast<double>(c.message_bytes()) * (c.kind == collective_kind::all_reduce ? 2e-5 : 1e-5);
    }
};

/// Any price, a multiple of 1/8 so that sums are exact; `zeros` makes many ties.
struct random_price {
    std::uint64_t seed;
    unsigned spread;
    double operator()(collective_call const& c) const {
        stable_hasher h;
        h.add(seed).add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after).add(c.packed_bytes).add(c.reduce);
        return static_cast<double>(h.finish().low % spread) / 8.0;
    }
};

struct instance {
    char const* mesh;
    shape sizes;
    std::vector<char const*> extra;  // terminals beside the plain ones
};
std::vector<instance> const instances{{"2", {8, 4, 6}, {}},
                                      {"2x2", {8, 4}, {"S0,S0; d0=a0>2>a1", "R,S0; d0=4>a1"}},
                                      {"4x2", {16, 8}, {"S0,S0; d0=a1>a0"}},
                                      {"2x3", {36}, {"S0,S0; d0=3>a0>2>a1", "R,S0; d0=12>a1"}},
                                      {"2x1", {4, 4}, {}},
                                      {"2x2x2", {4, 8}, {}},
                                      {"2x2", {}, {}}};

std::vector<layout> terminals_of(instance const& i, device_mesh const& mesh, std::vector<reduction> const& kinds) {
    auto all = simulate::plain_layouts(mesh, i.sizes, kinds);
    for (auto const* t : i.extra) all.push_back(layout::parse(mesh, t));
    return all;
}

/// Bellman-Ford: price and fewest steps among the cheapest paths, by relaxing every edge until nothing changes.
std::vector<std::pair<double, int>> relax_all(placement_lattice const& lattice, std::size_t source) {
    std::vector<std::pair<double, int>> best(lattice.state_count(), {infinity, 0});
    best[source] = {0, 0};
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t s = lattice.state_count(); s-- > 0;) {
            if (best[s].first == infinity) continue;
            lattice.for_each_edge(s, [&](std::size_t to, double cost, transition const&) {
                std::pair const next{best[s].first + cost, best[s].second + 1};
                if (next < best[to]) {
                    best[to] = next;
                    changed = true;
                }
            });
        }
    }
    return best;
}

/// "all_gather(dp) d0, slice(tp) d1"
std::string steps(placement_lattice const& lattice, layout const& from, layout const& to) {
    std::string s;
    for (auto const& p : lattice.path(from, to)) s += (s.empty() ? "" : ", ") + text_of(p.step, lattice.tensor_class().mesh);
    return s;
}

/// The path between two layouts of a tensor of 2-byte elements.
std::string steps(char const* mesh_text, shape const& sizes, char const* from, char const* to) {
    auto const mesh = device_mesh::parse(mesh_text, "dp,tp");
    auto const f = layout::parse(mesh, from), t = layout::parse(mesh, to);
    return steps(placement_lattice({mesh, sizes, 2, {}}, {f, t}, latency_bandwidth{}), f, t);
}

}  // namespace

TEST_CASE("distances are those of Bellman-Ford, and each path is a chain of edges of that price with the fewest steps") {
    for (auto const& i : instances)
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            auto const mesh = device_mesh::parse(i.mesh);
            std::vector<reduction> const linear{reduction::sum, reduction::avg}, extreme{reduction::max};
            auto const terminals = terminals_of(i, mesh, seed % 2 ? linear : extreme);
            random_price const price{seed, seed < 3 ? 1000u : 3u};  // the second kind has many ties and zeros
            placement_lattice const lattice({mesh, i.sizes, 4, {}}, terminals, price);
            CAPTURE(i.mesh);
            CAPTURE(seed);
            for (std::size_t s = 0; s < lattice.state_count(); s += 1 + lattice.state_count() / 60) {
                auto const from = lattice.state(s);
                auto const best = relax_all(lattice, s);
                std::vector<layout> all;
                for (std::size_t t = 0; t < lattice.state_count(); ++t) all.push_back(lattice.state(t));
                auto const found = lattice.distances(from, all);
                for (std::size_t t = 0; t < all.size(); ++t) {
                    REQUIRE(found[t] == best[t].first);
                    if (found[t] == infinity) continue;
                    auto const path = lattice.path(from, all[t]);
                    REQUIRE(path.size() == static_cast<std::size_t>(best[t].second));
                    double sum = 0;
                    layout at = from;
                    for (auto const& p : path) {
                        // The step is an edge of `at`, its call and price are those of that edge.
                        bool is_edge = false;
                        for_each_transition(lattice.tensor_class(), at, [&](transition const& e) { is_edge = is_edge || e == p.step; });
                        REQUIRE(is_edge);
                        auto const call = call_of(lattice.tensor_class(), at, p.step);
                        REQUIRE(call.bytes_before == p.call.bytes_before);
                        REQUIRE(call.bytes_after == p.call.bytes_after);
                        REQUIRE(p.cost == (p.step.kind == collective_kind::slice ? 0.0 : price(p.call)));
                        sum += p.cost;
                        at = p.step.to;
                    }
                    REQUIRE(at == all[t]);
                    REQUIRE(sum == found[t]);
                }
            }
        }
}

TEST_CASE("distances satisfy the triangle inequality and are 0 from a layout to itself") {
    auto const mesh = device_mesh::parse("2x2");
    auto const terminals = terminals_of(instances[1], mesh, {reduction::sum});
    placement_lattice const lattice({mesh, instances[1].sizes, 4, {}}, terminals, random_price{9, 1000});
    std::vector<std::vector<double>> d;
    for (auto const& from : terminals) d.push_back(lattice.distances(from, terminals));
    for (std::size_t a = 0; a < d.size(); ++a) {
        CHECK(d[a][a] == 0);
        CHECK(lattice.path(terminals[a], terminals[a]).empty());
        for (std::size_t b = 0; b < d.size(); ++b)
            for (std::size_t c = 0; c < d.size(); ++c) CHECK(d[a][c] <= d[a][b] + d[b][c]);
    }
}

// R -> P, S -> P and P(sum) -> P(avg) never; everything else always.
TEST_CASE("a layout is reachable exactly when its partial axes are partial of the same kind before") {
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        auto const terminals = terminals_of(i, mesh, {reduction::sum, reduction::avg});
        placement_lattice const lattice({mesh, i.sizes, 4, {}}, terminals, latency_bandwidth{});
        for (auto const& from : terminals) {
            auto const d = lattice.distances(from, terminals);
            for (std::size_t t = 0; t < terminals.size(); ++t) {
                bool possible = true;
                for (std::size_t a = 0; a < mesh.dims(); ++a) {
                    auto const p = terminals[t].on(a);
                    if (p.is_partial() && from.on(a) != p) possible = false;
                }
                CHECK_MESSAGE((d[t] < infinity) == possible, mesh.text() << ": " << from.text(mesh) << " -> " << terminals[t].text(mesh));
            }
        }
    }
}

TEST_CASE("a layout that is no state is infinitely far") {
    auto const mesh = device_mesh::parse("2x2");
    auto const r = layout::parse(mesh, "R,R");
    placement_lattice const lattice({mesh, {8}, 4, {}}, {r}, latency_bandwidth{});
    CHECK(lattice.distances(r, {layout::parse(mesh, "P,R"), layout::parse(mesh, "S0,R; d0=2>a0"), layout::parse(mesh, "S0,R")}) ==
          std::vector<double>{infinity, infinity, 0.0});
}

TEST_CASE("the same input gives the same states, edges, prices and paths") {
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        auto const terminals = terminals_of(i, mesh, {reduction::sum});
        auto const print = [&] {
            placement_lattice const lattice({mesh, i.sizes, 4, {}}, terminals, random_price{2, 3});
            std::string s;
            for (std::size_t v = 0; v < lattice.state_count(); ++v)
                lattice.for_each_edge(v, [&](std::size_t to, double cost, transition const& t) {
                    s += lattice.state(v).text(mesh) + text_of(t, mesh) + lattice.state(to).text(mesh) + std::to_string(cost) + "\n";
                });
            for (auto const& from : terminals)
                for (auto const& to : terminals)
                    if (lattice.distances(from, {to})[0] < infinity)
                        s += steps(lattice, from, to);
            return s;
        };
        auto const first = print();
        if (!i.sizes.empty()) CHECK(first.size() > 100);
        CHECK(print() == first);
    }
}

// More terminals make more states only where they bring new factors or Partials; they never change a price.
TEST_CASE("paths do not depend on the order of the terminals") {
    auto const mesh = device_mesh::parse("2x2");
    auto terminals = terminals_of(instances[1], mesh, {reduction::sum});
    placement_lattice const forward({mesh, {8, 4}, 4, {}}, terminals, random_price{3, 1000});
    auto reversed = terminals;
    std::reverse(reversed.begin(), reversed.end());
    placement_lattice const backward({mesh, {8, 4}, 4, {}}, reversed, random_price{3, 1000});
    CHECK(forward.state_count() == backward.state_count());
    CHECK(forward.edge_count() == backward.edge_count());
    for (auto const& from : terminals) CHECK(forward.distances(from, terminals) == backward.distances(from, terminals));
}

// Closed form: k of 4 axes cut, in an order, spread over the atoms; each other axis Replicate or Partial.
//   sum over k of C(4,k) k! C(k + atoms - 1, atoms - 1) 2^(4-k):  4 atoms 2,424, 5 atoms 4,256
TEST_CASE("the number of states on 2x2x2x4 is the one counted by hand, with and without a whole factor (DECISIONS 1)") {
    auto const mesh = device_mesh::parse("2x2x2x4");
    auto const all_partial = layout::parse(mesh, "P,P,P,P");
    auto const count = [&](shape const& sizes, std::vector<layout> const& terminals) {
        return placement_lattice({mesh, sizes, 2, {}}, terminals, [](auto const&) { return 1.0; }).state_count();
    };
    CHECK(count({32, 32, 32, 32}, {all_partial}) == 2424);
    CHECK(count({64 * 64, 32, 32}, {layout::parse(mesh, "P,P,P,P"), layout::parse(mesh, "R,R,R,S0; d0=64>a3")}) == 2424);
    CHECK(count({64 * 64, 32}, {layout::parse(mesh, "R,R,R,S0; d0=64>a3")}) == 1 + 12 + 72 + 240 + 360);
}

TEST_CASE("C7, C8: price and path are those of the steps executed") {
    CHECK(steps("4x8", {1024, 512}, "S0,S0", "S0,R") == "all_gather(tp) d0");
    CHECK(steps("4x8", {1024, 512}, "S0,S0", "R,R") == "all_gather(dp,tp) d0");  // one flat gather
    CHECK(steps("4x8", {1024, 512}, "P,P", "R,R") == "all_reduce(dp,tp)");
    CHECK(steps("4x8", {1024, 512}, "P,P", "S0,S0") == "reduce_scatter(dp,tp) d0");
    CHECK(steps("4x8", {1024, 512}, "P,P", "S0,S0; d0=tp>dp") == "reduce_scatter(tp,dp) d0");
    CHECK(steps("4x8", {1024, 512}, "R,R", "S0,S1") == "slice(dp) d0, slice(tp) d1");
    CHECK(steps("4x8", {1024, 512}, "R,S1", "R,S0") == "all_to_all(tp) d1>d0");
}

// [1024] by dp, then tp, to tp alone: permute the order, then gather dp, instead of gathering all.
TEST_CASE("E3: the outer axis is gathered by a permute and one gather that moves an eighth") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    auto const from = layout::parse(mesh, "S0,S0"), to = layout::parse(mesh, "R,S0"), all = layout::parse(mesh, "R,R");
    shape const sizes{1 << 20, 16};
    placement_lattice const lattice({mesh, sizes, 2, {}}, {from, to}, latency_bandwidth{});
    CHECK(steps(lattice, from, to) == "permute(dp,tp) d0, all_gather(dp) d0");
    auto const path = lattice.path(from, to);
    std::int64_t const bytes = element_count(sizes) * 2;
    CHECK(path[1].call.bytes_after * 8 == bytes);
    CHECK(path[0].call.bytes_before * 32 == bytes);
    CHECK(path[0].step.to == layout::parse(mesh, "S0,S0; d0=tp>dp"));
    auto const d = lattice.distances(from, {to, all});
    CHECK(d[0] == path[0].cost + path[1].cost);
    CHECK(d[0] < d[1] / 4);
    // Where a message is all latency, gathering all and slicing is one collective and wins.
    placement_lattice const small({mesh, {32, 16}, 2, {}}, {from, to}, latency_bandwidth{});
    CHECK(steps(small, from, to) == "all_gather(dp,tp) d0, slice(tp) d0");
}

TEST_CASE("E1: flattened and cut as dp 4 tp, dp is gathered alone") {
    CHECK(steps("4x8", {32768, 64}, "S0,S0; d0=dp>4>tp", "R,S0; d0=16>tp") == "all_gather(dp) d0");
    CHECK(steps("4x8", {32768, 64}, "S0,S0; d0=dp>4>tp", "S0,R") == "all_gather(tp) d0");
    CHECK(steps("4x8", {32768, 64}, "S0,S1", "S0,S0; d0=dp>4>tp") == "all_to_all(tp) d1>d0");
    CHECK(steps("4x8", {32768, 64}, "R,S0; d0=16>tp", "R,S0") == "all_to_all(tp) d0>d0");
    CHECK(steps("4x8", {32768, 64}, "P,S0; d0=16>tp", "S0,S0; d0=dp>4>tp") == "reduce_scatter(dp) d0");
}

TEST_CASE("among paths of equal price the one with fewer steps is taken") {
    auto const mesh = device_mesh::parse("2x2", "dp,tp");
    auto const from = layout::parse(mesh, "P,P"), to = layout::parse(mesh, "R,R");
    placement_lattice const lattice({mesh, {8}, 4, {}}, {from, to}, [](auto const& c) { return std::popcount(c.axes) * 1.0; });
    CHECK(lattice.distances(from, {to})[0] == 2.0);
    CHECK(steps(lattice, from, to) == "all_reduce(dp,tp)");
    placement_lattice const all_free({mesh, {8}, 4, {}}, {from, to}, [](auto const&) { return 0.0; });
    CHECK(steps(all_free, from, to) == "all_reduce(dp,tp)");
}

TEST_CASE("an axis of size 1 makes no states and no steps (case B11)") {
    auto const mesh = device_mesh::parse("4x1", "dp,tp"), line = device_mesh::parse("4", "dp");
    std::vector<reduction> const kinds{reduction::sum};
    auto const with = simulate::plain_layouts(mesh, {8, 4}, kinds), without = simulate::plain_layouts(line, {8, 4}, kinds);
    placement_lattice const a({mesh, {8, 4}, 4, {}}, with, latency_bandwidth{});
    placement_lattice const b({line, {8, 4}, 4, {}}, without, latency_bandwidth{});
    CHECK(a.state_count() == b.state_count());
    CHECK(a.edge_count() == b.edge_count());
    CHECK(a.state_count() == 4);  // R, S0, S1, P
}

TEST_CASE("dims that no axis divides offer no cut (case A5)") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    placement_lattice const lattice({mesh, {6, 3}, 4, {}}, {layout(2)}, latency_bandwidth{});
    CHECK(lattice.state_count() == 1);
    CHECK(lattice.edge_count() == 0);
}
