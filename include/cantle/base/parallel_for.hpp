// SPDX-License-Identifier: BSL-1.0
#pragma once
// Independent pieces of work on several threads. Which thread takes which piece is left to chance, so a piece must read nothing that
// another one writes: then results are the same for any number of threads. Starting a thread costs some 20 us: callers keep small work on
// one.
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cantle {

/// Threads to use when `wanted` are asked for; 0 asks for as many as the machine runs at once. At least 1.
inline unsigned thread_count(unsigned wanted) {
    if (wanted > 0) return wanted;
    unsigned const here = std::thread::hardware_concurrency();
    return here > 0 ? here : 1;
}

/// Calls body(i) once for every i < count, on at most `threads` threads (0: see thread_count), the caller's among them. An exception of a
/// piece ends the loop after the pieces that have begun and is thrown here.
template <class Body>
void parallel_for(std::size_t count, unsigned threads, Body const& body) {
    if (count <= 1 || threads == 1) {
        for (std::size_t i = 0; i < count; ++i) body(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::mutex guard;
    std::exception_ptr failure;
    auto const take_pieces = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                body(i);
            } catch (...) {
                std::lock_guard const lock(guard);
                if (!failure) failure = std::current_exception();
                next = count;
            }
        }
    };
    std::vector<std::jthread> others;
    std::size_t const most = thread_count(threads);
    for (std::size_t k = 1; k < most && k < count; ++k) {
        try {
            others.emplace_back(take_pieces);
        } catch (std::system_error const&) {
            break;  // no more threads to be had: those that run do the rest
        }
    }
    take_pieces();
    others.clear();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace cantle
