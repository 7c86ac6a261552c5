// SPDX-License-Identifier: BSL-1.0
// Regions, run: on the ranks of a plan their own functions give what the dense reference gives on one rank, outputs and all gradients, and
// the collectives inside are those that are declared and priced.
//
//   inputs (all wanting gradients) -> region -> out        capture, plan, run on threads, put together = replay of the reference
//                                   <- backward <- tangent
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture.hpp>
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/region.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensors = std::vector<at::Tensor>;
using tensor_map = std::map<std::string, at::Tensor>;

rule_registry const& rules_once() {
    static auto const all = standard_rules();
    return all;
}
sharding_plan plan_of(training_graph const& g, device_mesh const& mesh) {
    return plan(g, mesh, rules_once(), standard_cost_model(mesh, find_cluster("h100")));
}

/// (kind, axes) -> number.
using tally = std::map<std::pair<collective_kind, std::uint32_t>, int>;
tally priced(sharding_plan const& p) {
    tally t;
    auto const count = [&](collective_call const& c) {
        if (c.kind != collective_kind::slice) ++t[{c.kind, c.axes}];
    };
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) count(s.call);
    for (auto const& n : p.nodes)
        for (auto const& i : n.inner) count(i.call);
    return t;
}
tally counted(std::vector<ran_collective> const& ran) {
    tally t;
    for (auto const& c : ran) {
        std::uint32_t axes = 0;
        for (auto a : c.axes) axes |= 1u << a;
        ++t[{c.kind, axes}];
    }
    return t;
}

std::vector<rank_executor> ranks_of(training_graph const& g, sharding_plan const& p) {
    std::vector<rank_program> programs;
    for (std::int64_t r = 0; r < p.mesh.device_count(); ++r) programs.push_back(lower(g, p, rules_once(), r));
    check_programs(programs);
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    std::vector<rank_executor> ranks;
    for (auto& program : programs) ranks.emplace_back(std::move(program), names);
    return ranks;
}

/// Every sink of the ranks' run against that of one rank, relative to its largest element (at least 1).
void check_run(training_graph const& g, device_mesh const& mesh, tensor_map const& inputs, tensor_map const& want, double tolerance) {
    auto const p = plan_of(g, mesh);
    auto const ranks = ranks_of(g, p);
    auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs));
    for (auto const& ran : got.collectives) CHECK((counted(ran) == priced(p)));
    std::size_t compared = 0;
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        tensors pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
        auto const& wanted = want.at(g[v].name);
        CHECK(wanted.abs().max().item<double>() > 0);  // a test that compares zeros sees nothing
        auto const scale = std::max(1.0, wanted.abs().max().item<double>());
        auto const off = (whole - wanted).abs().max().item<double>() / scale;
        CHECK_MESSAGE(off <= tolerance, g[v].name, " is off by ", off, " on ", mesh.text());
        ++compared;
    }
    CHECK(compared == want.size());
}

/// The region alone: its floating point inputs are parameters, so that each gets a gradient. `in`: real tensors in its order.
struct lone_region {
    training_graph graph;
    tensor_map inputs;
};
lone_region alone(region_spec const& spec, tensors const& in) {
    capture_request r;
    lone_region result;
    std::vector<std::pair<bool, std::size_t>> order;  // parameter or input, which
    for (std::size_t i = 0; i < in.size(); ++i) {
        auto const name = "in" + std::to_string(i);
        auto t = at::empty(in[i].sizes(), in[i].options().device(at::kMeta));
        bool const real = in[i].is_floating_point();
        auto& list = real ? r.parameters : r.inputs;
        order.emplace_back(real, list.size());
        list.push_back({name, t.requires_grad_(real)});
        result.inputs[name] = in[i];
    }
    auto const parameters = r.parameters;
    r.run = [spec, order, parameters](tensors const& inputs, tensors const&) {
        tensors all;
        for (auto const& [real, i] : order) all.push_back(real ? parameters[i].tensor : inputs[i]);
        return region(spec, all)[0];
    };
    r.tangent = true;
    r.output_name = "out";
    result.graph = capture(r);
    auto const out = spec.reference(in)[0];
    at::manual_seed(3);
    result.inputs["out.tangent"] = at::randn(out.sizes(), out.options());
    return result;
}
/// The region on meshes "4 ep", "2x2 dp,ep" against its reference.
void check_region(region_spec const& spec, tensors const& in, std::vector<std::string> const& meshes, double tolerance = 1e-10) {
    auto const a = alone(spec, in);
    auto const want = replay(a.graph, a.inputs);
    for (auto const& text : meshes) {
        CAPTURE(text);
        auto const space = text.find(' ');
        check_run(a.graph, device_mesh::parse(text.substr(0, space), text.substr(space + 1)), a.inputs, want, tolerance);
    }
}
at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type = at::kDouble) { return at::randn(sizes, at::kDouble).to(type); }

/// A spec of one output with what all tests here have.
region_spec spec_of(std::string name, std::vector<std::string> in, std::string out, std::string collectives = "") {
    region_spec s;
    s.options.name = std::move(name);
    s.options.inputs = std::move(in);
    s.options.outputs = {std::move(out)};
    s.options.flops_per_element = 1;
    s.options.collectives = std::move(collectives);
    return s;
}
/// x [T, D] w1 [H, D] w2 [D, H] -> [T, D]
tensors two_layers(tensors const& in) { return {at::linear(at::tanh(at::linear(in[0], in[1])), in[2])}; }
tensors two_layer_inputs() {
    at::manual_seed(5);
    return {random_tensor({8, 6}), random_tensor({12, 6}), random_tensor({6, 12})};
}
std::string message_of(region_spec const& spec, tensors const& in, std::string const& mesh, std::string const& names) {
    auto const a = alone(spec, in);
    auto const p = plan_of(a.graph, device_mesh::parse(mesh, names));
    try {
        run_on_threads(ranks_of(a.graph, p), cut_inputs(a.graph, p, a.inputs));
    } catch (error const& e) {
        return e.what();
    }
    return "no error";
}
void check_words(std::string const& message, std::vector<std::string> const& words) {
    for (auto const& w : words) CHECK_MESSAGE(message.find(w) != std::string::npos, message, " lacks ", w);
}

}  // namespace

// x [8,6] S0, w1 [12,6] S0, w2 [6,12] S1 on tp: gather the tokens, a part of the hidden layer, scatter the sum.
TEST_CASE("a gather and a reduce_scatter are each other's gradients, on one axis and on two at once") {
    for (bool const both : {false, true}) {
        auto s = spec_of("sequence_parallel", {"*=S0", "*=S0", "*=S1"}, "*=S0");
        if (!both) s.options.collectives = "tp:all_gather:in0, tp:reduce_scatter:out0";
        s.reference = two_layers;
        s.local = [both](region_ranks& ranks, tensors const& in) {
            auto const axes = both ? region_axes{"a", "b"} : region_axes("tp");
            auto const x = ranks.all_gather(in[0], 0, axes);
            return tensors{ranks.reduce_scatter(two_layers({x, in[1], in[2]})[0], 0, axes)};
        };
        if (!both) {
            check_region(s, two_layer_inputs(), {"4 tp", "2 tp"});
            continue;
        }
        // A flattened group has no price text, so only the numbers are compared.
        auto const a = alone(s, two_layer_inputs());
        auto const want = replay(a.graph, a.inputs);
        auto const mesh = device_mesh::parse("2x2", "a,b");
        auto const p = plan_of(a.graph, mesh);
        auto const ranks = ranks_of(a.graph, p);
        auto const got = run_on_threads(ranks, cut_inputs(a.graph, p, a.inputs));
        for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
            auto const v = ranks[0].program().outputs[i].node;
            tensors pieces;
            for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
            auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, a.graph[v].outputs[0].sizes);
            CHECK((whole - want.at(a.graph[v].name)).abs().max().item<double>() < 1e-12);
        }
    }
}

// x [8,6] R, w1 [12,6] S0, w2 [6,12] S1 on tp, out R: the tensor-parallel layer. The gradient that arrives is whole on every rank.
TEST_CASE("an all_reduce to a replicated output, and inputs that are replicated, give gradients that count once") {
    auto s = spec_of("tensor_parallel", {"", "tp=S0", "tp=S1"}, "", "tp:all_reduce:out0");
    s.reference = two_layers;
    s.local = [](region_ranks& ranks, tensors const& in) { return tensors{ranks.all_reduce(two_layers(in)[0], "tp")}; };
    check_region(s, two_layer_inputs(), {"4 tp", "2x2 dp,tp"});
    // The output as a sum of parts needs no collective at all.
    auto parts = s;
    parts.options.name = "tensor_parallel_parts";
    parts.options.outputs = {"tp=P"};
    parts.options.collectives = "";
    parts.local = [](region_ranks&, tensors const& in) { return two_layers(in); };
    check_region(parts, two_layer_inputs(), {"4 tp", "2x2 dp,tp"});
}

// x [8,12] S1 on tp: every row divided by its norm, of which each rank has a part.
TEST_CASE("an all_reduce in the middle sums the gradients of all ranks, avg too") {
    auto s = spec_of("norm_over_ranks", {"tp=S1", "tp=S0"}, "tp=S1", "tp:all_reduce:in1");
    s.options.collectives = "tp:all_reduce:in1";
    s.reference = [](tensors const& in) { return tensors{in[0] * in[1] * at::rsqrt(in[0].square().mean(-1, true) + 0.1)}; };
    for (bool const avg : {false, true}) {
        s.local = [avg](region_ranks& ranks, tensors const& in) {
            auto const part = avg ? in[0].square().mean(-1, true) : in[0].square().sum(-1, true) / 12;
            return tensors{in[0] * in[1] * at::rsqrt(ranks.all_reduce(part, "tp", avg ? reduction::avg : reduction::sum) + 0.1)};
        };
        at::manual_seed(6);
        check_region(s, {random_tensor({8, 12}), random_tensor({12})}, {"4 tp", "2x2 dp,tp"});
    }
}

// x [8 tokens, 4 heads] S0 on cp: an op over all tokens of a head; an all_to_all cuts heads instead, another one goes back.
TEST_CASE("an even all_to_all changes the cut dim, and its gradient goes back") {
    auto s = spec_of("over_tokens", {"*=S0"}, "*=S0", "cp?:all_to_all:in0, cp?:all_to_all:out0");
    s.reference = [](tensors const& in) { return tensors{at::softmax(in[0], 0) * in[0]}; };
    s.local = [](region_ranks& ranks, tensors const& in) {
        auto const x = ranks.all_to_all(in[0], 1, 0, "cp?");
        CHECK(x.size(1) == 4 / ranks.size("cp?"));
        return tensors{ranks.all_to_all(at::softmax(x, 0) * x, 0, 1, "cp?")};
    };
    at::manual_seed(7);
    check_region(s, {random_tensor({8, 4, 3})}, {"4 cp", "2 cp"});
}

// x [8] S0 on cp: y of block r = x_r * block r-1, and block 0 uses nothing that it receives; block 3's own piece is used by nobody else.
TEST_CASE("ranks that do not use what they receive still take part in the backward") {
    auto s = spec_of("with_the_one_before", {"*=S0"}, "*=S0", "cp:permute:in0*2");
    s.reference = [](tensors const& in) {
        auto const n = in[0].size(0);
        return tensors{at::cat({in[0].slice(0, 0, n / 4), in[0].slice(0, n / 4) * in[0].slice(0, 0, n - n / 4)}).sin()};
    };
    s.local = [](region_ranks& ranks, tensors const& in) {
        auto const before = ranks.shift(in[0], "cp");
        auto const after = ranks.shift(in[0], "cp", -1);  // nobody uses this one
        CHECK(after.sizes() == in[0].sizes());
        return tensors{(ranks.coordinate("cp") == 0 ? in[0] : in[0] * before).sin()};
    };
    at::manual_seed(8);
    check_region(s, {random_tensor({8, 2})}, {"4 cp"});
}

// w [3] R over x [8,3] S0 on dp (case D1), by an author's own backward: grad w is (P), and must be reduced by the program around it.
TEST_CASE("an own backward gets pieces and gives pieces; one that gave a whole gradient for a part would be seen") {
    auto s = spec_of("scaling_by_hand", {"*=S0", ""}, "*=S0");
    s.reference = [](tensors const& in) { return tensors{in[0] * in[1]}; };
    s.local = [](region_ranks&, tensors const& in) { return tensors{in[0] * in[1]}; };
    s.local_backward = [](region_ranks& ranks, tensors const& gradients, tensors const& in) {
        CHECK(in[0].size(0) == 8 / ranks.mesh().device_count());
        return tensors{gradients[0] * in[1], (gradients[0] * in[0]).sum(0)};
    };
    at::manual_seed(9);
    tensors const in = {random_tensor({8, 3}), random_tensor({3})};
    check_region(s, in, {"4 dp", "2x2 a,b", "1 dp"});
    auto const plan_text = [&](region_spec const& spec) {
        auto const a = alone(spec, in);
        auto const p = plan_of(a.graph, device_mesh::parse("2x2", "dp,ep"));
        for (vertex v = 0; v < a.graph.size(); ++v)
            if (a.graph[v].operation.name == region_backward_op_name) return p.at(p.nodes[v].outputs[1]).text(p.mesh);
        return std::string();
    };
    CHECK(plan_text(s) == "P,P");
}

namespace {

/// The spec of a model's region, as its capture left it, and its inputs at a size of our own.
region_spec experts_spec(std::int64_t experts);
struct expert_case {
    tensors in;
};
tensors expert_inputs(std::int64_t experts, std::int64_t top, at::ScalarType type, bool one_sided) {
    at::manual_seed(10);
    std::int64_t const dim = 6, hidden = 5;
    auto const scores = at::softmax(at::randn({8, 3, experts}, at::kDouble), -1);
    auto const chosen = scores.topk(top, -1);
    auto ids = std::get<1>(chosen);
    if (one_sided) ids = at::arange(top).expand({8, 3, top}).contiguous();  // all tokens to the first experts: most ranks get none
    return {random_tensor({8, 3, dim}, type), std::get<0>(chosen).to(type), ids, random_tensor({experts, hidden, dim}, type),
            random_tensor({experts, dim, hidden}, type), random_tensor({experts, hidden, dim}, type)};
}

}  // namespace
