// SPDX-License-Identifier: BSL-1.0
#pragma once
// The projections (products with a parameter, and embeddings) of a plan, by layer role: the parameter's name with list indices erased.
// Copies that lie differently are kept apart and counted.
#include <cantle/problem/identical_regions.hpp>
#include <cantle/report/plan_view.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// The layouts around one projection. For tensors that are moved on the way: where they come from, what they are moved to once for all of
/// their users (kept; the same as used where there is one user), and as what this op reads them.
struct projection_layouts {
    plan_layout x_from = 0, x_kept = 0, x = 0;          ///< input
    plan_layout stored = 0, weight_kept = 0, used = 0;  ///< weight; stored: the parameter
    plan_layout y = 0, y_to = 0;                 ///< result: as produced, as passed on
    struct input_gradient {
        plan_layout grad_y = 0, weight = 0, grad_x = 0, grad_x_to = 0;
        auto operator<=>(input_gradient const&) const = default;
    };
    struct weight_gradient {
        plan_layout grad_y = 0, x = 0, grad_weight = 0, stored = 0;
        auto operator<=>(weight_gradient const&) const = default;
    };
    std::optional<input_gradient> to_input;      ///< absent where the input needs no gradient
    std::optional<weight_gradient> to_weight;
    auto operator<=>(projection_layouts const&) const = default;
};

struct projection {
    vertex forward = 0, parameter = 0;
    projection_layouts layouts;
};

/// All projections of one role, e.g. "layers.*.attention.wq.weight".
struct projection_role {
    std::string name;
    std::vector<std::pair<projection, std::size_t>> variants;  ///< one of each kind with its count; most common first, then in graph order
    std::size_t count() const {
        std::size_t n = 0;
        for (auto const& v : variants) n += v.second;
        return n;
    }
};

namespace detail {

/// Slots of input and weight of a projection op, if it is one.
inline std::optional<std::array<std::uint32_t, 2>> projection_slots(op const& o) {
    char const* input = o.name == "aten::linear" ? "input" : o.name == "aten::embedding" ? "indices" : nullptr;
    if (!input) return std::nullopt;
    auto const x = o.slot(input), w = o.slot("weight");
    if (!x || !w) return std::nullopt;
    return std::array{*x, *w};
}

/// Vertices of op `name`, by the parameter whose gradient they are a part of: reached backwards from its gradient sink through casts and
/// sums of tied uses.
inline std::map<vertex, std::vector<vertex>> weight_gradient_ops(plan_view const& view) {
    auto const& g = view.graph();
    std::map<vertex, std::vector<vertex>> found;
    for (vertex s = 0; s < g.size(); ++s) {
        if (g[s].role != node_role::gradient || !g[s].of || g[*g[s].of].role != node_role::parameter) continue;
        std::vector<vertex> open{g[s].operands[0].node};
        while (!open.empty()) {
            vertex const v = open.back();
            open.pop_back();
            auto const& name = g[v].operation.name;
            if (name == "cantle::linear_grad_weight" || name == "aten::embedding_dense_backward") found[*g[s].of].push_back(v);
            else if (plan_view::is_cast(g[v]) || name == "aten::add.Tensor")
                for (auto const& r : g[v].operands) open.push_back(r.node);
        }
        if (auto const at = found.find(*g[s].of); at != found.end()) std::sort(at->second.begin(), at->second.end());
    }
    return found;
}

}  // namespace detail

/// All roles in order of their first projection.
inline std::vector<projection_role> find_projections(plan_view const& view) {
    auto const& g = view.graph();
    auto const weight_gradients = detail::weight_gradient_ops(view);
    std::map<vertex, std::vector<vertex>> input_gradient_ops;        // by parameter
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].operation.name == "cantle::linear_grad_input")
            if (auto const w = g[v].operation.slot("weight"))
                if (auto const p = view.parameter_of(g[v].operands[*w])) input_gradient_ops[*p].push_back(v);

    // A parameter with several uses (tied) has several gradient ops: the link to the forward op decides, else the k-th belongs to the k-th
    // use from the end, as backward runs in reverse.
    std::map<vertex, std::vector<vertex>> uses_of;
    for (vertex v = 0; v < g.size(); ++v)
        if (auto const slots = detail::projection_slots(g[v].operation))
            if (auto const p = view.parameter_of(g[v].operands[(*slots)[1]])) uses_of[*p].push_back(v);
    auto const belonging = [&](std::map<vertex, std::vector<vertex>> const& ops, vertex parameter,
                               vertex forward) -> std::optional<vertex> {
        auto const at = ops.find(parameter);
        if (at == ops.end()) return std::nullopt;
        for (auto v : at->second)
            if (g[v].forward_node == forward) return v;
        auto const& uses = uses_of[parameter];
        if (uses.size() == at->second.size()) {
            auto const k = static_cast<std::size_t>(std::find(uses.begin(), uses.end(), forward) - uses.begin());
            return at->second[uses.size() - 1 - k];
        }
        return std::nullopt;
    };

    std::vector<projection_role> roles;
    std::map<std::string, std::size_t> index;
    for (auto const& [parameter, uses] : uses_of)
        for (vertex v : uses) {
            auto const slots = *detail::projection_slots(g[v].operation);
            projection p{v, parameter, {}};
            auto& l = p.layouts;
            l.x_from = view.produced(g[v].operands[slots[0]]);
            l.x_kept = view.passed_on(g[v].operands[slots[0]]);
            l.x = view.operand(v, slots[0]);
            l.stored = view.produced({parameter, 0});
            l.weight_kept = view.passed_on(g[v].operands[slots[1]]);
            l.used = view.operand(v, slots[1]);
            l.y = view.produced({v, 0});
            l.y_to = view.passed_on({v, 0});
            if (auto const b = belonging(input_gradient_ops, parameter, v))
                if (auto const grad = g[*b].operation.slot("grad"), w = g[*b].operation.slot("weight"); grad && w)
                    l.to_input = {view.operand(*b, *grad), view.operand(*b, *w), view.produced({*b, 0}), view.passed_on({*b, 0})};
            if (auto const b = belonging(weight_gradients, parameter, v)) {
                bool const linear = g[*b].operation.name == "cantle::linear_grad_weight";
                auto const grad = g[*b].operation.slot(linear ? "grad" : "grad_output"),
                           x = g[*b].operation.slot(linear ? "input" : "indices");
                if (grad && x) l.to_weight = {view.operand(*b, *grad), view.operand(*b, *x), view.produced({*b, 0}), l.stored};
            }
            auto const name = erase_indices(g[parameter].name).text;
            auto const [at, fresh] = index.try_emplace(name, roles.size());
            if (fresh) roles.push_back({name, {}});
            auto& variants = roles[at->second].variants;
            auto const same = std::find_if(variants.begin(), variants.end(), [&](auto const& x) { return x.first.layouts == l; });
            if (same == variants.end()) variants.emplace_back(p, 1);
            else ++same->second;
        }
    for (auto& r : roles)
        std::stable_sort(r.variants.begin(), r.variants.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
    std::stable_sort(roles.begin(), roles.end(), [](auto const& a, auto const& b) {
        auto const first = [](projection_role const& r) {
            vertex least = r.variants[0].first.forward;
            for (auto const& v : r.variants) least = std::min(least, v.first.forward);
            return least;
        };
        return first(a) < first(b);
    });
    return roles;
}

}  // namespace cantle
