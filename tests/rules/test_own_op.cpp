// SPDX-License-Identifier: BSL-1.0
// Ops of one's own: what they are checked for when they are added, and what they are good for afterwards.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <cantle/graph/builder.hpp>
#include <cantle/rules/own_op_kinds.hpp>

#include <functional>

using namespace cantle;
using namespace cantle::test;

namespace {

tensor_meta matrix(std::int64_t rows, std::int64_t columns) { return contiguous_meta({rows, columns}, dtype::float32); }
placement const R = placement::replicate(), S0 = placement::shard(0), S1 = placement::shard(1), P = placement::partial();

/// Two operands, one output; says whatever rows it is told.
struct two_to_one {
    std::vector<axis_row> list;
    std::string name() const { return "mine::two"; }
    void rows(op_query const&, std::int64_t, row_list& out) const {
        for (auto const& r : list) out.add(r);
    }
    std::vector<tensor_meta> output_metas(op const&, std::vector<tensor_meta> const& operands) const { return {operands[0]}; }
    own_example example() const { return {{matrix(8, 4), matrix(8, 4)}, {}}; }
};
static_assert(OwnOp<two_to_one>);
static_assert(OwnOp<own_pointwise> && OwnOp<own_reduction> && OwnOp<own_linear>);

struct with_extras : two_to_one {
    int version() const { return 7; }
    void local(local_view const& v, local_program& p) const {
        op o = *v.operation;
        o.name = "mine::two_local";
        run_whole(std::move(o), v, p);
    }
};
struct without_example : two_to_one {
    std::vector<own_example> example() const { return {}; }
};
struct without_output : two_to_one {
    std::vector<tensor_meta> output_metas(op const&, std::vector<tensor_meta> const&) const { return {}; }
};
/// A row that is wrong on axes of 3 only.
struct wrong_at_three : two_to_one {
    void rows(op_query const&, std::int64_t n, row_list& out) const {
        if (n == 3) out.add({S0}, {S0});
    }
};

error failure_of(std::function<void(rule_registry&)> const& add) {
    rule_registry rules;
    try {
        add(rules);
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_rule);
        CHECK_FALSE(e.remedy().empty());
        return e;
    }
    FAIL("no error");
    return error(error_code::bad_option, "", "", "");
}
error failure_of(std::vector<axis_row> rows) {
    return failure_of([&](rule_registry& r) { r.add_op(two_to_one{std::move(rows)}); });
}
auto hash_of(rule_registry const& r) {
    stable_hasher h;
    r.feed(h);
    return h.finish();
}

}  // namespace

TEST_CASE("an op that is added by one class expands like every other") {
    rule_registry rules;
    rules.add_op(two_to_one{{axis_row{{S0, S0}, {S0}}, axis_row{{P, R}, {P}}}});
    auto const e = example_op("mine::two").tensor("x", {8, 4}).tensor("y", {8, 4}).out({8, 4});
    CHECK(rules.covers(e.query()));
    CHECK(rows_of(e, 2, rules) == std::vector<std::string>{"R, R -> R", "S0, S0 -> S0", "P, R -> P"});
    CHECK(expanded(e, device_mesh::parse("2x2"), rules).has("S0,P | S0,R -> S0,P"));
}

TEST_CASE("its row with the wrong number of operands is refused when the op is added, naming rule and row") {
    auto const e = failure_of({axis_row{{S0}, {S0}}});
    CHECK(e.subject() == "rule of mine::two, row 'S0 -> S0'");
    CHECK(e.problem() == "it places 1 operands, the op has 2");
}

TEST_CASE("its row with the wrong number of outputs is refused when the op is added") {
    CHECK(failure_of({axis_row{{S0, S0}, {S0, S0}}}).problem() == "it places 2 outputs, the op has 1");
}

TEST_CASE("its row that cuts a dim that does not exist is refused when the op is added") {
    auto const e = failure_of({axis_row{{S0, S0}, {S0}}, axis_row{{S1, placement::shard(2)}, {S1}}});
    CHECK(e.subject() == "rule of mine::two, row 'S1, S2 -> S1'");
    CHECK(e.problem() == "operand 1 has no dim 2");
    CHECK(failure_of({axis_row{{S0, S0}, {placement::shard(2)}}}).problem() == "output 0 has no dim 2");
}

TEST_CASE("its row that mixes kinds of Partial is refused when the op is added") {
    auto const e = failure_of({axis_row{{P, placement::partial(reduction::max)}, {P}}});
    CHECK(e.subject() == "rule of mine::two, row 'P, P(max) -> P'");
    CHECK(e.problem() == "it mixes kinds of Partial: P and P(max)");
    CHECK(failure_of({axis_row{{P, R}, {placement::partial(reduction::avg)}}}).problem() == "it mixes kinds of Partial: P and P(avg)");
}

TEST_CASE("rows are checked on axes of two, three and four ranks") {
    CHECK(failure_of([](rule_registry& r) { r.add_op(wrong_at_three{}); }).subject() == "rule of mine::two, row 'S0 -> S0'");
}

TEST_CASE("an op without an example, or whose example has no output, is refused") {
    CHECK(failure_of([](rule_registry& r) { r.add_op(without_example{}); }).problem() == "it shows no example");
    CHECK(failure_of([](rule_registry& r) { r.add_op(without_output{}); }).problem() == "output_metas gives no output for its example");
}

TEST_CASE("an op that is refused is not added") {
    rule_registry rules;
    CHECK_THROWS_AS(rules.add_op(two_to_one{{axis_row{{S0}, {S0}}}}), error);
    CHECK(rules.op_names().empty());
}

TEST_CASE("version and local program are taken where the class has them") {
    rule_registry plain, extra;
    plain.add_op(two_to_one{});
    extra.add_op(with_extras{});
    CHECK_FALSE(hash_of(plain) == hash_of(extra));
    auto const e = example_op("mine::two").tensor("x", {8, 4}).tensor("y", {8, 4}).out({8, 4});
    local_view v{&e.operation, std::vector<port_view>(2), std::vector<port_view>(1), 1};
    CHECK(extra.local(v).steps()[0].call.name == "mine::two_local");
    CHECK(plain.local(v).steps()[0].call.name == "mine::two");
}

TEST_CASE("rows that hold for every shape are a list, checked when they are added") {
    rule_registry rules;
    rules.add("mine::two", rows_rule({{{S0, S0}, {S0}}, {{P, R}, {P}}}));
    auto const e = example_op("mine::two").tensor("x", {8, 4}).tensor("y", {8, 4}).out({8, 4});
    CHECK(rows_of(e, 2, rules) == std::vector<std::string>{"R, R -> R", "S0, S0 -> S0", "P, R -> P"});
    CHECK(failure_of([](rule_registry& r) { r.add("mine::two", rows_rule({{{S0, S0}, {S0}}, {{P}, {P}}})); }).problem() ==
          "it places 1 operands, the first row 2");
    CHECK(failure_of([](rule_registry& r) { r.add("mine::two", rows_rule({{{S0}, {S0}}, {{P}, {P, P}}})); }).problem() ==
          "it places 2 outputs, the first row 1");
    CHECK(failure_of([](rule_registry& r) { r.add("mine::two", rows_rule({{{placement::partial(reduction::min)}, {P}}})); }).subject() ==
          "rule of mine::two, row 'P(min) -> P'");
}

TEST_CASE("a list whose rows fit each other but not the op is found when it is expanded") {
    rule_registry rules;
    rules.add("mine::two", rows_rule({{{placement::shard(5), S0}, {S0}}}));
    auto const e = example_op("mine::two").tensor("x", {8, 4}).tensor("y", {8, 4}).out({8, 4});
    layout_table table;
    CHECK_THROWS_AS(expand_axes(e.query(), device_mesh::parse("2"), rules, table), error);
}

TEST_CASE("the builder finds the output metas of own ops, and still those of the others") {
    rule_registry rules;
    rules.add_op(own_linear{"mine::fp8_linear"});
    rules.add_op(own_reduction{"mine::absmax", reduction::max});
    graph_builder b;
    b.shapes_from(rules.shapes());
    auto const x = b.input("x", {4, 6, 8});
    auto const y = b.call("mine::fp8_linear", {{"x", x}, {"w", b.parameter("w", {10, 8})}});
    auto const m = b.call("mine::absmax", {{"self", y}, {"dim", shape{1}}, {"keepdim", true}});
    auto const z = b.call("aten::silu", {{"self", m}});
    b.output(z);
    auto const g = b.build();
    CHECK(g.meta(y).sizes == shape{4, 6, 10});
    CHECK(g.meta(m).sizes == shape{4, 1, 10});
    CHECK(g.meta(z).sizes == shape{4, 1, 10});
    graph_builder none;
    auto const u = none.input("x", {4});
    CHECK_THROWS_AS(none.call("mine::absmax", {{"self", u}}), error);
}

TEST_CASE("shorthands: elementwise, reduction and linear ops of one line have the rows of their kind") {
    rule_registry rules;
    rules.add_op(own_pointwise{"mine::gated_add", 2, {.linear = true, .linear_in = {}, .multilinear_in = {}}});
    rules.add_op(own_reduction{"mine::total", reduction::sum, true});
    rules.add_op(own_reduction{"mine::absmax", reduction::max});
    rules.add_op(own_linear{"mine::fp8_linear"});
    auto const add = example_op("mine::gated_add").tensor("a", {4, 6}).tensor("b", {6}).out({4, 6});
    CHECK(rows_of(add, 2, rules) ==
          std::vector<std::string>{"R, R -> R", "S0, R -> S0", "S1, S0 -> S1", "P, P -> P", "P(avg), P(avg) -> P(avg)"});
    auto const reduce = [](char const* name) {
        return example_op(name).tensor("self", {4, 6}).literal("dim", shape{1}).literal("keepdim", false).out({4});
    };
    CHECK(has(rows_of(reduce("mine::total"), 2, rules), "S1 -> P"));
    CHECK(has(rows_of(reduce("mine::total"), 2, rules), "P -> P"));
    CHECK(has(rows_of(reduce("mine::absmax"), 2, rules), "S1 -> P(max)"));
    CHECK_FALSE(has(rows_of(reduce("mine::absmax"), 2, rules), "P -> P"));
    auto const linear = example_op("mine::fp8_linear").tensor("x", {4, 8}).tensor("w", {6, 8}).out({4, 6});
    CHECK(has(rows_of(linear, 2, rules), "S1, S1 -> P"));
}

TEST_CASE("shorthands refuse operands that do not fit") {
    std::vector<tensor_meta> const wrong{matrix(4, 3), matrix(5, 4)};
    CHECK_THROWS_AS(own_pointwise({"mine::op", 2, {}}).output_metas(op{"mine::op", {}}, wrong), error);
    CHECK_THROWS_AS(own_pointwise({"mine::op", 0, {}}).output_metas(op{"mine::op", {}}, {}), error);
    CHECK_THROWS_AS(own_linear{"mine::op"}.output_metas(op{"mine::op", {}}, wrong), error);
    CHECK(own_pointwise({"mine::op", 2, {}})
              .output_metas(op{"mine::op", {}}, {matrix(1, 3), contiguous_meta({2, 5, 1}, dtype::float32)})[0]
              .sizes == shape{2, 5, 3});
}
