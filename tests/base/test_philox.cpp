// SPDX-License-Identifier: BSL-1.0
// Random bits by number: the published vectors, and no two elements alike.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/base/philox.hpp>

#include <doctest/doctest.h>

#include <set>

using namespace cantle;

// The known answers of philox4x32 with ten rounds that Salmon et al. publish with their library Random123.
TEST_CASE("Philox4x32-10 gives the published answers") {
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == philox_words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
          philox_words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          philox_words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the bits of an element are one half of its block, and seed, draw and index all count, in both halves of 64 bits") {
    auto const w = philox4x32({5, 1, 7, 2}, {3, 4});
    std::uint64_t const seed = std::uint64_t{4} << 32 | 3, draw = std::uint64_t{2} << 32 | 7, pair = std::uint64_t{1} << 32 | 5;
    CHECK(random_bits(seed, draw, 2 * pair) == (std::uint64_t{w[0]} << 32 | w[1]));
    CHECK(random_bits(seed, draw, 2 * pair + 1) == (std::uint64_t{w[2]} << 32 | w[3]));
    std::set<std::uint64_t> all;
    for (std::uint64_t s : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32})
        for (std::uint64_t d : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32})
            for (std::uint64_t i = 0; i < 100; ++i) all.insert(random_bits(s, d, i));
    CHECK(all.size() == 900);
}
