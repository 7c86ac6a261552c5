// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// TRW-S on several threads: messages, bounds, labels and flags are those of one thread.
#include <cantle/mrf/trws.hpp>

#include <doctest/doctest.h>

#include "random_graphs.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace cantle::mrf;

namespace {
factor_graph whole_graph(std::uint64_t seed, std::uint32_t variables) {
    testing::dice d(seed);
    return testing::random_graph(testing::all_shapes[seed % 6], testing::costs::whole, {variables, 5, 0, false}, d);
}

struct trace {
    std::vector<double> bounds, messages;
    std::vector<label> labels;
    std::vector<char> out;
    bool operator==(trace const&) const = default;
};

trace run(factor_graph const& g, std::size_t threads, double best) {
    trws m(g);
    m.threads(threads);
    trace t;
    t.out.assign(m.label_total(), 0);
    for (int i = 0; i < 12; ++i) {
        REQUIRE(m.forward());
        t.bounds.push_back(m.last_bound());
        REQUIRE(m.backward_and_fix(best, t.out));
        t.bounds.push_back(m.last_bound());
        t.labels.insert(t.labels.end(), m.labels().begin(), m.labels().end());
    }
    for (std::size_t e = 0; e < g.edge_count(); ++e)
        for (auto side : {m.into_later(e), m.into_earlier(e)}) t.messages.insert(t.messages.end(), side.begin(), side.end());
    return t;
}
}  // namespace

TEST_CASE("threads change nothing but the time") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        auto const g = whole_graph(seed, 40);
        auto const alone = run(g, 1, 1e9);
        CHECK(alone == run(g, 2, 1e9));
        CHECK(alone == run(g, 4, 1e9));
        // A best energy just above the bound takes labels out: flags depend on sums in the order of the pass.
        double const best = alone.bounds.back() + 3;
        auto const fixed = run(g, 1, best);
        CHECK(fixed == run(g, 3, best));
        bool any = false;
        for (char f : fixed.out) any = any || f;
        CHECK(any);
    }
}

TEST_CASE("without decoding the bounds are the same") {
    auto const g = whole_graph(5, 30);
    trws with(g), without(g);
    without.decode(false);
    for (int i = 0; i < 5; ++i) {
        REQUIRE(with.forward());
        REQUIRE(without.forward());
        CHECK(with.last_bound() == without.last_bound());
        REQUIRE(with.backward());
        REQUIRE(without.backward());
        CHECK(with.last_bound() == without.last_bound());
    }
}
