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
#include <adapters/libtorch/property/collective_tally.hpp>
#include <adapters/libtorch/region.hpp>
#include <adapters/libtorch/region_run.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
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

/// (kind, axes) -> number: bytes of exchanges depend on data.
std::map<std::pair<collective_kind, std::uint32_t>, std::size_t> numbers(tally const& t) {
    std::map<std::pair<collective_kind, std::uint32_t>, std::size_t> n;
    for (auto const& [what, of_it] : t) n[what] = of_it.first;
    return n;
}

std::vector<rank_executor> ranks_of(training_graph const& g, sharding_plan const& p) {
    auto programs = ready_programs(g, p, rules_once());
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    std::vector<rank_executor> ranks;
    for (auto& program : programs) ranks.emplace_back(std::move(program), names);
    return ranks;
}

/// Runs the plan for `mesh`. By sink: how far the ranks' result is from that of one rank, relative to its largest element (at least 1).
/// Compares the collectives with the priced ones, unless the region has some that no text can declare.
std::map<std::string, double> differences(training_graph const& g, device_mesh const& mesh, tensor_map const& inputs,
                                          tensor_map const& want, bool all_declared = true) {
    auto const p = plan_of(g, mesh);
    auto const ranks = ranks_of(g, p);
    auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs));
    if (all_declared)
        for (auto const& ran : got.collectives) CHECK((numbers(counted(ran)) == numbers(priced(p))));
    std::map<std::string, double> off;
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        tensors pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
        auto const& wanted = want.at(g[v].name);
        auto const largest = wanted.abs().max().item<double>();
        CHECK(largest > 0);  // a test that compares zeros sees nothing
        off[g[v].name] = (whole - wanted).abs().max().item<double>() / std::max(1.0, largest);
    }
    CHECK(off.size() == want.size());
    return off;
}
void check_run(training_graph const& g, device_mesh const& mesh, tensor_map const& inputs, tensor_map const& want, double tolerance,
               bool all_declared = true) {
    for (auto const& off : differences(g, mesh, inputs, want, all_declared))
        CHECK_MESSAGE(off.second <= tolerance, off.first, " is off by ", off.second, " on ", mesh.text());
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
        auto const a = alone(s, two_layer_inputs());
        check_run(a.graph, device_mesh::parse("2x2", "a,b"), a.inputs, replay(a.graph, a.inputs), 1e-12, false);
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
TEST_CASE("D1, D2: an own backward gets pieces and gives pieces; one that gave a whole gradient for a part would be seen") {
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
    s.options.name = "scaling_by_wrong_hand";
    s.options.input_gradients = {"", "*=R"};  // case D1: the weight's gradient taken for whole
    CHECK(plan_text(s) == "R,R");
    auto const a = alone(s, in);
    auto const off = differences(a.graph, device_mesh::parse("4", "dp"), a.inputs, replay(a.graph, a.inputs));
    CHECK(off.at("in0.grad") < 1e-12);
    CHECK(off.at("in1.grad") > 0.1);
}

namespace {

/// A region of an example model, as building the model registers it.
region_spec region_of_model(std::string const& model, cantle_models::sizes const& sizes, std::string const& name) {
    cantle_models::make_model(model, sizes, 8);
    return *find_region(name);
}
/// 24 tokens in 8 samples, expert weights of 5 hidden units. `one_sided`: all tokens go to the first experts, so most ranks get none.
tensors expert_inputs(std::int64_t experts, std::int64_t top, at::ScalarType type, bool one_sided) {
    at::manual_seed(10);
    auto const [weights, chosen] = at::softmax(at::randn({8, 3, experts}, at::kDouble), -1).topk(top, -1);
    auto const ids = one_sided ? at::arange(top).expand({8, 3, top}).contiguous() : chosen;
    return {random_tensor({8, 3, 6}, type), weights.to(type), ids, random_tensor({experts, 5, 6}, type),
            random_tensor({experts, 6, 5}, type), random_tensor({experts, 5, 6}, type)};
}

}  // namespace

// 8 experts on 4 ranks, or 2 x 2; the weights' gradients on dp x ep are (P, S0): case D1.
TEST_CASE("D1: experts: tokens travel by their own choice and come back with the numbers and gradients of the dense mixture") {
    for (std::int64_t const top : {1, 2, 3}) {
        CAPTURE(top);
        auto const s = region_of_model("deepseek-tiny", {{"experts", 8}, {"top", top}}, "experts");
        for (bool const one_sided : {false, true}) {
            CAPTURE(one_sided);
            check_region(s, expert_inputs(8, top, at::kDouble, one_sided), {"4 ep", "2x2 dp,ep", "2x2 ep,dp"});
        }
    }
    auto const s = region_of_model("deepseek-tiny", {{"experts", 8}, {"top", 2}}, "experts");
    check_region(s, expert_inputs(8, 2, at::kFloat, false), {"4 ep", "2x2 dp,ep", "4 dp"}, 2e-6);
    auto const a = alone(s, expert_inputs(8, 2, at::kDouble, false));
    auto const p = plan_of(a.graph, device_mesh::parse("2x2", "dp,ep"));
    for (vertex v = 0; v < a.graph.size(); ++v)
        if (a.graph[v].operation.name == region_backward_op_name)
            for (std::size_t o = 2; o < 5; ++o) CHECK(p.at(p.nodes[v].outputs[o]).text(p.mesh) == "P,S0");
}

// q [4,4,8,5], k and v [4,2,8,5]: 8 positions in 4 or 2 blocks, two query heads per key head.
TEST_CASE("ring attention: blocks of keys and values go round with the numbers and gradients of attention on one device") {
    auto const s = region_of_model("llama3-cp-tiny", {}, "ring_attention");
    auto const inputs = [](at::ScalarType type, double scale) {
        at::manual_seed(12);
        return tensors{random_tensor({4, 4, 8, 5}, type) * scale, random_tensor({4, 2, 8, 5}, type) * scale,
                       random_tensor({4, 2, 8, 5}, type)};
    };
    std::vector<std::string> const meshes = {"4 cp", "2x2 dp,cp", "2x2 cp,tp", "2x2 dp,tp"};
    check_region(s, inputs(at::kDouble, 1), meshes);
    check_region(s, inputs(at::kFloat, 1), meshes, 2e-6);
    check_region(s, inputs(at::kDouble, 30), {"4 cp"});  // scores in the hundreds, whose exponentials overflow without the running maximum
    check_region(s, inputs(at::kFloat, 30), {"4 cp"}, 1e-4);
}

TEST_CASE("small models with regions, planned for 4 ranks, give the loss and gradients of one rank") {
    struct model_case {
        std::string model;
        cantle_models::sizes sizes;
        std::vector<std::string> names;  // of 4, of 2x2
    };
    std::vector<model_case> const cases = {
        {"deepseek-tiny", {{"dim", 24}, {"heads", 2}, {"ffn", 32}, {"vocab", 48}, {"expert_ffn", 12}}, {"ep", "dp,ep"}},
        {"llama3-cp-tiny", {{"dim", 24}, {"head_dim", 8}, {"ffn", 32}, {"vocab", 48}}, {"cp", "dp,cp"}},
    };
    for (auto const& c : cases) {
        CAPTURE(c.model);
        model_request r;
        r.model = c.model;
        r.batch = 4;
        r.sequence = 8;
        r.precision = "fp32";
        r.overrides = c.sizes;
        auto g = canonicalize(capture_model(r));
        for (auto& n : g.nodes) {  // in float64
            for (auto& t : n.outputs)
                if (t.type == dtype::float32) t.type = dtype::float64;
            for (auto& a : n.operation.arguments)
                if (auto* const t = std::get_if<dtype>(&a.value); t && *t == dtype::float32) a.value = dtype::float64;
        }
        at::manual_seed(13);
        tensor_map inputs;
        for (auto const& n : g.nodes)
            if (is_source(n.role) && n.role != node_role::constant)
                inputs[n.name] = is_floating_point(n.outputs[0].type) ? at::randn(n.outputs[0].sizes, at::kDouble) * 0.3
                                                                      : at::randint(48, n.outputs[0].sizes, at::kLong);
        auto const want = replay(g, inputs);
        check_run(g, device_mesh::parse("4", c.names[0]), inputs, want, 1e-10);
        check_run(g, device_mesh::parse("2x2", c.names[1]), inputs, want, 1e-10);
    }
}

TEST_CASE("without a function for pieces a region runs where all is replicated, and is refused elsewhere before anything runs") {
    auto s = spec_of("reference_only", {"", "", ""}, "");
    s.reference = two_layers;
    check_region(s, two_layer_inputs(), {"4 tp", "2x2 a,b"});
    s.options.name = "reference_only_cut";
    s.options.inputs = {"*=S0", "", ""};
    s.options.outputs = {"*=S0"};
    auto const a = alone(s, two_layer_inputs());
    check_run(a.graph, device_mesh::parse("1"), a.inputs, replay(a.graph, a.inputs), 0);
    check_words(message_of(s, two_layer_inputs(), "4", "tp"),
                {"404: region 'reference_only_cut'", "no function for local tensors", "4 (tp)"});
}

TEST_CASE("a region that this process does not know, or knows otherwise, is refused before anything runs") {
    auto s = spec_of("known_once", {"*=S0", "", ""}, "*=S0");
    s.reference = two_layers;
    s.local = [](region_ranks&, tensors const& in) { return two_layers(in); };
    auto const a = alone(s, two_layer_inputs());
    auto const p = plan_of(a.graph, device_mesh::parse("4"));
    auto const refused = [&](auto change) {
        auto g = a.graph;
        for (auto& n : g.nodes) change(n.operation);
        auto of_it = p;
        of_it.made_from.graph = structural_hash(g);
        try {
            ranks_of(g, of_it);
        } catch (error const& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    CHECK(refused([](op&) {}) == "no error");
    check_words(refused([](op& o) { set_argument(o, "name", std::string("never_registered")); }),
                {"404: region 'never_registered'", "does not know", "register_region()"});
    auto other = s;
    other.options.inputs[1] = "*=S0";
    register_region(other);
    check_words(refused([](op&) {}), {"404: region 'known_once'", "in_placements", "not those of the graph"});
}

TEST_CASE("a function that throws, or gives other tensors than planned, ends all ranks with region and rank named") {
    auto s = spec_of("going_wrong", {"*=S0", "", ""}, "*=S0");
    s.reference = two_layers;
    auto const message = [&](auto wrong) {
        s.local = [wrong](region_ranks& ranks, tensors const& in) {
            auto const x = ranks.shift(in[0], "tp");
            auto out = two_layers({ranks.shift(x, "tp", -1), in[1], in[2]});
            if (ranks.rank() == 2) wrong(ranks, out);
            return tensors{ranks.all_reduce(out.at(0), "tp") * 0 + out.at(0)};
        };
        return message_of(s, two_layer_inputs(), "4", "tp");
    };
    check_words(message([](region_ranks&, tensors&) { throw std::runtime_error("out of luck"); }),
                {"804: rank 2", "cantle::region", "region 'going_wrong', rank 2", "out of luck"});
    check_words(message([](region_ranks& r, tensors&) { r.size("pp"); }), {"region 'going_wrong', rank 2", "no axis of that name"});
    check_words(message([](region_ranks& r, tensors& out) { r.reduce_scatter(out[0].slice(0, 0, 1), 0, "tp"); }),
                {"region 'going_wrong', rank 2", "unevenly"});
    auto const result = [&](auto change) {
        s.local = [change](region_ranks& ranks, tensors const& in) {
            auto out = two_layers(in);
            if (ranks.rank() == 3) change(out);
            return out;
        };
        return message_of(s, two_layer_inputs(), "4", "tp");
    };
    check_words(result([](tensors& out) { out[0] = out[0].slice(0, 0, 1); }),
                {"404: region 'going_wrong', rank 3", "output 0 is Double [1, 6]", "float64 [2, 6]"});
    check_words(result([](tensors& out) { out[0] = out[0].to(at::kFloat); }), {"rank 3", "output 0 is Float [2, 6]"});
    check_words(result([](tensors& out) { out.clear(); }), {"rank 3", "0 tensors come out, planned are 1"});
    s.local = [](region_ranks&, tensors const& in) { return two_layers(in); };
    s.local_backward = [](region_ranks& ranks, tensors const&, tensors const& in) {
        return ranks.rank() == 1 ? tensors{in[0]} : tensors{in[0], in[1], in[2]};
    };
    check_words(message_of(s, two_layer_inputs(), "4", "tp"),
                {"cantle::region_backward", "404: region 'going_wrong', rank 1", "1 tensors for 3 inputs"});
    s.local_backward = [](region_ranks& ranks, tensors const&, tensors const& in) {
        return tensors{in[0], ranks.rank() == 1 ? at::zeros({12, 5}, at::kDouble) : in[1], in[2]};
    };
    check_words(message_of(s, two_layer_inputs(), "4", "tp"), {"rank 1", "gradient 1 is Double [12, 5]", "float64 [12, 6]"});
    s.local_backward = nullptr;
    // One rank fails within the backward of a collective: its own error comes out, not that of those that wait for it.
    s.local = [](region_ranks& ranks, tensors const& in) {
        auto const x = ranks.shift(in[0], "tp");
        if (at::GradMode::is_enabled() && ranks.rank() == 2 && x.requires_grad())
            x.register_hook([](at::Tensor const&) -> at::Tensor { throw std::runtime_error("no gradient today"); });
        return two_layers({ranks.shift(x, "tp", -1), in[1], in[2]});
    };
    check_words(message_of(s, two_layer_inputs(), "4", "tp"),
                {"cantle::region_backward", "region 'going_wrong', rank 2", "no gradient today"});
}

TEST_CASE("gradients that autograd cannot give as declared are refused, rather than being wrong") {
    auto s = spec_of("declared_otherwise", {"*=S0", "", ""}, "*=S0");
    s.reference = two_layers;
    s.local = [](region_ranks&, tensors const& in) { return two_layers(in); };
    s.options.input_gradients = {"", "*=R", ""};  // the weight's gradient is a part (D1); faulty planners take it for whole
    check_words(message_of(s, two_layer_inputs(), "4", "tp"),
                {"404: region 'declared_otherwise'", "input 1 is R on axis 'tp' and its gradient R", "local_backward"});
    // Every rank computes a quarter, from replicated tensors to a replicated output: the gradient is a part, and must be declared one.
    s = spec_of("quarter_each", {"", "", ""}, "", "tp:all_gather:out0");
    s.reference = two_layers;
    s.local = [](region_ranks& ranks, tensors const& in) {
        auto const n = in[0].size(0) / ranks.size("tp");
        return tensors{ranks.all_gather(two_layers({in[0].narrow(0, n * ranks.coordinate("tp"), n), in[1], in[2]})[0], 0, "tp")};
    };
    check_words(message_of(s, two_layer_inputs(), "4", "tp"),
                {"region 'quarter_each'", "communicates on axis 'tp'", "input_gradients 'tp=P'"});
    s.options.input_gradients = {"tp=P", "tp=P", "tp=P"};
    check_region(s, two_layer_inputs(), {"4 tp", "2x2 dp,tp"});
    s.local = [](region_ranks& ranks, tensors const& in) {
        return tensors{two_layers(in)[0] - ranks.all_reduce(in[0], "tp", reduction::max) + in[0]};
    };
    check_words(message_of(s, two_layer_inputs(), "4", "tp"), {"region 'quarter_each'", "a max, which has no gradient", "local_backward"});
}
