// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the tests that run plans share: a graph in float64, inputs for it, prices drawn by chance, and one check of a plan: its programs
// fit together, the collectives that ran are those that it prices, and the ranks' results put together are those of one rank.
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/property/collective_tally.hpp>
#include <adapters/libtorch/property/random_cost_model.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle::libtorch::tests {

using tensor_map = std::map<std::string, at::Tensor>;

/// The same graph in float64.
inline training_graph in_float64(training_graph g) {
    for (auto& n : g.nodes) {
        for (auto& t : n.outputs)
            if (t.type == dtype::float32) t.type = dtype::float64;
        for (auto& a : n.operation.arguments)
            if (auto* const t = std::get_if<dtype>(&a.value); t && *t == dtype::float32) a.value = dtype::float64;
    }
    return g;
}

/// Random tensors for all sources but constants, the same in every call: normal (matrices scaled down), true with 0.7, or
/// 0 .. largest_index - 1.
inline tensor_map random_inputs(training_graph const& g, std::int64_t largest_index) {
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

/// Equal in kinds, axes and number; in bytes at most the priced ones (the largest rank's, docs/uneven.md).
inline bool at_most(tally const& ran, tally const& price) {
    if (ran.size() != price.size()) return false;
    for (auto const& [what, n] : ran) {
        auto const p = price.find(what);
        if (p == price.end() || p->second.first != n.first || p->second.second < n.second) return false;
    }
    return true;
}

inline std::vector<std::string> names_of(training_graph const& g) {
    std::vector<std::string> names;
    for (auto const& n : g.nodes) names.push_back(n.name);
    return names;
}

/// Runs `p` on thread ranks and compares: the collectives of every rank with the priced ones (of an uneven plan: of rank 0, whose pieces
/// are the largest; of the others at most in bytes), every sink with `want` (relative to its largest element, at least 1).
inline void check_run(training_graph const& g, sharding_plan const& p, tensor_map const& inputs, tensor_map const& want,
                      double tolerance = 1e-10) {
    std::vector<rank_executor> ranks;
    for (auto& program : ready_programs(g, p, standard_rules())) ranks.emplace_back(std::move(program), names_of(g));
    auto const got = run_on_threads(ranks, cut_inputs(g, p, inputs));
    auto const price = priced(p);
    bool const uneven = has_uneven(g, p);
    for (std::size_t r = 0; r < got.collectives.size(); ++r) {
        auto const ran = counted(got.collectives[r]);
        CHECK_MESSAGE((uneven && r > 0 ? at_most(ran, price) : ran == price), "rank ", r, " runs other collectives than priced");
    }
    std::size_t compared = 0;
    for (std::size_t i = 0; i < ranks[0].program().outputs.size(); ++i) {
        auto const v = ranks[0].program().outputs[i].node;
        std::vector<at::Tensor> pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, p.at(p.nodes[v].operands[0]), p.mesh, g[v].outputs[0].sizes);
        auto const& wanted = want.at(g[v].name);
        auto const scale = std::max(1.0, wanted.abs().max().template item<double>());
        auto const off = (whole - wanted).abs().max().template item<double>() / scale;
        CHECK_MESSAGE(off <= tolerance, g[v].name, " is off by ", off);
        ++compared;
    }
    CHECK(compared == want.size());
}

/// Plans under `cost`, then check_run.
template <class Cost>
void check_plan(training_graph const& g, tensor_map const& inputs, tensor_map const& want, device_mesh const& mesh, Cost const& cost,
                plan_options const& options = {}) {
    check_run(g, plan(g, mesh, standard_rules(), cost, options), inputs, want);
}

}  // namespace cantle::libtorch::tests
