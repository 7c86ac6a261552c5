// SPDX-License-Identifier: BSL-1.0
// Uneven plans, run: models of awkward sizes on thread ranks, with pieces short and nested, give the loss and gradients of one rank.
//
//   dims 7, 10, 13; vocabulary 101; batch 5 on 2, 3, 4, 2x2, 2x3, 2x2x2 ranks
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/samples/samples.hpp>
#include <adapters/libtorch/tests/run_plan.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/op_traits.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <map>
#include <set>

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

/// x0, x1, .. -> op -> y0, y1, ..
training_graph graph_of_op(op_query const& q) {
    graph_builder b;
    for (std::size_t i = 0; i < q.operands.size(); ++i) b.input("x" + std::to_string(i), q.operands[i].sizes, q.operands[i].type);
    auto g = b.build();
    graph_node n;
    n.operation = *q.operation;
    n.name = "op";
    n.outputs.assign(q.outputs.begin(), q.outputs.end());
    for (std::size_t i = 0; i < q.operands.size(); ++i) n.operands.push_back({static_cast<vertex>(i), 0});
    g.nodes.push_back(n);
    for (std::uint32_t o = 0; o < q.outputs.size(); ++o) {
        if (!q.outputs[o].defined) continue;
        graph_node sink;
        sink.operation.name = "cantle::output";
        sink.operands = {{static_cast<vertex>(q.operands.size()), o}};
        sink.outputs = {q.outputs[o]};
        sink.role = node_role::output;
        sink.name = "y" + std::to_string(o);
        g.nodes.push_back(sink);
    }
    return g;
}
bool works_unevenly(training_graph const& g, sharding_plan const& p) {
    for (vertex v = 0; v < g.size(); ++v) {
        if (g[v].role != node_role::computation) continue;
        for (std::size_t i = 0; i < g[v].operands.size(); ++i)
            if (!p.at(p.nodes[v].operands[i]).fits(g.meta(g[v].operands[i]).sizes)) return true;
        for (std::size_t o = 0; o < g[v].outputs.size(); ++o)
            if (!p.at(p.nodes[v].outputs[o]).fits(g[v].outputs[o].sizes)) return true;
    }
    return false;
}
/// Prices at which work in small pieces is free, all else by chance: ops are cut as finely as rules allow.
struct cheap_when_cut {
    std::uint64_t seed = 0;
    double compute(op_query const& q) const {
        double elements = 1;
        for (auto const& t : q.operands) elements += static_cast<double>(t.elements());
        for (auto const& t : q.outputs) elements += static_cast<double>(t.elements());
        return elements * 1000 + random_cost_model{seed}.compute(q);
    }
    double collective(collective_call const& c) const { return random_cost_model{seed}.collective(c); }
    void feed(stable_hasher& h) const { h.add("cheap when cut").add(seed); }
};

}  // namespace

TEST_CASE("every op that rules cut unevenly runs so: its local program on the pieces gives the op's result") {
    auto const rules = standard_rules();
    std::map<std::string, std::size_t> ran;
    for (auto& sample : rule_samples()) {
        if (!sample.values_matter || is_random(sample.operation) || sample.operands.empty()) continue;
        rule_oracle const oracle(std::move(sample));
        auto const q = oracle.query();
        auto const g = graph_of_op(q);
        tensor_map inputs;
        for (std::size_t i = 0; i < oracle.operands().size(); ++i) inputs["x" + std::to_string(i)] = oracle.operands()[i];
        for (auto const* sizes : {"3", "2x2", "4x2"}) {
            auto& count = ran[q.name() + " on " + sizes];
            if (count >= 2) continue;
            auto const mesh = device_mesh::parse(sizes);
            auto options = uneven_options();
            options.boundary.inputs = "R";
            for (std::size_t a = 1; a < mesh.dims(); ++a) options.boundary.inputs += ",R";
            auto const p = plan(g, mesh, rules, cheap_when_cut{count}, options);
            if (!works_unevenly(g, p)) continue;
            ++count;
            CAPTURE(q.name());
            CAPTURE(sizes);
            std::vector<rank_executor> ranks;
            for (auto& program : lower_all(g, p, rules)) ranks.emplace_back(std::move(program), names_of(g));
            auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs));
            CHECK((counted(got.collectives[0]) == priced(p)));
            for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
                auto const v = ranks[0].program().outputs[i].node;
                std::vector<at::Tensor> pieces;
                for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
                auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
                auto const want = oracle.outputs()[g[v].operands[0].output];
                auto const real = [](at::Tensor const& t) {
                    return (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).to(at::kDouble);
                };
                CHECK(at::allclose(real(whole), real(want), 1e-9, 1e-9, true));
            }
        }
    }
    std::set<std::string> ops;
    std::size_t runs = 0;
    for (auto const& [name, count] : ran)
        if (count) {
            ops.insert(name.substr(0, name.find(' ')));
            runs += count;
        }
    MESSAGE(runs, " runs of ", ops.size(), " ops");
    CHECK(ops.size() > 60);
}

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
