// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/run_case.hpp>

#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/property/collective_tally.hpp>
#include <adapters/libtorch/property/drawing.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/base/error.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/rules/registry.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

namespace cantle::libtorch {
namespace {

std::string text_of(tally const& t) {
    std::string s;
    for (auto const& [what, n] : t)
        s += (s.empty() ? "" : ", ") + std::to_string(n.first) + " " + std::string(to_string(what.first)) + " on axes " +
             std::to_string(what.second) + " of " + std::to_string(n.second) + " bytes";
    return s.empty() ? "nothing" : s;
}

/// Largest finite magnitude, at least 1.
double scale_of(at::Tensor const& t) {
    if (t.numel() == 0) return 1.0;
    return std::max(1.0, at::nan_to_num(t.to(at::kDouble).abs(), 0.0, 0.0, 0.0).max().item<double>());
}
/// How far two tensors are apart, relative to `want`'s scale; NaN equals NaN.
double distance_of(at::Tensor const& got, at::Tensor const& want) {
    if (want.numel() == 0) return 0;
    auto const a = got.to(at::kDouble), b = want.to(at::kDouble);
    auto const same = (a == b).logical_or(at::isnan(a).logical_and(at::isnan(b)));
    auto const off = (a - b).abs().masked_fill(same, 0.0);
    return at::nan_to_num(off, 1e300, 1e300, 1e300).max().item<double>() / scale_of(want);
}
bool is_dyadic(tensor_map const& data) {
    for (auto const& [name, t] : data)
        if (t.is_floating_point() && !at::equal(t * 8, at::round(t * 8))) return false;
    return true;
}
/// True where some number on the way is so large that sums of such numbers round.
bool grows_large(training_graph g, tensor_map const& data) {
    std::size_t const n = g.size();
    for (vertex v = 0; v < n; ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) {
            if (is_sink(g[v].role) || !g[v].outputs[o].defined || !is_floating_point(g[v].outputs[o].type)) continue;
            graph_node sink;
            sink.operation.name = "cantle::output";
            sink.operands = {{v, o}};
            sink.outputs = {g[v].outputs[o]};
            sink.role = node_role::output;
            sink.name = "value " + std::to_string(v) + ":" + std::to_string(o);
            g.nodes.push_back(std::move(sink));
        }
    for (auto const& [name, t] : replay(g, data))
        if (t.is_floating_point() && scale_of(t) > 1e9) return true;
    return false;
}
bool has_float32(training_graph const& g) {
    for (auto const& n : g.nodes)
        for (auto const& t : n.outputs)
            if (t.defined && t.type == dtype::float32) return true;
    return false;
}

std::optional<run_failure> compare(run_case const& c, std::vector<program_port> const& ports, thread_run const& got) {
    auto const want = replay(c.graph, c.data);
    bool const exact = is_exact(c.graph) && is_dyadic(c.data);
    double const tolerance = has_float32(c.graph) ? 1e-4 : 1e-9;
    std::set<std::string> compared;
    for (std::size_t i = 0; i < ports.size(); ++i) {
        auto const& sink = c.graph[ports[i].node];
        std::vector<at::Tensor> pieces;
        for (auto const& of_rank : got.outputs) pieces.push_back(of_rank[i]);
        auto const whole = put_together(pieces, c.plan.at(c.plan.nodes[ports[i].node].operands[0]), c.plan.mesh, sink.outputs[0].sizes);
        auto const& wanted = want.at(sink.name);
        compared.insert(sink.name);
        auto const off = distance_of(whole, wanted);
        if (off == 0 || (off <= tolerance && (!exact || grows_large(c.graph, c.data)))) continue;
        return run_failure{"numbers", sink.name, "is off by " + std::to_string(off) + (exact ? " where all is exact" : "")};
    }
    if (compared.size() != want.size()) return run_failure{"numbers", "", "not all sinks came out"};
    return std::nullopt;
}

}  // namespace

std::optional<run_failure> failure_of(run_case const& c, tamper_programs const& tamper) {
    try {
        auto const& rules = standard_registry();
        auto programs = ready_programs(c.graph, c.plan, rules);
        if (tamper) tamper(programs);
        std::vector<std::string> names;
        for (auto const& n : c.graph.nodes) names.push_back(n.name);
        std::vector<rank_executor> ranks;
        for (auto& p : programs) ranks.emplace_back(std::move(p), names);
        auto const got = run_on_threads(ranks, cut_inputs(c.graph, c.plan, c.data));
        auto const want = priced(c.plan);
        for (std::size_t r = 0; r < got.collectives.size(); ++r)
            if (auto const ran = counted(got.collectives[r]); ran != want)
                return run_failure{"collectives", "rank " + std::to_string(r), "ran " + text_of(ran) + "; priced were " + text_of(want)};
        return compare(c, ranks[0].program().outputs, got);
    } catch (error const& e) {
        std::string const what = e.what();
        return run_failure{"error " + std::to_string(static_cast<int>(e.code())), "", what};
    }
}

bool is_exact(training_graph const& g) {
    for (auto const& n : g.nodes) {
        if (n.role != node_role::computation) continue;
        if (!is_exact_op(n.operation.name) && n.operation.name != "cantle::embedding_grad_weight") return false;
    }
    return true;
}

tensor_map draw_data(training_graph const& g, std::map<std::string, std::int64_t> const& bounds, bool dyadic, std::uint64_t seed) {
    dice d(seed);
    tensor_map data;
    for (auto const& n : g.nodes) {
        if (!is_source(n.role) || n.role == node_role::constant) continue;
        auto const& meta = n.outputs[0];
        std::vector<double> numbers;
        auto const bound = bounds.find(n.name);
        for (auto i = element_count(meta.sizes); i > 0; --i) {
            if (is_floating_point(meta.type)) numbers.push_back(dyadic ? static_cast<double>(d.range(-4, 4)) / 2
                                                                       : static_cast<double>(d.range(-999'983, 999'983)) / 700'001);
            else if (meta.type == dtype::boolean) numbers.push_back(d.chance(70) ? 1 : 0);
            else numbers.push_back(static_cast<double>(d.range(0, bound == bounds.end() ? 1 : bound->second - 1)));
        }
        auto const type = meta.type == dtype::boolean ? at::kBool : meta.type == dtype::int64 ? at::kLong
                        : meta.type == dtype::float32 ? at::kFloat : at::kDouble;
        data[n.name] = at::tensor(numbers, at::kDouble).reshape(meta.sizes).to(type);
    }
    return data;
}

}  // namespace cantle::libtorch
