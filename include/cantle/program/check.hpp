// SPDX-License-Identifier: BSL-1.0
#pragma once
// Before any collective runs: do the programs of all ranks fit together? Every value is there when it is read and gone after its last use;
// all ranks have the same steps; the members of every group issue the same collectives in the same order, with buffers of one size and
// type, and permutes whose senders and receivers agree; what a member takes out of a buffer is what the others put in, so that nobody reads
// padding. What passes cannot hang in a collective.
#include <cantle/base/error.hpp>
#include <cantle/program/program.hpp>
#include <cantle/program/transfer_check.hpp>

#include <span>
#include <string>
#include <vector>

namespace cantle {

namespace detail {

class program_checker {
public:
    explicit program_checker(std::span<rank_program const> all) : all_(all) {}
    void run() {
        for (auto const& p : all_) check_values(p);
        for (auto const& p : all_) check_same(all_[0], p);
        for (std::size_t s = 0; s < all_[0].steps.size(); ++s)
            if (all_[0].steps[s].is_transfer()) check_meeting(s);
    }

private:
    std::span<rank_program const> all_;

    [[noreturn]] static void fail(rank_program const& p, std::size_t step, std::string const& problem) {
        throw error(error_code::bad_program, "rank " + std::to_string(p.rank) + ", step " + std::to_string(step), problem,
                    "lowering made a program that would not run; report it with graph and plan");
    }
    static void check_values(rank_program const& p) {
        enum class state : std::uint8_t { absent, there, gone };
        std::vector<state> of(p.values.size(), state::absent);
        std::size_t s = 0;
        auto const at = [&](program_value v) -> state& {
            if (v >= of.size()) fail(p, s, "names value " + std::to_string(v) + " of " + std::to_string(of.size()));
            return of[v];
        };
        auto const read = [&](program_value v, char const* verb) {
            if (at(v) != state::there)
                fail(p, s, verb + (" value " + std::to_string(v)) + (of[v] == state::gone ? " after its last use" : " before it is made"));
        };
        auto const make = [&](program_value v) {
            if (at(v) != state::absent) fail(p, s, "makes value " + std::to_string(v) + " a second time");
            of[v] = state::there;
        };
        for (auto const& in : p.inputs) {
            make(in.value);
            check_port(p, s, in);
        }
        for (; s < p.steps.size(); ++s) {
            auto const& step = p.steps[s];
            for (auto v : step.inputs) read(v, "reads");
            for (auto v : step.outputs) make(v);
            for (auto v : step.last_uses) {
                read(v, "releases");
                of[v] = state::gone;
            }
            if (step.is_transfer()) check_transfer(p, s);
        }
        for (auto const& out : p.outputs) {
            if (at(out.value) != state::there) fail(p, s, "its output " + std::to_string(out.node) + " is not there at the end");
            check_port(p, s, out);
        }
        for (auto const& out : p.outputs) of[out.value] = state::gone;
        for (program_value v = 0; v < of.size() && !p.steps.empty(); ++v)
            if (of[v] == state::there) fail(p, s, "keeps value " + std::to_string(v) + ", which nobody reads any more");
    }
    static void check_port(rank_program const& p, std::size_t s, program_port const& port) {
        auto const& sizes = p.values[port.value].sizes;
        if (sizes && *sizes != port.piece.sizes)
            fail(p, s, "its piece of " + std::to_string(port.node) + " is " + shape_text(port.piece.sizes) + ", the value has " +
                           shape_text(*sizes));
    }
    static void check_transfer(rank_program const& p, std::size_t s) {
        auto const& step = p.steps[s];
        if (step.inputs.size() != 1 || step.outputs.size() != 1) fail(p, s, "a transfer moves one value");
        auto const &in = p.values[step.inputs[0]], &out = p.values[step.outputs[0]];
        if (in.sizes && out.sizes && in.type != out.type) fail(p, s, "changes the type of what it moves");
        auto const& t = step.move;
        for (auto const& [sizes, said] : {std::pair{&in.sizes, &t.before}, std::pair{&out.sizes, &t.after}})
            if (*sizes && !said->empty() && **sizes != *said)
                fail(p, s, "moves a tensor of " + shape_text(*said) + ", the value has " + shape_text(**sizes));
        auto const problem = find_transfer_problem(t, p.mesh, p.rank);
        if (!problem.empty()) fail(p, s, problem);
    }
    static void check_same(rank_program const& first, rank_program const& p) {
        auto const ports_differ = [](std::vector<program_port> const& a, std::vector<program_port> const& b) {
            if (a.size() != b.size()) return true;
            for (std::size_t i = 0; i < a.size(); ++i)
                if (a[i].node != b[i].node || a[i].value != b[i].value) return true;
            return false;
        };
        if (p.mesh != first.mesh || p.steps.size() != first.steps.size() || p.values.size() != first.values.size() ||
            ports_differ(p.inputs, first.inputs) || ports_differ(p.outputs, first.outputs))
            fail(p, 0, "has another mesh, other ports or another number of steps or values than rank " + std::to_string(first.rank));
        for (program_value v = 0; v < p.values.size(); ++v) {
            auto const &a = first.values[v], &b = p.values[v];
            if (a.type != b.type || a.defined != b.defined || a.sizes.has_value() != b.sizes.has_value())
                fail(p, 0, "knows value " + std::to_string(v) + " as another type than rank " + std::to_string(first.rank));
        }
        for (std::size_t s = 0; s < p.steps.size(); ++s) {
            auto const &a = first.steps[s], &b = p.steps[s];
            bool const same = a.call.name == b.call.name && a.inputs == b.inputs && a.outputs == b.outputs && a.last_uses == b.last_uses &&
                              a.move.kind == b.move.kind && a.move.axes == b.move.axes && a.move.reduce == b.move.reduce;
            if (!same) fail(p, s, "differs from rank " + std::to_string(first.rank) + " in op, values or collective");
        }
    }
    /// Unequal parts stand one behind the other: what the members take together is the whole.
    void check_slice(rank_program const& p, std::size_t s) const {
        auto const& mine = p.steps[s].move;
        if (mine.takes_part()) return;
        std::int64_t begin = 0;
        for (std::int64_t m = 0; m < mine.members; ++m) {
            auto const& other = all_[static_cast<std::size_t>(rank_of_member(p.mesh, mine.axes, p.rank, m))].steps[s].move;
            bool const sound = other.close.size() == 1 && other.close[0].sizes.size() == 1 && other.close[0].dim == mine.close[0].dim &&
                               other.close[0].extent == mine.close[0].extent && other.close[0].begins[0] == begin;
            if (!sound) fail(p, s, "slices a dim of which member " + std::to_string(m) + " takes another part than the next one");
            begin += other.close[0].sizes[0];
        }
        if (begin != mine.close[0].extent) fail(p, s, "slices a dim of which nobody takes the end");
    }
    /// The members of each group of step s.
    void check_meeting(std::size_t s) const {
        for (auto const& p : all_) {
            auto const& mine = p.steps[s].move;
            if (!mine.communicates()) check_slice(p, s);
            for (std::int64_t m = 0; m < mine.members; ++m) {
                auto const& q = all_[static_cast<std::size_t>(rank_of_member(p.mesh, mine.axes, p.rank, m))];
                auto const& other = q.steps[s].move;
                auto const meets = "meets rank " + std::to_string(q.rank) + " in " + std::string(to_string(mine.kind));
                if (other.sent() != mine.sent())
                    fail(p, s, meets + " with buffers of other sizes: " + shape_text(mine.sent()) + " and " + shape_text(other.sent()));
                if (other.pack != mine.pack || other.unpack != mine.unpack) fail(p, s, meets + ", which packs in another order");
                if (!mine.communicates()) continue;
                if (!takes_what_was_put(other, mine)) fail(p, s, meets + " and would read its padding or miss what it sends");
            }
            if (mine.kind == collective_kind::permute &&
                all_[static_cast<std::size_t>(rank_of_member(p.mesh, mine.axes, p.rank, mine.send_to))].steps[s].move.receive_from !=
                    mine.member)
                fail(p, s, "sends its piece to a rank that waits for another");
        }
    }
};

}  // namespace detail

/// Throws bad_program where the programs of all ranks of a mesh (in order of rank) do not fit together.
inline void check_programs(std::span<rank_program const> all) {
    if (all.empty() || static_cast<std::int64_t>(all.size()) != all[0].mesh.device_count())
        throw error(error_code::bad_program, "programs", std::to_string(all.size()) + " of them", "give one per rank of the mesh");
    for (std::size_t r = 0; r < all.size(); ++r)
        if (all[r].rank != static_cast<std::int64_t>(r))
            throw error(error_code::bad_program, "programs", "number " + std::to_string(r) + " is of rank " + std::to_string(all[r].rank),
                        "give them in order of rank");
    detail::program_checker(all).run();
}

}  // namespace cantle
