// SPDX-License-Identifier: BSL-1.0
#pragma once
// Groups: cluster copies and paired tensors take one decision (union-find). Pairing equates layouts, not strategy indices (DECISIONS 15):
// the gradient of a parameter or input lies as that tensor does, the tangent of an output as the output does.
#include <cantle/problem/boundary.hpp>
#include <cantle/problem/decisions.hpp>
#include <cantle/problem/identical_regions.hpp>
#include <cantle/problem/union_find.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// pin_of[v]: index of the last pin whose pattern matches v's name, or -1. Throws unknown_tensor for a pin that matches nothing.
inline std::vector<std::int32_t> match_pins(training_graph const& g, boundary const& b) {
    std::vector<std::int32_t> pin_of(g.size(), -1);
    for (std::size_t i = 0; i < b.pins.size(); ++i) {
        bool any = false;
        for (vertex v = 0; v < g.size(); ++v) {
            bool hit = matches(b.pins[i].tensor, g[v].name);
            for (auto const& other : g[v].also_named) hit = hit || matches(b.pins[i].tensor, other);
            if (!hit) continue;
            any = true;
            pin_of[v] = static_cast<std::int32_t>(i);
        }
        if (!any)
            throw error(error_code::unknown_tensor, "pin '" + b.pins[i].tensor + "=" + b.pins[i].layout + "'",
                        "no tensor of the graph has that name", "use a name of the graph; * stands for any text");
    }
    return pin_of;
}

/// Layouts of every source and sink: boundary, then pins.
inline std::vector<std::vector<layout_id>> boundary_domains(training_graph const& g, device_mesh const& mesh, boundary const& b,
                                                            std::vector<std::int32_t> const& pin_of, layout_table& layouts,
                                                            shard_policy policy = shard_policy::even) {
    check_boundary(mesh, b);
    std::uint32_t replica = 0;
    for (auto const& name : b.replica_axes) replica |= 1u << mesh.find(name).value;
    std::vector<std::vector<layout_id>> domains(g.size());
    std::map<std::pair<node_role, shape>, std::vector<layout_id>> known;  // nothing but these decides, pins aside
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (n.role == node_role::computation) continue;
        if (pin_of[v] < 0) {
            auto const [at, fresh] = known.try_emplace({n.role, n.outputs[0].sizes});
            if (fresh)
                for (auto const& l : boundary_layouts(n, mesh, b, replica, policy)) at->second.push_back(layouts.intern(l));
            domains[v] = at->second;
            continue;
        }
        auto const wanted = detail::parse_at_boundary(mesh, b.pins[static_cast<std::size_t>(pin_of[v])].layout, "pin of '" + n.name + "'");
        if (n.role == node_role::loss && !wanted.is_replicated()) {
            detail::require_dims(mesh, wanted, n.outputs[0], n.name);
            throw error(error_code::unsatisfiable_constraint, "pin of '" + n.name + "' to " + wanted.text(mesh), "a loss is Replicate",
                        "pin the tensor that it is made of");
        }
        for (auto const& l : detail::wanted_layout(mesh, wanted, n.outputs[0], n.name, policy)) domains[v].push_back(layouts.intern(l));
    }
    return domains;
}

/// True for what lies as another tensor does: the gradient of a parameter or input, the tangent of an output.
inline bool is_paired(graph_node const& n) { return n.of && (n.role == node_role::gradient || n.role == node_role::tangent); }

namespace detail {

/// The layouts that a relay may take: whatever its producer yields and its users want. Sorted.
inline std::vector<std::vector<layout_id>> relay_domains(training_graph const& g, relay_table const& relays, op_class_table const& classes,
                                                         std::vector<std::vector<layout_id>> const& domains,
                                                         std::vector<flow_edge> const& edges) {
    std::vector<std::vector<layout_id>> result(relays.values.size());
    auto const first_relay = static_cast<variable_index>(g.size());
    auto const column = [&](variable_index v, std::uint32_t port) {
        return g[v].role == node_role::computation ? classes.classes[classes.class_of[v]].strategies.column(port) : domains[v];
    };
    for (auto const& e : edges) {
        std::vector<layout_id>* into = nullptr;
        std::vector<layout_id> more;
        if (e.to >= first_relay) {
            into = &result[e.to - first_relay];
            more = column(e.from, e.from_port);
        } else if (e.from >= first_relay) {
            into = &result[e.from - first_relay];
            more = column(e.to, e.to_port);
        } else continue;
        std::sort(more.begin(), more.end());
        more.erase(std::unique(more.begin(), more.end()), more.end());
        std::vector<layout_id> both;
        std::set_union(into->begin(), into->end(), more.begin(), more.end(), std::back_inserter(both));
        *into = std::move(both);
    }
    return result;
}

/// Keep the strategies whose first output lies as the pin says. Throws unsatisfiable_constraint listing what there is.
inline void apply_strategy_pin(decision_group& group, graph_node const& n, layout const& wanted, pin const& p, op_class const& c,
                               layout_table const& layouts, device_mesh const& mesh) {
    std::vector<layout_id> offered;
    std::vector<std::uint32_t> kept;
    for (auto s : group.strategies) {
        auto const l = c.strategies.output(s, 0);
        if (layouts[l] == wanted) kept.push_back(s);
        else if (std::find(offered.begin(), offered.end(), l) == offered.end()) offered.push_back(l);
    }
    if (kept.empty()) {
        std::string list;
        for (auto l : offered) list += (list.empty() ? "" : " | ") + layouts[l].text(mesh);
        throw error(error_code::unsatisfiable_constraint, "pin '" + p.tensor + "=" + p.layout + "' on '" + n.name + "'",
                    "no strategy of " + n.operation.name + " has that output layout", "choose one of: " + list);
    }
    group.strategies = std::move(kept);
}

/// Vertices with each relay right behind its producer. Groups are numbered in this order, because TRW-S sends what it learns along chains
/// of a topological order: with all relays at the end it takes twice as many sweeps and more.
inline std::vector<variable_index> in_topological_order(relay_table const& relays, variable_index vertices) {
    std::vector<variable_index> order;
    std::uint32_t next = 0;  // relays are numbered by their producers
    for (variable_index v = 0; v < vertices; ++v) {
        order.push_back(v);
        while (next < relays.values.size() && relays.values[next].node == v) order.push_back(vertices + next++);
    }
    return order;
}

}  // namespace detail

/// All groups and the group of every variable.
struct grouping {
    std::vector<decision_group> groups;
    std::vector<std::uint32_t> group_of;  ///< [variable]
    std::size_t copies = 0;               ///< vertices that share the decision of an earlier one
};

inline grouping form_groups(training_graph const& g, device_mesh const& mesh, boundary const& b, bool clustering, relay_table const& relays,
                            op_class_table const& classes, std::vector<std::vector<layout_id>> const& domains,
                            std::vector<flow_edge> const& edges, std::vector<std::int32_t> const& pin_of, layout_table const& layouts) {
    auto const first_relay = static_cast<variable_index>(g.size());
    auto const relay_layouts = detail::relay_domains(g, relays, classes, domains, edges);
    union_find sets(g.size() + relays.values.size());
    grouping result;
    if (clustering) {
        auto const root = identical_regions(g, classes.class_of);
        // Copies must be constrained alike, and so must what lies as they do: else a pin of one parameter would reach the gradients of its
        // copies and through them the copies.
        std::vector<vertex> partner(g.size());
        for (vertex v = 0; v < g.size(); ++v) partner[v] = v;
        for (vertex v = 0; v < g.size(); ++v)
            if (is_paired(g[v])) {
                partner[v] = *g[v].of;
                partner[*g[v].of] = v;
            }
        auto const alike = [&](vertex a, vertex b) { return pin_of[a] == pin_of[b] && domains[a] == domains[b]; };
        for (vertex v = 0; v < g.size(); ++v)
            if (root[v] != v && alike(v, root[v]) && alike(partner[v], partner[root[v]])) {
                sets.unite(v, root[v]);
                ++result.copies;
            }
        // Relays of matching outputs with matching users.
        std::vector<std::vector<std::uint32_t>> signature(relays.values.size());
        for (std::size_t i = 0; i < signature.size(); ++i) signature[i] = {sets.find(relays.values[i].node), relays.values[i].output};
        for (auto const& e : edges)
            if (e.from >= first_relay) {
                auto& s = signature[e.from - first_relay];
                s.push_back(sets.find(e.to));
                s.push_back(e.to_port);
            }
        std::map<std::vector<std::uint32_t>, std::uint32_t> first;
        for (std::uint32_t i = 0; i < signature.size(); ++i) {
            auto const f = first.try_emplace(signature[i], i).first->second;
            if (f != i && relay_layouts[f] == relay_layouts[i]) sets.unite(first_relay + f, first_relay + i);
        }
    }
    for (vertex v = 0; v < g.size(); ++v)
        if (is_paired(g[v])) sets.unite(v, *g[v].of);

    result.group_of.resize(g.size() + relays.values.size());
    std::vector<std::uint32_t> group_at(result.group_of.size(), relay_table::none);
    for (variable_index const v : detail::in_topological_order(relays, first_relay)) {
        auto const r = sets.find(v);
        bool const fresh = group_at[r] == relay_table::none;
        if (fresh) {
            group_at[r] = static_cast<std::uint32_t>(result.groups.size());
            result.groups.emplace_back();
        }
        result.group_of[v] = group_at[r];
        auto& group = result.groups[group_at[r]];
        group.members.push_back(v);
        if (v < first_relay && g[v].role == node_role::computation) {
            auto const& c = classes.classes[classes.class_of[v]];
            if (fresh) {
                group.of_strategies = true;
                group.op_class = classes.class_of[v];
                for (std::uint32_t s = 0; s < c.strategies.size(); ++s) group.strategies.push_back(s);
                if (pin_of[v] >= 0) {
                    auto const& p = b.pins[static_cast<std::size_t>(pin_of[v])];
                    auto const wanted = layout::parse(mesh, p.layout);
                    if (!g[v].outputs.empty()) detail::require_dims(mesh, wanted, g[v].outputs[0], g[v].name);
                    detail::apply_strategy_pin(group, g[v], wanted, p, c, layouts, mesh);
                }
            }
            continue;
        }
        auto own = v < first_relay ? domains[v] : relay_layouts[v - first_relay];
        std::sort(own.begin(), own.end());
        if (fresh) {
            group.layouts = std::move(own);
            continue;
        }
        std::vector<layout_id> both;
        std::set_intersection(group.layouts.begin(), group.layouts.end(), own.begin(), own.end(), std::back_inserter(both));
        if (both.empty()) {
            auto const first_member = group.members.front();
            throw error(error_code::unsatisfiable_constraint,
                        "tensors '" + (first_member < first_relay ? g[first_member].name : std::string("relay")) + "' and '" +
                            (v < first_relay ? g[v].name : std::string("relay")) + "'",
                        "they must lie alike, and their constraints share no layout", "loosen the pin or boundary of one of them");
        }
        group.layouts = std::move(both);
    }
    return result;
}

}  // namespace cantle
