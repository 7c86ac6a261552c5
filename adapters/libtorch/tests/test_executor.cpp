// SPDX-License-Identifier: BSL-1.0
// Plans, run: captured models on thread ranks under optimal and under random feasible plans give the loss and gradients of one rank.
//
//   model -> graph -> plan -> programs -> threads --put together--> loss, gradients
//                  \-> replay on one rank ------------------------> the same
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/validate.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <chrono>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensor_map = std::map<std::string, at::Tensor>;

/// Prices drawn from a hash of the question: its optimum is any feasible plan.
struct random_cost_model {
    std::uint64_t seed = 0;
    double price(stable_hasher& h, double most) const { return most * static_cast<double>(h.add(seed).finish().low % 1000) / 1000; }
    double compute(op_query const& q) const {
        stable_hasher h;
        h.add(q.name());
        for (auto const& t : q.operands) h.add(t.sizes);
        for (auto const& t : q.outputs) h.add(t.sizes);
        return price(h, 50.0);
    }
    double collective(collective_call const& c) const {
        stable_hasher h;
        h.add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after);
        return price(h, 5.0);
    }
    void feed(stable_hasher& h) const { h.add("random").add(seed); }
};

/// The same graph in float64.
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
        else if (meta.type == dtype::boolean) inputs[n.name] = at::rand(meta.sizes) < 0.7;
        else inputs[n.name] = at::randint(largest_index, meta.sizes, at::kLong);
    }
    return inputs;
}

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

/// (kind, axes) -> number and bytes. Order of axes does not matter for a price.
using tally = std::map<std::pair<collective_kind, std::uint32_t>, std::pair<std::size_t, std::int64_t>>;
tally priced(sharding_plan const& p) {
    tally t;
    auto const count = [&](collective_call const& c) {
        if (c.kind == collective_kind::slice) return;
        auto& at = t[{c.kind, c.axes}];
        ++at.first;
        at.second += c.bytes_before;
    };
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) count(s.call);
    for (auto const& n : p.nodes)
        for (auto const& i : n.inner) count(i.call);
    return t;
}
tally counted(std::vector<ran_collective> const& ran) {
    tally t;
    for (auto const& c : ran) {
        std::uint32_t axes = 0;
        for (auto a : c.axes) axes |= 1u << a;
        auto& at = t[{c.kind, axes}];
        ++at.first;
        at.second += c.bytes;
    }
    return t;
}

template <class Cost>
void check_plan(training_graph const& g, tensor_map const& inputs, tensor_map const& want, device_mesh const& mesh, Cost const& cost) {
    auto const p = plan(g, mesh, standard_rules(), cost);
    std::vector<rank_program> programs;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) programs.push_back(lower(g, p, standard_rules(), r));
    check_programs(programs);
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    std::vector<rank_executor> ranks;
    for (auto& program : programs) ranks.emplace_back(std::move(program), names);
    auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs));
    for (auto const& ran : got.collectives) CHECK((counted(ran) == priced(p)));
    std::size_t compared = 0;
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        std::vector<at::Tensor> pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), mesh, g[v].outputs[0].sizes);
        auto const& wanted = want.at(g[v].name);
        auto const scale = std::max(1.0, wanted.abs().max().template item<double>());
        auto const off = (whole - wanted).abs().max().template item<double>() / scale;
        CHECK_MESSAGE(off < 1e-10, g[v].name, " is off by ", off);
        ++compared;
    }
    CHECK(compared == want.size());
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
