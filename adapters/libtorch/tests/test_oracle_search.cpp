// SPDX-License-Identifier: BSL-1.0
// The machinery of `cantle check-rules` on ops whose true rows are known: what the search finds, what is refuted, waived and counted, and
// strategies of two axes that are wrong.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/check_rules.hpp>
#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/base/error.hpp>
#include <cantle/rules/linear.hpp>
#include <cantle/rules/view.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <set>

using namespace cantle;
using namespace cantle::libtorch;

namespace {
bool const one_thread = (at::set_num_threads(1), true);  // the tensors are tiny: threads would only wait for each other

constexpr auto R = placement::replicate();
constexpr auto P = placement::partial();
constexpr placement S(std::size_t d, std::int64_t outer = 1) { return placement::shard(d, outer); }

sample mm(std::int64_t m, std::int64_t k, std::int64_t n) {
    return sample("aten::mm").arg("self", eighths({m, k})).arg("mat2", eighths({k, n}));
}
sample relu(shape sizes) { return sample("aten::relu").arg("self", eighths(sizes)); }
std::set<std::string> found_on(rule_oracle const& o, std::int64_t n) {
    std::set<std::string> rows;
    for (auto const& t : find_true_rows(o, n, {}).rows) rows.insert(text_of(t.row));
    return rows;
}
rules_check checked(rule_registry const& rules, std::vector<rule_sample> samples, std::vector<rule_waiver> waivers = {}) {
    return check_rules(rules, std::move(samples), std::move(waivers), check_extent::everything());
}
bool any_has(std::vector<std::string> const& list, std::string const& part) {
    return std::any_of(list.begin(), list.end(), [&](auto const& s) { return s.find(part) != std::string::npos; });
}
}  // namespace

// [12,24] x [24,8] on 2, 3, 4: exactly the rows of a bilinear map, with sums and averages.
TEST_CASE("the true rows of a matrix product are read off the numbers, no more and no less") {
    rule_oracle const o(mm(12, 24, 12));
    std::set<std::string> const wanted{"R, R -> R",           "S0, R -> S0",           "R, S1 -> S1",          "S1, S0 -> P",
                                       "P, R -> P",           "R, P -> P",             "P(avg), R -> P(avg)",  "R, P(avg) -> P(avg)"};
    for (std::int64_t n : {2, 3, 4}) CHECK(found_on(o, n) == wanted);
}

TEST_CASE("relu passes maxima and minima and no sums, and abs passes none of them") {
    auto const of_relu = found_on(rule_oracle(relu({12, 4})), 2);
    CHECK(of_relu == std::set<std::string>{"R -> R", "S0 -> S0", "S1 -> S1", "P(max) -> P(max)", "P(min) -> P(min)"});
    CHECK(found_on(rule_oracle(sample("aten::abs").arg("self", eighths({12, 4}))), 2) ==
          std::set<std::string>{"R -> R", "S0 -> S0", "S1 -> S1"});
}

TEST_CASE("a negation turns maxima into minima: true, and of mixed kinds") {
    rule_oracle const o(sample("aten::neg").arg("self", eighths({12, 4})));
    CHECK(found_on(o, 3).count("P(max) -> P(min)") == 1);
    CHECK(mixes_kinds({{placement::partial(reduction::max)}, {placement::partial(reduction::min)}}));
    CHECK_FALSE(mixes_kinds({{P, R, S(0)}, {P, P}}));
}

// [4,12] -> [48]: the second dim behind the whole first one is a shard with whole factor 4.
TEST_CASE("whole factors of views are found, and sizes are made local for each of them") {
    auto const rows = found_on(rule_oracle(sample("aten::view").arg("self", eighths({4, 12})).arg("size", shape{48})), 2);
    CHECK(rows.count("S0 -> S0") == 1);
    CHECK(rows.count("S1 -> S0*4") == 1);
    CHECK(rows.count("S1 -> S0") == 0);
    CHECK(rows.count("P(max) -> P(max)") == 1);
}

TEST_CASE("a row follows from a better one whose operands are as given or made of Replicate for free") {
    axis_row const better{{S(0), R}, {S(0)}};
    CHECK(is_dominated({{S(0), R}, {S(0)}}, better));
    CHECK(is_dominated({{R, R}, {S(0)}}, better));
    CHECK_FALSE(is_dominated({{P, R}, {S(0)}}, better));
    CHECK_FALSE(is_dominated({{S(0), R}, {P}}, better));
    CHECK(is_dominated({{P, R}, {P}}, {{P, R}, {R}}));
}

TEST_CASE("a true row that a rule leaves out is missing, unless a waiver names it") {
    rule_registry rules;
    rules.add("aten::mm", [](op_query const& q, std::int64_t n, row_list& rows) {
        rules::matmul_rule(q, n, rows);
        auto all = rows.take();
        for (auto const& row : all)
            if (text_of(row) != "S1, S0 -> P") rows.add(row);
    });
    // take() empties the list; the all-Replicate row came back with the others.
    std::vector<rule_sample> const samples{mm(12, 24, 12), mm(24, 12, 12)};
    auto const check = checked(rules, samples);
    CHECK_FALSE(check.passed());
    REQUIRE(check.ops.size() == 1);
    CHECK(check.ops[0].refuted.empty());
    CHECK(any_has(check.ops[0].missing, "S1, S0 -> P on 2, 3, 4"));
    auto const waived = checked(rules, samples, {{"aten::m*", "S1, S0 -> P", "for this test", 0}, {"*", "*(avg)*", "also", 0}});
    CHECK(waived.passed());
    CHECK(any_has(waived.ops[0].waived, "S1, S0 -> P: for this test"));
    auto const idle = checked(rules, samples, {{"*", "*", "everything", 0}, {"aten::mm", "S7 -> S7", "nothing", 0}});
    CHECK(idle.idle_waivers == std::vector<std::string>{"aten::mm, row S7 -> S7"});
}

TEST_CASE("a wrong row is refuted and named with its sample, on one axis and on two") {
    rule_registry rules;
    rules.add("aten::mm", [](op_query const& q, std::int64_t n, row_list& rows) {
        rules::matmul_rule(q, n, rows);
        rows.add({S(1), R}, {S(1)});
    });
    auto const check = checked(rules, {mm(12, 12, 12), mm(24, 24, 24)});
    CHECK_FALSE(check.passed());
    CHECK(any_has(check.ops[0].refuted, "aten::mm([12, 12] float64, [12, 12] float64) on 2, row S1, R -> S1"));
    CHECK(any_has(check.ops[0].refuted, " on 2x3, row "));
}

TEST_CASE("a row that is true for positive numbers only is no missing row") {
    rule_registry rules;
    rules.add("aten::mul.Tensor", [](op_query const&, std::int64_t, row_list&) {});
    auto const make = [](bool positive) {
        return sample("aten::mul.Tensor").arg("self", eighths({12, 4})).arg("other", eighths({12, 4}, positive));
    };
    auto const check = checked(rules, {make(true), make(false)});
    CHECK_FALSE(any_has(check.ops[0].missing, "P(max), R -> P(max)"));
    CHECK(any_has(check.ops[0].conditional, "P(max), R -> P(max)"));
    CHECK(any_has(check.ops[0].missing, "P, R -> P"));
}

TEST_CASE("what one sample of few values shows is set apart, and an op without samples is uncovered") {
    rule_registry rules;
    for (auto name : {"aten::sum", "aten::mm"}) rules.add(name, [](op_query const&, std::int64_t, row_list&) {});
    auto const check = checked(rules, {sample("aten::sum").arg("self", eighths({12})).arg("dtype", none)});
    CHECK(any_has(check.ops[0].seen_once, "S0 -> P"));
    CHECK(check.ops[0].missing.empty());
    CHECK(check.uncovered == std::vector<std::string>{"aten::mm"});
    CHECK(checked(rules, {mm(12, 12, 12)}, {{"aten::sum", "no samples", "for this test", 0}}).uncovered.empty());
}

TEST_CASE("mutants of true rows die, and a rule of a type that cannot tell is not excused") {
    rule_registry rules;
    rules.add("aten::mm", rules::matmul_rule);
    auto const m = checked(rules, {mm(12, 24, 12), mm(24, 12, 12)}).mutations();
    CHECK(m.changed > 200);
    CHECK(m.survivors.empty());
    CHECK(m.rate() == 1.0);
    // All values alike: an oracle on such data sees no cut.
    auto const flat = sample("aten::mm").arg("self", at::ones({12, 12}, at::kDouble)).arg("mat2", at::ones({12, 12}, at::kDouble));
    CHECK(checked(rules, {flat}).mutations().killed < checked(rules, {mm(12, 12, 12)}).mutations().killed);
}

TEST_CASE("an op that no rule has is refused with names like it") {
    rule_registry rules;
    for (auto name : {"aten::mm", "aten::bmm", "aten::add.Tensor"}) rules.add(name, rules::matmul_rule);
    try {
        check_rules(rules, {}, {}, {"aten::mms", 0, 1});
        FAIL("not refused");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_option);
        CHECK(std::string(e.what()).find("aten::mm, aten::bmm") != std::string::npos);
    }
}

TEST_CASE("waivers are read with their reasons, and broken ones are refused") {
    auto const list = parse_waivers(R"([{"op": "aten::*", "rows": ["P -> R", "S0 -> *"], "reason": "constant"}])", "w.json");
    REQUIRE(list.size() == 2);
    CHECK(list[1].row == "S0 -> *");
    CHECK(fits_pattern("aten::new_*", "aten::new_full"));
    CHECK(fits_pattern("*, P -> *", "R, P -> P(avg)"));
    CHECK_FALSE(fits_pattern("P -> R", "P -> R, R"));
    CHECK_THROWS_AS(parse_waivers("[", "w.json"), error);
    CHECK_THROWS_AS(parse_waivers(R"([{"op": "aten::mm", "rows": ["P -> R"]}])", "w.json"), error);
    CHECK_THROWS_AS(parse_waivers(R"([{"op": "aten::mm", "rows": [], "reason": "x"}])", "w.json"), error);
}

// ---- two axes ---------------------------------------------------------------------------------------------------------------------

TEST_CASE("A41: a contracted dim cut in another order on one side is refuted, in the same order on both it is a sum") {
    rule_oracle const o(sample("aten::mm").arg("self", eighths({12, 12})).arg("mat2", eighths({12, 12})));
    for (auto text : {"2x2", "2x3", "3x2"}) {
        auto const mesh = device_mesh::parse(text, "a,b");
        auto const at = [&](char const* l) { return layout::parse(mesh, l); };
        CHECK(o.check({{at("S1,S1"), at("S0,S0"), at("P,P")}}, mesh).holds());
        CHECK(o.check({{at("S1,S1; d1=b>a"), at("S0,S0; d0=b>a"), at("P,P")}}, mesh).holds());
        CHECK(o.check({{at("S1,S1"), at("S0,S0; d0=b>a"), at("P,P")}}, mesh).refuted());
        CHECK(o.check({{at("S1,S1"), at("S0,S0"), at("P,R")}}, mesh).refuted());
    }
}

// [16] -> [2,8] on (2,2): the first axis takes the dim of size 2, the second goes on to 8. And back: [2,8] -> [16].
TEST_CASE("E2: axes of a view are applied one after the other, and a product of rows of one axis is refuted") {
    auto const mesh = device_mesh::parse("2x2", "a,b");
    auto const at = [&](char const* l) { return layout::parse(mesh, l); };
    rule_oracle const split(sample("aten::view").arg("self", eighths({16})).arg("size", shape{2, 8}));
    CHECK(split.check({{at("S0,S0"), at("S0,S1")}}, mesh).holds());
    CHECK(split.check({{at("S0,S0"), at("S1,S0")}}, mesh).refuted());
    rule_oracle const merge(sample("aten::view").arg("self", eighths({2, 8})).arg("size", shape{16}));
    CHECK(merge.check({{at("S0,S1"), at("S0,S0")}}, mesh).holds());
    CHECK(merge.check({{at("R,S1"), at("R,S0; d0=2>b")}}, mesh).holds());
    CHECK(merge.check({{at("S0,S1"), at("S0,S0; d0=a>2>b")}}, mesh).refuted());
}

TEST_CASE("sums over one axis of averages over the other add up, and maxima beside sums do not") {
    auto const mesh = device_mesh::parse("2x3", "a,b");
    rule_oracle const o(sample("aten::mm").arg("self", eighths({12, 12})).arg("mat2", eighths({12, 12})));
    auto const mixed = layout::parse(mesh, "P,P(avg)");
    auto const whole = layout::parse(mesh, "R,R");
    CHECK(o.check({{mixed, whole, mixed}}, mesh).holds());
    CHECK(o.check({{mixed, whole, layout::parse(mesh, "P(avg),P")}}, mesh).refuted());
    CHECK(o.check({{mixed, whole, layout::parse(mesh, "P,P")}}, mesh).refuted());
}

TEST_CASE("inner collectives on the wrong axis, of the wrong kind or too many are refuted") {
    auto const mesh = device_mesh::parse("2x3", "a,b");
    auto const at = [&](char const* l) { return layout::parse(mesh, l); };
    rule_oracle const o(sample("cantle::cross_entropy")
                            .arg("logits", eighths({12, 24}) / 16)
                            .arg("target", indices({12}, 24))
                            .arg("ignore_index", -100)
                            .arg("reduction", "mean"));
    inner_collective const maximum{collective_kind::all_reduce, reduction::max, true, 1},
        sum{collective_kind::all_reduce, reduction::sum, true, 1}, count{collective_kind::all_reduce, reduction::sum, true, 2};
    std::vector<layout> const layouts{at("S0,S1"), at("S0,R"), at("P,R"), at("S0,R"), at("R,R")};
    CHECK(o.check({layouts, {{0, count}, {1, maximum}, {1, sum}, {1, sum}}}, mesh).holds());
    CHECK(o.check({layouts, {{1, count}, {1, maximum}, {1, sum}, {1, sum}}}, mesh).refuted());
    CHECK(o.check({layouts, {{0, count}, {1, sum}, {1, sum}, {1, sum}}}, mesh).refuted());
    CHECK(o.check({layouts, {{0, count}, {1, maximum}, {1, sum}}}, mesh).refuted());
    CHECK(o.check({layouts, {{0, count}, {0, count}, {1, maximum}, {1, sum}, {1, sum}}}, mesh).refuted());
}
