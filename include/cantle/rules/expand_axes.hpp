// SPDX-License-Identifier: BSL-1.0
#pragma once
// D-axis strategies from a one-axis rule: the rule is applied axis after axis, outermost first, each time to the shapes already local to
// the outer axes, with one axis order for all operands and outputs of the op (ARCHITECTURE idea 1). For ops that neither split nor merge
// dims this is the product of the rows, pruned by divisibility; for views it is not (case E2).
//
// What is asked once: a rule, per local shapes and axis size; a layout, per shape and placement (layout_walk.hpp). What no operand can be
// (kinds of Partial that nothing upstream yields) is cut off at the first axis that asks for it, not among the finished strategies.
//
// Under the uneven policy a row may cut dims that the axis does not divide. Rules speak of equal pieces; a row stays true for unequal ones
// where every rank works on the same interval of one index range. So a cut that leaves a dim uneven is taken only where
//   - the row is not even_only, and all its shards are plain, of dims of equal size that the same axes cut;
//   - it yields no Partial(avg): the mean of means of unequal pieces is not the mean;
//   - no rank's piece is empty: there is no maximum of nothing, and kernels crash or change their mind on it (the oracle saw both).
#include <cantle/rules/check_row.hpp>
#include <cantle/rules/concepts.hpp>
#include <cantle/rules/layout_walk.hpp>
#include <cantle/rules/strategy.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// Expands the ops of one problem. Layouts walked for one op serve all others.
template <RuleSet Rules>
class axis_expansion {
public:
    axis_expansion(device_mesh mesh, Rules const& rules, layout_table& table, shard_policy policy = shard_policy::even)
        : mesh_(std::move(mesh)), rules_(rules), table_(table), policy_(policy) {
        for (std::size_t a = 0; a < mesh_.dims(); ++a)
            if (mesh_.size(a) > 1) axes_.push_back(a);  // an axis of one rank places nothing (case B11)
    }

    /// All strategies of one op, given with global metas. Strategies come in the order of the rows, outermost axis slowest; of those that
    /// place everything alike the first is kept. `operand_kinds`: what kinds of Partial each operand can have; nullptr: any.
    /// Throws bad_rule. Precondition: rules.covers(global).
    strategy_table expand(op_query const& global, std::vector<partial_kinds> const* operand_kinds = nullptr) {
        expander e(*this, global, operand_kinds);
        return e.run();
    }

private:
    using node_id = detail::layout_walk::node_id;
    device_mesh mesh_;
    Rules const& rules_;
    layout_table& table_;
    shard_policy policy_;
    std::vector<std::size_t> axes_;  // of more than one rank
    std::map<shape, std::unique_ptr<detail::layout_walk>> walks_;

    detail::layout_walk& walk_of(shape const& global) {
        auto& w = walks_[global];
        if (!w) w = std::make_unique<detail::layout_walk>(global, mesh_.dims(), policy_);
        return *w;
    }

    class expander {
    public:
        expander(axis_expansion& all, op_query const& global, std::vector<partial_kinds> const* operand_kinds)
            : all_(all), operation_(global.operation), operands_(global.operands.size()), seen_(operands_ + global.outputs.size()) {
            metas_.assign(global.operands.begin(), global.operands.end());
            metas_.insert(metas_.end(), global.outputs.begin(), global.outputs.end());
            for (std::size_t p = 0; p < metas_.size(); ++p) {
                metas_[p].strides.clear();  // strides of shards are not known before lowering; rules speak of shapes
                walks_.push_back(&all_.walk_of(metas_[p].sizes));
                kinds_.push_back(operand_kinds && p < operands_ ? (*operand_kinds)[p] : every_partial_kind);
            }
            result_.operand_count = static_cast<std::uint32_t>(operands_);
            result_.output_count = static_cast<std::uint32_t>(global.outputs.size());
        }
        strategy_table run() {
            // One row of nodes per axis: the state after the axes in front of it.
            at_.assign(all_.axes_.size() + 1, std::vector<node_id>(metas_.size(), 0));
            descend(0);
            return std::move(result_);
        }

    private:
        struct placed {
            std::uint32_t port;
            placement place;
            bool operator==(placed const&) const = default;
        };
        struct compiled_row {
            std::vector<placed> moves;               // ports that are not Replicate
            std::vector<inner_collective> inner;
            bool even_only = false, averages = false;
            bool operator==(compiled_row const&) const = default;
        };
        axis_expansion& all_;
        op const* operation_;
        std::size_t operands_;
        std::vector<tensor_meta> metas_;             // operands, then outputs
        std::vector<detail::layout_walk*> walks_;    // [port]
        std::vector<partial_kinds> kinds_;           // [port]
        std::map<std::vector<std::uint32_t>, std::vector<compiled_row>> rows_;  // by axis and local shapes
        std::vector<std::vector<node_id>> at_;
        std::vector<inner_on_axis> inner_;
        std::vector<std::uint32_t> key_, ids_;
        row_index seen_;
        strategy_table result_;

        /// The rows for the state `now` on an axis, each checked, without those on kinds of Partial that no operand has.
        std::vector<compiled_row> const& rows_at(std::vector<node_id> const& now, axis_context const& axis) {
            key_.assign(1, rows_key(all_.rules_, *operation_, axis));
            for (std::size_t p = 0; p < now.size(); ++p) key_.push_back(walks_[p]->at(now[p]).local);
            auto const [entry, fresh] = rows_.try_emplace(key_);
            if (!fresh) return entry->second;
            auto local = metas_;
            for (std::size_t p = 0; p < now.size(); ++p) local[p].sizes = walks_[p]->local(now[p]);
            std::span<tensor_meta const> const view(local);
            op_query const q{operation_, view.first(operands_), view.subspan(operands_)};
            for (auto const& row : rows_on_axis(all_.rules_, q, axis)) {
                check_row(q, row);
                auto c = compile(row);
                // A row listed twice would be walked twice on every axis.
                if (c && std::find(entry->second.begin(), entry->second.end(), *c) == entry->second.end())
                    entry->second.push_back(std::move(*c));
            }
            return entry->second;
        }
        std::optional<compiled_row> compile(axis_row const& row) const {
            compiled_row c;
            c.even_only = row.even_only;
            for (std::size_t p = 0; p < metas_.size(); ++p) {
                bool const operand = p < operands_;
                auto const place = operand ? row.operands[p] : row.outputs[p - operands_];
                if (place.is_replicate() || !metas_[p].defined) continue;
                if (place.is_partial()) {
                    if (!(kinds_[p] >> static_cast<unsigned>(place.reduce) & 1u)) return std::nullopt;
                    c.averages = c.averages || (!operand && place.reduce == reduction::avg);
                }
                c.moves.push_back({static_cast<std::uint32_t>(p), place});
            }
            for (auto const& i : row.inner) c.averages = c.averages || i.reduce == reduction::avg;
            c.inner = row.inner;
            return c;
        }
        void descend(std::size_t depth) {
            if (depth == all_.axes_.size()) return emit(at_[depth]);
            std::size_t const axis = all_.axes_[depth];
            std::int64_t const n = all_.mesh_.size(axis);
            // A reference into a map: it stays valid while deeper axes add to the map.
            for (auto const& row : rows_at(at_[depth], {&all_.mesh_, axis})) {
                auto& next = at_[depth + 1];
                next = at_[depth];
                bool fits = true;
                for (auto const& m : row.moves) {
                    next[m.port] = walks_[m.port]->step(next[m.port], axis, n, m.place);
                    if (next[m.port] == detail::layout_walk::dead) {
                        fits = false;
                        break;
                    }
                }
                if (!fits || (all_.policy_ == shard_policy::uneven && !true_when_uneven(row, next))) continue;
                std::size_t const before = inner_.size();
                for (auto const& c : row.inner) inner_.push_back({static_cast<std::uint32_t>(axis), c});
                descend(depth + 1);
                inner_.resize(before);
            }
        }
        /// See the top of this file.
        bool true_when_uneven(compiled_row const& row, std::vector<node_id> const& next) const {
            bool uneven = false, empty = false, alike = true;
            std::int64_t size = -1;
            std::uint32_t axes = 0;
            for (auto const& m : row.moves) {
                if (!m.place.is_shard()) continue;
                auto const& node = walks_[m.port]->at(next[m.port]);
                auto const cut = axes_cutting(node.lies, m.place.dim);
                auto const global = walks_[m.port]->global()[m.place.dim];
                if (size < 0) {
                    size = global;
                    axes = cut;
                } else alike = alike && size == global && axes == cut;
                alike = alike && m.place.outer == 1;
                uneven = uneven || (node.uneven >> m.place.dim & 1u);
                empty = empty || node.empty_pieces;
            }
            if (!uneven) return true;
            return alike && !row.even_only && !row.averages && !empty;
        }
        void emit(std::vector<node_id> const& nodes) {
            ids_.clear();
            for (std::size_t p = 0; p < nodes.size(); ++p) ids_.push_back(walks_[p]->id_of(nodes[p], all_.table_));
            bool fresh = false;
            seen_.find_or_append(result_.layouts, ids_, fresh);
            if (fresh) result_.inner.push_back(inner_);  // else the first row wins: rules list cheaper rows first
        }
    };
};

/// All strategies of one op on `mesh` (see axis_expansion::expand). Throws bad_rule. Precondition: rules.covers(global).
template <RuleSet Rules>
strategy_table expand_axes(op_query const& global, device_mesh const& mesh, Rules const& rules, layout_table& table,
                           shard_policy policy = shard_policy::even) {
    return axis_expansion<Rules>(mesh, rules, table, policy).expand(global);
}

}  // namespace cantle
