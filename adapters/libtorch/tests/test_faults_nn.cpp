// SPDX-License-Identifier: BSL-1.0
// Reported faults of products, attention, normalisation and losses, with numbers: the right row gives what the whole op gives, the row that
// was at fault does not. Expected values are the unsharded op's.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <string>

using namespace cantle;
using namespace cantle::libtorch;

namespace {
constexpr auto R = placement::replicate();
constexpr auto P = placement::partial();
constexpr auto Pavg = placement::partial(reduction::avg);
constexpr placement S(std::size_t d) { return placement::shard(d); }

/// The rule has a row of that text, and it is true on n ranks.
void declared(rule_oracle const& o, std::string const& text, std::int64_t n) {
    bool found = false;
    for (auto const& row : o.rules().rows(o.query(), n)) {
        if (text_of(row) != text) continue;
        found = true;
        auto const verdict = o.check(row, n);
        CHECK_MESSAGE(verdict.holds(), o.query().name(), ", ", text, ": ", verdict.reason);
    }
    CHECK_MESSAGE(found, o.query().name(), " has no row ", text);
}
/// The row is false, and the rule does not have it.
void refused(rule_oracle const& o, axis_row const& wrong, std::int64_t n) {
    CHECK_MESSAGE(o.check(wrong, n).refuted(), o.query().name(), ", ", text_of(wrong));
    for (auto const& row : o.rules().rows(o.query(), n)) CHECK_FALSE(text_of(row) == text_of(wrong));
}
at::Tensor numbers(std::vector<double> const& v) { return at::tensor(v, at::kDouble); }
at::Tensor whole_numbers(std::vector<std::int64_t> const& v) { return at::tensor(v, at::kLong); }

sample nll(std::int64_t how) {
    // losses 1, 1, 2, 2 at targets 0, 0, 1, 1 with weights 1, 3
    return sample("aten::nll_loss_forward")
        .arg("self", numbers({-1, -9, -1, -9, -9, -2, -9, -2}).view({4, 2}))
        .arg("target", whole_numbers({0, 0, 1, 1}))
        .arg("weight", numbers({1, 3}))
        .arg("reduction", how)
        .arg("ignore_index", -100);
}
}  // namespace

// ranks: losses 1, 1 | 2, 2; weights 1, 1 | 3, 3. Mean of means (1 + 2) / 2 = 1.5; right (1 + 1 + 6 + 6) / 8 = 1.75
TEST_CASE("A25: a weighted mean over a cut batch is 14/8, not the mean of local means") {
    rule_oracle const o(nll(1));
    REQUIRE(o.outputs()[0].item<double>() == 1.75);
    declared(o, "S0, S0, R -> P, R", 2);
    refused(o, axis_row{{S(0), S(0), R}, {Pavg, R}, {{collective_kind::all_reduce, reduction::sum, true, 1}}}, 2);
    // Forgetting the reduction inside is seen too.
    CHECK(o.check(axis_row{{S(0), S(0), R}, {P, R}}, 2).refuted());
}

TEST_CASE("A26: with cut classes the count is that of all ranks; a sum is Partial on token and class axes alike") {
    declared(rule_oracle(nll(1)), "S1, R, S0 -> P, R", 2);
    rule_oracle const sum(nll(2));
    REQUIRE(sum.outputs()[0].item<double>() == 14);
    declared(sum, "S1, R, S0 -> P, P", 2);
    declared(sum, "S0, S0, R -> P, P", 2);
    refused(sum, axis_row{{S(1), R, S(0)}, {R, R}, {}, true}, 2);
    auto const mesh = device_mesh::parse("2x2");
    layout_table layouts;
    rule_oracle const o(nll(1));
    auto const both = expand_axes(o.query(), mesh, standard_registry(), layouts);
    std::size_t cut_twice = 0;
    for (std::size_t s = 0; s < both.size(); ++s) {
        auto const strategy = strategy_of(both, s, layouts);
        auto const verdict = o.check(strategy, mesh);
        CHECK_MESSAGE(!verdict.refuted(), strategy.layouts[0].text(mesh), ": ", verdict.reason);
        cut_twice += strategy.inner.size() == 2;
    }
    CHECK(cut_twice > 0);
}

TEST_CASE("A34: batch_norm backward by channels has all tensors cut") {
    auto const x = eighths({4, 6, 3}), w = eighths({6});
    auto const mean = x.mean(shape{0, 2}), deviation = (x - mean.view({1, 6, 1})).pow(2).mean(shape{0, 2});
    rule_oracle const o(sample("aten::native_batch_norm_backward")
                            .arg("grad_out", eighths({4, 6, 3}))
                            .arg("input", x)
                            .arg("weight", w)
                            .arg("running_mean", none)
                            .arg("running_var", none)
                            .arg("save_mean", mean)
                            .arg("save_invstd", (deviation + 1e-5).rsqrt())
                            .arg("train", true)
                            .arg("eps", 1e-5)
                            .arg("output_mask", std::vector<bool>{true, true, true}));
    declared(o, "S1, S1, S0, S0, S0 -> S1, S0, S0", 3);
    declared(o, "S0, S0, R, R, R -> S0, R, R", 2);
    refused(o, axis_row{{S(0), S(0), R, R, R}, {S(0), P, P}}, 2);  // needs the sums of all ranks
}

TEST_CASE("A35: layer_norm backward without the weight's gradient") {
    auto const x = eighths({4, 6});
    auto const forward = sample("aten::native_layer_norm")
                             .arg("input", x)
                             .arg("normalized_shape", shape{6})
                             .arg("weight", eighths({6}))
                             .arg("bias", eighths({6}))
                             .arg("eps", 1e-5);
    auto const out = call_op(forward.made.operation, forward.made.operands);
    rule_oracle const o(sample("aten::native_layer_norm_backward")
                            .arg("grad_out", eighths({4, 6}))
                            .arg("input", x)
                            .arg("normalized_shape", shape{6})
                            .arg("mean", out[1])
                            .arg("rstd", out[2])
                            .arg("weight", eighths({6}))
                            .arg("bias", eighths({6}))
                            .arg("output_mask", std::vector<bool>{true, false, true}));
    declared(o, "S0, S0, S0, S0, R, R -> S0, R, P", 2);
    CHECK_FALSE(o.outputs()[1].defined());
}

TEST_CASE("A14: layer_norm of a permuted input") {
    auto const x = eighths({2, 4, 3}).permute({0, 2, 1});
    REQUIRE_FALSE(x.is_contiguous());
    rule_oracle const o(sample("aten::native_layer_norm")
                            .arg("input", x)
                            .arg("normalized_shape", shape{4})
                            .arg("weight", eighths({4}))
                            .arg("bias", none)
                            .arg("eps", 1e-5));
    declared(o, "S0, R -> S0, S0, S0", 2);
    declared(o, "S1, R -> S1, S1, S1", 3);
}

TEST_CASE("A40: attention by batch, heads and open queries; with keys cut, or causal queries, the values differ") {
    auto const make = [](std::int64_t heads, std::int64_t key_heads, bool causal) {
        return sample("cantle::sdpa")
            .arg("query", eighths({2, heads, 4, 4}) / 16)
            .arg("key", eighths({2, key_heads, 4, 4}) / 16)
            .arg("value", eighths({2, key_heads, 4, 4}))
            .arg("attn_mask", none)
            .arg("dropout_p", 0.0)
            .arg("is_causal", causal)
            .arg("scale", none)
            .arg("enable_gqa", heads != key_heads);
    };
    rule_oracle const open(make(4, 4, false)), causal(make(4, 4, true)), grouped(make(8, 2, false));
    declared(open, "S2, R, R -> S2, S2", 2);
    refused(open, axis_row{{S(2), S(2), S(2)}, {S(2), S(2)}}, 2);
    refused(open, axis_row{{R, S(2), S(2)}, {P, R}}, 2);
    refused(causal, axis_row{{S(2), R, R}, {S(2), S(2)}}, 2);
    declared(grouped, "S1, S1, S1 -> S1, S1", 2);
    refused(grouped, axis_row{{S(1), R, R}, {S(1), S(1)}}, 4);  // 2 query heads of a rank with the wrong key heads
    CHECK(grouped.check(axis_row{{S(1), S(1), S(1)}, {S(1), S(1)}}, 4).outcome == oracle_verdict::kind::does_not_divide);
}

TEST_CASE("E6: row-parallel addmm adds its bias once") {
    rule_oracle const o(sample("aten::addmm")
                            .arg("self", eighths({6}))
                            .arg("mat1", eighths({4, 12}))
                            .arg("mat2", eighths({12, 6}))
                            .arg("beta", 1)
                            .arg("alpha", 1));
    declared(o, "P, S1, S0 -> P", 2);
    refused(o, axis_row{{R, S(1), S(0)}, {P}}, 2);
    refused(o, axis_row{{R, P, R}, {P}}, 2);
    refused(o, axis_row{{P, R, R}, {P}}, 2);
}
