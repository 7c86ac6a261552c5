// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/base/parallel_for.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cantle;

TEST_CASE("every piece is done once, with any number of threads") {
    for (unsigned threads : {0U, 1U, 2U, 4U, 9U})
        for (std::size_t count : {0U, 1U, 3U, 1000U}) {
            std::vector<int> done(count, 0);
            parallel_for(count, threads, [&](std::size_t i) { ++done[i]; });
            CHECK(done == std::vector<int>(count, 1));
        }
}

TEST_CASE("an exception of a piece reaches the caller, and the pieces not begun are left out") {
    for (unsigned threads : {1U, 3U}) {
        std::atomic<std::size_t> begun{0};
        CHECK_THROWS_WITH_AS(parallel_for(1000000, threads,
                                          [&](std::size_t) {
                                              ++begun;
                                              throw std::runtime_error("no");
                                          }),
                             "no", std::runtime_error);
        CHECK(begun < 1000);
    }
}

TEST_CASE("at least one thread runs") {
    CHECK(thread_count(0) >= 1);
    CHECK(thread_count(7) == 7);
}
