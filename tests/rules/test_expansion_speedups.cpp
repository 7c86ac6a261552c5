// SPDX-License-Identifier: BSL-1.0
// What makes the expansion fast must not change it: against the plain reference; pruning; sharing between ops; rows asked for once.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"
#include "reference_expansion.hpp"

#include <set>

using namespace cantle;
using namespace cantle::test;

namespace {

std::vector<example_op> sample_ops() {
    std::vector<example_op> ops;
    ops.push_back(view_op({4, 12}, {2, 24}));
    ops.push_back(view_op({2, 2, 6}, {24}));
    ops.push_back(view_op({24}, {2, 3, 4}));
    ops.push_back(example_op("aten::linear")
                      .tensor("input", {4, 12, 8})
                      .tensor("weight", {16, 8})
                      .literal("bias", std::monostate{})
                      .out({4, 12, 16}));
    ops.push_back(example_op("aten::mul.Tensor").tensor("self", {4, 12}).tensor("other", {12}).out({4, 12}));
    ops.push_back(example_op("aten::add.Tensor").tensor("self", {4, 12}).tensor("other", {4, 12}).out({4, 12}));
    ops.push_back(
        example_op("aten::sum.dim_IntList").tensor("self", {8, 12}).literal("dim", shape{0}).literal("keepdim", true).out({1, 12}));
    ops.push_back(example_op("aten::mean.dim").tensor("self", {8, 12}).literal("dim", shape{0, 1}).literal("keepdim", false).out({}));
    ops.push_back(example_op("aten::expand").tensor("self", {1, 12}).literal("size", shape{8, 12}).out({8, 12}));
    ops.push_back(example_op("aten::_to_copy").tensor("self", {8, 4}).literal("dtype", dtype::float64).out({8, 4}, dtype::float64));
    ops.push_back(example_op("cantle::cross_entropy").tensor("logits", {4, 8, 16}).tensor("target", {4, 8}, dtype::int64)
                      .literal("ignore_index", std::int64_t{-100}).literal("reduction", std::string("mean")).out({}).out({4, 8}).out({}));
    ops.push_back(example_op("mine::masked").tensor("self", {8, 4}).out({8, 4}).no_out());
    return ops;
}

rule_registry sample_rules() {
    auto rules = standard_rules();
    rules.add("mine::masked", [](op_query const&, std::int64_t, row_list& rows) {
        rows.add({placement::shard(0)}, {placement::shard(0), placement::shard(0)});
        rows.add({placement::partial(reduction::max)}, {placement::partial(reduction::max), placement::replicate()});
    });
    return rules;
}

std::vector<layout> layouts_of(strategy_table const& t, std::size_t s, layout_table const& table) {
    std::vector<layout> ports;
    for (std::size_t p = 0; p < t.ports(); ++p) ports.push_back(table[t.layouts[s * t.ports() + p]]);
    return ports;
}

partial_kinds kinds_of(layout const& l) { return partial_kinds_of(l); }

}  // namespace

TEST_CASE("the expansion equals the plain reference, strategy by strategy and in order, with its inner collectives") {
    auto const rules = sample_rules();
    std::size_t compared = 0;
    for (auto const* text : {"2", "3", "4", "2x2", "2x3", "3x2", "4x2", "2x1x2", "2x2x2", "2x2x3", "3x2x2"}) {
        auto const mesh = device_mesh::parse(text);
        layout_table table;
        axis_expansion<rule_registry> shared(mesh, rules, table);
        for (auto const& e : sample_ops()) {
            CAPTURE(text);
            CAPTURE(e.operation.name);
            auto const wanted = reference_expansion(e.query(), mesh, rules);
            auto const got = shared.expand(e.query());
            REQUIRE(got.size() == wanted.size());
            for (std::size_t s = 0; s < wanted.size(); ++s) {
                REQUIRE(layouts_of(got, s, table) == wanted[s].ports);
                REQUIRE(got.inner[s].size() == wanted[s].inner.size());
                for (std::size_t k = 0; k < wanted[s].inner.size(); ++k) {
                    REQUIRE(got.inner[s][k].axis == wanted[s].inner[k].axis);
                    REQUIRE(got.inner[s][k].what == wanted[s].inner[k].what);
                }
                ++compared;
            }
        }
    }
    CHECK(compared > 5000);
}

TEST_CASE("told which kinds of Partial its operands can have, the expansion leaves out what wants others, and nothing else") {
    auto const rules = sample_rules();
    auto const mesh = device_mesh::parse("2x2x2");
    std::size_t kept = 0, dropped = 0;
    for (auto const& e : sample_ops())
        for (auto kinds : std::vector<partial_kinds>{0x0, 0x1, 0x2, 0x3, 0x4, 0xf}) {
            std::vector<partial_kinds> operand_kinds(e.operands.size(), 0);
            operand_kinds[0] = kinds;
            layout_table table, other;
            auto const all = expand_axes(e.query(), mesh, rules, other);
            auto const got = axis_expansion<rule_registry>(mesh, rules, table).expand(e.query(), &operand_kinds);
            std::vector<std::vector<layout>> wanted, found;
            for (std::size_t s = 0; s < all.size(); ++s) {
                bool possible = true;
                for (std::size_t i = 0; i < e.operands.size(); ++i)
                    possible = possible && (kinds_of(other[all.operand(s, i)]) & ~operand_kinds[i]) == 0;
                if (possible) wanted.push_back(layouts_of(all, s, other));
                ++(possible ? kept : dropped);
            }
            for (std::size_t s = 0; s < got.size(); ++s) found.push_back(layouts_of(got, s, table));
            CHECK(found == wanted);
        }
    CHECK(kept > 1000);
    CHECK(dropped > 1000);
}

TEST_CASE("a rule is asked once per axis size and local shapes, however many states lead there") {
    std::multiset<std::pair<std::int64_t, shape>> asked;
    rule_registry rules;
    rules.add("mine::op", [&asked](op_query const& q, std::int64_t n, row_list& rows) {
        asked.insert({n, q.operands[0].sizes});
        for (std::size_t d = 0; d < 2; ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
        rows.add({placement::partial()}, {placement::partial()});
    });
    auto const e = example_op("mine::op").tensor("self", {8, 8}).out({8, 8});
    layout_table table;
    expand_axes(e.query(), device_mesh::parse("2x2x2"), rules, table);
    // [8,8]; [4,8], [8,4]; [2,8], [4,4], [8,2]
    CHECK(asked.size() == 6);
    CHECK(std::set<std::pair<std::int64_t, shape>>(asked.begin(), asked.end()).size() == 6);
}

TEST_CASE("a row that mixes kinds of Partial is an error when it is expanded") {
    rule_registry rules;
    rules.add("mine::op", [](op_query const&, std::int64_t, row_list& rows) {
        rows.add({placement::partial(reduction::max)}, {placement::partial(reduction::min)});
    });
    auto const e = example_op("mine::op").tensor("self", {8}).out({8});
    layout_table table;
    try {
        expand_axes(e.query(), device_mesh::parse("2"), rules, table);
        FAIL("no error");
    } catch (error const& x) {
        CHECK(x.code() == error_code::bad_rule);
        CHECK(x.subject() == "rule of mine::op, row 'P(max) -> P(min)'");
        CHECK(x.problem() == "it mixes kinds of Partial: P(max) and P(min)");
    }
}

TEST_CASE("equal rows of ids are found again, whatever their number") {
    row_index index(2);
    std::vector<std::uint32_t> flat;
    bool fresh = false;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        CHECK(index.find_or_append(flat, {i % 7, i}, fresh) == i);
        CHECK(fresh);
    }
    for (std::uint32_t i = 0; i < 1000; ++i) {
        CHECK(index.find_or_append(flat, {i % 7, i}, fresh) == i);
        CHECK_FALSE(fresh);
    }
    CHECK(flat.size() == 2000);
}
