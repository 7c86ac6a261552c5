// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: steps that depend on some earlier ones are to run on several threads, with the result of running them one after another.
// Idea: a step starts when all that it depends on are done; of the ready ones the first in order starts first. What a step reads and
// writes must be its own, or that of steps it is ordered with: then the result does not depend on the number of threads.
// Complexity: O(log steps) under a lock per step, so steps should take microseconds at least.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <system_error>
#include <thread>
#include <vector>

namespace cantle {

/// Who waits for whom: after step i, each of next[first[i]] .. next[first[i + 1]] has one thing less to wait for.
struct step_order {
    std::vector<std::uint32_t> first = {0}, next;
    std::vector<std::uint32_t> waits;  ///< [step] steps it waits for

    /// From pairs (earlier, later) of n steps.
    template <class Pairs>
    static step_order of(std::size_t n, Pairs const& pairs) {
        step_order o;
        o.first.assign(n + 1, 0);
        o.waits.assign(n, 0);
        for (auto const& [a, b] : pairs) {
            ++o.first[a + 1];
            ++o.waits[b];
        }
        for (std::size_t i = 0; i < n; ++i) o.first[i + 1] += o.first[i];
        o.next.resize(o.first[n]);
        std::vector<std::uint32_t> fill(o.first.begin(), o.first.end() - 1);
        for (auto const& [a, b] : pairs) o.next[fill[a]++] = b;
        return o;
    }
    std::size_t size() const { return waits.size(); }
};

/// Runs step(worker, i) for all i, on at most `threads` threads; worker is below `threads`. An exception of a step is thrown on after all
/// threads came to rest; steps that had not started then do not run.
template <class Step>
void run_in_order(step_order const& order, std::size_t threads, Step step) {
    std::mutex lock;
    std::condition_variable change;
    auto waits = order.waits;
    std::size_t left = order.size();
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < waits.size(); ++i)
        if (waits[i] == 0) ready.push(i);
    std::exception_ptr failed;
    auto const work = [&](std::size_t worker) {
        std::unique_lock hold(lock);
        while (true) {
            change.wait(hold, [&] { return left == 0 || failed || !ready.empty(); });
            if (left == 0 || failed) return;
            auto const i = ready.top();
            ready.pop();
            hold.unlock();
            std::exception_ptr thrown;
            try {
                step(worker, i);
            } catch (...) {
                thrown = std::current_exception();
            }
            hold.lock();
            if (thrown && !failed) failed = thrown;
            --left;
            std::size_t started = 0;
            for (auto k = order.first[i]; k < order.first[i + 1]; ++k)
                if (--waits[order.next[k]] == 0) {
                    ready.push(order.next[k]);
                    ++started;
                }
            if (left == 0 || failed || started > 1) change.notify_all();
        }
    };
    std::vector<std::thread> others;
    for (std::size_t w = 1; w < threads; ++w) {
        try {
            others.emplace_back(work, w);
        } catch (std::system_error const&) {
            break;  // no more threads to be had: those that run do the rest
        }
    }
    work(0);
    for (auto& t : others) t.join();
    if (failed) std::rethrow_exception(failed);
}

}  // namespace cantle
