// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/min_plus.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace cantle::mrf;
using cantle::mrf::testing::dice;

namespace {
std::vector<double> whole_numbers(std::size_t n, double infinite, dice& d) {
    std::vector<double> x(n);
    for (double& v : x) v = d.chance(infinite) ? forbidden : static_cast<double>(d.below(2000000)) - 1e6;
    return x;
}
bool same_bits(std::vector<double> const& a, std::vector<double> const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); });
}
}  // namespace

// Widths 1 to 40 cover whole vectors, overlapping ends and rows shorter than a vector, of every instruction set.
TEST_CASE("every instruction set that this machine has gives the bits of the definition") {
    dice d(11);
    auto const sets = detail::runnable_min_plus();
    REQUIRE(sets.front().instruction_set == "baseline");
    for (int round = 0; round < 2000; ++round) {
        std::size_t const rows = 1 + d.below(40), inner = 1 + d.below(40), cols = 1 + d.below(40);
        double const infinite = round % 3 * 0.3;
        auto const a = whole_numbers(rows * inner, infinite, d), b = whole_numbers(inner * cols, infinite, d);
        auto const v = whole_numbers(inner, 0, d);
        std::vector<double> product(rows * cols, forbidden), over_rows(cols, forbidden), over_cols(rows, forbidden), sum(inner);
        for (std::size_t j = 0; j < inner; ++j) {
            sum[j] = a[j] + v[j];
            for (std::size_t i = 0; i < rows; ++i) over_cols[i] = std::min(over_cols[i], a[i * inner + j] + v[j]);
            for (std::size_t k = 0; k < cols; ++k) {
                over_rows[k] = std::min(over_rows[k], v[j] + b[j * cols + k]);
                for (std::size_t i = 0; i < rows; ++i)
                    product[i * cols + k] = std::min(product[i * cols + k], a[i * inner + j] + b[j * cols + k]);
            }
        }
        for (auto const& s : sets) {
            INFO(std::string(s.instruction_set) << ", seed 11, round " << round);
            std::vector<double> out(rows * cols);
            s.product(a.data(), b.data(), rows, inner, cols, out.data());
            CHECK(same_bits(out, product));
            out.assign(cols, 0);
            s.over_rows(v.data(), b.data(), inner, cols, out.data());
            CHECK(same_bits(out, over_rows));
            out.assign(rows, 0);
            s.over_cols(v.data(), a.data(), rows, inner, out.data());
            CHECK(same_bits(out, over_cols));
            out.assign(inner, 0);
            s.add(a.data(), v.data(), inner, out.data());
            CHECK(same_bits(out, sum));
            CHECK(s.min_of(a.data(), a.size()) == *std::min_element(a.begin(), a.end()));
            CHECK(s.min_of_sum(a.data(), v.data(), inner) == *std::min_element(sum.begin(), sum.end()));
            double largest = 0;
            for (double x : a) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
            CHECK(s.largest(a.data(), a.size()) == largest);
        }
    }
}

TEST_CASE("the least difference passes over what both forbid and falls where only the second does") {
    dice d(12);
    for (int round = 0; round < 2000; ++round) {
        std::size_t const n = 1 + d.below(30);
        auto const a = whole_numbers(n, 0.3, d), b = whole_numbers(n, round % 2 * 0.02, d);
        double least = forbidden;
        for (std::size_t j = 0; j < n; ++j)
            if (a[j] != forbidden) least = std::min(least, a[j] - b[j]);
        for (auto const& s : detail::runnable_min_plus()) {
            INFO(std::string(s.instruction_set) << ", seed 12, round " << round);
            CHECK(s.min_of_difference(a.data(), b.data(), n) == least);
        }
    }
}

TEST_CASE("rounding down to a grid is floor and says whether anything was lost") {
    dice d(13);
    for (int round = 0; round < 2000; ++round) {
        std::size_t const n = 1 + d.below(30);
        std::vector<double> x(n), expected(n);
        bool lost = false;
        for (std::size_t j = 0; j < n; ++j) {
            x[j] = d.chance(0.1) ? forbidden : (d.unit() - 0.5) * 1e9;
            if (round % 2 && x[j] != forbidden) x[j] = std::floor(x[j]);
            expected[j] = std::floor(x[j] * 0.25);
            lost |= x[j] != forbidden && expected[j] != x[j] * 0.25;
        }
        for (auto const& s : detail::runnable_min_plus()) {
            INFO(std::string(s.instruction_set) << ", seed 13, round " << round);
            auto out = x;
            CHECK(s.round_down(out.data(), n, 0.25) == lost);
            CHECK(out == expected);
        }
    }
}

TEST_CASE("nothing has no minimum and no magnitude") {
    for (auto const& s : detail::runnable_min_plus()) {
        CHECK(s.min_of(nullptr, 0) == forbidden);
        CHECK(s.largest(nullptr, 0) == 0);
    }
}
