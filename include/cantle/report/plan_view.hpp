// SPDX-License-Identifier: BSL-1.0
#pragma once
// A plan laid over its graph: which layouts a tensor passes on its way, which parameter a value comes from, what a move is for. All reports
// look through this, so that they cannot say different things.
#include <cantle/base/assert.hpp>
#include <cantle/plan/plan.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// What is moved.
enum class cargo : std::uint8_t { weights, activations, activation_gradients, weight_gradients, inside_ops };

constexpr std::string_view to_string(cargo c) {
    constexpr std::string_view names[] = {"weights", "activations", "activation gradients", "weight gradients", "inside ops"};
    return names[static_cast<std::size_t>(c)];
}

/// Precondition: the plan is one of this graph (refuse_foreign in plan/plan_json.hpp). Keeps references to both.
class plan_view {
public:
    plan_view(sharding_plan const& plan, training_graph const& graph)
        : plan_(plan), graph_(graph), uses_(collect_uses(graph)), relay_of_(graph.size()), parameter_of_(graph.size()) {
        CANTLE_ASSERT(plan.nodes.size() == graph.size(), "a plan is read with its own graph");
        for (vertex v = 0; v < graph.size(); ++v) {
            relay_of_[v].assign(graph[v].outputs.size(), tensor_move::none);
            if (graph[v].role == node_role::parameter) parameter_of_[v] = v;
            else if (is_cast(graph[v])) parameter_of_[v] = parameter_of_[graph[v].operands[0].node];
        }
        for (std::uint32_t i = 0; i < plan.relays.size(); ++i) relay_of_[plan.relays[i].value.node][plan.relays[i].value.output] = i;
    }

    sharding_plan const& plan() const { return plan_; }
    training_graph const& graph() const { return graph_; }
    std::vector<std::pair<vertex, std::uint32_t>> const& uses(value_ref r) const { return uses_[r.node][r.output]; }

    /// The layout in which the tensor is produced.
    plan_layout produced(value_ref r) const { return plan_.nodes[r.node].outputs[r.output]; }
    /// The layout in which operand `slot` of v reads it.
    plan_layout operand(vertex v, std::uint32_t slot) const { return plan_.nodes[v].operands[slot]; }
    /// The layout in which the tensor is passed on: that of its relay, else that in which its first user reads it, else as produced.
    plan_layout passed_on(value_ref r) const {
        if (auto const relay = relay_of_[r.node][r.output]; relay != tensor_move::none) return plan_.relays[relay].at;
        auto const& users = uses(r);
        return users.empty() ? produced(r) : operand(users[0].first, users[0].second);
    }
    std::uint32_t relay_of(value_ref r) const { return relay_of_[r.node][r.output]; }
    std::string text(plan_layout l) const { return plan_.at(l).text(plan_.mesh); }
    /// "A -> B -> C", without the layouts that change nothing.
    std::string text(std::initializer_list<plan_layout> chain) const {
        std::string s;
        plan_layout last = 0;
        for (auto l : chain) {
            if (!s.empty() && l == last) continue;
            s += (s.empty() ? "" : " -> ") + text(l);
            last = l;
        }
        return s;
    }
    /// The parameter that a value is, directly or through casts.
    std::optional<vertex> parameter_of(value_ref r) const { return parameter_of_[r.node]; }

    cargo cargo_of(tensor_move const& m) const {
        if (parameter_of_[m.value.node]) return cargo::weights;
        if (m.to_relay == tensor_move::none && feeds_parameter_gradient(m.user)) return cargo::weight_gradients;
        if (m.to_relay != tensor_move::none && m.from_relay == tensor_move::none) {
            bool all = !uses(m.value).empty();
            for (auto const& [user, slot] : uses(m.value)) all = all && feeds_parameter_gradient(user);
            if (all) return cargo::weight_gradients;
        }
        return graph_[m.value.node].in_phase == phase::forward ? cargo::activations : cargo::activation_gradients;
    }

    static bool is_cast(graph_node const& n) { return n.operation.name == "aten::_to_copy" && n.operands.size() == 1; }

private:
    sharding_plan const& plan_;
    training_graph const& graph_;
    std::vector<std::vector<std::vector<std::pair<vertex, std::uint32_t>>>> uses_;
    std::vector<std::vector<std::uint32_t>> relay_of_;
    std::vector<std::optional<vertex>> parameter_of_;

    /// True for the gradient sink of a parameter and for casts that only lead there.
    bool feeds_parameter_gradient(vertex v) const {
        auto const& n = graph_[v];
        if (n.role == node_role::gradient) return n.of && graph_[*n.of].role == node_role::parameter;
        if (!is_cast(n)) return false;
        for (auto const& [user, slot] : uses_[v][0])
            if (!feeds_parameter_gradient(user)) return false;
        return !uses_[v][0].empty();
    }
};

}  // namespace cantle
