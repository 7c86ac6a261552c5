// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/table_algebra.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace cantle::mrf;
using cantle::mrf::detail::shared_table;
using cantle::mrf::detail::turned_table;
using cantle::mrf::testing::dice;

namespace {
shared_table random_table(std::uint32_t rows, std::uint32_t cols, dice& d) {
    cost_table t{rows, cols, std::vector<double>(std::size_t{rows} * cols)};
    for (double& x : t.values) x = d.chance(0.2) ? forbidden : d.below(1000);
    return std::make_shared<cost_table const>(std::move(t));
}
double at(turned_table const& t, label r, label c) { return t.turned ? (*t.table)(c, r) : (*t.table)(r, c); }
turned_table random_turned(std::uint32_t rows, std::uint32_t cols, dice& d) {
    bool const turned = d.chance(0.5);
    return {turned ? random_table(cols, rows, d) : random_table(rows, cols, d), turned};
}
}  // namespace

TEST_CASE("products and sums are those of the definition, however their tables are turned") {
    dice d(1);
    for (int round = 0; round < 300; ++round) {
        auto const rows = 1 + d.below(20), inner = 1 + d.below(20), cols = 1 + d.below(20);
        auto const a = random_turned(rows, inner, d), b = random_turned(inner, cols, d), c = random_turned(rows, inner, d);
        std::vector<double> cost(inner);
        for (double& x : cost) x = d.below(100);
        detail::table_algebra algebra(1);
        auto const product = algebra.product(a, cost, b);
        REQUIRE(product->rows == rows);
        REQUIRE(product->cols == cols);
        for (label i = 0; i < rows; ++i)
            for (label k = 0; k < cols; ++k) {
                double least = forbidden;
                for (label j = 0; j < inner; ++j) least = std::min(least, at(a, i, j) + cost[j] + at(b, j, k));
                CHECK((*product)(i, k) == least);
            }
        auto const straight = random_table(rows, inner, d);
        auto const sum = algebra.sum(straight, c);
        for (label i = 0; i < rows; ++i)
            for (label j = 0; j < inner; ++j) CHECK((*sum)(i, j) == (*straight)(i, j) + at(c, i, j));
    }
}

TEST_CASE("equal questions share one table, and no table is kept alive") {
    dice d(2);
    auto a = random_table(3, 4, d);
    auto const b = random_table(4, 5, d);
    std::vector<double> const cost{1, 2, 3, 4};
    detail::table_algebra algebra(1);
    auto const first = algebra.product({a, false}, cost, {b, false});
    CHECK(algebra.product({a, false}, cost, {b, false}) == first);
    CHECK(algebra.product({a, false}, {1, 2, 3, 5}, {b, false}) != first);
    CHECK(algebra.product({std::make_shared<cost_table const>(*a), false}, cost, {b, false}) != first);
    std::weak_ptr<cost_table const> const watch = a;
    a.reset();
    CHECK(watch.expired());
}
