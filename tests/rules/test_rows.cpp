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

TEST_CASE("no two families register the same op: the later one would win in silence") {
    std::size_t registered = 0;
    for (auto* add : {&rules::add_arithmetic_rules, &rules::add_activation_rules, &rules::add_comparison_rules,
                      &rules::add_cast_rules, &rules::add_linear_rules, &rules::add_grouped_mm_rules,
                      &rules::add_view_rules, &rules::add_slicing_rules, &rules::add_joining_rules,
                      &rules::add_padding_rules, &rules::add_indexing_rules, &rules::add_scatter_rules,
                      &rules::add_sorting_rules, &rules::add_reduction_rules, &rules::add_norm_rules,
                      &rules::add_softmax_rules, &rules::add_attention_rules, &rules::add_normalisation_rules,
                      &rules::add_batch_norm_rules, &rules::add_convolution_rules, &rules::add_pooling_rules,
                      &rules::add_resampling_rules, &rules::add_embedding_rules, &rules::add_loss_rules,
                      &rules::add_factory_rules, &rules::add_triangle_rules, &rules::add_random_rules,
                      &rules::add_optimizer_rules, &rules::add_region_rules}) {
        rule_registry family;
        add(family);
        registered += family.op_names().size();
    }
    CHECK(registered == standard_rules().op_names().size());
}
