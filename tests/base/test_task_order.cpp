// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/base/task_order.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace cantle;

namespace {
using pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
}

TEST_CASE("every step runs once, after all it waits for, on any number of threads") {
    // A grid: step (r, c) waits for (r - 1, c) and (r, c - 1).
    std::uint32_t const side = 12;
    pairs waits;
    for (std::uint32_t r = 0; r < side; ++r)
        for (std::uint32_t c = 0; c < side; ++c) {
            if (r > 0) waits.emplace_back((r - 1) * side + c, r * side + c);
            if (c > 0) waits.emplace_back(r * side + c - 1, r * side + c);
        }
    auto const order = step_order::of(side * side, waits);
    for (std::size_t threads : {1, 2, 5}) {
        std::vector<std::uint64_t> paths(side * side, 0);  // number of ways to reach a step: wrong in any other order
        std::vector<std::atomic<int>> ran(side * side);
        run_in_order(order, threads, [&](std::size_t worker, std::uint32_t i) {
            CHECK_UNARY(worker < threads);
            ++ran[i];
            auto const r = i / side, c = i % side;
            paths[i] = r + c == 0 ? 1 : (r > 0 ? paths[i - side] : 0) + (c > 0 ? paths[i - 1] : 0);
        });
        for (auto const& n : ran) CHECK(n == 1);
        CHECK(paths.back() == 705432);  // 22 over 11
    }
}

TEST_CASE("one thread takes ready steps in order") {
    auto const order = step_order::of(5, pairs{{3, 0}});
    std::vector<std::uint32_t> seen;
    run_in_order(order, 1, [&](std::size_t, std::uint32_t i) { seen.push_back(i); });
    CHECK(seen == std::vector<std::uint32_t>{1, 2, 3, 0, 4});
}

TEST_CASE("what a step throws comes out when all threads are at rest") {
    auto const order = step_order::of(50, pairs{});
    for (std::size_t threads : {1, 3})
        CHECK_THROWS_AS(run_in_order(order, threads,
                                     [](std::size_t, std::uint32_t i) {
                                         if (i == 7) throw std::runtime_error("seven");
                                     }),
                        std::runtime_error);
    run_in_order(step_order::of(0, pairs{}), 2, [](std::size_t, std::uint32_t) { FAIL("no step"); });
}
