// SPDX-License-Identifier: BSL-1.0
// Views: which cuts pass a change of dims, and as what. Notation as in test_rows.cpp; the numbers are checked by the oracle.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {
texts const all_kinds{"P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"};

/// Those rows after "R -> R", with Partial of every kind behind them.
texts moved(texts rows) {
    rows.insert(rows.begin(), "R -> R");
    rows.insert(rows.end(), all_kinds.begin(), all_kinds.end());
    return rows;
}
example_op unary(std::string name, shape s, dtype in = dtype::float32, dtype out = dtype::float32) {
    return example_op(std::move(name)).tensor("self", s, in).out(s, out);
}
example_op along(std::string name, shape from, std::int64_t dim, shape to) {
    return example_op(std::move(name)).tensor("self", std::move(from)).literal("dim", dim).out(std::move(to));
}
}  // namespace

TEST_CASE("A1, A2: a view lists the cuts that it carries, with the whole factor where it needs one, on either side") {
    CHECK(rows_of(view_op({12, 8}, {16, 6}), 4) ==
          texts{"R -> R", "S0 -> S0", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
    CHECK(has(rows_of(view_op({4, 4, 4}, {8, 8}), 2), "S1 -> S0*4"));
    CHECK(has(rows_of(view_op({8, 8}, {4, 4, 4}), 2), "S0*4 -> S1"));
    CHECK(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4).front() == "R -> R");
    CHECK(has(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4), "S1*6 -> S2"));  // A11
    CHECK_FALSE(has(rows_of(view_op({3, 30720}, {3, 6, 5120}), 4), "S1 -> S1"));
    CHECK_FALSE(has(rows_of(view_op({6, 256}, {1536}), 4), "S0 -> S0"));  // A5
}

TEST_CASE("dims of size 1 neither hide nor invent a cut") {
    CHECK(has(rows_of(view_op({1, 8, 1}, {8}), 2), "S1 -> S0"));
    CHECK(has(rows_of(view_op({8}, {1, 8, 1}), 2), "S0 -> S1"));
    CHECK(has(rows_of(view_op({2, 1, 3, 4}, {2, 3, 1, 4}), 2), "S3 -> S3"));
    for (auto const& t : rows_of(view_op({1, 3}, {3, 1}), 2)) CHECK(t.find('S') == std::string::npos);
}

TEST_CASE("an empty tensor has no cut to carry") {
    for (auto const& t : rows_of(view_op({0, 4}, {4, 0}), 2)) CHECK(t.find('S') == std::string::npos);
}

TEST_CASE("A8: t of a vector is the identity, of a matrix it swaps the dims") {
    CHECK(has(rows_of(unary("aten::t", {4}), 2), "S0 -> S0"));
    auto const rows = rows_of(example_op("aten::t").tensor("self", {4, 6}).out({6, 4}), 2);
    CHECK(has(rows, "S0 -> S1"));
    CHECK(has(rows, "S1 -> S0"));
    CHECK_FALSE(has(rows, "S0 -> S0"));
}

TEST_CASE("transpose and permute rename dims, negative ones too") {
    auto const tr = example_op("aten::transpose.int")
                        .tensor("self", {2, 4, 6})
                        .literal("dim0", std::int64_t{-1})
                        .literal("dim1", std::int64_t{1})
                        .out({2, 6, 4});
    auto const rows = rows_of(tr, 2);
    for (auto t : {"S0 -> S0", "S1 -> S2", "S2 -> S1", "P -> P"}) CHECK(has(rows, t));
    CHECK(rows.size() == 8);
    auto const p = rows_of(example_op("aten::permute").tensor("self", {2, 4, 6}).literal("dims", shape{-1, 0, 1}).out({6, 2, 4}), 2);
    for (auto t : {"S0 -> S1", "S1 -> S2", "S2 -> S0"}) CHECK(has(p, t));
}

TEST_CASE("expand: a dim that grows is cut freely from a whole operand, the others keep their cut") {
    auto const rows = rows_of(example_op("aten::expand").tensor("self", {1, 6}).literal("size", shape{8, 4, 6}).out({8, 4, 6}), 2);
    for (auto t : {"R -> S0", "R -> S1", "S1 -> S2", "P -> P"}) CHECK(has(rows, t));
    CHECK_FALSE(has(rows, "S0 -> S1"));
}

TEST_CASE("every op that reshapes has the rows of a view, whatever its arguments are called") {
    auto const rows = rows_of(view_op({4, 6, 8}, {24, 8}), 2);
    CHECK(rows ==
          texts{"R -> R", "S0 -> S0", "S1 -> S0*4", "S2 -> S1", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
    for (auto name : {"aten::_unsafe_view", "aten::view_copy", "aten::reshape", "aten::_reshape_alias", "aten::flatten.using_ints"})
        CHECK_MESSAGE((rows_of(example_op(name).tensor("self", {4, 6, 8}).out({24, 8}), 2) == rows), name);
    CHECK(rows_of(example_op("aten::unflatten.int").tensor("self", {24, 8}).out({4, 6, 8}), 2) == rows_of(view_op({24, 8}, {4, 6, 8}), 2));
    for (auto name : {"aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims", "aten::squeeze_copy", "aten::squeeze_copy.dim",
                      "aten::squeeze_copy.dims"})
        CHECK_MESSAGE((rows_of(example_op(name).tensor("self", {4, 1, 8}).out({4, 8}), 2) == moved({"S0 -> S0", "S2 -> S1"})), name);
    for (auto name : {"aten::unsqueeze", "aten::unsqueeze_copy"})
        CHECK_MESSAGE((rows_of(along(name, {4, 8}, -2, {4, 1, 8}), 2) == moved({"S0 -> S0", "S1 -> S2"})), name);
}

TEST_CASE("A4: what flatten makes of a cut, unflatten takes back, on every axis size") {
    for (std::int64_t n : {2, 3, 4})
        for (auto const& [apart, flat] : {std::pair<shape, shape>{{12, 24, 5}, {288, 5}}, {{4, 12, 24}, {4, 288}}, {{6, 4, 12}, {288}}})
            for (auto const& row : rows_of(view_op(apart, flat), n)) {
                auto const arrow = row.find(" -> ");
                auto const back = row.substr(arrow + 4) + " -> " + row.substr(0, arrow);
                CHECK_MESSAGE(has(rows_of(view_op(flat, apart), n), back), row, " on ", n);
            }
}

TEST_CASE("A13: a view as another element type keeps cuts of all dims but the last, and no Partial") {
    auto const e = [](shape from, shape to, dtype type) {
        return example_op("aten::view.dtype").tensor("self", from).literal("dtype", type).out(to, type);
    };
    CHECK(rows_of(e({4, 8}, {4, 4}, dtype::int64), 2) == texts{"R -> R", "S0 -> S0"});
    CHECK(rows_of(e({4, 8}, {4, 8}, dtype::int32), 2) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});
    CHECK(rows_of(example_op("aten::view_copy.dtype").tensor("self", {4, 2}).out({4, 8}, dtype::int8), 2) == texts{"R -> R", "S0 -> S0"});
}

TEST_CASE("as_strided is done whole, because rules know no strides") {
    for (auto name : {"aten::as_strided", "aten::as_strided_copy"})
        CHECK(rows_of(example_op(name).tensor("self", {4, 8}).literal("size", shape{4, 8}).literal("stride", shape{8, 1}).out({4, 8}), 2) ==
              moved({}));
}

TEST_CASE("permute, transpose, t and their copies rename dims; movedim puts the others in order") {
    auto const permute = [](char const* name) {
        return example_op(name).tensor("self", {2, 4, 6}).literal("dims", shape{2, 0, 1}).out({6, 2, 4});
    };
    for (auto name : {"aten::permute", "aten::permute_copy"})
        CHECK(rows_of(permute(name), 2) == moved({"S0 -> S1", "S1 -> S2", "S2 -> S0"}));
    for (auto name : {"aten::transpose.int", "aten::transpose_copy.int"}) {
        auto const e =
            example_op(name).tensor("self", {2, 4, 6}).literal("dim0", std::int64_t{0}).literal("dim1", std::int64_t{-1}).out({6, 4, 2});
        CHECK(rows_of(e, 2) == moved({"S0 -> S2", "S1 -> S1", "S2 -> S0"}));
    }
    CHECK(rows_of(example_op("aten::t_copy").tensor("self", {4, 6}).out({6, 4}), 2) == moved({"S0 -> S1", "S1 -> S0"}));
    auto const one = example_op("aten::movedim.int")
                         .tensor("self", {2, 4, 6})
                         .literal("source", std::int64_t{-1})
                         .literal("destination", std::int64_t{0});
    CHECK(rows_of(example_op(one).out({6, 2, 4}), 2) == moved({"S0 -> S1", "S1 -> S2", "S2 -> S0"}));
    auto const list =
        example_op("aten::movedim.intlist").tensor("self", {2, 4, 6}).literal("source", shape{0, 1}).literal("destination", shape{-1, 0});
    CHECK(rows_of(example_op(list).out({4, 6, 2}), 2) == moved({"S0 -> S2", "S1 -> S0", "S2 -> S1"}));
}

TEST_CASE("complex numbers as pairs: the dim of pairs stays whole, sums pass, maxima do not exist") {
    CHECK(rows_of(example_op("aten::view_as_complex").tensor("self", {4, 6, 2}).out({4, 6}, dtype::complex64), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(example_op("aten::view_as_real").tensor("self", {4, 6}, dtype::complex64).out({4, 6, 2}), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "P -> P", "P(avg) -> P(avg)"});
}

TEST_CASE("expand_copy has the rows of expand") {
    auto const e = [](char const* name) {
        return example_op(name).tensor("self", {4, 1, 6}).literal("size", shape{4, 8, 6}).out({4, 8, 6});
    };
    CHECK(rows_of(e("aten::expand"), 2) == moved({"S0 -> S0", "R -> S1", "S2 -> S2"}));
    CHECK(rows_of(e("aten::expand_copy"), 2) == rows_of(e("aten::expand"), 2));
}

//  [6] repeated by (4, 2): [4 copies][2 copies][6] as [4][12]; a cut of the 6 lies behind the 2 copies
TEST_CASE("repeat: copies are cut freely, a cut of a repeated dim lies behind its copies") {
    auto const e = example_op("aten::repeat").tensor("self", {6}).literal("repeats", shape{4, 2}).out({4, 12});
    CHECK(rows_of(e, 2) == moved({"R -> S0", "R -> S1", "S0 -> S1*2"}));
    CHECK(rows_of(e, 4) == moved({"R -> S0"}));
    auto const keys = example_op("aten::repeat").tensor("self", {4, 1, 6}).literal("repeats", shape{1, 3, 1}).out({4, 3, 6});
    CHECK(rows_of(keys, 3) == moved({"R -> S1", "S2 -> S2"}));
    CHECK(rows_of(keys, 2) == moved({"S0 -> S0", "S2 -> S2"}));
    CHECK(rows_of(example_op("aten::tile").tensor("self", {4, 6}).literal("dims", shape{2}).out({4, 12}), 2) ==
          moved({"S0 -> S0", "R -> S1", "S1 -> S1*2"}));
    CHECK(rows_of(example_op("aten::repeat").tensor("self", {0}).literal("repeats", shape{4}).out({0}), 2) == moved({}));
}

TEST_CASE("repeat on two axes: one makes its share of the copies, the other its share of the dim, in either order") {
    auto const e = example_op("aten::repeat").tensor("self", {6}).literal("repeats", shape{4}).out({24});
    expanded const s(e, device_mesh::parse("2x3", "a,b"));
    CHECK(s.outputs_for("R,S0") == texts{"R,S0; d0=4>b", "S0,S0; d0=a>2>b"});
    expanded const t(e, device_mesh::parse("3x2", "b,a"));
    CHECK(t.outputs_for("S0,R") == texts{"S0,R; d0=4>b", "S0,S0; d0=a>2>b"});
}

TEST_CASE("repeat_interleave: copies stand inside the dim, or inside the flat tensor") {
    auto const e = [](argument_value dim, shape to) {
        return example_op("aten::repeat_interleave.self_int")
            .tensor("self", {4, 6})
            .literal("repeats", std::int64_t{2})
            .literal("dim", dim)
            .out(to);
    };
    CHECK(rows_of(e(std::int64_t{1}, {4, 12}), 2) == moved({"S0 -> S0", "S1 -> S1", "R -> S1*6"}));
    CHECK(rows_of(e(std::int64_t{-2}, {8, 6}), 2) == moved({"S0 -> S0", "R -> S0*4", "S1 -> S1"}));
    CHECK(rows_of(e(none, {48}), 2) == moved({"S0 -> S0", "S1 -> S0*4", "R -> S0*24"}));
}
