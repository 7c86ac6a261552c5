// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ranks as threads of one process: where they meet. A collective has two halves. A member starts it by leaving its buffer with the group,
// and goes on; it waits when it needs what the others left. Several collectives of a group may be under way: a member's n-th start belongs
// to the n-th meeting. What is made of the buffers (sums, parts) is the caller's work, in the order of the members, so that no result
// depends on timing.
//
//     rank 0   start(x0) .. compute .. wait -> {x0, x1}
//     rank 1        start(x1) .. wait ------> {x0, x1}
//
// Nothing hangs: a rank that throws ends all; a rank that is done is missed by those that wait for it; and where all ranks wait for
// meetings that nobody can complete any more, all of them throw.
#include <cantle/base/error.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cantle {

/// Thrown in ranks that wait for one that failed. No std::exception: it is a consequence, and no handler shall report it as a cause.
struct other_rank_failed {};

/// What the threads of all ranks share. `Buffer` is what a member brings (cheap to move, read by others until they have waited: do not
/// change it), `Label` what must be equal among the members of a collective (kind, sizes, type).
template <class Buffer, class Label>
class thread_group {
    struct meeting {
        std::vector<Buffer> buffers;  // by member; not written after the last one has come
        std::vector<bool> here;
        Label label;                  // of whoever came first
        bool same = true;
        std::size_t arrived = 0, waiting = 0;
        bool complete() const { return arrived == here.size(); }
    };

public:
    /// The members of a collective, in order, and their meetings.
    class members {
        friend thread_group;
        std::vector<std::int64_t> ranks_;
        std::vector<std::size_t> started_;            // by member: collectives started
        std::deque<std::shared_ptr<meeting>> open_;   // those that miss a member
        std::size_t first_open_ = 0;
    };
    /// A collective that was started. Keeps all buffers alive.
    class ticket {
        friend thread_group;
        std::shared_ptr<meeting> at_;
        members const* of_ = nullptr;
    };

    explicit thread_group(std::size_t ranks) : left_(ranks, false) {}

    /// The group of these ranks in this order: one object for all who ask, alive as long as this.
    members& group(std::vector<std::int64_t> const& ranks) {
        std::lock_guard const guard(lock_);
        auto& g = groups_[ranks];
        if (!g) {
            g = std::make_unique<members>();
            g->ranks_ = ranks;
            g->started_.resize(ranks.size(), 0);
        }
        return *g;
    }

    /// Member `member` of `g` brings `buffer`. Does not block. Throws other_rank_failed where some rank has failed.
    ticket start(members& g, std::size_t member, Label label, Buffer buffer) {
        std::lock_guard const guard(lock_);
        if (ended_) throw other_rank_failed{};
        auto const n = g.started_.at(member)++ - g.first_open_;
        while (g.open_.size() <= n) {
            auto m = std::make_shared<meeting>();
            m->buffers.resize(g.ranks_.size());
            m->here.resize(g.ranks_.size(), false);
            g.open_.push_back(std::move(m));
        }
        ticket t;
        t.at_ = g.open_[n];
        t.of_ = &g;
        auto& m = *t.at_;
        if (m.arrived == 0) m.label = std::move(label);
        else m.same = m.same && m.label == label;
        m.buffers[member] = std::move(buffer);
        m.here[member] = true;
        ++m.arrived;
        if (m.complete()) {  // meetings of a group come full in their order
            g.open_.pop_front();
            ++g.first_open_;
            waiting_ -= std::exchange(m.waiting, 0);
            change_.notify_all();
        }
        return t;
    }
    /// Would wait() return at once?
    bool is_complete(ticket const& t) const {
        std::lock_guard const guard(lock_);
        return t.at_->complete();
    }
    /// The buffers of all members, in their order, as long as `t` lives. Throws bad_program where members brought different labels, where a
    /// member is done without having come, or where all ranks wait; other_rank_failed where one failed.
    std::vector<Buffer> const& wait(ticket const& t) {
        std::unique_lock guard(lock_);
        auto& m = *t.at_;
        if (!m.complete()) {
            ++m.waiting;
            ++waiting_;
            look_for_deadlock();
            change_.wait(guard, [&] { return m.complete() || ended_ || stuck_ || missed(t) >= 0; });
            if (!m.complete()) {
                --m.waiting;
                --waiting_;
                fail(t);
            }
        }
        if (!m.same)
            throw error(error_code::bad_program, "group of ranks " + text(t), "its members bring other collectives, shapes or types", "");
        return m.buffers;
    }

    /// A rank failed: all that wait, or will, throw other_rank_failed; meetings that are complete still give their buffers.
    void end() {
        std::lock_guard const guard(lock_);
        ended_ = true;
        change_.notify_all();
    }
    /// `rank` is done and comes to no further meeting.
    void leave(std::size_t rank) {
        std::lock_guard const guard(lock_);
        left_.at(rank) = true;
        ++gone_;
        look_for_deadlock();
        change_.notify_all();
    }

private:
    mutable std::mutex lock_;
    std::condition_variable change_;
    std::map<std::vector<std::int64_t>, std::unique_ptr<members>> groups_;
    std::vector<bool> left_;                  // by rank
    std::size_t gone_ = 0, waiting_ = 0;      // ranks that left; ranks that wait in meetings that are not complete
    bool ended_ = false, stuck_ = false;

    void look_for_deadlock() {
        if (waiting_ == 0 || gone_ + waiting_ < left_.size() || ended_) return;
        stuck_ = true;
        change_.notify_all();
    }
    /// A member of t that left without having come; -1 where there is none.
    std::int64_t missed(ticket const& t) const {
        for (std::size_t m = 0; m < t.of_->ranks_.size(); ++m)
            if (!t.at_->here[m] && left_[static_cast<std::size_t>(t.of_->ranks_[m])]) return t.of_->ranks_[m];
        return -1;
    }
    static std::string text(ticket const& t) {
        std::string s;
        for (auto r : t.of_->ranks_) s += (s.empty() ? "" : ", ") + std::to_string(r);
        return s;
    }
    [[noreturn]] void fail(ticket const& t) const {
        if (ended_) throw other_rank_failed{};
        auto const who = missed(t);
        throw error(error_code::bad_program, "group of ranks " + text(t),
                    who >= 0 ? "rank " + std::to_string(who) + " is done, and others wait for it"
                             : "all ranks wait, in groups that nobody completes any more",
                    "all members must run the same collectives in the same order");
    }
};

/// Runs body(rank) for every rank, each in a thread of its own, and waits for all. Throws the error of the lowest rank among those that
/// failed by themselves.
template <class Buffer, class Label, class Body>
void run_ranks(thread_group<Buffer, Label>& group, std::size_t ranks, Body const& body) {
    std::vector<std::exception_ptr> problems(ranks);
    std::vector<std::thread> threads;
    auto const run = [&](std::size_t rank) {
        try {
            body(rank);
            group.leave(rank);
        } catch (other_rank_failed const&) {
            group.end();
        } catch (...) {
            problems[rank] = std::current_exception();
            group.end();
        }
    };
    try {
        for (std::size_t r = 0; r < ranks; ++r) threads.emplace_back(run, r);
    } catch (...) {  // the machine has no further thread
        group.end();
        for (auto& t : threads) t.join();
        throw;
    }
    for (auto& t : threads) t.join();
    for (auto const& p : problems)
        if (p) std::rethrow_exception(p);
}

}  // namespace cantle
