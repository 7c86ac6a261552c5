// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/verify_rows.hpp>

#include <cantle/base/error.hpp>
#include <cantle/graph/region_op.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/rules/expand_axes.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cantle::libtorch {
namespace {

/// A cast takes any cut order from operand to output (parameters and their gradients do, DECISIONS 3).
bool is_whole_cast(op const& o, std::vector<layout> const& ports) {
    return o.name == "aten::_to_copy" && !ports[0].has_partial() &&
           std::all_of(ports.begin(), ports.end(), [&](layout const& l) { return l == ports[0]; });
}

/// visit(vertex, collectives inside) for every region op. A region has one strategy.
template <class Visit>
void for_each_region(sharding_plan const& plan, training_graph const& g, rule_registry const& rules, Visit visit) {
    layout_table table;
    axis_expansion<rule_registry> expansion(plan.mesh, rules, table);
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (n.operation.name != region_op_name && n.operation.name != region_backward_op_name) continue;
        std::vector<tensor_meta> operands;
        for (auto const& r : n.operands) operands.push_back(g.meta(r));
        op_query const q{&n.operation, operands, n.outputs};
        if (!rules.covers(q)) continue;
        auto const t = expansion.expand(q);
        if (t.size() == 0) continue;
        std::vector<inner_step> inner;
        for (auto const& [axis, what] : t.inner[0]) {
            auto const& placed = plan.nodes[v];
            auto const& meta = what.on_output ? n.outputs[what.index] : operands[what.index];
            auto const& lies = plan.at(what.on_output ? placed.outputs[what.index] : placed.operands[what.index]);
            auto const bytes = what.message(element_count(lies.local_shape(meta.sizes)) * element_bytes(meta.type));
            inner.push_back({{what.kind, 1u << axis, bytes, bytes, 0, what.reduce}, what.on_output, what.index, 0});
        }
        visit(v, std::move(inner));
    }
}

}  // namespace

void declare_collectives_of_regions(sharding_plan& plan, training_graph const& g, rule_registry const& rules) {
    for_each_region(plan, g, rules, [&](vertex v, std::vector<inner_step> inner) { plan.nodes[v].inner = std::move(inner); });
}

void refuse_undeclared_collectives(sharding_plan const& plan, training_graph const& g, rule_registry const& rules) {
    for_each_region(plan, g, rules, [&](vertex v, std::vector<inner_step> const& inner) {
        auto const& planned = plan.nodes[v].inner;
        bool same = planned.size() == inner.size();
        for (std::size_t i = 0; same && i < inner.size(); ++i)
            same = planned[i].call.kind == inner[i].call.kind && planned[i].call.axes == inner[i].call.axes &&
                   planned[i].call.bytes_before == inner[i].call.bytes_before;
        if (!same)
            throw error(error_code::bad_program, "'" + g[v].name + "' (" + g[v].operation.name + ")",
                        "the plan has other collectives inside it than its declaration gives on mesh " + plan.mesh.text(),
                        "plan this graph again");
    });
}

void refuse_what_is_no_row(sharding_plan const& plan, training_graph const& g, rule_registry const& rules) {
    layout_table table;
    axis_expansion<rule_registry> expansion(plan.mesh, rules, table,
                                             has_uneven(g, plan) ? shard_policy::uneven : shard_policy::even);
    std::map<digest, std::set<std::vector<layout>>> known;  // by op and metas: what its rule allows
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (n.role != node_role::computation) continue;
        std::vector<layout> ports;
        std::vector<tensor_meta> metas;
        stable_hasher h;
        n.operation.feed(h);
        for (std::uint32_t i = 0; i < n.operands.size(); ++i) {
            ports.push_back(plan.at(plan.nodes[v].operands[i]));
            metas.push_back(g.meta(n.operands[i]));
        }
        for (std::uint32_t i = 0; i < n.outputs.size(); ++i) {
            ports.push_back(plan.at(plan.nodes[v].outputs[i]));
            metas.push_back(n.outputs[i]);
        }
        for (auto const& m : metas) h.add(m.sizes).add(m.type).add(m.defined);
        auto const [at, fresh] = known.try_emplace(h.finish());
        if (fresh) {
            std::span<tensor_meta const> const all(metas);
            op_query const q{&n.operation, all.first(n.operands.size()), all.subspan(n.operands.size())};
            if (rules.covers(q)) {
                auto const t = expansion.expand(q);
                for (std::size_t s = 0; s < t.size(); ++s) {
                    std::vector<layout> row;
                    for (std::size_t p = 0; p < t.ports(); ++p) row.push_back(table[t.layouts[s * t.ports() + p]]);
                    at->second.insert(std::move(row));
                }
            } else {
                at->second.insert(std::vector<layout>(ports.size(), layout(plan.mesh.dims())));
            }
        }
        if (at->second.count(ports) || is_whole_cast(n.operation, ports)) continue;
        std::string text;
        for (std::size_t p = 0; p < ports.size(); ++p)
            text += (p == n.operands.size() ? " -> " : p ? ", " : "") + shape_text(metas[p].sizes) + " " + ports[p].text(plan.mesh);
        throw error(error_code::bad_rule, "'" + n.name + "' (" + n.operation.name + ")", "no row of its rule says " + text,
                    "plan again with these rules");
    }
}

}  // namespace cantle::libtorch
