// SPDX-License-Identifier: BSL-1.0
// What holds for the rows of every rule. What each family lists stands in test_<family>.cpp; the numbers behind the rows are checked with
// real ATen ops in adapters/libtorch/tests/test_rules_oracle.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

TEST_CASE("the row that replicates everything is always the first") {
    auto const silu = example_op("aten::silu").tensor("self", {4}).out({4});
    auto const add = example_op("aten::add.Tensor").tensor("self", {4}).tensor("other", {4}).out({4});
    for (auto const& e : {silu, view_op({4}, {2, 2}), add}) {
        auto const rows = rows_of(e, 2);
        CHECK(rows[0].find_first_of("SP") == std::string::npos);
    }
}
