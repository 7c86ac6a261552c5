// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: min E exactly, for graphs of small width.
// Idea: eliminate variables one by one [1, 2]: all tables that contain v are summed and minimised over v into one table over v's
// neighbours. Two greedy orders are tried, fewest fill edges [3] and smallest table, and the one with less work is taken.
// Invariant: each table's last axis is the one of its variables that is eliminated first, so every inner loop is contiguous.
// Complexity: sum over v of the product of label counts of v and its neighbours at that time: exponential in the width, hence `plan`
// first, which prices an order without allocating, and a limit on the entries alive (all are kept, for going back). Exact on whole-number
// costs.
// [1] U. Bertele, F. Brioschi, "Nonserial Dynamic Programming", 1972. [2] R. Dechter, "Bucket elimination", Artificial Intelligence 113
// (1999).
// [3] D. Rose, "Triangulated graphs and the elimination process", 1970 (minimum deficiency).
#include <cantle/base/assert.hpp>
#include <cantle/base/control.hpp>
#include <cantle/base/parallel_for.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>
#include <cantle/mrf/table_algebra.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// An elimination order and what it costs.
struct elimination_plan {
    std::vector<std::uint32_t> order;
    double entries = 0;  ///< of all tables created
    double work = 0;     ///< label tuples visited
    std::size_t width = 0;  ///< most neighbours of a variable when eliminated
    /// In label tuples: an entry is written, faulted in and read again, about what eight tuples cost (measured).
    double cost() const { return work + 8 * entries; }
};

namespace detail {

/// The neighbours of every variable, each once, in increasing order.
inline std::vector<std::vector<std::uint32_t>> neighbours(factor_graph const& g) {
    std::vector<std::vector<std::uint32_t>> near(g.variable_count());
    for (auto const& e : g.edges()) {
        near[e.u.value].push_back(e.v.value);
        near[e.v.value].push_back(e.u.value);
    }
    for (auto& list : near) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return near;
}

/// Greedy order by fill or by table size, from neighbours and label counts; nothing when work or entries exceed a limit.
inline std::optional<elimination_plan> greedy_order(std::vector<std::vector<std::uint32_t>> near, std::span<double const> counts,
                                                    bool by_fill, double max_entries, double max_work) {
    auto const n = static_cast<std::uint32_t>(near.size());
    auto const size = [&](std::uint32_t v) {
        double s = 1;
        for (auto w : near[v]) s *= counts[w];
        return s;
    };
    auto const score = [&](std::uint32_t v) {
        if (!by_fill) return size(v);
        std::size_t missing = 0;
        for (std::size_t i = 0; i < near[v].size(); ++i)
            for (std::size_t j = i + 1; j < near[v].size(); ++j)
                missing += !std::binary_search(near[near[v][i]].begin(), near[near[v][i]].end(), near[v][j]);
        return static_cast<double>(missing);
    };
    std::vector<double> now(n);
    std::set<std::pair<double, std::uint32_t>> queue;
    for (std::uint32_t v = 0; v < n; ++v) queue.emplace(now[v] = score(v), v);
    elimination_plan plan;
    while (!queue.empty()) {
        auto const v = queue.begin()->second;
        queue.erase(queue.begin());
        double const table = size(v);
        plan.entries += table;
        plan.work += table * counts[v];
        plan.width = std::max(plan.width, near[v].size());
        if (plan.entries > max_entries || plan.work > max_work) return std::nullopt;
        plan.order.push_back(v);
        std::vector<std::uint32_t> changed = near[v];
        for (auto a : near[v]) {
            std::vector<std::uint32_t> merged;
            std::set_union(near[a].begin(), near[a].end(), near[v].begin(), near[v].end(), std::back_inserter(merged));
            std::erase_if(merged, [&](auto w) { return w == a || w == v; });
            near[a] = std::move(merged);
            if (by_fill) changed.insert(changed.end(), near[a].begin(), near[a].end());
        }
        std::sort(changed.begin(), changed.end());
        changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
        for (auto w : changed) {
            queue.erase({now[w], w});
            queue.emplace(now[w] = score(w), w);
        }
    }
    return plan;
}

}  // namespace detail

/// The cheaper of two greedy orders, or nothing when both exceed the limits (entries of 8 bytes; work in label tuples).
inline std::optional<elimination_plan> plan_elimination(factor_graph const& g, double max_entries, double max_work) {
    std::vector<double> counts;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) counts.push_back(g.label_count(variable_id(v)));
    auto const near = detail::neighbours(g);
    auto by_size = detail::greedy_order(near, counts, false, max_entries, max_work);
    auto by_fill = detail::greedy_order(near, counts, true, max_entries, by_size ? by_size->work : max_work);
    return by_fill && (!by_size || by_fill->work < by_size->work) ? by_fill : by_size;
}

/// An optimal labelling and its energy; `energy` is `forbidden` and `labels` arbitrary when there is no allowed one.
struct elimination_result {
    std::vector<label> labels;
    double energy = 0;
    bool stopped = false;  ///< the limits expired: neither labels nor energy mean anything
};

namespace detail {

class bucket_eliminator {
public:
    bucket_eliminator(factor_graph const& g, elimination_plan const& plan, unsigned threads, control const& limits)
        : g_(g), threads_(threads), limits_(limits), order_(plan.order), place_(order_.size()), buckets_(order_.size()) {
        for (std::uint32_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
        for (std::uint32_t v = 0; v < order_.size(); ++v) {
            auto const costs = g.costs(variable_id(v));
            buckets_[v].push_back({{v}, {costs.begin(), costs.end()}});
        }
        for (auto const& e : g.edges()) add_edge(e);
    }

    elimination_result run() {
        double energy = 0;
        for (auto v : order_) {
            energy += eliminate(v);
            if (stopped_) return {{}, forbidden, true};
        }
        elimination_result result{std::vector<label>(order_.size(), 0), energy};
        for (std::size_t i = order_.size(); i-- > 0;) {
            auto const v = order_[i];
            std::vector<double> sum(g_.label_count(variable_id(v)), 0.0);
            for (auto const& f : buckets_[v]) {
                std::size_t at = 0;
                for (std::size_t d = 0; d + 1 < f.scope.size(); ++d)
                    at = at * g_.label_count(variable_id(f.scope[d])) + result.labels[f.scope[d]];
                for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += f.values[at * sum.size() + j];
            }
            result.labels[v] = static_cast<label>(std::min_element(sum.begin(), sum.end()) - sum.begin());
        }
        return result;
    }

private:
    struct factor {
        std::vector<std::uint32_t> scope;  // latest eliminated first; the last is the bucket's own variable
        std::vector<double> values;
    };
    struct part {  // a factor of the bucket, as seen from the tuple of neighbours
        double const* values;
        std::vector<std::size_t> step;  // per depth; 0 where the factor does not contain that neighbour
        std::size_t last;               // 1 + depth of its last neighbour, 0 if it has none
    };
    factor_graph const& g_;
    unsigned threads_;
    control const& limits_;
    std::atomic<bool> stopped_{false};
    std::vector<std::uint32_t> const& order_;
    std::vector<std::uint32_t> place_;
    std::vector<std::vector<factor>> buckets_;

    void add_edge(pairwise_edge const& e) {
        auto const& t = g_.table(e.table);
        auto const row = e.use == table_use::straight ? e.u.value : e.v.value, col = e.use == table_use::straight ? e.v.value : e.u.value;
        if (place_[row] > place_[col]) {
            buckets_[col].push_back({{row, col}, t.values});
            return;
        }
        factor f{{col, row}, std::vector<double>(t.values.size())};
        transpose(t.values.data(), t.rows, t.cols, f.values.data());
        buckets_[row].push_back(std::move(f));
    }

    /// Minimises v out; returns its contribution to the constant when it has no neighbours left.
    double eliminate(std::uint32_t v) {
        std::vector<std::uint32_t> scope;
        for (auto const& f : buckets_[v]) scope.insert(scope.end(), f.scope.begin(), f.scope.end() - 1);
        std::sort(scope.begin(), scope.end(), [&](auto a, auto b) { return place_[a] > place_[b]; });
        scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
        std::size_t const n = g_.label_count(variable_id(v));
        std::vector<std::size_t> count;
        std::size_t cells = 1;
        for (auto w : scope) {
            count.push_back(g_.label_count(variable_id(w)));
            cells *= count.back();
        }
        std::vector<std::vector<part>> parts(scope.size() + 1);  // by `last`
        for (auto const& f : buckets_[v]) {
            part p{f.values.data(), std::vector<std::size_t>(scope.size(), 0), 0};
            std::size_t step = n;
            for (std::size_t d = f.scope.size() - 1; d-- > 0;) {
                auto const depth = static_cast<std::size_t>(std::find(scope.begin(), scope.end(), f.scope[d]) - scope.begin());
                p.step[depth] = step;
                p.last = std::max(p.last, depth + 1);
                step *= count[depth];
            }
            parts[p.last].push_back(std::move(p));
        }
        std::vector<double> own(n, 0.0);
        for (auto const& p : parts[0]) min_plus().add(own.data(), p.values, n, own.data());
        if (scope.empty()) return min_of(own.data(), n);
        factor out{scope, std::vector<double>(cells)};
        std::size_t const rows = cells / count[0];
        bool const worth_threads = static_cast<double>(cells) * static_cast<double>(n) >= 4194304.0;  // 2^22: half a millisecond
        std::size_t const pieces = worth_threads ? std::min<std::size_t>(count[0], 16) : 1;
        parallel_for(pieces, threads_, [&](std::size_t i) {
            std::size_t const from = count[0] * i / pieces, to = count[0] * (i + 1) / pieces;
            table_maker(parts, count, own, out.values.data() + from * rows).fill(from, to, [this] {
                if (limits_.expired()) stopped_ = true;
                return stopped_.load();
            });
        });
        buckets_[scope.back()].push_back(std::move(out));
        return 0;
    }

    /// Fills the new table, neighbours' labels counted like the digits of a number. Sums of what earlier digits determine are kept per
    /// depth. In the last digit every factor is contiguous, rows being its labels: one min-plus product for all of them.
    class table_maker {
    public:
        table_maker(std::vector<std::vector<part>> const& parts, std::vector<std::size_t> const& count, std::vector<double> const& own,
                    double* out)
            : parts_(parts), count_(count), sum_(count.size(), own), digit_(count.size(), 0), out_(out) {}

        /// For labels from .. to of the first neighbour, until `stopped` says true (asked once per label).
        template <class Stopped>
        void fill(std::size_t from, std::size_t to, Stopped const& stopped) {
            if (count_.size() == 1) return finish(from, to);
            for (std::size_t i = from; i < to && !stopped(); ++i) descend(0, i, i + 1);
        }

    private:
        std::vector<std::vector<part>> const& parts_;
        std::vector<std::size_t> const& count_;
        std::vector<std::vector<double>> sum_;
        std::vector<double> joint_;
        std::vector<std::size_t> digit_;
        double* out_;

        void descend(std::size_t depth, std::size_t from, std::size_t to) {
            if (depth + 1 == count_.size()) return finish(from, to);
            std::size_t const n = sum_[depth].size();
            for (digit_[depth] = from; digit_[depth] < to; ++digit_[depth]) {
                auto& next = sum_[depth + 1];
                next = sum_[depth];
                for (auto const& p : parts_[depth + 1]) min_plus().add(next.data(), at(p, depth + 1), n, next.data());
                descend(depth + 1, 0, count_[depth + 1]);
            }
        }
        void finish(std::size_t from, std::size_t to) {
            auto const& own = sum_.back();
            auto const& last = parts_.back();
            std::size_t const n = own.size(), rows = to - from;
            double const* table = at(last[0], count_.size() - 1) + from * n;
            for (std::size_t i = 1; i < last.size(); ++i) {
                joint_.resize(rows * n);
                min_plus().add(table, at(last[i], count_.size() - 1) + from * n, rows * n, joint_.data());
                table = joint_.data();
            }
            min_plus().over_cols(own.data(), table, rows, n, out_);
            out_ += rows;
        }
        double const* at(part const& p, std::size_t digits) const {
            double const* values = p.values;
            for (std::size_t d = 0; d < digits; ++d) values += p.step[d] * digit_[d];
            return values;
        }
    };
};

}  // namespace detail

/// Minimises E exactly in the plan's order, on `threads` threads (0: all of the machine; the result is the same). Precondition: the plan is
/// of this graph.
inline elimination_result bucket_elimination(factor_graph const& g, elimination_plan const& plan, unsigned threads = 0,
                                             control const& limits = {}) {
    CANTLE_ASSERT(plan.order.size() == g.variable_count(), "the plan orders all variables of the graph");
    return detail::bucket_eliminator(g, plan, threads, limits).run();
}

}  // namespace cantle::mrf
