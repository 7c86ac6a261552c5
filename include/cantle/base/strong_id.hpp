// SPDX-License-Identifier: BSL-1.0
#pragma once
// Integer ids of different things do not convert into each other.
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace cantle {

/// An index with a type of its own. `Tag` is never completed. Default: none().
template <class Tag>
struct strong_id {
    using value_type = std::uint32_t;
    value_type value = std::numeric_limits<value_type>::max();

    constexpr strong_id() = default;
    constexpr explicit strong_id(value_type v) : value(v) {}
    static constexpr strong_id none() { return {}; }
    constexpr bool has_value() const { return value != std::numeric_limits<value_type>::max(); }
    constexpr auto operator<=>(strong_id const&) const = default;
};

/// A mesh axis, counted from the outermost.
using axis_id = strong_id<struct axis_tag>;

}  // namespace cantle

template <class Tag>
struct std::hash<cantle::strong_id<Tag>> {
    std::size_t operator()(cantle::strong_id<Tag> id) const noexcept { return id.value; }
};
