// SPDX-License-Identifier: BSL-1.0
// Budgets of plans: what they count is counted again here from the plan alone.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {

sharding_plan plan_on(training_graph const& g, char const* sizes, std::vector<budget> budgets,
                      parameter_storage storage = parameter_storage::free) {
    auto const mesh = device_mesh::parse(sizes);
    plan_options options;
    options.boundary.parameters = storage;
    options.budgets = std::move(budgets);
    static auto const& rules = *new auto(standard_rules());
    return plan(g, mesh, rules, standard_cost_model(mesh, find_cluster("h100")), options);
}

budget named(std::string name, double limit, double factor = 0) { return {std::move(name), limit, factor, {}, {}}; }

double local_bytes(sharding_plan const& p, tensor_meta const& t, plan_layout l) {
    return static_cast<double>(element_count(p.at(l).local_shape(t.sizes)) * element_bytes(t.type));
}

/// Parameters and what is made of parameters alone, by walking back.
bool is_weight(training_graph const& g, vertex v) {
    if (g[v].role == node_role::parameter) return true;
    if (g[v].role != node_role::computation || g[v].operands.empty()) return false;
    return std::all_of(g[v].operands.begin(), g[v].operands.end(), [&](value_ref r) { return is_weight(g, r.node); });
}

/// Bytes of forward values that a backward op reads, in the layout of their relay, else of their producer.
double kept_bytes(training_graph const& g, sharding_plan const& p, bool of_weights) {
    double sum = 0;
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) {
            if (g[v].in_phase != phase::forward || is_weight(g, v) != of_weights || is_sink(g[v].role)) continue;
            bool used = false;
            for (vertex w = 0; w < g.size(); ++w)
                for (auto const& r : g[w].operands)
                    used = used || (r == value_ref{v, o} && g[w].in_phase == phase::backward && g[w].role == node_role::computation);
            if (!used) continue;
            auto at = p.nodes[v].outputs[o];
            for (auto const& r : p.relays)
                if (r.value == value_ref{v, o}) at = r.at;
            bool const own_copy = g[v].role == node_role::computation || at != p.nodes[v].outputs[o];
            if (own_copy) sum += local_bytes(p, g[v].outputs[o], at);
        }
    return sum;
}

double mean_ratio(training_graph const& g, sharding_plan const& p) {
    double sum = 0, count = 0;
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].role == node_role::parameter) {
            auto const& t = g[v].outputs[0];
            sum += local_bytes(p, t, p.nodes[v].outputs[0]) / static_cast<double>(t.size_in_bytes().count);
            count += 1;
        }
    return sum / count;
}

error refused(training_graph const& g, std::vector<budget> budgets) {
    try {
        plan_on(g, "2x4", std::move(budgets));
    } catch (error const& e) {
        CHECK(!e.remedy().empty());
        return e;
    }
    FAIL("no error");
    return {error_code::bad_graph, "", "", ""};
}

double const unlimited = 1e15;

}  // namespace

TEST_CASE("what a budget says is used is what the plan holds, copies of a layer counted") {
    auto const g = residual_mlp(3);
    for (std::string const what : {"8 free", "2x4 free", "8 sharded", "2x4 sharded"}) {
        INFO(what);
        bool const sharded = what.ends_with("sharded");
        auto const storage = sharded ? parameter_storage::fully_sharded : parameter_storage::free;
        auto const* const mesh = what[0] == '8' ? "8" : "2x4";
        auto const p = plan_on(g, mesh,
                               {named("parameters", unlimited), named("optimizer", unlimited, 4), named("saved_activations", unlimited),
                                named("kept_weights", unlimited), named("parameter_ratio", 1)},
                               storage);
        if (sharded) CHECK(p.budgets[3].use > 0);
        REQUIRE(p.budgets.size() == 5);
        CHECK(p.budgets[0].use == static_cast<double>(p.memory.parameters_local));
        CHECK(p.budgets[1].use == 4 * p.budgets[0].use);
        CHECK(p.budgets[2].use == kept_bytes(g, p, false));
        CHECK(p.budgets[3].use == kept_bytes(g, p, true));
        CHECK(p.budgets[4].use == doctest::Approx(mean_ratio(g, p)));
        CHECK(p.budgets[2].use > 0);
        for (auto const& b : p.budgets) CHECK(b.multiplier == 0);
        auto const free = plan_on(g, mesh, {}, storage);
        CHECK(p.objective == doctest::Approx(free.objective).epsilon(1e-12));
        CHECK(free.budgets.empty());
    }
}

TEST_CASE("a tighter budget is kept, never costs less, and its bound is that of the budgeted problem") {
    auto const g = residual_mlp(3);
    for (std::string const name : {"saved_activations", "kept_weights", "parameters", "parameter_ratio"}) {
        INFO(name);
        auto const storage = name == "kept_weights" ? parameter_storage::fully_sharded : parameter_storage::free;
        auto const loose = plan_on(g, "2x4", {named(name, name == "parameter_ratio" ? 1 : unlimited)}, storage);
        double const start = loose.budgets[0].use;
        double last = loose.objective;
        std::size_t binding = 0;
        for (double share : {0.9, 0.7, 0.5, 0.3}) {
            sharding_plan p;
            try {
                p = plan_on(g, "2x4", {named(name, start * share)}, storage);
            } catch (error const& e) {
                CHECK(e.code() == error_code::unsatisfiable_constraint);
                break;
            }
            REQUIRE(p.budgets.size() == 1);
            CHECK(p.budgets[0].use <= start * share * (1 + 1e-8));
            CHECK(p.status == solve_status::optimal);
            CHECK(p.bound <= p.objective);
            CHECK(p.gap() < 1e-8);
            CHECK(p.objective >= last - 1e-6);
            CHECK(p.cost.total() == doctest::Approx(p.objective).epsilon(1e-9));
            binding += p.objective > last + 1e-6;
            last = p.objective;
            auto const counted = name == "parameters"        ? static_cast<double>(p.memory.parameters_local)
                                 : name == "parameter_ratio" ? mean_ratio(g, p)
                                                             : kept_bytes(g, p, name == "kept_weights");
            CHECK(p.budgets[0].use == doctest::Approx(counted));
        }
        MESSAGE(name, ": ", start, " without a limit, ", binding, " of the limits cost something");
        if (name.starts_with("parameter") || name == "kept_weights") CHECK(binding > 0);
    }
}

// The published constraint (iii): the smallest reachable ratio is what fully sharded storage is, and in between lies hybrid sharding.
TEST_CASE("free parameters under the smallest reachable budget cost what fully sharded ones do") {
    auto const g = residual_mlp(2);
    auto const sharded = plan_on(g, "2x4", {}, parameter_storage::fully_sharded);
    CHECK(mean_ratio(g, sharded) == doctest::Approx(1.0 / 8));
    for (auto const& b : {named("parameter_ratio", 1.0 / 8), named("parameters", static_cast<double>(sharded.memory.parameters_local))}) {
        auto const p = plan_on(g, "2x4", {b});
        CHECK(p.objective == doctest::Approx(sharded.objective).epsilon(1e-12));
        CHECK(p.memory.parameters_local == sharded.memory.parameters_local);
    }
    auto const hybrid = plan_on(g, "2x4", {named("parameter_ratio", 1.0 / 4)});
    CHECK(hybrid.objective <= sharded.objective);
    CHECK(mean_ratio(g, hybrid) <= 0.25 + 1e-9);
}

TEST_CASE("sums of one's own: over moves they count the moves of the plan, over strategies its vertices") {
    auto const g = residual_mlp(2);
    // [own_sums]
    // "At most so many changes of layout", and "at most so many cut outputs".
    budget moves{"moves", unlimited, 0, {}, [](move_choice const& m) { return m.from == m.to ? 0.0 : 1.0; }};
    budget cut{"cut outputs", unlimited, 0,
               [](strategy_choice const& c) {
                   double n = 0;
                   for (auto const* l : c.outputs) n += !l->is_replicated();
                   return n;
               },
               {}};
    // [/own_sums]
    auto const p = plan_on(g, "2x4", {moves, cut});
    CHECK(p.budgets[0].use == static_cast<double>(p.moves.size()));
    double outputs = 0;
    for (auto const& n : p.nodes)
        for (auto l : n.outputs) outputs += !p.at(l).is_replicated();
    CHECK(p.budgets[1].use == outputs);
    CHECK(!p.budgets[0].in_bytes);

    moves.limit = std::floor(p.budgets[0].use * 0.75);
    auto const fewer = plan_on(g, "2x4", {moves, cut});
    CHECK(static_cast<double>(fewer.moves.size()) <= moves.limit);
    CHECK(fewer.budgets[0].use == static_cast<double>(fewer.moves.size()));
    CHECK(fewer.objective >= p.objective);
}

TEST_CASE("budgets that nobody knows, doubled ones and limits that are none are refused by name") {
    auto const g = residual_mlp(1);
    auto const code_and_subject = [&](std::vector<budget> budgets) {
        auto const e = refused(g, std::move(budgets));
        return std::to_string(e.number()) + " " + e.subject();
    };
    double const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(code_and_subject({named("paramters", 1)}) == "701 budget 'paramters'");
    CHECK(code_and_subject({named("parameters", 1e12), named("parameters", 1e12)}) == "701 budget 'parameters'");
    CHECK(code_and_subject({named("parameters", -1)}) == "701 budget 'parameters'");
    CHECK(code_and_subject({named("parameters", nan)}) == "701 budget 'parameters'");
    CHECK(code_and_subject({named("optimizer", 1e12, -2)}) == "701 budget 'optimizer'");
    CHECK(code_and_subject({{"parameters", 1, 0, [](strategy_choice const&) { return 0.0; }, {}}}) == "701 budget 'parameters'");
    CHECK(code_and_subject({{"mine", 1, 0, [nan](strategy_choice const&) { return nan; }, {}}}) == "105 budget 'mine'");
}

TEST_CASE("a budget that no plan keeps is an error that names the least that one reaches, and that is reachable") {
    auto const g = residual_mlp(1, 512);  // two weights of 2 MiB, on 8 GPUs at least 512 KiB
    auto const e = refused(g, {named("parameters", 1000)});
    CHECK(e.code() == error_code::unsatisfiable_constraint);
    CHECK(e.subject() == "budget 'parameters' of 1000 bytes");
    CHECK(e.problem() == "no plan keeps it; the least that one can reach is 524288 bytes");
    CHECK(plan_on(g, "2x4", {named("parameters", 524288)}).memory.parameters_local == 524288);
    CHECK(refused(g, {named("parameters", 524287)}).code() == error_code::unsatisfiable_constraint);
}

TEST_CASE("budgets are part of the options' hash, of the constraints and of the plan file, which is as before without them") {
    auto const g = residual_mlp(2);
    auto const none = plan_on(g, "2x4", {}), some = plan_on(g, "2x4", {named("parameters", 3e6)}),
               other = plan_on(g, "2x4", {named("parameters", 3000001)});
    CHECK(none.made_from.options != some.made_from.options);
    CHECK(some.made_from.options != other.made_from.options);
    CHECK(std::find(some.constraints.begin(), some.constraints.end(), "budget: parameters at most 3000000 bytes (3.00 MB) per GPU") !=
          some.constraints.end());
    CHECK(plan_to_json(none).find("budgets") == std::string::npos);
    auto const text = plan_to_json(some);
    auto const back = plan_from_json(text, "plan");
    CHECK(back.budgets == some.budgets);
    CHECK(plan_to_json(back) == text);
    CHECK(plan_to_json(plan_on(g, "2x4", {named("parameters", 3e6)})) == text);
}
