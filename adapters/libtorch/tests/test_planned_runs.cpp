// SPDX-License-Identifier: BSL-1.0
// Planned models, run: one rank has the bits of eager autograd; scheduled programs give the bits of lowered ones; ranks that talk through
// Gloo give the numbers of one rank, and a rank that fails there ends the others.
//
//   graph -> plan on mesh 1 -> program -> executor --same bits?--> replay (which has eager's bits: test_replay.cpp)
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/gloo_ranks.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/program/schedule.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstring>
#include <thread>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensor_map = std::map<std::string, at::Tensor>;

bool same_bits(at::Tensor const& a, at::Tensor const& b) {
    auto const x = a.contiguous(), y = b.contiguous();
    return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
           std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

training_graph graph_of(std::string model, cantle_models::sizes sizes, std::string precision = "fp32") {
    model_request r;
    r.model = std::move(model);
    r.batch = 12;
    r.sequence = 12;
    r.precision = std::move(precision);
    r.overrides = std::move(sizes);
    return canonicalize(capture_model(r));
}
training_graph small_mlp() { return graph_of("mlp", {{"dim", 24}, {"hidden", 48}, {"layers", 2}, {"classes", 12}}); }
training_graph small_llama(std::string precision = "fp32") {
    return graph_of("llama3-8b", {{"dim", 48}, {"layers", 1}, {"heads", 12}, {"kv_heads", 6}, {"ffn", 96}, {"vocab", 144}}, precision);
}

tensor_map random_inputs(training_graph const& g) {
    at::manual_seed(5);
    tensor_map inputs;
    for (auto const& n : g.nodes) {
        if (!is_source(n.role) || n.role == node_role::constant) continue;
        auto const& meta = n.outputs[0];
        auto const type = meta.type == dtype::bfloat16 ? at::kBFloat16 : at::kFloat;
        if (is_floating_point(meta.type)) inputs[n.name] = (at::randn(meta.sizes) * (meta.rank() > 1 ? 0.2 : 1.0)).to(type);
        else if (meta.type == dtype::boolean) inputs[n.name] = at::rand(meta.sizes) < 0.7;
        else inputs[n.name] = at::randint(2, meta.sizes, at::kLong);
    }
    return inputs;
}

struct planned {
    training_graph graph;
    sharding_plan plan;
    std::vector<rank_program> programs;
    std::vector<std::string> names;
    std::vector<rank_executor> executors() const {
        std::vector<rank_executor> ranks;
        for (auto const& p : programs) ranks.emplace_back(p, names);
        return ranks;
    }
};
planned plan_of(training_graph g, char const* sizes) {
    auto const mesh = device_mesh::parse(sizes);
    planned p{g, plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100"))), {}, {}};
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) p.programs.push_back(lower(g, p.plan, standard_rules(), r));
    check_programs(p.programs);
    for (auto const& n : g.nodes) p.names.push_back(n.name);
    return p;
}
void check_same_numbers(planned const& p, tensor_map const& want, std::vector<std::vector<at::Tensor>> const& by_rank) {
    for (std::size_t i = 0; i < p.programs[0].outputs.size(); ++i) {
        auto const v = p.programs[0].outputs[i].node;
        std::vector<at::Tensor> pieces;
        for (auto const& outputs : by_rank) pieces.push_back(outputs.at(i));
        auto const whole = put_together(pieces, p.plan.at(p.plan.nodes[v].operands[0]), p.plan.mesh, p.graph[v].outputs[0].sizes);
        auto const& wanted = want.at(p.graph[v].name);
        auto const off = (whole - wanted).abs().max().item<double>() / std::max(1.0, wanted.abs().max().item<double>());
        CHECK_MESSAGE(off < 1e-5, p.graph[v].name, " is off by ", off);
    }
}

struct gloo_run {
    std::vector<std::vector<at::Tensor>> outputs;
    std::vector<std::string> thrown;
};
gloo_run run_on_gloo(std::vector<rank_executor> const& ranks, std::vector<std::vector<at::Tensor>> const& inputs) {
    auto const store = c10::make_intrusive<c10d::HashStore>();
    gloo_run result{std::vector<std::vector<at::Tensor>>(ranks.size()), std::vector<std::string>(ranks.size())};
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        threads.emplace_back([&, r] {
            try {
                auto const& p = ranks[r].program();
                auto const others = gloo_communicator(store, p.mesh, p.rank, groups_of(p));
                result.outputs[r] = ranks[r].run(inputs[r], *others);
            } catch (std::exception const& e) {
                result.thrown[r] = e.what();
            }
        });
    for (auto& t : threads) t.join();
    return result;
}

}  // namespace

TEST_CASE("on a mesh of one rank loss and gradients have the bits of a replay, and so of eager autograd") {
    cantle_models::sizes const gpt2 = {{"dim", 48}, {"layers", 2}, {"heads", 3}, {"vocab", 101}, {"positions", 24}};
    cantle_models::sizes const bert = {{"dim", 48}, {"layers", 2}, {"heads", 3}, {"ffn", 80}, {"vocab", 101}, {"positions", 24}};
    cantle_models::sizes const mlp = {{"dim", 24}, {"hidden", 48}, {"layers", 2}, {"classes", 12}};
    std::vector<training_graph> graphs = {small_llama(), small_llama("bf16")};
    for (auto const* precision : {"fp32", "bf16"}) {  // in bf16 a bias that is added apart rounds once more
        graphs.push_back(graph_of("mlp", mlp, precision));
        graphs.push_back(graph_of("gpt2", gpt2, precision));
        graphs.push_back(graph_of("bert-base", bert, precision));
    }
    at::set_num_threads(1);  // as thread ranks have it: sums of a norm's gradients are split among threads
    for (auto const& g : graphs) {
        CAPTURE(g.origin.model);
        auto const inputs = random_inputs(g);
        auto const want = replay(g, inputs);
        auto const p = plan_of(g, "1");
        auto const ranks = p.executors();
        auto const got = run_on_threads(ranks, cut_inputs(g, p.plan, inputs));
        CHECK(ranks[0].program().outputs.size() == want.size());
        for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
            auto const& name = g[ranks[0].program().outputs[i].node].name;
            CHECK_MESSAGE(same_bits(got.outputs[0][i], want.at(name)), name);
            CHECK(want.at(name).abs().sum().item<double>() > 0);  // equal zeros would prove nothing
        }
    }
}

TEST_CASE("scheduled programs give the bits of lowered ones, and start collectives earlier") {
    for (auto const* sizes : {"4", "2x2"}) {
        auto p = plan_of(small_llama(), sizes);
        auto const inputs = random_inputs(p.graph);
        auto const lowered = run_on_threads(p.executors(), cut_inputs(p.graph, p.plan, inputs));
        auto const before = p.programs[0];
        schedule_starts(p.programs);
        check_programs(p.programs);
        std::size_t moved = 0;
        for (std::size_t s = 0; s < before.steps.size(); ++s) moved += before.steps[s].outputs != p.programs[0].steps[s].outputs;
        CHECK(moved > 0);
        auto const scheduled = run_on_threads(p.executors(), cut_inputs(p.graph, p.plan, inputs));
        for (std::size_t r = 0; r < lowered.outputs.size(); ++r)
            for (std::size_t i = 0; i < lowered.outputs[r].size(); ++i) CHECK(same_bits(lowered.outputs[r][i], scheduled.outputs[r][i]));
        CHECK(scheduled.collectives[0].size() == lowered.collectives[0].size());
    }
}

TEST_CASE("planned models on ranks that talk through Gloo give the numbers of one rank") {
    for (auto const& g : {small_mlp(), small_llama()})
        for (auto const* sizes : {"3", "2x2"}) {
            auto p = plan_of(g, sizes);
            schedule_starts(p.programs);
            auto const inputs = random_inputs(g);
            auto const got = run_on_gloo(p.executors(), cut_inputs(g, p.plan, inputs));
            for (auto const& t : got.thrown) REQUIRE(t == "");
            check_same_numbers(p, replay(g, inputs), got.outputs);
        }
}

TEST_CASE("a rank whose op fails ends the ranks that wait for it on Gloo, and all errors name its op") {
    auto p = plan_of(small_mlp(), "4");
    auto& steps = p.programs[2].steps;
    auto const linear = std::find_if(steps.begin(), steps.end(), [](auto const& s) { return s.call.name == "aten::linear"; });
    REQUIRE(linear != steps.end());
    set_argument(linear->call, "bias", operand_slot{1});  // its weight as a bias
    auto const start = std::chrono::steady_clock::now();
    auto const got = run_on_gloo(p.executors(), cut_inputs(p.graph, p.plan, random_inputs(p.graph)));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));  // it does not hang; no measure of speed
    for (auto const& t : got.thrown) {
        CHECK_MESSAGE(t.find("rank 2, '") != std::string::npos, t);
        CHECK_MESSAGE(t.find("(aten::linear)") != std::string::npos, t);
    }
}
