// SPDX-License-Identifier: BSL-1.0
// Which elements a rank holds, as few counts and strides, against a list of all of them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/mesh/held_elements.hpp>

#include <doctest/doctest.h>

#include "simulate.hpp"

#include <random>

using namespace cantle;

namespace {

std::vector<std::int64_t> listed(held_elements const& h) {
    std::vector<std::int64_t> all{h.first};
    for (std::size_t k = 0; k < h.counts.size(); ++k) {
        std::vector<std::int64_t> next;
        for (auto x : all)
            for (std::int64_t i = 0; i < h.counts[k]; ++i) next.push_back(x + i * h.strides[k]);
        all = std::move(next);
    }
    return all;
}
held_elements of(device_mesh const& mesh, layout const& l, shape const& sizes, std::int64_t rank) {
    return elements_of(l, piece_of(l, mesh, sizes, rank), sizes);
}

}  // namespace

TEST_CASE("a whole tensor is one count, a column of ranks two, a strided shard three") {
    auto const mesh = device_mesh::parse("2");
    CHECK(of(mesh, layout(1), {4, 6}, 1) == held_elements{0, {24}, {1}});
    CHECK(of(mesh, layout(1), {}, 1) == held_elements{});
    CHECK(of(mesh, layout::parse(mesh, "S0"), {4, 6}, 1) == held_elements{12, {12}, {1}});
    CHECK(of(mesh, layout::parse(mesh, "S1"), {4, 6}, 1) == held_elements{3, {4, 3}, {6, 1}});
    layout strided(1);  // [4][2 x 6]: each of the two sixes is cut
    REQUIRE(strided.apply(0, 2, placement::shard(1, 2), {4, 12}));
    // Rows of 12 and halves of 6 are one run of sixes: 8 times 3 of 6.
    CHECK(of(mesh, strided, {4, 12}, 1) == held_elements{3, {8, 3}, {6, 1}});
    layout inner(1);  // [4][3 x 4][2]
    REQUIRE(inner.apply(0, 2, placement::shard(1, 3), {4, 12, 2}));
    CHECK(of(mesh, inner, {4, 12, 2}, 0) == held_elements{0, {12, 4}, {8, 1}});
}

// Cuts drawn at random: plain, behind whole factors, in any order of axes, and uneven chunks.
TEST_CASE("every rank's elements are those that the layout gives it, in its local order") {
    std::mt19937_64 random(20260805);  // the seed
    std::size_t strided = 0, uneven = 0;
    for (auto const* text : {"2", "3", "2x2", "2x3", "2x2x2"}) {
        auto const mesh = device_mesh::parse(text);
        for (auto const& sizes : std::vector<shape>{{24}, {12, 8}, {7, 5}, {4, 1, 36}, {0, 4}})
            for (int round = 0; round < 60; ++round) {
                layout l(mesh.dims());
                for (std::size_t k = 0; k < mesh.dims(); ++k) {
                    auto const axis = random() % mesh.dims(), dim = random() % sizes.size();
                    auto const outer = static_cast<std::int64_t>(1 + random() % 3);
                    auto const policy = random() % 2 ? shard_policy::even : shard_policy::uneven;
                    l.apply(axis, mesh.size(axis), placement::shard(dim, outer), sizes, policy);
                }
                for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
                    auto const piece = piece_of(l, mesh, sizes, r);
                    strided += !piece.interval;
                    uneven += !l.fits(sizes);
                    CHECK(listed(elements_of(l, piece, sizes)) == simulate::held(mesh, l, sizes, r).data);
                }
            }
    }
    CHECK(strided > 100);
    CHECK(uneven > 100);
}
