// SPDX-License-Identifier: BSL-1.0
#pragma once
// When each step of a rank's program would run, by the prices that plans are made with. Two kinds of stream, as on a GPU: ops run on
// one, one after the other in the order of the program; collectives on another (NCCL's kernels of one rank hardly run side by side, case
// D13) or, if asked for, on one per communicator. A transfer starts behind the ops that stand before it, when its stream is free; whoever
// reads its result first waits for it. So the order of the program decides what overlaps (schedule.hpp).
//
//     compute  [ linear ][ relu ]....[ linear ]      .... idle: the collective is exposed
//     comm.              [all_gather]                hidden behind relu
//
// Prices: a vertex' price falls due whole at its first call (what its local program calls besides is free); a transfer's from its kind,
// axes and bytes, packing included; slices are local and free. One after the other they add up to the plan's objective without the
// tie-break (1 us per edge whose layouts differ), which is a preference among equals and no time of the program.
#include <cantle/base/error.hpp>
#include <cantle/cost/concepts.hpp>
#include <cantle/graph/region_op.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/program/live_bytes.hpp>
#include <cantle/program/program.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

enum class comm_streams : std::uint8_t { one, per_communicator };

struct timeline_options {
    comm_streams streams = comm_streams::one;
    bool serial = false;  ///< one step after the other: nothing overlaps
};

/// One step on a stream. Microseconds from the start of the program.
struct timeline_event {
    std::size_t step = 0;        ///< index into the program's steps
    std::size_t stream = 0;      ///< 0: ops
    double start = 0, duration = 0;
    double exposed = 0;          ///< of a collective: how long ops stood still for it
    collective_call call;        ///< of a collective
    bool is_collective = false;
    bool inside_op = false;      ///< a collective that an op runs inside itself
    double end() const { return start + duration; }
};

struct program_timeline {
    std::int64_t rank = 0;
    bool serial = false;
    std::vector<timeline_event> events;   ///< in order of the program; slices and what costs nothing included
    std::vector<std::string> streams;     ///< names; the first is that of ops
    std::vector<double> issued;           ///< [step] when the stream of ops comes to it
    plan_cost parts;                      ///< sums of durations, as the plan's; tie_break 0
    double step_us = 0;                   ///< from the first step to the end of the last
    double compute_us = 0, communication_us = 0;
    double exposed_us = 0;                ///< time in which no op runs: step_us - compute_us
    double without_step_us = 0;           ///< prices of vertices that call nothing: part of the plan's objective only
    memory_profile memory;
    /// Share of communication that runs beside ops; 1 where there is none.
    double hidden_share() const { return communication_us > 0 ? std::max(0.0, 1 - exposed_us / communication_us) : 1.0; }
};

/// The request to a cost model for a transfer of elements of that many bytes: of the buffers that move, padding included.
inline collective_call call_of(transfer const& t, int element_bytes) {
    collective_call call{t.kind, 0, element_count(t.before) * element_bytes, element_count(t.after) * element_bytes, 0, t.reduce};
    for (auto a : t.axes) call.axes |= 1u << a;
    if (t.kind == collective_kind::slice) return call;
    call.bytes_before = element_count(t.sent()) * element_bytes;
    call.bytes_after = element_count(t.received()) * element_bytes;
    if (t.spread.empty() && t.close.empty()) {
        if (!t.pack.is_identity()) call.packed_bytes += call.bytes_before;
        if (!t.unpack.is_identity()) call.packed_bytes += call.bytes_after;
        return call;
    }
    // Unequal pieces, as the lattice prices them (mesh/transition.hpp): what is scattered is padded, what is gathered is closed, unless the
    // padding lies behind all data.
    bool const both = t.kind == collective_kind::all_to_all;
    if (t.kind == collective_kind::reduce_scatter || both) call.packed_bytes += call.bytes_before;
    if (both || (t.kind == collective_kind::all_gather && (t.axes.size() > 1 || !t.unpack.is_identity())))
        call.packed_bytes += call.bytes_after;
    return call;
}

namespace detail {

template <CostModel Cost>
class timeline_maker {
public:
    timeline_maker(rank_program const& p, training_graph const& g, sharding_plan const& plan, Cost const& cost, timeline_options o)
        : p_(p), g_(g), plan_(plan), cost_(cost), options_(o), ready_(p.values.size()), called_(g.size(), false) {}

    program_timeline run() {
        t_.rank = p_.rank;
        t_.serial = options_.serial;
        t_.streams = {"ops"};
        if (options_.streams == comm_streams::one) t_.streams.push_back("collectives");
        free_.assign(t_.streams.size(), 0.0);
        for (step_ = 0; step_ < p_.steps.size(); ++step_) {
            auto const& s = p_.steps[step_];
            t_.issued.push_back(free_[0]);
            if (!s.is_transfer()) run_call(s);
            else if (s.move.communicates()) run_collective(s);
            else run_op(s, 0.0);
        }
        finish();
        return std::move(t_);
    }

private:
    static constexpr std::size_t no_event = static_cast<std::size_t>(-1);
    struct readiness {
        double at = 0;
        std::size_t by = no_event;  // a collective's event
    };
    rank_program const& p_;
    training_graph const& g_;
    sharding_plan const& plan_;
    Cost const& cost_;
    timeline_options options_;
    program_timeline t_;
    std::vector<readiness> ready_;             // [value]
    std::vector<char> called_;                 // [vertex] its price has fallen due
    std::map<vertex, std::vector<char>> inner_;  // the plan's collectives inside it that have run
    std::vector<double> free_;                 // [stream]
    std::map<std::uint32_t, std::size_t> stream_of_;
    std::size_t step_ = 0;

    double checked(double price, std::string const& what) const {
        if (!std::isfinite(price) || price < 0)
            throw error(error_code::bad_cost, what, "the cost model returned " + std::to_string(price),
                        "return finite microseconds of at least 0");
        return price;
    }
    /// The price of a vertex: of its op on the largest pieces, as the plan has it.
    double price_of(vertex v) const {
        auto const& n = g_[v];
        std::vector<tensor_meta> in, out;
        auto const local = [&](tensor_meta m, plan_layout l) {
            m.sizes = plan_.at(l).local_shape(m.sizes);
            m.strides.clear();
            return m;
        };
        for (std::size_t i = 0; i < n.operands.size(); ++i) in.push_back(local(g_.meta(n.operands[i]), plan_.nodes[v].operands[i]));
        for (std::size_t i = 0; i < n.outputs.size(); ++i) out.push_back(local(n.outputs[i], plan_.nodes[v].outputs[i]));
        return checked(cost_.compute(op_query{&n.operation, in, out}), "op " + n.operation.name);
    }
    /// Ops do nothing until `r`.
    void wait(readiness r) {
        if (r.at <= free_[0]) return;
        if (r.by != no_event) t_.events[r.by].exposed += r.at - free_[0];
        free_[0] = r.at;
    }
    void run_op(program_step const& s, double duration) {
        readiness latest;
        for (auto v : s.inputs)
            if (ready_[v].at > latest.at) latest = ready_[v];
        wait(latest);
        timeline_event e;
        e.step = step_;
        e.start = free_[0];
        e.duration = duration;
        t_.events.push_back(e);
        free_[0] += duration;
        t_.compute_us += duration;
        for (auto v : s.outputs) ready_[v] = {free_[0], no_event};
    }
    void run_call(program_step const& s) {
        double price = 0;
        if (!called_[s.at]) {
            called_[s.at] = true;
            price = price_of(s.at);
            (g_[s.at].in_phase == phase::forward ? t_.parts.forward_compute : t_.parts.backward_compute) += price;
            if (s.call.name == region_op_name || s.call.name == region_backward_op_name) run_inside(s);
        }
        run_op(s, price);
    }
    /// What a region does inside is its own: its collectives are taken to hold it up from the start.
    void run_inside(program_step const& s) {
        double from = free_[0];
        for (auto v : s.inputs) from = std::max(from, ready_[v].at);
        for (auto const& inner : plan_.nodes[s.at].inner) {
            auto const r = collective(inner.call, from, true);
            wait(r);
            from = r.at;
        }
    }
    void run_collective(program_step const& s) {
        auto const type = p_.values[s.outputs[0]].type;
        auto call = call_of(s.move, element_bytes(type));
        bool const inside = called_[s.at];  // moves that a vertex needs come before it
        if (inside) {
            // Of what an op makes on the way only the plan knows the size.
            auto const& priced = plan_.nodes[s.at].inner;
            auto& used = inner_[s.at];
            used.resize(priced.size(), false);
            std::size_t i = 0;
            auto const same = [&call](collective_call const& c) {
                return c.kind == call.kind && c.axes == call.axes && c.reduce == call.reduce;
            };
            while (i < priced.size() && (used[i] || !same(priced[i].call))) ++i;
            if (i < priced.size()) {
                used[i] = true;
                call = priced[i].call;
            } else if (!p_.values[s.inputs[0]].sizes) {
                throw error(error_code::bad_program, "step " + std::to_string(step_) + ", '" + g_[s.at].name + "'",
                            "the plan has no price for its " + std::string(to_string(call.kind)),
                            "lowering made a program that is not the plan's; report it with graph and plan");
            }
        }
        ready_[s.outputs[0]] = collective(call, ready_[s.inputs[0]].at, inside);
        if (options_.serial) wait(ready_[s.outputs[0]]);
    }
    readiness collective(collective_call const& call, double input_ready, bool inside) {
        double const price = checked(cost_.collective(call), std::string(to_string(call.kind)));
        (inside ? t_.parts.inner : t_.parts.moves[static_cast<std::size_t>(call.kind)]) += price;
        auto const stream = stream_for(call.axes);
        timeline_event e;
        e.step = step_;
        e.stream = stream;
        // Enqueued behind all ops before it, as c10d does: a collective never overtakes what was issued earlier on the stream of ops.
        e.start = std::max({free_[stream], input_ready, free_[0]});
        e.duration = price;
        e.call = call;
        e.is_collective = true;
        e.inside_op = inside;
        free_[stream] = e.end();
        t_.communication_us += price;
        t_.events.push_back(e);
        return {e.end(), t_.events.size() - 1};
    }
    std::size_t stream_for(std::uint32_t axes) {
        if (options_.streams == comm_streams::one) return 1;
        auto const [at, fresh] = stream_of_.try_emplace(axes, t_.streams.size());
        if (fresh) {
            std::string name;
            for (std::size_t a = 0; a < p_.mesh.dims(); ++a)
                if (axes >> a & 1u) name += (name.empty() ? "" : ",") + p_.mesh.name(a);
            t_.streams.push_back("collectives over " + name);
            free_.push_back(0.0);
        }
        return at->second;
    }
    /// What no op waited for is waited for at the end.
    void finish() {
        readiness last{free_[0], no_event};
        for (std::size_t e = 0; e < t_.events.size(); ++e)
            if (t_.events[e].is_collective && t_.events[e].end() > last.at) last = {t_.events[e].end(), e};
        wait(last);
        t_.step_us = free_[0];
        t_.exposed_us = 0;
        for (auto const& e : t_.events) t_.exposed_us += e.exposed;
        for (vertex v = 0; v < g_.size(); ++v)
            if (g_[v].role == node_role::computation && !called_[v]) {
                double const price = price_of(v);
                t_.without_step_us += price;
                (g_[v].in_phase == phase::forward ? t_.parts.forward_compute : t_.parts.backward_compute) += price;
            }
        t_.memory = live_bytes(p_, g_, !options_.serial);
    }
};

}  // namespace detail

/// The timeline of `p`, a program of `plan` for g. Preconditions: those of live_bytes, and the plan is one of g. Throws bad_cost where a
/// price is negative or not finite, or the model was made for another mesh; bad_program where the program runs a collective that the plan
/// did not price and nobody knows its size. Time: linear in steps, and a price per step.
template <class Cost>
program_timeline predict_timeline(rank_program const& p, training_graph const& g, sharding_plan const& plan, Cost const& cost,
                                  timeline_options options = {}) {
    require_cost_model<Cost>();
    return detail::timeline_maker<Cost>(p, g, plan, cost, options).run();
}

}  // namespace cantle
