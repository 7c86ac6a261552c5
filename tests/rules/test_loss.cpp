// SPDX-License-Identifier: BSL-1.0
// Rows of losses for one axis: reduction 0 none, 1 mean, 2 sum.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

example_op nll(std::int64_t how, bool weighted) {
    auto e = example_op("aten::nll_loss_forward").tensor("self", {8, 6}).tensor("target", {8}, dtype::int64);
    weighted ? e.tensor("weight", {6}) : e.literal("weight", none);
    return e.literal("reduction", how).literal("ignore_index", std::int64_t{-100}).out(how == 0 ? shape{8} : shape{}).out({});
}
example_op nll_backward(std::int64_t how) {
    return example_op("aten::nll_loss_backward")
        .tensor("grad_output", how == 0 ? shape{8} : shape{})
        .tensor("self", {8, 6})
        .tensor("target", {8}, dtype::int64)
        .tensor("weight", {6})
        .literal("reduction", how)
        .literal("ignore_index", std::int64_t{-100})
        .tensor("total_weight", {})
        .out({8, 6});
}
example_op loss(char const* name, std::int64_t how, shape target = {4, 6}) {
    return example_op(name)
        .tensor("self", {4, 6})
        .tensor("target", std::move(target))
        .literal("reduction", how)
        .out(how == 0 ? shape{4, 6} : shape{});
}
}  // namespace

TEST_CASE("A25: the mean of a weighted nll_loss over cut tokens sums the weights inside and leaves Partial(sum)") {
    auto const mean = nll(1, true);
    CHECK(rows_of(mean, 2) ==
          texts{"R, R, R -> R, R", "S0, S0, R -> P, R", "S1, R, S0 -> P, R", "P, R, R -> P, R", "P(avg), R, R -> P(avg), R"});
    inner_collective const total{collective_kind::all_reduce, reduction::sum, true, 1};
    for (auto const& row : standard_rules().rows(mean.query(), 2)) {
        bool const cut = row.operands[0].is_shard();
        CHECK(row.inner == (cut ? std::vector{total} : std::vector<inner_collective>{}));
        CHECK(row.masked == row.operands[0].is_shard(1));  // classes: foreign targets are not the rank's
    }
}

TEST_CASE("A26: a sum is Partial over tokens and over classes, with its total weight, and reduces nothing inside") {
    auto const sum = nll(2, true);
    CHECK(has(rows_of(sum, 2), "S0, S0, R -> P, P"));
    CHECK(has(rows_of(sum, 2), "S1, R, S0 -> P, P"));
    CHECK(has(rows_of(sum, 2), "R, R, P -> P, P"));
    for (auto const& row : standard_rules().rows(sum.query(), 2)) CHECK(row.inner.empty());
    CHECK(expanded(nll(2, false), device_mesh::parse("2x2")).has("S0,S1 | S0,R -> P,P | P,P"));
    CHECK(has(rows_of(nll(0, true), 2), "S0, S0, R -> S0, R"));
    CHECK(has(rows_of(nll(0, true), 2), "S1, R, S0 -> P, R"));
    CHECK(has(rows_of(nll(0, true), 2), "R, R, P -> P, R"));
}

TEST_CASE("a single target has a total weight even without reduction") {
    auto const e = example_op("aten::nll_loss_forward")
                       .tensor("self", {6})
                       .tensor("target", {}, dtype::int64)
                       .tensor("weight", {6})
                       .literal("reduction", std::int64_t{0})
                       .literal("ignore_index", std::int64_t{-100})
                       .out({})
                       .out({});
    CHECK(has(rows_of(e, 2), "S0, R, S0 -> P, P"));
    CHECK(has(rows_of(e, 2), "R, R, P -> P, P"));
}

TEST_CASE("the backward of nll_loss: tokens, own classes, linear in gradient and weight; a sum does not read the total weight") {
    CHECK(rows_of(nll_backward(1), 2) == texts{"R, R, R, R, R -> R", "R, S0, S0, R, R -> S0", "R, S1, R, S0, R -> S1", "P, R, R, R, R -> P",
                                               "P(avg), R, R, R, R -> P(avg)", "R, R, R, P, R -> P", "R, R, R, P(avg), R -> P(avg)"});
    CHECK(has(rows_of(nll_backward(0), 2), "S0, S0, S0, R, R -> S0"));
    CHECK(has(rows_of(nll_backward(2), 2), "R, S0, S0, R, P -> S0"));
    CHECK(has(rows_of(nll_backward(2), 2), "R, S1, R, S0, P -> S1"));
    for (auto const& row : standard_rules().rows(nll_backward(1).query(), 2)) CHECK(row.masked == row.operands[1].is_shard(1));
}

TEST_CASE("nll_loss2d cuts batch and image with the targets, and the classes without") {
    auto const e = example_op("aten::nll_loss2d_forward")
                       .tensor("self", {4, 6, 8, 2})
                       .tensor("target", {4, 8, 2}, dtype::int64)
                       .literal("weight", none)
                       .literal("reduction", std::int64_t{2})
                       .literal("ignore_index", std::int64_t{-100})
                       .out({})
                       .out({});
    CHECK(rows_of(e, 2) == texts{"R, R -> R, R", "S0, S0 -> P, P", "S2, S1 -> P, P", "S3, S2 -> P, P", "S1, R -> P, P", "P, R -> P, R",
                                 "P(avg), R -> P(avg), R"});
}

TEST_CASE("a mean over cut elements is an average of means, a sum a sum") {
    for (auto name : {"aten::mse_loss", "aten::l1_loss", "aten::smooth_l1_loss", "aten::huber_loss"}) {
        CHECK(rows_of(loss(name, 1), 2) == texts{"R, R -> R", "S0, S0 -> P(avg)", "S1, S1 -> P(avg)"});
        CHECK(rows_of(loss(name, 2), 2) == texts{"R, R -> R", "S0, S0 -> P", "S1, S1 -> P"});
        CHECK(rows_of(loss(name, 0), 2) == texts{"R, R -> R", "S0, S0 -> S0", "S1, S1 -> S1"});
    }
    CHECK(has(rows_of(loss("aten::mse_loss", 1, {6}), 2), "S0, R -> P(avg)"));
    CHECK(has(rows_of(loss("aten::mse_loss", 1, {6}), 2), "S1, S0 -> P(avg)"));
}

TEST_CASE("what a loss is affine in passes averages, what it is linear in sums too") {
    CHECK(rows_of(loss("aten::binary_cross_entropy", 1), 2) == texts{"R, R -> R", "S0, S0 -> P(avg)", "S1, S1 -> P(avg)"});
    CHECK(has(rows_of(loss("aten::kl_div", 2), 2), "P(avg), R -> P(avg)"));
    auto const weighted = rows_of(example_op("aten::binary_cross_entropy_with_logits")
                                      .tensor("self", {4, 6})
                                      .tensor("target", {4, 6})
                                      .tensor("weight", {6})
                                      .tensor("pos_weight", {6})
                                      .literal("reduction", std::int64_t{1})
                                      .out({}),
                                  2);
    CHECK(has(weighted, "S0, S0, R, R -> P(avg)"));
    CHECK(has(weighted, "S1, S1, S0, S0 -> P(avg)"));
    CHECK(has(weighted, "R, R, P, R -> P"));
    CHECK(has(weighted, "R, R, R, P(avg) -> P(avg)"));
}

TEST_CASE("gradients of elementwise losses lie like the elements and are linear in the gradient") {
    auto const of = [](char const* name, shape grad) {
        return rows_of(example_op(name)
                           .tensor("grad_output", std::move(grad))
                           .tensor("self", {4, 6})
                           .tensor("target", {4, 6})
                           .literal("reduction", std::int64_t{1})
                           .out({4, 6}),
                       2);
    };
    for (auto name :
         {"aten::mse_loss_backward", "aten::smooth_l1_loss_backward", "aten::huber_loss_backward", "aten::binary_cross_entropy_backward"}) {
        CHECK(has(of(name, {}), "R, S0, S0 -> S0"));
        CHECK(has(of(name, {4, 6}), "S1, S1, S1 -> S1"));
        CHECK(has(of(name, {}), "P, R, R -> P"));
    }
    CHECK(has(of("aten::mse_loss_backward", {}), "R, P, P -> P"));
    CHECK_FALSE(has(of("aten::huber_loss_backward", {}), "R, P, P -> P"));
    CHECK_FALSE(has(of("aten::binary_cross_entropy_backward", {}), "R, R, P(avg) -> P(avg)"));
}
