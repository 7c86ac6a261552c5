// SPDX-License-Identifier: BSL-1.0
// Sorting and counting: which cuts pass. Notation as in test_rows.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {
using i = std::int64_t;
example_op sort(std::string name, argument_value dim) {
    auto e = example_op(std::move(name)).tensor("self", {4, 6, 8}).literal("dim", std::move(dim)).out({4, 6, 8}, dtype::int64);
    return e;
}
}  // namespace

TEST_CASE("A22, A55: sorting cuts the other dims, the dim that this op names, and passes no Partial") {
    for (auto name : {"aten::topk", "aten::sort", "aten::sort.stable"}) {
        CHECK(rows_of(sort(name, i{1}).out({4, 6, 8}), 2) == texts{"R -> R, R", "S0 -> S0, S0", "S2 -> S2, S2"});
        CHECK(rows_of(sort(name, i{-3}).out({4, 6, 8}), 2) == texts{"R -> R, R", "S1 -> S1, S1", "S2 -> S2, S2"});
    }
    for (auto name : {"aten::argsort", "aten::argsort.stable"}) {
        CHECK(rows_of(sort(name, i{0}), 2) == texts{"R -> R", "S1 -> S1", "S2 -> S2"});
        CHECK(rows_of(sort(name, none), 2) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});  // the last dim
    }
}

TEST_CASE("histograms of parts add up where the range is given; no Partial of values passes") {
    auto const e = [](double low, double high) {
        return example_op("aten::histc").tensor("self", {4, 6}).literal("bins", i{8}).literal("min", low).literal("max", high).out({8});
    };
    CHECK(rows_of(e(0, 4), 2) == texts{"R -> R", "S0 -> P", "S1 -> P"});
    CHECK(rows_of(e(0, 0), 2) == texts{"R -> R"});
    CHECK(rows_of(e(2, 2), 2) == texts{"R -> R"});
}

TEST_CASE("bincount is as long as its largest value, so it is done whole; it is linear in its weights") {
    auto e = example_op("aten::bincount").tensor("self", {12}, dtype::int64);
    CHECK(rows_of(example_op(e).literal("weights", none).literal("minlength", i{0}).out({5}), 2) == texts{"R -> R"});
    CHECK(rows_of(example_op(e).tensor("weights", {12}).literal("minlength", i{0}).out({5}), 2) ==
          texts{"R, R -> R", "R, P -> P", "R, P(avg) -> P(avg)"});
}

TEST_CASE("places in a sorted sequence: values are cut freely, counts in parts of the sequence add up, larger values come later") {
    auto const flat =
        example_op("aten::searchsorted.Tensor").tensor("sorted_sequence", {8}).tensor("self", {4, 6}).out({4, 6}, dtype::int64);
    CHECK(rows_of(flat, 2) == texts{"R, R -> R", "R, S0 -> S0", "R, S1 -> S1", "S0, R -> P", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    auto const rows =
        example_op("aten::searchsorted.Tensor").tensor("sorted_sequence", {4, 8}).tensor("self", {4, 6}).out({4, 6}, dtype::int64);
    CHECK(rows_of(rows, 2) ==
          texts{"R, R -> R", "S0, S0 -> S0", "R, S1 -> S1", "S1, R -> P", "R, P(max) -> P(max)", "R, P(min) -> P(min)"});
    // A sorter names places of the whole sequence.
    auto const sorter = example_op("aten::searchsorted.Tensor")
                            .tensor("sorted_sequence", {4, 8})
                            .tensor("self", {4, 6})
                            .tensor("sorter", {4, 8}, dtype::int64)
                            .out({4, 6}, dtype::int64);
    CHECK(rows_of(sorter, 2) ==
          texts{"R, R, R -> R", "S0, S0, S0 -> S0", "R, S1, R -> S1", "R, P(max), R -> P(max)", "R, P(min), R -> P(min)"});
    auto const literal = example_op("aten::searchsorted.Scalar").tensor("sorted_sequence", {8}).literal("self", 0.5).out({}, dtype::int64);
    CHECK(rows_of(literal, 2) == texts{"R -> R", "S0 -> P"});
    auto const buckets = example_op("aten::bucketize.Tensor").tensor("self", {4, 6}).tensor("boundaries", {8}).out({4, 6}, dtype::int64);
    CHECK(rows_of(buckets, 2) ==
          texts{"R, R -> R", "S0, R -> S0", "S1, R -> S1", "R, S0 -> P", "P(max), R -> P(max)", "P(min), R -> P(min)"});
}

TEST_CASE("one_hot passes cuts of its input where the number of classes is given") {
    auto const e = [](i classes) {
        return example_op("aten::one_hot")
            .tensor("self", {4, 6}, dtype::int64)
            .literal("num_classes", classes)
            .out({4, 6, 8}, dtype::int64);
    };
    CHECK(rows_of(e(8), 2) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});
    CHECK(rows_of(e(-1), 2) == texts{"R -> R"});
}
