// SPDX-License-Identifier: BSL-1.0
#pragma once
// Units. Bytes and flops are counts; durations are microseconds, the unit of every published objective we compare with.
#include <compare>
#include <cstdint>

namespace cantle {

/// A number with a unit: sums and scalings stay in the unit, comparisons are those of the number.
template <class Tag, class Rep>
struct quantity {
    using rep = Rep;
    Rep count{};

    constexpr quantity() = default;
    constexpr explicit quantity(Rep c) : count(c) {}
    constexpr auto operator<=>(quantity const&) const = default;
    constexpr quantity& operator+=(quantity o) { count += o.count; return *this; }
    constexpr quantity& operator-=(quantity o) { count -= o.count; return *this; }
    friend constexpr quantity operator+(quantity a, quantity b) { return quantity(a.count + b.count); }
    friend constexpr quantity operator-(quantity a, quantity b) { return quantity(a.count - b.count); }
    friend constexpr quantity operator*(quantity a, Rep k) { return quantity(a.count * k); }
    friend constexpr quantity operator*(Rep k, quantity a) { return quantity(k * a.count); }
};

using bytes = quantity<struct bytes_tag, std::int64_t>;          ///< memory or message size
using flops = quantity<struct flops_tag, double>;                ///< floating point operations (a multiply-add counts two)
using microseconds = quantity<struct microseconds_tag, double>;  ///< a duration

}  // namespace cantle
