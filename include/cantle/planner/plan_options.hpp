// SPDX-License-Identifier: BSL-1.0
#pragma once
// What plan() is asked for, and what it tells of its run beside the plan.
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/stage_clock.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/planner/polish.hpp>
#include <cantle/problem/boundary.hpp>
#include <cantle/problem/budget.hpp>
#include <cantle/problem/constraint_texts.hpp>
#include <cantle/rules/fallback.hpp>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cantle {

struct plan_options {
    cantle::boundary boundary;         ///< what is demanded of inputs, outputs and parameters
    bool clustering = true;            ///< copies of a layer share one decision; the bound then is of that problem (case E4)
    double tie_break = 1.0;            ///< microseconds per flow edge whose layouts differ
    double relative_gap = 0.0;         ///< stop when (objective - bound) / objective is at most this; 0: go on to the optimum
    std::size_t max_sweeps = 2000;     ///< of TRW-S
    bool uneven = false;               ///< shards may be nested ceil chunks where an axis does not divide a dim (docs/uneven.md)
    rule_fallback fallback = rule_fallback::none;  ///< of ops that no rule covers: an error, or whole on every rank
    std::vector<budget> budgets = {};  ///< sums that must not exceed a limit: bytes of parameters and others (docs/budgets.md)
    /// After the clustered search let every copy decide for itself, with a bound of that problem (planner/polish.hpp). Off by default: it
    /// takes up to 20 times the search, saved 0 to 0.04 % of the models measured, and copies of a layer then lie differently.
    bool polish = false;
    double max_polish_entries = 268435456.0;  ///< table entries of the unclustered problem up to which it is polished, 2^28: some seconds
    /// Label pairs of all tables together up to which the problem is solved from tables; beyond, labels are screened first
    /// (problem/screening.hpp). The plan is as good, and certified, either way.
    double max_table_entries = 33554432.0;
    unsigned threads = 0;              ///< of pricing and screening; 0: as many as the machine has. The plan does not depend on it.
    /// As published: only strategies that differ from the optimum of each axis alone on at most so many axes. The bound then is of that
    /// problem. Not set: all strategies.
    std::optional<std::size_t> seed_radius;
};

/// What a run did, beside the plan: for reports and benches.
struct planning_statistics {
    stage_clock clock;                 ///< rules (with computation prices), costs (redistribution), build, solve, extract
    std::size_t vertices = 0, op_classes = 0, strategies = 0, tensor_classes = 0, lattice_states = 0;
    std::size_t relays = 0, copies = 0, groups = 0, group_edges = 0, labels = 0;
    mrf::solve_stats solver;           ///< of the clustered problem, where plan_options::clustering holds
    polish_statistics polish;
    struct {
        bool ran = false;
        std::size_t sweeps = 0, small_problems = 0, labels = 0, labels_left = 0;
    } screening;                       ///< where the tables of all labels would have been too large
};

namespace detail {

inline std::string seed_ball_text(std::size_t radius) {
    return "within " + std::to_string(radius) + (radius == 1 ? " axis" : " axes") + " of the optimum of each axis alone";
}

inline std::vector<std::string> constraint_texts(device_mesh const& mesh, plan_options const& o) {
    auto const& b = o.boundary;
    std::vector<std::string> list{inputs_text(b, mesh), outputs_text(b), "loss: Replicate", parameters_text(b), pairing_text};
    for (auto const& p : b.pins) list.push_back("pin: " + pin_text(p));
    if (o.seed_radius)
        list.push_back("strategies: " + seed_ball_text(*o.seed_radius));
    if (o.uneven) list.push_back("shards: uneven ones allowed");
    for (auto const& limit : o.budgets) list.push_back(budget_text(limit));
    return list;
}

inline digest options_hash(plan_options const& o, std::vector<std::string> const& constraints) {
    stable_hasher h;
    h.add("cantle-options-1").add(o.clustering).add(o.tie_break).add(o.relative_gap).add(o.max_sweeps).add(constraints);
    if (o.polish) h.add("polish").add(o.max_polish_entries);
    if (o.uneven || o.fallback != rule_fallback::none) h.add(o.uneven).add(o.fallback);
    for (auto const& b : o.budgets) h.add("budget").add(b.name).add(b.limit).add(b.factor);
    return h.finish();
}

/// Throws bad_option naming the option.
inline void check_options(plan_options const& o) {
    auto const check = [](double value, char const* name) {
        if (!std::isfinite(value) || value < 0)
            throw error(error_code::bad_option, "plan option " + std::string(name), "it is " + std::to_string(value),
                        "give a finite number of at least 0");
    };
    check(o.tie_break, "tie_break");
    check(o.relative_gap, "relative_gap");
    check(o.max_polish_entries, "max_polish_entries");
    check(o.max_table_entries, "max_table_entries");
    check_budgets(o.budgets);
}

}  // namespace detail
}  // namespace cantle
