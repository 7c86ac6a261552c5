// SPDX-License-Identifier: BSL-1.0
#pragma once
// The inner loops of every dense solver: minima, and products of vectors and row-major tables in the min-plus semiring.
// Written once, over vectors of `Lanes` doubles (the vector extension of g++ and clang), and compiled for each instruction set: the widest
// that the machine has is chosen once, at the first use. On whole numbers below 2^53 every operation is exact, and minima do not depend on
// order, so all variants give the same bits. Ends of rows that do not fill a vector are covered by one that overlaps the last full one.
// Entries may be +infinity. Only min_of_difference subtracts, and says what infinities mean to it.
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define CANTLE_WIDE_VECTORS 1
#else
#define CANTLE_WIDE_VECTORS 0
#endif
#define CANTLE_INLINE_BODY inline __attribute__((always_inline))
// Arrays of vectors stay in registers only where loops over them are unrolled, which g++ does at -O2 only when told to.
#if defined(__GNUC__) && !defined(__clang__)
#define CANTLE_UNROLL _Pragma("GCC unroll 8")
#else
#define CANTLE_UNROLL
#endif

namespace cantle::mrf::detail {

inline constexpr double inf = __builtin_inf();
inline constexpr std::size_t most_in_first_cache = 4096;  // values: 32 KiB

/// One instruction set's functions.
struct min_plus_functions {
    std::string_view instruction_set;
    /// The least of n values; +infinity for none.
    double (*min_of)(double const* x, std::size_t n);
    /// min over j of a[j] + b[j].
    double (*min_of_sum)(double const* a, double const* b, std::size_t n);
    /// min over j of a[j] - b[j]; a j for which both are +infinity does not count, one for which b alone is makes it -infinity.
    double (*min_of_difference)(double const* a, double const* b, std::size_t n);
    /// The largest |x[j]| that is finite; 0 for none.
    double (*largest)(double const* x, std::size_t n);
    /// x[j] = floor(x[j] * scale). True when some finite product was no whole number. Precondition: products are infinite or below 2^51.
    bool (*round_down)(double* x, std::size_t n, double scale);
    /// out[j] = a[j] + b[j].
    void (*add)(double const* a, double const* b, std::size_t n, double* out);
    /// out[c] = min over r of a[r] + table[r][c].
    void (*over_rows)(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out);
    /// out[r] = min over c of table[r][c] + a[c].
    void (*over_cols)(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out);
    /// out[i][k] = min over j of a[i][j] + b[j][k]; a is rows x inner, b inner x cols.
    void (*product)(double const* a, double const* b, std::size_t rows, std::size_t inner, std::size_t cols, double* out);
};

namespace min_plus_bodies {

template <int Lanes>
struct lanes {
    typedef double type __attribute__((vector_size(Lanes * sizeof(double))));
};

// Vectors are passed by reference only: their calling convention differs between instruction sets.
template <class V>
CANTLE_INLINE_BODY void load(double const* p, V& v) {
    std::memcpy(&v, p, sizeof v);
}
template <class V>
CANTLE_INLINE_BODY void store(V const& v, double* p) {
    std::memcpy(p, &v, sizeof v);
}
template <class V>
CANTLE_INLINE_BODY void lower(V& v, V const& x) {
    v = x < v ? x : v;
}
template <int Lanes>
CANTLE_INLINE_BODY double least_lane(typename lanes<Lanes>::type const& v) {
    if constexpr (Lanes == 2) {
        return v[1] < v[0] ? v[1] : v[0];
    } else {
        typename lanes<Lanes / 2>::type low, high;
        if constexpr (Lanes == 4) {
            low = __builtin_shufflevector(v, v, 0, 1);
            high = __builtin_shufflevector(v, v, 2, 3);
        } else {
            low = __builtin_shufflevector(v, v, 0, 1, 2, 3);
            high = __builtin_shufflevector(v, v, 4, 5, 6, 7);
        }
        lower(low, high);
        return least_lane<Lanes / 2>(low);
    }
}

enum class operand { none, added, subtracted };

template <operand Second, class V>
CANTLE_INLINE_BODY void combine(double const* a, double const* b, V& x) {
    load(a, x);
    if constexpr (Second != operand::none) {
        V y;
        load(b, y);
        x = Second == operand::added ? x + y : x - y;
    }
}
/// min over j of a[j], or of a[j] and b[j] added or subtracted. No NaN is less than anything, so it never becomes the minimum.
template <int Lanes, operand Second>
CANTLE_INLINE_BODY double least(double const* a, double const* b, std::size_t n) {
    using V = typename lanes<Lanes>::type;
    if (n < Lanes) {
        if constexpr (Lanes > 2) {
            return least<Lanes / 2, Second>(a, b, n);
        } else {
            if (n == 0) return inf;
            double const x = Second == operand::none ? a[0] : Second == operand::added ? a[0] + b[0] : a[0] - b[0];
            return x < inf ? x : inf;
        }
    }
    V m[2], x;
    m[0] = m[1] = V{} + inf;
    std::size_t j = 0;
    for (; j + 2 * Lanes <= n; j += 2 * Lanes)
        CANTLE_UNROLL for (int k = 0; k < 2; ++k) {
            combine<Second>(a + j + k * Lanes, b + j + k * Lanes, x);
            lower(m[k], x);
        }
    if (j + Lanes <= n) j += Lanes;
    else if (j == n) j = 0;
    else j = n;
    if (j > 0) {  // the last vector, which may overlap what is done
        CANTLE_UNROLL for (int k = 0; k < 2; ++k) {
            auto const at = k == 0 ? j - Lanes : n - Lanes;
            combine<Second>(a + at, b + at, x);
            lower(m[k], x);
        }
    }
    lower(m[0], m[1]);
    return least_lane<Lanes>(m[0]);
}

template <int Lanes>
CANTLE_INLINE_BODY double largest(double const* x, std::size_t n) {
    using V = typename lanes<Lanes>::type;
    V most = V{}, v;
    std::size_t j = 0;
    for (; j + Lanes <= n; j += Lanes) {
        load(x + j, v);
        v = v < -v ? -v : v;
        v = v < inf ? v : V{};
        most = most < v ? v : most;
    }
    most = -most;
    double result = -least_lane<Lanes>(most);
    for (; j < n; ++j) {
        double const size = x[j] < 0 ? -x[j] : x[j];
        result = size < inf && size > result ? size : result;
    }
    return result;
}

template <int Lanes>
CANTLE_INLINE_BODY bool round_down(double* x, std::size_t n, double scale) {
    using V = typename lanes<Lanes>::type;
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no room for a fraction
    V v, whole, lost = V{};
    std::size_t j = 0;
    for (; j + Lanes <= n; j += Lanes) {
        load(x + j, v);
        v *= scale;
        whole = (v + magic) - magic;
        whole = whole > v ? whole - 1.0 : whole;
        lost = whole != v ? V{} + 1.0 : lost;
        store(whole, x + j);
    }
    lost = -lost;
    bool inexact = least_lane<Lanes>(lost) < 0;
    for (; j < n; ++j) {
        double const exact = x[j] * scale, nearest = (exact + magic) - magic;
        x[j] = nearest > exact ? nearest - 1.0 : nearest;
        inexact |= x[j] != exact;
    }
    return inexact;
}

template <int Lanes>
CANTLE_INLINE_BODY void add(double const* a, double const* b, std::size_t n, double* out) {
    using V = typename lanes<Lanes>::type;
    V x, y;
    std::size_t j = 0;
    for (; j + Lanes <= n; j += Lanes) {
        load(a + j, x);
        load(b + j, y);
        x += y;
        store(x, out + j);
    }
    for (; j < n; ++j) out[j] = a[j] + b[j];
}

template <int Lanes>
CANTLE_INLINE_BODY void over_cols(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) {
    for (std::size_t r = 0; r < rows; ++r) out[r] = least<Lanes, operand::added>(table + r * cols, a, cols);
}

/// Rows x Width vectors of the product, kept in registers.
template <class V, int Lanes, int Rows, int Width>
CANTLE_INLINE_BODY void product_tile(double const* a, double const* b, std::size_t inner, std::size_t cols, double* out) {
    V low[Rows][Width], x, of_b[Width];
    CANTLE_UNROLL for (int r = 0; r < Rows; ++r)
        CANTLE_UNROLL for (int w = 0; w < Width; ++w) low[r][w] = V{} + inf;
    for (std::size_t j = 0; j < inner; ++j) {
        CANTLE_UNROLL for (int w = 0; w < Width; ++w) load(b + j * cols + w * Lanes, of_b[w]);
        CANTLE_UNROLL for (int r = 0; r < Rows; ++r)
            CANTLE_UNROLL for (int w = 0; w < Width; ++w) {
                x = of_b[w] + a[static_cast<std::size_t>(r) * inner + j];
                lower(low[r][w], x);
            }
    }
    CANTLE_UNROLL for (int r = 0; r < Rows; ++r)
        CANTLE_UNROLL for (int w = 0; w < Width; ++w) store(low[r][w], out + static_cast<std::size_t>(r) * cols + w * Lanes);
}
template <int Lanes, int Width>
CANTLE_INLINE_BODY void product_panel(double const* a, double const* b, std::size_t rows, std::size_t inner, std::size_t cols,
                                      double* out) {
    using V = typename lanes<Lanes>::type;
    std::size_t i = 0;
    for (; i + 4 <= rows; i += 4) product_tile<V, Lanes, 4, Width>(a + i * inner, b, inner, cols, out + i * cols);
    for (; i < rows; ++i) product_tile<V, Lanes, 1, Width>(a + i * inner, b, inner, cols, out + i * cols);
}
/// The product in panels of Width vectors, then of half that width, then of the vectors left. Precondition: cols >= Lanes.
template <int Lanes, int Width>
CANTLE_INLINE_BODY void columns_of_product(double const* a, double const* b, std::size_t rows, std::size_t inner, std::size_t cols,
                                           double* out) {
    std::size_t c = 0;
    for (; c + Width * Lanes <= cols; c += Width * Lanes) product_panel<Lanes, Width>(a, b + c, rows, inner, cols, out + c);
    if constexpr (Width > 2) {
        if (c + 2 * Lanes <= cols) {
            product_panel<Lanes, 2>(a, b + c, rows, inner, cols, out + c);
            c += 2 * Lanes;
        }
    }
    if (c + Lanes <= cols) {
        product_panel<Lanes, 1>(a, b + c, rows, inner, cols, out + c);
        c += Lanes;
    }
    if (c < cols) product_panel<Lanes, 1>(a, b + cols - Lanes, rows, inner, cols, out + cols - Lanes);
}
template <int Lanes>
CANTLE_INLINE_BODY void product(double const* a, double const* b, std::size_t rows, std::size_t inner, std::size_t cols, double* out) {
    if (cols < Lanes) {
        if constexpr (Lanes > 2) {
            return product<Lanes / 2>(a, b, rows, inner, cols, out);
        } else {
            if (cols == 1) over_cols<Lanes>(b, a, rows, inner, out);
            return;
        }
    }
    columns_of_product<Lanes, 2>(a, b, rows, inner, cols, out);
}

/// out[c ..] = min(out[c ..], a[r] + table[r][c ..]) for Rows rows, over one vector.
template <class V, int Rows>
CANTLE_INLINE_BODY void relax(V const* a, double const* table, std::size_t cols, double* out) {
    V low, x;
    load(out, low);
    CANTLE_UNROLL for (int r = 0; r < Rows; ++r) {
        load(table + static_cast<std::size_t>(r) * cols, x);
        x += a[r];
        lower(low, x);
    }
    store(low, out);
}
template <int Lanes, int Rows>
CANTLE_INLINE_BODY void relax_rows(double const* a, double const* table, std::size_t cols, double* out) {
    using V = typename lanes<Lanes>::type;
    V of_row[Rows];
    CANTLE_UNROLL for (int r = 0; r < Rows; ++r) of_row[r] = V{} + a[r];
    std::size_t c = 0;
    for (; c + Lanes <= cols; c += Lanes) relax<V, Rows>(of_row, table + c, cols, out + c);
    if (c < cols) relax<V, Rows>(of_row, table + cols - Lanes, cols, out + cols - Lanes);
}
template <int Lanes>
CANTLE_INLINE_BODY void over_rows(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) {
    if (cols < Lanes) {
        if constexpr (Lanes > 2) {
            return over_rows<Lanes / 2>(a, table, rows, cols, out);
        } else {
            double low = inf;
            for (std::size_t r = 0; r < rows; ++r) low = a[r] + table[r] < low ? a[r] + table[r] : low;
            if (cols == 1) out[0] = low;
            return;
        }
    }
    if (rows * cols <= most_in_first_cache) return columns_of_product<Lanes, 4>(a, table, 1, rows, cols, out);
    for (std::size_t c = 0; c < cols; ++c) out[c] = inf;
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4) relax_rows<Lanes, 4>(a + r, table + r * cols, cols, out);  // a quarter of the traffic to `out`
    for (; r < rows; ++r) relax_rows<Lanes, 1>(a + r, table + r * cols, cols, out);
}

}  // namespace min_plus_bodies

// One set of functions per instruction set.
#define CANTLE_MIN_PLUS_SET(name, Lanes, target)                                                                              \
    struct name {                                                                                                             \
        using operand = min_plus_bodies::operand;                                                                             \
        target static double min_of(double const* x, std::size_t n) {                                                         \
            return min_plus_bodies::least<Lanes, operand::none>(x, x, n);                                                     \
        }                                                                                                                     \
        target static double min_of_sum(double const* a, double const* b, std::size_t n) {                                    \
            return min_plus_bodies::least<Lanes, operand::added>(a, b, n);                                                    \
        }                                                                                                                     \
        target static double min_of_difference(double const* a, double const* b, std::size_t n) {                             \
            return min_plus_bodies::least<Lanes, operand::subtracted>(a, b, n);                                               \
        }                                                                                                                     \
        target static double largest(double const* x, std::size_t n) { return min_plus_bodies::largest<Lanes>(x, n); }        \
        target static bool round_down(double* x, std::size_t n, double scale) {                                               \
            return min_plus_bodies::round_down<Lanes>(x, n, scale);                                                           \
        }                                                                                                                     \
        target static void add(double const* a, double const* b, std::size_t n, double* out) {                                \
            min_plus_bodies::add<Lanes>(a, b, n, out);                                                                        \
        }                                                                                                                     \
        target static void over_rows(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) { \
            min_plus_bodies::over_rows<Lanes>(a, table, rows, cols, out);                                                     \
        }                                                                                                                     \
        target static void over_cols(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) { \
            min_plus_bodies::over_cols<Lanes>(a, table, rows, cols, out);                                                     \
        }                                                                                                                     \
        target static void product(double const* a, double const* b, std::size_t rows, std::size_t inner, std::size_t cols,   \
                                   double* out) {                                                                             \
            min_plus_bodies::product<Lanes>(a, b, rows, inner, cols, out);                                                    \
        }                                                                                                                     \
        static constexpr min_plus_functions functions(std::string_view instruction_set) {                                     \
            return {instruction_set, &min_of, &min_of_sum, &min_of_difference, &largest, &round_down,                         \
                    &add,            &over_rows, &over_cols, &product};                                                       \
        }                                                                                                                     \
    }

CANTLE_MIN_PLUS_SET(min_plus_baseline, 2, );
#if CANTLE_WIDE_VECTORS
CANTLE_MIN_PLUS_SET(min_plus_avx2, 4, __attribute__((target("avx2"))));
CANTLE_MIN_PLUS_SET(min_plus_avx512, 8, __attribute__((target("avx512f"))));
#endif
#undef CANTLE_MIN_PLUS_SET
#undef CANTLE_INLINE_BODY
#undef CANTLE_UNROLL

/// All sets that this machine can run, the widest last.
inline std::vector<min_plus_functions> runnable_min_plus() {
    std::vector<min_plus_functions> sets{min_plus_baseline::functions("baseline")};
#if CANTLE_WIDE_VECTORS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sets.push_back(min_plus_avx2::functions("avx2"));
    if (__builtin_cpu_supports("avx512f")) sets.push_back(min_plus_avx512::functions("avx512f"));
#endif
    return sets;
}
#undef CANTLE_WIDE_VECTORS

inline min_plus_functions const& min_plus() {
    static min_plus_functions const widest = runnable_min_plus().back();
    return widest;
}

inline double min_of(double const* x, std::size_t n) { return min_plus().min_of(x, n); }
inline void min_plus_over_rows(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) {
    min_plus().over_rows(a, table, rows, cols, out);
}
inline void min_plus_over_cols(double const* a, double const* table, std::size_t rows, std::size_t cols, double* out) {
    min_plus().over_cols(a, table, rows, cols, out);
}

}  // namespace cantle::mrf::detail
