// SPDX-License-Identifier: BSL-1.0
// What leaves for other solvers: the 0-1 program and the cost function network.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "random_graphs.hpp"

#include <cantle/mrf/brute_force.hpp>
#include <cantle/mrf/cost_function_network.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/integer_program.hpp>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
using namespace cantle::mrf::testing;

namespace {

/// Calls f(labels) for every labelling.
template <class F>
void for_all_labellings(factor_graph const& g, F f) {
    std::vector<label> x(g.variable_count(), 0);
    while (true) {
        f(x);
        std::uint32_t v = 0;
        while (v < x.size() && ++x[v] == g.label_count(variable_id(v))) x[v++] = 0;
        if (v == x.size()) return;
    }
}

/// Cost of the program's columns that stand for x, or `forbidden` when one of them does not exist or a row is violated.
double cost_of(integer_program const& p, factor_graph const& g, std::vector<label> const& x) {
    std::vector<double> column(p.cost.size(), 0.0), left(p.right_side.size(), 0.0);
    std::size_t at = 0;
    for (std::uint32_t v = 0; v < x.size(); at += g.label_count(variable_id(v)), ++v) column[at + x[v]] = 1;
    for (auto const& e : g.edges())
        for (label j = 0; j < g.label_count(e.u); ++j)
            for (label k = 0; k < g.label_count(e.v); ++k)
                if (g.pair_cost(e, j, k) != forbidden) column[at++] = j == x[e.u.value] && k == x[e.v.value];
    REQUIRE(at == column.size());
    double sum = 0;
    for (std::size_t c = 0; c < column.size(); ++c) {
        sum += p.cost[c] * column[c];
        for (auto i = p.start[c]; i < p.start[c + 1]; ++i) left[static_cast<std::size_t>(p.row[static_cast<std::size_t>(i)])] +=
            p.value[static_cast<std::size_t>(i)] * column[c];
    }
    return left == p.right_side ? sum : forbidden;
}

/// Energy of x as a reader of the network sees it, in units of 10^-decimals; forbidden at or above its upper bound.
class network {
public:
    explicit network(cost_function_network const& n) : json_(nlohmann::json::parse(n.text)), decimals_(n.decimals) {
        auto const top = json_["problem"]["mustbe"].get<std::string>();
        REQUIRE(top[0] == '<');
        top_ = std::stod(top.substr(1));
    }
    double energy(std::vector<label> const& x) const {
        double sum = 0, constant = json_["functions"]["constant"]["costs"][0].get<double>();
        for (auto const& [name, f] : json_["functions"].items()) {
            auto const* costs = &f["costs"];
            if (costs->is_string()) costs = &json_["functions"][costs->get<std::string>()]["costs"];
            std::size_t at = 0;
            for (auto const& v : f["scope"])
                at = at * json_["variables"][v.get<std::string>()].get<std::size_t>() + x[std::stoul(v.get<std::string>().substr(1))];
            double const c = (*costs)[at].get<double>();
            if (c >= top_ - std::min(constant, 0.0) - 0.5) return forbidden;  // finite ones are smaller by 1 at least
            if (!f["scope"].empty()) CHECK(c >= 0);
            sum += c;
        }
        CHECK(sum < top_);
        return sum;
    }
    int decimals() const { return decimals_; }

private:
    nlohmann::json json_;
    int decimals_;
    double top_;
};

}  // namespace

TEST_CASE("every labelling costs the same as the columns of the 0-1 program that stand for it, and has none where it is forbidden") {
    for_random_graphs(3, 1, {.variables = 5, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        auto const p = integer_program_of(g);
        auto const size = size_of(g);
        CHECK(p.cost.size() == size.columns);
        CHECK(p.right_side.size() == size.rows);
        CHECK(p.row.size() == size.entries);
        CHECK(p.start.size() == size.columns + 1);
        for_all_labellings(g, [&](std::vector<label> const& x) {
            double const e = energy(g, x), c = cost_of(p, g, x);
            if (e == forbidden) CHECK(c == forbidden);
            else CHECK(c == doctest::Approx(e).epsilon(1e-12));
        });
    });
}

TEST_CASE("a written network has every labelling's energy within its error bound, and forbids what is forbidden") {
    for_random_graphs(5, 1, {.variables = 4, .labels = 3}, [](factor_graph const& g, std::string const& what) {
        INFO(what);
        auto const written = cost_function_network_of(g);
        network const n(written);
        for_all_labellings(g, [&](std::vector<label> const& x) {
            double const e = energy(g, x), c = n.energy(x);
            if (e == forbidden) CHECK(c == forbidden);
            else CHECK(std::abs(c - e) <= written.error_bound + 1e-9 * std::abs(e));
        });
    });
}

// x - y - z, both edges with the table [[0.5, forbidden], [-1, 2]], the second one read from the other side.
TEST_CASE("the text of a network: less the least cost of every term, forbidden pairs beyond the upper bound") {
    factor_graph g;
    auto const x = g.add_variable({1, 0.25}), y = g.add_variable({0, -2}), z = g.add_variable({3, 3});
    auto const t = g.add_table({2, 2, {0.5, forbidden, -1, 2}});
    g.add_edge(x, y, t);
    g.add_edge(y, z, t, table_use::transposed);
    auto const n = cost_function_network_of(g);
    CHECK(n.decimals == 9);
    CHECK(n.text == R"({"problem":{"name":"cantle","mustbe":"<13.000000005"},
"variables":{
"v0":2,
"v1":2,
"v2":2},
"functions":{
"u0":{"scope":["v0"],"costs":[0.75,0]},
"u1":{"scope":["v1"],"costs":[2,0]},
"u2":{"scope":["v2"],"costs":[0,0]},
"e0":{"scope":["v0","v1"],"costs":[1.5,13.750000005,0,3]},
"e1":{"scope":["v2","v1"],"costs":[1.5,13.750000005,0,3]},
"constant":{"scope":[],"costs":[-0.75]}
}}
)");
}

TEST_CASE("large costs leave fewer digits, and costs beyond 64-bit whole numbers are refused") {
    factor_graph g;
    g.add_variable({1e12, 0});
    CHECK(cost_function_network_of(g).decimals == 1);
    g.add_variable({1e17, 0});
    CHECK_THROWS_WITH_AS(cost_function_network_of(g), doctest::Contains("64-bit"), error);
}
