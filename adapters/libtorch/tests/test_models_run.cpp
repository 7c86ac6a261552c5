// SPDX-License-Identifier: BSL-1.0
// LLaMA, GPT-2, BERT and T5 under their planned layouts on 2 to 8 thread ranks, against eager autograd of the torch::nn module itself.
//
//   module on CPU --eager autograd-----------------------------> loss, gradients --+
//   module on meta --capture--> graph --plan--> programs --threads--> the same? ----+
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/module_request.hpp>
#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensor_map = std::map<std::string, at::Tensor>;

struct eager_run {
    tensor_map sources, results;  // by node name
};

/// One step of eager autograd on CPU with the parameters that the module starts with.
eager_run run_eager(model_request const& r) {
    at::manual_seed(20260514);
    auto model = cantle_models::make_model(r.model, r.overrides, r.sequence);
    auto const example = model.example(r.batch, r.sequence);
    auto const request = request_of(*model.module);
    eager_run run;
    std::vector<at::Tensor> parameters, inputs;
    std::vector<std::string> names;
    for (auto const& p : request.parameters) {
        bool known = false;
        for (auto const& seen : parameters) known = known || seen.is_same(p.tensor);
        if (known) continue;
        parameters.push_back(p.tensor);
        names.push_back(p.name);
        run.sources[p.name] = p.tensor;
    }
    for (auto const& b : request.buffers) run.sources[b.name] = b.tensor;
    for (auto const& [name, t] : example.inputs) {
        inputs.push_back(t);
        run.sources[name] = t;
    }
    run.sources["target"] = example.target;
    auto const loss = model.loss(model.forward(inputs), example.target);
    run.results["loss"] = loss.detach();
    auto const gradients = torch::autograd::grad({loss}, parameters);
    for (std::size_t i = 0; i < names.size(); ++i) run.results[names[i] + ".grad"] = gradients[i];
    return run;
}

void check_model(std::string const& name, cantle_models::sizes sizes) {
    model_request r;
    r.model = name;
    r.batch = 24;
    r.sequence = 16;
    r.precision = "fp32";
    r.overrides = std::move(sizes);
    auto const g = canonicalize(capture_model(r));
    auto const eager = run_eager(r);
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    for (auto const* shape : {"2", "3", "2x2", "8", "2x4", "2x2x2"}) {
        CAPTURE(name);
        CAPTURE(shape);
        auto const mesh = device_mesh::parse(shape);
        auto const p = plan(g, mesh, standard_registry(), standard_cost_model(mesh, find_cluster("h100")));
        auto programs = ready_programs(g, p, standard_registry());
        std::vector<rank_executor> ranks;
        for (auto& program : programs) ranks.emplace_back(std::move(program), names);
        auto const got = run_on_threads(ranks, cut_inputs(g, p, eager.sources));
        auto const& sinks = ranks[0].program().outputs;
        CHECK(sinks.size() == eager.results.size());
        for (std::size_t i = 0; i < sinks.size(); ++i) {
            auto const v = sinks[i].node;
            std::vector<at::Tensor> pieces;
            for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
            auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
            auto const& wanted = eager.results.at(g[v].name);
            auto const largest = wanted.abs().max().item<double>();
            // float32, summed in another order: far above rounding, far below mistakes. Gradients of key biases are 0 but for rounding.
            CHECK_MESSAGE((whole - wanted).abs().max().item<double>() < 1e-4 * std::max(largest, 1e-3), g[v].name);
        }
    }
}

}  // namespace

TEST_CASE("LLaMA under its plans gives the loss and gradients of eager autograd") {
    check_model("llama3-8b", {{"dim", 96}, {"layers", 2}, {"heads", 24}, {"kv_heads", 12}, {"ffn", 192}, {"vocab", 144}});
}
TEST_CASE("GPT-2 under its plans gives the loss and gradients of eager autograd") {
    check_model("gpt2", {{"dim", 96}, {"layers", 2}, {"heads", 6}, {"vocab", 101}, {"positions", 16}});
}
TEST_CASE("BERT under its plans gives the loss and gradients of eager autograd") {
    check_model("bert-base", {{"dim", 96}, {"layers", 2}, {"heads", 12}, {"ffn", 192}, {"vocab", 120}, {"positions", 16}});
}
TEST_CASE("T5 under its plans gives the loss and gradients of eager autograd") {
    check_model("t5-small", {{"dim", 48}, {"layers", 2}, {"heads", 12}, {"head_dim", 8}, {"ffn", 96}, {"vocab", 120}});
}
