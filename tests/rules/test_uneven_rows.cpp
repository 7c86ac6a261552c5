// SPDX-License-Identifier: BSL-1.0
// Which strategies the uneven policy adds, and which it must not.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <cantle/mesh/local_piece.hpp>

#include <set>

using namespace cantle;
using namespace cantle::test;

namespace {

std::vector<std::string> strategies(example_op const& e, char const* mesh_text, shard_policy policy,
                                    rule_registry const& rules = standard_rules()) {
    auto const mesh = device_mesh::parse(mesh_text);
    layout_table table;
    auto const t = expand_axes(e.query(), mesh, rules, table, policy);
    std::vector<std::string> texts;
    for (std::size_t s = 0; s < t.size(); ++s) {
        std::string text;
        for (std::size_t p = 0; p < t.ports(); ++p)
            text += (p == 0 ? "" : p == t.operand_count ? " -> " : " | ") + table[t.layouts[s * t.ports() + p]].text(mesh);
        texts.push_back(std::move(text));
    }
    return texts;
}
std::vector<std::string> uneven(example_op const& e, char const* mesh) { return strategies(e, mesh, shard_policy::uneven); }
std::vector<std::string> even(example_op const& e, char const* mesh) { return strategies(e, mesh, shard_policy::even); }

example_op pointwise(char const* name, shape sizes) { return example_op(name).tensor("self", sizes).out(sizes); }
example_op reduce(char const* name, shape sizes, shape dims, shape out) {
    return example_op(name).tensor("self", std::move(sizes)).literal("dim", std::move(dims)).literal("keepdim", false).out(std::move(out));
}
/// An op of one rule row, to say anything with.
std::vector<std::string> of_row(axis_row row, shape in, shape out, char const* mesh) {
    rule_registry rules;
    rules.add("mine::op", [row](op_query const&, std::int64_t, row_list& rows) { rows.add(row); });
    return strategies(example_op("mine::op").tensor("self", std::move(in)).out(std::move(out)), mesh, shard_policy::uneven, rules);
}
axis_row row_of(placement in, placement out, bool even_only = false) {
    axis_row r{{in}, {out}};
    r.even_only = even_only;
    return r;
}

}  // namespace

TEST_CASE("off, nothing that does not divide is cut; on, elementwise ops, products and sums are") {
    CHECK_FALSE(has(even(pointwise("aten::silu", {7, 4}), "4"), "S0 -> S0"));
    CHECK(has(uneven(pointwise("aten::silu", {7, 4}), "4"), "S0 -> S0"));
    auto const linear =
        example_op("aten::linear").tensor("input", {7, 5}).tensor("weight", {9, 5}).literal("bias", std::monostate{}).out({7, 9});
    auto const s = uneven(linear, "2");
    CHECK(has(s, "S0 | R -> S0"));
    CHECK(has(s, "R | S0 -> S1"));
    CHECK(has(s, "S1 | S1 -> P"));
    CHECK(even(linear, "2") ==
          std::vector<std::string>{"R | R -> R", "P | R -> P", "P(avg) | R -> P(avg)", "R | P -> P", "R | P(avg) -> P(avg)"});
    CHECK(has(uneven(reduce("aten::sum.dim_IntList", {7, 4}, {0}, {4}), "2"), "S0 -> P"));
}

TEST_CASE("where everything divides both policies give the same strategies in the same order") {
    for (auto const& e : {view_op({8, 16}, {128}), pointwise("aten::silu", {16, 8}), reduce("aten::mean.dim", {8, 16}, {0}, {16})})
        for (auto const* mesh : {"2", "2x2", "4x2", "2x2x2"}) CHECK(even(e, mesh) == uneven(e, mesh));
}

TEST_CASE("what is even stays, in its order, when uneven strategies join it") {
    for (auto const& e : {pointwise("aten::silu", {12, 5}), view_op({12, 5}, {60}), reduce("aten::amax", {6, 9}, {1}, {6})})
        for (auto const* mesh : {"2x3", "4", "2x2", "2x2x2"}) {
            auto const all = uneven(e, mesh), some = even(e, mesh);
            std::size_t at = 0;
            for (auto const& t : all)
                if (at < some.size() && t == some[at]) ++at;
            CHECK(at == some.size());
        }
}

TEST_CASE("a mean over an uneven cut is no mean of means: Partial(avg) never comes of it, on one axis or the second") {
    auto const mean = reduce("aten::mean.dim", {6, 4}, {0}, {4});
    CHECK(has(uneven(mean, "2"), "S0 -> P(avg)"));
    CHECK_FALSE(has(uneven(mean, "4"), "S0 -> P(avg)"));
    CHECK(has(uneven(mean, "2x2"), "S0,R -> P(avg),R"));
    CHECK_FALSE(has(uneven(mean, "2x2"), "S0,S0 -> P(avg),P(avg)"));
    CHECK(has(uneven(mean, "2x4"), "R,S1 -> R,S0"));
}

TEST_CASE("no op runs on nothing: an uneven cut is taken only where every rank has an element") {
    CHECK(has(uneven(reduce("aten::amax", {7, 4}, {0}, {4}), "4"), "S0 -> P(max)"));       // 2 2 2 1
    CHECK_FALSE(has(uneven(reduce("aten::amax", {5, 4}, {0}, {4}), "4"), "S0 -> P(max)"));  // 2 2 1 0
    CHECK(has(uneven(pointwise("aten::silu", {7}), "4"), "S0 -> S0"));
    CHECK_FALSE(has(uneven(pointwise("aten::silu", {5}), "4"), "S0 -> S0"));
    CHECK(has(uneven(pointwise("aten::silu", {5}), "2x2"), "S0,S0 -> S0,S0"));        // 2 1 1 1
    CHECK(has(uneven(pointwise("aten::silu", {10}), "2x4"), "S0,R -> S0,R"));
    CHECK_FALSE(has(uneven(pointwise("aten::silu", {10}), "2x4"), "S0,S0 -> S0,S0"));  // 5 by 4 again
}

TEST_CASE("a row that is marked even_only is not used where a cut leaves the dim uneven") {
    CHECK(has(of_row(row_of(placement::shard(0), placement::shard(0)), {7}, {7}, "2"), "S0 -> S0"));
    CHECK_FALSE(has(of_row(row_of(placement::shard(0), placement::shard(0), true), {7}, {7}, "2"), "S0 -> S0"));
    CHECK(has(of_row(row_of(placement::shard(0), placement::shard(0), true), {8}, {8}, "2"), "S0 -> S0"));
    // The second axis leaves it uneven, not the first.
    auto const s = of_row(row_of(placement::shard(0), placement::shard(0), true), {6}, {6}, "2x2");
    CHECK(has(s, "S0,R -> S0,R"));
    CHECK_FALSE(has(s, "S0,S0 -> S0,S0"));
}

TEST_CASE("dims of different sizes are not cut together unevenly: their chunks would not match (grouped heads, strided views)") {
    auto const rows = row_of(placement::shard(0), placement::shard(0));
    CHECK(has(of_row(rows, {8}, {4}, "2"), "S0 -> S0"));
    CHECK_FALSE(has(of_row(rows, {6}, {3}, "2"), "S0 -> S0"));  // 3 3 and 2 1
    CHECK_FALSE(has(of_row(rows, {7}, {14}, "2"), "S0 -> S0"));
    auto const gqa = example_op("cantle::sdpa").tensor("query", {2, 6, 8, 4}).tensor("key", {2, 3, 8, 4}).tensor("value", {2, 3, 8, 4})
                         .out({2, 6, 8, 4}).out({2, 6, 8});
    CHECK_FALSE(has(uneven(gqa, "2"), "S1 | S1 | S1 -> S1 | S1"));
    auto const heads = example_op("cantle::sdpa").tensor("query", {2, 23, 8, 4}).tensor("key", {2, 23, 8, 4}).tensor("value", {2, 23, 8, 4})
                           .out({2, 23, 8, 4}).out({2, 23, 8});
    CHECK(has(uneven(heads, "8"), "S1 | S1 | S1 -> S1 | S1"));
}

TEST_CASE("A5: an uneven cut does not go through a view that splits or merges the dim") {
    auto const flat = uneven(view_op({6, 256}, {1536}), "4");
    for (auto const& t : flat) CHECK(t.rfind("S0 -> ", 0) != 0);
    for (auto const& t : uneven(view_op({1536}, {6, 256}), "4")) CHECK(t.find("-> S0") == std::string::npos);
    for (auto const& t : uneven(view_op({3, 30720}, {3, 6, 5120}), "4")) CHECK(t.rfind("S1 -> ", 0) != 0);
}

TEST_CASE("A61: a dim of fewer elements than ranks is not cut by all of them") {
    auto const s = uneven(pointwise("aten::neg", {32, 4096, 4096}), "32x8");
    CHECK(has(s, "S0,R -> S0,R"));
    CHECK(has(s, "R,S0 -> R,S0"));
    CHECK_FALSE(has(s, "S0,S0 -> S0,S0"));
    CHECK(has(s, "S1,S1 -> S1,S1"));
    CHECK_FALSE(has(uneven(pointwise("aten::neg", {3}), "4"), "S0 -> S0"));
}

//  rank by rank: what a pointwise op, a sum and a product compute from their pieces is what the layout of the output says
TEST_CASE("uneven strategies are true: every rank's share of work is the same interval of every tensor's dim") {
    std::size_t checked = 0;
    for (auto const& e :
         {pointwise("aten::silu", {7, 5}), reduce("aten::sum.dim_IntList", {7, 5}, {0}, {5}),
          example_op("aten::linear").tensor("input", {7, 5}).tensor("weight", {9, 5}).literal("bias", std::monostate{}).out({7, 9})})
        for (auto const* text : {"2", "3", "4", "2x2", "2x3"}) {
            auto const mesh = device_mesh::parse(text);
            layout_table table;
            auto const t = expand_axes(e.query(), mesh, standard_rules(), table, shard_policy::uneven);
            for (std::size_t s = 0; s < t.size(); ++s)
                for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
                    // Dims of equal extent that the same axes cut: same offset and size.
                    std::map<std::pair<std::int64_t, std::uint32_t>, std::set<std::pair<std::int64_t, std::int64_t>>> intervals;
                    for (std::size_t p = 0; p < t.ports(); ++p) {
                        auto const& l = table[t.layouts[s * t.ports() + p]];
                        auto const& sizes = p < e.operands.size() ? e.operands[p].sizes : e.outputs[p - e.operands.size()].sizes;
                        REQUIRE(l.fits(sizes, shard_policy::uneven));
                        auto const piece = piece_of(l, mesh, sizes, r);
                        for (std::size_t d = 0; d < sizes.size(); ++d)
                            if (auto const axes = axes_cutting(l, d))
                                intervals[{sizes[d], axes}].insert({piece.offset[d], piece.sizes[d]});
                    }
                    for (auto const& [dim, found] : intervals) CHECK(found.size() == 1);
                    ++checked;
                }
        }
    CHECK(checked > 500);
}

// [16, 64, 64] -> [16, 64, 4, 16] on 3 ranks: 6 6 4 rows of 16, the split dim takes no part
TEST_CASE("a view that neither splits nor merges a dim carries its uneven cut; what is split or merged stays even") {
    CHECK(has(uneven(view_op({16, 64, 64}, {16, 64, 4, 16}), "3"), "S0 -> S0"));
    CHECK(has(uneven(view_op({16, 1, 64}, {16, 64}), "3"), "S0 -> S0"));
    CHECK_FALSE(has(even(view_op({16, 64, 64}, {16, 64, 4, 16}), "3"), "S0 -> S0"));
    for (auto const& s : uneven(view_op({16, 64}, {1024}), "3")) CHECK_MESSAGE(s.find('S') == std::string::npos, s);
}
