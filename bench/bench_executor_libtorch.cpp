// SPDX-License-Identifier: BSL-1.0
// What the executor costs on one rank: a training step of a real model against eager autograd of the same module (medians of interleaved
// runs and their ratio), the overhead per op against direct calls of tiny kernels, and the peak memory of both ways, each in a process of
// its own.
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/module_request.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>
#include <cantle/base/peak_memory.hpp>
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/program/schedule.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace cantle;
using namespace cantle::libtorch;

double seconds(auto&& run) {
    auto const start = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

/// No collective happens on one rank.
struct nobody final : communicator {
    std::unique_ptr<pending> start(transfer const&, at::Tensor) override { std::abort(); }
    void fail(std::string const&) noexcept override {}
};

model_request request(std::string model, std::int64_t sequence, cantle_models::sizes sizes) {
    return {std::move(model), 2, sequence, "train", "fp32", std::move(sizes)};
}
std::map<std::string, model_request> const models = {
    {"llama", request("llama3-8b", 256, {{"dim", 512}, {"layers", 4}, {"heads", 8}, {"kv_heads", 4}, {"ffn", 1408}, {"vocab", 8192}})},
    {"gpt2", request("gpt2", 256, {{"dim", 512}, {"layers", 4}, {"heads", 8}, {"vocab", 8192}, {"positions", 256}})},
    {"small-llama", request("llama3-8b", 32, {{"dim", 64}, {"layers", 4}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 176}, {"vocab", 256}})},
};

/// A module with its batch, run eagerly.
struct eager_side {
    cantle_models::model model;
    cantle_models::batch batch;
    std::vector<at::Tensor> parameters, inputs;
    std::map<std::string, at::Tensor> by_name;

    explicit eager_side(model_request const& r) {
        at::manual_seed(1);
        model = cantle_models::make_model(r.model, r.overrides, r.sequence);
        batch = model.example(r.batch, r.sequence);
        for (auto const& p : request_of(*model.module).parameters)
            if (by_name.emplace(p.name, p.tensor).second &&
                std::none_of(parameters.begin(), parameters.end(), [&](auto const& seen) { return seen.is_same(p.tensor); }))
                parameters.push_back(p.tensor);
        for (auto const& b : request_of(*model.module).buffers) by_name[b.name] = b.tensor;
        for (auto const& [name, t] : batch.inputs) {
            inputs.push_back(t);
            by_name[name] = t;
        }
        by_name["target"] = batch.target;
    }
    std::vector<at::Tensor> step() const { return torch::autograd::grad({model.loss(model.forward(inputs), batch.target)}, parameters); }
};

/// The same step as a program of one rank.
struct planned_side {
    training_graph graph;
    std::unique_ptr<rank_executor> rank;
    std::vector<at::Tensor> inputs;

    planned_side(model_request const& r, std::map<std::string, at::Tensor> const& tensors) {
        graph = canonicalize(capture_model(r));
        auto const mesh = device_mesh::parse("1");
        auto const p = plan(graph, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
        std::vector<std::string> names;
        for (auto const& n : graph.nodes) names.push_back(n.name);
        rank = std::make_unique<rank_executor>(lower(graph, p, standard_rules(), 0), names);
        for (auto const& n : graph.nodes)
            if (n.role == node_role::constant) inputs.push_back(constant_tensor(n, c10::kCPU));
            else if (is_source(n.role)) inputs.push_back(tensors.at(n.name).detach());
    }
    std::vector<at::Tensor> step() const {
        nobody others;
        return rank->run(inputs, others);
    }
};

void compare(std::string const& name, int runs) {
    eager_side const eager(models.at(name));
    planned_side const planned(models.at(name), eager.by_name);
    std::vector<double> e, p;
    for (int i = 0; i < 2; ++i) {
        eager.step();
        planned.step();
    }
    for (int i = 0; i < runs; ++i) {
        e.push_back(seconds([&] { eager.step(); }));
        p.push_back(seconds([&] { planned.step(); }));
    }
    std::printf("%-12s %5zu steps   eager %9.3f ms   executor %9.3f ms   ratio %.3f   (medians of %d, interleaved)\n", name.c_str(),
                planned.rank->program().steps.size(), median(e) * 1e3, median(p) * 1e3, median(p) / median(e), runs);
}

/// A chain of `n` calls of one op on tiny tensors, as a program and as direct calls.
void overhead(char const* what, op const& call, std::vector<at::Tensor> const& operands, auto&& direct) {
    constexpr std::size_t n = 2000;
    rank_program p;
    p.mesh = device_mesh::parse("1");
    for (program_value v = 0; v < operands.size() + n; ++v) {
        auto const& like = operands[v < operands.size() ? v : 0];
        p.values.push_back({like.sizes().vec(), dtype::float32, true});
        if (v < operands.size()) p.inputs.push_back({0, v, {like.sizes().vec(), shape(static_cast<std::size_t>(like.dim()), 0), true}});
    }
    for (program_value i = 0; i < n; ++i) {
        program_step s;
        s.call = call;
        s.inputs = {i == 0 ? 0 : static_cast<program_value>(operands.size()) + i - 1};
        for (program_value o = 1; o < operands.size(); ++o) s.inputs.push_back(o);
        s.outputs = {static_cast<program_value>(operands.size()) + i};
        p.steps.push_back(std::move(s));
    }
    p.outputs = {{0, static_cast<program_value>(operands.size() + n - 1), {operands[0].sizes().vec(), {}, true}}};
    note_last_uses(p);
    rank_executor const rank(p, {"x"});
    nobody others;
    std::vector<double> by_rank, by_hand;
    for (int i = 0; i < 41; ++i) {
        by_rank.push_back(seconds([&] { rank.run(operands, others); }));
        by_hand.push_back(seconds([&] {
            at::AutoDispatchBelowADInplaceOrView const below_autograd;
            auto x = operands[0];
            for (std::size_t k = 0; k < n; ++k) x = direct(x);
        }));
    }
    auto const us = [&](std::vector<double> const& v) { return median(v) / static_cast<double>(n) * 1e6; };
    std::printf("%-24s direct %.3f us   executor %.3f us   overhead %.3f us per op\n", what, us(by_hand), us(by_rank),
                us(by_rank) - us(by_hand));
}

void overheads() {
    auto const x = at::ones({4}), m = at::eye(4), b = at::ones({4});
    overhead("add of 4 numbers", {"aten::add.Tensor", {{"self", operand_slot{0}}, {"other", operand_slot{1}}, {"alpha", std::int64_t{1}}}},
             {x, b}, [&](at::Tensor const& t) { return at::add(t, b); });
    overhead("mm of 4 x 4", {"aten::mm", {{"self", operand_slot{0}}, {"mat2", operand_slot{1}}}}, {m, m},
             [&](at::Tensor const& t) { return at::mm(t, m); });
    std::int64_t const first = 0, second = 1;
    overhead("transpose (a view)", {"aten::transpose.int", {{"self", operand_slot{0}}, {"dim0", first}, {"dim1", second}}}, {m},
             [&](at::Tensor const& t) { return at::transpose(t, 0, 1); });
    std::vector<std::int64_t> const dims{0};
    op const sum{"aten::sum.dim_IntList", {{"self", operand_slot{0}}, {"dim", dims}, {"keepdim", true}, {"dtype", std::monostate{}}}};
    overhead("sum over a dim", sum, {at::ones({1, 4})}, [&](at::Tensor const& t) { return at::sum(t, dims, true); });
}

/// Peak memory of a process that only runs steps of one kind, in MB; the module is there in both.
int print_peak(std::string const& how, std::string const& name) {
    eager_side const eager(models.at(name));
    if (how == "eager") {
        for (int i = 0; i < 3; ++i) eager.step();
    } else {
        planned_side const planned(models.at(name), eager.by_name);
        for (int i = 0; i < 3; ++i) planned.step();
    }
    std::printf("%-12s peak memory of a process that runs the %-8s %8.1f MB\n", name.c_str(), how.c_str(),
                static_cast<double>(peak_memory().count) / (1 << 20));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string(argv[1]) == "peak") return print_peak(argv[2], argv[3]);
    overheads();
    compare("small-llama", 101);
    compare("llama", 15);
    compare("gpt2", 15);
    std::fflush(stdout);
    auto const self = std::filesystem::read_symlink("/proc/self/exe").string();
    for (auto const* name : {"llama", "gpt2"})
        for (auto const* how : {"eager", "executor"})
            if (std::system((self + " peak " + how + " " + name).c_str()) != 0) return 1;
}
