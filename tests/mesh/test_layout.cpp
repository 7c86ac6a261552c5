// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/layout.hpp>

#include "simulate.hpp"

#include <map>
#include <string>

using namespace cantle;

namespace {

struct instance {
    char const* mesh;
    shape sizes;
};
// Small enough that every layout there is can be listed; primes, size-1 dims and axes, dims that no axis divides.
std::vector<instance> const instances{
    {"2", {8}}, {"3", {6, 9}}, {"2x2", {8}}, {"2x2", {4, 4}}, {"2x3", {12}}, {"2x3", {6, 6}}, {"3x2", {36}}, {"2x2x2", {8, 2}},
    {"2x2x2", {16}}, {"4x2", {16}}, {"2x1x2", {8, 3}}, {"2x2", {1, 8, 5}}, {"4x8", {32, 4}}, {"2x2", {}}, {"6x2", {24}}, {"2x2x3", {24}}};

int parse_error(device_mesh const& mesh, std::string const& text) {
    try {
        layout::parse(mesh, text);
    } catch (error const& e) {
        CHECK(!e.remedy().empty());
        return e.number();
    }
    return 0;
}

/// Flattened global positions that each rank holds.
std::vector<simulate::values> pieces(device_mesh const& mesh, char const* text, shape const& sizes) {
    auto const l = layout::parse(mesh, text);
    REQUIRE(l.fits(sizes));
    return simulate::distribution(mesh, l, sizes);
}

/// What each rank holds once `axis` cuts the local dim `dim` of `l` behind `outer` local elements; empty where it does not divide.
std::vector<simulate::values> cut_locally(device_mesh const& mesh, layout const& l, shape const& sizes, std::size_t axis, std::size_t dim,
                                          std::int64_t outer) {
    std::vector<simulate::values> all;
    auto const n = mesh.size(axis);
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const b = simulate::held(mesh, l, sizes, r);
        if (b.sizes[dim] % (outer * n) != 0) return {};
        all.push_back(simulate::take(b, dim, outer, n, simulate::coordinate(mesh, r, axis)).data);
    }
    return all;
}

}  // namespace

TEST_CASE("two layouts hold the same data on all ranks exactly when they compare equal") {
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        std::map<std::vector<simulate::values>, layout> seen;
        for (auto const& l : simulate::all_layouts(mesh, i.sizes)) {
            auto const other = seen.try_emplace(simulate::distribution(mesh, l, i.sizes), l);
            CHECK_MESSAGE(other.second, mesh.text() << ": " << l.text(mesh) << " and " << other.first->second.text(mesh));
        }
        CHECK(seen.size() >= 1);
    }
}

// From every layout, in every way: cut, un-cut again, in any order. Equal data must mean equal values of `layout`.
TEST_CASE("a form reached by random cuts and releases is the only one of its distribution") {
    unsigned const seed = 11;
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    for (auto const& i : instances) {
        if (i.sizes.empty()) continue;
        auto const mesh = device_mesh::parse(i.mesh);
        std::map<std::vector<simulate::values>, layout> known;
        for (auto const& l : simulate::all_layouts(mesh, i.sizes)) known.emplace(simulate::distribution(mesh, l, i.sizes), l);
        layout l(mesh.dims());
        for (int step = 0; step < 1000; ++step) {
            auto const axis = random() % mesh.dims();
            auto const dim = random() % i.sizes.size();
            if (random() % 3 == 0) l.release(axis);
            else l.apply(axis, mesh.size(axis), placement::shard(dim, 1 + static_cast<std::int64_t>(random() % 4)), i.sizes);
            auto const at = known.find(simulate::distribution(mesh, l, i.sizes));
            REQUIRE(at != known.end());
            REQUIRE(at->second == l);
        }
    }
}

TEST_CASE("apply cuts the local dim where the placement says, and refuses exactly what no layout can say") {
    std::size_t taken = 0, refused = 0;
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        auto const all = simulate::all_layouts(mesh, i.sizes);
        std::map<std::vector<simulate::values>, layout> known;
        for (auto const& l : all) known.emplace(simulate::distribution(mesh, l, i.sizes), l);
        for (auto const& l : all)
            for (std::size_t axis = 0; axis < mesh.dims(); ++axis)
                for (std::size_t dim = 0; dim < i.sizes.size(); ++dim)
                    for (std::int64_t outer = 1; outer <= i.sizes[dim] + 1; ++outer) {
                        if (mesh.size(axis) == 1) continue;
                        layout cut = l;
                        bool const ok = cut.apply(axis, mesh.size(axis), placement::shard(dim, outer), i.sizes);
                        auto const wanted = cut_locally(mesh, l, i.sizes, axis, dim, outer);
                        bool const possible = l.is_free(axis) && !wanted.empty() && known.count(wanted) > 0;
                        std::string const line = mesh.text() + " " + l.text(mesh) + " axis " + std::to_string(axis) + " by S" +
                                                 std::to_string(dim) + "*" + std::to_string(outer);
                        if (ok != possible || cut != (possible ? known.at(wanted) : l)) FAIL_CHECK(line);
                        if (ok) {
                            CHECK_MESSAGE(cut.fits(i.sizes), line);
                            CHECK_MESSAGE(cut.on(axis).is_shard(dim), line);
                            CHECK_MESSAGE(cut.cut_count() == l.cut_count() * mesh.size(axis), line);
                            cut.release(axis);
                            CHECK_MESSAGE(cut == l, line);
                        }
                        ++(ok ? taken : refused);
                    }
    }
    CHECK(taken > 500);
    CHECK(refused > 500);
}

TEST_CASE("local shapes, cut counts and bytes are those of the pieces that ranks hold") {
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        for (auto const& l : simulate::all_layouts(mesh, i.sizes)) {
            REQUIRE(l.fits(i.sizes));
            for (std::int64_t r = 0; r < mesh.device_count(); ++r)
                CHECK(l.local_shape(i.sizes) == simulate::held(mesh, l, i.sizes, r).sizes);
            CHECK(element_count(i.sizes) == l.cut_count() * element_count(l.local_shape(i.sizes)));
        }
    }
}

TEST_CASE("text and parse are inverse for every layout, with every Partial on its free axes") {
    std::size_t count = 0;
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        std::map<std::string, layout> seen;
        for (auto const& l : simulate::all_layouts(mesh, i.sizes))
            for (auto const& kinds :
                 {std::vector<reduction>{}, {reduction::sum}, {reduction::avg, reduction::sum}, {reduction::max}, {reduction::min}}) {
                layout p = l;
                std::size_t used = 0;
                for (std::size_t a = 0; a < mesh.dims() && used < kinds.size(); ++a)
                    if (p.apply(a, mesh.size(a), placement::partial(kinds[used]), i.sizes) && mesh.size(a) > 1) ++used;
                if (used < kinds.size()) continue;
                auto const text = p.text(mesh);
                CHECK(layout::parse(mesh, text) == p);
                CHECK_MESSAGE(seen.try_emplace(text, p).second, text);
                ++count;
            }
    }
    CHECK(count > 1000);
}

TEST_CASE("an axis of size 1 is Replicate, whatever it is asked to be (case B11)") {
    auto const mesh = device_mesh::parse("4x1", "dp,tp");
    CHECK(layout::parse(mesh, "S0,S1") == layout::parse(mesh, "S0,R"));
    CHECK(layout::parse(mesh, "S0,P") == layout::parse(mesh, "S0,R"));
    CHECK(layout::parse(mesh, "S0,S0; d0=tp>dp") == layout::parse(mesh, "S0,R"));
    CHECK(layout::parse(mesh, "S0,S0; d0=2>tp>2>dp") == layout::parse(mesh, "S0,R; d0=4>dp"));
    layout l(2);
    CHECK(l.apply(1, 1, placement::shard(1), {8, 8}));
    CHECK(l.apply(1, 1, placement::partial(reduction::max), {8, 8}));
    CHECK(l == layout(2));
    CHECK_FALSE(l.apply(1, 1, placement::shard(2), {8, 8}));
    l.push_cut(1, 1, 0, 4);
    CHECK(l == layout(2));
}

TEST_CASE("Partial of kinds that do not commute is refused") {
    for (auto a : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        for (auto b : {reduction::sum, reduction::avg, reduction::max, reduction::min}) {
            bool const linear = (a == reduction::sum || a == reduction::avg) && (b == reduction::sum || b == reduction::avg);
            layout l(2);
            CHECK(l.apply(0, 2, placement::partial(a), {4}));
            CHECK(l.apply(1, 2, placement::partial(b), {4}) == (linear || a == b));
            auto const text = to_string(placement::partial(a)) + "," + to_string(placement::partial(b));
            CHECK(parse_error(device_mesh::parse("2x2"), text) == (linear || a == b ? 0 : 206));
        }
}

TEST_CASE("an axis that is taken, a dim that is not there and an outer factor below 1 are refused without change") {
    auto l = layout::parse(device_mesh::parse("2x2"), "S0,P");
    auto const before = l;
    for (auto p : {placement::shard(0), placement::shard(1), placement::partial()})
        for (std::size_t a : {0u, 1u}) CHECK_FALSE(l.apply(a, 2, p, {8, 8}));
    layout free(2);
    for (auto p : {placement::shard(2), placement::shard(63), placement::shard(0, 0), placement::shard(0, -1),
                   placement::shard(0, INT64_MIN)})
        CHECK_FALSE(free.apply(0, 2, p, {8, 8}));
    CHECK_FALSE(free.apply(0, 2, placement::shard(0), {0, 8}));
    CHECK_FALSE(free.apply(0, 2, placement::shard(0, INT64_MAX), {8, 8}));
    CHECK(l == before);
    CHECK(free == layout(2));
}

TEST_CASE("a layout fits a tensor when all its dims exist and are divided evenly") {
    auto const mesh = device_mesh::parse("2x3");
    auto const fits = [&](char const* text, shape const& sizes) { return layout::parse(mesh, text).fits(sizes); };
    CHECK(fits("S0,S0", {6}));
    CHECK(fits("S0,S0; d0=2>a0>a1", {12}));
    CHECK_FALSE(fits("S0,S0; d0=2>a0>a1", {6}));
    CHECK_FALSE(fits("S0,S0", {8}));
    CHECK_FALSE(fits("S0,S0", {1}));
    CHECK_FALSE(fits("S1,R", {6}));
    CHECK_FALSE(fits("S0,R", {}));
    CHECK_FALSE(fits("S0,R", {0}));
    CHECK(fits("R,P", {}));
    CHECK(fits("R,S1", {0, 3}));
    CHECK_FALSE(fits("S0,R; d0=1000000000000>a0", {8}));
}

TEST_CASE("text that is no layout is error 206, an unknown axis 203") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    for (auto const* text :
         {"", ",", "S0", "S0,R,R", "S,R", "R,S-1", "s0,R", "R,Q", "P(),R", "P(prod),R", "P(sum,R", "S0 R", "S0,R;", ";", "S0,R;;", "S0,R; ",
          "S0,R; d0", "S0,R; d0=", "S0,R; d=dp", "S0,R; dx=dp", "S0,R; 0=dp", "S0,R; d0=dp=dp", "S0,R; d1=dp", "S0,R; d0=tp",
          "S0,S0; d0=dp",
          "S0,S0; d0=dp>dp", "S0,S0; d0=tp>dp>tp",
          "S0,S0; d0=tp>dp; d0=dp>tp", "R,R; d0=4", "S0,S1; d0=dp>tp", "S100,R", "S1*2,R",
          "S0,R; d0=999999999999999>999999999999999>dp", "S0,R; d0=dp>999999999999999>999999999999999",
          "S0,R; d0=>dp", "S0,R; d0=dp>", "S0,R; d0=0>dp", "S0,R; d0=-1>dp", "S0,R; d0=04>dp",
          "S0,R; d0=1.5>dp", "S0,R; d0=4294967296>4294967296>dp",
          "S0,R; d0=99999999999999999999999999>dp"}) {
        CHECK_MESSAGE(parse_error(mesh, text) == 206, std::string(text));
    }
    for (auto const* text : {"S0,R; d0=xx", "S0,R; d0=DP", "S0,R; d0=4>d p", "S0,R; d0=dp,tp"})
        CHECK_MESSAGE(parse_error(mesh, text) == 203, std::string(text));
    CHECK(parse_error(mesh, " S0 , P(avg) ") == 0);
    CHECK(parse_error(mesh, "S0,S0;d0= tp > 4 > dp") == 0);
    CHECK(layout::parse(mesh, "P(sum),R") == layout::parse(mesh, "P,R"));
}

TEST_CASE("random text is a layout that round-trips or a numbered error") {
    unsigned const seed = 3;
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    auto const mesh = device_mesh::parse("2x3", "dp,tp");
    std::vector<std::string> const words{"S0", "S1", "R", "P", "P(avg)",
                                         ",", ";", " d0=", "d1=", "dp", "tp", ">", "2", "999999999999999", "1", " ", "x", "\xff"};
    std::size_t good = 0, bad = 0;
    for (int i = 0; i < 40000; ++i) {
        std::string text;
        if (i % 2) text = words[random() % 4] + "," + words[random() % 4] + (i % 4 == 1 ? "" : "; d0=");
        for (auto n = random() % 6; n > 0; --n) text += words[random() % words.size()];
        int const e = parse_error(mesh, text);
        CHECK((e == 0 || e == 206 || e == 203));
        ++(e == 0 ? good : bad);
        if (e == 0) {
            auto const l = layout::parse(mesh, text);
            CHECK(layout::parse(mesh, l.text(mesh)) == l);
            CHECK(l.fits({7, 5}) == l.digits().empty());
        }
    }
    CHECK(good > 500);
    CHECK(bad > 500);
}

TEST_CASE("equal layouts have equal hashes, others other ones") {
    std::map<std::string, layout> seen;
    auto const mesh = device_mesh::parse("2x2x2");
    for (auto const& l : simulate::all_layouts(mesh, {16, 4}))
        for (int partial = 0; partial < 2; ++partial) {
            layout p = l;
            if (partial && !p.apply(2, 2, placement::partial(), {16, 4})) continue;
            stable_hasher h;
            p.feed(h);
            CHECK(seen.try_emplace(h.finish().hex(), p).first->second == p);
        }
    CHECK(seen.size() > 100);
}

TEST_CASE("mesh order is told from other orders and from whole factors") {
    auto const mesh = device_mesh::parse("2x2x2");
    for (auto const* text : {"R,R,R", "S0,S0,S0", "S1,S0,S1", "S0,P,S0"}) CHECK(layout::parse(mesh, text).in_mesh_order());
    for (auto const* text : {"S0,S0,R; d0=a1>a0", "S0,R,R; d0=2>a0", "S1,S0,S0; d0=a2>a1", "S0,R,S0; d0=a0>4>a2"})
        CHECK_FALSE(layout::parse(mesh, text).in_mesh_order());
}

// [12,8] S1 over 4 as [16,6]: rank 0 holds columns 0 and 1 of 12 rows, no cut of 16 or 6.
TEST_CASE("A1: the shards of x[12,8] S1 are no layout of the view [16,6]") {
    auto const mesh = device_mesh::parse("4");
    auto const x = pieces(mesh, "S1", {12, 8});
    for (auto const& l : simulate::all_layouts(mesh, {16, 6})) CHECK(simulate::distribution(mesh, l, {16, 6}) != x);
    // A2, second half: 6 ranks do not even divide 8 columns.
    CHECK_FALSE(layout::parse(device_mesh::parse("6"), "S1").fits({12, 8}));
}

TEST_CASE("A2: x[4,4,4] (S1,R) as [8,8] is a strided shard of dim 0, rank 0 holds rows 0, 2, 4, 6") {
    auto const mesh = device_mesh::parse("2x3", "dp,tp");
    layout l(2);
    REQUIRE(l.apply(0, 2, placement::shard(0, 4), {8, 8}));
    CHECK(l.text(mesh) == "S0,R; d0=4>dp");
    CHECK(simulate::distribution(mesh, l, {8, 8}) == pieces(mesh, "S1,R", {4, 4, 4}));
    CHECK(simulate::held_indices(mesh, l, 0, 8, 0) == simulate::values{0, 2, 4, 6});
    CHECK(pieces(mesh, "S0,R", {8, 8}) != pieces(mesh, "S1,R", {4, 4, 4}));
}

TEST_CASE("A4: [2,8] (S1,S1) flattened and split again holds the same data under one flat layout") {
    auto const mesh = device_mesh::parse("2x2", "cp,sp");
    CHECK(pieces(mesh, "S0,S0; d0=2>cp>sp", {16, 3}) == pieces(mesh, "S1,S1", {2, 8, 3}));
    CHECK(pieces(mesh, "S0,S0", {16, 3}) != pieces(mesh, "S1,S1", {2, 8, 3}));
    layout flat(2);
    CHECK(flat.apply(0, 2, placement::shard(0, 2), {16, 3}));
    CHECK(flat.apply(1, 2, placement::shard(0, 2), {16, 3}));
    CHECK(flat == layout::parse(mesh, "S0,S0; d0=2>cp>sp"));
}

TEST_CASE("A5: x[6,256] is not cut over 4 ranks, and 1536 elements over 4 are other pieces than rows") {
    auto const mesh = device_mesh::parse("4");
    CHECK_FALSE(layout::parse(mesh, "S0").fits({6, 256}));
    layout l(1);
    CHECK_FALSE(l.apply(0, 4, placement::shard(0), {6, 256}));
    CHECK(layout::parse(mesh, "S0").local_shape({1536}) == shape{384});
}

TEST_CASE("E1: [16,2048] (S0,S1) flattened is dp 4 tp: four runs of 256 rows at stride 2048 on each rank") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    layout flat(2);
    REQUIRE(flat.apply(0, 4, placement::shard(0), {32768, 8}));
    REQUIRE(flat.apply(1, 8, placement::shard(0, 4), {32768, 8}));
    CHECK(flat.text(mesh) == "S0,S0; d0=dp>4>tp");
    CHECK(flat != layout::parse(mesh, "S0,S0"));
    CHECK(flat != layout::parse(mesh, "S0,S0; d0=tp>dp"));
    CHECK(simulate::distribution(mesh, flat, {32768}) == pieces(mesh, "S0,S1", {16, 2048}));
    CHECK(flat.local_shape({32768, 8}) == shape{1024, 8});
    auto const rows = simulate::held_indices(mesh, flat, 0, 32768, 9);  // dp 1, tp 1
    CHECK(rows[0] == 4 * 2048 + 256);
    CHECK(rows[255] == 4 * 2048 + 511);
    CHECK(rows[256] == 5 * 2048 + 256);
}

TEST_CASE("E2: [16] (S0,S0) is [2,8] (S0,S1), and (R,S1) flattened keeps a factor 2 that (S0,S1) does not have") {
    auto const mesh = device_mesh::parse("2x2", "a,b");
    CHECK(pieces(mesh, "S0,S0", {16}) == pieces(mesh, "S0,S1", {2, 8}));
    CHECK(pieces(mesh, "R,S0; d0=2>b", {16}) == pieces(mesh, "R,S1", {2, 8}));
    layout both(2), one(2);
    REQUIRE(both.apply(0, 2, placement::shard(0), {16}));
    REQUIRE(both.apply(1, 2, placement::shard(0), {16}));  // of the 2 in front nothing is left
    CHECK(both == layout::parse(mesh, "S0,S0"));
    REQUIRE(one.apply(1, 2, placement::shard(0, 2), {16}));
    CHECK(one == layout::parse(mesh, "R,S0; d0=2>b"));
    // Keeping the factor after axis a has cut it is other data.
    layout wrong = layout::parse(mesh, "S0,R");
    REQUIRE(wrong.apply(1, 2, placement::shard(0, 2), {16}));
    CHECK(simulate::distribution(mesh, wrong, {16}) != pieces(mesh, "S0,S1", {2, 8}));
}

TEST_CASE("a cut that straddles a boundary of digits has no layout") {
    auto const mesh = device_mesh::parse("2x4", "a,b");
    auto const l = layout::parse(mesh, "S0,R; d0=2>a");  // local dim [2][2] of 8: b would need both
    layout cut = l;
    CHECK_FALSE(cut.apply(1, 4, placement::shard(0), {8}));
    CHECK(cut == l);
    CHECK(cut.apply(1, 4, placement::shard(0, 2), {16}));
    CHECK(cut.text(mesh) == "S0,S0; d0=2>a>b");
}
