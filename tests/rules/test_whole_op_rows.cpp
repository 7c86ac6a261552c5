// SPDX-License-Identifier: BSL-1.0
// What the rules of the whole ops list for one axis: layer_norm's gradients, embedding, cross-entropy, factories. Notation as in
// test_rows.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {
example_op layer_norm_backward(bool input, bool weight, bool bias) {
    auto e = example_op("aten::native_layer_norm_backward")
                 .tensor("grad_out", {4, 6, 8})
                 .tensor("input", {4, 6, 8})
                 .literal("normalized_shape", shape{8})
                 .tensor("mean", {4, 6, 1})
                 .tensor("rstd", {4, 6, 1})
                 .tensor("weight", {8})
                 .tensor("bias", {8})
                 .literal("output_mask", std::vector<bool>{input, weight, bias});
    input ? e.out({4, 6, 8}) : e.no_out();
    weight ? e.out({8}) : e.no_out();
    bias ? e.out({8}) : e.no_out();
    return e;
}
}  // namespace

TEST_CASE("A35: gradients of layer_norm that nobody asked for carry no placement") {
    CHECK(has(rows_of(layer_norm_backward(true, true, true), 2), "S0, S0, S0, S0, R, R -> S0, P, P"));
    CHECK(has(rows_of(layer_norm_backward(true, false, true), 2), "S0, S0, S0, S0, R, R -> S0, R, P"));
    CHECK(has(rows_of(layer_norm_backward(false, true, false), 2), "P, R, R, R, R, R -> R, P, R"));
    // On two axes: the layout of the missing gradient stays empty.
    CHECK(expanded(layer_norm_backward(true, false, true), device_mesh::parse("2x2"))
              .has("S0,S1 | S0,S1 | S0,S1 | S0,S1 | R,R | R,R -> S0,S1 | R,R | P,P"));
}

TEST_CASE("A47: a vocabulary cut of an embedding is masked, and the mask is a matter of the row, not of a placement") {
    auto const e = example_op("aten::embedding")
                       .tensor("weight", {12, 8})
                       .tensor("indices", {4, 6}, dtype::int64)
                       .literal("padding_idx", std::int64_t{-1})
                       .literal("scale_grad_by_freq", false)
                       .literal("sparse", false)
                       .out({4, 6, 8});
    CHECK(rows_of(e, 2) == texts{"R, R -> R", "R, S0 -> S0", "R, S1 -> S1", "S1, R -> S2", "S0, R -> P", "P, R -> P", "P(avg), R -> P(avg)",
                                 "P(max), R -> P(max)", "P(min), R -> P(min)"});
    for (auto const& row : standard_rules().rows(e.query(), 2)) CHECK(row.masked == (text_of(row) == "S0, R -> P"));

    auto const backward = [](bool scale) {
        return example_op("aten::embedding_dense_backward")
            .tensor("grad_output", {4, 6, 8})
            .tensor("indices", {4, 6}, dtype::int64)
            .literal("num_weights", std::int64_t{12})
            .literal("padding_idx", std::int64_t{-1})
            .literal("scale_grad_by_freq", scale)
            .out({12, 8});
    };
    CHECK(rows_of(backward(false), 2) == texts{"R, R -> R", "S0, S0 -> P", "S1, S1 -> P", "S2, R -> S1", "R, R -> S0", "P, R -> P",
                                               "P(avg), R -> P(avg)"});
    CHECK(rows_of(backward(true), 2) == texts{"R, R -> R", "S2, R -> S1", "R, R -> S0", "P, R -> P", "P(avg), R -> P(avg)"});
    for (auto const& row : standard_rules().rows(backward(false).query(), 2)) CHECK(row.masked == (text_of(row) == "R, R -> S0"));
}

namespace {
example_op cross_entropy(std::string reduce) {
    auto e = example_op("cantle::cross_entropy")
                 .tensor("logits", {4, 6, 8})
                 .tensor("target", {4, 6}, dtype::int64)
                 .literal("ignore_index", std::int64_t{-100})
                 .literal("reduction", reduce);
    reduce == "none" ? e.out({4, 6}) : e.out({});
    return e.out({4, 6}).out({});
}
}  // namespace

TEST_CASE("A25: a cut of the tokens sums the counts inside and leaves the loss Partial(sum), never an average of averages") {
    for (auto reduce : {"mean", "sum"}) {
        auto const e = cross_entropy(reduce);
        CHECK(rows_of(e, 2) == texts{"R, R -> R, R, R", "S0, S0 -> P, S0, R", "S1, S1 -> P, S1, R", "S2, R -> R, R, R"});
        for (auto const& row : standard_rules().rows(e.query(), 2))
            if (text_of(row) == "S0, S0 -> P, S0, R")
                CHECK(row.inner == std::vector{inner_collective{collective_kind::all_reduce, reduction::sum, true, 2}});
    }
}

TEST_CASE("A26: a cut of the vocabulary reduces maximum, sum of exponentials and picked logit inside and leaves all results Replicate") {
    for (auto const& row : standard_rules().rows(cross_entropy("sum").query(), 2))
        if (text_of(row) == "S2, R -> R, R, R") {
            CHECK(row.masked);
            REQUIRE(row.inner.size() == 3);
            CHECK(row.inner[0].reduce == reduction::max);
            CHECK(row.inner[1].reduce == reduction::sum);
            CHECK(row.inner[2].reduce == reduction::sum);
            for (auto const& c : row.inner) CHECK((c.kind == collective_kind::all_reduce && c.on_output && c.index == 1));
        }
    // Batch on one axis, classes on the other: the loss is Partial on the batch axis and Replicate on the class axis.
    CHECK(expanded(cross_entropy("sum"), device_mesh::parse("2x2")).has("S0,S2 | S0,R -> P,R | S0,R | R,R"));
}

TEST_CASE("a loss per token lies like the tokens") {
    CHECK(rows_of(cross_entropy("none"), 2) == texts{"R, R -> R, R, R", "S0, S0 -> S0, S0, R", "S1, S1 -> S1, S1, R", "S2, R -> R, R, R"});
}

TEST_CASE("the backward of cross-entropy cuts tokens or vocabulary and is linear in the gradient") {
    auto const of = [](shape grad) {
        return rows_of(example_op("cantle::cross_entropy_backward")
                           .tensor("grad", std::move(grad))
                           .tensor("logits", {4, 6, 8})
                           .tensor("target", {4, 6}, dtype::int64)
                           .tensor("logsumexp", {4, 6})
                           .tensor("total_weight", {})
                           .literal("ignore_index", std::int64_t{-100})
                           .literal("reduction", std::string("mean"))
                           .out({4, 6, 8}),
                       2);
    };
    CHECK(of({}) ==
          texts{"R, R, R, R, R -> R", "R, S0, S0, S0, R -> S0", "R, S1, S1, S1, R -> S1", "R, S2, R, R, R -> S2", "P, R, R, R, R -> P",
                "P(avg), R, R, R, R -> P(avg)"});
    CHECK(has(of({4, 6}), "S0, S0, S0, S0, R -> S0"));
    CHECK_FALSE(has(of({4, 6}), "R, S0, S0, S0, R -> S0"));
}

TEST_CASE("A52: constants are made in shares, without operands") {
    for (auto name : {"aten::ones", "aten::full", "aten::empty.memory_format"})
        CHECK_MESSAGE((rows_of(example_op(name).literal("size", shape{4, 6}).out({4, 6}), 2) == texts{" -> R", " -> S0", " -> S1"}), name);
    expanded const s(example_op("aten::ones").literal("size", shape{4, 6}).out({4, 6}), device_mesh::parse("2x3"));
    CHECK(s.has("S0,S1"));
    CHECK(s.strategies.size() == 6);  // R, S0, S1 on 2 times R, S0, S1 on 3, less the three that cut the 4 rows by 3
}

TEST_CASE("A49: what counts up is made in shares, each from its own start, a number whole") {
    CHECK(rows_of(example_op("aten::arange").literal("end", std::int64_t{64}).out({64}, dtype::int64), 4) == texts{" -> R", " -> S0"});
    CHECK(rows_of(example_op("aten::scalar_tensor").literal("s", 1.0).out({}), 4) == texts{" -> R"});
}
