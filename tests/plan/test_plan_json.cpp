// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace cantle;

namespace {

// x [64,128,512] -> linear w1 -> relu -> linear w2 -> sum -> loss, and its backward pass; `rows` of w1 may differ.
training_graph mlp(std::int64_t rows = 2048) {
    graph_builder b;
    auto const x = b.input("x", {64, 128, 512}, dtype::bfloat16);
    auto const w1 = b.parameter("fc1.weight", {rows, 512}, dtype::bfloat16), w2 = b.parameter("fc2.weight", {512, rows}, dtype::bfloat16);
    auto const a = b.relu(b.linear(x, w1));
    auto const y = b.linear(a, w2);
    b.loss(b.call("aten::sum", {{"self", y}, {"dtype", none}}));
    b.backward();
    auto const g = b.call("aten::expand", {{"self", b.ones({}, dtype::bfloat16)}, {"size", shape{64, 128, 512}}, {"implicit", false}});
    b.gradient(w2, b.linear_grad_weight(g, a, y));
    b.gradient(w1, b.linear_grad_weight(b.relu_backward(b.linear_grad_input(g, w2, y), a), x));
    return b.build();
}

device_mesh const mesh = device_mesh::parse("4x8", "dp,tp");

sharding_plan plan_of(training_graph const& g, device_mesh const& m = mesh) {
    return plan(g, m, standard_rules(), standard_cost_model(m, h100_cluster()));
}

// A plan by hand that has everything a plan can have: relays, inner collectives, factors, other reductions, awkward doubles and texts.
sharding_plan crowded_plan() {
    sharding_plan p;
    p.mesh = mesh;
    p.layouts = {layout::parse(mesh, "S0,R"), layout::parse(mesh, "S0,S0; d0=tp>dp"), layout::parse(mesh, "R,S0; d0=4>tp"),
                 layout::parse(mesh, "P(max),P(max)"), layout::parse(mesh, "P,P(avg)"), layout::parse(mesh, "R,R")};
    p.nodes = {{{}, {0}, 0, {}},
               {{0, 1}, {2, 3}, 0.1, {{{collective_kind::all_reduce, 2, 64, 64, 0, reduction::max}, true, 1, 15.000000000000002},
                                      {{collective_kind::all_gather, 3, 64, 2048, 9, reduction::sum}, false, 0, 1e-300}}},
               {{3}, {5}, -0.0, {}}};
    p.relays = {{{1, 1}, 5}};
    priced_transition first{{collective_kind::reduce_scatter, {1, 0}, 0, 2, reduction::avg, p.layouts[1]},
                            {collective_kind::reduce_scatter, 3, 4096, 128, 4096, reduction::avg}, 1.0 / 3};
    priced_transition second{{collective_kind::all_gather, {1, 0}, 1, 0, reduction::sum, p.layouts[5]},
                             {collective_kind::all_gather, 3, 128, 4096, 0, reduction::sum}, 1e-7};
    priced_transition back{{collective_kind::slice, {0}, 0, 0, reduction::sum, p.layouts[3]},
                                 {collective_kind::slice, 1, 64, 64, 0, reduction::sum}, 0};
    p.paths = {{3, 5, {first, second}, 1.0 / 3 + 1e-7}, {5, 3, {back}, 0}};
    p.moves = {{{1, 1}, tensor_move::none, 0, 0, 0, 0}, {{1, 1}, 0, tensor_move::none, 2, 0, 1}};
    p.cost = {0.0625, 0.0375, {0, 1e-7, 1.0 / 3, 0, 0, 0}, 15.000000000000002, 7};
    p.memory = {std::int64_t{1} << 62, std::int64_t{1} << 60};
    p.objective = p.cost.total();
    p.bound = -1.0;
    p.status = solve_status::sweep_limit;
    p.bounded_problem = "a \"quoted\" problem\nin two lines";
    p.constraints = {"pin: größe=S0,R", ""};
    p.made_from = {{1, 2}, {3, ~std::uint64_t{0}}, {5, 6}, {7, 8}};
    return p;
}

template <class F>
int code_of(F f) {
    try {
        f();
    } catch (error const& e) {
        return e.number();
    }
    return 0;
}

}  // namespace

TEST_CASE("A plan read back writes the same bytes") {
    auto const g = mlp();
    for (auto const& p : {plan_of(g), crowded_plan()}) {
        auto const text = plan_to_json(p);
        CHECK(plan_to_json(plan_from_json(text, "text")) == text);
    }
    CHECK(plan_to_json(plan_of(g)) == plan_to_json(plan_of(g)));
}

TEST_CASE("Nothing of a plan is lost in JSON") {
    auto const p = crowded_plan();
    auto const q = plan_from_json(plan_to_json(p), "text");
    CHECK(q.mesh == p.mesh);
    CHECK(q.layouts == p.layouts);
    REQUIRE(q.nodes.size() == p.nodes.size());
    for (std::size_t v = 0; v < p.nodes.size(); ++v) {
        CHECK(q.nodes[v].operands == p.nodes[v].operands);
        CHECK(q.nodes[v].outputs == p.nodes[v].outputs);
        REQUIRE(q.nodes[v].inner.size() == p.nodes[v].inner.size());
    }
    CHECK(q.nodes[1].compute == 0.1);
    CHECK(q.nodes[1].inner[0].call.reduce == reduction::max);
    CHECK(q.nodes[1].inner[0].cost == 15.000000000000002);
    CHECK(q.nodes[1].inner[1].on_output == false);
    CHECK(q.nodes[1].inner[1].call.packed_bytes == 9);
    CHECK(q.nodes[1].inner[1].call.axes == 3);
    CHECK(q.relays[0].value == value_ref{1, 1});
    CHECK(q.relays[0].at == 5);
    REQUIRE(q.paths.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(q.paths[0].steps[i].step == p.paths[0].steps[i].step);
        CHECK(q.paths[0].steps[i].call.bytes_before == p.paths[0].steps[i].call.bytes_before);
        CHECK(std::bit_cast<std::uint64_t>(q.paths[0].steps[i].cost) == std::bit_cast<std::uint64_t>(p.paths[0].steps[i].cost));
    }
    CHECK(q.paths[0].cost == p.paths[0].cost);
    CHECK(q.moves[0].to_relay == 0);
    CHECK(q.moves[1].from_relay == 0);
    CHECK(q.moves[1].to_relay == tensor_move::none);
    CHECK(q.moves[1].user == 2);
    CHECK(q.cost.moves == p.cost.moves);
    CHECK(q.cost.total() == p.cost.total());
    CHECK(q.memory.parameters_global == p.memory.parameters_global);
    CHECK(q.bound == -1.0);
    CHECK(q.status == p.status);
    CHECK(q.bounded_problem == p.bounded_problem);
    CHECK(q.constraints == p.constraints);
    CHECK(q.made_from == p.made_from);
}

TEST_CASE("A plan is the same whether vertices carry names or not") {
    auto const g = mlp();
    auto const p = plan_of(g);
    auto const named = plan_to_json(p, &g);
    CHECK(named.find("\"name\":\"fc1.weight\"") != std::string::npos);
    CHECK(plan_to_json(plan_from_json(named, "text")) == plan_to_json(p));
}

TEST_CASE("A plan file appears whole or not at all") {
    namespace fs = std::filesystem;
    auto const p = crowded_plan();
    fs::path const file = "test_plan.json";
    write_plan_json(p, file);
    CHECK(plan_to_json(read_plan_json(file)) == plan_to_json(p));
    fs::remove(file);
    CHECK(code_of([&] { write_plan_json(p, "no_such_folder/plan.json"); }) == 102);
    CHECK(code_of([] { read_plan_json("no_such_plan.json"); }) == 101);
}

TEST_CASE("What is no plan is refused with its number") {
    auto const text = plan_to_json(crowded_plan());
    CHECK(code_of([&] { plan_from_json(text.substr(0, text.size() / 2), "half"); }) == 103);
    CHECK(code_of([] { plan_from_json("[]", "list"); }) == 104);
    CHECK(code_of([] { plan_from_json("{\"format\":\"cantle-graph\",\"version\":1}", "graph"); }) == 104);
    CHECK(code_of([] { plan_from_json("{\"format\":\"cantle-plan\",\"version\":2}", "newer"); }) == 104);
    CHECK(code_of([] { plan_from_json("{\"format\":\"cantle-plan\",\"version\":1}", "empty"); }) == 105);
}

TEST_CASE("Every wrong field is named with its row") {
    auto const good = nlohmann::ordered_json::parse(plan_to_json(crowded_plan()));
    using json = nlohmann::ordered_json;
    std::map<std::string, std::function<void(json&)>> const damages{
        {"layout out of range", [](json& j) { j["nodes"][1]["in"][0] = 6; }},
        {"negative layout", [](json& j) { j["nodes"][1]["out"][0] = -1; }},
        {"layout that does not parse", [](json& j) { j["layouts"][0] = "S0"; }},
        {"layout of another axis", [](json& j) { j["layouts"][2] = "R,S0; d0=4>xx"; }},
        {"axis out of range", [](json& j) { j["paths"][0]["steps"][0]["axes"][0] = 2; }},
        {"axis twice", [](json& j) { j["paths"][0]["steps"][0]["axes"][0] = 0; }},
        {"no axes", [](json& j) { j["paths"][0]["steps"][0]["axes"] = json::array(); }},
        {"unknown kind", [](json& j) { j["paths"][0]["steps"][0]["kind"] = "broadcast"; }},
        {"path that ends elsewhere", [](json& j) { j["paths"][0]["to"] = 0; }},
        {"path out of range", [](json& j) { j["moves"][0]["path"] = 2; }},
        {"relay out of range", [](json& j) { j["moves"][0]["to_relay"] = 1; }},
        {"relay and user", [](json& j) { j["moves"][0]["user"] = 1; }},
        {"user out of range", [](json& j) { j["moves"][1]["user"] = 3; }},
        {"operand out of range", [](json& j) { j["moves"][1]["operand"] = 1; }},
        {"node out of range", [](json& j) { j["relays"][0]["value"][0] = 3; }},
        {"output out of range", [](json& j) { j["relays"][0]["value"][1] = 2; }},
        {"negative cost", [](json& j) { j["cost"]["inner"] = -1.0; }},
        {"text for a number", [](json& j) { j["objective"] = "cheap"; }},
        {"gap that contradicts", [](json& j) { j["gap"] = 0.0; }},
        {"unknown status", [](json& j) { j["status"] = "good"; }},
        {"unknown field", [](json& j) { j["seconds"] = 1; }},
        {"hash of another length", [](json& j) { j["made_from"]["graph"] = "12"; }},
        {"mesh without axes", [](json& j) { j["mesh"] = json::array(); }},
        {"mesh axis of size 0", [](json& j) { j["mesh"][0][1] = 0; }},
        {"id that is not the place", [](json& j) { j["nodes"][1]["id"] = 2; }},
        {"inner of no port", [](json& j) { j["nodes"][1]["inner"][0]["index"] = 2; }}};
    for (auto const& [what, damage] : damages) {
        CAPTURE(what);
        auto bad = good;
        damage(bad);
        CHECK(code_of([&] { plan_from_json(bad.dump(), "bad.json"); }) == 105);
    }
    auto bad = good;
    bad["nodes"][1]["in"][0] = 6;
    CHECK_THROWS_WITH_AS(plan_from_json(bad.dump(), "bad.json"),
                         "cantle error 105: bad.json: row 1 of nodes: field 'in' is 6, but there are only 6 of those. Remedy: correct the "
                         "field, or plan again",
                         error);
}

TEST_CASE("Damaged bytes give a numbered error or a plan, and nothing else") {
    auto const text = plan_to_json(plan_of(mlp()));
    unsigned const seed = 20261130;
    std::mt19937 random(seed);
    CAPTURE(seed);
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
        auto bad = text;
        for (int k = 0; k < 1 + round % 3; ++k) {
            auto const at = random() % bad.size();
            if (round % 4 == 0) bad.erase(at, 1 + random() % 40);
            else bad[at] = static_cast<char>("0123456789[]{},:\"-.eSRP"[random() % 23]);
        }
        CAPTURE(round);
        try {
            auto const again = plan_to_json(plan_from_json(bad, "fuzz"));
            CHECK(plan_to_json(plan_from_json(again, "again")) == again);
        } catch (error const& e) {
            ++refused;
            CHECK(e.number() >= 103);
            CHECK(e.number() <= 105);
        }
    }
    CHECK(refused > 100);
}

TEST_CASE("A plan refuses another graph or mesh and says what differs") {
    auto const g = mlp();
    auto const p = plan_of(g);
    CHECK_NOTHROW(refuse_foreign(p, g, mesh));
    auto renamed = g;
    renamed[0].name = "another name";
    CHECK_NOTHROW(refuse_foreign(p, renamed, mesh));  // structure decides, not names
    auto const message = [&](training_graph const& other, device_mesh const& m) {
        try {
            refuse_foreign(p, other, m);
        } catch (error const& e) {
            CHECK(e.number() == 802);
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message(g, device_mesh::parse("8", "dp")).find("its mesh is 4x8 (dp, tp), this one is 8 (dp)") != std::string::npos);
    CHECK(message(mlp(1024), mesh).find("structural hash " + p.made_from.graph.hex()) != std::string::npos);
    auto shorter = g;
    shorter.nodes.pop_back();
    CHECK(
        message(shorter, mesh).find("it places " + std::to_string(g.size()) + " vertices, the graph has " + std::to_string(g.size() - 1)) !=
        std::string::npos);
}

// Each damage leaves a plan whose fields are all of the right form; only together they are wrong. The message names the field.
TEST_CASE("A plan that contradicts itself is refused, with the field named") {
    auto const good = nlohmann::ordered_json::parse(plan_to_json(crowded_plan()));
    using json = nlohmann::ordered_json;
    auto const with_gap = [](json& j) {
        double const objective = j["objective"], bound = j["bound"];
        j["gap"] = objective > 0 ? (objective - bound) / objective : 0.0;
    };
    struct damage {
        char const* field;
        std::function<void(json&)> make;
    };
    for (auto const& [field, make] : std::vector<damage>{
             {"'bound' is 30, above", [](json& j) { j["bound"] = 30.0; }},
             {"'memory.parameters_local' is 5, which is no share of", [](json& j) { j["memory"]["parameters_local"] = 5; }},
             {"'objective' is 21", [](json& j) { j["objective"] = 21.0; }},
             {"'objective'", [](json& j) { j["cost"]["tie_break"] = 8.0; }},
             {"'cost.forward_compute + cost.backward_compute'", [](json& j) { j["nodes"][1]["compute"] = 0.2; }},
             {"'cost.inner'", [](json& j) { j["nodes"][1]["inner"][0]["cost"] = 14.0; }},
             {"row 0 of paths: field 'cost'", [](json& j) { j["paths"][0]["steps"][0]["cost"] = 0.5; }},
             {"'cost.all_gather'",
              [](json& j) {
                  j["cost"]["all_gather"] = 1.0;
                  j["cost"]["tie_break"] = 6.0 + 1e-7;
              }},
             {"row 0 of moves: field 'path' begins at", [](json& j) { j["nodes"][1]["out"][1] = 0; }},
             {"row 1 of moves: field 'path' ends at", [](json& j) { j["nodes"][2]["in"][0] = 0; }},
             {"row 0 of moves: field 'path'", [](json& j) { j["moves"][0]["path"] = 1; }},
             {"row 0 of moves: field 'to_relay' is a relay of another value", [](json& j) { j["relays"][0]["value"][1] = 0; }}}) {
        CAPTURE(field);
        auto bad = good;
        make(bad);
        with_gap(bad);
        try {
            plan_from_json(bad.dump(), "bad.json");
            FAIL_CHECK("the plan was taken");
        } catch (error const& e) {
            CHECK(e.number() == 105);
            CHECK_MESSAGE(std::string(e.what()).find(field) != std::string::npos, e.what());
        }
    }
}

TEST_CASE("A plan that contradicts its graph is refused, with the field named") {
    auto const g = mlp();
    for (auto const* sizes : {"8", "4x8", "2x2x2"}) {
        auto const m = device_mesh::parse(sizes);
        auto const good = plan_of(g, m);
        CHECK_NOTHROW(refuse_foreign(good, g, m));
        REQUIRE_FALSE(good.moves.empty());
        auto const message = [&](sharding_plan const& p) {
            try {
                refuse_foreign(p, g, m);
            } catch (error const& e) {
                CHECK(e.number() == 105);
                return std::string(e.what());
            }
            return std::string();
        };
        auto p = good;
        p.memory.parameters_local += 1;
        CHECK(message(p).find("memory.parameters_local") != std::string::npos);
        p = good;
        p.memory.parameters_global = 0;
        CHECK(message(p).find("memory.parameters_global") != std::string::npos);
        p = good;
        while (p.moves.back().to_relay != tensor_move::none) p.moves.pop_back();
        p.moves.pop_back();
        CHECK(message(p).find("where no move brings it") != std::string::npos);
        p = good;
        p.moves.push_back(p.moves.back());
        CHECK(message(p).find("by an earlier move already") != std::string::npos);
    }
}
