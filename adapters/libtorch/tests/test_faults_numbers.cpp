// SPDX-License-Identifier: BSL-1.0
// Reported faults with the reports' own numbers: norms, bounds under negative factors, indices of maxima, orders of a contraction, pieces
// of a wrong size. What was at fault is refuted on simulated ranks, and no rule declares it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <cmath>
#include <string>

using namespace cantle;
using namespace cantle::libtorch;

namespace {
constexpr auto R = placement::replicate();
constexpr auto P = placement::partial();
constexpr auto Pmax = placement::partial(reduction::max);
constexpr auto Pmin = placement::partial(reduction::min);
constexpr placement S(std::size_t d) { return placement::shard(d); }

at::Tensor numbers(std::vector<double> const& v) { return at::tensor(v, at::kDouble); }
bool declared(rule_oracle const& o, axis_row const& row, std::int64_t n) {
    for (auto const& r : o.rules().rows(o.query(), n))
        if (text_of(r) == text_of(row)) return true;
    return false;
}
/// The row is false, and the rule does not have it.
void refused(rule_oracle const& o, axis_row const& wrong, std::int64_t n) {
    CHECK_MESSAGE(o.check(wrong, n).refuted(), o.query().name(), ", ", text_of(wrong));
    CHECK_FALSE_MESSAGE(declared(o, wrong, n), o.query().name(), ", ", text_of(wrong));
}
/// Every row of the rule is true on n ranks.
void all_true(rule_oracle const& o, std::int64_t n) {
    for (auto const& r : o.rules().rows(o.query(), n)) {
        auto const v = o.check(r, n);
        CHECK_MESSAGE(!v.refuted(), o.query().name(), ", ", text_of(r), ": ", v.reason);
    }
}
sample norm_of(at::Tensor x) {
    return sample("aten::linalg_vector_norm")
        .arg("self", std::move(x))
        .arg("ord", 2)
        .arg("dim", none)
        .arg("keepdim", false)
        .arg("dtype", none);
}
}  // namespace

//  locals [1,3] and [2,1]: norm of the sum [3,4] is 5, the sum of the norms sqrt 10 + sqrt 5 = 5.398
TEST_CASE("A17: the norm of a partial vector is 5, not the sum 5.398 of the ranks' norms") {
    auto const a = numbers({1, 3}), b = numbers({2, 1});
    rule_oracle const o(norm_of(a + b));
    CHECK(o.outputs()[0].item<double>() == 5);
    CHECK(std::abs((a.norm() + b.norm()).item<double>() - 5.398345637668170) < 1e-12);
    for (auto kind : {P, Pmax, Pmin}) refused(o, axis_row{{P}, {kind}}, 2);
    all_true(o, 2);
}

//  [3 | 4] on two ranks: the norm is 5 after the inner reduction only; what is added is added once
TEST_CASE("A16: what is added to a norm is added once: the norm is whole first") {
    rule_oracle const o(norm_of(numbers({3, 4})));
    refused(o, axis_row{{S(0)}, {P}}, 2);
    CHECK(o.check(axis_row{{S(0)}, {R}}, 2).refuted());  // without the sum of squares inside
    double const little = std::ldexp(1, -20);            // about 1e-6, and exact under averages
    rule_oracle const plus(sample("aten::add.Scalar").arg("self", numbers({5})).arg("other", little));
    CHECK(plus.outputs()[0].item<double>() == 5 + little);
    refused(plus, axis_row{{P}, {P}}, 2);
    all_true(plus, 2);
}

//  a bound 5 times -2 is -10; bounds of -2 times the parts are other bounds
TEST_CASE("A19: a bound times a negative number is no bound of that kind, times a positive one it is") {
    for (double factor : {-2.0, 2.0}) {
        rule_oracle const o(sample("aten::mul.Scalar").arg("self", numbers({5, 3})).arg("other", factor));
        CHECK(o.outputs()[0][0].item<double>() == 5 * factor);
        for (auto kind : {Pmax, Pmin})
            if (factor < 0) refused(o, axis_row{{kind}, {kind}}, 2);
            else CHECK(declared(o, axis_row{{kind}, {kind}}, 2));
        all_true(o, 2);
    }
}

TEST_CASE("A22: argmax of [10,5,3,8] with its maximum in front is 0, and no bound of local indices") {
    auto flat = -at::arange(1200, at::kDouble);
    flat[601] = -599.5;  // the second half's own maximum stands at its 1
    auto const x = flat.view({10, 5, 3, 8});
    rule_oracle const o(sample("aten::argmax").arg("self", x).arg("dim", none).arg("keepdim", false));
    CHECK(o.outputs()[0].item<std::int64_t>() == 0);
    for (auto kind : {P, Pmax}) refused(o, axis_row{{S(0)}, {kind}}, 2);
    CHECK_FALSE(declared(o, axis_row{{S(0)}, {Pmin}}, 2));  // which is 0 by luck here
    all_true(o, 2);
}

TEST_CASE("A23: the maximum 9 of [1,5,2,9] stands at 3, not at 1 of a half") {
    rule_oracle const o(
        sample("aten::max.dim").arg("self", numbers({1, 5, 2, 9}).view({1, 4})).arg("dim", 1).arg("keepdim", false));
    CHECK(o.outputs()[1].item<std::int64_t>() == 3);
    refused(o, axis_row{{S(1)}, {Pmax, Pmax}}, 2);
    for (auto kind : {P, Pmax, Pmin}) CHECK_FALSE(declared(o, axis_row{{kind}, {kind, kind}}, 2));
    all_true(o, 2);
}

//  A = B = 0..15: row 0 of the product is 56 62 68 74. B's rows in the order b, a belong to other columns of A.
TEST_CASE("A41: arange[4,4] squared on 2x2 has 56, 62, 68, 74 in front; another order of cuts on one side does not give it") {
    auto const x = at::arange(16, at::kDouble).view({4, 4});
    rule_oracle const o(sample("aten::mm").arg("self", x).arg("mat2", x));
    CHECK(at::equal(o.outputs()[0][0], numbers({56, 62, 68, 74})));
    auto const mesh = device_mesh::parse("2x2", "a,b");
    auto const at = [&](char const* l) { return layout::parse(mesh, l); };
    CHECK(o.check({{at("S1,S1"), at("S0,S0"), at("P,P")}}, mesh).holds());
    CHECK(o.check({{at("S1,S1"), at("S0,S0; d0=b>a"), at("P,P")}}, mesh).refuted());
    layout_table table;
    auto const strategies = expand_axes(o.query(), mesh, standard_registry(), table);
    for (std::size_t s = 0; s < strategies.size(); ++s) {
        auto const& l = strategy_of(strategies, s, table).layouts;
        CHECK_FALSE((l[0] == at("S1,S1") && l[1] == at("S0,S0; d0=b>a")));
        auto const v = o.check(strategy_of(strategies, s, table), mesh);
        CHECK_MESSAGE(!v.refuted(), l[0].text(mesh), " ", l[1].text(mesh), ": ", v.reason);
    }
}

//  0.5 on each of two ranks is 1; as whole numbers each is 0
TEST_CASE("E5: the halves of a 1 do not survive a cast to whole numbers, floor or round") {
    for (auto name : {"aten::floor", "aten::round", "aten::ceil", "aten::trunc"})
        refused(rule_oracle(sample(name).arg("self", numbers({1, 3}))), axis_row{{P}, {P}}, 2);
    rule_oracle const cast(sample("aten::_to_copy").arg("self", numbers({1, 3})).arg("dtype", dtype::int32));
    CHECK(cast.outputs()[0][0].item<int>() == 1);
    refused(cast, axis_row{{P}, {P}}, 2);
}
