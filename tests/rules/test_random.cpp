// SPDX-License-Identifier: BSL-1.0
// Local programs of random ops: which own op a rank calls, and which elements its literals name. What the ops draw is checked in
// adapters/libtorch/tests/test_random_ops.cpp.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/rules/random.hpp>

#include <doctest/doctest.h>

using namespace cantle;
using integers = std::vector<std::int64_t>;

namespace {

/// The program of a rank of mesh 2x3 for an op whose ports lie as given (operands first).
local_program program_of(op const& o, std::vector<tensor_meta> const& operands, std::vector<tensor_meta> const& outputs,
                         std::vector<layout> const& lie, std::int64_t rank, std::uint64_t number = 0) {
    auto const mesh = device_mesh::parse("2x3");
    rule_registry r;
    rules::add_random_rules(r);
    local_view v{&o, {}, {}, 2, number};
    for (std::size_t p = 0; p < lie.size(); ++p) {
        bool const in = p < operands.size();
        auto const& meta = in ? operands[p] : outputs[p - operands.size()];
        (in ? v.operands : v.outputs).push_back({meta, piece_of(lie[p], mesh, meta.sizes, rank), &lie[p]});
    }
    return r.local(v);
}
layout lying(char const* text) { return layout::parse(device_mesh::parse("2x3"), text); }
tensor_meta real(shape sizes) { return contiguous_meta(std::move(sizes), dtype::float64); }
std::int64_t number_of(op const& o, char const* name) { return o.get<std::int64_t>(name, -1); }
integers list_of(op const& o, char const* name) { return o.get<integers>(name, {-1}); }

}  // namespace

// [4][6] cut by a in dim 0 and by b in dim 1; rank 4 is (1, 1): rows 2 and 3, columns 2 and 3
TEST_CASE("a rank names the op that draws and the elements it holds") {
    op const o{"aten::rand", {{"size", integers{4, 6}}}};
    auto const p = program_of(o, {}, {real({4, 6})}, {lying("S0,S1")}, 4, 17);
    REQUIRE(p.steps().size() == 1);
    auto const& call = p.steps()[0].call;
    CHECK(call.name == "cantle::counter_uniform");
    CHECK(list_of(call, "size") == integers{2, 2});
    CHECK(number_of(call, "draw") == 17);
    CHECK(number_of(call, "first") == 14);
    CHECK(list_of(call, "counts") == integers{2, 2});
    CHECK(list_of(call, "strides") == integers{6, 1});
    CHECK(call.get<dtype>("dtype", dtype::boolean) == dtype::float64);
}

TEST_CASE("the mask of a dropout of partial values is drawn alike on the ranks that hold parts of one element") {
    op const o{"aten::native_dropout", {{"input", operand_slot{0}}, {"p", 0.1}, {"train", true}}};
    auto const mask = contiguous_meta({4, 6}, dtype::boolean);
    for (std::int64_t rank : {3, 4, 5}) {
        auto const p = program_of(o, {real({4, 6})}, {real({4, 6}), mask}, {lying("S0,P(sum)"), lying("S0,P(sum)"), lying("S0,R")}, rank);
        REQUIRE(p.steps().size() == 1);
        auto const& call = p.steps()[0].call;
        CHECK(call.name == "cantle::counter_dropout");
        CHECK(call.get<double>("p", 0) == 0.1);
        CHECK(number_of(call, "first") == 12);
        CHECK(list_of(call, "counts") == integers{12});
        CHECK(p.results().size() == 2);
    }
}

TEST_CASE("means and deviations that are tensors are multiplied and added to standard normals, literals by the kernel or as scalars") {
    std::vector<layout> const whole(3, layout(2));
    op const both{"aten::normal.Tensor_Tensor", {{"mean", operand_slot{0}}, {"std", operand_slot{1}}}};
    auto const p = program_of(both, {real({4}), real({4})}, {real({4})}, whole, 0);
    REQUIRE(p.steps().size() == 3);
    CHECK(p.steps()[0].call.name == "cantle::counter_normal");
    CHECK(p.steps()[1].call.name == "aten::mul.Tensor");
    CHECK(p.steps()[1].inputs == std::vector<local_value>{2, 1});
    CHECK(p.steps()[2].call.name == "aten::add.Tensor");
    CHECK(p.steps()[2].inputs == std::vector<local_value>{3, 0});
    op const one{"aten::normal.Tensor_float", {{"mean", operand_slot{0}}, {"std", 2.0}}};
    auto const q = program_of(one, {real({4})}, {real({4})}, {whole[0], whole[0]}, 0);
    REQUIRE(q.steps().size() == 3);
    CHECK(q.steps()[1].call.name == "aten::mul.Scalar");
    CHECK(q.steps()[1].call.get<double>("other", 0) == 2.0);
    op const literal{"aten::normal.float_float", {{"mean", 3.0}, {"std", 2.0}, {"size", integers{4}}}};
    CHECK(program_of(literal, {}, {real({4})}, {whole[0]}, 0).steps().size() == 1);
}
