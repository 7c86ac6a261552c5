// SPDX-License-Identifier: BSL-1.0
// Screening: plans without tables of all labels are the plans with them. The graph is a residual MLP of a few layers; max_table_entries = 0
// screens what would otherwise be solved from tables, so that both ways can be compared.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <algorithm>
#include <cmath>
#include <stop_token>
#include <string>
#include <vector>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {

struct asked {
    device_mesh mesh;
    standard_cost_model cost;
    explicit asked(char const* sizes) : mesh(device_mesh::parse(sizes)), cost(mesh, find_cluster("h100")) {}
};

rule_registry const& all_rules() {
    static rule_registry const r = standard_rules();
    return r;
}

sharding_plan plan_on(training_graph const& g, char const* sizes, plan_options const& options, planning_statistics* stats = nullptr,
                      control const& limits = {}) {
    asked const a(sizes);
    return plan(g, a.mesh, all_rules(), a.cost, options, limits, stats);
}

plan_options screened() {
    plan_options o;
    o.max_table_entries = 0;
    return o;
}

/// Many labels for few tables: small enough problems to price every pair.
std::vector<char const*> const meshes{"4x8", "2x2x2", "2x4x2", "4x1x2"};

}  // namespace

TEST_CASE("a lattice potential has the prices of the tables, for every pair of labels") {
    auto const g = residual_mlp(2);
    for (char const* sizes : meshes)
        for (bool clustering : {true, false}) {
            if (!clustering && std::string(sizes) == "2x4x2") continue;
            INFO(sizes);
            asked const a(sizes);
            problem_options options;
            options.clustering = clustering;
            auto const formed = form_problem(g, a.mesh, all_rules(), a.cost, options);
            detail::lattice_problem const lattice(formed);
            REQUIRE(lattice.feasible());
            double const unit = std::ldexp(1.0, -20);
            auto const whole = lattice.whole(unit);
            auto priced = formed;
            price_problem(priced, g);
            auto const& f = priced.factors;
            REQUIRE(whole.variable_count() == f.variable_count());
            // Sums over the edges of a pair of groups, whole and as priced.
            for (auto const& e : f.edges()) {
                std::size_t wrong = 0;
                for (mrf::label r = 0; r < f.label_count(e.u); ++r)
                    for (mrf::label c = 0; c < f.label_count(e.v); ++c) {
                        double sum = 0;
                        std::size_t terms = 0;
                        for (auto id : whole.incident(e.u)) {
                            auto const& w = whole.edge(id);
                            if (w.u == e.u && w.v == e.v) sum += w.potential(r, c), ++terms;
                            if (w.v == e.u && w.u == e.v) sum += w.potential(c, r), ++terms;
                        }
                        double const price = f.pair_cost(e, r, c);
                        if (price == mrf::forbidden || sum == mrf::forbidden) {
                            wrong += price != sum;
                            continue;
                        }
                        // Rounded down at every step of a path, at most a few steps per term.
                        wrong += !(sum * unit <= price * (1 + 1e-12));
                        wrong += !(sum * unit >= price - static_cast<double>(terms) * 8 * unit - 1e-9 * price);
                        wrong += terms == 0;
                    }
                CHECK(wrong == 0);
            }
            for (std::uint32_t v = 0; v < f.variable_count(); ++v) {
                REQUIRE(lattice.alive()[v].size() == f.label_count(mrf::variable_id(v)));
                for (mrf::label l = 0; l < f.label_count(mrf::variable_id(v)); ++l)
                    CHECK(std::abs(whole.costs(mrf::variable_id(v))[l] * unit - f.costs(mrf::variable_id(v))[l]) <=
                          8 * unit * (1 + static_cast<double>(formed.grouping.groups[v].members.size())));
            }
        }
}

TEST_CASE("products of a lattice potential are those of its entries") {
    auto const g = residual_mlp(2);
    asked const a("2x2x2");
    auto const formed = form_problem(g, a.mesh, all_rules(), a.cost);
    auto const whole = detail::lattice_problem(formed).whole(std::ldexp(1.0, -10));
    std::size_t pairs = 0;
    for (auto const& e : whole.edges()) {
        auto const& p = e.potential;
        if (p.rows() * p.cols() > 4000) continue;
        pairs += p.rows() * p.cols();
        std::vector<double> rows(p.rows()), cols(p.cols()), over_rows(p.cols(), mrf::forbidden), over_cols(p.rows(), mrf::forbidden);
        for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<double>(r * 7919 % 1000);
        for (std::size_t c = 0; c < cols.size(); ++c) cols[c] = static_cast<double>(c * 104729 % 1000);
        for (mrf::label r = 0; r < p.rows(); ++r)
            for (mrf::label c = 0; c < p.cols(); ++c) {
                over_rows[c] = std::min(over_rows[c], rows[r] + p(r, c));
                over_cols[r] = std::min(over_cols[r], cols[c] + p(r, c));
            }
        std::vector<double> out(p.cols());
        mrf::min_plus_over_rows(p, rows.data(), out.data());
        CHECK(out == over_rows);
        out.resize(p.rows());
        mrf::min_plus_over_cols(p, cols.data(), out.data());
        CHECK(out == over_cols);
        std::vector<double> row(p.cols(), 1.0), col(p.rows(), 1.0);
        mrf::add_row(p, static_cast<mrf::label>(p.rows() - 1), row.data());
        mrf::add_col(p, 0, col.data());
        for (mrf::label c = 0; c < p.cols(); ++c) CHECK(row[c] == 1 + p(static_cast<mrf::label>(p.rows() - 1), c));
        for (mrf::label r = 0; r < p.rows(); ++r) CHECK(col[r] == 1 + p(r, 0));
    }
    CHECK(pairs > 1000);
}

TEST_CASE("a screened plan costs what the plan from tables costs, and its bound is of all labels") {
    for (int layers : {1, 3})
        for (char const* sizes : meshes) {
            INFO(sizes);
            auto const g = residual_mlp(layers);
            auto const tables = plan_on(g, sizes, {});
            planning_statistics stats;
            auto const p = plan_on(g, sizes, screened(), &stats);
            CHECK(stats.screening.ran);
            CHECK(p.objective == doctest::Approx(tables.objective).epsilon(1e-9));
            CHECK(p.status == solve_status::optimal);
            CHECK(p.bound <= p.objective);
            CHECK(p.gap() < 1e-7);
            CHECK(p.cost.total() == doctest::Approx(p.objective).epsilon(1e-9));
            CHECK(p.bounded_problem == tables.bounded_problem);
        }
}

TEST_CASE("what screening keeps holds an optimal plan, and its bound never exceeds the optimum") {
    auto const g = residual_mlp(2);
    for (char const* sizes : {"2x4", "2x2x2"})
        for (double entries : {0.0, 500.0, 20000.0}) {
            asked const a(sizes);
            auto p = form_problem(g, a.mesh, all_rules(), a.cost);
            auto all = p;
            price_problem(all, g);
            auto const best = mrf::solve(all.factors);
            screening_options how;
            how.table_entries = entries;
            how.active_labels = 2;
            auto const s = screen_labels(p, g, how);
            CHECK(s.finished);
            CHECK(s.lower_bound <= best.energy * (1 + 1e-12));
            CHECK(s.energy >= best.energy * (1 - 1e-9));
            p.grouping = restricted(p.grouping, s.kept);
            price_problem(p, g);
            CHECK(mrf::solve(p.factors).energy == doctest::Approx(best.energy).epsilon(1e-9));
        }
}

TEST_CASE("the plan does not depend on the number of threads, and screening is deterministic") {
    auto const g = residual_mlp(3);
    auto options = screened();
    std::vector<double> objectives;
    for (unsigned threads : {1u, 2u, 3u, 1u}) {
        options.threads = threads;
        planning_statistics stats;
        auto const p = plan_on(g, "2x2x4", options, &stats);
        objectives.push_back(p.objective);
        objectives.push_back(p.bound);
        objectives.push_back(static_cast<double>(stats.screening.sweeps));
        objectives.push_back(static_cast<double>(stats.screening.labels_left));
    }
    for (std::size_t i = 4; i < objectives.size(); ++i) CHECK(objectives[i] == objectives[i % 4]);
}

TEST_CASE("pins that cannot hold together are refused in the same words, screened or not") {
    auto const g = residual_mlp(1);
    auto const refusal = [&](plan_options o) -> std::string {
        o.boundary.pins = {{"h0", "S0,R,P"}};
        try {
            plan_on(g, "2x2x2", o);
        } catch (error const& e) {
            return e.what();
        }
        return "no error";
    };
    auto const a = refusal({}), b = refusal(screened());
    CHECK(a == b);
    CHECK(a != "no error");
}

TEST_CASE("a plan that limits cut short says so, has a bound, and is whole") {
    auto const g = residual_mlp(2);
    auto options = screened();
    options.max_sweeps = 1;
    auto const cut = plan_on(g, "2x2x4", options);
    auto const full = plan_on(g, "2x2x4", {});
    CHECK(cut.bound <= full.objective * (1 + 1e-12));
    CHECK(cut.objective >= full.objective * (1 - 1e-9));
    CHECK(cut.cost.total() == doctest::Approx(cut.objective).epsilon(1e-9));
    options = screened();
    options.relative_gap = 0.9;
    auto const rough = plan_on(g, "2x2x4", options);
    CHECK(rough.gap() <= 0.9);
    std::stop_source source;
    source.request_stop();
    control limits;
    limits.stop = source.get_token();
    try {
        auto const stopped = plan_on(g, "2x2x4", screened(), nullptr, limits);
        CHECK(stopped.bound <= full.objective * (1 + 1e-12));
        CHECK(stopped.objective >= full.objective * (1 - 1e-9));
    } catch (error const& e) {
        CHECK(e.code() == error_code::unsatisfiable_constraint);  // nothing found in no time
    }
}

TEST_CASE("a seed ball of all axes is the whole problem; a smaller one gives a plan that is no better and says what its bound is of") {
    auto const g = residual_mlp(3);
    auto const whole = plan_on(g, "2x2x2", {});
    double last = mrf::forbidden;
    for (std::size_t r : {0, 1, 2, 3}) {
        plan_options o;
        o.seed_radius = r;
        auto const p = plan_on(g, "2x2x2", o);
        CHECK(p.objective <= last * (1 + 1e-12));
        CHECK(p.objective >= whole.objective * (1 - 1e-9));
        CHECK(p.bounded_problem.find("within " + std::to_string(r) + (r == 1 ? " axis" : " axes")) != std::string::npos);
        CHECK(!(p.made_from.options == whole.made_from.options));
        last = p.objective;
    }
    CHECK(last == doctest::Approx(whole.objective).epsilon(1e-9));
}

TEST_CASE("a ball holds the seeds: on one axis radius 0 is the optimum") {
    auto const g = residual_mlp(2);
    plan_options o;
    o.seed_radius = 0;
    CHECK(plan_on(g, "8", o).objective == doctest::Approx(plan_on(g, "8", {}).objective).epsilon(1e-9));
}
