// SPDX-License-Identifier: BSL-1.0
// Reported faults (cases A of the project's list) that belong to no single family of rules. The others carry their number in the name of
// their test beside the family; tests/checks/check_faults.py counts that none is missing.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <cantle/graph/builder.hpp>
#include <cantle/mesh/local_piece.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/problem/build_problem.hpp>

using namespace cantle;
using namespace cantle::test;

namespace {
digest key_of(op const& o) {
    stable_hasher h;
    o.feed(h);
    return h.finish();
}
}  // namespace

// item(P(sum) on 2 ranks: 3 and 4) is 7; each rank would read its own share.
TEST_CASE("A28: reading a value has no rule, so no plan lets a rank read its share of a Partial") {
    auto const rules = standard_rules();
    for (auto name : {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal"})
        CHECK_MESSAGE(!rules.covers(example_op(name).tensor("self", {}).out({}).query()), name);
}

// The same attention twice, once without logsumexp: two op classes, never one answer for both.
TEST_CASE("A37, A38, A55: static arguments tell ops apart, all of them") {
    auto const attention = [](bool logsumexp) {
        return example_op("aten::_scaled_dot_product_efficient_attention")
            .tensor("query", {2, 4, 8, 16})
            .tensor("key", {2, 4, 8, 16})
            .tensor("value", {2, 4, 8, 16})
            .literal("compute_log_sumexp", logsumexp)
            .operation;
    };
    CHECK(key_of(attention(true)) != key_of(attention(false)));
    auto const slice = [](std::int64_t dim, std::int64_t start) {
        return example_op("aten::slice_backward").tensor("grad_output", {4, 4}).literal("dim", dim).literal("start", start).operation;
    };
    CHECK(key_of(slice(0, 1)) != key_of(slice(1, 1)));
    CHECK(key_of(slice(0, 1)) != key_of(slice(0, 2)));
    auto const histogram = [](std::int64_t bins) { return example_op("aten::histc").tensor("self", {8}).literal("bins", bins).operation; };
    CHECK(key_of(histogram(4)) != key_of(histogram(8)));
}

// norms n0 = P(sum), n1 = R: stacked they would be neither.
TEST_CASE("A56: norms are stacked in one form: no row mixes a Partial operand with a whole one or with another kind") {
    auto const stack = example_op("aten::stack").tensors("tensors", {{}, {}}).literal("dim", std::int64_t{0}).out({2});
    auto const rows = rows_of(stack, 2);
    CHECK(has(rows, "P, P -> P"));
    CHECK(has(rows, "R, R -> R"));
    for (auto const& r : rows) {
        CHECK_MESSAGE(r.find("P, R") == std::string::npos, r);
        CHECK_MESSAGE(r.find("R, P") == std::string::npos, r);
        CHECK_MESSAGE(r.find("P(max), P ") == std::string::npos, r);
    }
}

TEST_CASE("A56: a layout speaks of one mesh: one of another mesh does not parse on this one") {
    auto const here = device_mesh::parse("2x4", "dp,tp");
    CHECK_THROWS_AS(layout::parse(here, "S0"), error);
    CHECK_THROWS_AS(layout::parse(here, "S0,S0; d0=ep>dp"), error);
}

// 14 rows on 4 ranks: 4 4 4 2, as torch.chunk has it.   declared 2 3 4 5: refused by the executor, which names both shapes
TEST_CASE("A58: pieces are chunks of ceil(n / k) rows, so sizes 2, 3, 4, 5 of 14 are no layout") {
    auto const mesh = device_mesh::parse("4");
    auto l = layout(1);
    REQUIRE(l.apply(0, 4, placement::shard(0), {14}, shard_policy::uneven));
    std::vector<std::int64_t> sizes, offsets;
    for (std::int64_t r = 0; r < 4; ++r) {
        auto const p = piece_of(l, mesh, {14}, r);
        sizes.push_back(p.sizes[0]);
        offsets.push_back(p.offset[0]);
    }
    CHECK(sizes == std::vector<std::int64_t>{4, 4, 4, 2});
    CHECK(offsets == std::vector<std::int64_t>{0, 4, 8, 12});
    CHECK_FALSE(layout(1).fits({14}, shard_policy::even) != layout(1).fits({14}, shard_policy::uneven));  // whole: both alike
    auto even = layout(1);
    CHECK_FALSE(even.apply(0, 4, placement::shard(0), {14}));
}

// ---- found by trying to break the rules ------------------------------------------------------------------------------------------------

TEST_CASE("nearest upsampling cuts image dims only where the kernel's scale is the ratio of the sizes") {
    auto const up = [](argument_value scale) {
        return rows_of(example_op("aten::upsample_nearest1d")
                           .tensor("self", {1, 2, 4})
                           .literal("output_size", shape{8})
                           .literal("scales", std::move(scale))
                           .out({1, 2, 8}),
                       2);
    };
    CHECK(has(up(std::monostate{}), "S2 -> S2"));
    CHECK(has(up(2.0), "S2 -> S2"));
    CHECK_FALSE(has(up(2.2), "S2 -> S2"));
}

TEST_CASE("a literal that is a flag counts as 1: it is not added once per rank") {
    auto const scatter = [](argument_value value) {
        return rows_of(example_op("aten::scatter.value")
                           .tensor("self", {2})
                           .literal("dim", std::int64_t{0})
                           .tensor("index", {1}, dtype::int64)
                           .literal("value", std::move(value))
                           .out({2}),
                       2);
    };
    CHECK(has(scatter(0.0), "P, R -> P"));
    CHECK_FALSE(has(scatter(true), "P, R -> P"));
    CHECK_FALSE(has(scatter(1.0), "P, R -> P"));
}

TEST_CASE("0 log 0 is 0, so x log y is not linear in x; a mean of whole numbers rounds") {
    auto const xlogy = example_op("aten::xlogy.Tensor").tensor("self", {4}).tensor("other", {4}).out({4});
    CHECK(rows_of(xlogy, 2) == texts{"R, R -> R", "S0, S0 -> S0"});
    auto const mean = [](dtype t) {
        return rows_of(example_op("aten::scatter_reduce.two")
                           .tensor("self", {4}, t)
                           .literal("dim", std::int64_t{0})
                           .tensor("index", {4}, dtype::int64)
                           .tensor("src", {4}, t)
                           .literal("reduce", std::string("mean"))
                           .literal("include_self", true)
                           .out({4}, t),
                       2);
    };
    CHECK(has(mean(dtype::float32), "P, R, P -> P"));
    CHECK_FALSE(has(mean(dtype::int64), "P, R, P -> P"));
}

TEST_CASE("E5: cat promotes its operands as a cast does; whole numbers that wrap have no order") {
    auto cat = example_op("aten::cat").tensors("tensors", {{4}, {4}}).literal("dim", std::int64_t{0}).out({8});
    CHECK(has(rows_of(cat, 2), "P, P -> P"));
    cat.operands[1].type = dtype::int64;
    CHECK_FALSE(has(rows_of(cat, 2), "P, P -> P"));
    auto const add = [](dtype t) {
        return rows_of(example_op("aten::add.Scalar").tensor("self", {4}, t).literal("other", std::int64_t{10}).out({4}, t), 2);
    };
    CHECK(has(add(dtype::int64), "P(max) -> P(max)"));
    CHECK_FALSE(has(add(dtype::uint8), "P(max) -> P(max)"));
}

TEST_CASE("einsum: no letter that stands twice in one factor is cut, however many there are") {
    auto const e = [](char const* equation, std::vector<shape> const& in, shape out) {
        return rows_of(example_op("aten::einsum").literal("equation", std::string(equation)).tensors("tensors", in).out(std::move(out)), 2);
    };
    for (auto const& row : e("ii,jj->ij", {{4, 4}, {4, 4}}, {4, 4})) CHECK_MESSAGE(row.find('S') == std::string::npos, row);
    for (auto const& row : e("iijj->ij", {{4, 4, 4, 4}}, {4, 4})) CHECK_MESSAGE(row.find('S') == std::string::npos, row);
    CHECK(has(e("ik,kj->ij", {{4, 4}, {4, 4}}, {4, 4}), "S0, R -> S0"));
}

TEST_CASE("as_strided of a tensor that is not contiguous has no local program") {
    auto e = example_op("aten::as_strided").tensor("self", {4, 8}).literal("size", shape{4, 4}).literal("stride", shape{8, 1}).out({4, 4});
    auto const whole = layout(1);
    auto const play = [&] {
        local_view v{&e.operation, {}, {}, 1};
        for (auto const& t : e.operands) v.operands.push_back({t, piece_of(whole, device_mesh::parse("2"), t.sizes, 0), &whole});
        for (auto const& t : e.outputs) v.outputs.push_back({t, piece_of(whole, device_mesh::parse("2"), t.sizes, 0), &whole});
        standard_rules().local(v);
    };
    CHECK_NOTHROW(play());
    e.operands[0].strides = {1, 4};
    CHECK_THROWS_AS(play(), error);
}
