// SPDX-License-Identifier: BSL-1.0
// Plans, run: captured models on thread ranks under optimal and under random feasible plans give the loss and gradients of one rank.
//
//   model -> graph -> plan -> programs -> threads --put together--> loss, gradients
//                  \-> replay on one rank ------------------------> the same
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/tests/run_plan.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/validate.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using namespace cantle::libtorch::tests;

struct model_case {
    std::string model;
    cantle_models::sizes sizes;
    std::int64_t largest_index;
};
std::vector<model_case> const cases = {
    {"mlp", {{"dim", 24}, {"hidden", 48}, {"layers", 2}, {"classes", 12}}, 12},
    {"llama3-8b", {{"dim", 48}, {"layers", 2}, {"heads", 12}, {"kv_heads", 6}, {"ffn", 96}, {"vocab", 144}}, 144},
    {"gpt2", {{"dim", 48}, {"layers", 1}, {"heads", 6}, {"vocab", 101}, {"positions", 24}}, 24},
    {"bert-base", {{"dim", 48}, {"layers", 1}, {"heads", 12}, {"ffn", 96}, {"vocab", 120}, {"positions", 24}}, 2},
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

/// check(graph, inputs, results of one rank) for every model.
template <class Check>
void for_each_case(Check check) {
    for (auto const& c : cases) {
        CAPTURE(c.model);
        auto const g = graph_of(c);
        auto const inputs = random_inputs(g, c.largest_index);
        check(g, inputs, replay(g, inputs));
    }
}

}  // namespace

TEST_CASE("optimal plans of small models on one to three axes give the loss and gradients of one rank") {
    for_each_case([](training_graph const& g, tensor_map const& inputs, tensor_map const& want) {
        for (auto const* sizes : {"2", "3", "4", "2x2", "2x3", "2x2x2"}) {
            CAPTURE(sizes);
            auto const mesh = device_mesh::parse(sizes);
            check_plan(g, inputs, want, mesh, standard_cost_model(mesh, find_cluster("h100")));
        }
    });
}

TEST_CASE("random feasible plans give the loss and gradients of one rank") {
    for_each_case([](training_graph const& g, tensor_map const& inputs, tensor_map const& want) {
        for (auto const* sizes : {"2", "3", "2x2", "2x3"})
            for (std::uint64_t seed = 1; seed <= 3; ++seed) {
                CAPTURE(sizes);
                CAPTURE(seed);
                check_plan(g, inputs, want, device_mesh::parse(sizes), random_cost_model{seed});
            }
    });
}

TEST_CASE("a rank that throws ends all ranks at once, and the error names op and rank") {
    auto const g = graph_of(cases[0]);
    auto const mesh = device_mesh::parse("2x2");
    auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    auto const ranks_with = [&](auto&& change) {
        std::vector<rank_executor> ranks;
        for (std::int64_t r = 0; r < 4; ++r) {
            auto program = lower(g, p, standard_rules(), r);
            if (r == 2) change(program);
            ranks.emplace_back(std::move(program), names);
        }
        return ranks;
    };
    auto const inputs = random_inputs(g, cases[0].largest_index);
    auto const message = [&](std::vector<rank_executor> const& ranks) {
        auto const start = std::chrono::steady_clock::now();
        std::string what;
        try {
            run_on_threads(ranks, cut_inputs(g, p, inputs));
        } catch (error const& e) {
            what = e.what();
        }
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // it does not hang; no measure of speed
        return what;
    };
    // One op gets operands of shapes that do not multiply.
    auto const failing = message(ranks_with([](rank_program& q) {
        for (auto& s : q.steps)
            if (s.call.name == "aten::linear") {
                set_argument(s.call, "bias", operand_slot{1});  // its weight as a bias
                break;
            }
    }));
    CHECK_MESSAGE(failing.find("804: rank 2, '") != std::string::npos, failing);
    CHECK_MESSAGE(failing.find("aten::linear") != std::string::npos, failing);
    // One rank would wait in another collective than the others.
    auto const mismatched = message(ranks_with([](rank_program& q) {
        for (auto& s : q.steps)
            if (s.is_transfer() && s.move.communicates()) {
                s.move.kind = s.move.kind == collective_kind::all_reduce ? collective_kind::permute : collective_kind::all_reduce;
                break;
            }
    }));
    CHECK_MESSAGE(mismatched.find("its members bring other collectives") != std::string::npos, mismatched);
    // An input of another shape is refused before anything runs; both shapes are named.
    auto cut = cut_inputs(g, p, inputs);
    cut[1][0] = at::zeros({5}, at::kDouble);
    std::string refused;
    try {
        run_on_threads(ranks_with([](rank_program&) {}), cut);
    } catch (error const& e) {
        refused = e.what();
    }
    CHECK_MESSAGE(refused.find("303: rank 1") != std::string::npos, refused);
    CHECK_MESSAGE(refused.find("given is Double [5]") != std::string::npos, refused);
}
