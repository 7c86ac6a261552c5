// SPDX-License-Identifier: BSL-1.0
// Rows of attention for one axis, for all kernels: query [B, H, S, E], key and value [B, Hk, T, E].
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {

struct attention {
    std::int64_t heads = 8, key_heads = 8;
    bool causal = false;
    double dropout = 0;
    shape mask{};
    std::string name = "cantle::sdpa";
    shape logsumexp{4, 8, 64};

    example_op forward() const {
        auto e = example_op(name)
                     .tensor("query", {4, heads, 64, 16})
                     .tensor("key", {4, key_heads, 32, 16})
                     .tensor("value", {4, key_heads, 32, 16});
        std::string const argument = name.find("efficient") != std::string::npos ? "attn_bias" : "attn_mask";
        mask.empty() ? e.literal(argument, none) : e.tensor(argument, mask);
        return e.literal("dropout_p", dropout).literal("is_causal", causal).out({4, heads, 64, 16}).out(logsumexp);
    }
    example_op backward() const {
        auto e = example_op(name + "_backward").tensor("grad_out", {4, heads, 64, 16}).tensor("query", {4, heads, 64, 16});
        e.tensor("key", {4, key_heads, 32, 16})
            .tensor("value", {4, key_heads, 32, 16})
            .tensor("out", {4, heads, 64, 16})
            .tensor("logsumexp", logsumexp);
        mask.empty() ? e.literal("attn_mask", none) : e.tensor("attn_mask", mask);
        return e.literal("dropout_p", dropout)
            .literal("is_causal", causal)
            .out({4, heads, 64, 16})
            .out({4, key_heads, 32, 16})
            .out({4, key_heads, 32, 16});
    }
};
}  // namespace

TEST_CASE("A40: batch, heads and, without a causal mask, queries; never keys or the head dim; linear in the values") {
    CHECK(rows_of(attention{}.forward(), 2) == texts{"R, R, R -> R, R", "S0, S0, S0 -> S0, S0", "S1, S1, S1 -> S1, S1",
                                                     "S2, R, R -> S2, S2", "R, R, P -> P, R", "R, R, P(avg) -> P(avg), R"});
    attention causal;
    causal.causal = true;
    CHECK_FALSE(has(rows_of(causal.forward(), 2), "S2, R, R -> S2, S2"));
    CHECK(has(rows_of(causal.forward(), 2), "R, R, P -> P, R"));
}

TEST_CASE("A40: with grouped queries both head counts must divide; one key head stays whole for all queries") {
    attention grouped;
    grouped.heads = 32, grouped.logsumexp = {4, 32, 64};
    CHECK(has(rows_of(grouped.forward(), 8), "S1, S1, S1 -> S1, S1"));
    CHECK_FALSE(has(rows_of(grouped.forward(), 16), "S1, S1, S1 -> S1, S1"));
    CHECK_FALSE(has(rows_of(grouped.forward(), 16), "S1, R, R -> S1, S1"));
    grouped.key_heads = 1;
    CHECK(has(rows_of(grouped.forward(), 16), "S1, R, R -> S1, S1"));
    CHECK(has(rows_of(grouped.backward(), 16), "S1, S1, R, R, S1, S1 -> S1, P, P"));
}

TEST_CASE("with dropout the ranks' random masks allow batch and heads only") {
    attention random;
    random.dropout = 0.1;
    CHECK(rows_of(random.forward(), 2) == texts{"R, R, R -> R, R", "S0, S0, S0 -> S0, S0", "S1, S1, S1 -> S1, S1"});
    CHECK(rows_of(random.backward(), 2) ==
          texts{"R, R, R, R, R, R -> R, R, R", "S0, S0, S0, S0, S0, S0 -> S0, S0, S0", "S1, S1, S1, S1, S1, S1 -> S1, S1, S1"});
}

TEST_CASE("a mask is cut where it has the dim and whole where it broadcasts") {
    auto const with = [](shape mask) {
        attention a;
        a.mask = std::move(mask);
        return rows_of(a.forward(), 2);
    };
    CHECK(has(with({4, 1, 64, 32}), "S0, S0, S0, S0 -> S0, S0"));
    CHECK(has(with({4, 1, 64, 32}), "S1, S1, S1, R -> S1, S1"));
    CHECK(has(with({4, 1, 64, 32}), "S2, R, R, S2 -> S2, S2"));
    CHECK(has(with({64, 32}), "S2, R, R, S0 -> S2, S2"));
    CHECK(has(with({1, 8, 1, 32}), "S1, S1, S1, S1 -> S1, S1"));
    CHECK(has(with({1, 8, 1, 32}), "S2, R, R, R -> S2, S2"));
}

TEST_CASE("backward: cut queries leave the gradients of key and value Partial; linear in the gradient, and in value and out together") {
    CHECK(rows_of(attention{}.backward(), 2) ==
          texts{"R, R, R, R, R, R -> R, R, R", "S0, S0, S0, S0, S0, S0 -> S0, S0, S0", "S1, S1, S1, S1, S1, S1 -> S1, S1, S1",
                "S2, S2, R, R, S2, S2 -> S2, P, P", "P, R, R, R, R, R -> P, P, P", "P(avg), R, R, R, R, R -> P(avg), P(avg), P(avg)",
                "R, R, R, P, P, R -> P, P, R", "R, R, R, P(avg), R, R -> P(avg), P(avg), R", "R, R, R, R, P(avg), R -> P(avg), P(avg), R",
                "R, R, R, P(avg), P(avg), R -> P(avg), P(avg), R"});
}

TEST_CASE("all kernels have the rule; where the logsumexp is padded to 32 queries the cut must keep that up") {
    for (std::string kernel :
         {"flash_attention", "flash_attention_for_cpu", "cudnn_attention", "fused_attention_overrideable", "efficient_attention"}) {
        attention a;
        a.name = "aten::_scaled_dot_product_" + kernel;
        CHECK_MESSAGE(rows_of(a.forward(), 2) == rows_of(attention{}.forward(), 2), kernel);
        CHECK_MESSAGE(rows_of(a.backward(), 2) == rows_of(attention{}.backward(), 2), kernel);
    }
    attention padded;
    padded.name = "aten::_scaled_dot_product_efficient_attention";
    CHECK(has(rows_of(padded.forward(), 2), "S2, R, R -> S2, S2"));
    CHECK_FALSE(has(rows_of(padded.forward(), 4), "S2, R, R -> S2, S2"));  // 16 queries of a rank would be padded to 32
    padded.logsumexp = {4, 8, 96};
    CHECK_FALSE(has(rows_of(padded.forward(), 2), "S2, R, R -> S2, S2"));
    padded.logsumexp = {4, 8, 0};  // not asked for
    CHECK(has(rows_of(padded.forward(), 2), "S2, R, R -> S2, R"));
}

TEST_CASE("state of random generators and cumulative lengths stay whole; the gradient of a bias follows it") {
    auto e = example_op("aten::_scaled_dot_product_efficient_attention_backward")
                 .tensor("grad_out_", {4, 8, 64, 16})
                 .tensor("query", {4, 8, 64, 16})
                 .tensor("key", {4, 8, 32, 16})
                 .tensor("value", {4, 8, 32, 16})
                 .tensor("attn_bias", {1, 8, 64, 32})
                 .tensor("out", {4, 8, 64, 16})
                 .tensor("logsumexp", {4, 8, 64})
                 .tensor("philox_seed", {}, dtype::int64)
                 .tensor("philox_offset", {}, dtype::int64)
                 .literal("dropout_p", 0.0)
                 .literal("is_causal", false)
                 .out({4, 8, 64, 16})
                 .out({4, 8, 32, 16})
                 .out({4, 8, 32, 16})
                 .out({1, 8, 64, 32});
    auto const rows = rows_of(e, 2);
    CHECK(has(rows, "S0, S0, S0, S0, R, S0, S0, R, R -> S0, S0, S0, P"));
    CHECK(has(rows, "S1, S1, S1, S1, S1, S1, S1, R, R -> S1, S1, S1, S1"));
    CHECK(has(rows, "S2, S2, R, R, S2, S2, S2, R, R -> S2, P, P, S2"));
    CHECK(has(rows, "R, R, R, P, R, P, R, R, R -> P, P, R, P"));
}
