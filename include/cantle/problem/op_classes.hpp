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
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle {

/// Strategies of a class with their prices in microseconds.
struct op_class {
    strategy_table strategies;            ///< empty for sources and sinks
    std::vector<double> compute;          ///< [strategy] local computation
    std::vector<double> communication;    ///< [strategy] inner collectives
    std::vector<partial_kinds> kinds;     ///< [output] kinds of Partial that some strategy yields
};

struct op_class_table {
    std::vector<op_class> classes;
    std::vector<std::uint32_t> class_of;  ///< [vertex]
};

namespace detail {

inline double checked_price(double price, std::string const& what) {
    if (!std::isfinite(price) || price < 0)
        throw error(error_code::bad_cost, what, "the cost model returned " + std::to_string(price),
                    "return finite microseconds of at least 0");
    return price;
}

/// Prices of all strategies. Strategies with equal local shapes cost the same: the model is asked once for them.
template <class Cost>
op_class price_class(op const& operation, std::vector<tensor_meta> const& metas, strategy_table strategies, layout_table const& layouts,
                     Cost const& cost) {
    op_class c{std::move(strategies), {}, {}, {}};
    auto const& t = c.strategies;
    std::size_t const ports = t.ports();
    constexpr auto none = static_cast<std::uint32_t>(-1);
    std::vector<shape> locals;
    std::map<shape, std::uint32_t> local_of;
    std::map<shape, std::vector<std::uint32_t>> by_layout;  // global shape -> [layout] -> index into locals
    std::vector<std::vector<std::uint32_t>*> local_at;      // [port]
    for (auto const& m : metas) local_at.push_back(&by_layout.try_emplace(m.sizes, layouts.size(), none).first->second);

    std::vector<std::uint32_t> known, key(ports);
    row_index classes(ports);
    std::vector<double> price;                               // [class of equal local shapes]
    std::map<std::tuple<collective_kind, reduction, std::uint32_t, std::int64_t>, double> inner_price;
    c.compute.reserve(t.size());
    c.communication.reserve(t.size());
    auto local = metas;
    for (auto& m : local) m.strides.clear();
    for (std::size_t s = 0; s < t.size(); ++s) {
        for (std::size_t p = 0; p < ports; ++p) {
            auto& at = (*local_at[p])[t.layouts[s * ports + p]];
            if (at == none) {
                auto sizes = layouts[t.layouts[s * ports + p]].local_shape(metas[p].sizes);
                auto const [place, fresh] = local_of.try_emplace(sizes, static_cast<std::uint32_t>(locals.size()));
                if (fresh) locals.push_back(std::move(sizes));
                at = place->second;
            }
            key[p] = at;
        }
        bool fresh = false;
        auto const which = classes.find_or_append(known, key, fresh);
        if (fresh) {
            for (std::size_t p = 0; p < ports; ++p) local[p].sizes = locals[key[p]];
            std::span<tensor_meta const> const all(local);
            op_query const q{&operation, all.first(t.operand_count), all.subspan(t.operand_count)};
            price.push_back(checked_price(cost.compute(q), "op " + operation.name));
        }
        c.compute.push_back(price[which]);
        double communication = 0;
        for (auto const& [axis, inner] : t.inner[s]) {
            std::size_t const p = inner.on_output ? t.operand_count + inner.index : inner.index;
            std::int64_t const bytes =
                inner.message(metas[p].defined ? element_count(locals[key[p]]) * element_bytes(metas[p].type) : 0);
            auto const [at, unknown] = inner_price.try_emplace({inner.kind, inner.reduce, axis, bytes}, 0.0);
            if (unknown)
                at->second = checked_price(cost.collective({inner.kind, 1u << axis, bytes, bytes, 0, inner.reduce}),
                                           "inner collective of " + operation.name);
            communication += at->second;
        }
        c.communication.push_back(communication);
    }
    return c;
}

/// What kinds of Partial each output can have.
inline std::vector<partial_kinds> output_kinds(strategy_table const& t, std::vector<partial_kinds> const& kinds_of_layout) {
    std::vector<partial_kinds> kinds(t.output_count, 0);
    for (std::size_t s = 0; s < t.size(); ++s)
        for (std::size_t o = 0; o < t.output_count; ++o)
            kinds[o] = static_cast<partial_kinds>(kinds[o] | kinds_of_layout[t.output(s, o)]);
    return kinds;
}

}  // namespace detail

/// Intern all vertices. `extra(v)`: for a vertex that must take the layouts of a given list unchanged from operand to output (the cast of a
/// parameter, which may lie in any cut order), that list; else nullptr. Copies of a class cost a hash of their op and metas, no more.
/// Precondition: rules cover all ops (require_rules).
template <RuleSet Rules, CostModel Cost, class Extra>
op_class_table intern_op_classes(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                 layout_table& layouts, Extra extra, shard_policy policy = shard_policy::even) {
    op_class_table result;
    result.class_of.resize(g.size());
    std::map<digest, std::uint32_t> known;
    axis_expansion<Rules> expansion(mesh, rules, layouts, policy);
    std::vector<partial_kinds> kinds_of_layout;  // [layout]
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        std::vector<partial_kinds> operand_kinds;
        stable_hasher h;
        n.operation.feed(h);
        h.add(n.role).add(n.operands.size());
        for (auto const& r : n.operands) {
            auto const& m = g.meta(r);
            h.add(m.sizes).add(m.type).add(m.defined);
            auto const& from = result.classes[result.class_of[r.node]].kinds;
            operand_kinds.push_back(from.empty() ? partial_kinds{0} : from[r.output]);
        }
        for (auto const& m : n.outputs) h.add(m.sizes).add(m.type).add(m.defined);
        h.add(operand_kinds);
        std::vector<layout_id> const* const carried = extra(v);
        if (carried) h.add(*carried);
        auto const [at, fresh] = known.try_emplace(h.finish(), static_cast<std::uint32_t>(result.classes.size()));
        result.class_of[v] = at->second;
        if (!fresh) continue;
        if (n.role != node_role::computation) {
            result.classes.emplace_back();
            continue;
        }
        std::vector<tensor_meta> metas;
        for (auto const& r : n.operands) metas.push_back(g.meta(r));
        metas.insert(metas.end(), n.outputs.begin(), n.outputs.end());
        strategy_table table;
        if (carried) {
            table.operand_count = table.output_count = 1;
            for (auto l : *carried) {
                table.layouts.insert(table.layouts.end(), {l, l});
                table.inner.emplace_back();
            }
        } else {
            std::span<tensor_meta const> const all(metas);
            op_query const q{&n.operation, all.first(n.operands.size()), all.subspan(n.operands.size())};
            table = expansion.expand(q, &operand_kinds);
        }
        if (table.size() == 0)
            throw error(error_code::no_strategy, "op " + n.operation.name + " ('" + n.name + "')", "its rule gives no applicable row",
                        "declare at least the all-Replicate row");
        result.classes.push_back(detail::price_class(n.operation, metas, std::move(table), layouts, cost));
        while (kinds_of_layout.size() < layouts.size())
            kinds_of_layout.push_back(partial_kinds_of(layouts[static_cast<layout_id>(kinds_of_layout.size())]));
        result.classes.back().kinds = detail::output_kinds(result.classes.back().strategies, kinds_of_layout);
    }
    return result;
}

}  // namespace cantle
