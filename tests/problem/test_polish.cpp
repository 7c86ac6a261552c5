// SPDX-License-Identifier: BSL-1.0
// Clustered first, then polished: copies decide for themselves, and objective and bound are of that problem.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "small_rules.hpp"

#include <cantle/plan/plan_json.hpp>
#include <cantle/problem/lift.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cantle;
using cantle::test::small_op;
using cantle::test::small_plan;

namespace {

//  x -> layers.0 make l0 -> want_sum a -> out.a       a = S0 wants l0 Partial
//  x -> layers.1 make l1 -> keep b -> out.b           b = S0 takes l1 cut, or reduces and scatters what is Partial
//  ... (more layers like 1). Together all l are Partial and all but the first are reduced; alone only the first is.
training_graph copies(int layers) {
    graph_builder b;
    auto const x = b.input("x", {8});
    for (int i = 0; i < layers; ++i) {
        auto const module = "layers." + std::to_string(i);
        auto const l = small_op(b.in_module(module), "make", {x}, module + ".l");
        b.in_module("");
        b.output(small_op(b, i == 0 ? "want_sum" : "keep", {l}, "y" + std::to_string(i)), "out" + std::to_string(i));
    }
    return b.build();
}
plan_options pinned(int layers) {
    plan_options o;
    o.boundary.inputs = "R";
    for (int i = 0; i < layers; ++i) o.boundary.pins.push_back({"y" + std::to_string(i), "S0"});
    return o;
}
bool starts(std::string const& text, std::string const& with) { return text.rfind(with, 0) == 0; }

}  // namespace

TEST_CASE("E4: a polished plan carries objective and bound of the unclustered problem, a clustered one those of the clustered") {
    auto const g = copies(3);
    auto options = pinned(3);
    auto const clustered = small_plan(g, options);
    CHECK(starts(clustered.bounded_problem, "clustered: 2 of "));
    CHECK(clustered.gap() == 0);
    options.polish = true;
    planning_statistics stats;
    auto const polished = small_plan(g, options, &stats);
    options.polish = options.clustering = false;
    auto const free = small_plan(g, options);
    CHECK(polished.objective == free.objective);
    CHECK(polished.objective < clustered.bound);  // so the clustered bound beside it would be a negative gap
    CHECK(polished.bound <= polished.objective);
    CHECK(polished.gap() >= 0);
    CHECK(polished.status == solve_status::optimal);
    CHECK(starts(polished.bounded_problem, "unclustered: "));
    CHECK(polished.cost.total() == doctest::Approx(polished.objective));
    CHECK(stats.polish.ran);
    CHECK(stats.polish.clustered_objective == clustered.objective);
    CHECK(stats.polish.clustered_bound == clustered.bound);
    CHECK(stats.polish.groups > stats.groups);
    CHECK(polished.made_from.options != clustered.made_from.options);
    auto const read = plan_from_json(plan_to_json(polished), "polished");
    CHECK(read.bound == polished.bound);
    CHECK(read.bounded_problem == polished.bounded_problem);
    CHECK(plan_to_json(small_plan(g, [] { auto o = pinned(3); o.polish = true; return o; }())) == plan_to_json(polished));
}

TEST_CASE("polishing beyond its limit, or after the clock, is left out: the plan is the clustered one and says why") {
    auto const g = copies(3);
    auto options = pinned(3);
    auto const clustered = small_plan(g, options);
    options.polish = true;
    options.max_polish_entries = 4;
    planning_statistics stats;
    auto const left = small_plan(g, options, &stats);
    CHECK(left.objective == clustered.objective);
    CHECK(left.bound == clustered.bound);
    CHECK_FALSE(stats.polish.ran);
    CHECK(starts(left.bounded_problem, "clustered: "));
    CHECK(left.bounded_problem.find("not polished: the unclustered problem has ") != std::string::npos);
    options.max_polish_entries = -1;
    CHECK_THROWS_AS(small_plan(g, options), error);
    auto one = pinned(1);  // nothing shares a decision
    one.polish = true;
    auto const alone = small_plan(copies(1), one);
    CHECK(starts(alone.bounded_problem, "unclustered: "));
    CHECK(alone.bounded_problem.find("no vertex shares a decision") != std::string::npos);
}

TEST_CASE("a lifted labelling costs what the clustered one costs, with other numbers for the same layouts") {
    auto const g = copies(4);
    auto const mesh = device_mesh::parse("2x2");
    auto const rules = cantle::test::small_rules();
    problem_options options;
    options.boundary.inputs = "R,R";
    auto const together = build_problem(g, mesh, rules, cantle::test::small_prices{}, options);
    options.clustering = false;
    auto const alone = build_problem(g, mesh, rules, cantle::test::small_prices{}, options);
    CHECK(alone.grouping.groups.size() > together.grouping.groups.size());
    double entries = 0;
    for (auto const& e : alone.factors.edges()) entries += static_cast<double>(alone.factors.table(e.table).values.size());
    CHECK(unclustered_entries(together) >= entries);
    std::uint64_t state = 1;
    std::size_t finite = 0;
    for (int draw = 0; draw < 200; ++draw) {
        std::vector<mrf::label> labels;
        for (auto const& group : together.grouping.groups) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            labels.push_back(static_cast<mrf::label>((state >> 33) % group.label_count()));
        }
        auto const lifted = labels_of(alone, decisions_of(together, labels));
        REQUIRE(lifted);
        double const e = mrf::energy(together.factors, labels), f = mrf::energy(alone.factors, *lifted);
        CHECK((e == f || f == doctest::Approx(e)));
        finite += e != mrf::forbidden;
        CHECK(decisions_of(alone, *lifted) == decisions_of(together, labels));
    }
    CHECK(finite > 0);
}

TEST_CASE("where the search ends early, the clustered labelling stays if it is better, and the gap is that of the unclustered bound") {
    mrf::factor_graph g;
    auto const a = g.add_variable({0.0, 3.0}), b = g.add_variable({0.0, 3.0});
    g.add_edge(a, b, mrf::cost_table{2, 2, {10, 9, 9, 0}});
    mrf::solve_result found;
    found.labels = {0, 0};
    found.energy = 10;
    found.lower_bound = 5;
    found.status = solve_status::sweep_limit;
    detail::offer(found, g, {1, 0}, 0.0);  // 12: worse
    CHECK(found.energy == 10);
    detail::offer(found, g, {1, 1}, 0.1);
    CHECK(found.energy == 6);
    CHECK(found.labels == std::vector<mrf::label>{1, 1});
    CHECK(found.lower_bound == 5);
    CHECK(found.status == solve_status::sweep_limit);
    detail::offer(found, g, {1, 1}, 0.5);  // nothing better, nothing changes
    CHECK(found.status == solve_status::sweep_limit);
    found.energy = 10;
    detail::offer(found, g, {1, 1}, 0.5);
    CHECK(found.status == solve_status::within_gap);
}
