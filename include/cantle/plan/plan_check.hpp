// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether a plan contradicts itself: figures that must add up, and moves that must lead from where a tensor lies to where it is wanted.
// For plans that were read; the planner's own always hold. What a plan alone cannot show (a move that is missing, its memory) needs the
// graph.
#include <cantle/graph/training_graph.hpp>
#include <cantle/plan/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace cantle {

/// Bytes of all parameters, and of a rank's share of them under the plan's layouts (the largest rank's).
inline plan_memory parameter_memory(training_graph const& g, sharding_plan const& p) {
    plan_memory memory;
    for (vertex v = 0; v < g.size(); ++v) {
        if (g[v].role != node_role::parameter) continue;
        auto const& t = g[v].outputs[0];
        memory.parameters_global += t.size_in_bytes().count;
        memory.parameters_local += element_count(p.layouts[p.nodes[v].outputs[0]].local_shape(t.sizes)) * element_bytes(t.type);
    }
    return memory;
}

/// The first contradiction: the row ("row 3 of moves", empty for the whole plan), the field, and what is wrong with it.
struct plan_contradiction {
    std::string place, field, problem;
};

namespace detail {

inline std::string figure_text(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.10g", v);
    return text;
}

/// Sums of the same figures in another order: equal up to rounding.
inline bool adds_up(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-12; }

/// Where a move begins and ends. Precondition: its indices are within the plan.
inline std::pair<plan_layout, plan_layout> ends_of(sharding_plan const& p, tensor_move const& m) {
    auto const from = m.from_relay != tensor_move::none ? p.relays[m.from_relay].at : p.nodes[m.value.node].outputs[m.value.output];
    auto const to = m.to_relay != tensor_move::none ? p.relays[m.to_relay].at : p.nodes[m.user].operands[m.operand];
    return {from, to};
}

}  // namespace detail

/// What the plan alone shows. Precondition: its indices are within its tables.
inline std::optional<plan_contradiction> find_contradiction(sharding_plan const& p) {
    using detail::adds_up;
    using detail::figure_text;
    auto const differs = [](std::string field, double said, std::string const& of_what, double sum) {
        return plan_contradiction{"", std::move(field), "is " + figure_text(said) + ", but " + of_what + " add up to " + figure_text(sum)};
    };
    if (p.bound > p.objective && !adds_up(p.bound, p.objective))
        return plan_contradiction{"", "bound", "is " + figure_text(p.bound) + ", above the objective " + figure_text(p.objective)};
    if (!adds_up(p.objective, p.cost.total())) return differs("objective", p.objective, "the parts of 'cost'", p.cost.total());
    // Every rank holds a share: at least its part of the whole, at most all of it.
    auto const devices = static_cast<double>(p.mesh.device_count());
    auto const all = static_cast<double>(p.memory.parameters_global), share = static_cast<double>(p.memory.parameters_local);
    if (share > all || share * devices < all * (1 - 1e-9))
        return plan_contradiction{"", "memory.parameters_local",
                                  "is " + std::to_string(p.memory.parameters_local) + ", which is no share of " +
                                      std::to_string(p.memory.parameters_global) + " bytes on " + std::to_string(p.mesh.device_count()) +
                                      " devices"};
    double compute = 0, inner = 0;
    for (auto const& n : p.nodes) {
        compute += n.compute;
        for (auto const& s : n.inner) inner += s.cost;
    }
    double const said = p.cost.forward_compute + p.cost.backward_compute;
    if (!adds_up(said, compute)) return differs("cost.forward_compute + cost.backward_compute", said, "the nodes' 'compute'", compute);
    if (!adds_up(p.cost.inner, inner)) return differs("cost.inner", p.cost.inner, "the nodes' 'inner'", inner);
    for (std::size_t i = 0; i < p.paths.size(); ++i) {
        double sum = 0;
        for (auto const& s : p.paths[i].steps) sum += s.cost;
        if (adds_up(p.paths[i].cost, sum)) continue;
        auto wrong = differs("cost", p.paths[i].cost, "its steps", sum);
        wrong.place = "row " + std::to_string(i) + " of paths";
        return wrong;
    }
    std::array<double, 6> moved{};
    for (std::size_t i = 0; i < p.moves.size(); ++i) {
        auto const& m = p.moves[i];
        auto const& path = p.paths[m.path];
        auto const wrong = [i](std::string field, std::string problem) {
            return plan_contradiction{"row " + std::to_string(i) + " of moves", std::move(field), std::move(problem)};
        };
        for (auto const& [relay, field] : {std::pair{m.from_relay, "from_relay"}, std::pair{m.to_relay, "to_relay"}})
            if (relay != tensor_move::none && !(p.relays[relay].value == m.value)) return wrong(field, "is a relay of another value");
        auto const [from, to] = detail::ends_of(p, m);
        auto const text = [&p](plan_layout l) { return p.layouts[l].text(p.mesh); };
        if (p.layouts[path.from] != p.layouts[from])
            return wrong("path", "begins at " + text(path.from) + ", but the tensor lies at " + text(from));
        if (p.layouts[path.to] != p.layouts[to])
            return wrong("path", "ends at " + text(path.to) + ", but " + text(to) + " is wanted there");
        for (auto const& s : path.steps) moved[static_cast<std::size_t>(s.step.kind)] += s.cost;
    }
    for (std::size_t k = 0; k < moved.size(); ++k)
        if (!adds_up(p.cost.moves[k], moved[k]))
            return differs("cost." + std::string(to_string(static_cast<collective_kind>(k))), p.cost.moves[k], "those of the moves",
                           moved[k]);
    return std::nullopt;
}

/// What the plan and its graph show together. Precondition: refuse_foreign's: one placement per vertex, as many ports as the graph has.
inline std::optional<plan_contradiction> find_contradiction(sharding_plan const& p, training_graph const& g) {
    auto const wrong = [](char const* table, std::size_t row, std::string field, std::string problem) {
        return plan_contradiction{"row " + std::to_string(row) + " of " + table, std::move(field), std::move(problem)};
    };
    std::map<std::pair<vertex, std::uint32_t>, std::size_t> served;  // (user, operand) -> its move
    std::map<std::uint32_t, std::size_t> into_relay;
    for (std::size_t i = 0; i < p.moves.size(); ++i) {
        auto const& m = p.moves[i];
        if (m.to_relay != tensor_move::none) {
            if (!into_relay.try_emplace(m.to_relay, i).second)
                return wrong("moves", i, "to_relay", "is reached by an earlier move already");
            continue;
        }
        if (!(g[m.user].operands[m.operand] == m.value))
            return wrong("moves", i, "value", "is not what operand " + std::to_string(m.operand) + " of '" + g[m.user].name + "' reads");
        if (!served.try_emplace({m.user, m.operand}, i).second)
            return wrong("moves", i, "operand", "of '" + g[m.user].name + "' is reached by an earlier move already");
    }
    auto const same = [&p](plan_layout a, plan_layout b) { return p.layouts[a] == p.layouts[b]; };
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t i = 0; i < g[v].operands.size(); ++i) {
            auto const r = g[v].operands[i];
            if (!g.meta(r).defined || served.count({v, i})) continue;
            bool there = same(p.nodes[v].operands[i], p.nodes[r.node].outputs[r.output]);
            for (auto const& relay : p.relays) there = there || (relay.value == r && same(relay.at, p.nodes[v].operands[i]));
            if (!there)
                return wrong("nodes", v, "in",
                             "wants operand " + std::to_string(i) + " at " + p.layouts[p.nodes[v].operands[i]].text(p.mesh) +
                                 ", where no move brings it");
        }
    auto const memory = parameter_memory(g, p);
    for (auto const& [field, said, is] :
         {std::tuple{"memory.parameters_global", p.memory.parameters_global, memory.parameters_global},
          std::tuple{"memory.parameters_local", p.memory.parameters_local, memory.parameters_local}})
        if (said != is)
            return plan_contradiction{"", field,
                                      "is " + std::to_string(said) + ", the parameters of the graph lie in " + std::to_string(is)};
    return std::nullopt;
}

}  // namespace cantle
