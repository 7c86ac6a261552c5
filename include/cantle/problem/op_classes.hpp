// SPDX-License-Identifier: BSL-1.0
#pragma once
// Op classes: vertices with the same op, static arguments, metas and reachable kinds of Partial share one strategy table and one vector of
// prices, so 32 equal layers cost one. Sources and sinks have a class too (by role and meta); their labels are layouts, not strategies.
#include <cantle/base/control.hpp>
#include <cantle/cost/concepts.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/rules/expand_axes.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace cantle {

/// Strategies of a class with their prices in microseconds.
struct op_class {
    strategy_table strategies;            ///< empty for sources and sinks
    std::vector<double> compute;          ///< [strategy] local computation
    std::vector<double> communication;    ///< [strategy] inner collectives
};

struct op_class_table {
    std::vector<op_class> classes;
    std::vector<std::uint32_t> class_of;  ///< [vertex]
};

/// Throws op_without_rule naming all ops without a rule at once: counts, a shape and a module path of each.
template <RuleSet Rules>
void require_rules(training_graph const& g, Rules const& rules);

/// Partial kinds as bits, so that rows on kinds that nothing upstream can yield are dropped before solving.
using partial_kinds = std::uint8_t;
inline partial_kinds partial_kinds_of(layout const& l) {
    partial_kinds k = 0;
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (auto const p = l.on(a); p.is_partial()) k = static_cast<partial_kinds>(k | 1u << static_cast<unsigned>(p.reduce));
    return k;
}

namespace detail {

/// Metas of an op local to a strategy.
inline std::vector<tensor_meta> local_metas(std::vector<tensor_meta> const& global, strategy_table const& t, std::size_t s,
                                            layout_table const& layouts) {
    auto local = global;
    for (std::size_t p = 0; p < local.size(); ++p) {
        local[p].sizes = layouts[t.layouts[s * t.ports() + p]].local_shape(local[p].sizes);
        local[p].strides.clear();
    }
    return local;
}

inline double checked_price(double price, std::string const& what) {
    if (!std::isfinite(price) || price < 0)
        throw error(error_code::bad_cost, what, "the cost model returned " + std::to_string(price),
                    "return finite microseconds of at least 0");
    return price;
}

/// Drop strategies that want a kind of Partial which their operands cannot have.
inline strategy_table drop_unreachable(strategy_table t, layout_table const& layouts, std::vector<partial_kinds> const& operand_kinds) {
    strategy_table kept{t.operand_count, t.output_count, {}, {}};
    for (std::size_t s = 0; s < t.size(); ++s) {
        bool reachable = true;
        for (std::size_t i = 0; i < t.operand_count; ++i)
            reachable = reachable && (partial_kinds_of(layouts[t.operand(s, i)]) & ~operand_kinds[i]) == 0;
        if (!reachable) continue;
        auto const row = t.layouts.begin() + static_cast<std::ptrdiff_t>(s * t.ports());
        kept.layouts.insert(kept.layouts.end(), row, row + static_cast<std::ptrdiff_t>(t.ports()));
        kept.inner.push_back(std::move(t.inner[s]));
    }
    return kept;
}

template <class Cost>
op_class price_class(op const& operation, std::vector<tensor_meta> const& metas, strategy_table strategies, layout_table const& layouts,
                     Cost const& cost) {
    op_class c{std::move(strategies), {}, {}};
    auto const& t = c.strategies;
    for (std::size_t s = 0; s < t.size(); ++s) {
        auto const local = local_metas(metas, t, s, layouts);
        std::span<tensor_meta const> const all(local);
        op_query const q{&operation, all.first(t.operand_count), all.subspan(t.operand_count)};
        c.compute.push_back(checked_price(cost.compute(q), "op " + operation.name));
        double communication = 0;
        for (auto const& [axis, inner] : t.inner[s]) {
            std::int64_t const bytes = local[inner.on_output ? t.operand_count + inner.index : inner.index].size_in_bytes().count;
            communication += checked_price(cost.collective({inner.kind, 1u << axis, bytes, bytes, 0, inner.reduce}),
                                           "inner collective of " + operation.name);
        }
        c.communication.push_back(communication);
    }
    return c;
}

}  // namespace detail

/// Intern all vertices. `extra(v)`: for a vertex that must take the layouts of a given list unchanged from operand to output (the cast of a
/// parameter, which may lie in any cut order), that list; else nullptr.
template <RuleSet Rules, CostModel Cost, class Extra>
op_class_table intern_op_classes(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                 layout_table& layouts, Extra extra) {
    require_rules(g, rules);
    op_class_table result;
    result.class_of.resize(g.size());
    std::map<digest, std::uint32_t> known;
    std::map<digest, strategy_table> expanded;  // before unreachable kinds are dropped
    std::vector<std::vector<partial_kinds>> kinds(g.size());  // [vertex][output]
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        std::vector<tensor_meta> metas;
        std::vector<partial_kinds> operand_kinds;
        for (auto const& r : n.operands) {
            metas.push_back(g.meta(r));
            operand_kinds.push_back(kinds[r.node][r.output]);
        }
        std::size_t const operands = metas.size();
        metas.insert(metas.end(), n.outputs.begin(), n.outputs.end());
        kinds[v].assign(n.outputs.size(), 0);

        stable_hasher h;
        n.operation.feed(h);
        h.add(n.role).add(operands);
        for (auto const& m : metas) h.add(m.sizes).add(m.type).add(m.defined);
        auto const op_key = h.finish();
        h.add(operand_kinds);
        std::vector<layout_id> const* const carried = extra(v);
        if (carried) h.add(*carried);
        auto const [at, fresh] = known.try_emplace(h.finish(), static_cast<std::uint32_t>(result.classes.size()));
        result.class_of[v] = at->second;
        if (fresh && n.role != node_role::computation) result.classes.emplace_back();
        if (fresh && n.role == node_role::computation) {
            strategy_table table;
            if (carried) {
                table.operand_count = table.output_count = 1;
                for (auto l : *carried) {
                    table.layouts.insert(table.layouts.end(), {l, l});
                    table.inner.emplace_back();
                }
            } else {
                auto& whole = expanded[op_key];
                if (whole.size() == 0) {
                    std::span<tensor_meta const> const all(metas);
                    whole = expand_axes(op_query{&n.operation, all.first(operands), all.subspan(operands)}, mesh, rules, layouts);
                }
                table = detail::drop_unreachable(whole, layouts, operand_kinds);
            }
            if (table.size() == 0)
                throw error(error_code::no_strategy, "op " + n.operation.name + " ('" + n.name + "')", "its rule gives no applicable row",
                            "declare at least the all-Replicate row");
            result.classes.push_back(detail::price_class(n.operation, metas, std::move(table), layouts, cost));
        }
        if (n.role == node_role::computation) {
            auto const& t = result.classes[at->second].strategies;
            for (std::size_t s = 0; s < t.size(); ++s)
                for (std::size_t o = 0; o < t.output_count; ++o) kinds[v][o] |= partial_kinds_of(layouts[t.output(s, o)]);
        }
    }
    return result;
}

template <RuleSet Rules>
void require_rules(training_graph const& g, Rules const& rules) {
    struct missing { std::size_t count = 0; std::string shapes, where; };
    std::map<std::string, missing> all;
    for (vertex v = 0; v < g.size(); ++v) {
        if (g[v].role != node_role::computation) continue;
        std::vector<tensor_meta> operands;
        for (auto const& r : g[v].operands) operands.push_back(g.meta(r));
        if (rules.covers(op_query{&g[v].operation, operands, g[v].outputs})) continue;
        auto& m = all[g[v].operation.name];
        if (m.count++ == 0) {
            for (auto const& t : operands) m.shapes += (m.shapes.empty() ? "" : ", ") + shape_text(t.sizes);
            m.where = g[v].name;
        }
    }
    if (all.empty()) return;
    std::string subject, problem;
    for (auto const& [name, m] : all) {
        subject += (subject.empty() ? "op " : ", ") + name;
        problem += (problem.empty() ? "" : "; ") + name + ": " + std::to_string(m.count) + " times, first at '" + m.where + "' on (" +
                   m.shapes + ")";
    }
    throw error(error_code::op_without_rule, subject, "no rule covers it: " + problem,
                "add one: rules.add(\"" + all.begin()->first +
                    "\", [](cantle::op_query const& q, std::int64_t n, cantle::row_list& rows) { ... })");
}

}  // namespace cantle
