// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/verify_inputs.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace cantle::libtorch {
namespace {

/// What the integers of `v` index, followed through ops on integers: the least bound of all uses; 2 where there is none.
std::int64_t index_bound(training_graph const& g, std::vector<std::vector<std::vector<std::pair<vertex, std::uint32_t>>>> const& uses,
                         vertex v) {
    std::int64_t bound = std::numeric_limits<std::int64_t>::max();
    std::vector<vertex> open{v};
    std::vector<bool> seen(g.size(), false);
    while (!open.empty()) {
        auto const at = open.back();
        open.pop_back();
        if (seen[at]) continue;
        seen[at] = true;
        for (auto const& of_output : uses[at])
            for (auto const& use : of_output) {  // clang 14 captures no structured bindings
                auto const user = use.first;
                auto const slot = use.second;
                auto const& n = g[user];
                auto const& name = n.operation.name;
                auto const indexes = [&](std::string_view argument) { return n.operation.slot(argument) == slot; };
                auto const dim_of = [&](std::string_view argument) {
                    auto const& sizes = g.meta(n.operands[n.operation.slot(argument).value_or(0)]).sizes;
                    auto const d = n.operation.get<std::int64_t>("dim", 0);
                    return sizes.empty() ? std::int64_t{1} : sizes[static_cast<std::size_t>(d < 0 ? d + std::ssize(sizes) : d)];
                };
                if (name == "aten::embedding" && indexes("indices")) bound = std::min(bound, g.meta(n.operands[0]).sizes[0]);
                else if (name == "cantle::cross_entropy" && slot == 1) bound = std::min(bound, g.meta(n.operands[0]).sizes.back());
                else if ((name == "aten::gather" || name == "aten::index_select") && indexes("index"))
                    bound = std::min(bound, dim_of("self"));
                else if (!n.outputs.empty() && n.outputs[0].defined && !is_floating_point(n.outputs[0].type)) open.push_back(user);
            }
    }
    return bound == std::numeric_limits<std::int64_t>::max() ? 2 : bound;
}

}  // namespace

dtype finest_type(training_graph const& g) {
    bool const single = std::any_of(g.nodes.begin(), g.nodes.end(), [](graph_node const& n) {
        return n.operation.name == "aten::_grouped_mm";
    });
    return single ? dtype::float32 : dtype::float64;
}

training_graph in_type(training_graph g, dtype type) {
    auto const wider = [type](dtype t) { return is_floating_point(t) ? type : t; };
    for (auto& n : g.nodes) {
        bool const fills = n.operands.empty() && !n.outputs.empty() && is_floating_point(n.outputs[0].type);
        for (auto& t : n.outputs) t.type = wider(t.type);
        for (auto& a : n.operation.arguments) {
            if (auto* const t = std::get_if<dtype>(&a.value)) *t = wider(*t);
            if (fills && a.name == "dtype" && std::holds_alternative<std::monostate>(a.value)) a.value = type;
        }
    }
    return countable(std::move(g), type);
}

training_graph countable(training_graph g, dtype type) {
    for (auto& n : g.nodes) {
        if (n.operation.name != "aten::histc" || is_floating_point(g.meta(n.operands[0]).type)) continue;
        auto& cast = g[n.operands[0].node];
        auto const reads = [&](graph_node const& x) {
            return std::any_of(x.operands.begin(), x.operands.end(), [&](value_ref r) { return r == n.operands[0]; });
        };
        if (cast.operation.name != "aten::_to_copy" || std::count_if(g.nodes.begin(), g.nodes.end(), reads) != 1) continue;
        for (auto& a : cast.operation.arguments)
            if (a.name == "dtype") a.value = type;
        cast.outputs[0].type = n.outputs[0].type = type;
    }
    return g;
}

std::map<std::string, at::Tensor> random_sources(training_graph const& g, std::uint64_t seed) {
    auto const random = at::make_generator<at::CPUGeneratorImpl>(seed);
    auto const uses = collect_uses(g);
    std::map<std::string, at::Tensor> tensors;
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (!is_source(n.role) || n.role == node_role::constant) continue;
        auto const& meta = n.outputs[0];
        auto& t = tensors[n.name];
        if (meta.type == dtype::boolean) {
            t = at::rand(meta.sizes, random) < 0.7;
            if (meta.rank() > 0) t.select(-1, 0).fill_(true);
        } else if (is_floating_point(meta.type)) {
            t = at::randn(meta.sizes, random, at::kDouble);
            bool const bias = n.name.ends_with("bias");
            if (meta.rank() > 1 && n.role == node_role::parameter) t = t / std::sqrt(static_cast<double>(meta.sizes.back()));
            else if (n.role == node_role::parameter) t = t * 0.1 + (bias ? 0.0 : 1.0);
            t = t.to(to_scalar_type(meta.type));
        } else {
            t = at::randint(index_bound(g, uses, v), meta.sizes, random, at::TensorOptions(at::kLong)).to(to_scalar_type(meta.type));
        }
    }
    return tensors;
}

}  // namespace cantle::libtorch
