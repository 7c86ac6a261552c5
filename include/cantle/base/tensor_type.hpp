// SPDX-License-Identifier: BSL-1.0
#pragma once
// Element types and shapes. They live in base/ because plans name them as well as graphs (DECISIONS 19).
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cantle {

/// Sizes (or strides) of a tensor, one per dim, outermost first. A scalar has an empty shape.
using shape = std::vector<std::int64_t>;

/// Most dims that a tensor may have, as in PyTorch.
inline constexpr std::size_t most_dims = 64;

/// Number of elements; 1 for a scalar.
inline std::int64_t element_count(shape const& s) {
    std::int64_t n = 1;
    for (std::int64_t d : s) n *= d;
    return n;
}

/// "[16, 2048, 4096]".
inline std::string shape_text(shape const& s) {
    std::string t = "[";
    for (std::size_t i = 0; i < s.size(); ++i) t += (i ? ", " : "") + std::to_string(s[i]);
    return t + "]";
}

/// Strides of a dense row-major tensor of that shape, in elements.
inline shape contiguous_strides(shape const& s) {
    shape strides(s.size(), 1);
    for (std::size_t i = s.size(); i-- > 1;) strides[i - 1] = strides[i] * (s[i] > 1 ? s[i] : 1);
    return strides;
}

/// Element types, named as in PyTorch.
enum class dtype : std::uint8_t {
    float64, float32, bfloat16, float16, float8_e4m3fn, float8_e5m2, int64, int32, int16, int8, uint8, boolean, complex64, complex128
};

namespace detail {
struct dtype_row { dtype type; std::string_view name; int bytes; bool floating; };
inline constexpr std::array<dtype_row, 14> dtype_rows{{
    {dtype::float64, "float64", 8, true}, {dtype::float32, "float32", 4, true}, {dtype::bfloat16, "bfloat16", 2, true},
    {dtype::float16, "float16", 2, true}, {dtype::float8_e4m3fn, "float8_e4m3fn", 1, true}, {dtype::float8_e5m2, "float8_e5m2", 1, true},
    {dtype::int64, "int64", 8, false}, {dtype::int32, "int32", 4, false}, {dtype::int16, "int16", 2, false},
    {dtype::int8, "int8", 1, false},
    {dtype::uint8, "uint8", 1, false}, {dtype::boolean, "bool", 1, false}, {dtype::complex64, "complex64", 8, false},
    {dtype::complex128, "complex128", 16, false}}};
}  // namespace detail

/// Bytes of one element.
constexpr int element_bytes(dtype t) { return detail::dtype_rows[static_cast<std::size_t>(t)].bytes; }
/// PyTorch's name without "torch.", e.g. "bfloat16".
constexpr std::string_view to_string(dtype t) { return detail::dtype_rows[static_cast<std::size_t>(t)].name; }
/// True for real floating point types (not for complex ones).
constexpr bool is_floating_point(dtype t) { return detail::dtype_rows[static_cast<std::size_t>(t)].floating; }
/// The type of that name, or nothing.
constexpr std::optional<dtype> parse_dtype(std::string_view name) {
    for (auto const& row : detail::dtype_rows)
        if (row.name == name) return row.type;
    return std::nullopt;
}

}  // namespace cantle
