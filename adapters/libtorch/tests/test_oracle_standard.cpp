// SPDX-License-Identifier: BSL-1.0
// The gate: what `cantle check-rules` runs by default. Every row of every rule on every sample, strategies of two axes, the search for
// true rows that are not declared, and mutations. `cantle check-rules --all` does the same with nothing left out.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/check_rules.hpp>
#include <adapters/libtorch/samples/samples.hpp>

#include <ATen/Parallel.h>

using namespace cantle::libtorch;

TEST_CASE("the standard rules are sound and complete on their samples, and their mutants are refuted") {
    at::set_num_threads(1);
    auto const check = check_rules(standard_registry(), rule_samples(), reviewed_waivers(), {});
    MESSAGE(text_of(check, false));
    for (auto const& o : check.ops) {
        for (auto const& r : o.refuted) FAIL_CHECK("refuted: ", r);
        for (auto const& r : o.missing) FAIL_CHECK("true, neither declared nor waived: ", o.op, " ", r);
        for (auto const& r : o.mutations.survivors) MESSAGE("a mutant survives: ", r);
    }
    for (auto const& op : check.uncovered) FAIL_CHECK(op, " has no samples");
    CHECK(check.passed());
    CHECK(check.mutations().rate() >= least_mutation_rate);
}
