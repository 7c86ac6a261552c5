// SPDX-License-Identifier: BSL-1.0
#pragma once
// What one mesh axis does to one tensor: Replicate, Shard(dim) or Partial(reduction). Rules speak of these; layouts are made of them.
#include <cantle/base/error.hpp>
#include <cantle/base/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cantle {

/// How partial values of the ranks of an axis combine to the value meant.
enum class reduction : std::uint8_t { sum, avg, max, min };

constexpr std::string_view to_string(reduction r) {
    constexpr std::string_view names[] = {"sum", "avg", "max", "min"};
    return static_cast<std::size_t>(r) < std::size(names) ? names[static_cast<std::size_t>(r)] : "?";
}
/// Sum and avg commute; other pairs of different kinds do not, and a tensor never holds both.
constexpr bool commute(reduction a, reduction b) {
    auto const linear = [](reduction r) { return r == reduction::sum || r == reduction::avg; };
    return a == b || (linear(a) && linear(b));
}

enum class placement_kind : std::uint8_t { replicate, shard, partial };

/// The placement of one axis. Shard(dim, outer): `outer` is the extent of the *local* dim that stays whole outside the cut; 1 for a plain
/// shard, above 1 where a flatten put a whole dim in front of a cut one ([2][8] flattened and cut at 8: outer 2; DTensor's _StridedShard).
struct placement {
    placement_kind kind = placement_kind::replicate;
    std::uint8_t dim = 0;
    reduction reduce = reduction::sum;
    std::int64_t outer = 1;

    static constexpr placement replicate() { return {}; }
    /// Throws bad_layout for a dim that no tensor has (64 and above).
    static constexpr placement shard(std::size_t dim, std::int64_t outer = 1) {
        if (dim >= most_dims)
            throw error(error_code::bad_layout, "shard of dim " + std::to_string(dim), "no tensor has that dim", "cut a dim that exists");
        return {placement_kind::shard, static_cast<std::uint8_t>(dim), reduction::sum, outer};
    }
    static constexpr placement partial(reduction r = reduction::sum) { return {placement_kind::partial, 0, r, 1}; }
    constexpr bool is_replicate() const { return kind == placement_kind::replicate; }
    constexpr bool is_shard() const { return kind == placement_kind::shard; }
    constexpr bool is_shard(std::size_t d) const { return kind == placement_kind::shard && dim == d; }
    constexpr bool is_partial() const { return kind == placement_kind::partial; }
    constexpr bool operator==(placement const&) const = default;
};

/// "R", "S1", "S1*2" (outer 2), "P" for Partial(sum), "P(avg)".
inline std::string to_string(placement p) {
    switch (p.kind) {
        case placement_kind::replicate: return "R";
        case placement_kind::shard: return "S" + std::to_string(p.dim) + (p.outer > 1 ? "*" + std::to_string(p.outer) : "");
        case placement_kind::partial: return p.reduce == reduction::sum ? "P" : "P(" + std::string(to_string(p.reduce)) + ")";
    }
    return "?";
}

/// Inverse of to_string for R, S<d>, P, P(kind); nothing for other text.
inline std::optional<placement> parse_placement(std::string_view s) {
    if (s == "R") return placement::replicate();
    if (s == "P") return placement::partial();
    for (auto r : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        if (s == "P(" + std::string(to_string(r)) + ")") return placement::partial(r);
    if (s.size() >= 2 && s.size() <= 3 && s[0] == 'S') {
        std::size_t d = 0;
        for (char c : s.substr(1)) {
            if (c < '0' || c > '9') return std::nullopt;
            d = d * 10 + static_cast<std::size_t>(c - '0');
        }
        if (d < most_dims) return placement::shard(d);
    }
    return std::nullopt;
}

}  // namespace cantle
