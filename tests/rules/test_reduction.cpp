// SPDX-License-Identifier: BSL-1.0
// Rows of reductions, norms, scans, softmax and list ops for one axis, and the local programs of norms.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

#include <limits>

using namespace cantle;
using namespace cantle::test;

namespace {
using enum dtype;

example_op reduce(std::string name, shape from, shape dims, bool keep, shape to, dtype in = float32, dtype out = float32) {
    return example_op(std::move(name))
        .tensor("self", std::move(from), in)
        .literal("dim", std::move(dims))
        .literal("keepdim", keep)
        .out(std::move(to), out);
}
example_op norm(double order, shape from, shape dims, shape to, dtype type = float32) {
    return example_op("aten::linalg_vector_norm")
        .tensor("self", std::move(from), type)
        .literal("ord", order)
        .literal("dim", std::move(dims))
        .literal("keepdim", false)
        .out(std::move(to), type);
}
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("a cut of a reduced dim leaves the reduction's own kind of Partial") {
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> P", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::mean.dim", {4, 6}, {-1}, true, {4, 1}), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> P(avg)", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::amax", {4, 6}, {0}, false, {6}), 2) == texts{"R -> R", "S0 -> P(max)", "S1 -> S0", "P(max) -> P(max)"});
    CHECK(rows_of(reduce("aten::amin", {4, 6}, {0}, true, {1, 6}), 2) == texts{"R -> R", "S0 -> P(min)", "S1 -> S1", "P(min) -> P(min)"});
    CHECK(rows_of(reduce("aten::count_nonzero.dim_IntList", {4, 6}, {1}, false, {4}, float32, int64), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> P"});
}

TEST_CASE("a reduction without dims reduces all of them, and of a scalar there is nothing to cut") {
    CHECK(rows_of(example_op("aten::sum").tensor("self", {4, 6}).literal("dtype", none).out({}), 2) ==
          texts{"R -> R", "S0 -> P", "S1 -> P", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {}, false, {}), 2).size() == 5);
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {}, {-1}, false, {}), 2) == texts{"R -> R", "P -> P", "P(avg) -> P(avg)"});
    CHECK(rows_of(reduce("aten::amax", {}, {0}, false, {}), 2) == texts{"R -> R", "P(max) -> P(max)"});
    for (auto name : {"aten::max", "aten::min"}) CHECK(rows_of(example_op(name).tensor("self", {4}).out({}), 2).size() == 3);
}

TEST_CASE("an empty list of dims that leaves the shape alone reduces none") {
    CHECK(rows_of(reduce("aten::any.dims", {4, 6}, {}, false, {4, 6}, boolean, boolean), 2) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "P(max) -> P(max)"});
    CHECK(rows_of(reduce("aten::any.dims", {4, 6}, {}, true, {1, 1}, boolean, boolean), 2) ==
          texts{"R -> R", "S0 -> P(max)", "S1 -> P(max)", "P(max) -> P(max)"});
}

TEST_CASE("sums pass where no value is rounded, and flags are counted only whole") {
    CHECK(has(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}, bfloat16, float32), 2), "P -> P"));
    CHECK_FALSE(has(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}, float32, bfloat16), 2), "P -> P"));
    CHECK(rows_of(reduce("aten::sum.dim_IntList", {4, 6}, {1}, false, {4}, boolean, int64), 2) == texts{"R -> R", "S0 -> S0", "S1 -> P"});
}

TEST_CASE("any is the maximum of flags, all the minimum; of numbers both ask for zero first and pass no Partial") {
    auto const of = [](char const* name, dtype t) { return rows_of(reduce(name, {4, 6}, {1}, false, {4}, t, boolean), 2); };
    CHECK(of("aten::any.dims", boolean) == texts{"R -> R", "S0 -> S0", "S1 -> P(max)", "P(max) -> P(max)"});
    CHECK(of("aten::all.dims", boolean) == texts{"R -> R", "S0 -> S0", "S1 -> P(min)", "P(min) -> P(min)"});
    CHECK(of("aten::any.dims", float32) == texts{"R -> R", "S0 -> S0", "S1 -> P(max)"});
    CHECK(of("aten::all.dims", float32) == texts{"R -> R", "S0 -> S0", "S1 -> P(min)"});
}

TEST_CASE("A22, A23: ops that return indices cut kept dims only and pass no Partial") {
    for (auto name : {"aten::argmax", "aten::argmin"}) {
        auto const e =
            example_op(name).tensor("self", {10, 4, 6}).literal("dim", std::int64_t{0}).literal("keepdim", false).out({4, 6}, int64);
        CHECK(rows_of(e, 2) == texts{"R -> R", "S1 -> S0", "S2 -> S1"});
        CHECK(rows_of(example_op(name).tensor("self", {10, 4}).literal("dim", none).out({}, int64), 2) == texts{"R -> R"});
    }
    auto const e = example_op("aten::max.dim").tensor("self", {4, 6}).literal("dim", std::int64_t{-1}).literal("keepdim", true);
    CHECK(rows_of(example_op(e).out({4, 1}).out({4, 1}, int64), 2) == texts{"R -> R, R", "S0 -> S0, S0"});
}

TEST_CASE("products, variances and logsumexp keep their dims whole") {
    for (auto name : {"aten::var.correction", "aten::std.correction", "aten::logsumexp", "aten::prod.dim_int"})
        CHECK(rows_of(reduce(name, {4, 6}, {1}, false, {4}), 2) == texts{"R -> R", "S0 -> S0"});
    auto const both = reduce("aten::var_mean.correction", {4, 6}, {0}, true, {1, 6}).out({1, 6});
    CHECK(rows_of(both, 2) == texts{"R -> R, R", "S1 -> S1, S1"});
}

TEST_CASE("scans keep their dim whole; a running sum is linear") {
    auto const scan = [](char const* name) {
        return rows_of(example_op(name).tensor("self", {4, 6}).literal("dim", std::int64_t{-2}).out({4, 6}), 2);
    };
    CHECK(scan("aten::cumsum") == texts{"R -> R", "S1 -> S1", "P -> P", "P(avg) -> P(avg)"});
    for (auto name : {"aten::cumprod", "aten::logcumsumexp"}) CHECK(scan(name) == texts{"R -> R", "S1 -> S1"});
    auto const dot = example_op("aten::dot").tensor("self", {4}).tensor("tensor", {4}).out({});
    CHECK(rows_of(dot, 2) == texts{"R, R -> R", "S0, S0 -> P", "P, R -> P", "P(avg), R -> P(avg)", "R, P -> P", "R, P(avg) -> P(avg)"});
}

TEST_CASE("A31: softmax never cuts its own dim, whether that is written -1 or 2; its backward is linear in the gradient") {
    auto const of = [](std::string name, std::int64_t dim) {
        return rows_of(
            example_op(std::move(name)).tensor("self", {4, 4, 4}).literal("dim", dim).literal("half_to_float", false).out({4, 4, 4}), 2);
    };
    for (auto name : {"aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax"}) {
        CHECK(of(name, -1) == texts{"R -> R", "S0 -> S0", "S1 -> S1"});
        CHECK(of(name, 2) == of(name, -1));
        CHECK(of(name, 0) == texts{"R -> R", "S1 -> S1", "S2 -> S2"});
    }
    auto const backward = [](std::int64_t dim, dtype in, dtype out) {
        return rows_of(example_op("aten::_softmax_backward_data")
                           .tensor("grad_output", {4, 4, 4}, in)
                           .tensor("output", {4, 4, 4}, in)
                           .literal("dim", dim)
                           .literal("input_dtype", out)
                           .out({4, 4, 4}, out),
                       2);
    };
    CHECK(backward(-1, float32, float32) == texts{"R, R -> R", "S0, S0 -> S0", "S1, S1 -> S1", "P, R -> P", "P(avg), R -> P(avg)"});
    CHECK(backward(2, float32, float32) == backward(-1, float32, float32));
    CHECK(backward(-1, float32, bfloat16) == texts{"R, R -> R", "S0, S0 -> S0", "S1, S1 -> S1"});  // E5
}

// ---- norms -----------------------------------------------------------------------------------------------------------------------------

TEST_CASE("A16, A17, A19: a norm passes no Partial; a cut vector leaves a sum, a bound, or an inner sum of powers") {
    CHECK(rows_of(norm(1, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0", "S1 -> P"});
    CHECK(rows_of(norm(0, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0", "S1 -> P"});
    CHECK(rows_of(norm(infinity, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0", "S1 -> P(max)"});
    CHECK(rows_of(norm(-infinity, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0", "S1 -> P(min)"});
    CHECK(rows_of(norm(2, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0", "S1 -> R"});
    CHECK(rows_of(norm(-2, {4, 6}, {1}, {4}), 2) == texts{"R -> R", "S0 -> S0"});
    CHECK(rows_of(norm(2, {4, 6}, {1}, {4}, bfloat16), 2) == texts{"R -> R", "S0 -> S0"});
    auto const rows = standard_rules().rows(norm(2, {4, 6}, {1}, {4}).query(), 2);
    CHECK(rows.back().inner == std::vector{inner_collective{collective_kind::all_reduce, reduction::sum, true, 0}});
    CHECK(rows[1].inner.empty());
    auto const without = example_op("aten::norm.ScalarOpt_dim").tensor("self", {4, 6}).literal("p", none).literal("dim", shape{0});
    CHECK(rows_of(example_op(without).literal("keepdim", true).out({1, 6}), 2) == texts{"R -> R", "S1 -> S1", "S0 -> R"});
}

namespace {
/// "name(literal, ...)" per step of the program that `rank` runs, all_reduces as "sum over AXIS".
texts steps_of(example_op const& e, std::string const& operand, std::string const& output, std::int64_t rank) {
    auto const mesh = device_mesh::parse("2x3", "a,b");
    layout const in = layout::parse(mesh, operand), out = layout::parse(mesh, output);
    local_view v{&e.operation, {}, {}, 2};
    for (auto const& t : e.operands) v.operands.push_back({t, piece_of(in, mesh, t.sizes, rank), &in});
    for (auto const& t : e.outputs) v.outputs.push_back({t, piece_of(out, mesh, t.sizes, rank), &out});
    texts steps;
    auto const program = standard_rules().local(v);
    for (auto const& s : program.steps()) {
        if (s.is_all_reduce())
            steps.push_back(std::string(to_string(s.reduce)) + " over " + std::to_string(s.axis));
        else
            steps.push_back(s.call.name);
    }
    return steps;
}
}  // namespace

TEST_CASE("the 2-norm of a cut vector sums squares over exactly the axes that cut reduced dims") {
    auto const n = norm(2, {6, 6}, {1}, {6});
    std::string const norm_of = "aten::linalg_vector_norm", power = "aten::pow.Tensor_Scalar";
    CHECK(steps_of(n, "S0,R", "S0,R", 1) == texts{norm_of});
    CHECK(steps_of(n, "S0,S1", "S0,R", 1) == texts{norm_of, power, "sum over 1", power});
    CHECK(steps_of(n, "S1,S1", "R,R", 1) == texts{norm_of, power, "sum over 0", "sum over 1", power});
    CHECK(steps_of(norm(1, {6, 6}, {1}, {6}), "S0,S1", "S0,P", 1) == texts{norm_of});
    auto const list = example_op("aten::_foreach_norm.Scalar").tensors("self", {{6, 6}, {6}}).literal("ord", 2.0).out({}).out({});
    CHECK(steps_of(list, "R,S0", "R,R", 0) == texts{"aten::_foreach_norm.Scalar", power, "sum over 1", power, power, "sum over 1", power});
}

// ---- lists -----------------------------------------------------------------------------------------------------------------------------

TEST_CASE("a list op cuts one dim of all elements that the axis divides, and passes Partial where every element does") {
    auto const e = example_op("aten::_foreach_mul.Scalar").tensors("self", {{4, 6}, {5}, {2}}).literal("scalar", -2.0);
    auto const rows = rows_of(example_op(e).out({4, 6}).out({5}).out({2}), 2);
    CHECK(rows == texts{"R, R, R -> R, R, R", "S0, R, S0 -> S0, R, S0", "S1, R, R -> S1, R, R", "P, P, P -> P, P, P",
                        "P(avg), P(avg), P(avg) -> P(avg), P(avg), P(avg)"});
    auto const scalars = [](std::vector<double> numbers) {
        return rows_of(example_op("aten::_foreach_mul.ScalarList")
                           .tensors("self", {{4}, {4}})
                           .literal("scalars", std::move(numbers))
                           .out({4})
                           .out({4}),
                       2);
    };
    CHECK(scalars({2, 3}).size() == 6);   // every kind
    CHECK(scalars({2, -3}).size() == 4);  // one of them turns the order round
    CHECK(scalars({-2, 3}).size() == 4);
}

TEST_CASE("lists side by side: element i of each belongs together, a tensor shared by all stays whole") {
    auto const two =
        example_op("aten::_foreach_add.List").tensors("self", {{4, 6}, {4}}).tensors("other", {{6}, {4}}).literal("alpha", 1.0);
    auto const rows = rows_of(example_op(two).out({4, 6}).out({4}), 2);
    CHECK(has(rows, "S0, S0, R, S0 -> S0, S0"));
    CHECK(has(rows, "S1, R, S0, R -> S1, R"));
    CHECK(has(rows, "P, P, P, P -> P, P"));
    CHECK(has(rows, "P(max), P(max), R, R -> P(max), P(max)"));
    auto const shared = example_op("aten::_foreach_mul.Tensor").tensors("self", {{4}, {4}}).tensor("other", {}).out({4}).out({4});
    CHECK(rows_of(shared, 2) == texts{"R, R, R -> R, R", "S0, S0, R -> S0, S0", "P, P, R -> P, P", "P(avg), P(avg), R -> P(avg), P(avg)",
                                      "R, R, P -> P, P", "R, R, P(avg) -> P(avg), P(avg)"});
    auto const lerp =
        example_op("aten::_foreach_lerp.Scalar").tensors("self", {{4}}).tensors("tensors1", {{4}}).literal("weight", 0.5).out({4});
    CHECK(has(rows_of(lerp, 2), "P, P -> P"));
    auto const clamp = example_op("aten::_foreach_clamp_min.List").tensors("self", {{4}}).tensors("other", {{4}}).out({4});
    CHECK(has(rows_of(clamp, 2), "P(max), P(max) -> P(max)"));
    auto const root = rows_of(example_op("aten::_foreach_sqrt").tensors("self", {{4}}).out({4}), 2);
    CHECK(root == texts{"R -> R", "S0 -> S0", "P(min) -> P(min)"});
}

TEST_CASE("norms of a list: what each element is left with, and one inner sum per cut element") {
    auto const of = [](double order) {
        return example_op("aten::_foreach_norm.Scalar").tensors("self", {{4, 6}, {5}}).literal("ord", order).out({}).out({});
    };
    CHECK(rows_of(of(1), 2) == texts{"R, R -> R, R", "S0, R -> P, R", "S1, R -> P, R"});
    CHECK(rows_of(of(infinity), 2) == texts{"R, R -> R, R", "S0, R -> P(max), R", "S1, R -> P(max), R"});
    CHECK(rows_of(of(2), 2) == texts{"R, R -> R, R", "S0, R -> R, R", "S1, R -> R, R"});
    auto const rows = standard_rules().rows(of(2).query(), 2);
    CHECK(rows[1].inner == std::vector{inner_collective{collective_kind::all_reduce, reduction::sum, true, 0}});
}

TEST_CASE("a fused optimizer step cuts parameter, gradient and states alike; step counts stay whole") {
    auto const e =
        example_op("aten::_fused_sgd").tensors("self", {{4, 3}}).tensors("grads", {{4, 3}}).tensors("momentum_buffer_list", {{4, 3}});
    CHECK(rows_of(example_op(e).out({4, 3}).out({4, 3}).out({4, 3}), 2) ==
          texts{"R, R, R -> R, R, R", "S0, S0, S0 -> S0, S0, S0", "R, R, R -> R, R, R"});
}
