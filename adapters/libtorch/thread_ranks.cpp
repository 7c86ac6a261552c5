// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace cantle::libtorch {
namespace {

/// Thrown in ranks that wait for one that failed.
struct other_rank_failed {};

/// Where the members of one group meet. Every meeting has two halves: all bring a tensor, all take what they need.
class meeting_point {
public:
    explicit meeting_point(std::size_t members) : brought_(members), kinds_(members) {}

    template <class Take>
    at::Tensor meet(std::mutex& lock, std::condition_variable& change, bool const& ended, std::size_t member, transfer const& t,
                    at::Tensor const& mine, Take take) {
        std::unique_lock guard(lock);
        auto const wait = [&](auto&& ready) {
            change.wait(guard, [&] { return ended || ready(); });
            if (ended && !ready()) throw other_rank_failed{};
        };
        wait([&] { return !leaving_; });
        brought_[member] = mine;
        kinds_[member] = t.kind;
        if (++arrived_ == brought_.size()) {
            leaving_ = true;
            change.notify_all();
        }
        wait([&] { return leaving_; });
        auto const all = brought_;
        bool same = true;
        for (std::size_t m = 0; m < all.size(); ++m)
            same = same && kinds_[m] == t.kind && all[m].sizes() == mine.sizes() && all[m].scalar_type() == mine.scalar_type();
        guard.unlock();
        at::Tensor result;
        std::exception_ptr problem;
        try {
            if (!same)
                throw error(error_code::bad_program, std::string(to_string(t.kind)), "its members bring other collectives, shapes or types",
                            "");
            result = take(all);
        } catch (...) {
            problem = std::current_exception();
        }
        guard.lock();
        if (--arrived_ == 0) {
            leaving_ = false;
            for (auto& b : brought_) b = at::Tensor();
            change.notify_all();
        }
        if (problem) std::rethrow_exception(problem);
        return result;
    }

private:
    std::vector<at::Tensor> brought_;
    std::vector<collective_kind> kinds_;
    std::size_t arrived_ = 0;
    bool leaving_ = false;
};

/// What all threads share.
struct hall {
    std::mutex lock;
    std::condition_variable change;
    bool ended = false;  ///< some rank failed or left early
    std::map<std::pair<std::vector<std::uint8_t>, std::int64_t>, std::unique_ptr<meeting_point>> points;  // by axes and first rank

    meeting_point& point(transfer const& t, std::int64_t first) {
        std::lock_guard const guard(lock);
        auto& p = points[{t.axes, first}];
        if (!p) p = std::make_unique<meeting_point>(static_cast<std::size_t>(t.members));
        return *p;
    }
    void end() {
        std::lock_guard const guard(lock);
        ended = true;
        change.notify_all();
    }
};

class thread_communicator final : public communicator {
public:
    thread_communicator(hall& h, device_mesh const& mesh, std::int64_t rank) : hall_(h), mesh_(mesh), rank_(rank) {}

    at::Tensor run(transfer const& t, at::Tensor const& mine) override {
        ran.push_back({t.kind, t.axes, static_cast<std::int64_t>(mine.nbytes())});
        std::int64_t first = rank_;
        for (auto a : t.axes) first -= mesh_.coordinate(rank_, a) * mesh_.stride(a);
        auto const m = t.member;
        return hall_.point(t, first).meet(
            hall_.lock, hall_.change, hall_.ended, static_cast<std::size_t>(m), t, mine, [&](std::vector<at::Tensor> const& all) {
                switch (t.kind) {
                    case collective_kind::all_gather: return at::stack(all);
                    case collective_kind::all_reduce: return reduced(all, t.reduce);
                    case collective_kind::permute: return all[static_cast<std::size_t>(t.receive_from)].clone();
                    case collective_kind::slice: break;
                    case collective_kind::reduce_scatter:
                    case collective_kind::all_to_all: {
                        std::vector<at::Tensor> parts;
                        for (auto const& x : all) parts.push_back(x.select(0, m));
                        return t.kind == collective_kind::all_to_all ? at::stack(parts) : reduced(parts, t.reduce);
                    }
                }
                return mine;
            });
    }
    std::vector<ran_collective> ran;

private:
    hall& hall_;
    device_mesh const& mesh_;
    std::int64_t rank_;
};

/// Kernels of several ranks run at once: one thread each, put back at the end.
struct single_threaded_kernels {
    int before = at::get_num_threads();
    single_threaded_kernels() { at::set_num_threads(1); }
    ~single_threaded_kernels() { at::set_num_threads(before); }
};

}  // namespace

thread_run run_on_threads(std::vector<rank_executor> const& ranks, std::vector<std::vector<at::Tensor>> inputs, std::uint64_t seed) {
    single_threaded_kernels const kernels;
    hall meeting;
    thread_run result;
    result.outputs.resize(ranks.size());
    result.collectives.resize(ranks.size());
    std::vector<std::exception_ptr> problems(ranks.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        threads.emplace_back([&, r] {
            at::set_num_threads(1);
            thread_communicator others(meeting, ranks[r].program().mesh, static_cast<std::int64_t>(r));
            try {
                result.outputs[r] = ranks[r].run(std::move(inputs.at(r)), others, seed);
            } catch (other_rank_failed const&) {
                meeting.end();
            } catch (...) {
                problems[r] = std::current_exception();
                meeting.end();
            }
            result.collectives[r] = std::move(others.ran);
        });
    for (auto& t : threads) t.join();
    for (auto const& p : problems)
        if (p) std::rethrow_exception(p);
    return result;
}

}  // namespace cantle::libtorch
