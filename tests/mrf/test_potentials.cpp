// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/potential.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {
/// The archetype: the three members and nothing else. |r - c|, and no pair more than `reach` apart.
struct step_potential {
    std::size_t n, m;
    double reach;
    std::size_t rows() const { return n; }
    std::size_t cols() const { return m; }
    double operator()(label r, label c) const {
        double const d = std::abs(static_cast<double>(r) - static_cast<double>(c));
        return d <= reach ? 1.5 * d : forbidden;
    }
};
struct without_sides {
    double operator()(label, label) const { return 0; }
};
static_assert(Potential<step_potential> && Potential<dense_potential> && Potential<equality_potential> && Potential<sum_potential>);
static_assert(Potential<transposed<step_potential>> && Potential<any_potential> && !Potential<without_sides> && !Potential<cost_table>);
static_assert(!Potential<factor_graph>);

/// Every function against its definition, on whole `in`, where each of them is exact.
template <Potential P>
void check_against_definition(P const& p, dice& d) {
    std::size_t const n = p.rows(), m = p.cols();
    std::vector<double> row_in(n), col_in(m);
    for (double& x : row_in) x = d.below(50);
    for (double& x : col_in) x = d.below(50);
    double low = forbidden, most = 0;
    std::vector<double> over_rows(m, forbidden), over_cols(n, forbidden);
    for (label r = 0; r < n; ++r)
        for (label c = 0; c < m; ++c) {
            double const x = p(r, c);
            low = std::min(low, x);
            if (x != forbidden) most = std::max(most, std::abs(x));
            over_rows[c] = std::min(over_rows[c], row_in[r] + x);
            over_cols[r] = std::min(over_cols[r], x + col_in[c]);
        }
    CHECK(lowest(p) == low);
    CHECK(magnitude(p) == most);
    CHECK(work(p) <= std::max(n * m, n + m));
    std::vector<double> out(m, -7.0), other(n, -7.0);  // what was there is overwritten
    min_plus_over_rows(p, row_in.data(), out.data());
    CHECK(out == over_rows);
    min_plus_over_cols(p, col_in.data(), other.data());
    CHECK(other == over_cols);
    for (label r = 0; r < n; ++r) {
        auto sum = col_in;
        add_row(p, r, sum.data());
        for (label c = 0; c < m; ++c) CHECK(sum[c] == col_in[c] + p(r, c));
    }
    for (label c = 0; c < m; ++c) {
        auto sum = row_in;
        add_col(p, c, sum.data());
        for (label r = 0; r < n; ++r) CHECK(sum[r] == row_in[r] + p(r, c));
    }
    auto const t = materialised(p);
    for (double unit : {1.0, 0.25, 4.0}) {
        auto const q = quantised(p, unit);
        REQUIRE(q.rows() == n);
        REQUIRE(q.cols() == m);
        for (label r = 0; r < n; ++r)
            for (label c = 0; c < m; ++c) {
                CHECK(t(r, c) == p(r, c));
                CHECK((q(r, c) == forbidden) == (p(r, c) == forbidden));
                if (q(r, c) == forbidden) continue;
                CHECK(q(r, c) == std::floor(q(r, c)));
                CHECK(q(r, c) * unit <= p(r, c));
                CHECK(q(r, c) * unit > p(r, c) - 2 * unit);  // a sum rounds its two parts
            }
    }
}

template <Potential P>
void check_in_every_guise(P const& p, dice& d) {
    check_against_definition(p, d);
    check_against_definition(transposed(p), d);
    check_against_definition(transposed(transposed(p)), d);
    check_against_definition(any_potential(p), d);
    check_against_definition(transposed(any_potential(p)), d);
}

cost_table random_table(std::uint32_t rows, std::uint32_t cols, costs kind, dice& d) {
    cost_table t{rows, cols, std::vector<double>(std::size_t{rows} * cols)};
    for (double& x : t.values) x = d.chance(0.2) ? forbidden : draw(d, kind);
    return t;
}
}  // namespace

TEST_CASE("each function of each potential is what its definition says") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        INFO("seed ", seed);
        dice d(seed);
        auto const n = 1 + d.below(13), m = 1 + d.below(13);
        auto const kind = seed % 2 ? costs::whole : costs::tied;
        auto const t = random_table(n, m, kind, d);
        check_in_every_guise(dense_potential(t), d);
        check_in_every_guise(dense_potential(t, table_use::transposed), d);
        check_in_every_guise(equality_potential(n), d);
        auto const f = random_table(1, n, kind, d).values, g = random_table(1, m, kind, d).values;
        check_in_every_guise(sum_potential(f, g), d);
        check_in_every_guise(step_potential{n, m, static_cast<double>(d.below(5))}, d);
    }
}

TEST_CASE("costs that are not whole are rounded down") {
    dice d(7);
    for (int i = 0; i < 10; ++i) {
        auto const t = random_table(4, 3, costs::real, d);
        auto const q = quantised(dense_potential(t), 0.5);
        for (label r = 0; r < 4; ++r)
            for (label c = 0; c < 3; ++c) CHECK(q(r, c) == std::floor(t(r, c) * 2));
    }
    sum_potential const s({0.75, -0.25}, {0.75, 3});
    CHECK(quantised(s, 1)(0, 0) == 0);   // floor(0.75) + floor(0.75), below floor(1.5)
    CHECK(quantised(s, 1)(1, 1) == 2);
}

TEST_CASE("a dense potential views, shares or takes over its table") {
    cost_table const t{1, 2, {3, 4}};
    CHECK(&dense_potential(t).table() == &t);
    auto const shared = std::make_shared<cost_table const>(t);
    dense_potential const sharing(shared);
    CHECK(shared.use_count() == 2);
    auto const own = dense_potential(cost_table{2, 1, {5, 6}}, table_use::transposed);
    CHECK(own(0, 1) == 6);
    CHECK(own.rows() == 1);
}
