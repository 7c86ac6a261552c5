// SPDX-License-Identifier: BSL-1.0
// Regions: one declared strategy, gradients derived axis by axis.
//
//   tokens [8,4,6]  "*=S0" --+
//   ids    [8,4,2]  "*=S0" --+--> experts --> out [8,4,6] "*=S0"          mesh dp x ep
//   weight [4,5,6]  "ep=S0" -+
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/op_work.hpp>
#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/region.hpp>

#include <doctest/doctest.h>

namespace {

using namespace cantle;

region_options experts() {
    region_options r;
    r.name = "experts";
    r.inputs = {"*=S0", "*=S0", "ep=S0"};
    r.outputs = {"*=S0"};
    r.flops_per_element = 10;
    r.collectives = "ep:all_to_all:in0*2, ep:all_to_all:out0";
    return r;
}
tensor_meta meta(shape sizes, dtype t = dtype::float32) { return contiguous_meta(std::move(sizes), t); }
std::vector<tensor_meta> expert_inputs(std::int64_t batch = 8) {
    return {meta({batch, 4, 6}), meta({batch, 4, 2}, dtype::int64), meta({4, 5, 6})};
}
rule_registry region_rules() {
    rule_registry r;
    rules::add_region_rules(r);
    return r;
}

struct expanded {
    strategy_table table;
    layout_table layouts;
    device_mesh mesh;
    std::string port(std::size_t strategy, std::size_t p) const {
        return layouts[table.layouts[strategy * table.ports() + p]].text(mesh);
    }
};
expanded expand(op const& o, std::vector<tensor_meta> const& in, std::vector<tensor_meta> const& out, device_mesh const& mesh) {
    expanded e;
    e.mesh = mesh;
    e.table = expand_axes(op_query{&o, in, out}, mesh, region_rules(), e.layouts);
    return e;
}
expanded expand_forward(region_options const& r, device_mesh const& mesh, std::int64_t batch = 8) {
    return expand(region_op(r), expert_inputs(batch), {meta({batch, 4, 6})}, mesh);
}
/// Gradient of output 0 in, gradients of the tokens and of the weight out.
expanded expand_backward(region_options const& r, device_mesh const& mesh) {
    auto in = expert_inputs();
    in.insert(in.begin(), meta({8, 4, 6}));
    return expand(region_backward_op(r, {0}, {0, 2}), in, {meta({8, 4, 6}), meta({4, 5, 6})}, mesh);
}
device_mesh dp_ep() { return device_mesh::parse("4x2", "dp,ep"); }

/// Checks code and that the message has all the words.
template <class F>
void check_error(error_code code, std::vector<std::string> const& words, F&& run) {
    try {
        run();
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == code);
        for (auto const& w : words) CHECK_MESSAGE(std::string(e.what()).find(w) != std::string::npos, std::string(e.what()), " lacks ", w);
    }
}

}  // namespace

TEST_CASE("a region has exactly the declared strategy, and nothing replicated beside it") {
    auto const e = expand_forward(experts(), dp_ep());
    REQUIRE(e.table.size() == 1);
    CHECK(e.port(0, 0) == "S0,S0");
    CHECK(e.port(0, 1) == "S0,S0");
    CHECK(e.port(0, 2) == "R,S0");
    CHECK(e.port(0, 3) == "S0,S0");
}

TEST_CASE("the gradient of a replicated weight over cut tokens is Partial on that axis, and cut as the weight on the other (case D1)") {
    auto const e = expand_backward(experts(), dp_ep());
    REQUIRE(e.table.size() == 1);
    CHECK(e.port(0, 0) == "S0,S0");  // gradient of the output
    CHECK(e.port(0, 1) == "S0,S0");
    CHECK(e.port(0, 3) == "R,S0");
    CHECK(e.port(0, 4) == "S0,S0");  // gradient of the tokens
    CHECK(e.port(0, 5) == "P,S0");   // gradient of the weight
}

TEST_CASE("on an axis where everything is replicated the gradients are too") {
    auto r = experts();
    r.inputs = {"ep=S0", "ep=S0", "ep=S0"};
    r.outputs = {"ep=S0"};
    auto const e = expand_backward(r, dp_ep());
    CHECK(e.port(0, 5) == "R,S0");
    CHECK(e.port(0, 4) == "R,S0");
}

TEST_CASE("a Partial output takes a replicated gradient, and its replicated inputs give Partial ones") {
    // Row-parallel: hidden cut on its last dim, weight cut on its last dim, the output a sum.
    auto r = experts();
    r.inputs = {"ep=S2, dp=S0", "dp=S0", "ep=S2"};
    r.outputs = {"ep=P, dp=S0"};
    r.collectives = "";
    CHECK(expand_forward(r, dp_ep()).port(0, 3) == "S0,P");
    auto const e = expand_backward(r, dp_ep());
    CHECK(e.port(0, 0) == "S0,R");
    CHECK(e.port(0, 4) == "S0,S2");
    CHECK(e.port(0, 5) == "P,S2");
}

TEST_CASE("declared gradients replace derived ones on the axes they name, on others derivation stays") {
    auto r = experts();
    r.input_gradients = {"", "", "dp=R"};
    auto e = expand_backward(r, dp_ep());
    CHECK(e.port(0, 5) == "R,S0");
    r.input_gradients = {};
    r.output_gradients = {"ep=R"};
    e = expand_backward(r, dp_ep());
    CHECK(e.port(0, 0) == "S0,R");
    CHECK(e.port(0, 5) == "P,S0");
}

TEST_CASE("a region of one input with nothing declared is replicated") {
    region_options r;
    r.name = "plain";
    r.inputs = {""};
    r.outputs = {""};
    auto const e = expand(region_op(r), {meta({3, 5})}, {meta({3, 5})}, dp_ep());
    REQUIRE(e.table.size() == 1);
    CHECK(e.port(0, 0) == "R,R");
}

TEST_CASE("inner collectives run on the axis they name, as often as they say, and backwards on the gradients") {
    auto const f = expand_forward(experts(), dp_ep());
    REQUIRE(f.table.inner[0].size() == 3);
    for (auto const& i : f.table.inner[0]) {
        CHECK(i.axis == 1);
        CHECK(i.what.kind == collective_kind::all_to_all);
    }
    CHECK(!f.table.inner[0][0].what.on_output);
    CHECK(f.table.inner[0][2].what.on_output);
    auto const b = expand_backward(experts(), dp_ep());
    REQUIRE(b.table.inner[0].size() == 6);  // the forward again, then the gradients
    std::vector<std::pair<bool, std::uint32_t>> ports;
    for (auto const& i : b.table.inner[0]) ports.emplace_back(i.what.on_output, i.what.index);
    // in0 twice; out0, which has the size of its gradient; that gradient; the gradient of in0 twice
    CHECK(ports == std::vector<std::pair<bool, std::uint32_t>>{{false, 1}, {false, 1}, {false, 0}, {false, 0}, {true, 0}, {true, 0}});
}

TEST_CASE("one message may be several times a tensor, or a number of bytes, which has no gradient") {
    auto r = experts();
    r.collectives = "ep:all_gather:64B, ep:all_to_all:6in0, ep:all_to_all:2out0*3";
    auto const f = expand_forward(r, dp_ep());
    REQUIRE(f.table.inner[0].size() == 5);
    CHECK(f.table.inner[0][0].what.message(1000) == 64);
    CHECK(f.table.inner[0][1].what.message(1000) == 6000);
    CHECK(f.table.inner[0][4].what.message(1000) == 2000);
    auto const b = expand_backward(r, dp_ep());
    REQUIRE(b.table.inner[0].size() == 5 + 4);
    CHECK(b.table.inner[0][0].what.bytes == 64);
    CHECK(b.table.inner[0][5].what.message(1000) == 2000);
    CHECK(b.table.inner[0][8].what.message(1000) == 6000);
}

TEST_CASE("a ring runs once less than its axis has ranks, a gather becomes a reduce_scatter in the backward") {
    auto r = experts();
    r.collectives = "dp:permute:in0*ring, ep:all_gather:in2";
    auto const f = expand_forward(r, dp_ep());
    REQUIRE(f.table.inner[0].size() == 4);
    CHECK(f.table.inner[0][2].what.kind == collective_kind::permute);
    auto const b = expand_backward(r, dp_ep());
    // On each axis the forward again, then the gradients; axes in mesh order.
    REQUIRE(b.table.inner[0].size() == 2 * 4);
    CHECK(b.table.inner[0][6].what.kind == collective_kind::all_gather);
    CHECK(b.table.inner[0][7].what.kind == collective_kind::reduce_scatter);
    CHECK(b.table.inner[0][7].what.index == 1);  // the weight's gradient is the second one made
    r.backward_collectives = "ep:all_reduce:grad_in2, dp:permute:in0, dp:all_to_all:grad_out0";
    auto const own = expand_backward(r, dp_ep());
    REQUIRE(own.table.inner[0].size() == 3);
    CHECK(!own.table.inner[0][0].what.on_output);
    CHECK(own.table.inner[0][0].what.index == 1);  // the forward's input 0
    CHECK(own.table.inner[0][1].what.index == 0);
    CHECK(own.table.inner[0][2].what.kind == collective_kind::all_reduce);
}

TEST_CASE("an axis with a question mark counts where the mesh has it") {
    auto r = experts();
    r.inputs = {"*=S0, cp?=S1", "*=S0, cp?=S1", "ep?=S0"};
    r.outputs = {"*=S0, cp?=S1"};
    r.collectives = "cp?:permute:in0*ring";
    CHECK(expand_forward(r, dp_ep()).port(0, 0) == "S0,S0");
    CHECK(expand_forward(r, dp_ep()).table.inner[0].empty());
    auto const e = expand_forward(r, device_mesh::parse("2x4", "dp,cp"));
    CHECK(e.port(0, 0) == "S0,S1");
    CHECK(e.table.inner[0].size() == 3);
}

TEST_CASE("an axis of one rank places nothing") {
    auto const e = expand_forward(experts(), device_mesh::parse("1x2", "dp,ep"));
    CHECK(e.port(0, 0) == "R,S0");
}

TEST_CASE("an axis that the mesh lacks is an error that names region, axis and mesh") {
    check_error(error_code::unknown_axis, {"region 'experts'", "'ep'", "8 (dp)", "input 2", "ep?"},
                [] { expand_forward(experts(), device_mesh::parse("8", "dp")); });
    auto r = experts();
    r.collectives = "pp:permute:in0";
    check_error(error_code::unknown_axis, {"region 'experts'", "'pp'", "collective"}, [&] { expand_forward(r, dp_ep()); });
}

TEST_CASE("a cut that does not divide is an error that names region, tensor, dim and sizes, not a missing strategy") {
    check_error(error_code::mesh_does_not_divide, {"region 'experts'", "input 0", "dim 0", "'ep'", "[3, 4, 6]"},
                [] { expand_forward(experts(), dp_ep(), 12); });
    auto r = experts();
    r.inputs[2] = "ep=S3";
    check_error(error_code::bad_region, {"region 'experts'", "input 2", "no dim 3", "[4, 5, 6]"}, [&] { expand_forward(r, dp_ep()); });
}

TEST_CASE("what does not parse is an error that quotes it") {
    auto const wrong = [](auto change, std::vector<std::string> const& words) {
        auto r = experts();
        change(r);
        check_error(error_code::bad_region, words, [&] { expand_forward(r, dp_ep()); });
    };
    wrong([](auto& r) { r.inputs[1] = "dp=S"; }, {"'dp=S'", "input 1"});
    wrong([](auto& r) { r.inputs[1] = "dp"; }, {"'dp'", "input 1"});
    wrong([](auto& r) { r.inputs[1] = "dp=S0, dp?=S1"; }, {"input 1", "twice"});
    wrong([](auto& r) { r.inputs[1] = "*=S0, *=R"; }, {"input 1", "twice"});
    wrong([](auto& r) { r.inputs.pop_back(); }, {"2 tensors", "in_placements", "3"});
    wrong([](auto& r) { r.outputs.push_back("*=R"); }, {"2 tensors", "out_placements"});
    wrong([](auto& r) { r.input_gradients = {"*=R", "*=R"}; }, {"grad_in_placements"});
    wrong([](auto& r) { r.collectives = "ep:all_to_all"; }, {"'ep:all_to_all'"});
    wrong([](auto& r) { r.collectives = "ep:swap:in0"; }, {"'swap'"});
    wrong([](auto& r) { r.collectives = "ep:permute:in0*0"; }, {"'ep:permute:in0*0'"});
    wrong([](auto& r) { r.collectives = "ep:permute:0in0"; }, {"'ep:permute:0in0'", "at least 1"});
    wrong([](auto& r) { r.collectives = "ep:permute:5"; }, {"'5'"});
    wrong([](auto& r) { r.collectives = "ep:permute:in3"; }, {"a tensor that it does not have"});
    wrong([](auto& r) { r.collectives = "ep:permute:grad_in0"; }, {"a tensor that it does not have"});
    wrong([](auto& r) { r.collectives = "ep:permute:x"; }, {"'x'"});
}

TEST_CASE("the gradient of a Partial that is no sum cannot be derived and must be declared") {
    auto r = experts();
    r.outputs = {"*=S0, ep=P(max)"};
    check_error(error_code::bad_region, {"output 0", "P(max)", "'ep'"}, [&] { expand_backward(r, dp_ep()); });
    r.output_gradients = {"ep=R"};
    CHECK(expand_backward(r, dp_ep()).port(0, 0) == "S0,R");
}

TEST_CASE("a region's flops scale with the local shape of its first output; the backward does twice that") {
    auto const f = region_op(experts());
    auto const in = expert_inputs();
    std::vector<tensor_meta> const whole{meta({8, 4, 6})}, half{meta({4, 4, 6})};
    CHECK(count_flops(op_query{&f, in, whole}) == 10.0 * 8 * 4 * 6);
    CHECK(count_flops(op_query{&f, in, half}) == 10.0 * 4 * 4 * 6);
    auto const b = region_backward_op(experts(), {0}, {0, 2});
    auto with_grad = in;
    with_grad.insert(with_grad.begin(), half[0]);
    CHECK(count_flops(op_query{&b, with_grad, half}) == 2 * 10.0 * 4 * 4 * 6);
}
