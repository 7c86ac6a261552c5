// SPDX-License-Identifier: BSL-1.0
// Every step out of every layout of small tensors, run as ranks run it (pack, collective on buffers, unpack), against the mesh tests' own
// yardstick, which knows nothing of packing.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../mesh/simulate.hpp"

#include <cantle/program/transfer.hpp>

using namespace cantle;
using simulate::block;

namespace {

block rearranged(block const& b, rearrangement const& r) {
    REQUIRE(element_count(r.view) == static_cast<std::int64_t>(b.data.size()));
    auto const strides = contiguous_strides(r.view);
    block out{r.result, {}};
    std::vector<std::int64_t> at(r.order.size(), 0);
    for (std::size_t i = 0; i < b.data.size(); ++i) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < at.size(); ++d) from += at[d] * strides[static_cast<std::size_t>(r.order[d])];
        out.data.push_back(b.data[static_cast<std::size_t>(from)]);
        for (std::size_t d = at.size(); d-- > 0;) {
            if (++at[d] < r.view[static_cast<std::size_t>(r.order[d])]) break;
            at[d] = 0;
        }
    }
    return out;
}
block part(block const& b, std::int64_t i) {
    auto const n = b.data.size() / static_cast<std::size_t>(b.sizes[0]);
    auto const first = b.data.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * n);
    return {shape(b.sizes.begin() + 1, b.sizes.end()), {first, first + static_cast<std::ptrdiff_t>(n)}};
}

/// What all ranks hold after `t`.
std::vector<block> run(device_mesh const& mesh, layout const& from, transition const& t, shape const& sizes,
                       std::vector<block> const& before) {
    std::vector<transfer> x;
    std::vector<block> packed, result;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        x.push_back(transfer_of(mesh, from, t, sizes, r));
        packed.push_back(rearranged(before[static_cast<std::size_t>(r)], x.back().pack));
    }
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const& mine = x[static_cast<std::size_t>(r)];
        auto const members = simulate::group(mesh, r, mine.axes);
        REQUIRE(members[static_cast<std::size_t>(mine.member)] == r);
        auto const of = [&](std::int64_t m) -> block const& {
            return packed[static_cast<std::size_t>(members[static_cast<std::size_t>(m)])];
        };
        block reduced = of(mine.member);
        if (mine.kind == collective_kind::all_reduce || mine.kind == collective_kind::reduce_scatter)
            for (std::size_t i = 0; i < reduced.data.size(); ++i) {
                simulate::values v;
                for (std::int64_t m = 0; m < mine.members; ++m) v.push_back(of(m).data[i]);
                reduced.data[i] = simulate::combine(mine.reduce, v);
            }
        block got;
        switch (mine.kind) {
            case collective_kind::slice:
            case collective_kind::reduce_scatter: got = part(reduced, mine.member); break;
            case collective_kind::all_reduce: got = reduced; break;
            case collective_kind::permute:
                got = of(mine.receive_from);
                CHECK(x[static_cast<std::size_t>(members[static_cast<std::size_t>(mine.receive_from)])].send_to == mine.member);
                break;
            case collective_kind::all_gather:
            case collective_kind::all_to_all:
                for (std::int64_t m = 0; m < mine.members; ++m) {
                    auto const piece = mine.kind == collective_kind::all_gather ? of(m) : part(of(m), mine.member);
                    got.sizes = piece.sizes;
                    got.data.insert(got.data.end(), piece.data.begin(), piece.data.end());
                }
                got.sizes.insert(got.sizes.begin(), mine.members);
                break;
        }
        result.push_back(rearranged(got, mine.unpack));
    }
    return result;
}

std::size_t check_all(device_mesh const& mesh, shape const& sizes, std::vector<layout> const& starts) {
    std::size_t steps = 0;
    std::mt19937 random(7);
    lattice_class const c{mesh, sizes, 4, {}};
    for (auto const& from : starts) {
        auto const before = simulate::distribute(mesh, from, sizes, random);
        lattice_class with = c;
        with.add_boundaries(from);
        for_each_transition(with, from, [&](transition&& t) {
            ++steps;
            auto const got = run(mesh, from, t, sizes, before);
            auto const want = simulate::execute(mesh, from, t, before).blocks;
            CHECK_MESSAGE(got == want, from.text(mesh), " by ", text_of(t, mesh), " to ", t.to.text(mesh));
            CHECK(simulate::is_right(mesh, t.to, sizes, got));
        });
    }
    return steps;
}

}  // namespace

TEST_CASE("every step between layouts without Partial moves what the yardstick moves, whole factors and cut orders included") {
    std::size_t steps = 0;
    for (auto const& [text, sizes] : {std::pair<char const*, shape>{"2", {4, 6}}, {"3", {6, 9}}, {"2x2", {16}}, {"2x2", {4, 8}},
                                      {"2x3", {12, 6}}, {"2x2x2", {16}}, {"2x2x2", {4, 8}}, {"4x2", {8, 16}}}) {
        auto const mesh = device_mesh::parse(text);
        steps += check_all(mesh, sizes, simulate::all_layouts(mesh, sizes));
    }
    CHECK(steps > 2000);
}

TEST_CASE("every step out of plain layouts with Partial of every kind gives a right state of the layout it reaches") {
    for (auto const kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        for (auto const& [text, sizes] : {std::pair<char const*, shape>{"2", {4, 6}}, {"2x3", {6, 12}}, {"2x2x2", {8, 4}}}) {
            auto const mesh = device_mesh::parse(text);
            CHECK(check_all(mesh, sizes, simulate::plain_layouts(mesh, sizes, {kind})) > 0);
        }
}
