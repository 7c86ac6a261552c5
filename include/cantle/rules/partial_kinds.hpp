// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which kinds of Partial an element type can hold and which a change of type keeps. Adding up commutes with a cast only where no value is
// rounded (case E5); a maximum commutes with every cast that never turns an order round, so a rounding one too. Booleans hold max ("or")
// and min ("and"), no sums; complex numbers have no order.
#include <cantle/base/tensor_type.hpp>
#include <cantle/mesh/placement.hpp>

#include <array>

namespace cantle::rules {

/// A set of reductions, one bit each.
using kind_set = unsigned;
constexpr kind_set kind_bit(reduction r) { return 1u << static_cast<unsigned>(r); }
inline constexpr kind_set no_kinds = 0, averages = kind_bit(reduction::avg), sums = kind_bit(reduction::sum) | averages,
                          maxima = kind_bit(reduction::max), minima = kind_bit(reduction::min), extremes = maxima | minima,
                          all_kinds = sums | extremes;
inline constexpr std::array<reduction, 4> every_kind{reduction::sum, reduction::avg, reduction::max, reduction::min};

constexpr bool is_complex(dtype t) { return t == dtype::complex64 || t == dtype::complex128; }
constexpr bool is_integer(dtype t) { return !is_floating_point(t) && !is_complex(t) && t != dtype::boolean; }

namespace detail {
/// Significant bits, and how far the range reaches; a type holds all values of another that has no more of both.
struct precision { int bits, reach; };
constexpr precision precision_of(dtype t) {
    switch (t) {
        case dtype::float64: case dtype::complex128: return {53, 4};
        case dtype::float32: case dtype::complex64: return {24, 3};
        case dtype::bfloat16: return {8, 3};
        case dtype::float16: return {11, 2};
        case dtype::float8_e5m2: return {3, 2};
        case dtype::float8_e4m3fn: return {4, 1};
        case dtype::int64: return {63, 0};
        case dtype::int32: return {31, 0};
        case dtype::int16: return {15, 0};
        case dtype::uint8: return {8, 0};
        case dtype::int8: return {7, 0};
        case dtype::boolean: return {1, 0};
    }
    return {0, 0};
}
}  // namespace detail

/// True when every value of `from` is a value of `to`.
constexpr bool is_value_preserving(dtype from, dtype to) {
    if (from == to) return true;
    if (from == dtype::boolean) return true;
    if (to == dtype::boolean || (is_complex(from) && !is_complex(to)) || (!is_integer(from) && is_integer(to))) return false;
    if (from == dtype::int8 && to == dtype::uint8) return false;
    auto const a = detail::precision_of(from), b = detail::precision_of(to);
    return a.bits <= b.bits && a.reach <= b.reach;
}

/// True when adding up values of `from` and casting to `to` may change places. Integers wrap, which commutes with sums (not with averages).
constexpr bool carries_sums(dtype from, dtype to) {
    if (from == dtype::boolean || to == dtype::boolean) return false;
    return is_value_preserving(from, to) || (is_integer(from) && is_integer(to));
}

/// True when casting never turns an order round. Narrower integers wrap; a cast to bool knows zero and the rest, on both sides of it;
/// the small floats have no infinity to stop at, and negative numbers no place in uint8.
constexpr bool carries_order(dtype from, dtype to) {
    if (is_complex(from) || is_complex(to)) return false;
    if (is_value_preserving(from, to)) return true;
    if (to == dtype::boolean || to == dtype::uint8 || is_integer(from)) return is_floating_point(to) && element_bytes(to) > 1;
    return element_bytes(to) >= (is_floating_point(to) ? 2 : 4);  // narrow whole numbers wrap where the value does not fit
}

/// Of `kinds` those that an operand of type `from` can hold and an output of type `to` gets, where the op itself passes them.
constexpr kind_set carried(kind_set kinds, dtype from, dtype to) {
    kind_set left = no_kinds;
    if (carries_sums(from, to)) left |= is_value_preserving(from, to) ? sums : kind_bit(reduction::sum);
    if (carries_order(from, to)) left |= extremes;
    return kinds & left;
}
/// The kinds of Partial that values of type t can be.
constexpr kind_set kinds_of(dtype t) { return carried(all_kinds, t, t); }

}  // namespace cantle::rules
