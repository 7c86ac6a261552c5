// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: maximise a concave, piecewise linear function L(lambda) over lambda >= 0, of which only values and slopes at points asked for
// are known.
// Idea: Kelley's cutting planes [1]. Every labelling x gives a plane that lies above L:
//      L(lambda) <= E(x) + sum_k lambda_k g_k(x)
// and the maximum over lambda of the least of them is the next point. Its linear program
//      max t   with   t <= e_i + lambda g_i for all planes i,   0 <= lambda_k <= most_k
// is solved in the dual (a mixture of labellings that keeps the budgets on average), which has one row per budget and one more:
//      min sum_i a_i e_i + sum_k most_k z_k   with   sum_i a_i g_ik + s_k - z_k = 0,   sum_i a_i = 1,   a, s, z >= 0
// Any plane gives a first basis. With one budget this is the secant method and ends after finitely many points.
// Complexity: a dense tableau of (budgets + 1) rows; pivots are about as many as budgets. The result only guides: no bound rests on it.
// [1] J. Kelley, "The cutting-plane method for solving convex programs", J. SIAM 8 (1960) 703-712.
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace cantle::mrf::detail {

/// t <= height + sum_k lambda_k * slope[k]. All of the order of 1.
struct cutting_plane {
    double height = 0;
    std::vector<double> slope;
};

struct cutting_plane_maximum {
    double value = 0;
    std::vector<double> multipliers;
    std::vector<double> shares;  ///< [plane] of the mixture, sum 1; those above 0 hold the maximum
};

/// Precondition: planes is not empty; all slopes have as many entries as `most`.
inline cutting_plane_maximum maximise_cutting_planes(std::span<cutting_plane const> planes, std::span<double const> most) {
    constexpr double tolerance = 1e-11;
    std::size_t const n = planes.size(), budgets = most.size(), rows = budgets + 1, cols = n + 2 * budgets, rhs = cols;
    std::vector<std::vector<double>> t(rows, std::vector<double>(cols + 1, 0.0));  // row k: budget k; the last row: sum of a
    std::vector<double> cost(cols + 1, 0.0);
    std::vector<std::size_t> basis(rows);
    std::size_t start = 0;
    for (std::size_t i = 0; i < n; ++i) {
        cost[i] = planes[i].height;
        if (planes[i].height < planes[start].height) start = i;
        for (std::size_t k = 0; k < budgets; ++k) t[k][i] = planes[i].slope[k];
        t[budgets][i] = 1;
    }
    t[budgets][rhs] = 1;
    for (std::size_t k = 0; k < budgets; ++k) {
        t[k][n + k] = 1;
        t[k][n + budgets + k] = -1;
        cost[n + budgets + k] = most[k];
    }
    auto const pivot = [&](std::size_t row, std::size_t col) {
        double const by = 1 / t[row][col];
        for (double& x : t[row]) x *= by;
        auto const clear = [&](std::vector<double>& other) {
            double const f = other[col];
            if (f == 0) return;
            for (std::size_t j = 0; j <= cols; ++j) other[j] -= f * t[row][j];
            other[col] = 0;
        };
        for (std::size_t r = 0; r < rows; ++r)
            if (r != row) clear(t[r]);
        clear(cost);
        basis[row] = col;
    };
    pivot(budgets, start);
    for (std::size_t k = 0; k < budgets; ++k) pivot(k, planes[start].slope[k] > 0 ? n + budgets + k : n + k);
    std::size_t const most_pivots = 50 * (rows + 10), greedy_pivots = most_pivots / 2;  // then the least index, which cannot cycle
    for (std::size_t p = 0; p < most_pivots; ++p) {
        std::size_t enter = cols;
        for (std::size_t j = 0; j < cols; ++j) {
            if (!(cost[j] < -tolerance)) continue;
            if (enter == cols || (p < greedy_pivots && cost[j] < cost[enter])) enter = j;
        }
        if (enter == cols) break;
        std::size_t leave = rows;
        for (std::size_t r = 0; r < rows; ++r) {
            if (!(t[r][enter] > tolerance)) continue;
            double const now = t[r][rhs] * t[leave == rows ? r : leave][enter], best = t[leave == rows ? r : leave][rhs] * t[r][enter];
            if (leave == rows || now < best || (now == best && basis[r] < basis[leave])) leave = r;
        }
        if (leave == rows) break;
        pivot(leave, enter);
    }
    cutting_plane_maximum out{-cost[rhs], std::vector<double>(budgets), std::vector<double>(n, 0.0)};
    for (std::size_t k = 0; k < budgets; ++k) out.multipliers[k] = std::fmin(std::fmax(cost[n + k], 0.0), most[k]);
    for (std::size_t r = 0; r < rows; ++r)
        if (basis[r] < n) out.shares[basis[r]] = std::fmax(t[r][rhs], 0.0);
    return out;
}

}  // namespace cantle::mrf::detail
