// SPDX-License-Identifier: BSL-1.0
// Uneven shards: nested ceil chunks, their pieces and offsets, and the lattice over them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/local_piece.hpp>
#include <cantle/mesh/placement_lattice.hpp>

#include "simulate.hpp"

#include <limits>
#include <string>
#include <utility>

using namespace cantle;

namespace {

constexpr auto uneven = shard_policy::uneven;
using ints = std::vector<std::int64_t>;

ints sizes_of(char const* mesh_text, char const* layout_text, std::int64_t size) {
    auto const mesh = device_mesh::parse(mesh_text);
    ints sizes;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r)
        sizes.push_back(piece_of(layout::parse(mesh, layout_text), mesh, {size}, r).sizes[0]);
    return sizes;
}
ints offsets_of(char const* mesh_text, char const* layout_text, std::int64_t size) {
    auto const mesh = device_mesh::parse(mesh_text);
    ints offsets;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r)
        offsets.push_back(piece_of(layout::parse(mesh, layout_text), mesh, {size}, r).offset[0]);
    return offsets;
}
bool fits(char const* mesh_text, char const* layout_text, shape const& sizes, shard_policy policy) {
    return layout::parse(device_mesh::parse(mesh_text), layout_text).fits(sizes, policy);
}
double hashed_price(collective_call const& c, std::uint64_t seed) {
    stable_hasher h;
    h.add(seed).add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after).add(c.packed_bytes);
    return static_cast<double>(h.finish().low % 1000) / 8.0;
}

struct instance {
    char const* mesh;
    shape sizes;
};
// Chunks short, empty, nested; beside a dim that divides; a dim too small for both axes; axes of one rank.
std::vector<instance> const instances{{"2", {5}},        {"4", {5, 3}},   {"3", {7, 6}},   {"2x2", {6}},      {"2x2", {5, 4}},
                                      {"2x3", {7, 4}},   {"3x2", {9, 2}}, {"4x2", {9}},    {"2x4", {3, 9}},   {"2x1x2", {5, 2}},
                                      {"2x2x2", {9, 2}}, {"2x2x2", {11}}, {"2x3x2", {13}}, {"2x2x2", {3, 5}}, {"2x2", {2, 3, 5}}};

}  // namespace

TEST_CASE("a dim that does not divide is cut as torch.chunk cuts it, and every cut inside cuts what that left of the rank") {
    CHECK(sizes_of("4", "S0", 7) == ints{2, 2, 2, 1});
    CHECK(sizes_of("4", "S0", 5) == ints{2, 2, 1, 0});
    CHECK(sizes_of("4", "S0", 6) == ints{2, 2, 2, 0});
    CHECK(sizes_of("2x2", "S0,S0", 6) == ints{2, 1, 2, 1});
    CHECK(sizes_of("2x2", "S0,S0", 5) == ints{2, 1, 1, 1});
    CHECK(offsets_of("2x2", "S0,S0", 5) == ints{0, 2, 3, 4});
    CHECK(sizes_of("2x2", "S0,R", 5) == ints{3, 3, 2, 2});
}

// [2] by 2, then by 4: rank (0,0) holds element 0, rank (1,0) element 1, the others nothing
TEST_CASE("A59: two elements on 2x4: the pieces with an element tile the tensor, the others are empty and overlap nothing") {
    CHECK(sizes_of("2x4", "S0,S0", 2) == ints{1, 0, 0, 0, 1, 0, 0, 0});
    CHECK(offsets_of("2x4", "S0,S0", 2) == ints{0, 1, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("pieces tile every tensor in rank order, are those of the chunk rule, and the largest is local_shape") {
    std::size_t short_pieces = 0, empty = 0;
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        for (auto const& l : simulate::plain_layouts(mesh, i.sizes, {}, uneven)) {
            shape largest(i.sizes.size(), 0);
            std::vector<std::int64_t> smallest(i.sizes.size(), std::numeric_limits<std::int64_t>::max());
            for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
                auto const p = piece_of(l, mesh, i.sizes, r);
                CHECK(p.interval);
                for (std::size_t d = 0; d < i.sizes.size(); ++d) {
                    auto const held = simulate::held_indices(mesh, l, d, i.sizes[d], r);
                    REQUIRE(p.sizes[d] == static_cast<std::int64_t>(held.size()));
                    if (!held.empty()) REQUIRE(p.offset[d] == held.front());
                    if (!held.empty()) REQUIRE(p.offset[d] + p.sizes[d] - 1 == held.back());
                    REQUIRE(p.offset[d] <= i.sizes[d]);
                    largest[d] = std::max(largest[d], p.sizes[d]);
                    smallest[d] = std::min(smallest[d], p.sizes[d]);
                    empty += held.empty();
                }
                for (std::size_t d = 0; d < i.sizes.size(); ++d) short_pieces += p.sizes[d] < l.local_shape(i.sizes)[d];
            }
            CHECK(largest == l.local_shape(i.sizes));
            for (std::size_t d = 0; d < i.sizes.size(); ++d) CHECK(smallest[d] == smallest_piece(l, d, i.sizes[d]));
            for (std::size_t d = 0; d < i.sizes.size(); ++d) CHECK(l.is_uneven(d, i.sizes[d]) == simulate::uneven(l, d, i.sizes[d]));
        }
    }
    CHECK(short_pieces > 0);
    CHECK(empty > 0);
}

TEST_CASE("two plain uneven layouts that differ hold different pieces") {
    auto const mesh = device_mesh::parse("2x3");
    std::map<std::vector<simulate::values>, layout> seen;
    for (auto const& l : simulate::plain_layouts(mesh, {7, 11}, {}, uneven))
        CHECK(seen.try_emplace(simulate::distribution(mesh, l, {7, 11}), l).second);
    CHECK(seen.size() == 9);
}

TEST_CASE("the even policy refuses what does not divide, the uneven one takes plain nested cuts in mesh order only (A5, A61)") {
    CHECK_FALSE(fits("4", "S0", {6, 256}, shard_policy::even));
    CHECK(fits("4", "S0", {6, 256}, uneven));
    CHECK_FALSE(fits("32x8", "S0,S0", {32, 4096, 4096}, uneven));  // A61: 32 elements for 256 ranks
    CHECK(fits("32x8", "S0,R", {32, 4096, 4096}, uneven));
    CHECK_FALSE(fits("2x2", "S0,S0; d0=a1>a0", {6}, uneven));
    CHECK(fits("2x2", "S0,S0; d0=a1>a0", {8}, uneven));
    CHECK_FALSE(fits("2x2", "S0,R; d0=3>a0", {9}, uneven));
    CHECK(fits("2x2", "S0,R; d0=3>a0", {6}, uneven));
    CHECK_FALSE(fits("2", "S0", {0}, uneven));
    CHECK_FALSE(fits("2", "S0", {1}, uneven));
    CHECK_FALSE(fits("2", "S1", {4}, uneven));
}

TEST_CASE("a cut is taken evenly where it divides, else as a chunk, and only where the policy says so") {
    layout l(2);
    CHECK_FALSE(l.apply(0, 2, placement::shard(0), {5}));
    CHECK_FALSE(l.apply(0, 2, placement::shard(0), {5}, shard_policy::even));
    CHECK(l.apply(0, 2, placement::shard(0), {5}, uneven));
    CHECK(l.apply(1, 2, placement::shard(0), {5}, uneven));
    CHECK(l == layout::parse(device_mesh::parse("2x2"), "S0,S0"));
    layout backwards(2);
    CHECK(backwards.apply(1, 2, placement::shard(0), {6}, uneven));
    CHECK_FALSE(backwards.apply(0, 2, placement::shard(0), {6}, uneven));  // not in mesh order
    CHECK_FALSE(layout(1).apply(0, 4, placement::shard(0), {3}, uneven));   // fewer elements than ranks
    CHECK_FALSE(layout(1).apply(0, 2, placement::shard(0, 2), {6}, uneven));  // behind a whole factor nothing is uneven
    CHECK_FALSE(layout(1).apply(0, 2, placement::shard(3), {6}, uneven));
}

TEST_CASE("every edge of the uneven lattice, run by all ranks, yields the layout it names, in messages of the largest piece") {
    std::size_t of[6] = {}, uneven_edges = 0;
    std::mt19937 random(20261130);
    for (auto const& i : instances)
        for (auto const& kinds : {std::vector{reduction::sum}, {reduction::max}}) {
            auto const mesh = device_mesh::parse(i.mesh);
            lattice_class const c{mesh, i.sizes, 2, {}, uneven};
            placement_lattice const lattice(c, simulate::plain_layouts(mesh, i.sizes, kinds, uneven),
                                            [](auto const& call) { return hashed_price(call, 1); });
            for (std::size_t s = 0; s < lattice.state_count(); ++s) {
                layout const from = lattice.state(s);
                REQUIRE(from.fits(i.sizes, uneven));
                auto const before = simulate::distribute(mesh, from, i.sizes, random);
                REQUIRE(simulate::is_right(mesh, from, i.sizes, before));
                lattice.for_each_edge(s, [&](std::size_t, double, transition const& t) {
                    std::string const line = mesh.text() + ": " + from.text(mesh) + " -> " + t.to.text(mesh) + " by " + text_of(t, mesh);
                    CAPTURE(line);
                    auto const after = simulate::execute(mesh, from, t, before, i.sizes).blocks;
                    REQUIRE(simulate::is_right(mesh, t.to, i.sizes, after));
                    auto const call = call_of(lattice.tensor_class(), from, t);
                    std::int64_t most_before = 0, most_after = 0, n = 1;
                    for (auto const& b : before) most_before = std::max(most_before, static_cast<std::int64_t>(b.data.size()) * 2);
                    for (auto const& b : after) most_after = std::max(most_after, static_cast<std::int64_t>(b.data.size()) * 2);
                    for (auto a : t.axes) n *= mesh.size(a);
                    REQUIRE(call.bytes_before >= most_before);
                    REQUIRE(call.bytes_after >= most_after);
                    if (t.kind == collective_kind::all_gather) REQUIRE(call.bytes_after == n * call.bytes_before);
                    if (t.kind == collective_kind::all_gather) REQUIRE(call.bytes_before == most_before);
                    if (t.kind == collective_kind::reduce_scatter) REQUIRE(call.bytes_before == n * call.bytes_after);
                    if (t.kind == collective_kind::reduce_scatter) REQUIRE(call.bytes_after == most_after);
                    if (t.kind == collective_kind::all_to_all) REQUIRE(call.bytes_before == call.bytes_after);
                    ++of[static_cast<std::size_t>(t.kind)];
                    bool some = false;
                    for (std::size_t d = 0; d < i.sizes.size(); ++d)
                        some = some || simulate::uneven(from, d, i.sizes[d]) || simulate::uneven(t.to, d, i.sizes[d]);
                    uneven_edges += some;
                });
            }
        }
    for (auto n : of) CHECK(n > 0);
    CHECK(uneven_edges > 1000);
}

TEST_CASE("where every dim divides, and no uneven layout fits, the uneven policy has the lattice of the even one") {
    auto const mesh = device_mesh::parse("2x2x2");
    auto const terminals = simulate::plain_layouts(mesh, {8, 16}, {reduction::sum});
    auto const price = [](auto const& call) { return hashed_price(call, 3); };
    placement_lattice const a({mesh, {8, 16}, 4, {}}, terminals, price), b({mesh, {8, 16}, 4, {}, uneven}, terminals, price);
    REQUIRE(a.state_count() == b.state_count());
    REQUIRE(a.edge_count() == b.edge_count());
    for (auto const& from : terminals) CHECK(a.distances(from, terminals) == b.distances(from, terminals));
}

TEST_CASE("a gather of an uneven dim is priced at the padded size: 5 rows on 4 ranks are 8") {
    auto const mesh = device_mesh::parse("4");
    lattice_class const c{mesh, {5, 10}, 4, {}, uneven};
    auto const from = layout::parse(mesh, "S0");
    bool seen = false;
    for_each_transition(c, from, [&](transition const& t) {
        if (t.kind != collective_kind::all_gather) return;
        auto const call = call_of(c, from, t);
        CHECK(call.bytes_before == 2 * 10 * 4);
        CHECK(call.bytes_after == 8 * 10 * 4);
        seen = true;
    });
    CHECK(seen);
}
