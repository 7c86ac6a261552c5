// SPDX-License-Identifier: BSL-1.0
#pragma once
// A solved problem as a plan: labels become layouts, edges whose ends differ become moves along the cheapest paths of the lattice, and
// every microsecond of the objective goes to its part.
#include <cantle/plan/plan.hpp>
#include <cantle/problem/build_problem.hpp>

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::detail {

/// Turns labels into a plan: layouts, paths and cost parts.
template <CostModel Cost>
class plan_extractor {
public:
    plan_extractor(planning_problem const& p, training_graph const& g, std::vector<mrf::label> const& labels, Cost const& cost)
        : p_(p), g_(g), labels_(labels), cost_(cost) {}
    sharding_plan run() {
        plan_.mesh = p_.mesh;
        place_nodes();
        for (std::uint32_t i = 0; i < p_.relays.values.size(); ++i)
            plan_.relays.push_back({p_.relays.values[i], plan_layout_of(layout_of(static_cast<variable_index>(g_.size()) + i, 0))});
        add_moves();
        return std::move(plan_);
    }

private:
    planning_problem const& p_;
    training_graph const& g_;
    std::vector<mrf::label> const& labels_;
    Cost const& cost_;
    sharding_plan plan_;
    std::map<layout_id, plan_layout> plan_layouts_;
    std::map<std::tuple<tensor_class_id, layout_id, layout_id>, std::uint32_t> paths_;

    layout_id layout_of(variable_index v, std::uint32_t port) const { return p_.layout_at(v, port, labels_[p_.grouping.group_of[v]]); }
    plan_layout plan_layout_of(layout_id l) {
        auto const [at, fresh] = plan_layouts_.try_emplace(l, static_cast<plan_layout>(plan_.layouts.size()));
        if (fresh) plan_.layouts.push_back(p_.layouts[l]);
        return at->second;
    }
    /// On the largest rank.
    std::int64_t local_bytes(tensor_meta const& t, layout_id l) const {
        return t.defined ? element_count(p_.layouts[l].local_shape(t.sizes)) * element_bytes(t.type) : 0;
    }
    void place_nodes() {
        for (vertex v = 0; v < g_.size(); ++v) {
            auto const& n = g_[v];
            node_placement out;
            if (n.role != node_role::computation) {
                auto const l = plan_layout_of(layout_of(v, 0));
                out.operands.assign(n.operands.size(), l);
                out.outputs.assign(n.outputs.size(), l);
            } else {
                auto const& group = p_.grouping.groups[p_.grouping.group_of[v]];
                auto const& c = p_.classes.classes[group.op_class];
                auto const s = group.strategies[labels_[p_.grouping.group_of[v]]];
                for (std::uint32_t i = 0; i < n.operands.size(); ++i) out.operands.push_back(plan_layout_of(c.strategies.operand(s, i)));
                for (std::uint32_t i = 0; i < n.outputs.size(); ++i) out.outputs.push_back(plan_layout_of(c.strategies.output(s, i)));
                out.compute = c.compute[s];
                for (auto const& [axis, what] : c.strategies.inner[s]) {
                    auto const& meta = what.on_output ? n.outputs[what.index] : g_.meta(n.operands[what.index]);
                    auto const l = what.on_output ? c.strategies.output(s, what.index) : c.strategies.operand(s, what.index);
                    std::int64_t const bytes = what.message(local_bytes(meta, l));
                    collective_call const call{what.kind, 1u << axis, bytes, bytes, 0, what.reduce};
                    out.inner.push_back({call, what.on_output, what.index, cost_.collective(call)});
                    plan_.cost.inner += out.inner.back().cost;
                }
                (n.in_phase == phase::forward ? plan_.cost.forward_compute : plan_.cost.backward_compute) += out.compute;
            }
            if (n.role == node_role::parameter) {
                plan_.memory.parameters_global += n.outputs[0].size_in_bytes().count;
                plan_.memory.parameters_local += local_bytes(n.outputs[0], layout_of(v, 0));
            }
            plan_.nodes.push_back(std::move(out));
        }
    }
    void add_moves() {
        auto const first_relay = static_cast<variable_index>(g_.size());
        for (auto const& e : p_.edges) {
            auto const from = layout_of(e.from, e.from_port), to = layout_of(e.to, e.to_port);
            if (from == to) continue;
            auto const [at, fresh] = paths_.try_emplace({e.tensor_class, from, to}, static_cast<std::uint32_t>(plan_.paths.size()));
            if (fresh) {
                redistribution_path path{plan_layout_of(from), plan_layout_of(to),
                                         p_.tables.lattice(e.tensor_class).path(p_.layouts[from], p_.layouts[to]), 0};
                for (auto const& s : path.steps) path.cost += s.cost;
                plan_.paths.push_back(std::move(path));
            }
            for (auto const& s : plan_.paths[at->second].steps) plan_.cost.moves[static_cast<std::size_t>(s.step.kind)] += s.cost;
            plan_.cost.tie_break += p_.options.tie_break;
            tensor_move m;
            m.value = e.value;
            m.path = at->second;
            if (e.from >= first_relay) m.from_relay = e.from - first_relay;
            if (e.to >= first_relay) m.to_relay = e.to - first_relay;
            else {
                m.user = e.to;
                m.operand = g_[e.to].role == node_role::computation ? e.to_port : 0;
            }
            plan_.moves.push_back(m);
        }
    }
};

}  // namespace cantle::detail
