// SPDX-License-Identifier: BSL-1.0
#pragma once
// Before any collective runs: do the programs of all ranks fit together? Every value is there when it is read and gone after its last use;
// all ranks have the same steps; the members of every group issue the same collectives in the same order, with buffers of one size and
// permutes whose senders and receivers agree. What passes cannot hang in a collective.
#include <cantle/base/error.hpp>
#include <cantle/program/program.hpp>

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
            if (all_[0].steps[s].is_transfer() && all_[0].steps[s].move.communicates()) check_meeting(s);
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
        for (auto const& in : p.inputs) of.at(in.value) = state::there;
        for (std::size_t s = 0; s < p.steps.size(); ++s) {
            auto const& step = p.steps[s];
            for (auto v : step.inputs)
                if (of.at(v) != state::there)
                    fail(p, s, "reads value " + std::to_string(v) + (of[v] == state::gone ? " after its last use" : " before it is made"));
            for (auto v : step.outputs) {
                if (of.at(v) != state::absent) fail(p, s, "makes value " + std::to_string(v) + " a second time");
                of[v] = state::there;
            }
            for (auto v : step.last_uses) of.at(v) = state::gone;
            if (step.is_transfer() && (step.inputs.size() != 1 || step.outputs.size() != 1)) fail(p, s, "a transfer moves one value");
            if (step.is_transfer()) {
                auto const& sizes = p.values[step.inputs[0]].sizes;
                if (sizes && !step.move.before.empty() && *sizes != step.move.before)
                    fail(p, s, "moves a tensor of " + shape_text(step.move.before) + ", the value has " + shape_text(*sizes));
            }
        }
        for (auto const& out : p.outputs)
            if (of.at(out.value) != state::there)
                fail(p, p.steps.size(), "its output " + std::to_string(out.node) + " is not there at the end");
    }
    static void check_same(rank_program const& first, rank_program const& p) {
        if (p.mesh != first.mesh || p.steps.size() != first.steps.size() || p.values.size() != first.values.size())
            fail(p, 0, "has another mesh or another number of steps or values than rank " + std::to_string(first.rank));
        for (std::size_t s = 0; s < p.steps.size(); ++s) {
            auto const &a = first.steps[s], &b = p.steps[s];
            bool const same = a.call.name == b.call.name && a.inputs == b.inputs && a.outputs == b.outputs && a.last_uses == b.last_uses &&
                              a.move.kind == b.move.kind && a.move.axes == b.move.axes && a.move.reduce == b.move.reduce;
            if (!same) fail(p, s, "differs from rank " + std::to_string(first.rank) + " in op, values or collective");
        }
    }
    /// The members of each group of step s.
    void check_meeting(std::size_t s) const {
        for (auto const& p : all_) {
            auto const& mine = p.steps[s].move;
            if (mine.member != member_of(p.mesh, mine.axes, p.rank)) fail(p, s, "has a wrong place in its group");
            auto const with = [&](std::int64_t m) -> rank_program const& {
                std::int64_t rank = p.rank, rest = m;
                for (std::size_t i = mine.axes.size(); i-- > 0;) {
                    auto const a = mine.axes[i];
                    rank += (rest % p.mesh.size(a) - p.mesh.coordinate(p.rank, a)) * p.mesh.stride(a);
                    rest /= p.mesh.size(a);
                }
                return all_[static_cast<std::size_t>(rank)];
            };
            for (std::int64_t m = 0; m < mine.members; ++m) {
                auto const& other = with(m).steps[s].move;
                if (other.members != mine.members || other.before != mine.before || other.after != mine.after)
                    fail(p, s, "meets rank " + std::to_string(with(m).rank) + " in " + std::string(to_string(mine.kind)) +
                                   " with buffers of other sizes: " + shape_text(mine.before) + " and " + shape_text(other.before));
            }
            if (mine.kind == collective_kind::permute && with(mine.send_to).steps[s].move.receive_from != mine.member)
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
