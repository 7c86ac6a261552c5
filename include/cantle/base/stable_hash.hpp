// SPDX-License-Identifier: BSL-1.0
#pragma once
// A hash whose value is the same on every machine, compiler and run: plans carry it to recognise their graph, rules and costs.
// Two 64-bit FNV-1a lanes with different offsets and a splitmix64 finaliser. Not cryptographic: it tells versions apart, not attackers.
// FNV: http://www.isthe.com/chongo/tech/comp/fnv/ ; splitmix64: Steele, Lea, Flood, OOPSLA 2014.
#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace cantle {

/// 128 bits, printed as 32 hex digits.
struct digest {
    std::uint64_t high = 0, low = 0;
    constexpr auto operator<=>(digest const&) const = default;
    std::string hex() const {
        static constexpr char digits[] = "0123456789abcdef";
        std::string s(32, '0');
        for (int i = 0; i < 16; ++i) {
            s[static_cast<std::size_t>(i)] = digits[(high >> (60 - 4 * i)) & 15];
            s[static_cast<std::size_t>(16 + i)] = digits[(low >> (60 - 4 * i)) & 15];
        }
        return s;
    }
};

/// Feed values in a fixed order, then take the digest. Strings and ranges carry their length, so that neighbours cannot merge.
class stable_hasher {
public:
    stable_hasher& add(std::integral auto v) { return word(static_cast<std::uint64_t>(v)); }
    stable_hasher& add(double v) { return word(std::bit_cast<std::uint64_t>(v == 0.0 ? 0.0 : v)); }
    stable_hasher& add(std::string_view s) {
        word(s.size());
        for (char c : s) byte(static_cast<unsigned char>(c));
        return *this;
    }
    stable_hasher& add(char const* s) { return add(std::string_view(s)); }
    stable_hasher& add(digest d) { return word(d.high).word(d.low); }
    template <class E> requires std::is_enum_v<E>
    stable_hasher& add(E e) { return word(static_cast<std::uint64_t>(e)); }
    template <class Range>
    requires requires(Range const& r) {
        r.begin();
        r.end();
        r.size();
    } &&(!std::convertible_to<Range, std::string_view>)stable_hasher& add(Range const& r) {
        word(r.size());
        for (auto const& x : r) add(x);
        return *this;
    }
    digest finish() const { return {mix(a_ ^ (b_ << 1)), mix(b_ + 0x9e3779b97f4a7c15ULL)}; }

private:
    static constexpr std::uint64_t prime = 0x100000001b3ULL;
    std::uint64_t a_ = 0xcbf29ce484222325ULL, b_ = 0x84222325cbf29ce4ULL;
    void byte(unsigned char c) { a_ = (a_ ^ c) * prime; b_ = (b_ ^ static_cast<unsigned char>(c + 0x5b)) * prime; }
    stable_hasher& word(std::uint64_t w) {
        for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(w >> (8 * i)));
        return *this;
    }
    static constexpr std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
};

}  // namespace cantle
