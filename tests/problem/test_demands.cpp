// SPDX-License-Identifier: BSL-1.0
// What plan() is asked for and cannot give, or was asked wrongly: an error that names it, never a plan that ignores it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace cantle;

namespace {

/// x [16,8], s [] -> y = linear(x, w) * s -> loss = sum(y)
training_graph small() {
    graph_builder b;
    auto const x = b.input("x", {16, 8});
    auto const s = b.input("s", {});
    auto const y = b.named("y", b.mul(b.linear(x, b.parameter("w", {4, 8})), s));
    b.loss(b.named("total", b.call("aten::sum", {{"self", y}, {"dtype", none}})));
    return b.build();
}
sharding_plan plan_on(char const* sizes, plan_options const& options, char const* cost_mesh = nullptr) {
    auto const mesh = device_mesh::parse(sizes), made_for = device_mesh::parse(cost_mesh ? cost_mesh : sizes);
    return plan(small(), mesh, standard_rules(), standard_cost_model(made_for, find_cluster("h100")), options);
}
error failure(plan_options const& options, char const* sizes = "2x2", char const* cost_mesh = nullptr) {
    try {
        plan_on(sizes, options, cost_mesh);
    } catch (error const& e) {
        CHECK(!e.remedy().empty());
        return e;
    }
    FAIL_CHECK("no error");
    return error(error_code::broken_json, "none", "none", "");
}
plan_options pinned(char const* tensor, char const* layout) {
    plan_options o;
    o.boundary.pins = {{tensor, layout}};
    return o;
}

}  // namespace

TEST_CASE("inputs and outputs cannot be Partial, whether said of all or of one") {
    plan_options o;
    o.boundary.inputs = "P,R";
    CHECK(failure(o).code() == error_code::bad_layout);
    CHECK(failure(o).subject() == "inputs to P,R");
    o.boundary = {};
    o.boundary.outputs = "R,P(max)";
    CHECK(failure(o).subject() == "outputs to R,P(max)");
    CHECK(failure(pinned("x", "P,R")).subject() == "pin of 'x' to P,R");
}

TEST_CASE("texts of the boundary are read even where the graph has no tensor that they speak of") {
    plan_options o;
    o.boundary.outputs = "S0";  // the graph has a loss and no output; the mesh has two axes
    CHECK(failure(o).code() == error_code::bad_layout);
    o = pinned("x", "S0,nonsense");
    o.boundary.pins.push_back({"x", "S0,R"});  // the last pin counts, the first must parse
    CHECK(failure(o).code() == error_code::bad_layout);
}

TEST_CASE("a dim that the tensor does not have is a bad layout, a dim that does not divide is not") {
    auto const e = failure(pinned("x", "S9,R"));
    CHECK(e.code() == error_code::bad_layout);
    CHECK(e.problem() == "the tensor has no dim 9");
    CHECK(failure(pinned("y", "S2,R")).problem() == "the tensor has no dim 2");  // of an op
    plan_options o;
    o.boundary.inputs = "S3,R";
    CHECK(failure(o).problem() == "the tensor has no dim 3");
    CHECK(failure(pinned("x", "S1,R"), "3x1").code() == error_code::mesh_does_not_divide);
}

TEST_CASE("a scalar cannot be pinned to a cut, and follows no cut said of all inputs") {
    CHECK(failure(pinned("s", "S0,R")).code() == error_code::bad_layout);
    CHECK(failure(pinned("loss", "S0,R")).code() == error_code::bad_layout);
    CHECK(failure(pinned("total", "S0,R")).code() == error_code::bad_layout);
    plan_options o;
    o.boundary.inputs = "S0,R";
    CHECK_NOTHROW(plan_on("2x2", o));
    CHECK_NOTHROW(plan_on("2x2", pinned("loss", "R,R")));
}

TEST_CASE("a loss with dims is Replicate too, and a pin that says otherwise is refused") {
    graph_builder b;
    b.loss(b.relu(b.input("x", {16, 8})));
    auto const mesh = device_mesh::parse("2");
    try {
        plan(b.build(), mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), pinned("loss", "S0"));
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::unsatisfiable_constraint);
        CHECK(e.problem() == "a loss is Replicate");
    }
}

TEST_CASE("options that are no numbers of at least 0 are refused by name") {
    double const not_a_number = std::nan(""), infinite = std::numeric_limits<double>::infinity();
    for (double bad : {-1.0, -1e-12, not_a_number, infinite}) {
        plan_options o;
        o.tie_break = bad;
        CHECK(failure(o).code() == error_code::bad_option);
        CHECK(failure(o).subject() == "plan option tie_break");
        o = {};
        o.relative_gap = bad;
        CHECK(failure(o).subject() == "plan option relative_gap");
    }
    plan_options o;
    o.tie_break = 0;
    CHECK_NOTHROW(plan_on("2x2", o));
}

TEST_CASE("a cost model that was made for another mesh is refused, naming both; other names of the axes are none") {
    auto const e = failure({}, "2x4", "4x2");
    CHECK(e.code() == error_code::bad_cost);
    CHECK(e.subject() == "cost model of mesh " + device_mesh::parse("4x2").text());
    CHECK(e.problem() == "the plan is for mesh " + device_mesh::parse("2x4").text());
    CHECK(failure({}, "2x4", "8").code() == error_code::bad_cost);
    auto const mesh = device_mesh::parse("2x2", "dp,tp");
    CHECK_NOTHROW(plan(small(), mesh, standard_rules(), standard_cost_model(device_mesh::parse("2x2"), find_cluster("h100"))));
    // A model of one's own that hides the mesh is refused where it is asked for an axis that it does not have.
    struct wrapped {
        standard_cost_model of;
        double compute(op_query const& q) const { return of.compute(q); }
        double collective(collective_call const& c) const { return of.collective(c); }
        void feed(stable_hasher& h) const { of.feed(h); }
    };
    try {
        plan(small(), mesh, standard_rules(), wrapped{standard_cost_model(device_mesh::parse("4"), find_cluster("h100"))});
        FAIL("no error");
    } catch (error const& raised) {
        CHECK(raised.code() == error_code::bad_cost);
    }
}

TEST_CASE("a graph without nodes is no graph to plan") {
    auto const mesh = device_mesh::parse("2");
    try {
        plan(training_graph{}, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_graph);
    }
}
