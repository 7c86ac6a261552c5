// SPDX-License-Identifier: BSL-1.0
#pragma once
// When collectives start. A transfer step starts its collective; whoever runs the program waits at the first step that reads the result.
// Lowering puts a transfer right before its reader, where nothing is left to overlap with; this pass starts it as early as its operand
// allows and memory permits:
//
//     lowered     mm  mm  [gather w2]  mm2  ..  sum  [reduce g]  end
//     scheduled   [gather w2]  mm  mm  mm2  ..  sum  [reduce g]  ..  end      mm2 waits for w2
//
// All ranks get one and the same order, so that what check_programs proves of lowered programs holds for scheduled ones. On one
// communicator collectives run one after the other (case D13): a transfer that is both ready and needed before another one never starts
// after it, so that nobody waits behind what is not urgent.
#include <cantle/program/program.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cantle {

struct schedule_options {
    /// Bound on the memory, in bytes per rank, by which results of collectives that started early may exceed what the lowered program
    /// holds at that step. 0: only what needs no more memory starts early (a reduced gradient that replaces the one of before). More is not
    /// always faster: what nobody needs yet may get in the way of what somebody waits for.
    std::int64_t extra_bytes = std::int64_t{256} << 20;
};

namespace detail {

class start_scheduler {
public:
    start_scheduler(std::span<rank_program const> all, schedule_options const& options)
        : all_(all), p_(all[0]), options_(options), place_(p_.steps.size()), extra_(p_.steps.size(), 0) {
        std::size_t const end = p_.steps.size();
        made_.assign(p_.values.size(), 0);
        by_transfer_.assign(p_.values.size(), false);
        first_read_.assign(p_.values.size(), end);
        last_read_.assign(p_.values.size(), 0);
        readers_.resize(p_.values.size());
        for (std::size_t s = 0; s < end; ++s) {
            place_[s] = s;
            for (auto v : p_.steps[s].inputs) {
                first_read_[v] = std::min(first_read_[v], s);
                last_read_[v] = s;
                readers_[v].push_back(s);
            }
            for (auto v : p_.steps[s].outputs) {
                made_[v] = s + 1;
                by_transfer_[v] = p_.steps[s].is_transfer();
            }
        }
        for (auto const& port : p_.inputs) last_read_[port.value] = end;  // the caller holds it all the same
        for (auto const& port : p_.outputs) last_read_[port.value] = end;
    }
    /// The steps in their new order.
    std::vector<std::size_t> run() {
        for (std::size_t s = 0; s < p_.steps.size(); ++s)
            if (is_movable(s)) move(s);
        std::vector<std::size_t> order(p_.steps.size());
        for (std::size_t s = 0; s < order.size(); ++s) order[s] = s;
        // What moved to a step stands before that step; transfers at one place keep their order.
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return place_[a] != place_[b] ? place_[a] < place_[b] : p_.steps[a].is_transfer() > p_.steps[b].is_transfer();
        });
        return order;
    }

private:
    struct started {
        std::size_t ready, needed, place;
    };
    std::span<rank_program const> all_;
    rank_program const& p_;
    schedule_options options_;
    std::vector<std::size_t> place_;               // by step: it runs before that step of the lowered program
    std::vector<std::int64_t> extra_;              // by lowered step: bytes that early starts hold there
    std::vector<std::size_t> made_, first_read_, last_read_;  // by value; made_: the first step that may read it
    std::vector<std::vector<std::size_t>> readers_;
    std::vector<bool> by_transfer_;
    std::map<std::vector<std::uint8_t>, std::vector<started>> on_;  // by communicator

    /// Bytes of a value on the rank that holds most of it; none where the sizes are known only when it is there.
    std::optional<std::int64_t> bytes(program_value v) const {
        std::int64_t most = 0;
        for (auto const& p : all_) {
            auto const& info = p.values[v];
            if (!info.sizes) return {};
            most = std::max(most, element_count(*info.sizes) * element_bytes(info.type));
        }
        return most;
    }
    /// A slice moves only together with the collective that it feeds: alone it would cost memory and hide nothing.
    bool is_movable(std::size_t s) const {
        auto const& step = p_.steps[s];
        if (!step.is_transfer() || !bytes(step.inputs[0]) || !bytes(step.outputs[0])) return false;
        if (step.move.communicates()) return true;
        auto const reader = first_read_[step.outputs[0]];
        return reader < p_.steps.size() && p_.steps[reader].is_transfer() && p_.steps[reader].move.communicates();
    }
    void move(std::size_t s) {
        auto const& step = p_.steps[s];
        auto const in = step.inputs[0], out = step.outputs[0];
        auto ready = made_[in];
        if (by_transfer_[in]) {
            auto const before = ready - 1;
            ready = place_[before];
            // A collective behind a collective shares the room with it: starting both at once would wait for the first there.
            if (p_.steps[before].move.communicates()) ready += (s - ready + 1) / 2;
        }
        auto& others = on_[step.move.axes];
        auto const needed = first_read_[out];
        auto earliest = ready;
        if (step.move.communicates())
            for (auto const& o : others)
                if (o.ready <= ready && o.needed <= needed) earliest = std::max(earliest, o.place);
        // The operand goes with its last reader: from where all others have read it, only the difference counts.
        auto free_from = p_.steps.size();
        if (last_read_[in] == s) {
            free_from = made_[in];
            for (auto r : readers_[in])
                if (r != s) free_from = std::max(free_from, place_[r] + 1);
        }
        auto const made = *bytes(out), replaced = std::max<std::int64_t>(0, made - *bytes(in));
        auto place = s;
        for (; place > earliest; --place) {
            auto const more = place > free_from ? replaced : made;
            if (extra_[place - 1] + more > options_.extra_bytes) break;
            extra_[place - 1] += more;
        }
        place_[s] = place;
        if (step.move.communicates()) others.push_back({ready, needed, place});
    }
};

}  // namespace detail

/// Puts the transfers of all ranks' programs (in order of rank, as check_programs takes them) where they start best. Deterministic; the
/// values and what is computed stay as they are. Precondition: the programs have passed check_programs.
inline void schedule_starts(std::span<rank_program> all, schedule_options const& options = {}) {
    if (all.empty()) return;
    auto const order = detail::start_scheduler(all, options).run();
    for (auto& p : all) {
        std::vector<program_step> steps;
        steps.reserve(order.size());
        for (auto s : order) steps.push_back(std::move(p.steps[s]));
        p.steps = std::move(steps);
        note_last_uses(p);
    }
}

}  // namespace cantle
