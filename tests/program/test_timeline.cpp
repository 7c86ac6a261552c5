// SPDX-License-Identifier: BSL-1.0
// Timelines by hand and of planned graphs: price and execution agree, streams keep their order, memory is what the tensors take.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"
#include "small_program.hpp"

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/timeline.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <map>

using namespace cantle;
using cantle::test::residual_mlp;
using cantle::test::small_prices;
using cantle::test::small_program;

namespace {

rule_registry const& rules() {
    static auto const r = standard_rules();
    return r;
}

/// Tokens [64,128] -> 512 logits, the vocabulary cut by a pin or not: cross-entropy reduces inside itself.
training_graph classifier() {
    graph_builder b;
    auto const x = b.input("x", {64, 128, 512});
    auto const target = b.target("target", {64, 128});
    auto const w = b.parameter("w", {1024, 512});
    auto const logits = b.linear(x, w);
    auto const loss =
        b.call("cantle::cross_entropy", {{"logits", logits}, {"target", target}, {"ignore_index", -100}, {"reduction", "mean"}});
    b.loss(loss);
    b.backward();
    auto const g = b.call("cantle::cross_entropy_backward", {{"grad", b.ones({})}, {"logits", logits}, {"target", target},
                                                             {"logsumexp", value_ref{loss.node, 1}},
                                                             {"total_weight", value_ref{loss.node, 2}}, {"ignore_index", -100},
                                                             {"reduction", "mean"}});
    b.gradient(w, b.linear_grad_weight(g, x));
    return b.build();
}

template <class Cost>
void check_prices(training_graph const& g, char const* sizes, boundary demands, Cost const& cost, bool uneven = false) {
    plan_options options;
    options.boundary = std::move(demands);
    options.uneven = uneven;
    auto const mesh = device_mesh::parse(sizes);
    auto const p = plan(g, mesh, rules(), cost, options);
    for (std::int64_t rank : {std::int64_t{0}, mesh.device_count() - 1}) {
        if (uneven && rank > 0) break;  // of unequal pieces the plan counts the largest
        auto const program = lower(g, p, rules(), rank);
        timeline_options serial;
        serial.serial = true;
        auto const t = predict_timeline(program, g, p, cost, serial);
        auto const same = [](double a, double b) { return doctest::Approx(a).epsilon(1e-9) == b; };
        CHECK(same(t.parts.forward_compute, p.cost.forward_compute));
        CHECK(same(t.parts.backward_compute, p.cost.backward_compute));
        for (std::size_t k = 0; k < t.parts.moves.size(); ++k) CHECK(same(t.parts.moves[k], p.cost.moves[k]));
        CHECK(same(t.parts.inner, p.cost.inner));
        CHECK(same(t.step_us + t.without_step_us, p.objective - p.cost.tie_break));
        CHECK(same(t.exposed_us, t.communication_us));

        auto const one = predict_timeline(program, g, p, cost);
        auto const many = predict_timeline(program, g, p, cost, {comm_streams::per_communicator, false});
        for (auto const* u : {&one, &many}) {
            CHECK(same(u->compute_us, t.compute_us));
            CHECK(same(u->communication_us, t.communication_us));
            CHECK(same(u->step_us, u->compute_us + u->exposed_us));
            CHECK(u->exposed_us <= u->communication_us * (1 + 1e-9));
            CHECK(u->memory.peak >= t.memory.sources);
            CHECK(u->memory.unsized_values == 0);
        }
        CHECK(many.step_us <= one.step_us * (1 + 1e-9));
        CHECK(one.step_us <= t.step_us * (1 + 1e-9));
    }
}

}  // namespace

TEST_CASE("one step after the other, a program takes what its plan priced, part by part, but for the tie-break") {
    for (auto const* mesh : {"8", "2x4", "4x8", "2x2x2"})
        for (auto const* machine : {"h100", "a100"})
            check_prices(residual_mlp(2), mesh, {}, standard_cost_model(device_mesh::parse(mesh), find_cluster(machine)));
    // Pieces that differ are padded: no axis divides batch or features.
    for (auto const* mesh : {"3", "5", "7", "3x2", "5x3"})
        check_prices(residual_mlp(2), mesh, {}, standard_cost_model(device_mesh::parse(mesh), find_cluster("h100")), true);
    // The vocabulary is cut on tp: three collectives inside the loss on top of those of the tokens.
    boundary cut;
    cut.pins = {{"linear", "S0,S2"}};
    check_prices(classifier(), "2x4", cut, standard_cost_model(device_mesh::parse("2x4"), find_cluster("h100")));
    check_prices(classifier(), "8", {}, standard_cost_model(device_mesh::parse("8"), find_cluster("h100")));
}

TEST_CASE("ops wait for what they read and for nothing else: times worked out by hand") {
    //     ops          relu 0-4           mm 10-13
    //     collectives  all_gather w 0-10           all_gather y 13-18
    auto const c = small_program();
    REQUIRE(c.program.steps.size() == 4);
    auto const t = predict_timeline(c.program, c.graph, c.plan, small_prices());
    double const start[] = {0, 0, 10, 13}, duration[] = {10, 4, 3, 5}, exposed[] = {6, 0, 0, 5}, issued[] = {0, 0, 4, 13};
    std::size_t const stream[] = {1, 0, 0, 1};
    REQUIRE(t.events.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(t.events[i].step == i);
        CHECK(t.events[i].stream == stream[i]);
        CHECK(t.events[i].start == start[i]);
        CHECK(t.events[i].duration == duration[i]);
        CHECK(t.events[i].exposed == exposed[i]);
        CHECK(t.issued[i] == issued[i]);
    }
    CHECK(t.step_us == 18);
    CHECK(t.compute_us == 7);
    CHECK(t.communication_us == 15);
    CHECK(t.exposed_us == 11);
    CHECK(t.hidden_share() == doctest::Approx(4.0 / 15));

    auto const serial = predict_timeline(c.program, c.graph, c.plan, small_prices(), {comm_streams::one, true});
    CHECK(serial.step_us == 22);
    CHECK(serial.exposed_us == 15);
    CHECK(serial.events[2].start == 14);
}

TEST_CASE("a collective waits for the ops that stand before it: as lowered, the gather of w hides behind nothing") {
    //     ops          relu 0-4                  mm 14-17
    //     collectives           all_gather w 4-14         all_gather y 17-22
    auto c = small_program();
    c.program = lower(c.graph, c.plan, test::ops_as_they_are(), 0);
    auto const t = predict_timeline(c.program, c.graph, c.plan, small_prices());
    CHECK(t.events[1].start == 4);
    CHECK(t.step_us == 22);
    CHECK(t.exposed_us == 15);
}

TEST_CASE("memory is what the tensors and the buffers of transfers take, worked out by hand") {
    // Bytes: x, w 128 each, from the caller to the end. h 128. w gathered: 256 received, 256 unpacked. y 128, gathered 256.
    auto const c = small_program();
    auto const m = live_bytes(c.program, c.graph);
    CHECK(m.sources == 256);
    // relu: sources + h. all_gather: + 256. mm waits: + 256 unpacked, then the received go. all_gather y: sources + y + 256.
    CHECK(m.at_step == std::vector<std::int64_t>{512, 640, 896, 640});
    CHECK(m.peak == 896);
    CHECK(m.peak_step == 2);
    std::map<held_memory::use, std::int64_t> uses;
    for (auto const& h : m.at_peak) uses[h.what] += h.bytes;
    CHECK(uses[held_memory::use::source] == 256);
    CHECK(uses[held_memory::use::value] == 128 + 256);
    CHECK(uses[held_memory::use::received] == 256);
    CHECK(m.at_peak.front().bytes == 256);
    // Waited for at once, the unpacking stands at the transfer.
    CHECK(live_bytes(c.program, c.graph, false).at_step == std::vector<std::int64_t>{768, 640, 768, 640});
}

TEST_CASE("a view takes no memory where strides allow it, and a copy where they do not") {
    CHECK(view_strides({4, 6}, {6, 1}, {2, 2, 6}) == shape{12, 6, 1});
    CHECK(view_strides({4, 6}, {6, 1}, {24}) == shape{1});
    CHECK(view_strides({4, 6}, {6, 1}, {8, 3}) == shape{3, 1});
    CHECK_FALSE(view_strides({6, 4}, {1, 6}, {24}));             // transposed
    CHECK(view_strides({6, 4}, {1, 6}, {3, 2, 4}) == shape{2, 1, 6});
    CHECK(view_strides({2, 1, 4}, {4, 99, 1}, {8}) == shape{1});  // a dim of size 1 lies anywhere
    CHECK_FALSE(view_strides({4, 6}, {12, 1}, {24}));            // a slice of a wider tensor
    CHECK(view_strides({0, 3}, {3, 1}, {3, 0}));
    CHECK(is_contiguous({2, 3}, {3, 1}));
    CHECK_FALSE(is_contiguous({2, 3}, {1, 2}));
    CHECK_FALSE(is_contiguous({4}, {0}));                        // expanded
    CHECK(dense_strides({2, 3, 4}, {60, 5, 15}) == shape{12, 1, 3});

    op const transpose{"aten::transpose.int", {{"self", operand_slot{0}}, {"dim0", std::int64_t{0}}, {"dim1", std::int64_t{-1}}}};
    CHECK(shared_strides(transpose, {2, 3}, {3, 1}, {3, 2}) == shape{1, 3});
    op const expand{"aten::expand", {{"self", operand_slot{0}}, {"size", shape{5, 2, 3}}}};
    CHECK(shared_strides(expand, {2, 1}, {1, 1}, {5, 2, 3}) == shape{0, 1, 0});
    op const reshape{"aten::reshape", {{"self", operand_slot{0}}, {"shape", shape{6}}}};
    CHECK(shared_strides(reshape, {2, 3}, {3, 1}, {6}) == shape{1});
    CHECK_FALSE(shared_strides(reshape, {3, 2}, {1, 3}, {6}));
    CHECK_FALSE(shared_strides(op{"aten::relu", {}}, {2, 3}, {3, 1}, {2, 3}));
}

TEST_CASE("the shapes of steps inside ops are known: comparisons, gathers, slices, pads") {
    auto const f = contiguous_meta({4, 6}, dtype::float32);
    auto const i = contiguous_meta({4, 1}, dtype::int64);
    auto const shape_of = [](op const& o, std::vector<tensor_meta> const& in) { return step_outputs(o, in).at(0); };
    op const less{"aten::lt.Scalar", {{"self", operand_slot{0}}, {"other", 3.0}}};
    CHECK(shape_of(less, {f}) == contiguous_meta({4, 6}, dtype::boolean));
    op const gather{"aten::gather", {{"self", operand_slot{0}}, {"dim", std::int64_t{-1}}, {"index", operand_slot{1}}}};
    CHECK(shape_of(gather, {f, i}) == contiguous_meta({4, 1}, dtype::float32));
    op const slice{"aten::slice.Tensor", {{"self", operand_slot{0}}, {"dim", std::int64_t{1}}, {"start", std::int64_t{1}},
                                          {"end", std::int64_t{9}}, {"step", std::int64_t{2}}}};
    CHECK(shape_of(slice, {f}).sizes == shape{4, 3});
    op const pad{"aten::constant_pad_nd", {{"self", operand_slot{0}}, {"pad", shape{0, 2, 1, 0}}}};
    CHECK(shape_of(pad, {f}).sizes == shape{5, 8});
    op const unsqueeze{"aten::unsqueeze", {{"self", operand_slot{0}}, {"dim", std::int64_t{-1}}}};
    CHECK(shape_of(unsqueeze, {f}).sizes == shape{4, 6, 1});
    CHECK(step_outputs(op{"mine::unknown", {}}, {f}).empty());
}

TEST_CASE("a price that is no time is refused, naming what was priced") {
    struct negative : small_prices {
        double collective(collective_call const&) const { return -1; }
    };
    auto const c = small_program();
    try {
        predict_timeline(c.program, c.graph, c.plan, negative());
        FAIL("accepted");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_cost);
        CHECK(e.subject() == "all_gather");
    }
}
