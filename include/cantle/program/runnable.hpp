// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether a plan can run at all, asked before the first step of any rank: it belongs to the graph, its layouts fit their tensors, no op
// works on an empty piece, every tensor is brought to where it is read, by steps that lead from layout to layout and move what was priced.
// A plan that was read from a file and edited is caught here, not by a rank that hangs.
#include <cantle/mesh/local_piece.hpp>
#include <cantle/plan/foreign.hpp>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace cantle {

namespace detail {

class plan_examiner {
public:
    plan_examiner(training_graph const& g, sharding_plan const& plan) : g_(g), plan_(plan) {}
    void run() {
        for (vertex v = 0; v < g_.size(); ++v) check_vertex(v);
        for (std::uint32_t r = 0; r < plan_.relays.size(); ++r) {
            auto const ref = plan_.relays[r].value;
            check_fit(plan_.relays[r].at, g_.meta(ref), "the relay of '" + g_[ref.node].name + "'");
            if (!relay_of_.emplace(ref, r).second) throw bad("the relay of '" + g_[ref.node].name + "'", "it is the second one", again);
        }
        for (auto const& m : plan_.moves) check_move(m);
        for (std::uint32_t r = 0; r < plan_.relays.size(); ++r)
            if (!reached_relay_.count(r)) check_unmoved(plan_.relays[r].value, plan_.relays[r].at, false);
        for (vertex v = 0; v < g_.size(); ++v)
            for (std::uint32_t i = 0; i < g_[v].operands.size(); ++i)
                if (!reached_.count({v, i})) check_unmoved(g_[v].operands[i], plan_.nodes[v].operands[i], true);
    }

private:
    static constexpr char const* again = "plan this graph again; a plan that was edited by hand must stay one";
    training_graph const& g_;
    sharding_plan const& plan_;
    std::map<value_ref, std::uint32_t> relay_of_;
    std::set<std::uint32_t> reached_relay_;
    std::set<std::pair<vertex, std::uint32_t>> reached_;
    std::set<std::pair<std::uint32_t, tensor_meta const*>> checked_paths_;

    static error bad(std::string const& subject, std::string const& problem, std::string const& remedy) {
        return error(error_code::bad_program, subject, problem, remedy);
    }
    std::string text(plan_layout l) const { return plan_.at(l).text(plan_.mesh); }
    plan_layout made_at(value_ref r) const { return plan_.nodes[r.node].outputs[r.output]; }

    void check_fit(plan_layout l, tensor_meta const& meta, std::string const& whose) const {
        if (meta.defined && !plan_.at(l).fits(meta.sizes, shard_policy::uneven))
            throw bad(whose, "its tensor of " + shape_text(meta.sizes) + " cannot lie as " + text(l) +
                                 ": uneven dims have plain cuts in mesh order and at least one element per rank", again);
    }
    /// There is no maximum of nothing, and kernels crash or change their mind on it (docs/uneven.md).
    void check_not_empty(plan_layout l, tensor_meta const& meta, vertex v) const {
        for (std::size_t d = 0; meta.defined && d < meta.sizes.size(); ++d)
            if (plan_.at(l).is_uneven(d, meta.sizes[d]) && smallest_piece(plan_.at(l), d, meta.sizes[d]) == 0)
                throw bad("'" + g_[v].name + "' (" + g_[v].operation.name + ")",
                          "its tensor of " + shape_text(meta.sizes) + " as " + text(l) + " leaves a rank without elements",
                          again);
    }
    void check_vertex(vertex v) const {
        auto const& n = g_[v];
        for (std::uint32_t i = 0; i < n.operands.size() + n.outputs.size(); ++i) {
            bool const in = i < n.operands.size();
            auto const& meta = in ? g_.meta(n.operands[i]) : n.outputs[i - n.operands.size()];
            auto const l = in ? plan_.nodes[v].operands[i] : plan_.nodes[v].outputs[i - n.operands.size()];
            check_fit(l, meta, "'" + n.name + "'");
            if (n.role == node_role::computation) check_not_empty(l, meta, v);
        }
    }
    void check_unmoved(value_ref ref, plan_layout wanted, bool by_relay) const {
        if (!g_.meta(ref).defined || plan_.at(made_at(ref)) == plan_.at(wanted)) return;
        auto const r = relay_of_.find(ref);
        if (by_relay && r != relay_of_.end() && plan_.at(plan_.relays[r->second].at) == plan_.at(wanted)) return;
        throw bad("'" + g_[ref.node].name + "'", "it is wanted as " + text(wanted) + ", where no move brings it", again);
    }
    void check_move(tensor_move const& m) {
        auto const& path = plan_.paths[m.path];
        auto const whose = "the move of '" + g_[m.value.node].name + "'";
        for (auto const relay : {m.from_relay, m.to_relay})
            if (relay != tensor_move::none && !(plan_.relays[relay].value == m.value))
                throw bad(whose, "its relay is of another value", again);
        auto const [from, to] = ends_of(plan_, m);
        if (plan_.at(path.from) != plan_.at(from) || plan_.at(path.to) != plan_.at(to))
            throw bad(whose, "its path leads from " + text(path.from) + " to " + text(path.to) + " instead of from " + text(from) + " to " +
                                 text(to), again);
        if (m.to_relay != tensor_move::none) reached_relay_.insert(m.to_relay);
        else reached_.insert({m.user, m.operand});
        auto const& meta = g_.meta(m.value);
        if (checked_paths_.insert({m.path, &meta}).second) check_steps(path, meta, whose);
    }
    void check_steps(redistribution_path const& path, tensor_meta const& meta, std::string const& whose) const {
        lattice_class c{plan_.mesh, meta.sizes, element_bytes(meta.type), {}, shard_policy::uneven};
        c.add_boundaries(plan_.at(path.from));
        for (auto const& s : path.steps) c.add_boundaries(s.step.to);
        layout from = plan_.at(path.from);
        for (auto const& s : path.steps) {
            for (auto a : s.step.axes)
                if (a >= plan_.mesh.dims())
                    throw bad(whose, "a step runs over axis " + std::to_string(a) + ", which the mesh does not have", again);
            bool known = false;
            if (from.fits(meta.sizes, shard_policy::uneven))
                for_each_transition(c, from, [&](transition const& t) { known = known || t == s.step; });
            auto const step = "the step " + text_of(s.step, plan_.mesh) + " to " + s.step.to.text(plan_.mesh);
            if (!known) throw bad(whose, step + " does not lead there from " + from.text(plan_.mesh), again);
            auto const call = call_of(c, from, s.step);
            if (call.kind != s.call.kind || call.axes != s.call.axes || call.bytes_before != s.call.bytes_before ||
                call.bytes_after != s.call.bytes_after)
                throw bad(whose, step + " moves " + std::to_string(call.bytes_before) + " to " + std::to_string(call.bytes_after) +
                                     " bytes, priced are " + std::to_string(s.call.bytes_before) + " to " +
                                     std::to_string(s.call.bytes_after), again);
            from = s.step.to;
        }
        if (from != plan_.at(path.to)) throw bad(whose, "its steps end at " + from.text(plan_.mesh) + ", not at " + text(path.to), again);
    }
};

}  // namespace detail

/// Throws unless `plan` can run `g`: foreign_plan (802) for one of another graph, bad_field (105) where it contradicts the graph,
/// bad_program (803) where tensors are not where they are read, do not fit their layouts, or leave an op nothing to work on.
/// Preconditions: g is valid; the plan's indices are within its tables (plan_from_json checks that).
inline void refuse_unrunnable(training_graph const& g, sharding_plan const& plan) {
    refuse_foreign(plan, g, plan.mesh);
    detail::plan_examiner(g, plan).run();
}

/// Throws bad_option (701) for a rank that the plan's mesh does not have.
inline void refuse_unknown_rank(sharding_plan const& plan, std::int64_t rank) {
    if (rank < 0 || rank >= plan.mesh.device_count())
        throw error(error_code::bad_option, "rank " + std::to_string(rank),
                    "the plan is for mesh " + plan.mesh.text() + ", whose ranks are 0 to " + std::to_string(plan.mesh.device_count() - 1),
                    "start as many ranks as the mesh has devices, or plan for another mesh");
}

}  // namespace cantle
