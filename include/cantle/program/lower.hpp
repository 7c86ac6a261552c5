// SPDX-License-Identifier: BSL-1.0
#pragma once
// Graph + plan -> the program of one rank. Vertex by vertex, in the graph's order: first the moves that its operands need (each relay once,
// when its first user comes), then the local program of the op under the plan's layouts. What the plan priced is what runs: one transfer
// per step of every path, one all_reduce per inner collective.
#include <cantle/graph/op_traits.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/draw_numbers.hpp>
#include <cantle/program/program.hpp>
#include <cantle/program/runnable.hpp>
#include <cantle/rules/local_program.hpp>

#include <algorithm>
#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// Satisfied by `local_program local(local_view const&) const`: what a rank runs in place of an op, for every op of the rule set.
template <class R>
concept GivesLocalPrograms = requires(R const& r, local_view const& v) { { r.local(v) } -> std::convertible_to<local_program>; };

namespace detail {

template <GivesLocalPrograms Rules>
class lowering {
public:
    lowering(training_graph const& g, sharding_plan const& plan, Rules const& rules, std::int64_t rank)
        : g_(g), plan_(plan), rules_(rules), made_(g.size()), draws_(draw_numbers(g)) {
        p_.rank = rank;
        p_.mesh = plan.mesh;
        for (std::uint32_t i = 0; i < plan.relays.size(); ++i) relay_of_[plan.relays[i].value] = i;
        relayed_.assign(plan.relays.size(), none);
        move_to_relay_.assign(plan.relays.size(), nullptr);
        for (auto const& m : plan.moves) {
            if (m.to_relay != tensor_move::none) move_to_relay_[m.to_relay] = &m;
            else move_to_operand_[{m.user, m.operand}] = &m;
        }
    }
    rank_program run() {
        for (vertex v = 0; v < g_.size(); ++v) {
            at_ = v;
            auto const& n = g_[v];
            if (is_source(n.role)) lower_source(v);
            else if (is_sink(n.role)) lower_sink(v);
            else lower_op(v);
        }
        note_last_uses(p_);
        return std::move(p_);
    }

private:
    static constexpr program_value none = static_cast<program_value>(-1);
    training_graph const& g_;
    sharding_plan const& plan_;
    Rules const& rules_;
    rank_program p_;
    vertex at_ = 0;
    std::vector<std::vector<program_value>> made_;  // [vertex][output], in the producer's layout
    std::vector<std::uint64_t> draws_;              // [vertex]
    std::map<value_ref, std::uint32_t> relay_of_;
    std::vector<program_value> relayed_;            // [relay]
    std::vector<tensor_move const*> move_to_relay_;
    std::map<std::pair<vertex, std::uint32_t>, tensor_move const*> move_to_operand_;

    program_value new_value(value_info info) {
        p_.values.push_back(std::move(info));
        return static_cast<program_value>(p_.values.size() - 1);
    }
    local_piece piece(plan_layout l, tensor_meta const& meta) const {
        return piece_of(plan_.at(l), plan_.mesh, meta.sizes, p_.rank);
    }

    void lower_source(vertex v) {
        auto const& meta = g_[v].outputs[0];
        auto mine = piece(plan_.nodes[v].outputs[0], meta);
        auto const value = new_value({mine.sizes, meta.type, true});
        made_[v] = {value};
        p_.inputs.push_back({v, value, std::move(mine)});
    }
    void lower_sink(vertex v) {
        auto const value = operand(v, 0);
        made_[v] = {value};
        p_.outputs.push_back({v, value, piece(plan_.nodes[v].operands[0], g_.meta(g_[v].operands[0]))});
    }
    /// Every rank has a generator of PyTorch's own: what draws from it would give other numbers than one rank's, and copies that differ.
    void refuse_other_numbers(vertex v, local_program const& local) const {
        if (p_.mesh.device_count() == 1) return;
        for (auto const& s : local.steps())
            if (is_random(s.call) && !draws_by_index(s.call))
                throw error(error_code::bad_program, "'" + g_[v].name + "' (" + s.call.name + ")",
                            "ranks would draw other random numbers than one rank",
                            "set its dropout to 0, or write the model with a random op of docs/random.md");
    }
    bool is_fallback(std::string const& op_name) const {
        return std::any_of(plan_.fallbacks.begin(), plan_.fallbacks.end(), [&](auto const& f) { return f.name == op_name; });
    }
    /// No rule says what the op would make of pieces.
    local_program whole_on_every_rank(vertex v, local_view const& view) const {
        for (auto const* ports : {&view.operands, &view.outputs})
            for (auto const& p : *ports)
                if (p.global.defined && !p.lies->is_replicated())
                    throw error(error_code::bad_program, "'" + g_[v].name + "' (" + g_[v].operation.name + ")",
                                "no rule covers it, and it has a tensor as " + p.lies->text(plan_.mesh),
                                "plan this graph again; a plan that was edited by hand must stay one");
        local_program p(view.operands.size());
        run_whole(*view.operation, view, p);
        return p;
    }
    void lower_op(vertex v) {
        auto const& n = g_[v];
        auto const& where = plan_.nodes[v];
        local_view view{&n.operation, {}, {}, plan_.mesh.dims(), draws_[v]};
        std::vector<program_value> values;
        for (std::uint32_t i = 0; i < n.operands.size(); ++i) {
            auto const& meta = g_.meta(n.operands[i]);
            view.operands.push_back({meta, piece(where.operands[i], meta), &plan_.at(where.operands[i])});
            values.push_back(operand(v, i));
        }
        for (std::uint32_t i = 0; i < n.outputs.size(); ++i)
            view.outputs.push_back({n.outputs[i], piece(where.outputs[i], n.outputs[i]), &plan_.at(where.outputs[i])});

        auto const local = is_fallback(n.operation.name) ? whole_on_every_rank(v, view) : rules_.local(view);
        refuse_other_numbers(v, local);
        for (auto const& s : local.steps()) {
            program_step step;
            step.at = v;
            step.call = s.call;
            for (auto i : s.inputs) step.inputs.push_back(values.at(i));
            if (s.is_all_reduce()) step.move = all_reduce(s, p_.values[step.inputs[0]]);
            for (std::uint32_t o = 0; o < s.outputs; ++o) {
                values.push_back(new_value(s.is_all_reduce() ? p_.values[step.inputs[0]] : value_info{}));
                step.outputs.push_back(values.back());
            }
            p_.steps.push_back(std::move(step));
        }
        for (std::uint32_t i = 0; i < n.outputs.size(); ++i) {
            made_[v].push_back(values.at(local.results().at(i)));
            auto const& known = p_.values[made_[v][i]].sizes;
            if (known && n.outputs[i].defined && *known != view.outputs[i].sizes())
                throw error(error_code::bad_program, "'" + n.name + "' (" + n.operation.name + ")",
                            "its local program gives output " + std::to_string(i) + " as " + shape_text(*known) + ", the plan says " +
                                shape_text(view.outputs[i].sizes()),
                            "mend the op's local rule");
            p_.values[made_[v][i]] = {view.outputs[i].sizes(), n.outputs[i].type, n.outputs[i].defined};
        }
    }
    transfer all_reduce(local_step const& s, value_info const& value) const {
        transfer x;
        x.kind = collective_kind::all_reduce;
        x.axes = {static_cast<std::uint8_t>(s.axis)};
        x.reduce = s.reduce;
        x.members = plan_.mesh.size(s.axis);
        x.member = plan_.mesh.coordinate(p_.rank, s.axis);
        if (value.sizes) x.before = x.after = *value.sizes;
        x.pack = x.unpack = same(x.before);
        return x;
    }

    /// The tensor that operand `slot` of v reads, in the layout in which it reads it.
    program_value operand(vertex v, std::uint32_t slot) {
        auto const ref = g_[v].operands[slot];
        auto const at = move_to_operand_.find({v, slot});
        if (at == move_to_operand_.end()) return unmoved(ref, plan_.nodes[v].operands[slot]);
        auto const& m = *at->second;
        return moved(m.from_relay == tensor_move::none ? made_[ref.node][ref.output] : relay(m.from_relay), m, g_.meta(ref));
    }
    program_value unmoved(value_ref ref, plan_layout wanted) {
        auto const r = relay_of_.find(ref);
        bool const as_made = plan_.at(plan_.nodes[ref.node].outputs[ref.output]) == plan_.at(wanted);
        return as_made || r == relay_of_.end() ? made_[ref.node][ref.output] : relay(r->second);
    }
    program_value relay(std::uint32_t r) {
        auto& value = relayed_[r];
        if (value != none) return value;
        auto const ref = plan_.relays[r].value;
        auto const source = made_[ref.node][ref.output];
        auto const* const m = move_to_relay_[r];
        auto const result = m ? moved(source, *m, g_.meta(ref)) : source;
        return relayed_[r] = result;
    }
    program_value moved(program_value value, tensor_move const& m, tensor_meta const& meta) {
        auto const& path = plan_.paths[m.path];
        layout const* from = &plan_.at(path.from);
        for (auto const& s : path.steps) {
            program_step step;
            step.at = at_;
            step.move = transfer_of(plan_.mesh, *from, s.step, meta.sizes, p_.rank);
            step.inputs = {value};
            value = new_value({step.move.after, meta.type, true});
            step.outputs = {value};
            p_.steps.push_back(std::move(step));
            from = &s.step.to;
        }
        return value;
    }
};

}  // namespace detail

/// The program of `rank` for `plan` of `g`. Preconditions: g is valid; the plan's indices are within its tables.
/// Throws before anything else what refuse_unrunnable and refuse_unknown_rank throw (a plan of another graph, a rank that its mesh does not
/// have); bad_program for random ops that do not draw by index; and what a local rule throws for layouts that are none of its rule.
template <class Rules>
rank_program lower(training_graph const& g, sharding_plan const& plan, Rules const& rules, std::int64_t rank) {
    static_assert(GivesLocalPrograms<Rules>, "lowering needs: cantle::local_program local(cantle::local_view const&) const;");
    refuse_unknown_rank(plan, rank);
    refuse_unrunnable(g, plan);
    return detail::lowering<Rules>(g, plan, rules, rank).run();
}

/// The same for one rank of `mesh`, the ranks that are there. Throws foreign_plan where the plan was made for another mesh.
template <class Rules>
rank_program lower(training_graph const& g, sharding_plan const& plan, device_mesh const& mesh, Rules const& rules, std::int64_t rank) {
    refuse_foreign(plan, g, mesh);
    return lower(g, plan, rules, rank);
}

/// The programs of all ranks in order, checked to fit together (check.hpp). Throws as lower and check_programs do.
template <class Rules>
std::vector<rank_program> lower_all(training_graph const& g, sharding_plan const& plan, Rules const& rules) {
    static_assert(GivesLocalPrograms<Rules>, "lowering needs: cantle::local_program local(cantle::local_view const&) const;");
    refuse_unrunnable(g, plan);
    std::vector<rank_program> all;
    for (std::int64_t r = 0; r < plan.mesh.device_count(); ++r) all.push_back(detail::lowering<Rules>(g, plan, rules, r).run());
    check_programs(all);
    return all;
}

}  // namespace cantle
