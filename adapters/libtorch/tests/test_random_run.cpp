// SPDX-License-Identifier: BSL-1.0
// Models with dropout, run: any plan on any mesh gives the loss and gradients that the plan of one rank gives with the same seed.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensor_map = std::map<std::string, at::Tensor>;

/// Prices drawn from a hash of the question: its optimum is any feasible plan. Seed 0: the prices of an H100.
struct price_list {
    standard_cost_model real;
    std::uint64_t seed = 0;
    double price(stable_hasher& h, double most) const { return most * static_cast<double>(h.add(seed).finish().low % 1000) / 1000; }
    double compute(op_query const& q) const {
        if (seed == 0) return real.compute(q);
        stable_hasher h;
        h.add(q.name());
        for (auto const& t : q.operands) h.add(t.sizes);
        for (auto const& t : q.outputs) h.add(t.sizes);
        return price(h, 50.0);
    }
    double collective(collective_call const& c) const {
        if (seed == 0) return real.collective(c);
        stable_hasher h;
        h.add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after);
        return price(h, 5.0);
    }
    void feed(stable_hasher& h) const { h.add("prices").add(seed); }
};

training_graph in_float64(training_graph g) {
    for (auto& n : g.nodes) {
        for (auto& t : n.outputs)
            if (t.type == dtype::float32) t.type = dtype::float64;
        for (auto& a : n.operation.arguments)
            if (auto* const t = std::get_if<dtype>(&a.value); t && *t == dtype::float32) a.value = dtype::float64;
    }
    return g;
}
tensor_map random_inputs(training_graph const& g, std::int64_t largest_index) {
    at::manual_seed(11);
    tensor_map inputs;
    for (auto const& n : g.nodes) {
        if (!is_source(n.role) || n.role == node_role::constant) continue;
        auto const& meta = n.outputs[0];
        if (is_floating_point(meta.type)) inputs[n.name] = at::randn(meta.sizes, at::kDouble) * (meta.rank() > 1 ? 0.2 : 1.0);
        else inputs[n.name] = at::randint(largest_index, meta.sizes, at::kLong);
    }
    return inputs;
}

/// Every sink's tensor after a run under a plan for that mesh.
tensor_map run(training_graph const& g, tensor_map const& inputs, char const* sizes, std::uint64_t seed, std::uint64_t prices = 0) {
    auto const mesh = device_mesh::parse(sizes);
    auto const p = plan(g, mesh, standard_registry(), price_list{standard_cost_model(mesh, find_cluster("h100")), prices});
    std::vector<rank_program> programs;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) programs.push_back(lower(g, p, standard_registry(), r));
    check_programs(programs);
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    std::vector<rank_executor> ranks;
    for (auto& program : programs) ranks.emplace_back(std::move(program), names);
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
