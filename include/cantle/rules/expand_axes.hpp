// SPDX-License-Identifier: BSL-1.0
#pragma once
// D-axis strategies from a one-axis rule: the rule is applied axis after axis, outermost first, each time to the shapes already local to
// the outer axes, with one axis order for all operands and outputs of the op (ARCHITECTURE idea 1). For ops that neither split nor merge
// dims this is the product of the rows, pruned by divisibility; for views it is not (case E2).
#include <cantle/rules/concepts.hpp>
#include <cantle/rules/strategy.hpp>

#include <set>
#include <string>
#include <utility>

namespace cantle {

namespace detail {

inline void check_row(op_query const& q, axis_row const& row) {
    auto const fail = [&](std::string const& why) {
        return error(error_code::bad_rule, "rule of " + q.name() + ", row '" + text_of(row) + "'", why,
                     "mend the rule: one placement per operand and output, dims that exist");
    };
    if (row.operands.size() != q.operands.size())
        throw fail("it places " + std::to_string(row.operands.size()) + " operands, the op has " + std::to_string(q.operands.size()));
    if (row.outputs.size() != q.outputs.size())
        throw fail("it places " + std::to_string(row.outputs.size()) + " outputs, the op has " + std::to_string(q.outputs.size()));
    auto const check = [&](placement p, tensor_meta const& t, std::string const& which) {
        if (p.is_shard() && p.dim >= t.rank()) throw fail(which + " has no dim " + std::to_string(p.dim));
        if (p.outer < 1) throw fail(which + " has an outer factor below 1");
    };
    for (std::size_t i = 0; i < row.operands.size(); ++i) check(row.operands[i], q.operands[i], "operand " + std::to_string(i));
    for (std::size_t i = 0; i < row.outputs.size(); ++i)
        if (q.outputs[i].defined) check(row.outputs[i], q.outputs[i], "output " + std::to_string(i));
    for (auto const& c : row.inner)
        if (c.index >= (c.on_output ? row.outputs.size() : row.operands.size()))
            throw fail("an inner collective names a tensor that the op does not have");
}

template <class Rules>
class axis_expander {
public:
    axis_expander(op_query const& global, device_mesh const& mesh, Rules const& rules, layout_table& table)
        : global_(global), mesh_(mesh), rules_(rules), table_(table) {
        result_.operand_count = static_cast<std::uint32_t>(global.operands.size());
        result_.output_count = static_cast<std::uint32_t>(global.outputs.size());
    }
    strategy_table run() {
        state s;
        for (auto const& t : global_.operands) s.metas.push_back(local_start(t));
        for (auto const& t : global_.outputs) s.metas.push_back(local_start(t));
        s.layouts.assign(s.metas.size(), layout(mesh_.dims()));
        descend(0, s);
        return std::move(result_);
    }

private:
    struct state {
        std::vector<tensor_meta> metas;  // operands, then outputs, local to the axes already placed
        std::vector<layout> layouts;
        std::vector<inner_on_axis> inner;
    };
    op_query global_;
    device_mesh const& mesh_;
    Rules const& rules_;
    layout_table& table_;
    strategy_table result_;
    std::set<std::vector<layout_id>> seen_;

    static tensor_meta local_start(tensor_meta t) {
        t.strides.clear();  // strides of shards are not known before lowering; rules speak of shapes
        return t;
    }
    void descend(std::size_t axis, state const& s) {
        if (axis == mesh_.dims()) return emit(s);
        std::int64_t const n = mesh_.size(axis);
        if (n == 1) return descend(axis + 1, s);  // an axis of one rank places nothing (case B11)
        std::span<tensor_meta const> const all(s.metas);
        op_query const local{global_.operation, all.first(global_.operands.size()), all.subspan(global_.operands.size())};
        for (auto const& row : rows_on_axis(rules_, local, {&mesh_, axis})) {
            check_row(local, row);
            state next = s;
            bool fits = true;
            for (std::size_t p = 0; fits && p < next.metas.size(); ++p) {
                auto const place = p < row.operands.size() ? row.operands[p] : row.outputs[p - row.operands.size()];
                auto& meta = next.metas[p];
                if (place.is_replicate() || !meta.defined) continue;
                auto const& global = p < row.operands.size() ? global_.operands[p].sizes : global_.outputs[p - row.operands.size()].sizes;
                fits = next.layouts[p].apply(axis, n, place, global);
                if (fits && place.is_shard()) meta.sizes[place.dim] /= n;
            }
            if (!fits) continue;
            for (auto const& c : row.inner) next.inner.push_back({static_cast<std::uint32_t>(axis), c});
            descend(axis + 1, next);
        }
    }
    void emit(state const& s) {
        std::vector<layout_id> ids;
        ids.reserve(s.layouts.size());
        for (auto const& l : s.layouts) ids.push_back(table_.intern(l));
        if (!seen_.insert(ids).second) return;  // the first row wins: rules list cheaper rows first
        result_.layouts.insert(result_.layouts.end(), ids.begin(), ids.end());
        result_.inner.push_back(s.inner);
    }
};

}  // namespace detail

/// All strategies of one op on `mesh`. `global`: global metas. Strategies come in the order of the rows, outermost axis slowest; equal ones
/// are dropped. Throws bad_rule. Precondition: rules.covers(global).
template <RuleSet Rules>
strategy_table expand_axes(op_query const& global, device_mesh const& mesh, Rules const& rules, layout_table& table) {
    return detail::axis_expander<Rules>(global, mesh, rules, table).run();
}

}  // namespace cantle
