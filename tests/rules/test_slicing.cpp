// SPDX-License-Identifier: BSL-1.0
// Parts of dims, what joins them, padding and reordering: which cuts pass. Notation as in test_rows.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

/// Those rows, with Partial of the given kinds on the first `operands` of `all` operands and on the outputs behind them.
texts with_partial(texts rows, std::size_t operands, std::size_t all, std::size_t outputs,
                   texts const& kinds = {"P", "P(avg)", "P(max)", "P(min)"}) {
    auto const list = [](std::string const& p, std::size_t n, std::size_t of) {
        std::string s;
        for (std::size_t i = 0; i < of; ++i) s += (i ? ", " : "") + (i < n ? p : std::string("R"));
        return s;
    };
    rows.insert(rows.begin(), list("", 0, all) + " -> " + list("", 0, outputs));
    for (auto const& k : kinds) rows.push_back(list(k, operands, all) + " -> " + list(k, outputs, outputs));
    return rows;
}
texts moved(texts rows) { return with_partial(std::move(rows), 1, 1, 1); }
texts moved_two(texts rows) { return with_partial(std::move(rows), 2, 2, 1); }

/// An op (self, dim, start, end, step) from one shape to another.
example_op slice(std::string name, shape from, shape to, std::int64_t dim, argument_value start, argument_value end,
                 std::int64_t step = 1) {
    return example_op(std::move(name))
        .tensor("self", from)
        .literal("dim", dim)
        .literal("start", start)
        .literal("end", end)
        .literal("step", step)
        .out(to);
}
example_op along(std::string name, shape from, std::int64_t dim, std::vector<shape> const& to) {
    auto e = example_op(std::move(name)).tensor("self", std::move(from)).literal("dim", dim);
    for (auto const& s : to) e.out(s);
    return e;
}
using i = std::int64_t;
}  // namespace

// ---- slices

TEST_CASE("A50: x[4:12] of 16 is not local on 4 ranks; the whole dim is, however it is written, and other dims always") {
    for (auto name : {"aten::slice.Tensor", "aten::slice_copy.Tensor"}) {
        CHECK(rows_of(slice(name, {16, 4}, {8, 4}, 0, i{4}, i{12}), 4) == moved({"S1 -> S1"}));
        CHECK(rows_of(slice(name, {16, 4}, {16, 4}, 0, none, none), 4) == moved({"S0 -> S0", "S1 -> S1"}));
        CHECK(rows_of(slice(name, {16, 4}, {16, 4}, -2, i{-16}, i{16}), 4) == moved({"S0 -> S0", "S1 -> S1"}));
    }
    CHECK(rows_of(slice("aten::slice.Tensor", {16, 4}, {12, 4}, 0, i{4}, i{16}), 4) == moved({"S1 -> S1"}));
}

//  every second of 16 on 4 ranks: each rank keeps every second of its 4; of 12 on 4 ranks the pieces of 3 do not fit the step
TEST_CASE("A50: every step-th element is local where the step divides the pieces and the first pick lies within one step") {
    CHECK(has(rows_of(slice("aten::slice.Tensor", {16}, {8}, 0, i{0}, i{16}, 2), 4), "S0 -> S0"));
    CHECK(has(rows_of(slice("aten::slice.Tensor", {16}, {8}, 0, i{1}, i{INT64_MAX}, 2), 4), "S0 -> S0"));
    CHECK_FALSE(has(rows_of(slice("aten::slice.Tensor", {12}, {6}, 0, i{0}, i{12}, 2), 4), "S0 -> S0"));
    CHECK_FALSE(has(rows_of(slice("aten::slice.Tensor", {18}, {8}, 0, i{2}, i{18}, 2), 3), "S0 -> S0"));
    CHECK_FALSE(has(rows_of(slice("aten::slice.Tensor", {16}, {7}, 0, i{2}, i{16}, 2), 4), "S0 -> S0"));
    CHECK_FALSE(has(rows_of(slice("aten::slice.Tensor", {16}, {8}, 0, i{-16}, i{16}, 2), 4), "S0 -> S0"));  // not known from local sizes
    // On two axes of 2 the pieces of 4 are cut again to 2.
    expanded const s(slice("aten::slice.Tensor", {8}, {4}, 0, i{1}, i{8}, 2), device_mesh::parse("2x2"));
    CHECK(s.outputs_for("S0,S0") == texts{"S0,S0"});
    expanded const odd(slice("aten::slice.Tensor", {12}, {6}, 0, i{1}, i{12}, 2), device_mesh::parse("2x2"));
    CHECK(odd.outputs_for("S0,S0").empty());
}

TEST_CASE("narrow passes a cut of its dim only when it takes all of it") {
    for (auto name : {"aten::narrow", "aten::narrow_copy"}) {
        auto const e = [&](i start, i length) {
            return example_op(name)
                .tensor("self", {8, 6})
                .literal("dim", i{0})
                .literal("start", start)
                .literal("length", length)
                .out({length, 6});
        };
        CHECK(rows_of(e(2, 4), 2) == moved({"S1 -> S1"}));
        CHECK(rows_of(e(0, 8), 2) == moved({"S0 -> S0", "S1 -> S1"}));
    }
}

TEST_CASE("the backward of a slice passes what the slice passes, Partial of every kind because all ranks fill with 0") {
    auto const e = [](shape part, i start, i end, i step) {
        return slice("aten::slice_backward", std::move(part), {16, 6}, 0, start, end, step);
    };
    CHECK(rows_of(e({8, 6}, 4, 12, 1), 2) == moved({"S1 -> S1"}));
    CHECK(rows_of(e({16, 6}, 0, 16, 1), 2) == moved({"S0 -> S0", "S1 -> S1"}));
    CHECK(rows_of(e({8, 6}, 1, 16, 2), 2) == moved({"S0 -> S0", "S1 -> S1"}));
}

TEST_CASE("slice_scatter and select_scatter cut both tensors alike and take Partial on both together") {
    auto const slices = [](shape part, i start, i end, i step) {
        return example_op("aten::slice_scatter")
            .tensor("self", {16, 6})
            .tensor("src", std::move(part))
            .literal("dim", i{0})
            .literal("start", start)
            .literal("end", end)
            .literal("step", step)
            .out({16, 6});
    };
    CHECK(rows_of(slices({8, 6}, 4, 12, 1), 2) == moved_two({"S1, S1 -> S1"}));
    CHECK(rows_of(slices({8, 6}, 0, 16, 2), 2) == moved_two({"S0, S0 -> S0", "S1, S1 -> S1"}));
    auto const select =
        example_op("aten::select_scatter").tensor("self", {4, 6, 8}).tensor("src", {4, 8}).literal("dim", i{-2}).out({4, 6, 8});
    CHECK(rows_of(select, 2) == moved_two({"S0, S0 -> S0", "S2, S1 -> S2"}));
}

// ---- select, split, unbind

TEST_CASE("select drops its dim and select_backward brings it back") {
    for (auto name : {"aten::select.int", "aten::select_copy.int"})
        CHECK(rows_of(along(name, {2, 4, 6}, 1, {{2, 6}}), 2) == moved({"S0 -> S0", "S2 -> S1"}));
    CHECK(rows_of(along("aten::select_backward", {2, 6}, -2, {{2, 4, 6}}), 2) == moved({"S0 -> S0", "S1 -> S2"}));
}

TEST_CASE("unbind and split cut all their outputs alike, never along their own dim") {
    for (auto name : {"aten::unbind.int", "aten::unbind_copy.int"})
        CHECK(rows_of(along(name, {4, 2, 6}, 1, {{4, 6}, {4, 6}}), 2) == with_partial({"S0 -> S0, S0", "S2 -> S1, S1"}, 1, 1, 2));
    for (auto name : {"aten::split.Tensor", "aten::split_copy.Tensor", "aten::split_with_sizes", "aten::split_with_sizes_copy",
                      "aten::split.sizes", "aten::chunk"}) {
        CHECK(rows_of(along(name, {4, 8}, -1, {{4, 4}, {4, 4}}), 2) == with_partial({"S0 -> S0, S0"}, 1, 1, 2));
        CHECK(rows_of(along(name, {4, 8}, 1, {{4, 8}}), 2) == moved({"S0 -> S0", "S1 -> S1"}));
    }
}

// ---- windows and diagonals

TEST_CASE("windows that do not overlap stay on their rank where the step divides the pieces") {
    auto const e = [](std::string name, shape to, i size, i step) {
        return example_op(std::move(name))
            .tensor("self", {4, 12})
            .literal("dimension", i{-1})
            .literal("size", size)
            .literal("step", step)
            .out(std::move(to));
    };
    for (auto name : {"aten::unfold", "aten::unfold_copy"}) {
        CHECK(rows_of(e(name, {4, 6, 2}, 2, 2), 2) == moved({"S0 -> S0", "S1 -> S1"}));
        CHECK(rows_of(e(name, {4, 6, 1}, 1, 2), 3) == moved({"S1 -> S1"}));
        CHECK(rows_of(e(name, {4, 6, 2}, 2, 2), 4) == moved({"S0 -> S0"}));
        CHECK(rows_of(e(name, {4, 10, 3}, 3, 1), 2) == moved({"S0 -> S0"}));
        CHECK(rows_of(e(name, {4, 4, 4}, 4, 2), 2) == moved({"S0 -> S0"}));
    }
    auto const back = [](shape grad, i size, i step) {
        return example_op("aten::unfold_backward")
            .tensor("grad_in", std::move(grad))
            .literal("input_sizes", shape{4, 12})
            .literal("dim", i{1})
            .literal("size", size)
            .literal("step", step)
            .out({4, 12});
    };
    CHECK(rows_of(back({4, 6, 2}, 2, 2), 2) == moved({"S0 -> S0", "S1 -> S1"}));
    // Overlapping windows add up: no maximum passes a sum.
    CHECK(rows_of(back({4, 10, 3}, 3, 1), 2) == with_partial({"S0 -> S0"}, 1, 1, 1, {"P", "P(avg)"}));
}

TEST_CASE("a diagonal keeps the other dims in order and comes last") {
    auto const e = [](std::string name, shape from, shape to) {
        return example_op(std::move(name))
            .tensor("self", std::move(from))
            .literal("offset", i{0})
            .literal("dim1", i{-3})
            .literal("dim2", i{1})
            .out(std::move(to));
    };
    for (auto name : {"aten::diagonal", "aten::diagonal_copy"}) CHECK(rows_of(e(name, {4, 4, 6}, {6, 4}), 2) == moved({"S2 -> S0"}));
    CHECK(rows_of(e("aten::diagonal_backward", {6, 4}, {4, 4, 6}), 2) == moved({"S0 -> S2"}));
    auto const scatter = example_op("aten::diagonal_scatter")
                             .tensor("self", {2, 4, 4})
                             .tensor("src", {2, 4})
                             .literal("offset", i{0})
                             .literal("dim1", i{1})
                             .literal("dim2", i{-1})
                             .out({2, 4, 4});
    CHECK(rows_of(scatter, 2) == moved_two({"S0, S0 -> S0"}));
}

// ---- cat, stack

TEST_CASE("A53: cat is no concatenation of local results along its own dim") {
    auto const e = example_op("aten::cat").tensors("tensors", {{4, 6}, {2, 6}}).literal("dim", i{0}).out({6, 6});
    CHECK(rows_of(e, 2) == moved_two({"S1, S1 -> S1"}));
    auto const last = example_op("aten::cat").tensors("tensors", {{4, 6}, {4, 2}}).literal("dim", i{-1}).out({4, 8});
    CHECK(rows_of(last, 2) == moved_two({"S0, S0 -> S0"}));
}

TEST_CASE("A53: cat of 60 tensors has the rows of cat of two") {
    auto const e = example_op("aten::cat").tensors("tensors", std::vector<shape>(60, shape{4, 6})).literal("dim", i{1}).out({4, 360});
    auto const rows = rows_of(e, 2);
    CHECK(rows.size() == 6);
    std::string all = "S0";
    for (int k = 1; k < 60; ++k) all += ", S0";
    CHECK(has(rows, all + " -> S0"));
}

TEST_CASE("cat of one tensor is that tensor, and an empty vector among others stays whole") {
    CHECK(rows_of(example_op("aten::cat").tensors("tensors", {{4, 6}}).literal("dim", i{0}).out({4, 6}), 2) ==
          moved({"S0 -> S0", "S1 -> S1"}));
    CHECK(has(rows_of(example_op("aten::cat").tensors("tensors", {{4, 6}, {0}}).literal("dim", i{0}).out({4, 6}), 2), "S1, R -> S1"));
}

TEST_CASE("stack brings a dim in") {
    auto const e = [](i dim, shape to) {
        return example_op("aten::stack").tensors("tensors", {{4, 6}, {4, 6}}).literal("dim", dim).out(std::move(to));
    };
    CHECK(rows_of(e(0, {2, 4, 6}), 2) == moved_two({"S0, S0 -> S1", "S1, S1 -> S2"}));
    CHECK(rows_of(e(-1, {4, 6, 2}), 2) == moved_two({"S0, S0 -> S0", "S1, S1 -> S1"}));
}

// ---- padding, flip, roll

TEST_CASE("padding passes cuts of the dims that it leaves alone; a sum over ranks only where it pads with 0") {
    auto const e = [](shape pad, argument_value value) {
        return example_op("aten::constant_pad_nd")
            .tensor("self", {4, 6, 8})
            .literal("pad", std::move(pad))
            .literal("value", value)
            .out({4, 6, 8});
    };
    CHECK(rows_of(e({1, 0}, 0.0), 2) == moved({"S0 -> S0", "S1 -> S1"}));
    CHECK(rows_of(e({0, 0, 0, 2}, i{0}), 2) == moved({"S0 -> S0", "S2 -> S2"}));
    CHECK(rows_of(e({0, 0, 1, 1, -1, 0}, 0.0), 2) == moved({"S2 -> S2"}));
    CHECK(rows_of(e({1, 0}, 1.5), 2) == with_partial({"S0 -> S0", "S1 -> S1"}, 1, 1, 1, {"P(avg)", "P(max)", "P(min)"}));
    CHECK(rows_of(e({0, -1}, 1.5), 2) == moved({"S0 -> S0", "S1 -> S1"}));  // takes away, pads nothing
    auto const pad = [](std::string mode, argument_value value) {
        return example_op("aten::pad")
            .tensor("self", {4, 6})
            .literal("pad", shape{1, 1})
            .literal("mode", mode)
            .literal("value", value)
            .out({4, 8});
    };
    CHECK(rows_of(pad("constant", none), 2) == moved({"S0 -> S0"}));
    CHECK(rows_of(pad("constant", 2.0), 2) == with_partial({"S0 -> S0"}, 1, 1, 1, {"P(avg)", "P(max)", "P(min)"}));
    CHECK(rows_of(pad("reflect", none), 2) == moved({"S0 -> S0"}));
}

TEST_CASE("reflection and replication copy elements; their backward adds up and needs the input's sizes only") {
    for (auto kind : {"aten::reflection_pad", "aten::replication_pad"}) {
        auto const one = std::string(kind) + "1d", two = std::string(kind) + "2d";
        CHECK(rows_of(example_op(one).tensor("self", {4, 6, 8}).literal("padding", shape{1, 1}).out({4, 6, 10}), 2) ==
              moved({"S0 -> S0", "S1 -> S1"}));
        CHECK(rows_of(example_op(two).tensor("self", {4, 6, 8}).literal("padding", shape{1, 1, 2, 0}).out({4, 8, 10}), 2) ==
              moved({"S0 -> S0"}));
        auto const back = [](std::string name, shape padding, shape grad) {
            return example_op(name + "_backward")
                .tensor("grad_output", grad)
                .tensor("self", {4, 6, 8})
                .literal("padding", padding)
                .out({4, 6, 8});
        };
        CHECK(rows_of(back(one, {1, 1}, {4, 6, 10}), 2) == with_partial({"S0, S0 -> S0", "S1, S1 -> S1"}, 1, 2, 1, {"P", "P(avg)"}));
        CHECK(rows_of(back(two, {0, 0, 2, 0}, {4, 8, 8}), 2) == with_partial({"S0, S0 -> S0", "S2, S2 -> S2"}, 1, 2, 1, {"P", "P(avg)"}));
    }
}

TEST_CASE("flip and roll pass cuts of the dims that they leave alone; roll without dims leaves none alone") {
    auto const flip = example_op("aten::flip").tensor("self", {4, 6}).literal("dims", shape{-1}).out({4, 6});
    CHECK(rows_of(flip, 2) == moved({"S0 -> S0"}));
    CHECK(rows_of(example_op("aten::flip").tensor("self", {4, 6}).literal("dims", shape{}).out({4, 6}), 2) ==
          moved({"S0 -> S0", "S1 -> S1"}));
    auto const roll = [](shape dims) {
        return example_op("aten::roll").tensor("self", {4, 6}).literal("shifts", shape{1}).literal("dims", dims).out({4, 6});
    };
    CHECK(rows_of(roll({0}), 2) == moved({"S1 -> S1"}));
    CHECK(rows_of(roll({}), 2) == moved({}));
}
