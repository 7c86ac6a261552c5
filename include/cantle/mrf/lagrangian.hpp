// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: minimise the energy of a factor graph under linear budgets (budget.hpp).
// Idea: Lagrangian relaxation [1]. With multipliers lambda >= 0 the budgets move into the costs, and what is left is a plain factor graph:
//      L(lambda) = min_x E(x) + sum_k lambda_k (use_k(x) - limit_k)  <=  min { E(x) : use(x) <= limit }
// solve.hpp gives a bound of L at any lambda, proven or not, so every lambda gives a valid bound. Cutting planes (cutting_planes.hpp) find
// the best lambda; the labellings met on the way are repaired, mixed and improved inside the budgets (feasible_search.hpp). What remains is
// the duality gap. Branch and bound closes it: the labels of one variable are split by their weight where the optimal mixture of labellings
// disagrees most about it, and both halves start from the multipliers of the whole. Before the proof the same search runs over the labels
// that good labellings use, which is small, for a good labelling.
// Infeasible: a budget whose least use, by its bound, is above its limit; or several together, when a sum of uses with multipliers is. The
// search over halves proves the rest.
// Invariants: lower_bound <= min <= energy, rounding included: penalised costs are off by a stated amount, which the bound gives up.
// `labels` keep every budget by the exact sum of weights. Limits are counts: deterministic.
// Complexity: a solve of the penalised graph per evaluation; the number of halves is exponential in the worst case.
// [1] M. Held, R. Karp, "The traveling-salesman problem and minimum spanning trees", Operations Research 18 (1970); A. Geoffrion,
// "Lagrangean relaxation for integer programming", Mathematical Programming Study 2 (1974) 82-114.
#include <cantle/base/control.hpp>
#include <cantle/mrf/budget.hpp>
#include <cantle/mrf/budget_result.hpp>
#include <cantle/mrf/cutting_planes.hpp>
#include <cantle/mrf/feasible_search.hpp>
#include <cantle/mrf/solve.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

namespace detail {

class lagrangian_solver {
public:
    lagrangian_solver(factor_graph const& g, std::span<linear_budget const> budgets, budget_options const& options, control const& limits)
        : g_(g), budgets_(budgets), options_(options), limits_(limits) {}

    budget_result run() {
        auto const count = budgets_.size();
        result_.multipliers.assign(count, 0.0);
        result_.least.assign(count, -forbidden);
        std::vector<std::vector<label>> all(g_.variable_count());
        for (std::uint32_t v = 0; v < all.size(); ++v)
            for (label j = 0; j < g_.label_count(variable_id(v)); ++j) all[v].push_back(j);
        half root{std::move(all), -forbidden, std::vector<double>(count, 0.0), {}};
        budgeted_graph const whole{g_, {budgets_.begin(), budgets_.end()}};

        auto const free = evaluate(whole, root.kept, root.multipliers, true);
        result_.stats.first = free.stats;
        if (free.bound == forbidden) return infeasible();
        root.bound = free.bound;
        scale_.assign(count, 1.0);
        search_.emplace(g_, budgets_, scale_);
        std::vector<bool> exceeded(count, true);
        if (!free.labels.empty()) {
            auto const use = search_->uses(free.labels);
            for (std::size_t k = 0; k < count; ++k) {
                exceeded[k] = use[k] > budgets_[k].limit;
                scale_[k] = exceeded[k] ? use[k] - budgets_[k].limit : std::abs(budgets_[k].limit) + 1e-9;
            }
            search_.emplace(g_, budgets_, scale_);
            offer(free.labels);
        }
        for (std::size_t k = 0; k < count; ++k) {
            if (!exceeded[k]) continue;
            std::vector<double> alone(count, 0.0);
            alone[k] = 1;
            auto const least = evaluate(whole, root.kept, alone, false);
            result_.least[k] = least.plain_bound;
            if (least.bound > 0) {
                result_.unreachable = k;
                return infeasible();
            }
            if (!least.labels.empty()) offer(least.labels);
        }
        if (root.bound < cutoff() && !raise(whole, root, options_.root_evaluations)) return infeasible();
        result_.stats.root_bound = root.bound;
        if (root.bound < cutoff()) {
            auto around = root;
            auto const left = options_.max_evaluations - std::min(options_.max_evaluations, evaluations());
            if (keep_labels_of_good(around.kept)) branch(around, evaluations() + left / 3);
            root.bound = branch(root, options_.max_evaluations);
        }
        if (!found_ && root.bound == forbidden) return infeasible();
        if (!found_) {
            result_.lower_bound = root.bound;
            result_.status = ended();
            return std::move(result_);
        }
        result_.labels = best_.labels;
        result_.energy = best_.energy;
        result_.use = best_.use;
        result_.lower_bound = std::min(root.bound, best_.energy);
        if (result_.energy - result_.lower_bound <= slack()) result_.status = solve_status::optimal;
        else if (result_.energy - result_.lower_bound <= options_.inner.relative_gap * std::abs(result_.energy))
            result_.status = solve_status::within_gap;
        else result_.status = ended();
        return std::move(result_);
    }

private:
    struct labelling {
        std::vector<label> labels;
        double energy = forbidden;
        std::vector<double> use;
    };
    /// A part of the labellings: those with kept labels only.
    struct half {
        std::vector<std::vector<label>> kept;
        double bound = -forbidden;
        std::vector<double> multipliers;
        std::vector<std::pair<std::size_t, double>> mixture;  // (labelling, share) that holds the bound down
        std::size_t depth = 0;
    };
    struct evaluation {
        std::vector<label> labels;       // empty: none found
        double bound = -forbidden;       // of L; forbidden: no labelling
        double plain_bound = -forbidden; // the same without the limits
        solve_stats stats;
    };
    static constexpr double most_elimination_work = 16777216.0;  // label tuples, 2^24: some 20 ms. 2^30 took twice as long in all
    factor_graph const& g_;
    std::span<linear_budget const> budgets_;
    budget_options const& options_;
    control const& limits_;
    budget_result result_;
    std::vector<double> scale_;
    std::optional<feasible_search> search_;
    std::vector<labelling> pool_;
    std::set<std::vector<label>> known_;
    labelling best_;
    bool found_ = false, stopped_ = false, out_of_sweeps_ = false;
    double entries_ = 0;
    double error_ = 0;  // what grids may have hidden, at most

    std::size_t evaluations() const { return result_.stats.evaluations; }
    solve_status ended() const {
        return stopped_ ? solve_status::stopped : out_of_sweeps_ ? solve_status::sweep_limit : solve_status::stalled;
    }
    budget_result infeasible() {
        result_.labels.clear();
        result_.lower_bound = forbidden;
        result_.status = solve_status::infeasible;
        return std::move(result_);
    }
    /// What counts as no gap, see solve.hpp.
    double slack() const {
        double const scale = paid(g_, best_.labels);
        return std::min(error_, fine_enough * scale) + scale * 4 * std::numeric_limits<double>::epsilon();
    }
    /// A bound at or above it ends a search.
    double cutoff() const {
        if (!found_) return forbidden;
        return best_.energy - std::max(slack(), options_.inner.relative_gap * std::abs(best_.energy));
    }

    evaluation evaluate(budgeted_graph const& p, std::vector<std::vector<label>> const& kept, std::span<double const> multipliers,
                        bool of_energy) {
        ++result_.stats.evaluations;
        for (auto const& edge : p.graph.edges()) entries_ += static_cast<double>(p.graph.table(edge.table).values.size());
        auto const priced = penalised(p.graph, p.budgets, multipliers, of_energy);
        auto options = options_.inner;
        options.relative_gap = 0;
        if (result_.stats.evaluations > 1) {  // halving is the better branching here, and sweeps are cheaper than large eliminations
            options.max_elimination_work = std::min(options.max_elimination_work, most_elimination_work);
            options.max_block_work = options.max_branch_entries = 0;
        }
        auto solved = solve(priced.graph, options, limits_);
        evaluation e;
        e.stats = solved.stats;
        if (solved.status == solve_status::infeasible) {
            e.bound = forbidden;
            return e;
        }
        stopped_ |= solved.status == solve_status::stopped;
        out_of_sweeps_ |= solved.status == solve_status::sweep_limit;
        exact_enough_sum sum;
        sum.add(solved.lower_bound);
        double sizes = std::abs(solved.lower_bound);
        for (std::size_t k = 0; k < budgets_.size(); ++k) {
            double const product = multipliers[k] * budgets_[k].limit;
            sum.add(-product);
            sizes += std::abs(product);
        }
        bool const plain = std::all_of(multipliers.begin(), multipliers.end(), [](double m) { return m == 0; });
        double const rounding = plain ? 0.0 : priced.rounding + 0x1p-51 * sizes;
        e.bound = sum.value() - rounding;
        e.plain_bound = solved.lower_bound - rounding;
        if (of_energy) error_ = std::max(error_, solved.stats.error_bound + 2 * rounding);
        for (std::size_t v = 0; v < solved.labels.size(); ++v) e.labels.push_back(kept[v][solved.labels[v]]);
        return e;
    }

    /// Takes a labelling without forbidden pairs into the pool, and the best within the budgets that can be made of it.
    bool offer(std::vector<label> labels) {
        if (!known_.insert(labels).second) return false;
        labelling x{std::move(labels), 0, {}};
        x.energy = energy(g_, x.labels);
        x.use = search_->uses(x.labels);
        pool_.push_back(x);
        auto inside = x.labels;
        bool const feasible = search_->violation(x.use) == 0 || search_->repair(inside);
        if (feasible) {
            search_->descend(inside);
            improve(std::move(inside));
        }
        if (found_ && x.energy < best_.energy) {
            auto mixed = best_.labels;
            search_->mix(mixed, x.labels, result_.multipliers);
            improve(std::move(mixed));
        }
        return true;
    }
    void improve(std::vector<label> labels) {
        double const e = energy(g_, labels);
        if (found_ && !(e < best_.energy)) return;
        found_ = true;
        best_ = {std::move(labels), e, {}};
        best_.use = search_->uses(best_.labels);
        if (known_.insert(best_.labels).second) pool_.push_back(best_);
    }

    static bool inside(labelling const& x, std::vector<std::vector<label>> const& kept) {
        for (std::size_t v = 0; v < kept.size(); ++v)
            if (!std::binary_search(kept[v].begin(), kept[v].end(), x.labels[v])) return false;
        return true;
    }
    /// Cutting planes of the labellings inside, scaled, and the scales.
    struct model {
        std::vector<cutting_plane> planes;
        std::vector<std::size_t> labelling_of;
        double offset = 0, height = 1;
        std::vector<double> slope;
    };
    model planes_of(std::vector<std::vector<label>> const& kept, bool of_energy) const {
        model m;
        m.slope.assign(budgets_.size(), 0.0);
        double low = forbidden, high = -forbidden;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            if (!inside(pool_[i], kept)) continue;
            m.labelling_of.push_back(i);
            low = std::min(low, pool_[i].energy);
            high = std::max(high, pool_[i].energy);
            for (std::size_t k = 0; k < m.slope.size(); ++k)
                m.slope[k] = std::max(m.slope[k], std::abs(pool_[i].use[k] - budgets_[k].limit));
        }
        if (m.labelling_of.empty()) return m;
        for (double& s : m.slope) s = s > 0 ? s : 1;
        m.offset = of_energy ? low : 0;
        if (of_energy && found_) high = std::max(high, best_.energy);
        m.height = of_energy && high > low ? high - low : 1;
        for (auto i : m.labelling_of) {
            cutting_plane plane{of_energy ? (pool_[i].energy - m.offset) / m.height : 0.0, {}};
            for (std::size_t k = 0; k < m.slope.size(); ++k) plane.slope.push_back((pool_[i].use[k] - budgets_[k].limit) / m.slope[k]);
            m.planes.push_back(std::move(plane));
        }
        return m;
    }

    /// Raises the bound of h by better multipliers. False when no labelling of h keeps all budgets.
    bool raise(budgeted_graph const& p, half& h, std::size_t most) {
        if (std::all_of(h.kept.begin(), h.kept.end(), [](auto const& list) { return list.size() == 1; })) return look_at(h);
        if (!found_ && !ascend(p, h, most, false)) return false;
        return ascend(p, h, most, true);
    }
    /// The same for a single labelling.
    bool look_at(half& h) {
        std::vector<label> labels;
        for (auto const& list : h.kept) labels.push_back(list.front());
        double const e = energy(g_, labels);
        if (e == forbidden || search_->violation(search_->uses(labels)) > 0) return false;
        improve(std::move(labels));
        h.bound = std::max(h.bound, e - std::abs(e) * std::numeric_limits<double>::epsilon());
        return true;
    }
    bool ascend(budgeted_graph const& p, half& h, std::size_t most, bool of_energy) {
        std::vector<double> at = of_energy ? h.multipliers : std::vector<double>(budgets_.size(), 0.0);
        if (!of_energy)
            for (std::size_t k = 0; k < at.size(); ++k) at[k] = 1 / scale_[k];
        auto best_at = at;
        double best = -forbidden;
        bool const is_root = h.depth == 0;
        for (std::size_t i = 0; i < most; ++i) {
            if (evaluations() >= options_.max_evaluations || entries_ >= options_.max_entries) return true;
            if (limits_.expired()) {
                stopped_ = true;
                return true;
            }
            bool fresh = true;
            if (is_root && of_energy && i == 0) {  // evaluated already, without multipliers
                best = h.bound;
            } else {
                auto const e = evaluate(p, h.kept, at, of_energy);
                if (e.bound == forbidden) return false;
                if (e.bound > best) {
                    best = e.bound;
                    best_at = at;
                    if (of_energy && is_root) result_.multipliers = at;
                }
                fresh = !e.labels.empty() && offer(e.labels);
            }
            if (of_energy) {
                if (best > h.bound || i == 0) h.multipliers = best_at;
                h.bound = std::max(h.bound, best);
                if (is_root) limits_.report({"multipliers", i + 1, most, found_ ? best_.energy : 0, h.bound});
                if (h.bound >= cutoff()) return true;
            } else {
                if (best > 0) return false;
                if (found_) return true;
            }
            auto const m = planes_of(h.kept, of_energy);
            if (m.planes.empty()) return true;
            std::vector<double> const bounds(budgets_.size(), of_energy ? 1e6 : 1.0);
            auto const top = maximise_cutting_planes(m.planes, bounds);
            double const value = m.offset + top.value * m.height;
            if (of_energy) {
                h.mixture.clear();
                for (std::size_t j = 0; j < top.shares.size(); ++j)
                    if (top.shares[j] > 1e-9) h.mixture.emplace_back(m.labelling_of[j], top.shares[j]);
            }
            double const open = of_energy && found_ ? cutoff() - best : m.height;
            if (value - best <= 1e-9 * m.height || value - best <= (is_root ? 1e-4 : 1e-2) * open) return true;
            auto next = top.multipliers;
            for (std::size_t k = 0; k < next.size(); ++k) next[k] *= m.height / m.slope[k];
            // Several budgets: every other point half way from the best, which keeps cutting planes from swinging. A point that teaches
            // nothing new there is followed by the maximum itself.
            if (budgets_.size() > 1 && i % 2 == 1 && fresh)
                for (std::size_t k = 0; k < next.size(); ++k) next[k] = (next[k] + best_at[k]) / 2;
            if (next == at) return true;
            at = std::move(next);
        }
        return true;
    }

    /// Keeps the labels that occur in labellings near the bound. False when nothing goes.
    bool keep_labels_of_good(std::vector<std::vector<label>>& kept) const {
        std::vector<std::set<label>> seen(kept.size());
        for (auto const& x : pool_)
            for (std::size_t v = 0; v < seen.size(); ++v) seen[v].insert(x.labels[v]);
        bool smaller = false;
        for (std::size_t v = 0; v < kept.size(); ++v) {
            smaller |= seen[v].size() < kept[v].size();
            kept[v].assign(seen[v].begin(), seen[v].end());
        }
        return smaller && !pool_.empty();
    }

    /// Splits root until every part is closed or there were `until` evaluations. Returns a bound of root, forbidden when nothing is in it.
    double branch(half const& root, std::size_t until) {
        // Table entries are shared out as evaluations are.
        std::size_t const left = options_.max_evaluations - std::min(options_.max_evaluations, evaluations());
        std::size_t const own = until - std::min(until, evaluations());
        double const share = static_cast<double>(own) / static_cast<double>(std::max<std::size_t>(left, 1));
        double const most_entries = entries_ + share * (options_.max_entries - entries_);
        double closed = forbidden;  // least bound of the parts that are done with
        std::map<std::pair<double, std::size_t>, half> open;
        std::size_t number = 0;
        open.emplace(std::pair{root.bound, number++}, root);
        while (!open.empty()) {
            auto const first = open.begin();
            if (first->first.first >= cutoff()) break;
            if (evaluations() >= until || entries_ >= most_entries || stopped_) break;
            auto const h = std::move(first->second);
            open.erase(first);
            auto const [at, labels] = split(h);
            auto const& cut = labels;  // clang 14 captures no structured bindings
            if (cut.empty()) {  // one labelling, and its bound does not reach it: rounding
                closed = std::min(closed, h.bound);
                continue;
            }
            limits_.report({"halves", result_.stats.halves, 0, found_ ? best_.energy : 0, h.bound});
            for (bool of_cut : {true, false}) {
                half part = h;
                part.mixture.clear();
                ++part.depth;
                std::erase_if(part.kept[at], [&](label j) { return (std::find(cut.begin(), cut.end(), j) != cut.end()) != of_cut; });
                ++result_.stats.halves;
                auto const smaller = restrict_labels(g_, budgets_, part.kept);
                if (!raise(smaller, part, options_.node_evaluations)) continue;
                if (part.bound >= cutoff()) closed = std::min(closed, part.bound);
                else open.emplace(std::pair{part.bound, number++}, std::move(part));
            }
        }
        return open.empty() ? closed : std::min(closed, open.begin()->first.first);
    }

    /// The variable to branch on and the labels of one half; empty when there is nothing to split.
    std::pair<std::size_t, std::vector<label>> split(half const& h) const {
        std::size_t at = 0;
        std::size_t by = budgets_.size();
        double most = 0, middle = 0;
        for (std::size_t k = 0; k < budgets_.size(); ++k)
            for (std::size_t v = 0; v < budgets_[k].of_variable.size(); ++v) {
                auto const* w = budgets_[k].weights(variable_id(static_cast<std::uint32_t>(v)));
                if (!w || h.mixture.size() < 2) continue;
                double mean = 0, total = 0, low = forbidden, high = -forbidden;
                for (auto const& [i, share] : h.mixture) {
                    double const x = (*w)[pool_[i].labels[v]];
                    mean += share * x;
                    total += share;
                    low = std::min(low, x);
                    high = std::max(high, x);
                }
                double const score = std::max(h.multipliers[k], 1e-9 / scale_[k]) * (high - low);
                if (!(score > most)) continue;
                most = score;
                at = v;
                by = k;
                middle = mean / total;
                if (!(middle >= low && middle < high)) middle = low;
            }
        std::vector<label> cut;
        if (by < budgets_.size()) {
            auto const* w = budgets_[by].weights(variable_id(static_cast<std::uint32_t>(at)));
            for (label j : h.kept[at])
                if ((*w)[j] <= middle) cut.push_back(j);
            return {at, cut};
        }
        // The mixture agrees on all weights of variables: a variable that it does not agree on, with the most labels.
        std::size_t widest = 1;
        for (std::size_t v = 0; v < h.kept.size(); ++v) {
            std::set<label> used;
            for (auto const& [i, share] : h.mixture) used.insert(pool_[i].labels[v]);
            if (used.size() < 2 || h.kept[v].size() <= widest) continue;
            widest = h.kept[v].size();
            at = v;
            cut = {*used.begin()};
        }
        if (!cut.empty()) return {at, cut};
        for (std::size_t v = 0; v < h.kept.size(); ++v)
            if (h.kept[v].size() > widest) {
                widest = h.kept[v].size();
                at = v;
            }
        if (widest > 1) cut.assign(h.kept[at].begin(), h.kept[at].begin() + static_cast<std::ptrdiff_t>(widest / 2));
        return {at, cut};
    }
};

}  // namespace detail

/// Minimises E within the budgets. Never throws for what solving finds: see status. Throws bad_field for a budget that does not fit the
/// graph and for costs too large to add up.
inline budget_result solve_with_budgets(factor_graph const& g, std::span<linear_budget const> budgets, budget_options const& options = {},
                                        control const& limits = {}) {
    for (auto const& b : budgets) check_budget(g, b);
    if (g.variable_count() == 0) {
        budget_result none;
        auto const negative = std::find_if(budgets.begin(), budgets.end(), [](linear_budget const& b) { return b.limit < 0; });
        none.multipliers.assign(budgets.size(), 0.0);
        none.use = none.least = none.multipliers;
        if (negative != budgets.end()) none.unreachable = static_cast<std::size_t>(negative - budgets.begin());
        none.energy = none.lower_bound = none.unreachable ? forbidden : 0.0;
        none.status = none.unreachable ? solve_status::infeasible : solve_status::optimal;
        return none;
    }
    return detail::lagrangian_solver(g, budgets, options, limits).run();
}

}  // namespace cantle::mrf
