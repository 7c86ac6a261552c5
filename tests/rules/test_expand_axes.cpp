// SPDX-License-Identifier: BSL-1.0
// From rows of one axis to strategies of a mesh. Names of cases refer to reported faults of other systems and to traps of this design.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <random>
#include <set>

using namespace cantle;
using namespace cantle::test;

namespace {

example_op linear_op(shape x, std::int64_t n) {
    shape y = x;
    y.back() = n;
    shape const w{n, x.back()};
    return example_op("aten::linear").tensor("input", std::move(x)).tensor("weight", w).literal("bias", std::monostate{}).out(std::move(y));
}

/// A rule set of one rule, to say wrong things with.
struct one_rule {
    std::vector<axis_row> list;
    bool covers(op_query const&) const { return true; }
    std::vector<axis_row> rows(op_query const&, std::int64_t) const { return list; }
    void feed(stable_hasher&) const {}
};
static_assert(RuleSet<one_rule>);
static_assert(RuleSet<rule_registry>);

error failure_of(one_rule const& rules) {
    auto const e = example_op("mine::op").tensor("self", {4, 4}).out({4, 4});
    layout_table table;
    try {
        expand_axes(e.query(), device_mesh::parse("2"), rules, table);
    } catch (error const& x) {
        return x;
    }
    return error(error_code::bad_option, "nothing", "was thrown", "");
}
}  // namespace

//  [16] cut by 2 and again by 2   ->   [2, 8]: the first cut takes the whole dim of size 2, the second finds size 1 there and cuts the 8
TEST_CASE("E2: a flat dim cut twice unflattens to one cut of each dim, without communication") {
    expanded const s(view_op({16}, {2, 8}), device_mesh::parse("2x2"));
    CHECK(s.outputs_for("S0,S0") == texts{"S0,S1"});
}

TEST_CASE("E2 backwards: (S0,S1) of [2,8] flattens to (S0,S0); the factor 2 is gone because axis 0 has cut it") {
    expanded const s(view_op({2, 8}, {16}), device_mesh::parse("2x2", "dp,tp"));
    CHECK(s.outputs_for("S0,S1") == texts{"S0,S0"});
    // (R,S1): two runs on every rank, a whole factor of 2 in front of the cut.
    CHECK(s.outputs_for("R,S1") == texts{"R,S0; d0=2>tp"});
    // (S1,S0): the inner dim is cut by the outer axis.
    CHECK(s.outputs_for("S1,S0") == texts{"S0,S0; d0=tp>dp"});
}

TEST_CASE("E1: a linear over unflattened dims keeps batch and sequence cuts, a flattened view has to name the whole factor") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    expanded const whole(linear_op({16, 2048, 64}, 128), mesh);
    CHECK(whole.outputs_for("S0,S1 | R,R") == texts{"S0,S1"});

    expanded const flat(view_op({16, 2048, 64}, {32768, 64}), mesh);
    CHECK(flat.outputs_for("S0,S1") == texts{"S0,S0; d0=dp>4>tp"});

    // The linear over the flattened dim has no strategy that starts there: rules over plain rows never name the factor.
    expanded const after(linear_op({32768, 64}, 128), mesh);
    CHECK(after.outputs_for("S0,S0; d0=dp>4>tp | R,R").empty());
}

TEST_CASE("A1: a cut that would straddle two output dims is no strategy") {
    expanded const s(view_op({12, 8}, {16, 6}), device_mesh::parse("4"));
    CHECK(s.outputs_for("S1").empty());
    CHECK(s.outputs_for("S0") == texts{"S0"});  // 12 = [4][3], 16 = [4][4]: rows 0..2 of 8 are rows 0..3 of 6
    CHECK(s.outputs_for("R") == texts{"R"});
}

TEST_CASE("A2: [4,4,4] cut in the middle viewed as [8,8] has a whole factor of 4, and needs no communication") {
    expanded const s(view_op({4, 4, 4}, {8, 8}), device_mesh::parse("2x3", "a,b"));
    CHECK(s.outputs_for("S1,R") == texts{"S0,R; d0=4>a"});
    auto const rows_of_rank_0 =
        elements_held(layout::parse(device_mesh::parse("2x3", "a,b"), "S0,R; d0=4>a"), {8, 8}, device_mesh::parse("2x3"), 0);
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < rows_of_rank_0.size(); i += 8) starts.push_back(rows_of_rank_0[i] / 8);
    CHECK(starts == std::vector<std::int64_t>{0, 2, 4, 6});

    expanded const six(view_op({12, 8}, {16, 6}), device_mesh::parse("6"));
    CHECK(six.outputs_for("S1").empty());
    for (auto const& t : six.texts) CHECK(t.find("S0") == std::string::npos);
}

TEST_CASE("A4: two axes on one dim survive flatten and unflatten unchanged") {
    auto const mesh = device_mesh::parse("2x2", "cp,sp");
    expanded const there(view_op({2, 8, 3}, {16, 3}), mesh), back(view_op({16, 3}, {2, 8, 3}), mesh);
    REQUIRE(there.outputs_for("S1,S1") == texts{"S0,S0; d0=2>cp>sp"});
    CHECK(back.outputs_for("S0,S0; d0=2>cp>sp") == texts{"S1,S1"});
}

TEST_CASE("A5, A7, A11: what does not divide has no strategy, whatever the view") {
    expanded const s(view_op({6, 256}, {1536}), device_mesh::parse("4"));
    CHECK(s.outputs_for("S0").empty());
    CHECK(s.outputs_for("S1") == texts{"S0; d0=6>a0"});

    expanded const split(view_op({3, 30720}, {3, 6, 5120}), device_mesh::parse("4"));
    CHECK(split.outputs_for("S1").empty());
    CHECK(split.outputs_for("S1; d1=6>a0") == texts{"S2"});
}

TEST_CASE("A61: a dim smaller than the product of the axes is not cut by both") {
    auto const mesh = device_mesh::parse("32x8");
    expanded const s(example_op("aten::neg").tensor("self", {32, 4096}).out({32, 4096}), mesh);
    CHECK(s.has("S0,R -> S0,R"));
    CHECK(s.has("S1,S1 -> S1,S1"));
    CHECK_FALSE(s.has("S0,S0 -> S0,S0"));
}

TEST_CASE("B11: an axis of one rank places nothing and leaves the strategies of the other axes alone") {
    auto const e = linear_op({8, 6, 4}, 12);
    expanded const with(e, device_mesh::parse("2x1")), without(e, device_mesh::parse("2"));
    CHECK(with.strategies.size() == without.strategies.size());
    for (auto const& t : with.texts) CHECK(t.find(",S") == std::string::npos);
    for (auto const& t : with.texts) CHECK(t.find(",P") == std::string::npos);
    CHECK(expanded(e, device_mesh::parse("1")).texts == texts{"R | R -> R"});
}

TEST_CASE("an op without views has the product of its rows, in the order of the rows, the outer axis slowest") {
    expanded const one(linear_op({8, 8}, 8), device_mesh::parse("2")), two(linear_op({8, 8}, 8), device_mesh::parse("2x2"));
    CHECK(one.texts == texts{"R | R -> R", "S0 | R -> S0", "R | S0 -> S1", "S1 | S1 -> P", "P | R -> P", "P(avg) | R -> P(avg)",
                             "R | P -> P", "R | P(avg) -> P(avg)"});
    CHECK(two.strategies.size() == 64);
    CHECK(two.texts[0] == "R,R | R,R -> R,R");
    CHECK(two.texts[1] == "R,S0 | R,R -> R,S0");
    CHECK(two.texts[8] == "S0,R | R,R -> S0,R");
    CHECK(two.has("S0,S1 | R,S1 -> S0,P"));
}

TEST_CASE("kinds of Partial that do not commute never meet on one tensor") {
    expanded const s(view_op({4, 4}, {16}), device_mesh::parse("2x2"));
    CHECK(s.has("P,P(avg) -> P,P(avg)"));
    CHECK(s.has("P(max),P(max) -> P(max),P(max)"));
    CHECK_FALSE(s.has("P,P(max) -> P,P(max)"));
    CHECK_FALSE(s.has("P(min),P(max) -> P(min),P(max)"));
}

TEST_CASE("A29: whether (P,P) is offered does not depend on what other rows of the rule say") {
    auto const e = example_op("aten::sum.dim_IntList").tensor("self", {8, 8}).literal("dim", shape{0, 1}).literal("keepdim", false).out({});
    expanded const s(e, device_mesh::parse("2x2"));
    CHECK(s.has("S0,S1 -> P,P"));
    CHECK(s.has("S1,S0 -> P,P"));
    CHECK(s.has("S0,P -> P,P"));
}

TEST_CASE("inner collectives carry the axis of the row that asked for them") {
    auto const e = example_op("cantle::cross_entropy")
                       .tensor("logits", {4, 8, 16})
                       .tensor("target", {4, 8}, dtype::int64)
                       .literal("ignore_index", std::int64_t{-100})
                       .literal("reduction", std::string("mean"))
                       .out({})
                       .out({4, 8})
                       .out({});
    expanded const s(e, device_mesh::parse("2x4"));
    std::size_t seen = 0;
    for (std::size_t i = 0; i < s.texts.size(); ++i)
        if (s.texts[i] == "S0,S2 | S0,R -> P,R | S0,R | R,R") {
            ++seen;
            auto const& inner = s.strategies.inner[i];
            REQUIRE(inner.size() == 4);
            CHECK(inner[0].axis == 0);
            CHECK(inner[0].what == inner_collective{collective_kind::all_reduce, reduction::sum, true, 2});
            for (std::size_t k = 1; k < 4; ++k) CHECK(inner[k].axis == 1);
            CHECK(inner[1].what.reduce == reduction::max);
        }
    CHECK(seen == 1);
}

TEST_CASE("no strategy is listed twice, and the same question has the same answer") {
    auto const mesh = device_mesh::parse("2x2x3");
    for (auto const& e : {view_op({4, 12}, {2, 24}), linear_op({12, 12}, 24),
                          example_op("aten::expand").tensor("self", {1, 12}).literal("size", shape{12, 12}).out({12, 12})}) {
        expanded const a(e, mesh), b(e, mesh);
        CHECK(a.texts == b.texts);
        CHECK(a.strategies.layouts == b.strategies.layouts);
        CHECK(std::set<std::string>(a.texts.begin(), a.texts.end()).size() == a.texts.size());
        CHECK(a.texts.size() > 10);
    }
}

TEST_CASE("of two rows that place everything alike the first is kept, with its inner collectives") {
    inner_collective const inner{collective_kind::all_reduce, reduction::sum, true, 0};
    one_rule const rules{{axis_row{{placement::shard(0)}, {placement::replicate()}, {inner}},
                          axis_row{{placement::shard(0)}, {placement::replicate()}, {inner, inner}}}};
    expanded const s(example_op("mine::op").tensor("self", {4}).out({4}), device_mesh::parse("2"), rules);
    REQUIRE(s.texts == texts{"S0 -> R"});
    CHECK(s.strategies.inner[0].size() == 1);
}

TEST_CASE("every layout of every strategy fits its tensor") {
    auto const mesh = device_mesh::parse("2x3x2");
    for (auto const& e : {view_op({12, 6}, {2, 36}), view_op({3, 4, 6}, {12, 6}), linear_op({12, 24}, 36)}) {
        expanded const s(e, mesh);
        for (std::size_t i = 0; i < s.strategies.size(); ++i) {
            for (std::size_t o = 0; o < e.operands.size(); ++o) CHECK(s.table[s.strategies.operand(i, o)].fits(e.operands[o].sizes));
            for (std::size_t o = 0; o < e.outputs.size(); ++o) CHECK(s.table[s.strategies.output(i, o)].fits(e.outputs[o].sizes));
        }
    }
}

//  rank r holds, under the input layout, flat elements i0 i1 i2 ...; under the output layout it must hold the same list in the same order
TEST_CASE("a view moves nothing: every rank holds the same elements in the same order before and after, on every mesh") {
    std::mt19937 random(20260731);
    MESSAGE("seed 20260731");
    std::vector<shape> const shapes{{24},      {2, 12}, {12, 2}, {3, 8},     {8, 3},    {4, 6},       {6, 4},    {2, 3, 4}, {4, 3, 2},
                                    {2, 2, 6}, {1, 24}, {24, 1}, {2, 1, 12}, {1, 4, 6}, {2, 2, 2, 3}, {6, 2, 2}, {3, 2, 4}};
    std::size_t checked = 0;
    for (auto const* text : {"2", "3", "4", "2x2", "2x3", "3x2", "4x2", "2x4", "2x2x2", "2x2x3", "3x2x2"}) {
        auto const mesh = device_mesh::parse(text);
        for (int trial = 0; trial < 40; ++trial) {
            auto const& from = shapes[random() % shapes.size()];
            auto const& to = shapes[random() % shapes.size()];
            expanded const s(view_op(from, to), mesh);
            for (std::size_t i = 0; i < s.strategies.size(); ++i) {
                auto const& in = s.table[s.strategies.operand(i, 0)];
                auto const& out = s.table[s.strategies.output(i, 0)];
                bool same = true;
                for (std::int64_t r = 0; same && r < mesh.device_count(); ++r)
                    same = elements_held(in, from, mesh, r) == elements_held(out, to, mesh, r);
                for (std::size_t a = 0; a < mesh.dims(); ++a) same = same && in.on(a).is_partial() == out.on(a).is_partial();
                CHECK_MESSAGE(same, shape_text(from), " -> ", shape_text(to), " on ", text, ": ", s.texts[i]);
                ++checked;
            }
        }
    }
    CHECK(checked > 2000);
}

//  the other direction: whatever plain cut of the input is one cut of the output by the numbers is in the table
TEST_CASE("a view drops no plain cut that one digit of the output can say, on one axis") {
    std::vector<shape> const shapes{{24}, {2, 12}, {12, 2}, {3, 8}, {4, 6}, {6, 4}, {2, 3, 4}, {4, 3, 2}, {2, 1, 12}, {2, 2, 2, 3}};
    std::size_t found = 0;
    for (std::int64_t n : {2, 3, 4, 6}) {
        device_mesh const mesh({{"a", n}});
        for (auto const& from : shapes)
            for (auto const& to : shapes) {
                expanded const s(view_op(from, to), mesh);
                for (std::size_t d = 0; d < from.size(); ++d) {
                    layout in(1);
                    if (!in.apply(0, n, placement::shard(d), from)) continue;
                    for (std::size_t e = 0; e < to.size(); ++e)
                        for (std::int64_t outer = 1; outer <= to[e]; ++outer) {
                            layout out(1);
                            if (to[e] % outer != 0 || !out.apply(0, n, placement::shard(e, outer), to)) continue;
                            bool same = true;
                            for (std::int64_t r = 0; same && r < n; ++r)
                                same = elements_held(in, from, mesh, r) == elements_held(out, to, mesh, r);
                            if (!same) continue;
                            ++found;
                            CHECK_MESSAGE(s.has(in.text(mesh) + " -> " + out.text(mesh)), shape_text(from), " -> ", shape_text(to), ": ",
                                          in.text(mesh));
                            CHECK_MESSAGE(expanded(view_op(to, from), mesh).has(out.text(mesh) + " -> " + in.text(mesh)), "backwards");
                        }
                }
            }
    }
    CHECK(found > 100);
}

TEST_CASE("a row with the wrong number of operands is an error that names op and row") {
    auto const e = failure_of({{axis_row{{placement::shard(0), placement::replicate()}, {placement::shard(0)}}}});
    CHECK(e.code() == error_code::bad_rule);
    CHECK(e.subject() == "rule of mine::op, row 'S0, R -> S0'");
    CHECK(e.problem() == "it places 2 operands, the op has 1");
}

TEST_CASE("a row with the wrong number of outputs is an error") {
    auto const e = failure_of({{axis_row{{placement::shard(0)}, {}}}});
    CHECK(e.code() == error_code::bad_rule);
    CHECK(e.problem() == "it places 0 outputs, the op has 1");
}

TEST_CASE("a row that cuts a dim that the tensor does not have is an error") {
    CHECK(failure_of({{axis_row{{placement::shard(2)}, {placement::replicate()}}}}).problem() == "operand 0 has no dim 2");
    CHECK(failure_of({{axis_row{{placement::replicate()}, {placement::shard(7)}}}}).problem() == "output 0 has no dim 7");
    CHECK(failure_of({{axis_row{{placement::shard(0, 0)}, {placement::replicate()}}}}).problem() ==
          "operand 0 has an outer factor below 1");
}

TEST_CASE("a row whose inner collective names no tensor of the op is an error") {
    inner_collective const out_of_range{collective_kind::all_reduce, reduction::sum, true, 1},
        operand{collective_kind::all_reduce, reduction::sum, false, 1};
    for (auto const& c : {out_of_range, operand}) {
        auto const e = failure_of({{axis_row{{placement::replicate()}, {placement::partial()}, {c}}}});
        CHECK(e.code() == error_code::bad_rule);
        CHECK(e.problem() == "an inner collective names a tensor that the op does not have");
    }
}

TEST_CASE("values that are none of their enumeration are errors of the rule, not crashes") {
    auto odd = placement::partial();
    odd.reduce = static_cast<reduction>(77);
    CHECK(failure_of({{axis_row{{placement::replicate()}, {odd}}}}).problem() == "output 0 has no known placement");
    odd = placement::replicate();
    odd.kind = static_cast<placement_kind>(9);
    CHECK(failure_of({{axis_row{{odd}, {placement::replicate()}}}}).problem() == "operand 0 has no known placement");
    for (auto const& c : {inner_collective{static_cast<collective_kind>(99), reduction::sum, true, 0},
                          inner_collective{collective_kind::all_reduce, static_cast<reduction>(77), true, 0}})
        CHECK(failure_of({{axis_row{{placement::replicate()}, {placement::replicate()}, {c}}}}).problem() ==
              "an inner collective is of no known kind");
    try {
        placement::shard(300);  // 300 is 44 in a byte
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_layout);
    }
}

TEST_CASE("a row that a rule lists a thousand times costs what it costs once") {
    // One strategy: the rule leaves no choice. Walked row by row there would be 1000^4 ways to it.
    one_rule rules{std::vector<axis_row>(1000, axis_row{{placement::shard(0)}, {placement::shard(0)}})};
    auto const e = example_op("mine::op").tensor("self", {16}).out({16});
    CHECK(expanded(e, device_mesh::parse("2x2x2x2"), rules).texts == texts{"S0,S0,S0,S0 -> S0,S0,S0,S0"});
}

TEST_CASE("an output that the op does not produce needs no placement") {
    auto const e = example_op("mine::op").tensor("self", {4}).out({4}).no_out();
    one_rule const rules{{axis_row{{placement::shard(0)}, {placement::shard(0), placement::shard(9)}}}};
    expanded const s(e, device_mesh::parse("2"), rules);
    CHECK(s.texts == texts{"S0 -> S0 | R"});
}
