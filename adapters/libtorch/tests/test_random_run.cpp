// SPDX-License-Identifier: BSL-1.0
// Models with dropout, run: any plan on any mesh gives the loss and gradients that the plan of one rank gives with the same seed.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/tests/run_plan.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/op_traits.hpp>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using namespace cantle::libtorch::tests;

/// Every sink's tensor after a run under a plan for that mesh: at the prices of an H100, or at prices drawn by chance (not 0).
tensor_map run(training_graph const& g, tensor_map const& inputs, char const* sizes, std::uint64_t seed, std::uint64_t prices = 0) {
    auto const mesh = device_mesh::parse(sizes);
    auto const p = prices == 0 ? plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")))
                               : plan(g, mesh, standard_rules(), random_cost_model{prices});
    std::vector<rank_executor> ranks;
    for (auto& program : ready_programs(g, p, standard_rules())) ranks.emplace_back(std::move(program), names_of(g));
    auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs), seed);
    tensor_map whole;
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        std::vector<at::Tensor> pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        whole[g[v].name] = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
    }
    return whole;
}
double difference_of(tensor_map const& got, tensor_map const& want) {
    REQUIRE(got.size() == want.size());
    double most = 0;
    for (auto const& [name, w] : want)
        most = std::max(most, ((got.at(name) - w).abs().max() / std::max(1.0, w.abs().max().item<double>())).item<double>());
    return most;
}

struct model_case {
    std::string model;
    cantle_models::sizes sizes;
    std::int64_t largest_index;
};
std::vector<model_case> const cases = {
    {"gpt2", {{"dim", 48}, {"layers", 1}, {"heads", 6}, {"vocab", 101}, {"positions", 24}, {"dropout", 10}}, 24},
    {"bert-base",
     {{"dim", 48}, {"layers", 1}, {"heads", 12}, {"ffn", 96}, {"vocab", 120}, {"positions", 24}, {"dropout", 10}},
     2},
};
training_graph graph_of(model_case const& c) {
    model_request r;
    r.model = c.model;
    r.batch = 12;
    r.sequence = 24;
    r.precision = "fp32";
    r.overrides = c.sizes;
    return in_float64(canonicalize(capture_model(r)));
}

}  // namespace

TEST_CASE("GPT-2 and BERT with dropout give one rank's loss and gradients under optimal and random plans") {
    for (auto const& c : cases) {
        CAPTURE(c.model);
        auto const g = graph_of(c);
        std::size_t draws = 0;
        for (auto const& n : g.nodes) draws += is_random(n.operation);
        CHECK(draws == 4);  // embeddings, attention probabilities, attention, feed-forward
        auto const inputs = random_inputs(g, c.largest_index);
        auto const want = run(g, inputs, "1", 7);
        CHECK(difference_of(run(g, inputs, "1", 8), want) > 1e-3);  // another seed is another loss
        for (auto const* sizes : {"2", "3", "2x2", "2x3", "2x2x2"}) {
            CAPTURE(sizes);
            CHECK(difference_of(run(g, inputs, sizes, 7), want) < 1e-10);
            for (std::uint64_t prices : {1, 2}) {
                CAPTURE(prices);
                CHECK(difference_of(run(g, inputs, sizes, 7, prices), want) < 1e-10);
            }
        }
    }
}

// x --dropout--> a --dropout--> b, as activation checkpointing does it again:  x --dropout--> a', a' --dropout--> b'   (backward)
TEST_CASE("two dropouts of one shape differ, and what the backward phase draws again is what the forward phase drew") {
    shape const sizes{12, 6};
    auto const meta = contiguous_meta(sizes, dtype::float64), flags = contiguous_meta(sizes, dtype::boolean);
    training_graph g;
    auto const add = [&](graph_node n) {
        n.name = "v" + std::to_string(g.size());
        g.nodes.push_back(std::move(n));
        return static_cast<vertex>(g.size() - 1);
    };
    auto const dropout = [&](value_ref x, phase p) {
        graph_node n;
        n.operation = {"aten::native_dropout", {{"input", operand_slot{0}}, {"p", 0.5}, {"train", true}}};
        n.operands = {x};
        n.outputs = {meta, flags};
        n.in_phase = p;
        return add(std::move(n));
    };
    graph_node x;
    x.role = node_role::input;
    x.operation.name = "cantle::input";
    x.outputs = {meta};
    add(x);
    auto const a = dropout({0, 0}, phase::forward), b = dropout({a, 0}, phase::forward), other = dropout({0, 0}, phase::forward);
    auto const again = dropout({0, 0}, phase::backward), b_again = dropout({again, 0}, phase::backward);
    for (auto v : {a, b, other, again, b_again}) {
        graph_node out;
        out.role = node_role::output;
        out.operation = {"cantle::output", {{"value", operand_slot{0}}}};
        out.operands = {{v, 1}};
        out.outputs = {flags};
        out.in_phase = g[v].in_phase;
        add(std::move(out));
    }
    tensor_map const inputs{{"v0", at::ones(sizes, at::kDouble)}};
    auto const want = run(g, inputs, "1", 3);
    CHECK(at::equal(want.at("v9"), want.at("v6")));
    CHECK(at::equal(want.at("v10"), want.at("v7")));
    CHECK_FALSE(at::equal(want.at("v6"), want.at("v7")));
    CHECK_FALSE(at::equal(want.at("v6"), want.at("v8")));
    for (std::uint64_t prices : {0, 1, 2, 3})
        for (auto const& [name, t] : run(g, inputs, "2x3", 3, prices)) CHECK(at::equal(t, want.at(name)));
}
