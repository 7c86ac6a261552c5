// SPDX-License-Identifier: BSL-1.0
#pragma once
// The inner loops of every dense solver: min-plus products of a vector with a row-major table. Written as loops of constant length over
// contiguous memory, so that compilers turn them into packed minima at -O2 (g++ 12 vectorises there only when the trip count is known).
// On integer-valued doubles below 2^53 every operation is exact, so the result does not depend on order or vector width.
// Entries may be +infinity; the vector is finite, so that no NaN arises.
#include <cstddef>

namespace cantle::mrf::detail {

inline constexpr double inf = __builtin_inf();

inline double min_of(double const* x, std::size_t n) {
    double m[4] = {inf, inf, inf, inf};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (std::size_t k = 0; k < 4; ++k) m[k] = x[i + k] < m[k] ? x[i + k] : m[k];
    for (; i < n; ++i) m[0] = x[i] < m[0] ? x[i] : m[0];
    double const a = m[0] < m[1] ? m[0] : m[1], b = m[2] < m[3] ? m[2] : m[3];
    return a < b ? a : b;
}

/// out[c] = min(out[c], a + row[c]) for c < cols.
inline void relax_row(double a, double const* __restrict row, std::size_t cols, double* __restrict out) {
    std::size_t c = 0;
    for (; c + 8 <= cols; c += 8)
        for (std::size_t k = 0; k < 8; ++k) {
            double const x = a + row[c + k];
            out[c + k] = x < out[c + k] ? x : out[c + k];
        }
    for (; c < cols; ++c) {
        double const x = a + row[c];
        out[c] = x < out[c] ? x : out[c];
    }
}

/// out[c] = min over r of a[r] + table[r][c].
inline void min_plus_over_rows(double const* __restrict a, double const* __restrict table, std::size_t rows, std::size_t cols,
                               double* __restrict out) {
    for (std::size_t c = 0; c < cols; ++c) out[c] = inf;
    std::size_t r = 0;
    for (; r + 4 <= rows; r += 4) {  // four rows at once: a quarter of the traffic to `out`
        double const a0 = a[r], a1 = a[r + 1], a2 = a[r + 2], a3 = a[r + 3];
        double const* __restrict t0 = table + r * cols;
        double const* __restrict t1 = t0 + cols;
        double const* __restrict t2 = t1 + cols;
        double const* __restrict t3 = t2 + cols;
        std::size_t c = 0;
        for (; c + 4 <= cols; c += 4)
            for (std::size_t k = 0; k < 4; ++k) {
                double const x0 = a0 + t0[c + k], x1 = a1 + t1[c + k], x2 = a2 + t2[c + k], x3 = a3 + t3[c + k];
                double const y0 = x0 < x1 ? x0 : x1, y1 = x2 < x3 ? x2 : x3;
                double const y = y0 < y1 ? y0 : y1;
                out[c + k] = y < out[c + k] ? y : out[c + k];
            }
        for (; c < cols; ++c) {
            double const x0 = a0 + t0[c], x1 = a1 + t1[c], x2 = a2 + t2[c], x3 = a3 + t3[c];
            double const y0 = x0 < x1 ? x0 : x1, y1 = x2 < x3 ? x2 : x3;
            double const y = y0 < y1 ? y0 : y1;
            out[c] = y < out[c] ? y : out[c];
        }
    }
    for (; r < rows; ++r) relax_row(a[r], table + r * cols, cols, out);
}

/// out[r] = min over c of table[r][c] + a[c].
inline void min_plus_over_cols(double const* __restrict a, double const* __restrict table, std::size_t rows, std::size_t cols,
                               double* __restrict out) {
    for (std::size_t r = 0; r < rows; ++r) {
        double const* __restrict row = table + r * cols;
        double m[8] = {inf, inf, inf, inf, inf, inf, inf, inf};
        std::size_t c = 0;
        for (; c + 8 <= cols; c += 8)
            for (std::size_t k = 0; k < 8; ++k) {
                double const x = row[c + k] + a[c + k];
                m[k] = x < m[k] ? x : m[k];
            }
        for (; c < cols; ++c) {
            double const x = row[c] + a[c];
            m[0] = x < m[0] ? x : m[0];
        }
        for (std::size_t k = 0; k < 4; ++k) m[k] = m[k + 4] < m[k] ? m[k + 4] : m[k];
        for (std::size_t k = 0; k < 2; ++k) m[k] = m[k + 2] < m[k] ? m[k + 2] : m[k];
        out[r] = m[1] < m[0] ? m[1] : m[0];
    }
}

}  // namespace cantle::mrf::detail
