// SPDX-License-Identifier: BSL-1.0
// A captured graph, replayed on one rank, has the bits of eager autograd: as captured, and after canonical form, JSON and back.
//
//   module on CPU --eager autograd--> loss, gradients --+
//   module on meta --capture--> graph --replay--> same bits?
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/module_request.hpp>
#include <adapters/libtorch/replay.hpp>
#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/mixed_precision.hpp>
#include <cantle/graph/validate.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensor_map = std::map<std::string, at::Tensor>;

bool same_bits(at::Tensor const& a, at::Tensor const& b) {
    if (!a.defined() || !b.defined() || a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
    auto const x = a.contiguous(), y = b.contiguous();
    return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

struct eager_run {
    tensor_map inputs;   // every source by node name
    tensor_map results;  // loss or logits, and "<parameter>.grad"
};

constexpr std::int64_t seed = 20240517;

/// One step of eager autograd on CPU with random parameters.
eager_run run_eager(model_request const& r) {
    at::manual_seed(seed);
    auto model = cantle_models::make_model(r.model, r.overrides, r.sequence);
    if (r.precision == "bf16") cantle_models::cast(*model.module, at::kBFloat16);
    auto const example = model.example(r.batch, r.sequence);
    auto request = request_of(*model.module);
    eager_run run;
    std::vector<at::Tensor> parameters, inputs;
    std::vector<std::string> names;
    for (auto const& p : request.parameters) {
        bool known = false;
        for (auto const& seen : parameters) known = known || seen.is_same(p.tensor);
        if (known) continue;
        parameters.push_back(p.tensor);
        names.push_back(p.name);
        run.inputs[p.name] = p.tensor;
    }
    for (auto const& b : request.buffers) run.inputs[b.name] = b.tensor;
    for (auto const& [name, t] : example.inputs) {
        inputs.push_back(t);
        run.inputs[name] = t;
    }
    run.inputs["target"] = example.target;
    at::manual_seed(seed + 1);
    auto const logits = model.forward(inputs);
    std::vector<at::Tensor> tangents;
    at::Tensor out = logits;
    if (r.recipe == "table3") {
        at::manual_seed(seed + 2);
        tangents.push_back(at::randn_like(logits));
        run.inputs["logits.tangent"] = tangents[0];
        run.results["logits"] = logits;
    } else {
        out = model.loss(logits, example.target);
        run.results["loss"] = out;
    }
    auto const gradients = torch::autograd::grad({out}, parameters, tangents);
    for (std::size_t i = 0; i < names.size(); ++i) run.results[names[i] + ".grad"] = gradients[i];
    return run;
}

void check_same(training_graph const& graph, eager_run const& eager, replay_options const& options) {
    at::manual_seed(seed + 1);  // random ops of the model draw what eager drew
    auto const replayed = replay(graph, eager.inputs, options);
    CHECK(replayed.size() == eager.results.size());
    for (auto const& [name, tensor] : eager.results) {
        INFO(name);
        auto const it = replayed.find(name);
        REQUIRE(it != replayed.end());
        CHECK(same_bits(it->second, tensor));
        CHECK(tensor.detach().abs().sum().item<double>() > 0);  // equal zeros would prove nothing
    }
}

/// As captured with strides checked, and after canonical form and JSON.
void check_bitwise(model_request const& r) {
    CAPTURE(r.model);
    CAPTURE(r.precision);
    CAPTURE(r.recipe);
    auto const eager = run_eager(r);
    auto const graph = capture_model(r);
    validate(graph);
    check_same(graph, eager, {.check_strides = true});

    auto const path = std::filesystem::temp_directory_path() / ("cantle_test_replay_" + std::to_string(::getpid()) + ".json");
    write_graph_json(canonicalize(graph), path);
    auto const back = read_graph_json(path);
    std::filesystem::remove(path);
    validate(back);
    check_same(back, eager, {});
}

cantle_models::sizes const small_llama = {{"dim", 64}, {"layers", 2}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 96}, {"vocab", 160}};
cantle_models::sizes const small_gpt2 = {{"dim", 48}, {"layers", 2}, {"heads", 3}, {"vocab", 101}, {"positions", 32}};
cantle_models::sizes const small_bert = {{"dim", 48}, {"layers", 2}, {"heads", 3}, {"ffn", 80}, {"vocab", 101}, {"positions", 32}};
cantle_models::sizes const small_mlp = {{"dim", 24}, {"hidden", 40}, {"layers", 3}, {"classes", 10}};

model_request request(std::string model, cantle_models::sizes sizes, std::string precision, std::string recipe = "train") {
    model_request r;
    r.model = std::move(model);
    r.batch = 3;
    r.sequence = 16;
    r.precision = std::move(precision);
    r.recipe = std::move(recipe);
    r.overrides = std::move(sizes);
    return r;
}

}  // namespace

TEST_CASE("LLaMA replays with the bits of eager autograd in fp32") { check_bitwise(request("llama3-tiny", small_llama, "fp32")); }
TEST_CASE("LLaMA replays with the bits of eager autograd in bf16") { check_bitwise(request("llama3-tiny", small_llama, "bf16")); }
TEST_CASE("LLaMA that ends at its logits replays with a tangent") {
    check_bitwise(request("llama3-tiny", small_llama, "fp32", "table3"));
    check_bitwise(request("llama3-tiny", small_llama, "bf16", "table3"));
}
TEST_CASE("GPT-2 replays with the bits of eager autograd in fp32 and bf16") {
    check_bitwise(request("gpt2", small_gpt2, "fp32"));
    check_bitwise(request("gpt2", small_gpt2, "bf16"));
}
TEST_CASE("GPT-2 with dropout replays with the bits of eager autograd when the seed is the same") {
    auto sizes = small_gpt2;
    sizes.push_back({"dropout", 20});
    check_bitwise(request("gpt2", sizes, "fp32"));
}
TEST_CASE("BERT replays with the bits of eager autograd in fp32 and bf16") {
    check_bitwise(request("bert-base", small_bert, "fp32"));
    check_bitwise(request("bert-base", small_bert, "bf16"));
}
TEST_CASE("T5 replays with the bits of eager autograd in fp32 and bf16") {
    cantle_models::sizes const small_t5 = {{"dim", 48}, {"layers", 2}, {"heads", 3}, {"head_dim", 8}, {"ffn", 80}, {"vocab", 101}};
    check_bitwise(request("t5-small", small_t5, "fp32"));
    check_bitwise(request("t5-small", small_t5, "bf16"));
}
TEST_CASE("an MLP replays with the bits of eager autograd in fp32 and bf16") {
    check_bitwise(request("mlp", small_mlp, "fp32"));
    check_bitwise(request("mlp", small_mlp, "bf16"));
}

// fp32 weights -> cast -> bf16 compute -> cast -> fp32 gradients: the same as casting outside, since a cast of a cast back is exact.
TEST_CASE("a graph in mixed precision gives the bits of the bf16 run, with fp32 parameters and gradients") {
    auto const r = request("llama3-tiny", small_llama, "bf16");
    auto eager = run_eager(r);
    auto const graph = canonicalize(mixed_precision(capture_model(r)));
    validate(graph);
    for (auto const& node : graph.nodes)
        if (node.role == node_role::parameter) {
            CHECK(node.outputs[0].type == dtype::float32);
            eager.inputs[node.name] = eager.inputs.at(node.name).detach().to(at::kFloat);
        }
    for (auto& [name, tensor] : eager.results)
        if (name != "loss") tensor = tensor.to(at::kFloat);
    check_same(graph, eager, {});
}

TEST_CASE("a replay without one of its inputs says which") {
    auto const graph = capture_model(request("mlp", small_mlp, "fp32"));
    try {
        replay(graph, {});
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::unknown_tensor);
        CHECK(std::string(e.what()).find("layers.0.weight") != std::string::npos);
    }
}

TEST_CASE("an op is called by name with tensors, literals and defaults") {
    auto const x = at::arange(6, at::kDouble).view({2, 3});
    op const sum{"aten::sum.dim_IntList",
                 {{"self", operand_slot{0}}, {"dim", std::vector<std::int64_t>{0}}, {"keepdim", true}, {"dtype", std::monostate{}}}};
    CHECK(same_bits(call_op(sum, std::vector{x})[0], x.sum({0}, true)));
    op const cat{"aten::cat", {{"tensors", operand_slots{{1, 0}}}, {"dim", std::int64_t{1}}}};
    CHECK(same_bits(call_op(cat, std::vector{x, x + 1.0})[0], at::cat({x + 1.0, x}, 1)));
    op const zeros{"aten::zeros",
                   {{"size", std::vector<std::int64_t>{2}}, {"dtype", dtype::bfloat16}, {"device", symbol{"device", "device"}}}};
    CHECK(same_bits(call_op(zeros, {})[0], at::zeros({2}, at::kBFloat16)));
    op const softmax{"aten::_softmax", {{"self", operand_slot{0}}, {"dim", std::int64_t{-1}}, {"half_to_float", false}}};
    CHECK(same_bits(call_op(softmax, std::vector{x})[0], at::_softmax(x, -1, false)));
    CHECK_THROWS_AS(call_op({"aten::no_such_op", {}}, {}), error);
    CHECK_THROWS_AS(call_op({"aten::cat", {}}, {}), error);
}
