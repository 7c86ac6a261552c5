// SPDX-License-Identifier: BSL-1.0
// Reading and writing by index: which cuts pass, which are masked, which kinds of Partial pass. Notation as in test_rows.cpp; a masked row
// ends in "!". The numbers of the cases are in adapters/libtorch/tests/test_faults_indexing.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <map>

using namespace cantle;
using namespace cantle::test;

namespace {
using i = std::int64_t;
texts const every_kind{"P", "P(avg)", "P(max)", "P(min)"}, sums{"P", "P(avg)"};

/// Rows that divide, sorted, masked ones marked, less those that are Partial alone: these are asked for with kinds_of.
texts cuts_of(example_op const& e, std::int64_t n) {
    std::map<std::string, bool> masked;
    for (auto const& row : standard_rules().rows(e.query(), n)) masked[text_of(row)] = row.masked;
    texts found;
    for (auto const& t : rows_of(e, n))
        if (t.find('S') != std::string::npos) found.push_back(t + (masked[t] ? "!" : ""));
    std::sort(found.begin(), found.end());
    return found;
}
/// The kinds of Partial with no cut beside them, as "P, R -> P".
texts partials_of(example_op const& e) {
    texts found;
    for (auto const& t : rows_of(e, 2))
        if (t.find('S') == std::string::npos && t.find('P') != std::string::npos) found.push_back(t);
    return found;
}
/// "K, R -> K" for all kinds.
texts of_kinds(std::string const& pattern, texts const& kinds) {
    texts all;
    for (auto const& k : kinds) {
        std::string t;
        for (char c : pattern) t += c == 'K' ? k : std::string(1, c);
        all.push_back(t);
    }
    return all;
}
/// What adding passes: sums on both, an order on self alone.
texts const added{"P, R, P -> P", "P(avg), R, P(avg) -> P(avg)", "P(max), R, R -> P(max)", "P(min), R, R -> P(min)"};
/// index(self, indices) with -1 for None: the operands that index count from 1.
example_op index(shape self, std::vector<std::int32_t> by, std::vector<shape> const& indices, shape out, dtype type = dtype::float32) {
    example_op e("aten::index.Tensor");
    e.tensor("self", std::move(self), type);
    for (auto const& s : indices) e.operands.push_back(contiguous_meta(s, dtype::int64));
    e.operation.arguments.push_back({"indices", operand_slots{std::move(by)}});
    return e.out(std::move(out), type);
}
example_op index_put(shape self, std::vector<std::int32_t> by, std::vector<shape> const& indices, shape values, bool accumulate) {
    example_op e("aten::index_put");
    e.tensor("self", self);
    for (auto const& s : indices) e.operands.push_back(contiguous_meta(s, dtype::int64));
    e.operation.arguments.push_back({"indices", operand_slots{std::move(by)}});
    return e.tensor("values", std::move(values)).literal("accumulate", accumulate).out(self);
}
example_op scatter(std::string name, shape self, shape index, shape src, i dim) {
    return example_op(std::move(name))
        .tensor("self", self)
        .literal("dim", dim)
        .tensor("index", std::move(index), dtype::int64)
        .tensor("src", std::move(src))
        .out(self);
}
example_op scatter_reduce(std::string how, bool include_self) {
    return scatter("aten::scatter_reduce.two", {4, 6}, {4, 8}, {4, 8}, 1)
        .literal("reduce", std::move(how))
        .literal("include_self", include_self);
}
}  // namespace

// ---- index

TEST_CASE("rows of a table: the other dims pass, the indices' dims become dims, a cut of the rows is masked and sums up") {
    auto const e = index({8, 6}, {1}, {{4, 10}}, {4, 10, 6});
    CHECK(cuts_of(e, 2) == texts{"R, S0 -> S0", "R, S1 -> S1", "S0, R -> P!", "S1, R -> S2"});
    CHECK(partials_of(e) == of_kinds("K, R -> K", every_kind));
}

TEST_CASE("an index on a later dim: what stands before it keeps its place, what stands behind moves by the indices' rank") {
    auto const e = index({4, 8, 6}, {-1, 1}, {{2, 10}}, {4, 2, 10, 6});
    CHECK(cuts_of(e, 2) == texts{"R, S0 -> S1", "R, S1 -> S2", "S0, R -> S0", "S1, R -> P!", "S2, R -> S3"});
}

TEST_CASE("two indices in a row broadcast together; the one that lacks a dim stays whole on it") {
    auto const e = index({4, 8, 6}, {1, 2}, {{2, 1}, {10}}, {2, 10, 6});
    CHECK(cuts_of(e, 2) == texts{"R, R, S0 -> S1", "R, S0, R -> S0", "S0, R, R -> P!", "S1, R, R -> P!", "S2, R, R -> S2"});
}

TEST_CASE("indices that do not stand in a row put their dims first") {
    auto const e = index({4, 8, 6}, {1, -1, 2}, {{10}, {10}}, {10, 8});
    CHECK(cuts_of(e, 2) == texts{"R, S0, S0 -> S0", "S0, R, R -> P!", "S1, R, R -> S1", "S2, R, R -> P!"});
}

TEST_CASE("one tensor that indexes two dims is one operand") {
    CHECK(cuts_of(index({4, 8}, {1, 1}, {{10}}, {10}), 2) == texts{"R, S0 -> S0", "S0, R -> P!", "S1, R -> P!"});
}

TEST_CASE("booleans have no sum, so a masked read of them is a maximum; a mask as index leaves everything whole but Partial") {
    CHECK(cuts_of(index({8, 6}, {1}, {{4}}, {4, 6}, dtype::boolean), 2) == texts{"R, S0 -> S0", "S0, R -> P(max)!", "S1, R -> S1"});
    auto mask = index({8, 6}, {1}, {{8}}, {4, 6});
    for (auto type : {dtype::boolean, dtype::uint8}) {
        mask.operands[1].type = type;
        CHECK(cuts_of(mask, 2).empty());
        CHECK(partials_of(mask) == of_kinds("K, R -> K", every_kind));
    }
}

TEST_CASE("_unsafe_index has the rows of index, _unsafe_index_put those of index_put") {
    auto e = index({8, 6}, {1}, {{4}}, {4, 6});
    auto const rows = rows_of(e, 2);
    e.operation.name = "aten::_unsafe_index.Tensor";
    CHECK(rows_of(e, 2) == rows);
    auto put = index_put({8, 6}, {1}, {{4}}, {4, 6}, true);
    auto const put_rows = rows_of(put, 2);
    put.operation.name = "aten::_unsafe_index_put";
    CHECK(rows_of(put, 2) == put_rows);
}

TEST_CASE("a table cut by both axes and indices cut beside it, on a mesh of two axes") {
    expanded const s(index({8, 6}, {1}, {{4}}, {4, 6}), device_mesh::parse("2x2"));
    CHECK(s.outputs_for("S0,S0 | R,R") == texts{"P,P"});
    CHECK(s.outputs_for("S0,R | R,S0") == texts{"P,S0"});
    CHECK(s.outputs_for("R,S1 | S0,R") == texts{"S0,S1"});
}

// ---- index_put

TEST_CASE("A43: index_put into a cut dim takes whole indices and values and is masked") {
    auto const e = index_put({16}, {1}, {{16}}, {16}, false);
    CHECK(cuts_of(e, 2) == texts{"S0, R, R -> S0!"});
    CHECK(partials_of(e) == of_kinds("K, R, K -> K", every_kind));
}

TEST_CASE("A44: cut values are no row of index_put, unless they add up to a Partial self") {
    CHECK(cuts_of(index_put({4, 4}, {1, 2}, {{4}, {4}}, {4}, false), 4) == texts{"S0, R, R, R -> S0!", "S1, R, R, R -> S1!"});
    auto const adds = index_put({4, 4}, {1, 2}, {{4}, {4}}, {4}, true);
    CHECK(cuts_of(adds, 4) == texts{"P, S0, S0, S0 -> P", "S0, R, R, R -> S0!", "S1, R, R, R -> S1!"});
    CHECK(partials_of(adds) ==
          texts{"P, R, R, P -> P", "P(avg), R, R, P(avg) -> P(avg)", "P(max), R, R, R -> P(max)", "P(min), R, R, R -> P(min)"});
}

TEST_CASE("index_put: values follow the dims that no index speaks of, where they have them") {
    CHECK(cuts_of(index_put({4, 8, 6}, {-1, 1}, {{2}}, {4, 2, 6}, false), 2) ==
          texts{"S0, R, S0 -> S0", "S1, R, R -> S1!", "S2, R, S2 -> S2"});
    CHECK(cuts_of(index_put({4, 8, 6}, {-1, 1}, {{2}}, {1, 6}, false), 2) == texts{"S0, R, R -> S0", "S1, R, R -> S1!", "S2, R, S1 -> S2"});
    CHECK(cuts_of(index_put({4, 8, 6}, {1, -1, 2}, {{2}, {2}}, {2, 8}, true), 2) ==
          texts{"P, S0, S0, S0 -> P", "S0, R, R, R -> S0!", "S1, R, R, S1 -> S1", "S2, R, R, R -> S2!"});
    CHECK(has(cuts_of(index_put({8}, {1}, {{2}}, {}, true), 2), "P, S0, R -> P"));
}

// ---- along one dim

TEST_CASE("index_select and gather: a cut of the index is a cut of the result, a cut of the dim is masked") {
    auto const select =
        example_op("aten::index_select").tensor("self", {4, 8}).literal("dim", i{-1}).tensor("index", {6}, dtype::int64).out({4, 6});
    CHECK(cuts_of(select, 2) == texts{"R, S0 -> S1", "S0, R -> S0", "S1, R -> P!"});
    CHECK(partials_of(select) == of_kinds("K, R -> K", every_kind));
    auto const one =
        example_op("aten::index_select").tensor("self", {4, 8}).literal("dim", i{0}).tensor("index", {}, dtype::int64).out({1, 8});
    CHECK(cuts_of(one, 2) == texts{"S0, R -> P!", "S1, R -> S1"});
    auto const gather = [](shape index) {
        return example_op("aten::gather").tensor("self", {4, 8, 6}).literal("dim", i{1}).tensor("index", index, dtype::int64).out(index);
    };
    CHECK(cuts_of(gather({4, 10, 6}), 2) == texts{"R, S1 -> S1", "S0, S0 -> S0", "S1, R -> P!", "S2, S2 -> S2"});
    // Fewer rows than self has: a rank's rows are not those its indices speak of.
    CHECK(cuts_of(gather({2, 10, 6}), 2) == texts{"R, S1 -> S1", "S1, R -> P!", "S2, S2 -> S2"});
    CHECK(partials_of(gather({4, 10, 6})) == of_kinds("K, R -> K", every_kind));
    auto flags = gather({4, 10, 6});
    flags.operands[0].type = dtype::boolean;
    CHECK(has(cuts_of(flags, 2), "S1, R -> P(max)!"));
}

TEST_CASE("A46: scatter along a whole dim needs no communication; a src larger than the index stays whole there") {
    auto const router = scatter("aten::scatter.src", {16, 8}, {16, 2}, {16, 2}, -1);
    CHECK(cuts_of(router, 2) == texts{"S0, S0, S0 -> S0", "S1, R, R -> S1!"});
    CHECK(partials_of(router) == of_kinds("K, R, K -> K", every_kind));
    CHECK(cuts_of(scatter("aten::scatter.src", {16, 8}, {8, 2}, {16, 2}, 1), 2) == texts{"S1, R, R -> S1!"});
    CHECK(cuts_of(scatter("aten::scatter.src", {16, 8}, {16, 2}, {16, 4}, 1), 2) == texts{"S0, S0, S0 -> S0", "S1, R, R -> S1!"});
    CHECK(cuts_of(scatter("aten::scatter.src", {8, 8}, {8, 2}, {16, 2}, 1), 2) == texts{"S1, R, R -> S1!"});
}

TEST_CASE("scatter of a literal: a sum over ranks only of 0, other kinds of any literal") {
    auto const e = [](double value) {
        return example_op("aten::scatter.value")
            .tensor("self", {4, 8})
            .literal("dim", i{1})
            .tensor("index", {4, 2}, dtype::int64)
            .literal("value", value)
            .out({4, 8});
    };
    CHECK(cuts_of(e(0.0), 2) == texts{"S0, S0 -> S0", "S1, R -> S1!"});
    CHECK(partials_of(e(0.0)) == of_kinds("K, R -> K", every_kind));
    CHECK(partials_of(e(2.0)) == of_kinds("K, R -> K", {"P(avg)", "P(max)", "P(min)"}));
}

TEST_CASE("what adds up is linear in self and source together, and shares of the updates add up to a Partial self") {
    auto const add = scatter("aten::scatter_add", {4, 6}, {4, 8}, {4, 8}, 1);
    CHECK(cuts_of(add, 2) == texts{"P, S1, S1 -> P", "S0, S0, S0 -> S0", "S1, R, R -> S1!"});
    CHECK(partials_of(add) == added);
    // A wider source is cut elsewhere than the index.
    CHECK(cuts_of(scatter("aten::scatter_add", {4, 6}, {4, 4}, {4, 8}, 1), 2) == texts{"S0, S0, S0 -> S0", "S1, R, R -> S1!"});
    auto const rows = example_op("aten::index_add")
                          .tensor("self", {4, 6})
                          .literal("dim", i{-1})
                          .tensor("index", {8}, dtype::int64)
                          .tensor("source", {4, 8})
                          .literal("alpha", i{1})
                          .out({4, 6});
    CHECK(cuts_of(rows, 2) == texts{"P, S0, S1 -> P", "S0, R, S0 -> S0", "S1, R, R -> S1!"});
    CHECK(partials_of(rows) == added);
}

TEST_CASE("scatter_reduce: each reduction passes its own kind, shares only where self has its part in it") {
    auto const cut = texts{"S0, S0, S0 -> S0", "S1, R, R -> S1!"};
    auto const shares = [&](std::string const& p) { return texts{p + ", S1, S1 -> " + p, cut[0], cut[1]}; };
    CHECK(cuts_of(scatter_reduce("sum", true), 2) == shares("P"));
    CHECK(cuts_of(scatter_reduce("amax", true), 2) == shares("P(max)"));
    CHECK(cuts_of(scatter_reduce("amin", true), 2) == shares("P(min)"));
    for (auto how : {"sum", "amax", "amin", "mean", "prod"}) CHECK(cuts_of(scatter_reduce(how, false), 2) == cut);
    for (auto how : {"mean", "prod"}) CHECK(cuts_of(scatter_reduce(how, true), 2) == cut);
    for (bool with_self : {true, false}) {
        CHECK(partials_of(scatter_reduce("sum", with_self)) == (with_self ? added : of_kinds("K, R, K -> K", sums)));
        CHECK(partials_of(scatter_reduce("mean", with_self)) == of_kinds("K, R, K -> K", sums));
        CHECK(partials_of(scatter_reduce("amax", with_self)) == of_kinds("K, R, K -> K", {"P(max)"}));
        CHECK(partials_of(scatter_reduce("amin", with_self)) == of_kinds("K, R, K -> K", {"P(min)"}));
        CHECK(partials_of(scatter_reduce("prod", with_self)) == (with_self ? of_kinds("K, R, R -> K", sums) : texts{}));
    }
}

TEST_CASE("scatter with an old-style reduce: adding a literal is affine, multiplying by one is linear and keeps order if it is positive") {
    auto const e = [](std::string how, double value) {
        return example_op("aten::scatter.value_reduce")
            .tensor("self", {4, 8})
            .literal("dim", i{1})
            .tensor("index", {4, 2}, dtype::int64)
            .literal("value", value)
            .literal("reduce", how)
            .out({4, 8});
    };
    CHECK(partials_of(e("add", 1.5)) == of_kinds("K, R -> K", {"P(avg)", "P(max)", "P(min)"}));
    CHECK(partials_of(e("add", 0.0)) == of_kinds("K, R -> K", every_kind));
    CHECK(partials_of(e("multiply", 1.5)) == of_kinds("K, R -> K", every_kind));
    CHECK(partials_of(e("multiply", -1.5)) == of_kinds("K, R -> K", sums));
    auto const src = [](std::string how) { return scatter("aten::scatter.reduce", {4, 6}, {4, 8}, {4, 8}, 1).literal("reduce", how); };
    CHECK(partials_of(src("add")) == added);
    CHECK(partials_of(src("multiply")) == of_kinds("K, R, R -> K", sums));
    CHECK(has(cuts_of(src("add"), 2), "P, S1, S1 -> P"));
}

TEST_CASE("index_copy and index_fill write rows") {
    auto const copy = example_op("aten::index_copy")
                          .tensor("self", {4, 6})
                          .literal("dim", i{0})
                          .tensor("index", {2}, dtype::int64)
                          .tensor("source", {2, 6})
                          .out({4, 6});
    CHECK(cuts_of(copy, 2) == texts{"S0, R, R -> S0!", "S1, R, S1 -> S1"});
    CHECK(partials_of(copy) == of_kinds("K, R, K -> K", every_kind));
    auto const fill = [](double value) {
        return example_op("aten::index_fill.int_Scalar")
            .tensor("self", {4, 6})
            .literal("dim", i{0})
            .tensor("index", {2}, dtype::int64)
            .literal("value", value)
            .out({4, 6});
    };
    CHECK(cuts_of(fill(1.0), 2) == texts{"S0, R -> S0!", "S1, R -> S1"});
    CHECK(partials_of(fill(0.0)) == of_kinds("K, R -> K", every_kind));
    CHECK(partials_of(fill(-1.0)) == of_kinds("K, R -> K", {"P(avg)", "P(max)", "P(min)"}));
    auto const tensor = example_op("aten::index_fill.int_Tensor")
                            .tensor("self", {4, 6})
                            .literal("dim", i{1})
                            .tensor("index", {2}, dtype::int64)
                            .tensor("value", {})
                            .out({4, 6});
    CHECK(cuts_of(tensor, 2) == texts{"S0, R, R -> S0", "S1, R, R -> S1!"});
    CHECK(partials_of(tensor) == of_kinds("K, R, K -> K", every_kind));
}
