// SPDX-License-Identifier: BSL-1.0
// Demands that cannot hold together: the error names a minimal set of them, as given, and the tensors where they meet.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "small_rules.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cantle;
using cantle::test::small_op;
using cantle::test::small_plan;

namespace {

error refusal(training_graph const& g, plan_options const& options, char const* mesh = "2") {
    try {
        small_plan(g, options, nullptr, {}, mesh);
    } catch (error const& e) {
        CHECK(e.code() == error_code::unsatisfiable_constraint);
        CHECK(!e.remedy().empty());
        return e;
    }
    FAIL_CHECK("no error");
    return error(error_code::broken_json, "none", "none", "");
}
plan_options free_with(std::vector<pin> pins) {
    plan_options o;
    o.boundary.inputs = "free";
    o.boundary.parameters = parameter_storage::free;
    o.boundary.pins = std::move(pins);
    return o;
}
bool says(std::string const& text, std::string const& what) { return text.find(what) != std::string::npos; }
void check_feasible(training_graph const& g, plan_options const& options) { CHECK_NOTHROW(small_plan(g, options)); }

}  // namespace

TEST_CASE("two pins that conflict through one op are named, the innocent ones around them are not") {
    //  x -> make a --+
    //                add s -> keep t -> out      s Partial wants a and b Partial, but a is whole
    //  x -> make b --+
    //  x -> make c -> keep d -> out.d
    graph_builder b;
    auto const x = b.input("x", {8});
    auto const s = small_op(b, "add", {small_op(b, "make", {x}, "a"), small_op(b, "make", {x}, "b")}, "s");
    b.output(small_op(b, "keep", {s}, "t"), "out");
    b.output(small_op(b, "keep", {small_op(b, "make", {x}, "c")}, "d"), "out.d");
    auto const g = b.build();
    std::vector<pin> const pins{{"b", "P"}, {"c", "P"}, {"a", "R"}, {"d", "P"}, {"s", "P"}, {"out", "S0"}, {"x", "R"}};
    auto const e = refusal(g, free_with(pins));
    CHECK(e.subject() == "pin a=R; pin s=P");
    CHECK(e.problem() == "no choice of strategies satisfies these 2 together, without any one there is one; they meet at 'a', 's'");
    CHECK(e.remedy() == "loosen one of them");
    for (std::size_t without : {std::size_t{2}, std::size_t{4}}) {
        auto fewer = pins;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(without));
        check_feasible(g, free_with(fewer));
    }
}

TEST_CASE("a pin against the boundary: the gradient of an input, of a parameter") {
    //  x, w -> add y -> out;  x.grad, w.grad <- make
    graph_builder b;
    auto const x = b.input("x", {8}), w = b.parameter("w", {8});
    b.output(small_op(b, "add", {x, w}, "y"), "out");
    b.backward();
    b.gradient(x, small_op(b, "make", {x}, "gx"));
    b.gradient(w, small_op(b, "make", {x}, "gw"));
    auto const g = b.build();
    plan_options o;
    o.boundary.pins = {{"y", "S0"}, {"x.grad", "R"}};
    auto const of_input = refusal(g, o);
    CHECK(of_input.subject() == "pin x.grad=R; inputs and targets: S0 (default)");
    CHECK(says(of_input.problem(), "as gradients lie as their parameter or input"));
    CHECK(says(of_input.problem(), "they meet at 'x'"));
    o.boundary.inputs = "R";
    check_feasible(g, o);
    o.boundary.pins = {{"y", "S0"}, {"w.grad", "R"}};
    CHECK(refusal(g, o).subject() == "pin w.grad=R; parameters: fully_sharded (default)");
    o.boundary.parameters = parameter_storage::free;
    check_feasible(g, o);
    o.boundary.pins.push_back({"w", "S0"});
    CHECK(refusal(g, o).subject() == "pin w.grad=R; pin w=S0");
}

TEST_CASE("a conflict that no edge shows: three choices that must all differ pairwise, of two") {
    //  x -> choose c0, c1, c2, c3;  differ d01(c0, c1), d12, d02, d03: pinned to S0, each wants its two choices to differ.
    //  Every edge alone has a partner for every label (arc consistent); the triangle 0-1-2 has no labelling.
    graph_builder b;
    auto const x = b.input("x", {8});
    std::vector<value_ref> c;
    for (int i = 0; i < 4; ++i) c.push_back(small_op(b, "choose", {x}, "c" + std::to_string(i), 2));
    auto const differ = [&](std::size_t i, std::size_t j) {
        auto const name = "d" + std::to_string(i) + std::to_string(j);
        b.output(small_op(b, "differ", {c[i], {c[i].node, 1}, c[j], {c[j].node, 1}}, name), "out" + name);
    };
    differ(0, 3);
    differ(0, 1);
    differ(1, 2);
    differ(0, 2);
    auto const g = b.build();
    auto const e = refusal(g, free_with({{"d03", "S0"}, {"d01", "S0"}, {"outd03", "R"}, {"d12", "S0"}, {"d02", "S0"}}));
    CHECK(e.subject() == "pin d01=S0; pin d12=S0; pin d02=S0");
    for (auto const* name : {"'c0'", "'c1'", "'c2'", "'d01'", "'d12'", "'d02'"}) CHECK(says(e.problem(), name));
    CHECK_FALSE(says(e.problem(), "c3"));
    check_feasible(g, free_with({{"d03", "S0"}, {"d01", "S0"}, {"d12", "S0"}}));
}

TEST_CASE("what only copies of a layer cannot do names clustering, and works without it") {
    //  x -> layers.0 sum_or_max l0 -> want_sum a -> out.a
    //  x -> layers.1 sum_or_max l1 -> want_max b -> out.b      l0 and l1 share a decision
    graph_builder b;
    auto const x = b.input("x", {8});
    auto const l0 = small_op(b.in_module("layers.0"), "sum_or_max", {x}, "layers.0.l");
    auto const l1 = small_op(b.in_module("layers.1"), "sum_or_max", {x}, "layers.1.l");
    b.in_module("");
    b.output(small_op(b, "want_sum", {l0}, "a"), "out.a");
    b.output(small_op(b, "want_max", {l1}, "b"), "out.b");
    auto const g = b.build();
    auto o = free_with({{"a", "S0"}, {"b", "S0"}, {"x", "R"}});
    auto const e = refusal(g, o);
    CHECK(e.subject() == "pin a=S0; pin b=S0");
    CHECK(says(e.problem(), "as copies of a layer share one decision"));
    CHECK(says(e.problem(), "'layers.0.l'"));
    CHECK(says(e.remedy(), "no clustering"));
    o.clustering = false;
    check_feasible(g, o);
}

TEST_CASE("copies whose parameters are pinned apart stay apart while a conflict is looked for, and so do their casts") {
    //  layers.0: w -> cast,  layers.1: w -> cast;  and beside them the conflict of a and s as above
    graph_builder b;
    auto const x = b.input("x", {8});
    for (int i = 0; i < 2; ++i) {
        auto const module = "layers." + std::to_string(i);
        auto const w = b.in_module(module).parameter(module + ".w", {8});
        b.output(b.cast(w, dtype::bfloat16), "out." + std::to_string(i));
    }
    b.in_module("");
    b.output(small_op(b, "add", {small_op(b, "make", {x}, "a"), small_op(b, "make", {x}, "b")}, "s"), "out");
    auto o = free_with({{"layers.0.w", "S0,R"}, {"layers.1.w", "R,S0"}, {"a", "R,R"}, {"s", "P,P"}});
    CHECK(refusal(b.build(), o, "2x2").subject() == "pin a=R,R; pin s=P,P");
}

TEST_CASE("one pin alone: what building says of it stays, and a layout that no neighbour can serve is named with its place") {
    //  x -> keep y -> out: y Partial wants x Partial, which an input never is
    graph_builder b;
    auto const x = b.input("x", {8});
    b.output(small_op(b, "keep", {x}, "y"), "out");
    b.output(small_op(b, "add", {small_op(b, "make", {x}, "m"), x}, "z"), "out.z");
    auto const g = b.build();
    auto const e = refusal(g, free_with({{"y", "P"}}));
    CHECK(says(e.subject(), "'y=P'"));
    CHECK(says(e.remedy(), "choose one of: R | S0"));
    auto const f = refusal(g, free_with({{"y", "S0"}, {"m", "S0"}, {"z", "P"}}));
    CHECK(says(f.subject(), "z=P"));
    CHECK_FALSE(says(f.subject(), "m=S0"));
}

TEST_CASE("random graphs under random pins: what is named conflicts, and does not without any one of it") {
    std::size_t refused = 0, of_many = 0;
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        INFO("seed " << seed);
        std::uint64_t state = seed;
        auto const below = [&](std::size_t n) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            return static_cast<std::size_t>(state >> 33) % n;
        };
        // Ops on what there is so far; the last value goes out, and one is the gradient of w, so lies as w does.
        graph_builder b;
        std::vector<value_ref> values{b.input("x", {8}), b.parameter("w", {8})};
        std::vector<std::string> names{"w"};
        for (int i = 0; i < 9; ++i) {
            auto const pick = [&] { return values[below(values.size())]; };
            auto const name = "layers." + std::to_string(i % 3) + ".v" + std::to_string(i);
            b.in_module("layers." + std::to_string(i % 3));
            switch (below(4)) {
                case 0: values.push_back(small_op(b, "make", {pick()}, name)); break;
                case 1: values.push_back(small_op(b, "keep", {pick()}, name)); break;
                case 2: values.push_back(small_op(b, "add", {pick(), pick()}, name)); break;
                default: values.push_back(small_op(b, "sum_or_max", {pick()}, name));
            }
            names.push_back(name);
        }
        b.in_module("");
        b.output(values.back(), "out");
        b.backward();
        b.gradient(values[1], values[5]);
        names.push_back("w.grad");
        auto const g = b.build();
        char const* const layouts[] = {"R", "S0", "P"};
        std::vector<pin> pins;
        for (auto const& name : names)
            if (below(2) == 0) pins.push_back({name, layouts[below(name[0] == 'w' ? 2 : 3)]});
        auto const options = free_with(pins);
        problem_options const asked{options.boundary, true, 1.0, false};
        auto const feasible = [&](std::vector<pin> const& some, bool clustering) {
            auto o = free_with(some);
            o.clustering = clustering;
            try {
                small_plan(g, o);
                return true;
            } catch (error const& e) {
                REQUIRE(e.code() == error_code::unsatisfiable_constraint);
                return false;
            }
        };
        auto const conflict =
            find_demand_conflict(g, device_mesh::parse("2"), cantle::test::small_rules(), cantle::test::small_prices{}, asked);
        CHECK(conflict.has_value() == !feasible(pins, true));
        if (!conflict) continue;
        ++refused;
        of_many += conflict->demands.size() > 1;
        std::vector<pin> named;
        for (auto const& p : pins)
            for (auto const& d : conflict->demands)
                if (d == "pin " + p.tensor + "=" + p.layout) named.push_back(p);
        CHECK(named.size() == conflict->demands.size());
        CHECK_FALSE(feasible(named, conflict->by_clustering));
        for (std::size_t i = 0; i < named.size(); ++i) {
            auto fewer = named;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            CHECK(feasible(fewer, conflict->by_clustering));
        }
    }
    CHECK(refused > 20);
    CHECK(of_many > 10);
}
