// SPDX-License-Identifier: BSL-1.0
// Every step out of every layout of small tensors, run as ranks run it (spread, pack, collective on buffers, unpack, close), against the
// mesh tests' own yardstick, which knows nothing of packing. Padding is filled with a number that no tensor has: whoever reads it is seen.
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
constexpr std::int64_t padding = 1234567;  // no multiple of 5040, as all values are

/// Elements [begin, begin + size) of dim d of the one are those [at, at + size) of the other.
void copy_part(block const& from, std::size_t d, std::int64_t begin, block& to, std::int64_t at, std::int64_t size) {
    std::int64_t before = 1, behind = 1;
    for (std::size_t i = 0; i < from.sizes.size(); ++i) (i < d ? before : behind) *= i == d ? 1 : from.sizes[i];
    for (std::int64_t o = 0; o < before; ++o)
        for (std::int64_t k = 0; k < size * behind; ++k)
            to.data.at(static_cast<std::size_t>((o * to.sizes[d] + at) * behind + k)) =
                from.data.at(static_cast<std::size_t>((o * from.sizes[d] + begin) * behind + k));
}
block resized(block const& b, std::size_t d, std::int64_t extent) {
    block out{b.sizes, {}};
    out.sizes[d] = extent;
    out.data.assign(static_cast<std::size_t>(element_count(out.sizes)), padding);
    return out;
}
block spread(block const& b, dim_spacing const& s) {
    REQUIRE(s.is_sound());
    REQUIRE(b.sizes[s.dim] == s.closed_extent());
    auto out = resized(b, s.dim, s.extent);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < s.sizes.size(); at += s.sizes[i++]) copy_part(b, s.dim, at, out, s.begins[i], s.sizes[i]);
    return out;
}
block closed(block const& b, dim_spacing const& s) {
    REQUIRE(s.is_sound());
    REQUIRE(b.sizes[s.dim] == s.extent);
    auto out = resized(b, s.dim, s.closed_extent());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < s.sizes.size(); at += s.sizes[i++]) copy_part(b, s.dim, s.begins[i], out, at, s.sizes[i]);
    return out;
}

block part(block const& b, std::int64_t i) {
    REQUIRE(b.sizes[0] > 0);
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
        auto b = before[static_cast<std::size_t>(r)];
        CHECK(b.sizes == x.back().before);
        for (auto const& s : x.back().spread) b = spread(b, s);
        packed.push_back(rearranged(b, x.back().pack));
    }
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const& mine = x[static_cast<std::size_t>(r)];
        auto const members = simulate::group(mesh, r, mine.axes);
        REQUIRE(members[static_cast<std::size_t>(mine.member)] == r);
        auto const of = [&](std::int64_t m) -> block const& {
            return packed[static_cast<std::size_t>(members[static_cast<std::size_t>(m)])];
        };
        for (std::int64_t m = 0; m < mine.members; ++m) {
            CHECK(rank_of_member(mesh, mine.axes, r, m) == members[static_cast<std::size_t>(m)]);
            if (mine.communicates()) REQUIRE(of(m).sizes == mine.sent());
        }
        block reduced = of(mine.member);
        if (mine.kind == collective_kind::all_reduce || mine.kind == collective_kind::reduce_scatter)
            for (std::size_t i = 0; i < reduced.data.size(); ++i) {
                simulate::values v;
                for (std::int64_t m = 0; m < mine.members; ++m) v.push_back(of(m).data[i]);
                reduced.data[i] = simulate::combine(mine.reduce, v);
            }
        block got;
        switch (mine.kind) {
            case collective_kind::slice: got = mine.takes_part() ? part(reduced, mine.member) : reduced; break;
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
        if (mine.communicates()) CHECK(got.sizes == mine.received());
        got = rearranged(got, mine.unpack);
        for (auto const& s : mine.close) got = closed(got, s);
        CHECK(got.sizes == mine.after);
        result.push_back(std::move(got));
    }
    return result;
}

/// The buffers of every rank against the price of the step: equal on rank 0, which holds the largest pieces, nowhere more.
void check_price(device_mesh const& mesh, layout const& from, transition const& t, lattice_class const& c) {
    auto const call = call_of(c, from, t);
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const x = transfer_of(mesh, from, t, c.sizes, r);
        auto const sent = element_count(x.sent()) * c.element_bytes;
        auto const received = element_count(x.kind == collective_kind::slice ? x.after : x.received()) * c.element_bytes;
        CHECK(sent <= call.bytes_before);
        CHECK(received <= call.bytes_after);
        if (r == 0) CHECK(sent == call.bytes_before);
        if (r == 0) CHECK(received == call.bytes_after);
    }
}

std::size_t check_all(device_mesh const& mesh, shape const& sizes, std::vector<layout> const& starts,
                      shard_policy policy = shard_policy::even) {
    std::size_t steps = 0;
    std::mt19937 random(7);
    lattice_class const c{mesh, sizes, 4, {}, policy};
    for (auto const& from : starts) {
        auto const before = simulate::distribute(mesh, from, sizes, random);
        lattice_class with = c;
        with.add_boundaries(from);
        for_each_transition(with, from, [&](transition&& t) {
            ++steps;
            CAPTURE(mesh.text());
            CAPTURE(shape_text(sizes));
            check_price(mesh, from, t, with);
            auto const got = run(mesh, from, t, sizes, before);
            auto const want = simulate::execute(mesh, from, t, before, sizes).blocks;
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

//  [1] .. [9] and pairs of them: pieces short, nested, empty, in front of and behind a dim that divides
TEST_CASE("every step between uneven layouts moves what the yardstick moves, in buffers of the priced size, and nobody reads padding") {
    std::size_t steps = 0;
    for (auto const* text : {"2", "3", "4", "2x2", "2x3", "2x2x2"}) {
        auto const mesh = device_mesh::parse(text);
        bool const many = mesh.dims() > 2;
        for (std::int64_t n = 1; n <= 9; ++n) {
            std::vector<shape> shapes{{n}, {n, 6}, {5, n}};
            if (many) shapes = {{n}, {n, 5}};
            if (mesh.dims() == 1) shapes.push_back({2, n, 3});
            for (auto const& sizes : shapes)
                steps += check_all(mesh, sizes, simulate::plain_layouts(mesh, sizes, {reduction::sum}, shard_policy::uneven),
                                   shard_policy::uneven);
        }
    }
    MESSAGE(steps, " steps");
    CHECK(steps > 3000);
}

TEST_CASE("every kind of Partial reduces into uneven pieces: short ones, nested ones and an empty one") {
    for (auto const kind : {reduction::avg, reduction::max, reduction::min})
        for (auto const& [text, sizes] : {std::pair<char const*, shape>{"4", {5, 2}}, {"2x3", {7, 3}}, {"2x2", {5}}, {"2x2x2", {9}}}) {
            auto const mesh = device_mesh::parse(text);
            CHECK(check_all(mesh, sizes, simulate::plain_layouts(mesh, sizes, {kind}, shard_policy::uneven), shard_policy::uneven) > 0);
        }
}

// [5] on 4 ranks: 2 2 1 0. What each member sends and keeps.
TEST_CASE("five rows on four ranks: a gather brings four rooms of two, the last two rows of padding are left out") {
    auto const mesh = device_mesh::parse("4");
    auto const cut = layout::parse(mesh, "S0");
    transition gather{collective_kind::all_gather, {0}, 0, 0, reduction::sum, layout(1)};
    auto const last = transfer_of(mesh, cut, gather, {5, 3}, 3);
    CHECK(last.before == shape{0, 3});
    CHECK(last.spread == std::vector<dim_spacing>{{0, 2, {0}, {0}}});
    CHECK(last.sent() == shape{2, 3});
    CHECK(last.received() == shape{4, 2, 3});
    CHECK(last.unpack.result == shape{8, 3});
    CHECK(last.close == std::vector<dim_spacing>{{0, 8, {0, 2, 4, 6}, {2, 2, 1, 0}}});
    CHECK(last.after == shape{5, 3});
    transition slice{collective_kind::slice, {0}, 0, 0, reduction::sum, cut};
    auto const third = transfer_of(mesh, layout(1), slice, {5, 3}, 2);
    CHECK(third.close == std::vector<dim_spacing>{{0, 5, {4}, {1}}});
    CHECK(third.spread.empty());
    CHECK(third.after == shape{1, 3});
}
