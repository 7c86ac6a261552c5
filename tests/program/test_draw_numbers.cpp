// SPDX-License-Identifier: BSL-1.0
// Numbers of random ops: each its own, except where the backward phase computes again what the forward phase drew.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/program/draw_numbers.hpp>

#include <doctest/doctest.h>

using namespace cantle;

namespace {

struct drawing {
    training_graph g;
    vertex add(std::string name, std::vector<vertex> from, phase p = phase::forward) {
        graph_node n;
        n.name = "v" + std::to_string(g.size());
        n.operation.name = std::move(name);
        for (auto v : from) {
            auto const i = static_cast<std::uint32_t>(n.operands.size());
            n.operation.arguments.push_back({"x" + std::to_string(i), operand_slot{i}});
            n.operands.push_back({v, 0});
        }
        n.outputs = {contiguous_meta({4}, dtype::float32)};
        n.in_phase = p;
        if (n.operation.name == "cantle::input") n.role = node_role::input;
        g.nodes.push_back(std::move(n));
        return static_cast<vertex>(g.size() - 1);
    }
};

}  // namespace

// forward: x -> d1 -> gelu -> d2, and d3 of x;  backward: x -> d1' -> gelu' -> d2'
TEST_CASE("an op that is computed again draws what it drew, also behind other ops that are computed again") {
    drawing m;
    auto const x = m.add("cantle::input", {});
    auto const d1 = m.add("aten::native_dropout", {x}), y = m.add("aten::gelu", {d1}), d2 = m.add("aten::native_dropout", {y});
    auto const d3 = m.add("aten::native_dropout", {x});
    auto const d1_again = m.add("aten::native_dropout", {x}, phase::backward), y_again = m.add("aten::gelu", {d1_again}, phase::backward);
    auto const d2_again = m.add("aten::native_dropout", {y_again}, phase::backward);
    auto const d3_again = m.add("aten::native_dropout", {x}, phase::backward);
    auto const fresh = m.add("aten::native_dropout", {x}, phase::backward);
    auto const numbers = draw_numbers(m.g);
    for (auto v : {d1, d2, d3, fresh}) CHECK(numbers[v] == v);
    CHECK(numbers[d1_again] == d1);
    CHECK(numbers[d2_again] == d2);
    CHECK(numbers[d3_again] == d3);
}

TEST_CASE("other literals or other operands are another draw") {
    drawing m;
    auto const x = m.add("cantle::input", {}), z = m.add("cantle::input", {});
    m.add("aten::native_dropout", {x});
    auto const of_z = m.add("aten::native_dropout", {z}, phase::backward);
    auto const other = m.add("aten::native_dropout", {x}, phase::backward);
    m.g[other].operation.arguments.push_back({"p", 0.5});
    auto const numbers = draw_numbers(m.g);
    CHECK(numbers[of_z] == of_z);
    CHECK(numbers[other] == other);
}

TEST_CASE("an op without operands that is drawn again is paired where one can be meant, and refused where several can") {
    drawing m;
    auto const r = m.add("aten::rand", {});
    auto const again = m.add("aten::rand", {}, phase::backward);
    CHECK(draw_numbers(m.g)[again] == r);
    drawing two;
    two.add("aten::rand", {});
    two.add("aten::rand", {});
    CHECK(draw_numbers(two.g) == std::vector<std::uint64_t>{0, 1});  // nothing is drawn again: nothing to tell apart
    two.add("aten::rand", {}, phase::backward);
    try {
        draw_numbers(two.g);
        FAIL("not refused");
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_program);
    }
}
