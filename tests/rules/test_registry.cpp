// SPDX-License-Identifier: BSL-1.0
// The table of rules: what it covers, how a user adds to it, and when its hash changes.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <algorithm>

using namespace cantle;
using namespace cantle::test;

namespace {
auto hash_of(rule_registry const& r) {
    stable_hasher h;
    r.feed(h);
    return h.finish();
}
example_op op_of(std::string name) { return example_op(std::move(name)).tensor("self", {4, 6}).out({4, 6}); }
}  // namespace

TEST_CASE("the standard rules cover the canonical ops of the reference models, forward and backward") {
    auto const rules = standard_rules();
    for (auto name : {"aten::linear",
                      "cantle::linear_grad_input",
                      "cantle::linear_grad_weight",
                      "cantle::sdpa",
                      "cantle::sdpa_backward",
                      "cantle::cross_entropy",
                      "cantle::cross_entropy_backward",
                      "aten::native_layer_norm",
                      "aten::native_layer_norm_backward",
                      "aten::embedding",
                      "aten::embedding_dense_backward",
                      "aten::_to_copy",
                      "aten::silu",
                      "aten::silu_backward",
                      "aten::gelu",
                      "aten::gelu_backward",
                      "aten::add.Tensor",
                      "aten::mul.Tensor",
                      "aten::sum.dim_IntList",
                      "aten::mean.dim",
                      "aten::rsqrt",
                      "aten::pow.Tensor_Scalar",
                      "aten::view",
                      "aten::transpose.int",
                      "aten::expand",
                      "aten::cat",
                      "aten::slice.Tensor",
                      "aten::neg"})
        CHECK_MESSAGE(rules.covers(op_of(name).query()), name);
    CHECK_FALSE(rules.covers(op_of("aten::add").query()));
    CHECK_FALSE(rules.covers(op_of("mine::op").query()));
}

TEST_CASE("names come sorted and once") {
    auto const names = standard_rules().op_names();
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("a user adds a rule of one line for an op of their own, and it expands like the others") {
    auto rules = standard_rules();
    rules.add("mine::gated_add", rules::pointwise_rule({.linear = true, .linear_in = {}, .multilinear_in = {}}));
    auto const e = example_op("mine::gated_add").tensor("a", {4}).tensor("b", {4}).out({4});
    REQUIRE(rules.covers(e.query()));
    CHECK(rows_of(e, 2, rules) == std::vector<std::string>{"R, R -> R", "S0, S0 -> S0", "P, P -> P", "P(avg), P(avg) -> P(avg)"});
    CHECK(expanded(e, device_mesh::parse("2x2"), rules).has("S0,P | S0,P -> S0,P"));
}

TEST_CASE("a rule that is added again replaces the first") {
    auto rules = standard_rules();
    rules.add("aten::silu", [](op_query const&, std::int64_t, row_list&) {});
    CHECK(rows_of(op_of("aten::silu"), 2, rules) == std::vector<std::string>{"R -> R"});
}

TEST_CASE("a rule sees the size of the axis and the shape that the outer axes left") {
    std::vector<std::pair<std::int64_t, shape>> seen;
    rule_registry rules;
    rules.add("mine::op", [&seen](op_query const& q, std::int64_t n, row_list& rows) {
        seen.emplace_back(n, q.operands[0].sizes);
        rows.add({placement::shard(0)}, {placement::shard(0)});
    });
    expanded const s(op_of("mine::op"), device_mesh::parse("2x3"), rules);
    CHECK(seen == std::vector<std::pair<std::int64_t, shape>>{{2, {4, 6}}, {3, {4, 6}}, {3, {2, 6}}});
}

TEST_CASE("the hash tells rule sets apart by names and versions and is the same for the same set") {
    auto const standard = hash_of(standard_rules());
    CHECK(standard == hash_of(standard_rules()));
    auto more = standard_rules();
    more.add("mine::op", rules::pointwise_rule());
    CHECK(hash_of(more) != standard);
    auto newer = standard_rules();
    newer.add("aten::silu", rules::pointwise_rule(), run_as_is, 2);
    CHECK(hash_of(newer) != standard);
}

TEST_CASE("a rule of the wrong arity is found when it is expanded, and the error names it") {
    rule_registry rules;
    rules.add("mine::op", [](op_query const&, std::int64_t, row_list& rows) {
        rows.add({placement::shard(0), placement::shard(0)}, {placement::shard(0)});
    });
    layout_table table;
    auto const e = op_of("mine::op");
    try {
        expand_axes(e.query(), device_mesh::parse("2"), rules, table);
        FAIL("no error");
    } catch (error const& x) {
        CHECK(x.code() == error_code::bad_rule);
        CHECK(x.subject() == "rule of mine::op, row 'S0, S0 -> S0'");
        CHECK_FALSE(x.remedy().empty());
    }
}

TEST_CASE("layouts are interned: equal ones have one id, ids count up in order of first use") {
    auto const mesh = device_mesh::parse("2x2");
    layout_table table;
    auto const a = table.intern(layout::parse(mesh, "S0,R")), b = table.intern(layout::parse(mesh, "R,S0")),
               c = table.intern(layout::parse(mesh, "S0,R"));
    CHECK(a == 0);
    CHECK(b == 1);
    CHECK(c == a);
    CHECK(table.size() == 2);
    CHECK(table[b].text(mesh) == "R,S0");
}

TEST_CASE("a column lists one port's layouts over all strategies") {
    expanded const s(op_of("aten::silu"), device_mesh::parse("2"));
    auto const out = s.strategies.column(1);
    REQUIRE(out.size() == s.strategies.size());
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i] == s.strategies.output(i, 0));
}
