// SPDX-License-Identifier: BSL-1.0
// Uneven plans, run: models of awkward sizes on thread ranks, with pieces short and nested, give the loss and gradients of one rank.
//
//   dims 7, 10, 13; vocabulary 101; batch 5 on 2, 3, 4, 2x2, 2x3, 2x2x2 ranks
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/tests/run_plan.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using namespace cantle::libtorch::tests;

struct model_case {
    std::string model;
    std::int64_t batch, sequence;
    cantle_models::sizes sizes;
    std::int64_t largest_index;
};
std::vector<model_case> const cases = {
    {"mlp", 7, 10, {{"dim", 10}, {"hidden", 13}, {"layers", 2}, {"classes", 11}}, 11},
    {"llama3-8b", 5, 7, {{"dim", 30}, {"layers", 1}, {"heads", 5}, {"kv_heads", 5}, {"ffn", 13}, {"vocab", 101}}, 101},
    {"gpt2", 5, 10, {{"dim", 14}, {"layers", 1}, {"heads", 7}, {"vocab", 101}, {"positions", 13}}, 13},
    {"bert-base", 5, 7, {{"dim", 15}, {"layers", 1}, {"heads", 5}, {"ffn", 13}, {"vocab", 101}, {"positions", 10}}, 2},
};

training_graph graph_of(model_case const& c) {
    model_request r;
    r.model = c.model;
    r.batch = c.batch;
    r.sequence = c.sequence;
    r.precision = "fp32";
    r.overrides = c.sizes;
    return in_float64(canonicalize(capture_model(r)));
}
plan_options uneven_options() {
    plan_options o;
    o.uneven = true;
    return o;
}

/// run(graph, inputs, results of one rank) for every model.
template <class Run>
void for_each_case(Run run) {
    for (auto const& c : cases) {
        CAPTURE(c.model);
        auto const g = graph_of(c);
        auto const inputs = random_inputs(g, c.largest_index);
        run(g, inputs, replay(g, inputs));
    }
}

}  // namespace

TEST_CASE("optimal uneven plans of small models of awkward sizes give the loss and gradients of one rank") {
    std::size_t uneven = 0;
    for_each_case([&](training_graph const& g, tensor_map const& inputs, tensor_map const& want) {
        for (auto const* sizes : {"2", "3", "4", "2x2", "2x3", "2x2x2"}) {
            CAPTURE(sizes);
            auto const mesh = device_mesh::parse(sizes);
            auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), uneven_options());
            uneven += has_uneven(g, p);
            check_run(g, p, inputs, want);
        }
    });
    CHECK(uneven > 12);
}

TEST_CASE("random feasible uneven plans give the loss and gradients of one rank") {
    std::size_t uneven = 0;
    for_each_case([&](training_graph const& g, tensor_map const& inputs, tensor_map const& want) {
        for (auto const* sizes : {"2", "3", "4", "2x2", "2x3"})
            for (std::uint64_t seed = 1; seed <= 3; ++seed) {
                CAPTURE(sizes);
                CAPTURE(seed);
                auto const p = plan(g, device_mesh::parse(sizes), standard_rules(), random_cost_model{seed}, uneven_options());
                uneven += has_uneven(g, p);
                check_run(g, p, inputs, want);
            }
    });
    CHECK(uneven > 50);
}
