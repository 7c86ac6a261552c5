// SPDX-License-Identifier: BSL-1.0
// Programs of planned graphs of a few nodes: what was priced is what runs, ranks meet, and broken programs are refused.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/check.hpp>
#include <cantle/program/lower.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <functional>
#include <map>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {

struct planned {
    training_graph graph;
    sharding_plan plan;
    std::vector<rank_program> programs;
};
planned lowered(training_graph g, char const* sizes, boundary b = {}) {
    auto const mesh = device_mesh::parse(sizes);
    plan_options options;
    options.boundary = std::move(b);
    auto p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options);
    planned all{std::move(g), std::move(p), {}};
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) all.programs.push_back(lower(all.graph, all.plan, standard_rules(), r));
    return all;
}
/// (kind, axes) -> number and bytes before
using tally = std::map<std::pair<std::string, std::uint32_t>, std::pair<std::size_t, std::int64_t>>;
tally priced(planned const& p) {
    tally t;
    auto const count = [&](collective_call const& c) {
        auto& at = t[{std::string(to_string(c.kind)), c.axes}];
        ++at.first;
        at.second += c.bytes_before;
    };
    for (auto const& m : p.plan.moves)
        for (auto const& s : p.plan.paths[m.path].steps) count(s.call);
    for (auto const& n : p.plan.nodes)
        for (auto const& i : n.inner) count(i.call);
    return t;
}
tally runs(rank_program const& p) {
    tally t;
    for (auto const& s : p.steps) {
        if (!s.is_transfer()) continue;
        std::uint32_t axes = 0;
        for (auto a : s.move.axes) axes |= 1u << a;
        auto& at = t[{std::string(to_string(s.move.kind)), axes}];
        ++at.first;
        at.second += element_count(s.move.before) * element_bytes(p.values[s.inputs[0]].type);
    }
    return t;
}
error_code refused(std::vector<rank_program> const& programs) {
    try {
        check_programs(programs);
    } catch (error const& e) {
        return e.code();
    }
    return error_code::bad_option;
}

}  // namespace

TEST_CASE("every collective that was priced runs once on every rank, with the bytes that were priced, and no other") {
    for (auto const* mesh : {"8", "2x4", "4x8", "2x2x2"}) {
        auto const p = lowered(residual_mlp(2), mesh);
        auto const want = priced(p);
        REQUIRE(!want.empty());
        check_programs(p.programs);
        for (auto const& program : p.programs) CHECK(runs(program) == want);
    }
}

TEST_CASE("sources and sinks stand in order, with the pieces that the plan gives them") {
    auto const p = lowered(residual_mlp(1), "2x2");
    for (auto const& program : p.programs) {
        std::size_t in = 0, out = 0;
        for (vertex v = 0; v < p.graph.size(); ++v) {
            if (!is_source(p.graph[v].role) && !is_sink(p.graph[v].role)) continue;
            auto const& port = is_source(p.graph[v].role) ? program.inputs.at(in++) : program.outputs.at(out++);
            CHECK(port.node == v);
            auto const& l = p.plan.at(p.plan.nodes[v].outputs[0]);
            CHECK(port.piece.sizes == l.local_shape(p.graph[v].outputs[0].sizes));
            CHECK(program.values[port.value].sizes == port.piece.sizes);
        }
        CHECK(in == program.inputs.size());
        CHECK(out == program.outputs.size());
    }
}

TEST_CASE("a value is released once, after its last reader, and outputs never are") {
    auto const p = lowered(residual_mlp(2), "2x4");
    auto const& program = p.programs[3];
    std::map<program_value, std::size_t> last, released;
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
        for (auto v : program.steps[s].inputs) last[v] = s;
        for (auto v : program.steps[s].last_uses) CHECK(released.emplace(v, s).second);
    }
    std::map<program_value, bool> is_output;
    for (auto const& port : program.outputs) is_output[port.value] = true;
    for (auto const& [v, s] : last) CHECK(is_output.count(v) + released.count(v) == 1);
    for (auto const& [v, s] : released)
        if (last.count(v)) CHECK(s == last[v]);
}

TEST_CASE("programs that would hang or read what is gone are refused: each broken in one place") {
    auto const p = lowered(residual_mlp(1), "2x2");
    CHECK(refused(p.programs) == error_code::bad_option);  // the unbroken ones pass
    auto const step_with = [&](auto&& wanted) {
        for (std::size_t s = 0; s < p.programs[1].steps.size(); ++s)
            if (wanted(p.programs[1].steps[s])) return s;
        FAIL("no such step");
        return std::size_t{0};
    };
    auto const meets = step_with([](program_step const& s) { return s.is_transfer() && s.move.communicates(); });
    auto const broken = [&](auto&& change) {
        auto all = p.programs;
        change(all[1]);
        return refused(all);
    };
    CHECK(broken([&](rank_program& q) { q.steps[meets].move.kind = collective_kind::permute; }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.steps[meets].move.before[0] += 1; }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.steps[meets].move.after[0] += 1; }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.steps[meets].move.member ^= 1; }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { std::swap(q.steps[meets], q.steps[meets + 1]); }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.steps.pop_back(); }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.outputs[0].value = 0; q.steps[0].last_uses.push_back(0); }) == error_code::bad_program);
    CHECK(broken([&](rank_program& q) { q.rank = 2; }) == error_code::bad_program);
    auto few = p.programs;
    few.pop_back();
    CHECK(refused(few) == error_code::bad_program);
}

TEST_CASE("what would run and give wrong numbers is refused: numbers of PyTorch's generators") {
    auto const code = [](training_graph const& g, plan_options const& options) {
        auto const mesh = device_mesh::parse("2");
        auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options);
        try {
            lower(g, p, standard_rules(), 0);
        } catch (error const& e) {
            return e.code();
        }
        return error_code::bad_option;
    };
    auto const graph = [](shape sizes, bool random) {
        graph_builder b;
        auto const x = b.input("x", sizes);
        auto const meta = contiguous_meta(sizes, dtype::float32);
        auto const y = random ? b.call("aten::bernoulli.p", {{"self", x}, {"p", 0.5}}, std::vector<tensor_meta>{meta}) : b.relu(x);
        b.output(y);
        return b.build();
    };
    plan_options options;
    CHECK(code(graph({8, 4}, false), options) == error_code::bad_option);  // runs
    CHECK(code(graph({8, 4}, true), options) == error_code::bad_option);  // drawn by index
    graph_builder fused;
    auto const q = fused.input("q", {2, 4, 8, 16});
    fused.output(fused.call("cantle::sdpa", {{"query", q}, {"key", q}, {"value", q}, {"dropout_p", 0.1}},
                            std::vector<tensor_meta>{contiguous_meta({2, 4, 8, 16}, dtype::float32),
                                                     contiguous_meta({2, 4, 8}, dtype::float32)}));
    CHECK(code(fused.build(), options) == error_code::bad_program);
    options.uneven = true;
    options.boundary.inputs = "S0";
    CHECK(code(graph({7, 4}, false), options) == error_code::bad_option);  // runs
}

TEST_CASE("a region is one call; its own collectives are no transfers of the program") {
    graph_builder b;
    auto const x = b.input("x", {8, 4});
    b.output(x);
    auto g = b.build();
    graph_node region;
    region_options declared;
    declared.name = "experts";
    declared.inputs = declared.outputs = {"*=S0"};
    declared.collectives = "a0:all_to_all:in0";
    region.operation = region_op(declared);
    region.operands = {{0, 0}};
    region.outputs = {g[0].outputs[0]};
    region.name = "region";
    g.nodes.insert(g.nodes.begin() + 1, region);
    g.nodes[2].operands = {{1, 0}};
    auto const mesh = device_mesh::parse("2");
    auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")));
    std::vector<rank_program> programs;
    for (std::int64_t r = 0; r < 2; ++r) programs.push_back(lower(g, p, standard_rules(), r));
    check_programs(programs);
    std::vector<std::string> calls;
    for (auto const& s : programs[0].steps)
        if (!s.is_transfer() || s.move.communicates()) calls.push_back(s.call.name);
    CHECK(calls == std::vector<std::string>{std::string(region_op_name)});
}

// x [7, 4] -> relu -> y on 4 ranks: rows 2 2 2 1
TEST_CASE("an uneven plan gives each rank its own sizes, and its collectives bring buffers of one size") {
    graph_builder b;
    auto const x = b.input("x", {7, 4});
    b.output(b.relu(x));
    plan_options options;
    options.uneven = true;
    options.boundary.inputs = "S0";
    auto const mesh = device_mesh::parse("4");
    auto const g = b.build();
    auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options);
    auto const all = lower_all(g, p, standard_rules());
    for (std::int64_t r = 0; r < 4; ++r) {
        auto const& in = all[static_cast<std::size_t>(r)].inputs[0];
        CHECK(in.piece.sizes == shape{r < 3 ? 2 : 1, 4});
        CHECK(in.piece.offset == shape{2 * r, 0});
    }
    for (std::size_t s = 0; s < all[0].steps.size(); ++s)
        for (auto const& program : all) CHECK(program.steps[s].move.sent() == all[0].steps[s].move.sent());
}

namespace {
/// Number and text of what `run` throws; 0 where it throws nothing.
std::pair<int, std::string> thrown(std::function<void()> const& run) {
    try {
        run();
    } catch (error const& e) {
        return {e.number(), e.what()};
    }
    return {0, ""};
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("a plan of another graph, of another mesh, and a rank that there is not, are refused before anything is lowered") {
    auto const p = lowered(residual_mlp(1), "2x2");
    auto const rules = standard_rules();
    auto [number, text] = thrown([&] { lower(residual_mlp(1, 256), p.plan, rules, 0); });
    CHECK(number == 802);
    CHECK_MESSAGE(has(text, "structural hash"), text);
    CHECK(thrown([&] { lower_all(residual_mlp(2), p.plan, rules); }).first == 802);
    std::tie(number, text) = thrown([&] { lower(p.graph, p.plan, device_mesh::parse("4"), rules, 0); });
    CHECK(number == 802);
    CHECK_MESSAGE(has(text, "its mesh is 2x2"), text);
    for (std::int64_t rank : {-1, 4}) {
        std::tie(number, text) = thrown([&] { lower(p.graph, p.plan, rules, rank); });
        CHECK(number == 701);
        CHECK_MESSAGE(has(text, "rank " + std::to_string(rank)), text);
        CHECK_MESSAGE(has(text, "whose ranks are 0 to 3"), text);
    }
    CHECK(thrown([&] { lower(p.graph, p.plan, p.plan.mesh, rules, 3); }).first == 0);
}

TEST_CASE("a plan that was changed by hand into one that would compute something else is refused, and the tensor is named") {
    auto const p = lowered(residual_mlp(2), "2x4");
    auto const rules = standard_rules();
    REQUIRE(thrown([&] { lower(p.graph, p.plan, rules, 0); }).first == 0);
    auto const refusal = [&](auto&& change) {
        auto plan = p.plan;
        change(plan);
        auto const [number, text] = thrown([&] { lower(p.graph, plan, rules, 0); });
        CHECK_MESSAGE((number == 803 || number == 105), text);
        return text;
    };
    std::size_t to_relay = 0, to_operand = 0;
    for (std::size_t i = 0; i < p.plan.moves.size(); ++i) {
        auto const& m = p.plan.moves[i];
        ++(m.to_relay == tensor_move::none ? to_operand : to_relay);
        auto const name = "'" + p.graph[m.value.node].name + "'";
        refusal([&](sharding_plan& q) { q.moves.erase(q.moves.begin() + static_cast<std::ptrdiff_t>(i)); });
        for (std::uint32_t other = 0; other < p.plan.paths.size(); ++other)
            if (p.plan.paths[other].from != p.plan.paths[m.path].from || p.plan.paths[other].to != p.plan.paths[m.path].to)
                CHECK_MESSAGE(has(refusal([&](sharding_plan& q) { q.moves[i].path = other; }), "the move of " + name), name);
    }
    CHECK(to_relay + to_operand > 3);
    for (std::size_t i = 0; i < p.plan.paths.size(); ++i)
        for (std::size_t k = 0; k < p.plan.paths[i].steps.size(); ++k) {
            auto const broken = [&](auto&& change) { return refusal([&](sharding_plan& q) { change(q.paths[i].steps[k]); }); };
            for (int kind = 0; kind < 6; ++kind)
                if (auto const other = static_cast<collective_kind>(kind); other != p.plan.paths[i].steps[k].step.kind)
                    CHECK(has(broken([&](priced_transition& s) { s.step.kind = other; }), "does not lead there"));
            CHECK(has(broken([](priced_transition& s) { s.step.axes = {0, 2}; }), "which the mesh does not have"));
            CHECK(has(broken([](priced_transition& s) { s.step.axes[0] ^= 1; }), "does not lead there"));
            CHECK(has(broken([](priced_transition& s) { ++s.step.from_dim; }), "does not lead there"));
            CHECK(has(broken([](priced_transition& s) { ++s.call.bytes_before; }), "priced are"));
        }
}

// x [5, 4] on 4 ranks has rows 2 2 1 0: it may lie so, but nothing is computed on it.
TEST_CASE("layouts that do not fit, and ops on empty pieces, are refused before anything runs") {
    graph_builder b;
    auto const x = b.input("x", {5, 4});
    b.output(b.relu(x));
    auto const g = b.build();
    auto const mesh = device_mesh::parse("4");
    plan_options options;
    options.boundary.inputs = "R";
    auto const p = plan(g, mesh, standard_rules(), standard_cost_model(mesh, find_cluster("h100")), options);
    auto const with = [&](char const* text) {
        auto q = p;
        q.relays.clear();
        q.moves.clear();
        q.layouts = {layout::parse(mesh, text)};
        for (auto& n : q.nodes) {
            n.operands.assign(n.operands.size(), 0);
            n.outputs.assign(n.outputs.size(), 0);
        }
        return thrown([&] { lower_all(g, q, standard_rules()); });
    };
    CHECK(with("R").first == 0);
    CHECK(with("S1").first == 0);
    auto const [number, text] = with("S0");
    CHECK(number == 803);
    CHECK_MESSAGE(has(text, "leaves a rank without elements"), text);
    CHECK(with("S1; d1=3>a0").first == 803);
}
