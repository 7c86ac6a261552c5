// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/liveness.hpp>
#include <cantle/graph/op_traits.hpp>

using namespace cantle;

// 0 x [8] 32 B -- 1 relu a -- 2 view v of a -- 3 relu b (reads v) -- 4 y = output of b
TEST_CASE("a value lives until its last use, through views too, and sources to the end") {
    graph_builder b;
    auto const x = b.input("x", {8});
    auto const a = b.relu(x);
    auto const v = b.view(a, {2, 4});
    auto const r = b.relu(v);
    b.output(r, "y");
    auto const l = liveness(b.build());
    CHECK(l.last_use[0][0] == 4);
    CHECK(l.last_use[1][0] == 3);  // through its view
    CHECK(l.last_use[2][0] == 3);
    CHECK(l.last_use[3][0] == 4);  // handed out
    CHECK(l.bytes_at == std::vector<bytes>{bytes{32}, bytes{64}, bytes{64}, bytes{96}, bytes{64}});
    CHECK(l.peak == bytes{96});
    CHECK(l.peak_node == 3);
}

TEST_CASE("a source counts from the start, an unused value only where it is made, an undefined output never") {
    graph_builder b;
    auto const x = b.input("x", {2});
    auto const pair = b.call("test::pair", {{"self", x}}, {contiguous_meta({4}, dtype::float64), {{100}, {}, dtype::float32, false}});
    b.parameter("w", {16}, dtype::bfloat16);
    b.output(x, "y");
    auto const l = liveness(b.build());
    CHECK(l.last_use[pair.node][0] == pair.node);
    CHECK(l.bytes_at == std::vector<bytes>{bytes{40}, bytes{72}, bytes{40}, bytes{40}});
    CHECK(liveness({}).peak == bytes{0});
}

TEST_CASE("random, effectful, identity and view ops are told by name") {
    auto named = [](char const* name) { return op{name, {}}; };
    for (auto const name : {"aten::bernoulli.p", "aten::rand_like", "aten::native_dropout", "aten::normal_functional", "aten::randn",
                            "aten::rrelu_with_noise"})
        CHECK_MESSAGE(is_random(named(name)), name);
    for (auto const name : {"aten::native_dropout_backward", "aten::native_layer_norm", "aten::linalg_vector_norm", "aten::lgamma",
                            "aten::exp", "aten::add.Tensor"})
        CHECK_MESSAGE(is_pure(named(name)), name);
    CHECK(is_random(op{"cantle::sdpa", {{"dropout_p", 0.1}}}));
    CHECK_FALSE(is_random(op{"cantle::sdpa", {{"dropout_p", 0.0}}}));
    for (auto const name : {"aten::add_.Tensor", "aten::_local_scalar_dense", "_c10d_functional::all_reduce", "aten::__iand__.Tensor",
                            "aten::copy_"})
        CHECK_MESSAGE(has_effects(named(name)), name);
    CHECK_FALSE(has_effects(named("aten::__and__.Tensor")));
    CHECK(is_identity(named("aten::detach")));
    CHECK(is_alias(named("aten::transpose.int")));
    CHECK_FALSE(is_alias(named("aten::clone")));
}
