// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: solve one connected, reduced, whole-number graph as far as its limits allow (the inner loop of solve.hpp).
// Idea: a search for something better than the best labelling known. TRW-S lifts the bound and decodes labellings; labels whose bound
// reaches the best energy are in no better labelling and go; the messages are folded into the costs (an exact reparametrisation, so
// nothing of the dual is lost), the smaller graph is reduced again, and so on. As soon as exact elimination costs a share of what was
// spent so far, it ends the search. Labellings far from the bound are improved by cutset search (cutset_search.hpp) over the few labels
// that the messages like best, at sweeps 2, 4, 8, ..: the sooner the best energy is good, the sooner labels go. When nothing is left that
// could be better, the best labelling known is optimal. Where the bound stops rising and elimination is too dear: block search
// (block_search.hpp) for a better labelling, with which sweeps go on, and at last branch and bound: one search of this kind per label of
// a hub (branching.hpp), each for labellings better than the best known.
// Invariant: the optimum is at least min(best(), offset of the level + any bound of the level's graph), in whole numbers.
#include <cantle/base/control.hpp>
#include <cantle/mrf/block_search.hpp>
#include <cantle/mrf/branching.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/coordinate_descent.hpp>
#include <cantle/mrf/cutset_search.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/quantise.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/trws.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// Limits of a solve. Counts, not times: the same options give the same result everywhere.
struct solve_options {
    double relative_gap = 0;          ///< (energy - bound) / energy at which to stop; 0: as far as possible
    std::size_t max_sweeps = 2000;    ///< forward and backward passes over one component
    bool fix_labels = true;           ///< take out labels whose bound reaches the best energy; off in ablations only
    bool local_search = true;         ///< coordinate descent on every decoded labelling; likewise
    double max_elimination_entries = 16777216.0;   ///< entries (8 bytes) that exact elimination may hold, 2^24 = 128 MiB
    double max_elimination_work = 1073741824.0;    ///< label tuples that it may visit, 2^30: a few seconds
    double max_block_work = 268435456.0;     ///< label tuples of the block search where sweeps stall, 2^28: a third of a second; 0: none
    double max_branch_entries = 2147483648.0;  ///< table entries of branch and bound after that, 2^31: some seconds; 0: none
    reduce_options reduce = {};
    unsigned threads = 0;  ///< 0: as many as the machine runs at once. The result is the same for any number
};

namespace detail {

inline reduce_options reduce_with(solve_options const& o) {
    auto r = o.reduce;
    r.threads = o.threads;
    return r;
}

class core_solver {
public:
    /// `outside`: a lower bound of the energy outside g, for relative gaps; `unit` of the grid, for progress. Keeps references.
    core_solver(factor_graph const& g, solve_options const& options, control const& limits, double outside, double unit)
        : g_(g), options_(options), limits_(limits), outside_(outside), unit_(unit), branch_left_(options.max_branch_entries) {}

    /// Of a branch: looks for labellings below `upper` only, and visits at most `entries` table entries.
    core_solver(factor_graph const& g, solve_options const& options, control const& limits, double outside, double unit, double upper,
                double entries, int depth)
        : g_(g), options_(options), limits_(limits), outside_(outside), unit_(unit), best_(upper), branch_left_(entries), depth_(depth) {}

    void run() {
        factor_graph const* now = &g_;
        while (now) {
            if (now->variable_count() == 0) {
                offer({}, offset_);
                lower_ = best_;
                return;
            }
            if (eliminate(*now, std::max(cheap_work, spent_ / 4))) return;
            now = sweep(*now);
        }
    }

    double best() const { return best_; }                        ///< energy of labels(); forbidden when none was found
    double lower() const { return std::min(lower_, best_); }     ///< forbidden when infeasible
    std::vector<label> const& labels() const { return labels_; }
    std::size_t sweeps() const { return sweeps_; }
    bool eliminated() const { return eliminated_; }
    bool stopped() const { return stopped_; }
    double spent() const { return spent_; }                      ///< table entries and label tuples visited
    bool out_of_sweeps() const { return out_of_sweeps_ && lower() < best_; }  ///< with more sweeps the search would go on

private:
    static constexpr double cheap_work = 262144.0;  // label tuples: well under a millisecond
    static constexpr double block_works[] = {1048576.0, 16777216.0};  // label tuples of one block, 2^20 and 2^24: 1 and 20 ms
    static constexpr double most_branch_work = 134217728.0;            // label tuples of one elimination in a branch, 2^27
    static constexpr double worth_pairs = 0.02;  // gap below which a labelling gets pair moves at once: far away they fix few labels
    static constexpr int deepest = 4;
    static constexpr std::size_t most_promising = 12;                  // labels per variable
    static constexpr double promising_step_work = 20736.0;             // label tuples, 12^4: one hub and two neighbours of a variable free
    struct level {
        std::vector<std::vector<label>> kept;  // labels of the graph above that are still in
        reduction reduced;
    };
    factor_graph const& g_;
    solve_options const& options_;
    control const& limits_;
    double outside_, unit_;
    std::deque<level> levels_;
    std::vector<label> labels_;
    std::vector<label> level_labels_;  // the best of the present level's graph, which need not be the best of all
    double level_best_ = forbidden;
    double best_ = forbidden, lower_ = -forbidden, offset_ = 0, spent_ = 0, branch_left_;
    int depth_ = 0;
    std::size_t sweeps_ = 0;
    bool eliminated_ = false, stopped_ = false, out_of_sweeps_ = false;

    bool closed() const {
        if (lower_ >= best_) return true;
        double const total = outside_ + best_;
        return best_ != forbidden && total > 0 && best_ - lower_ <= options_.relative_gap * total;
    }
    void raise(double bound) { lower_ = std::max(lower_, std::min(best_, bound)); }

    /// Takes a labelling of the present level's graph if it is the best so far.
    void offer(std::vector<label> labels, double e) {
        if (!(e < best_)) return;
        for (auto l = levels_.rbegin(); l != levels_.rend(); ++l) {
            labels = l->reduced.reconstruct(labels);
            for (std::size_t v = 0; v < labels.size(); ++v) labels[v] = l->kept[v][labels[v]];
        }
        best_ = e;
        labels_ = std::move(labels);
    }

    /// Pair moves from the best labelling of this level's graph, which decoding spares itself far from the bound.
    void move_pairs(factor_graph const& g, coordinate_descent& descent) {
        if (level_best_ == forbidden) return;
        descent.run(level_labels_);
        level_best_ = plain_energy(g, level_labels_);
        offer(level_labels_, offset_ + level_best_);
    }

    /// Where sweeps get no further: block search from the best labelling of this level's graph. True when it found a better one.
    bool search_blocks(factor_graph const& g) {
        if (level_best_ == forbidden) return false;
        auto labels = level_labels_;
        bool improved = false;
        for (double work : block_works) improved |= block_search(g, work).run(labels, options_.max_block_work, limits_);
        if (!improved) return false;
        level_labels_ = labels;
        level_best_ = plain_energy(g, labels);
        bool const better = offset_ + level_best_ < best_;
        offer(std::move(labels), offset_ + level_best_);
        return better;
    }

    /// A labelling from the few labels of each variable that the messages like best, and those of the best labelling of this level.
    void search_cutsets(factor_graph const& g, trws const& messages, coordinate_descent& descent, double work) {
        if (level_best_ == forbidden || work < cutset_search::round_work(g.variable_count())) return;
        std::vector<std::vector<label>> kept(g.variable_count());
        std::vector<double> hat;
        for (std::uint32_t v = 0; v < kept.size(); ++v) {
            hat.resize(g.label_count(variable_id(v)));
            messages.reparametrised(variable_id(v), hat);
            hat[level_labels_[v]] = -forbidden;
            auto& list = kept[v];
            for (label j = 0; j < hat.size(); ++j) list.push_back(j);
            if (list.size() <= most_promising) continue;
            std::nth_element(list.begin(), list.begin() + most_promising, list.end(),
                             [&](label a, label b) { return std::pair{hat[a], a} < std::pair{hat[b], b}; });
            list.resize(most_promising);
            std::sort(list.begin(), list.end());
        }
        auto const few = build(g, nullptr, kept).first;
        std::vector<label> labels(kept.size());
        for (std::size_t v = 0; v < kept.size(); ++v)
            labels[v] = static_cast<label>(std::lower_bound(kept[v].begin(), kept[v].end(), level_labels_[v]) - kept[v].begin());
        cutset_search search(few, promising_step_work);
        bool const better = search.run(labels, 3, work);
        spent_ += search.spent();
        if (!better) return;
        for (std::size_t v = 0; v < kept.size(); ++v) labels[v] = kept[v][labels[v]];
        descent.single_moves(labels);
        level_best_ = plain_energy(g, labels);
        level_labels_ = labels;
        offer(std::move(labels), offset_ + level_best_);
    }

    bool eliminate(factor_graph const& g, double work) {
        auto const plan = plan_elimination(g, options_.max_elimination_entries, std::min(work, options_.max_elimination_work));
        if (!plan || plan->cost() > work) return false;
        auto exact = bucket_elimination(g, *plan, options_.threads, limits_);
        if (exact.stopped) {
            stopped_ = true;
            return false;
        }
        spent_ += plan->cost();
        eliminated_ = true;
        offer(std::move(exact.labels), offset_ + exact.energy);
        lower_ = best_;
        return true;
    }

    static double plain_energy(factor_graph const& g, std::span<label const> labels) {  // exact: whole numbers
        double sum = 0;
        for (std::uint32_t v = 0; v < labels.size(); ++v) sum += g.costs(variable_id(v))[labels[v]];
        for (auto const& e : g.edges()) sum += g.pair_cost(e, labels[e.u.value], labels[e.v.value]);
        return sum;
    }

    /// Sweeps over g until solved, out of limits (returns nullptr) or much smaller: then the graph to go on with.
    factor_graph const* sweep(factor_graph const& g) {
        level_best_ = forbidden;
        trws messages(g);
        coordinate_descent descent(g);
        std::vector<label> trial, last;
        std::vector<char> out(messages.label_total(), 0);
        auto const decode = [&] {
            if (std::equal(last.begin(), last.end(), messages.labels().begin(), messages.labels().end())) return;
            last.assign(messages.labels().begin(), messages.labels().end());
            trial = last;
            if (options_.local_search) descent.single_moves(trial);
            double e = plain_energy(g, trial);
            if (options_.local_search && offset_ + e < best_ && offset_ + e - lower_ <= worth_pairs * (outside_ + offset_ + e)) {
                descent.run(trial);
                e = plain_energy(g, trial);
            }
            if (e < level_best_) {
                level_best_ = e;
                level_labels_ = trial;
            }
            offer(trial, offset_ + e);
        };
        double const most = levels_.empty() ? magnitude(g) : forbidden;  // a level without anything better proves nothing
        double const pass_work = static_cast<double>(messages.work());
        double bound_then = lower_, best_then = best_;
        bool in_range = true;
        for (std::size_t i = 1; !closed() && in_range; ++i) {
            if (sweeps_ >= options_.max_sweeps) {
                out_of_sweeps_ = true;
                break;
            }
            if (sweeps_ > 0 && limits_.expired()) {  // one sweep at least: a whole result
                stopped_ = true;
                search_cutsets(g, messages, descent, 4 * cutset_search::round_work(g.variable_count()));  // some milliseconds
                move_pairs(g, descent);
                return nullptr;
            }
            ++sweeps_;
            spent_ += 2 * pass_work;
            in_range = messages.forward();
            if (in_range) decode();
            if (in_range && sweeps_ > 1 && std::has_single_bit(sweeps_) && options_.local_search)
                search_cutsets(g, messages, descent, spent_ / 2);
            bool const fix = best_ != forbidden && options_.fix_labels;
            if (in_range) in_range = fix ? messages.backward_and_fix(best_ - offset_, out) : messages.backward();
            if (in_range) decode();
            if (messages.bound() > most) lower_ = forbidden;  // no finite energy is that large
            raise(offset_ + messages.bound());
            if (depth_ > 0) limits_.report({"branches", sweeps_, 0, 0, 0});
            else limits_.report({"trws", sweeps_, options_.max_sweeps, (outside_ + best_) * unit_, (outside_ + lower()) * unit_});
            if (closed()) return nullptr;
            double const left = work_left(g, messages, out);
            if (left <= 0.5 * pass_work || (i >= 32 && left <= 0.9 * pass_work)) return take_out(g, messages, out, false);
            if (depth_ > 0 && spent_ > branch_left_) return nullptr;
            if (i % (depth_ > 0 ? 20 : 100) == 0) {
                bool const creeping = lower_ - bound_then <= 1e-3 * (best_ - lower_) && best_ == best_then;
                if (creeping) move_pairs(g, descent);
                if (creeping && left < pass_work) return take_out(g, messages, out, true);  // new reductions may get it going again
                if (creeping && (can_finish(g, messages, out) || depth_ > 0 || !search_blocks(g))) break;
                bound_then = lower_;
                best_then = best_;
            }
        }
        if (closed()) return nullptr;
        move_pairs(g, descent);
        finish(g, messages, out);
        return nullptr;
    }

    /// Last resort: exact elimination of what fixing left, with all the work that the options allow.
    void finish(factor_graph const& g, trws const& messages, std::span<char const> out) {
        auto const* rest = best_ == forbidden ? &g : take_out(g, messages, out, true);
        if (!rest) return;
        if (rest->variable_count() > 0) {
            if (!eliminate(*rest, options_.max_elimination_work) && best_ != forbidden && !out_of_sweeps_) branch(*rest);
        } else {
            offer({}, offset_);
            lower_ = best_;
        }
    }

    /// Branch and bound: one search per label of a hub, most promising label first. Raises the bound to the least of theirs.
    void branch(factor_graph const& g) {
        if (depth_ >= deepest || g.variable_count() < 2) return;
        auto const at = branching_variable(g);
        auto const costs = g.costs(variable_id(at));
        std::vector<label> order(costs.size());
        for (label j = 0; j < order.size(); ++j) order[j] = j;
        std::stable_sort(order.begin(), order.end(), [&](label a, label b) { return costs[a] < costs[b]; });
        std::vector<std::vector<label>> kept(g.variable_count());
        for (std::uint32_t v = 0; v < kept.size(); ++v)
            for (label j = 0; j < g.label_count(variable_id(v)); ++j) kept[v].push_back(j);
        double least = forbidden, left = branch_left_ - (depth_ > 0 ? spent_ : 0);
        for (label j : order) {
            kept[at] = {j};
            auto [smaller, constant] = build(g, nullptr, kept);
            reduction const reduced(smaller, reduce_with(options_), limits_);
            if (reduced.infeasible()) continue;
            double const start = offset_ + constant + reduced.constant();
            if (left <= 0 || limits_.expired()) {
                stopped_ |= limits_.expired();
                return;
            }
            auto options = options_;
            options.max_elimination_work = std::min(options.max_elimination_work, most_branch_work);
            core_solver solver(reduced.graph(), options, limits_, outside_ + start, unit_, best_ - start, left, depth_ + 1);
            solver.run();
            sweeps_ += solver.sweeps();
            spent_ += solver.spent();
            left -= solver.spent();
            stopped_ |= solver.stopped();
            if (!solver.labels().empty() || (reduced.graph().variable_count() == 0 && start < best_)) {
                auto labels = reduced.reconstruct(solver.labels());
                for (std::size_t v = 0; v < labels.size(); ++v) labels[v] = kept[v][labels[v]];
                offer(std::move(labels), start + solver.best());
            }
            least = std::min(least, start + solver.lower());
        }
        raise(least);
    }

    /// Whether exact elimination of what fixing left is within the limits, even before reductions.
    bool can_finish(factor_graph const& g, trws const& messages, std::span<char const> out) const {
        std::vector<double> counts;
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
            auto const at = out.begin() + static_cast<std::ptrdiff_t>(messages.offset(variable_id(v)));
            counts.push_back(static_cast<double>(std::count(at, at + g.label_count(variable_id(v)), char{0})));
        }
        return greedy_order(neighbours(g), counts, false, options_.max_elimination_entries, options_.max_elimination_work).has_value();
    }

    /// Table entries that a pass would visit after taking out what is flagged.
    static double work_left(factor_graph const& g, trws const& messages, std::span<char const> out) {
        std::vector<double> count(g.variable_count());
        for (std::uint32_t v = 0; v < count.size(); ++v) {
            auto const at = out.begin() + static_cast<std::ptrdiff_t>(messages.offset(variable_id(v)));
            count[v] = static_cast<double>(std::count(at, at + g.label_count(variable_id(v)), char{0}));
            if (count[v] == 0) return 0;
        }
        double sum = 0;
        for (auto const& e : g.edges()) sum += count[e.u.value] * count[e.v.value];
        return sum;
    }

    /// The reparametrised graph without flagged labels, reduced, as a new level. nullptr (and a closed bound) when nothing better can be
    /// left. While the bound rises, dominance costs more sweeps than it saves: only where it stalls all reductions are tried.
    factor_graph const* take_out(factor_graph const& g, trws const& messages, std::span<char const> out, bool all_reductions) {
        auto const n = static_cast<std::uint32_t>(g.variable_count());
        std::vector<std::vector<label>> kept(n);
        for (std::uint32_t v = 0; v < n; ++v) {
            auto const at = messages.offset(variable_id(v));
            for (label j = 0; j < g.label_count(variable_id(v)); ++j)
                if (!out[at + j]) kept[v].push_back(j);
            if (kept[v].empty()) {
                lower_ = best_;
                return nullptr;
            }
        }
        auto [smaller, constant] = build(g, &messages, kept);
        if (!(magnitude(smaller) <= exact_total)) std::tie(smaller, constant) = build(g, nullptr, kept);
        auto reduce = reduce_with(options_);
        if (!all_reductions) reduce.max_work = 0;
        levels_.push_back({std::move(kept), reduction(smaller, reduce, limits_)});
        auto const& reduced = levels_.back().reduced;
        if (reduced.infeasible()) {
            levels_.pop_back();
            lower_ = best_;
            return nullptr;
        }
        offset_ += constant + reduced.constant();
        return &reduced.graph();
    }

    static constexpr double exact_total = 1125899906842624.0;  // 2^50

    static std::pair<factor_graph, double> build(factor_graph const& g, trws const* messages, std::vector<std::vector<label>> const& kept) {
        factor_graph smaller;
        double constant = 0;
        std::vector<double> all;
        for (std::uint32_t v = 0; v < kept.size(); ++v) {
            auto const costs = g.costs(variable_id(v));
            all.assign(costs.begin(), costs.end());
            if (messages) messages->reparametrised(variable_id(v), all);
            std::vector<double> some;
            for (label j : kept[v]) some.push_back(all[j]);
            constant += take_minimum(some);
            smaller.add_variable(std::move(some));
        }
        if (messages) constant += messages->unary_constant();
        for (std::uint32_t i = 0; i < g.edge_count(); ++i) {
            auto const& e = g.edge(edge_id(i));
            auto const row = e.use == table_use::straight ? e.u : e.v, col = e.use == table_use::straight ? e.v : e.u;
            auto const& t = g.table(e.table);
            bool const row_later = row > col;
            std::span<double const> of_row, of_col;
            if (messages) {
                of_row = row_later ? messages->into_later(edge_id(i)) : messages->into_earlier(edge_id(i));
                of_col = row_later ? messages->into_earlier(edge_id(i)) : messages->into_later(edge_id(i));
            }
            auto const &rows = kept[row.value], &cols = kept[col.value];
            cost_table s{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(cols.size()), {}};
            s.values.reserve(rows.size() * cols.size());
            for (label r : rows)
                for (label c : cols) s.values.push_back(messages ? t(r, c) - of_row[r] - of_col[c] : t(r, c));
            constant += take_minimum(s.values);
            smaller.add_edge(row, col, std::move(s));
        }
        return {std::move(smaller), constant};
    }
    /// Shifts to a minimum of 0 (nothing to shift where all are forbidden) and returns the shift.
    static double take_minimum(std::vector<double>& x) {
        double const low = min_of(x.data(), x.size());
        if (low == forbidden) return 0;
        for (double& c : x) c -= low;
        return low;
    }
};

}  // namespace detail
}  // namespace cantle::mrf
