// SPDX-License-Identifier: BSL-1.0
// Ranks as threads: what they bring arrives, in the order of the members, whatever the timing; and no mistake of a rank lets others hang.
// Runs under ThreadSanitizer too (./dev test tsan).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/program/thread_group.hpp>

#include <random>

using namespace cantle;

namespace {

using buffer = std::shared_ptr<std::vector<int> const>;
using ranks_of = std::vector<std::int64_t>;
using hall = thread_group<buffer, std::string>;

buffer of(int x) { return std::make_shared<std::vector<int> const>(1, x); }

struct outcome {
    error_code code = error_code::bad_option;  // nothing thrown
    std::string text;
};
template <class Body>
outcome failing(std::size_t ranks, Body const& body) {
    hall h(ranks);
    try {
        run_ranks(h, ranks, [&](std::size_t r) { body(h, r); });
    } catch (error const& e) {
        return {e.code(), e.what()};
    }
    return {};
}

}  // namespace

TEST_CASE("every member gets what all members brought, in their order") {
    hall h(3);
    run_ranks(h, 3, [&](std::size_t r) {
        auto& g = h.group({2, 0, 1});  // rank 2 is member 0
        std::size_t const member = r == 2 ? 0 : r + 1;
        for (int round = 0; round < 200; ++round) {
            auto const t = h.start(g, member, "x", of(static_cast<int>(member) + 10 * round));
            auto const& all = h.wait(t);
            for (int m = 0; m < 3; ++m) CHECK((*all[static_cast<std::size_t>(m)])[0] == m + 10 * round);
        }
    });
}

// Ranks 0 1 / 2 3 on two axes: rows {0 1} {2 3}, columns {0 2} {1 3}, and all. Each rank starts up to 8 collectives before it waits, in an
// order of its own; starts come in the same order on all.
TEST_CASE("many collectives of several groups under way at once do not mix, in whatever order ranks wait for them") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        hall h(4);
        run_ranks(h, 4, [&](std::size_t r) {
            std::mt19937 same(seed), own(seed * 7 + static_cast<unsigned>(r));
            auto const i = static_cast<std::int64_t>(r);
            std::vector<ranks_of> const mine = {{i / 2 * 2, i / 2 * 2 + 1}, {i % 2, i % 2 + 2}, {0, 1, 2, 3}};
            std::vector<std::pair<hall::ticket, std::pair<std::size_t, int>>> open;
            for (int round = 0; round < 100; ++round) {
                auto const which = same() % 3;
                auto const& ranks = mine[which];
                std::size_t member = 0;
                while (ranks[member] != i) ++member;
                open.push_back({h.start(h.group(ranks), member, std::to_string(which), of(round * 4 + static_cast<int>(r))),
                                {which, round}});
                if (open.size() < 8 && own() % 3 != 0) continue;
                auto const taken = open.begin() + static_cast<std::ptrdiff_t>(own() % open.size());
                auto const& all = h.wait(taken->first);
                auto const& [group, started] = taken->second;
                for (std::size_t m = 0; m < all.size(); ++m)
                    CHECK((*all[m])[0] == started * 4 + static_cast<int>(mine[group][m]));
                open.erase(taken);
            }
            for (auto const& o : open) h.wait(o.first);
        });
    }
}

TEST_CASE("the last start completes a collective, without anybody waiting") {
    hall h(2);
    auto& g = h.group({0, 1});
    auto const a = h.start(g, 0, "x", of(1));
    CHECK(!h.is_complete(a));
    auto const b = h.start(g, 1, "x", of(2));
    CHECK(h.is_complete(a));
    CHECK(h.is_complete(b));
    CHECK(h.wait(a).size() == 2);
}

TEST_CASE("a rank that throws ends the ranks that wait, and its error is the one reported") {
    auto const o = failing(3, [](hall& h, std::size_t r) {
        auto& g = h.group({0, 1, 2});
        h.wait(h.start(g, r, "first", of(0)));
        if (r == 1) throw error(error_code::rank_failed, "rank 1", "broke", "");
        auto const under_way = h.start(g, r, "second", of(0));
        auto const later = h.start(g, r, "third", of(0));
        h.wait(later);
        h.wait(under_way);
    });
    CHECK(o.code == error_code::rank_failed);
}

TEST_CASE("a rank that is done ends those that wait for it") {
    auto const o = failing(3, [](hall& h, std::size_t r) {
        if (r != 2) h.wait(h.start(h.group({0, 1, 2}), r, "x", of(0)));
    });
    CHECK(o.code == error_code::bad_program);
    CHECK_MESSAGE(o.text.find("rank 2 is done") != std::string::npos, o.text);
}

TEST_CASE("members that bring other collectives are told so") {
    auto const o = failing(2, [](hall& h, std::size_t r) { h.wait(h.start(h.group({0, 1}), r, r == 0 ? "gather" : "reduce", of(0))); });
    CHECK(o.code == error_code::bad_program);
    CHECK_MESSAGE(o.text.find("bring other collectives") != std::string::npos, o.text);
}

// Case D14. Rank 0 waits in {0 1}, rank 1 in {1 2}, rank 2 in {0 2}: nobody comes to a second collective.
TEST_CASE("ranks that wait for each other in a circle all throw") {
    auto const o = failing(3, [](hall& h, std::size_t r) {
        ranks_of const groups[] = {{0, 1}, {1, 2}, {0, 2}};
        h.wait(h.start(h.group(groups[r]), r == 2 ? 1 : 0, "x", of(0)));
    });
    CHECK(o.code == error_code::bad_program);
    CHECK_MESSAGE(o.text.find("all ranks wait") != std::string::npos, o.text);
}

TEST_CASE("buffers live as long as somebody may read them, and no longer") {
    hall h(2);
    auto& g = h.group({0, 1});
    std::weak_ptr<std::vector<int> const> seen;
    {
        auto x = of(1);
        seen = x;
        auto const a = h.start(g, 0, "x", std::move(x));
        CHECK(!seen.expired());
        auto const b = h.start(g, 1, "x", of(2));
        CHECK(!seen.expired());
    }
    CHECK(seen.expired());
}
