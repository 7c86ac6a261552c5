// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// Problems read from files: what is there comes back, and every fault names its place.
#include <cantle/mrf/ap_instance.hpp>
#include <cantle/mrf/lagrangian.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph_json.hpp>
#include <cantle/mrf/solve.hpp>

#include "random_graphs.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace cantle;
using namespace cantle::mrf;
using nlohmann::json;

namespace {

/// p (parameter) -> f (op) -> c (a copy of f), specs R = 0, S = 1. p may be R or S for nothing; f computes in R for 4 or in S for 2, and
/// reads p as it computes; c is a copy of f that reads f.
json instance() {
    return json::parse(R"({"format":"ap-instance-1","specs":["R","S0"],
      "nodes":[
        {"name":"p","root":0,"strat":0,"compute":0,"args":[],"edges":[]},
        {"name":"f","root":1,"strat":1,"compute":1,"args":[0],"edges":[{"t":7,"out":0}]},
        {"name":"c","root":1,"strat":1,"compute":1,"args":[1],"edges":[{"t":7,"out":0}]}],
      "strategy_tables":[{"out":[[0],[1]],"in":[[],[]]},{"out":[[0],[1]],"in":[[0],[1]]}],
      "compute_vectors":[[0,0],[4,2]],
      "redist":{"7":{"src":[0,1],"dst":[0,1],"cost":[[0,10],[3,0]]}},
      "constraints":{"fixed":[[0,[0]]],"paired":[],"nocomm":[],"same_index":[],
                     "memory":{"params":[0],"ratios":[[1.0,0.5]],"low":1.0,"high":1.0}},
      "reference":{"exact":{"objective":8.0,"solution":[0,0,0]}}})");
}
std::string fault(json const& d, std::string const& file = "x.json") {
    try {
        build_ap_instance(read_ap_file(d.dump(), file));
    } catch (error const& e) {
        return e.what();
    }
    return "";
}
bool says(std::string const& message, std::string const& part) {
    INFO(message);
    bool const found = message.find(part) != std::string::npos;
    CHECK_MESSAGE(found, message, " does not say ", part);
    return found;
}

}  // namespace

TEST_CASE("an instance's objective is that of its nodes, copies and moves") {
    auto const file = read_ap_file(instance().dump());
    auto const clustered = build_ap_instance(file);
    // All in R: 4 + 4. S after the move of p: 3 + 1 + 2 + 2 = 8 as well, and c must follow f.
    auto const r = solve(clustered.graph);
    CHECK(r.energy == 8.0);
    auto const labels = clustered.labels_of(file.references[0].strategies);
    REQUIRE(labels);
    CHECK(energy(clustered.graph, *labels) == 8.0);
    CHECK(clustered.strategies_of(*labels) == std::vector<std::uint32_t>{0, 0, 0});
    CHECK_FALSE(clustered.labels_of(std::vector<std::uint32_t>{1, 0, 0}));  // p is fixed
    auto const free = build_ap_instance(file, {.clustered = false});
    CHECK(free.graph.variable_count() == 3);
    CHECK(clustered.graph.variable_count() == 2);
    // f in R, c in S costs 4 + (3 + 1) + 2.
    CHECK(energy(free.graph, *free.labels_of(std::vector<std::uint32_t>{0, 0, 1})) == 10.0);
}

// Two ratios of p: 1 in R, 0.5 in S. Limits of their sum are said by labels where every parameter must take its smallest, else by budgets.
TEST_CASE("memory below the smallest ratios is refused, at them it is a matter of labels, above them a budget") {
    auto d = instance();
    d["constraints"]["fixed"] = json::array();
    auto& memory = d["constraints"]["memory"];
    auto const built = [&](double low, double high) {
        memory["low"] = low;
        memory["high"] = high;
        return build_ap_instance(read_ap_file(d.dump()));
    };
    CHECK(built(0.5, 0.5).budgets.empty());
    CHECK(built(0.5, 0.5).strategy[0] == std::vector<std::uint32_t>{1});
    auto const free = built(0, 1);
    CHECK(free.strategy[0].size() == 2);
    REQUIRE(free.budgets.size() == 1);
    auto const all_in_s = solve_with_budgets(free.graph, free.budgets);
    CHECK(all_in_s.energy == 4.0);  // p in S for nothing, f and c in S
    auto const whole = built(1, 1);  // p must be R
    REQUIRE(whole.budgets.size() == 2);
    auto const r = solve_with_budgets(whole.graph, whole.budgets);
    CHECK(r.status == solve_status::optimal);
    CHECK(r.energy == 8.0);
    memory["high"] = 0.25;
    memory["low"] = 0;
    says(fault(d), "501");
    says(fault(d), "constraints.memory");
    memory["low"] = 2;
    says(fault(d), "memory.low");
}

TEST_CASE("constraints that are no object, and flags that are none, are faults; a flag of 0 is not set") {
    auto d = instance();
    for (json const& wrong : {json(7), json(nullptr), json::array()}) {
        d["constraints"] = wrong;
        says(fault(d), "constraints");
    }
    d = instance();
    d["nodes"][1]["edges"][0]["free"] = "yes";
    says(fault(d), "free");
    d["nodes"][1]["edges"][0]["free"] = 0;
    d["nodes"][1]["edges"][0]["nocost"] = false;
    CHECK(solve(build_ap_instance(read_ap_file(d.dump())).graph).energy == 8.0);
}

// p(R) - f - c, unclustered; no move from R to S exists. So f must be R, and then c, although c's own edges allow S: labels 1, 1, 1.
TEST_CASE("strategies that no neighbour can meet are left out, from node to node") {
    auto d = instance();
    d["redist"]["7"]["cost"] = {{0, 10}, {nullptr, 0}};
    auto const built = build_ap_instance(read_ap_file(d.dump()), {.clustered = false});
    for (std::uint32_t v = 0; v < 3; ++v) {
        CHECK(built.strategy[v] == std::vector<std::uint32_t>{0});
        CHECK(built.graph.label_count(variable_id(v)) == 1);
    }
    CHECK(solve(built.graph).energy == 8.0);
    // c's arguments may not be moved at a cost: R from R is free, so the same comes out.
    d = instance();
    d["constraints"]["nocomm"] = {1};
    auto const quiet = build_ap_instance(read_ap_file(d.dump()), {.clustered = false});
    CHECK(quiet.strategy[2] == std::vector<std::uint32_t>{0});
}

// p is fixed to R, f needs S of it, and that move does not exist: nothing is left out, so that the conflict can be shown.
TEST_CASE("an instance without any solution keeps its strategies") {
    auto d = instance();
    d["strategy_tables"][1]["in"] = {{1}, {1}};
    d["redist"]["7"]["cost"] = {{0, 10}, {nullptr, 0}};
    auto const built = build_ap_instance(read_ap_file(d.dump()), {.clustered = false});
    CHECK(built.graph.label_count(variable_id(1)) == 2);
    CHECK(solve(built.graph).status == solve_status::infeasible);
}

TEST_CASE("faults of an instance name the place") {
    auto d = instance();
    CHECK(fault(d).empty());
    auto const text = instance().dump();
    try {
        read_ap_file(text.substr(0, text.size() / 2), "cut.json");
        CHECK(false);
    } catch (error const& e) {
        CHECK(e.code() == error_code::broken_json);
        says(e.what(), "cut.json: at byte");
    }
    (d = instance())["nodes"][1]["args"][0] = 1;  // not before itself
    says(fault(d), "x.json: nodes[1] 'f': field 'args' is 1, and there are 1");
    (d = instance())["nodes"][2]["root"] = 9;
    says(fault(d), "nodes[2] 'c': field 'root' is 9, and there are 3");
    (d = instance())["nodes"][2]["root"] = 0;
    CHECK(fault(d).empty());  // odd, and possible: as many strategies
    (d = instance())["nodes"][1]["strat"] = 2;
    says(fault(d), "nodes[1] 'f': field 'strat'");
    (d = instance())["nodes"][1]["compute"] = -1;
    says(fault(d), "field 'compute' is -1");
    (d = instance())["nodes"][1]["edges"][0]["t"] = 8;
    says(fault(d), "field 'edges[0].t' is no key of redist: 8");
    (d = instance())["nodes"][1]["edges"][0]["out"] = 1;
    says(fault(d), "edges[0].out");
    (d = instance())["nodes"][1]["edges"] = json::array();
    says(fault(d), "field 'edges' has another length than args");
    (d = instance())["nodes"][1].erase("name");
    says(fault(d), "nodes[1]: field 'name' is missing");
    (d = instance())["compute_vectors"][1][1] = "nan";
    says(fault(d), "compute_vectors[1]: field 'entry 1' is no number");
    (d = instance())["compute_vectors"][1] = {1.0};
    says(fault(d), "nodes[1] 'f': field 'compute' has fewer costs");
    (d = instance())["redist"]["7"]["cost"][1][0] = true;
    says(fault(d), "redist['7']: field 'cost[1][0]' is no number");
    (d = instance())["redist"]["7"]["cost"][1] = {1.0};
    says(fault(d), "row 1 has another length than src");
    (d = instance())["redist"]["7"]["src"] = {0};
    (d)["redist"]["7"]["cost"] = {{0}, {3}};
    says(fault(d), "nodes[2] 'c', argument 0: redist has no price from spec 1 to 1");  // inside the group of f and c
    (d = instance())["constraints"]["fixed"][0][1] = {2};
    says(fault(d), "constraints: field 'fixed' is 2, and there are 2");
    (d = instance())["constraints"]["fixed"][0][1] = json::array();
    says(fault(d), "501: node 'p'");
    (d = instance())["constraints"]["same_index"] = {{0, 7}};
    says(fault(d), "field 'same_index' is 7");
    (d = instance())["reference"]["exact"]["solution"] = {0, 0};
    says(fault(d), "reference 'exact': field 'solution' is not one strategy per node");
    (d = instance())["constraints"]["memory"]["ratios"][0] = {1.0};
    says(fault(d), "memory.ratios");
    says(fault(json::object()), "104: x.json");
    says(fault(json::array()), "104: x.json");
}

TEST_CASE("a factor graph comes back from its file bit by bit") {
    for (auto s : testing::all_shapes)
        for (auto c : testing::all_costs)
            for (std::uint64_t seed = 1; seed <= 10; ++seed) {
                testing::dice d(seed);
                auto const g = testing::random_graph(s, c, {}, d);
                auto const text = factor_graph_to_json(g, {"a \"quoted\" name"});
                auto const back = factor_graph_from_json(text);
                CHECK(back.names[0] == "a \"quoted\" name");
                CHECK(factor_graph_to_json(back.graph, back.names) == text);
                REQUIRE(back.graph.variable_count() == g.variable_count());
                REQUIRE(back.graph.edge_count() == g.edge_count());
                std::vector<label> x(g.variable_count(), 0);
                for (auto& l : x) l = d.below(1);
                CHECK(energy(back.graph, x) == energy(g, x));
            }
}

TEST_CASE("faults of a factor graph file name the place") {
    auto const good = json::parse(R"({"format":"cantle-factor-graph","version":1,
        "variables":[{"name":"x","costs":[1.0,0.5]},{"costs":[0.0,2.0,1.0]}],
        "tables":[{"rows":2,"cols":3,"costs":[0.0,1.0,null,1.0,0.0,2.5]}],
        "edges":[{"u":0,"v":1,"table":0},{"u":1,"v":0,"table":0,"transposed":true}]})");
    auto const fails = [](json const& d) -> std::string {
        try {
            factor_graph_from_json(d.dump(), "y.json");
        } catch (error const& e) {
            return e.what();
        }
        return "";
    };
    CHECK(fails(good).empty());
    json d;
    (d = good)["variables"][1]["costs"] = json::array();
    says(fails(d), "y.json: variables[1]: field 'costs' is empty");
    (d = good)["variables"][0]["costs"][1] = nullptr;
    says(fails(d), "variables[0]: field 'costs[1]' is no number");
    (d = good)["tables"][0]["costs"].push_back(1.0);
    says(fails(d), "tables[0]: field 'costs' has 7 entries");
    (d = good)["edges"][1]["transposed"] = false;
    says(fails(d), "edges[1]: field 'table' is 2 x 3, the variables have 3 and 2 labels");
    (d = good)["edges"][0]["v"] = 0;
    says(fails(d), "edges[0]: field 'v' is the same variable");
    (d = good)["edges"][0]["v"] = 2;
    says(fails(d), "edges[0]: field 'v' is no whole number from 0 to 1");
    (d = good)["edges"][0]["table"] = 1;
    says(fails(d), "edges[0]: field 'table'");
    (d = good)["edges"][0]["weight"] = 1;
    says(fails(d), "field 'weight' is unknown");
    (d = good)["version"] = 2;
    says(fails(d), "104: y.json: version 2");
    try {
        factor_graph_from_json(R"({"format":"cantle-factor-graph","version":1,"variables":[{"costs":[NaN]}]})", "nan.json");
        CHECK(false);
    } catch (error const& e) {
        says(e.what(), "nan.json: at byte 68");
    }
}
