// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random bits as a function of numbers: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).
// There is no state to hand on, so ranks draw any element of any tensor by its global index, in any order and any layout.
#include <array>
#include <cstdint>

namespace cantle {

using philox_words = std::array<std::uint32_t, 4>;

/// 128 bits for a counter and a key; ten rounds.
constexpr philox_words philox4x32(philox_words c, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        std::uint64_t const a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
        c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return c;
}

/// The 64 bits of elements 2 * pair and 2 * pair + 1 of draw number `draw` in a run with that seed. Key: the seed; counter: pair and draw.
constexpr std::array<std::uint64_t, 2> random_pair(std::uint64_t seed, std::uint64_t draw, std::uint64_t pair) {
    auto const low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    auto const high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    auto const w = philox4x32({low(pair), high(pair), low(draw), high(draw)}, {low(seed), high(seed)});
    return {std::uint64_t{w[0]} << 32 | w[1], std::uint64_t{w[2]} << 32 | w[3]};
}
/// The 64 bits of one element, by its global index.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t draw, std::uint64_t index) {
    return random_pair(seed, draw, index / 2)[index % 2];
}

}  // namespace cantle
