// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: on four and five mesh axes the tables between all labels of all groups have 10^8 entries and more. Nearly all of these labels
// are in no plan that is worth anything; but which?
// Idea: prove it without a table. TRW-S (mrf/trws.hpp) runs on all labels with lattice potentials (lattice_potential.hpp) and lifts the
// bound; between sweeps the labels that its messages like best form a small problem, which is priced in tables and solved exactly: a plan,
// often the best one. A label whose bound reaches the cost of the best plan so far is in no better plan and goes (reduced-cost fixing).
// As soon as the tables of what is left are small, the screen has done its work: the caller prices and solves the rest exactly.
// Invariants: a plan cheaper than `energy` has kept labels only, so the optimum is the cheaper of `energy` and the optimum of what is kept;
// `lower_bound` holds for all labels. Both in real numbers: prices are rounded down to whole units (quantise.hpp, 1.), and a label goes
// when its whole-number bound times the unit is at least `energy`.
// Complexity: two distance transforms per edge and sweep. Deterministic.
// References: reduced-cost fixing: G. Nemhauser, L. Wolsey, "Integer and Combinatorial Optimization", 1988, II.5.2; small problems of
// promising labels: C. Barnhart et al., "Branch-and-price: column generation for solving huge integer programs", Operations Research 46
// (1998) 316-329. What extends their duals to all labels there does not help here (docs/adr/0007).
#include <cantle/base/control.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/mrf/trws.hpp>
#include <cantle/problem/build_problem.hpp>
#include <cantle/problem/label_subset.hpp>
#include <cantle/problem/lattice_problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace cantle {

struct screening_options {
    double table_entries = 2097152.0;   ///< label pairs of the labels left at which the screen ends, 2^21
    double most_entries = 67108864.0;   ///< where the bound no longer rises: up to here the tables do the rest; 2^26
    std::size_t max_sweeps = 400;
    double relative_gap = 0;            ///< (energy - bound) / energy at which to stop
    std::size_t active_labels = 24;     ///< of a group in a small problem
    unsigned threads = 1;               ///< of the sweeps; the result does not depend on it
    mrf::solve_options solver;
};

struct screening_result {
    label_subset kept;                     ///< of the groups as they were given
    std::vector<std::uint32_t> decisions;  ///< of the best plan known, per group (label_subset.hpp); empty without one
    double energy = mrf::forbidden;        ///< of that plan, microseconds
    double lower_bound = -mrf::forbidden;  ///< of all plans
    bool finished = false;                 ///< `kept` is what the invariant says, and its tables can be made; else limits ran out
    bool stopped = false;                  ///< by deadline or stop token
    std::size_t sweeps = 0, small_problems = 0;
};

/// Entries of the tables of all moves, equal tables counted once: what pricing the problem as it is would hold.
inline double table_entries(planning_problem const& p) {
    detail::edge_columns columns(p);
    std::set<detail::edge_columns::key> keys;
    for (auto const& e : p.edges)
        if (p.grouping.group_of[e.from] != p.grouping.group_of[e.to]) keys.insert(columns.of(e));
    double sum = 0;
    for (auto const& k : keys)
        sum += static_cast<double>(columns.layouts(k.from).size()) * static_cast<double>(columns.layouts(k.to).size());
    return sum;
}

namespace detail {

class label_screen {
public:
    label_screen(planning_problem& p, training_graph const& g, screening_options const& options, control const& limits)
        : p_(p), g_(g), all_(p.grouping), options_(options), limits_(limits), labels_of_group_(options.active_labels) {}

    /// `first`: labels of a first small problem; empty for none.
    screening_result run(label_subset const& first) {
        if (!first.empty()) try_labels(first);
        lattice_problem lattice(p_);
        if (!lattice.feasible()) return finish(lattice.alive());
        double unit = std::ldexp(1.0, exponent_of(result_.decisions.empty() ? lattice.scale() : result_.energy) - 40);
        // A price far above everything else can take messages out of the exact range: then on a coarser grid.
        for (int attempt = 0; attempt < 8; ++attempt, unit *= 16) {
            auto const in_range = sweep(lattice, unit);
            if (in_range) break;
        }
        if (result_.kept.empty()) return finish(lattice.alive());
        return finish(std::move(result_.kept));
    }

private:
    planning_problem& p_;
    training_graph const& g_;
    grouping const all_;
    screening_options const& options_;
    control const& limits_;
    screening_result result_;
    std::size_t labels_of_group_;  // of a small problem
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends_;  // groups that something moves between

    /// Label pairs of all groups that something moves between.
    double pairs_of(label_subset const& kept) {
        if (ends_.empty()) {
            std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
            for (auto const& e : p_.edges) ends.emplace(std::minmax(all_.group_of[e.from], all_.group_of[e.to]));
            ends_.assign(ends.begin(), ends.end());
        }
        double sum = 0;
        for (auto const& [a, b] : ends_)
            if (a != b) sum += static_cast<double>(kept[a].size()) * static_cast<double>(kept[b].size());
        return sum;
    }
    static int exponent_of(double x) {
        int e = 0;
        std::frexp(std::max(x, 1e-300), &e);
        return e;
    }

    screening_result finish(label_subset kept) {
        // The best plan stays among the labels, so that what is left always has one.
        for (std::size_t i = 0; i < kept.size() && !result_.decisions.empty(); ++i) {
            auto const l = label_of(all_.groups[i], result_.decisions[i]);
            auto const at = std::lower_bound(kept[i].begin(), kept[i].end(), l);
            if (at == kept[i].end() || *at != l) kept[i].insert(at, l);
        }
        result_.kept = std::move(kept);
        return std::move(result_);
    }

    /// Solves the small problem of these labels; true when it gives a better plan.
    bool try_labels(label_subset const& labels) {
        ++result_.small_problems;
        p_.grouping = restricted(all_, labels);
        bool better = false;
        try {
            price_problem(p_, g_);
            auto const solved = mrf::solve(p_.factors, options_.solver, limits_);
            if (!solved.labels.empty() && solved.energy < result_.energy) {
                result_.energy = solved.energy;
                result_.decisions = decisions_of(p_.grouping, solved.labels);
                better = true;
            }
        } catch (error const& e) {
            if (e.code() != error_code::unsatisfiable_constraint) throw;  // these labels have no plan, others may
        }
        p_.grouping = all_;
        p_.factors = {};
        return better;
    }

    /// Labels of least reduced cost, and those of the best plan.
    label_subset active(mrf::basic_trws<lattice_potential> const& messages, std::span<char const> out, label_subset const& alive) const {
        label_subset some(alive.size());
        std::vector<double> cost;
        std::vector<std::uint32_t> order;
        for (std::uint32_t i = 0; i < some.size(); ++i) {
            auto const at = messages.offset(mrf::variable_id(i));
            cost.resize(alive[i].size());
            messages.reparametrised(mrf::variable_id(i), cost);
            order.clear();
            for (std::uint32_t j = 0; j < cost.size(); ++j)
                if (!out[at + j]) order.push_back(j);
            std::size_t const n = std::min(order.size(), labels_of_group_);
            std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                              [&](auto a, auto b) { return std::pair{cost[a], a} < std::pair{cost[b], b}; });
            for (std::size_t k = 0; k < n; ++k) some[i].push_back(alive[i][order[k]]);
            if (!result_.decisions.empty()) some[i].push_back(label_of(all_.groups[i], result_.decisions[i]));
            std::sort(some[i].begin(), some[i].end());
            some[i].erase(std::unique(some[i].begin(), some[i].end()), some[i].end());
        }
        return some;
    }

    /// False when a message left the exact range.
    bool sweep(lattice_problem const& lattice, double unit) {
        auto const& alive = lattice.alive();
        mrf::basic_trws<lattice_potential> messages(lattice.whole(unit));
        messages.decode(false);
        messages.threads(options_.threads);
        std::vector<char> out(messages.label_total(), 0);
        std::size_t next_try = result_.decisions.empty() ? 2 : 4;
        double bound_before = result_.lower_bound;
        double bound_then = result_.lower_bound, energy_then = result_.energy;
        auto const left = [&] {
            label_subset kept(alive.size());
            for (std::uint32_t i = 0; i < kept.size(); ++i)
                for (std::uint32_t j = 0; j < alive[i].size(); ++j)
                    if (!out[messages.offset(mrf::variable_id(i)) + j]) kept[i].push_back(alive[i][j]);
            return kept;
        };
        for (std::size_t i = 1; result_.sweeps < options_.max_sweeps; ++i) {
            if (result_.sweeps > 0 && limits_.expired()) {
                result_.stopped = true;
                break;
            }
            ++result_.sweeps;
            bool good = messages.forward();
            double const best = result_.decisions.empty() ? mrf::forbidden : std::ceil(result_.energy / unit);
            good = good && (best == mrf::forbidden ? messages.backward() : messages.backward_and_fix(best, out));
            result_.lower_bound = std::max(result_.lower_bound, std::min(messages.bound() * unit, result_.energy));
            limits_.report({"screen", result_.sweeps, options_.max_sweeps, result_.energy, result_.lower_bound});
            if (!good) return false;
            result_.kept = left();
            if (std::any_of(result_.kept.begin(), result_.kept.end(), [](auto const& k) { return k.empty(); }) ||
                pairs_of(result_.kept) <= options_.table_entries) {
                result_.finished = true;
                break;
            }
            if (i % 10 == 0) {
                // Where ten sweeps close a hundredth of the gap only, exact search on tables is the better tool.
                bool const creeps = result_.lower_bound - bound_then <= 0.01 * (result_.energy - result_.lower_bound);
                if (creeps && result_.energy == energy_then && !result_.decisions.empty() && !try_labels(active(messages, out, alive))) {
                    result_.finished = pairs_of(result_.kept) <= options_.most_entries;
                    break;
                }
                bound_then = result_.lower_bound;
                energy_then = result_.energy;
            }
            if (result_.energy - result_.lower_bound <= options_.relative_gap * std::abs(result_.energy)) break;
            // Where a sweep closes little of the gap, it may be the plan that is not good enough.
            bool const slow = result_.lower_bound - bound_before <= 0.05 * (result_.energy - result_.lower_bound);
            bound_before = result_.lower_bound;
            if (i >= next_try && slow) {
                try_labels(active(messages, out, alive));
                next_try = 2 * i;
                if (result_.decisions.empty()) labels_of_group_ *= 4;  // few labels can have no plan where more have one
            }
        }
        return true;
    }
};

}  // namespace detail

/// Takes out labels of p's groups that are in no better plan than the best one found. p keeps all its labels; its factor graph is lost.
/// Precondition: form_problem made p of g. Throws out of pricing (bad_cost).
inline screening_result screen_labels(planning_problem& p, training_graph const& g, screening_options const& options = {},
                                      control const& limits = {}, label_subset const& first = {}) {
    return detail::label_screen(p, g, options, limits).run(first);
}

}  // namespace cantle
