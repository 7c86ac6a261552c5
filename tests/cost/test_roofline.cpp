// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/roofline.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace cantle;
using doctest::Approx;

namespace {
/// An op with its metas. Tensor arguments take the operands in order; other arguments are literals.
struct example {
    op operation;
    std::vector<tensor_meta> operands, outputs;
    example(std::string name, std::vector<std::pair<std::string, tensor_meta>> tensors, std::vector<tensor_meta> out,
            std::vector<argument> literals = {})
        : operation{std::move(name), {}}, outputs(std::move(out)) {
        for (auto& [argument_name, meta] : tensors) {
            operation.arguments.push_back({argument_name, operand_slot{static_cast<std::uint32_t>(operands.size())}});
            operands.push_back(meta);
        }
        for (auto& a : literals) operation.arguments.push_back(a);
    }
    op_query query() const { return {&operation, operands, outputs}; }
};
tensor_meta bf16(shape s) { return contiguous_meta(std::move(s), dtype::bfloat16); }
tensor_meta fp32(shape s) { return contiguous_meta(std::move(s), dtype::float32); }
tensor_meta ints(shape s) { return contiguous_meta(std::move(s), dtype::int64); }

roofline const h100(h100_cluster().gpu);
constexpr double bf16_rate = 0.7 * 989.4e6, tf32_rate = 0.7 * 494.7e6, memory_rate = 0.7 * 3.35e6;  // per microsecond
}  // namespace

// [2, 2048, 4096] x [14336, 4096]^T: 2 * 4096 rows * 4096 * 14336 = 481,036,337,152 flops
TEST_CASE("a linear and its two gradients have the same flops and run at the bf16 rate") {
    double const flops = 481'036'337'152.0;
    example const forward("aten::linear", {{"input", bf16({2, 2048, 4096})}, {"weight", bf16({14336, 4096})}}, {bf16({2, 2048, 14336})});
    example const input("cantle::linear_grad_input", {{"grad", bf16({2, 2048, 14336})}, {"weight", bf16({14336, 4096})}},
                        {bf16({2, 2048, 4096})});
    example const weight("cantle::linear_grad_weight", {{"grad", bf16({2, 2048, 14336})}, {"input", bf16({2, 2048, 4096})}},
                         {bf16({14336, 4096})});
    for (auto const* e : {&forward, &input, &weight}) {
        CHECK(count_flops(e->query()) == flops);
        CHECK(count_bytes(e->query()) == 2.0 * (4096.0 * 4096 + 14336.0 * 4096 + 4096.0 * 14336));
        CHECK(h100.compute(e->query()) == Approx(flops / bf16_rate));
    }
    CHECK(h100.compute(forward.query()) == Approx(694.55).epsilon(1e-4));
}

TEST_CASE("float32 products run at the tf32 rate, float64 at the fp32 rate") {
    example const single("aten::mm", {{"self", fp32({4096, 4096})}, {"mat2", fp32({4096, 4096})}}, {fp32({4096, 4096})});
    CHECK(h100.compute(single.query()) == Approx(2.0 * 4096 * 4096 * 4096 / tf32_rate));
    auto const f64 = contiguous_meta({4096, 4096}, dtype::float64);
    example const twice("aten::mm", {{"self", f64}, {"mat2", f64}}, {f64});
    CHECK(h100.compute(twice.query()) == Approx(2.0 * 4096 * 4096 * 4096 / (0.7 * 66.9e6)));
}

TEST_CASE("the contracted dim of every product is found") {
    example const mm("aten::mm", {{"self", bf16({3, 5})}, {"mat2", bf16({5, 7})}}, {bf16({3, 7})});
    CHECK(count_flops(mm.query()) == 2 * 3 * 5 * 7);
    example const bmm("aten::bmm", {{"self", bf16({2, 3, 5})}, {"mat2", bf16({2, 5, 7})}}, {bf16({2, 3, 7})});
    CHECK(count_flops(bmm.query()) == 2 * 2 * 3 * 5 * 7);
    example const addmm("aten::addmm", {{"self", bf16({7})}, {"mat1", bf16({3, 5})}, {"mat2", bf16({5, 7})}}, {bf16({3, 7})});
    CHECK(count_flops(addmm.query()) == 2 * 3 * 5 * 7);
    example const baddbmm("aten::baddbmm", {{"self", bf16({2, 3, 7})}, {"batch1", bf16({2, 3, 5})}, {"batch2", bf16({2, 5, 7})}},
                          {bf16({2, 3, 7})});
    CHECK(count_flops(baddbmm.query()) == 2 * 2 * 3 * 5 * 7);
}

TEST_CASE("a thin product is bound by memory, a small one by the launch") {
    example const thin("aten::linear", {{"input", bf16({1, 1, 8192})}, {"weight", bf16({8192, 8192})}}, {bf16({1, 1, 8192})});
    CHECK(h100.compute(thin.query()) == Approx(2.0 * (8192.0 * 8192 + 2 * 8192) / memory_rate));
    example const small("aten::linear", {{"input", bf16({4, 16})}, {"weight", bf16({16, 16})}}, {bf16({4, 16})});
    CHECK(h100.compute(small.query()) == 7.0);
}

// query [2, 32, 2048, 128], key and value [2, 8, 2048, 128]: 64 query heads of 2048 x 2048 pairs
TEST_CASE("attention has two products forward and five backward, over the query's heads") {
    auto const q = bf16({2, 32, 2048, 128}), k = bf16({2, 8, 2048, 128}), lse = fp32({2, 32, 2048});
    double const pairs = 64.0 * 2048 * 2048;
    std::vector<argument> const causal{{"is_causal", true}};
    example const forward("cantle::sdpa", {{"query", q}, {"key", k}, {"value", k}}, {q, lse}, causal);
    example const backward("cantle::sdpa_backward", {{"grad_out", q}, {"query", q}, {"key", k}, {"value", k}, {"out", q},
                            {"logsumexp", lse}}, {q, k, k}, causal);
    CHECK(count_flops(forward.query()) == 4 * 128 * pairs);
    CHECK(count_flops(backward.query()) == 10 * 128 * pairs);
    CHECK(h100.compute(forward.query()) == Approx(4 * 128 * pairs / bf16_rate));
    // Counted by kept pairs a causal mask of 2048 leaves 2049/4096 of them.
    CHECK(count_flops(forward.query(), causal_count::kept_pairs) == 4 * 128 * 64.0 * (2048.0 * 2049 / 2));
    example const open("cantle::sdpa", {{"query", q}, {"key", k}, {"value", k}}, {q, lse}, {{"is_causal", false}});
    CHECK(count_flops(open.query(), causal_count::kept_pairs) == 4 * 128 * pairs);
}

// keys 0..2, queries 0..4: kept 1 + 2 + 3 + 3 + 3; keys 0..4, queries 0..2: kept 1 + 2 + 3
TEST_CASE("kept pairs of a causal mask are counted for any lengths, and values may be wider than keys") {
    std::vector<argument> const causal{{"is_causal", true}};
    example const tall("cantle::sdpa", {{"query", bf16({1, 1, 5, 4})}, {"key", bf16({1, 1, 3, 4})}, {"value", bf16({1, 1, 3, 6})}},
                       {bf16({1, 1, 5, 6})}, causal);
    CHECK(count_flops(tall.query(), causal_count::kept_pairs) == 2 * 12 * (4 + 6));
    CHECK(count_flops(tall.query()) == 2 * 15 * (4 + 6));
    example const back("cantle::sdpa_backward", {{"query", bf16({1, 1, 5, 4})}, {"key", bf16({1, 1, 3, 4})}, {"value", bf16({1, 1, 3, 6})}},
                       {}, causal);
    CHECK(count_flops(back.query()) == 2 * 15 * (3 * 4 + 2 * 6));
    example const wide("cantle::sdpa", {{"query", bf16({1, 1, 3, 4})}, {"key", bf16({1, 1, 5, 4})}, {"value", bf16({1, 1, 5, 6})}},
                       {bf16({1, 1, 3, 6})}, causal);
    CHECK(count_flops(wide.query(), causal_count::kept_pairs) == 2 * 6 * (4 + 6));
}

TEST_CASE("ops without products are bound by the bytes of all their tensors") {
    auto const x = bf16({2, 2048, 4096});
    double const bytes = 2.0 * 2 * 2048 * 4096;
    for (auto const* name : {"aten::add.Tensor", "aten::mul.Tensor", "aten::silu_backward"}) {
        example const e(name, {{"self", x}, {"other", x}}, {x});
        CHECK(count_bytes(e.query()) == 3 * bytes);
        CHECK(count_flops(e.query()) == 0);
        CHECK(h100.compute(e.query()) == Approx(3 * bytes / memory_rate));
    }
    example const cast("aten::_to_copy", {{"self", fp32({4096, 4096})}}, {bf16({4096, 4096})});
    CHECK(h100.compute(cast.query()) == Approx(6.0 * 4096 * 4096 / memory_rate));
    example const clone("aten::clone", {{"self", x}}, {x});
    CHECK(h100.compute(clone.query()) == Approx(2 * bytes / memory_rate));
}

TEST_CASE("cross-entropy and layer norm are bound by memory; outputs that are not made cost nothing") {
    auto const logits = bf16({4, 2048, 50304});
    example const loss("cantle::cross_entropy", {{"logits", logits}, {"target", ints({4, 2048})}}, {fp32({}), fp32({4, 2048}), fp32({})});
    double const bytes = 2.0 * 4 * 2048 * 50304 + 8.0 * 4 * 2048 + 4 + 4.0 * 4 * 2048 + 4;
    CHECK(count_bytes(loss.query()) == bytes);
    CHECK(h100.compute(loss.query()) == Approx(bytes / memory_rate));
    auto const x = bf16({4, 2048, 4096});
    auto none = bf16({4096});
    none.defined = false;
    example const norm("aten::native_layer_norm_backward", {{"grad_out", x}, {"input", x}}, {x, none, none});
    CHECK(count_bytes(norm.query()) == 3 * 2.0 * 4 * 2048 * 4096);
}

// A table of 1 GB, 16,384 rows of it wanted: what is read is what is written. And never more than the table.
TEST_CASE("an embedding reads its rows, not its table, and is not free (case C16)") {
    example const e("aten::embedding", {{"weight", bf16({128256, 4096})}, {"indices", ints({8, 2048})}}, {bf16({8, 2048, 4096})});
    CHECK(count_bytes(e.query()) == 2 * (2.0 * 8 * 2048 * 4096) + 8.0 * 8 * 2048);
    CHECK(h100.compute(e.query()) > 7.0);
    example const tiny("aten::embedding", {{"weight", bf16({2, 4096})}, {"indices", ints({8, 2048})}}, {bf16({8, 2048, 4096})});
    CHECK(count_bytes(tiny.query()) == 2.0 * 2 * 4096 + 2.0 * 8 * 2048 * 4096 + 8.0 * 8 * 2048);
    // The gradient writes the whole table.
    example const back("aten::embedding_dense_backward", {{"grad_output", bf16({8, 2048, 4096})}, {"indices", ints({8, 2048})}},
                       {bf16({128256, 4096})});
    CHECK(count_bytes(back.query()) == 2.0 * 8 * 2048 * 4096 + 8.0 * 8 * 2048 + 2.0 * 128256 * 4096);
}

TEST_CASE("views, sources, sinks and relays are free; copies and factories are not") {
    auto const x = bf16({2, 2048, 4096});
    for (auto const* name : {"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::expand", "aten::t", "aten::transpose.int",
                             "aten::permute", "aten::unsqueeze", "aten::squeeze.dim", "aten::slice.Tensor", "aten::select.int",
                             "aten::alias", "aten::detach", "aten::split.Tensor", "cantle::getitem", "cantle::relay",
                             "cantle::parameter", "cantle::buffer", "cantle::input", "cantle::target", "cantle::tangent",
                             "cantle::constant", "cantle::output", "aten::_conj", "aten::view_as_real"}) {
        example const e(name, {{"self", x}}, {x});
        INFO(name);
        CHECK(is_free_op(name));
        CHECK(h100.compute(e.query()) == 0.0);
        CHECK(count_bytes(e.query()) == 0.0);
        CHECK(count_flops(e.query()) == 0.0);
    }
    for (auto const* name : {"aten::clone", "aten::_to_copy", "aten::cat", "aten::slice_backward", "aten::select_backward",
                             "aten::contiguous", "aten::arange", "aten::viewer", "aten::vie", "", "zzz"}) {
        example const e(name, {}, {x});
        INFO(name);
        CHECK_FALSE(is_free_op(name));
        CHECK(h100.compute(e.query()) >= 7.0);
    }
}

TEST_CASE("every listed op is found by its name") {
    for (auto const& row : detail::work_rows) CHECK(find_work(row.name).kind == row.kind);
}

TEST_CASE("an empty shard costs a launch, never a fraction of nothing") {
    example const e("cantle::linear_grad_weight", {{"grad", bf16({0, 16})}, {"input", bf16({0, 8})}}, {bf16({16, 8})});
    CHECK(h100.compute(e.query()) == 7.0);
    example const none("cantle::linear_grad_weight", {{"grad", bf16({4, 0})}, {"input", bf16({4, 8})}}, {bf16({0, 8})});
    CHECK(h100.compute(none.query()) == 7.0);
}

TEST_CASE("a product without the argument of its schema is an error that names both") {
    example const e("aten::mm", {{"left", bf16({3, 5})}, {"mat2", bf16({5, 7})}}, {bf16({3, 7})});
    try {
        h100.compute(e.query());
        FAIL("no error");
    } catch (error const& x) {
        CHECK(x.code() == error_code::bad_graph);
        CHECK(x.subject() == "aten::mm");
        CHECK(x.problem().find("'self'") != std::string::npos);
    }
}

TEST_CASE("a GPU without figures is an error, not an infinite price") {
    CHECK_THROWS_AS(roofline(gpu_spec{}), error);
    CHECK_THROWS_AS(roofline(h100_cluster().gpu, {.compute_efficiency = 0.0}), error);
}
