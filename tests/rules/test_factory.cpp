// SPDX-License-Identifier: BSL-1.0
// Rows of ops that make tensors, and what a rank runs in their place: shares of a constant, of a ramp, of a matrix known by its diagonal.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "example_op.hpp"

using namespace cantle;
using namespace cantle::test;

namespace {
using enum dtype;

example_op make(std::string name, shape to, dtype type = float32) { return example_op(std::move(name)).literal("size", to).out(to, type); }

/// The program of `rank` of 4 on one axis, operands and outputs lying as the texts say.
local_program play(example_op const& e, std::string const& lies, std::int64_t rank) {
    auto const mesh = device_mesh::parse("4", "a");
    layout const l = layout::parse(mesh, lies);
    local_view v{&e.operation, {}, {}, 1};
    for (auto const& t : e.operands) v.operands.push_back({t, piece_of(l, mesh, t.sizes, rank), &l});
    for (auto const& t : e.outputs) v.outputs.push_back({t, piece_of(l, mesh, t.sizes, rank), &l});
    return standard_rules().local(v);
}
template <class T>
T argument_of(local_program const& p, char const* name, std::size_t step = 0) {
    auto const* const v = p.steps()[step].call.find(name);
    REQUIRE(v);
    REQUIRE(std::holds_alternative<T>(*v));
    return std::get<T>(*v);
}
}  // namespace

TEST_CASE("A52: a constant is made share by share; zeros are the sum of zeros") {
    CHECK(rows_of(make("aten::ones", {4, 6}), 2) == texts{" -> R", " -> S0", " -> S1"});
    CHECK(rows_of(make("aten::zeros", {4}), 2) == texts{" -> R", " -> S0", " -> P"});
    CHECK(rows_of(make("aten::zeros", {4}, boolean), 2) == texts{" -> R", " -> S0"});
    CHECK(rows_of(make("aten::full", {4}).literal("fill_value", 0.0), 2) == texts{" -> R", " -> S0", " -> P"});
    CHECK(rows_of(make("aten::full", {4}).literal("fill_value", std::int64_t{2}), 2) == texts{" -> R", " -> S0"});
    CHECK(rows_of(make("aten::rand", {4}), 2) == texts{" -> R", " -> S0"});
    for (auto name : {"aten::scalar_tensor", "aten::randperm"}) CHECK(rows_of(make(name, {4}), 2) == texts{" -> R"});
    CHECK(argument_of<shape>(play(make("aten::ones", {8, 6}), "S0", 3), "size") == shape{2, 6});
    auto const cut = play(make("aten::empty_strided", {8, 8}).literal("stride", shape{8, 1}), "S1", 0);
    CHECK(argument_of<shape>(cut, "size") == shape{8, 2});
    CHECK(argument_of<shape>(cut, "stride") == shape{2, 1});
}

TEST_CASE("what a 'like' op is given is read for its shape: partial values are no hindrance") {
    auto const like = [](char const* name, dtype t = float32) { return example_op(name).tensor("self", {4}, t).out({4}, t); };
    CHECK(rows_of(like("aten::ones_like"), 2) == texts{"R -> R", "S0 -> S0", "P -> R", "P(avg) -> R", "P(max) -> R", "P(min) -> R"});
    CHECK(rows_of(like("aten::zeros_like"), 2) ==
          texts{"R -> R", "S0 -> S0", "P -> R", "P(avg) -> R", "P(max) -> R", "P(min) -> R", "R -> P", "P -> P"});
    CHECK(rows_of(like("aten::rand_like", boolean), 2) == texts{"R -> R", "S0 -> S0", "P(max) -> R", "P(min) -> R"});
    CHECK(rows_of(like("aten::bernoulli"), 2) == texts{"R -> R", "S0 -> S0"});
    auto const fresh = example_op("aten::new_ones").tensor("self", {6}).literal("size", shape{4}).out({4});
    CHECK(rows_of(fresh, 2) == texts{"R -> R", "R -> S0", "S0 -> R", "P -> R", "P(avg) -> R", "P(max) -> R", "P(min) -> R"});
    auto const fill = example_op("aten::fill.Tensor").tensor("self", {4}).tensor("value", {}).out({4});
    auto const rows = rows_of(fill, 2);
    for (auto t : {"S0, R -> S0", "P, R -> R", "R, P -> P", "P, P -> P", "R, P(max) -> P(max)"}) CHECK(has(rows, t));
    CHECK(rows.size() == 14);
}

TEST_CASE("A49: a share of a ramp starts at the rank's offset") {
    auto const of = [](char const* name) { return example_op(name).literal("end", std::int64_t{64}); };
    CHECK(rows_of(of("aten::arange").out({64}, int64), 4) == texts{" -> R", " -> S0"});
    for (std::int64_t rank = 0; rank < 4; ++rank) {
        auto const p = play(of("aten::arange").out({64}, int64), "S0", rank);
        CHECK(argument_of<std::int64_t>(p, "start") == 16 * rank);
        CHECK(argument_of<std::int64_t>(p, "end") == 16 * rank + 16);
        CHECK(argument_of<dtype>(p, "dtype") == int64);
    }
    auto const steps = example_op("aten::arange.start_step").literal("start", std::int64_t{3}).literal("end", std::int64_t{-13});
    auto const down = play(example_op(steps).literal("step", std::int64_t{-2}).out({8}, int64), "S0", 1);
    CHECK(argument_of<std::int64_t>(down, "start") == -1);
    CHECK(argument_of<std::int64_t>(down, "end") == -5);
    auto const halves = example_op("aten::arange.start_step").literal("start", 0.25).literal("end", 4.25).literal("step", 0.5);
    auto const p = play(example_op(halves).out({8}), "S0", 3);
    CHECK(argument_of<double>(p, "start") == 3.25);
    CHECK(argument_of<double>(p, "end") == 4.0);  // half a step before the next
    CHECK(rows_of(example_op(halves).out({8}, int64), 4) == texts{" -> R"});
}

TEST_CASE("iota and linspace are ramps too") {
    auto const iota = example_op("prims::iota").literal("length", std::int64_t{8}).literal("start", std::int64_t{5});
    auto const p = play(example_op(iota).literal("step", std::int64_t{3}).out({8}, int64), "S0", 2);
    CHECK(argument_of<std::int64_t>(p, "length") == 2);
    CHECK(argument_of<std::int64_t>(p, "start") == 17);
    auto const line = example_op("aten::linspace").literal("start", std::int64_t{0}).literal("end", 14.0).literal("steps", std::int64_t{8});
    auto const last = play(example_op(line).out({8}), "S0", 3);
    CHECK(argument_of<double>(last, "start") == 12);
    CHECK(argument_of<double>(last, "end") == 14);
    CHECK(argument_of<std::int64_t>(last, "steps") == 2);
    CHECK(rows_of(example_op(line).out({8}), 4) == texts{" -> R", " -> S0"});
    CHECK(rows_of(example_op(line).out({8}, int64), 4) == texts{" -> R"});
}

// rank 1 of 4 holds rows 2, 3 of an 8 x 8 matrix (or columns): its diagonal lies 2 further right (or left).
TEST_CASE("the diagonal of tril and triu moves with the rank's rows and columns") {
    auto const tril = example_op("aten::tril").tensor("self", {3, 8, 8}).literal("diagonal", std::int64_t{1}).out({3, 8, 8});
    CHECK(argument_of<std::int64_t>(play(tril, "S1", 1), "diagonal") == 3);
    CHECK(argument_of<std::int64_t>(play(tril, "S2", 1), "diagonal") == -1);
    CHECK(argument_of<std::int64_t>(play(tril, "R", 1), "diagonal") == 1);
    CHECK(rows_of(example_op("aten::triu").tensor("self", {8, 8}).out({8, 8}), 4) ==
          texts{"R -> R", "S0 -> S0", "S1 -> S1", "P -> P", "P(avg) -> P(avg)", "P(max) -> P(max)", "P(min) -> P(min)"});
}

TEST_CASE("eye: the rank's row numbers against its column numbers") {
    auto const eye = example_op("aten::eye.m").literal("n", std::int64_t{8}).literal("m", std::int64_t{4}).out({8, 4}, float32);
    CHECK(rows_of(eye, 4) == texts{" -> R", " -> S0", " -> S1"});
    auto const p = play(eye, "S0", 3);
    CHECK(argument_of<std::int64_t>(p, "start", 0) == 6);
    CHECK(argument_of<std::int64_t>(p, "end", 0) == 8);
    CHECK(argument_of<std::int64_t>(p, "end", 1) == 4);
    CHECK(argument_of<dtype>(p, "dtype", 4) == float32);
    CHECK(p.results().size() == 1);
}

TEST_CASE("dropout draws its mask by global index: any Partial of the input passes, the mask is whole") {
    auto const e = example_op("aten::native_dropout").tensor("input", {4}).out({4}).out({4}, boolean);
    CHECK(rows_of(e, 2) ==
          texts{"R -> R, R", "S0 -> S0, S0", "P -> P, R", "P(avg) -> P(avg), R", "P(max) -> P(max), R", "P(min) -> P(min), R"});
}
