// SPDX-License-Identifier: BSL-1.0
// Reported faults of rules that need the case's own sizes, or the order of rows: what may not be offered is looked for by name.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <algorithm>
#include <set>

using namespace cantle;
using namespace cantle::test;

namespace {
std::set<std::string> as_set(texts const& t) { return {t.begin(), t.end()}; }
/// The standard rules of one op, its rows in reverse or rotated order.
struct reordered_rules {
    rule_registry const& rules;
    bool reverse;
    std::vector<axis_row> rows(op_query const& q, std::int64_t n) const {
        auto rows = rules.rows(q, n);
        if (reverse) std::reverse(rows.begin(), rows.end());
        else std::rotate(rows.begin(), rows.begin() + 1, rows.end());
        return rows;
    }
    bool covers(op_query const& q) const { return rules.covers(q); }
    void feed(stable_hasher& h) const { h.add(reverse); }
};
}  // namespace

//  A [4,4] (S1,S1) times B [4,4] (S0,S0): right where both are cut in one order; B in the order b, a is refused.
TEST_CASE("A41: a contracted dim cut by two axes is offered in one order on both sides only") {
    auto const mesh = device_mesh::parse("2x2", "a,b");
    expanded const s(example_op("aten::mm").tensor("self", {4, 4}).tensor("mat2", {4, 4}).out({4, 4}), mesh);
    CHECK(s.outputs_for("S1,S1 | S0,S0") == texts{"P,P"});
    CHECK(s.outputs_for("S1,S1 | S0,S0; d0=b>a").empty());
    CHECK(s.outputs_for("S1,S1; d1=b>a | S0,S0").empty());
}

TEST_CASE("A29: the candidates do not depend on the order in which a rule lists its rows") {
    auto const& rules = standard_rules();
    auto const sum =
        example_op("aten::sum.dim_IntList").tensor("self", {8, 8}).literal("dim", shape{0, 1}).literal("keepdim", false).out({});
    auto const mean =
        example_op("aten::mean.dim").tensor("self", {8, 8}).literal("dim", shape{0, 1}).literal("keepdim", false).out({});
    for (auto const& e : {sum, mean}) {
        auto const mesh = device_mesh::parse("2x2");
        auto const want = as_set(expanded(e, mesh, rules).texts);
        for (bool reverse : {false, true}) CHECK(as_set(expanded(e, mesh, reordered_rules{rules, reverse}).texts) == want);
    }
    CHECK(expanded(sum, device_mesh::parse("2x2"), reordered_rules{rules, true}).has("S0,S1 -> P,P"));
}

//  10 x 5 x 3 x 8, flat and along each dim
TEST_CASE("A22: argmax of [10,5,3,8] is not cut in what it searches") {
    auto const e = [](argument_value dim, shape to) {
        return example_op("aten::argmax").tensor("self", {10, 5, 3, 8}).literal("dim", dim).literal("keepdim", false).out(to, dtype::int64);
    };
    CHECK(rows_of(e(none, {}), 2) == texts{"R -> R"});
    CHECK(rows_of(e(std::int64_t{0}, {5, 3, 8}), 2) == texts{"R -> R", "S3 -> S2"});
    CHECK(rows_of(e(std::int64_t{-1}, {10, 5, 3}), 2) == texts{"R -> R", "S0 -> S0"});
}

TEST_CASE("B13: a scalar first operand stays whole and the cut follows the operand that has the dims") {
    for (auto name : {"aten::mul.Tensor", "aten::add.Tensor", "aten::div.Tensor", "aten::atan2"}) {
        auto const rows = rows_of(example_op(name).tensor("self", {}).tensor("other", {4, 6}).out({4, 6}), 2);
        CHECK_MESSAGE(has(rows, "R, S0 -> S0"), name);
        CHECK_MESSAGE(has(rows, "R, S1 -> S1"), name);
        for (auto const& r : rows) CHECK_MESSAGE(r.rfind("S", 0) != 0, name, ": ", r);
    }
    auto const where = rows_of(
        example_op("aten::where.self").tensor("condition", {4, 6}, dtype::boolean).tensor("self", {}).tensor("other", {6}).out({4, 6}), 2);
    CHECK(has(where, "S0, R, R -> S0"));
    CHECK(has(where, "S1, R, S0 -> S1"));
}
