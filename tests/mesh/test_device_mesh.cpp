// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/device_mesh.hpp>

#include <algorithm>
#include <random>
#include <set>

using namespace cantle;

namespace {

/// The number of the error that `f` throws; 0 for none.
template <class F>
int error_of(F f) {
    try {
        f();
    } catch (error const& e) {
        CHECK(!e.remedy().empty());
        CHECK(!e.subject().empty());
        return e.number();
    }
    return 0;
}
int parse_error(std::string const& sizes, std::string const& names = {}) {
    return error_of([&] { device_mesh::parse(sizes, names); });
}

}  // namespace

// 4x8:  rank 0 1 ... 7 / 8 ... 15 / ..., dp is the row, tp the column.
TEST_CASE("axes are outermost first and ranks are row-major") {
    auto const m = device_mesh::parse("4x8", "dp,tp");
    CHECK(m.dims() == 2);
    CHECK(m.device_count() == 32);
    CHECK(m.size(0) == 4);
    CHECK(m.size(axis_id{1}) == 8);
    CHECK(m.stride(0) == 8);
    CHECK(m.stride(1) == 1);
    CHECK(m.coordinate(19, 0) == 2);
    CHECK(m.coordinate(19, 1) == 3);
    CHECK(m.find("tp").value == 1);
    CHECK(m.text() == "4x8 (dp, tp)");
}

TEST_CASE("coordinates and strides give every rank back, on meshes of every number of axes") {
    for (auto const* sizes : {"1", "7", "2x3", "4x1x2", "2x2x3x2", "1x1x1", "2x2x2x2x2", "2x1x2x1x2x1x2x3"}) {
        auto const m = device_mesh::parse(sizes);
        std::set<std::vector<std::int64_t>> seen;
        for (std::int64_t r = 0; r < m.device_count(); ++r) {
            std::int64_t back = 0;
            std::vector<std::int64_t> c;
            for (std::size_t a = 0; a < m.dims(); ++a) {
                c.push_back(m.coordinate(r, a));
                CHECK(c.back() < m.size(a));
                back += c.back() * m.stride(a);
            }
            CHECK(back == r);
            seen.insert(c);
        }
        CHECK(seen.size() == static_cast<std::size_t>(m.device_count()));
    }
}

TEST_CASE("axes without names are called a0, a1, ...") {
    auto const m = device_mesh::parse("2x3x4");
    CHECK(m.text() == "2x3x4 (a0, a1, a2)");
    CHECK(m == device_mesh::parse("2x3x4", "a0,a1,a2"));
    CHECK_FALSE(m == device_mesh::parse("2x3x4", "a0,a1,b"));
    CHECK_FALSE(m == device_mesh::parse("2x4x3"));
}

TEST_CASE("sizes that are no mesh are error 201") {
    for (auto const* text : {"", "x", "4x", "x4", "4xx8", "0", "4x0", "-4", "+4", "4.0", "4X8", " 4", "4 ", "4 x 8", "4*8", "a", "0x10",
                             "4,8", "99999999999999999999", "123456789", "16777217", "4096x4097", "2x8388609", "1x1x1x1x1x1x1x1x1",
                             "8388608x8388608x8388608x8388608x8388608x8388608x8388608x8388608"})
        CHECK_MESSAGE(parse_error(text) == 201, std::string(text));
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{}); }) == 201);
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"a", 0}}); }) == 201);
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"a", -2}, {"b", -2}}); }) == 201);
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"a", INT64_MAX}, {"b", INT64_MAX}}); }) == 201);
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"a", INT64_MIN}}); }) == 201);
    CHECK(parse_error("16777216") == 0);
    CHECK(parse_error("4096x4096") == 0);
    CHECK(parse_error("1x1x1x1x1x1x1x1") == 0);
    CHECK(device_mesh::parse("007").size(0) == 7);
}

TEST_CASE("names that do not fit are error 202") {
    for (auto const* names : {"dp", "dp,tp,pp", "dp,", ",tp", "dp,dp", "1p,tp", "dp,t-p", "dp,t p", "dp;tp", "d>p,tp", "dp,t=p",
                              "dp,\xc3\xa4"})
        CHECK_MESSAGE(parse_error("4x8", names) == 202, std::string(names));
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"", 2}}); }) == 202);
    CHECK(error_of([] { device_mesh(std::vector<mesh_axis>{{"a", 2}, {"b", 1}, {"a", 2}}); }) == 202);
    CHECK(parse_error("4x8", "_d9,T_p") == 0);
}

TEST_CASE("an unknown axis is error 203 and the message lists those there are") {
    auto const m = device_mesh::parse("4x8", "dp,tp");
    for (auto const* name : {"", "d", "DP", "dpp", "0"}) CHECK(error_of([&] { m.find(name); }) == 203);
    try {
        m.find("pp");
        FAIL("no error");
    } catch (error const& e) {
        CHECK(std::string(e.what()).find("dp, tp") != std::string::npos);
        CHECK(std::string(e.what()).find("'pp'") != std::string::npos);
    }
}

TEST_CASE("random text is a mesh or a numbered error, never something else") {
    unsigned const seed = 5;
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    std::string const letters = "0123456789xx,_ab-\x01\xff ";
    std::size_t good = 0, bad = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string sizes, names;
        for (auto n = random() % 8; n > 0; --n) sizes += letters[random() % (i % 2 ? 12 : letters.size())];
        for (auto n = random() % 5; n > 0; --n) names += letters[random() % letters.size()];
        int const e = parse_error(sizes, names);
        CHECK((e == 0 || e == 201 || e == 202));
        ++(e == 0 ? good : bad);
        if (e == 0) {
            auto const m = device_mesh::parse(sizes, names);
            CHECK(m.device_count() >= 1);
            CHECK(m.device_count() <= max_mesh_devices);
        }
    }
    CHECK(good > 100);
    CHECK(bad > 100);
}

TEST_CASE("the hash tells sizes, names and order apart") {
    std::set<std::string> seen;
    std::size_t count = 0;
    for (auto const& [sizes, names] : std::vector<std::pair<char const*, char const*>>{
             {"8", "a"}, {"8", "b"}, {"4x8", "a,b"}, {"8x4", "a,b"}, {"4x8", "b,a"}, {"4x8x1", "a,b,c"}, {"32", "ab"}}) {
        stable_hasher h;
        device_mesh::parse(sizes, names).feed(h);
        seen.insert(h.finish().hex());
        ++count;
    }
    CHECK(seen.size() == count);
}
