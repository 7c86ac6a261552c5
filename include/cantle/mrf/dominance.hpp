// SPDX-License-Identifier: BSL-1.0
#pragma once
// Dead-end elimination: label a of v is out when some label b is at least as good whatever the neighbours do,
//      theta_v(a) - theta_v(b) + sum_e min_k [ theta_e(a, k) - theta_e(b, k) ] >= 0          (Goldstein's criterion, eq. 9 in [1]).
// Neighbour labels k that a forbids do not count (a is worse there anyway); one that only b forbids spoils b. On a tie the lower label
// stays. A sum over one chosen k per edge, the cheapest k of a, bounds the left side from above and rejects nearly all pairs in O(degree).
// All variables are judged against the same costs, so that they can be judged at once: of any labelling, exchanging one variable's label
// for a better one keeps the others' judgements true, because these hold for all labellings there are. A b that itself is out is never
// named, so exchanging ends at labels that stay.
// Complexity: per variable its table entries, and n^2 / 2 sums over its edges; a limit on these steps stops it early.
// [1] R. F. Goldstein, "Efficient rotamer elimination applied to protein side-chains and related spin glasses", Biophys. J. 66 (1994).
#include <cantle/mrf/reducer.hpp>

namespace cantle::mrf::detail {

/// The labels of one variable that others dominate.
class reducer::dominance {
public:
    dominance(reducer const& r, std::uint32_t v, double most_steps) : left_(most_steps), cost_(r.variables_[v].cost) {
        for (auto id : r.variables_[v].edges) add_edge(*r.edges_[id].table, r.is_row(r.edges_[id], v));
        find();
        steps_ = most_steps - left_;
    }
    std::vector<label> const& out() const { return out_; }
    double steps() const { return steps_; }

private:
    struct side {
        std::vector<double> turned;
        double const *rows, *cols;  // the table as [self][other] and [other][self]
        std::size_t others;
        std::vector<std::size_t> cheapest;  // per own label
        std::vector<double> lowest;
    };
    double left_, steps_ = 0;
    std::vector<double> cost_, rival_;
    std::vector<side> sides_;
    std::vector<label> out_;

    void add_edge(cost_table const& t, bool is_row) {
        auto& s = sides_.emplace_back();
        std::size_t const n = cost_.size();
        s.others = t.values.size() / n;
        s.turned.resize(t.values.size());
        transpose(t.values.data(), t.rows, t.cols, s.turned.data());
        s.rows = is_row ? t.values.data() : s.turned.data();
        s.cols = is_row ? s.turned.data() : t.values.data();
        s.lowest.resize(n);
        s.cheapest.resize(n);
        for (std::size_t j = 0; j < n; ++j) {
            double const* row = s.rows + j * s.others;
            s.lowest[j] = min_of(row, s.others);
            s.cheapest[j] = static_cast<std::size_t>(std::find(row, row + s.others, s.lowest[j]) - row);
        }
        left_ -= static_cast<double>(2 * t.values.size());
    }

    void find() {
        auto const& minima = min_plus();
        std::size_t const n = cost_.size();
        rival_.resize(n);
        for (std::size_t a = n; a-- > 0 && left_ > 0;) {
            double own = cost_[a];
            std::copy(cost_.begin(), cost_.end(), rival_.begin());
            for (auto const& s : sides_) {
                own += s.lowest[a];
                minima.add(rival_.data(), s.cols + s.cheapest[a] * n, n, rival_.data());
            }
            left_ -= static_cast<double>(n * (sides_.size() + 1)) / 4;
            for (std::size_t b = 0; b < n; ++b) {
                if (rival_[b] > own || b == a || !dominates(b, a, own - rival_[b])) continue;
                cost_[a] = inf;
                out_.push_back(static_cast<label>(a));
                break;
            }
        }
    }

    /// `margin`: an upper bound of the criterion's left side, in which each edge's true minimum replaces its estimate.
    bool dominates(std::size_t b, std::size_t a, double margin) {
        for (auto const& s : sides_) {
            double const *of_a = s.rows + a * s.others, *of_b = s.rows + b * s.others;
            margin += min_plus().min_of_difference(of_a, of_b, s.others) - (s.lowest[a] - of_b[s.cheapest[a]]);
            left_ -= static_cast<double>(s.others) / 4;
            if (!(margin >= 0)) return false;
        }
        return true;
    }
};

inline bool reducer::remove_dominated() {
    std::vector<std::uint32_t> waiting;
    double entries = 0;
    for (std::uint32_t v = 0; v < variables_.size(); ++v) {
        auto& x = variables_[v];
        if (!x.alive || !x.touched) continue;
        x.touched = false;
        if (x.cost.size() == 1) continue;
        waiting.push_back(v);
        for (auto id : x.edges) entries += static_cast<double>(edges_[id].table->values.size());
    }
    bool any = false;
    // By batches, between which the steps left are counted: the same whatever the number of threads.
    constexpr std::size_t batch = 256;
    struct verdict {
        std::vector<label> out;
        double steps = 0;
    };
    std::vector<std::pair<std::uint32_t, std::vector<label>>> verdicts;
    for (std::size_t from = 0; from < waiting.size() && work_left_ > 0; from += batch) {
        std::vector<verdict> found(std::min(batch, waiting.size() - from));
        parallel_for(found.size(), entries < worth_threads ? 1 : threads_, [&](std::size_t i) {
            if (limits_.expired()) return;
            dominance d(*this, waiting[from + i], work_left_ / 4);
            found[i] = {d.out(), d.steps()};
        });
        for (std::size_t i = 0; i < found.size(); ++i) {
            work_left_ -= found[i].steps;
            if (!found[i].out.empty()) verdicts.emplace_back(waiting[from + i], std::move(found[i].out));
        }
    }
    for (auto const& [v, out] : verdicts) {
        for (label j : out) variables_[v].cost[j] = inf;
        touch(v);
        any = true;
    }
    return any;
}

}  // namespace cantle::mrf::detail
