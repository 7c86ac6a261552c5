// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: labellings that minimise a penalised energy (lagrangian.hpp) lie on both sides of the budgets; find good ones inside.
// Ideas:
//  1. repair: while a budget is exceeded, the single move that costs least energy per unit of violation taken away.
//  2. descend: coordinate descent (coordinate_descent.hpp) over single and pair moves that keep all budgets.
//  3. mix: where a labelling inside and a cheaper one outside differ, the variables that differ fall into connected parts, and every part
//     can be taken from either: energies and uses of parts add up exactly. Which parts to take is a knapsack: all choices are tried for
//     few parts, else the best gain per penalised use first.
// Invariants: no forbidden pair is ever made; descend and mix never raise the energy and never break a budget.
// Complexity: repair and a round of descend O(labels * degree) per variable and step; mix O(terms + 2^parts), at most 2^12.
#include <cantle/mrf/budget.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace cantle::mrf::detail {

class feasible_search {
public:
    /// Keeps references. `scale[k]`: what counts as much violation of budget k, above 0.
    feasible_search(factor_graph const& g, std::span<linear_budget const> budgets, std::vector<double> scale)
        : g_(g), budgets_(budgets), scale_(std::move(scale)) {}

    std::vector<double> uses(std::span<label const> labels) const {
        std::vector<double> u;
        for (auto const& b : budgets_) u.push_back(budget_use(g_, b, labels));
        return u;
    }
    /// Sum over budgets of what is used beyond the limit, scaled; 0 when all are kept.
    double violation(std::span<double const> use) const {
        double v = 0;
        for (std::size_t k = 0; k < budgets_.size(); ++k)
            if (use[k] > budgets_[k].limit) v += (use[k] - budgets_[k].limit) / scale_[k];
        return v;
    }

    /// True when `labels` keeps all budgets afterwards. Precondition: no forbidden pairs.
    bool repair(std::vector<label>& labels) const {
        auto use = uses(labels);
        for (std::size_t step = 0; step < 4 * labels.size() + 16; ++step) {
            double const now = violation(use);
            if (now == 0) return true;
            double best_rate = forbidden;
            variable_id at;
            label to = 0;
            for (std::uint32_t v = 0; v < labels.size(); ++v) {
                if (!is_weighted(variable_id(v))) continue;
                for (label j = 0; j < g_.label_count(variable_id(v)); ++j) {
                    if (j == labels[v]) continue;
                    double const saved = now - violation(after(labels, use, {{variable_id(v), j}}));
                    if (!(saved > 0)) continue;
                    double const delta = move_delta(g_, labels, variable_id(v), j);
                    double const rate = delta > 0 ? delta / saved : delta * saved;
                    if (!(rate < best_rate)) continue;
                    best_rate = rate;
                    at = variable_id(v);
                    to = j;
                }
            }
            if (best_rate == forbidden) return false;
            labels[at.value] = to;
            use = uses(labels);
        }
        return false;
    }

    /// Precondition: `labels` keeps all budgets. At most `rounds` rounds.
    void descend(std::vector<label>& labels, std::size_t rounds = 4) const {
        auto use = uses(labels);
        auto const try_moves = [&](std::vector<move> const& moves, double delta) {
            if (!(delta < 0) || violation(after(labels, use, moves)) > 0) return false;
            auto const old = labels;
            for (auto const& [v, j] : moves) labels[v.value] = j;
            auto const exact = uses(labels);
            if (violation(exact) > 0) {  // the difference was rounded
                labels = old;
                return false;
            }
            use = exact;
            return true;
        };
        for (std::size_t r = 0; r < rounds; ++r) {
            bool any = false;
            for (std::uint32_t v = 0; v < labels.size(); ++v)
                for (label j = 0; j < g_.label_count(variable_id(v)); ++j)
                    if (j != labels[v]) any |= try_moves({{variable_id(v), j}}, move_delta(g_, labels, variable_id(v), j));
            for (auto const& e : g_.edges()) {
                if (g_.table(e.table).values.size() > most_pairs) continue;
                for (label a = 0; a < g_.label_count(e.u); ++a)
                    for (label b = 0; b < g_.label_count(e.v); ++b)
                        if (a != labels[e.u.value] && b != labels[e.v.value])
                            any |= try_moves({{e.u, a}, {e.v, b}}, move_delta(g_, labels, e.u, a, e.v, b));
            }
            if (!any) return;
        }
    }

    /// Takes from `outside` (lower energy, no forbidden pair) what pays and fits into the budgets. Precondition: `inside` keeps them.
    void mix(std::vector<label>& inside, std::span<label const> outside, std::span<double const> multipliers) const {
        auto const part_of = parts(inside, outside);
        std::uint32_t const none = static_cast<std::uint32_t>(inside.size());
        std::vector<choice> all;
        for (std::uint32_t v = 0; v < inside.size(); ++v)
            if (part_of[v] != none && part_of[v] == all.size()) all.push_back({});
        if (all.empty()) return;
        auto const base = uses(inside);
        for (std::uint32_t p = 0; p < all.size(); ++p) {
            auto moved = inside;
            for (std::uint32_t v = 0; v < inside.size(); ++v)
                if (part_of[v] == p) moved[v] = outside[v];
            all[p].saved = part_energy(inside, part_of, p) - part_energy(moved, part_of, p);
            all[p].used = uses(moved);
            for (std::size_t k = 0; k < base.size(); ++k) {
                all[p].used[k] -= base[k];
                all[p].price += multipliers[k] * std::max(all[p].used[k], 0.0);
            }
        }
        std::vector<bool> best(all.size(), false);
        if (all.size() <= most_parts) {
            double most = 0;
            for (std::uint32_t set = 1; set < 1u << all.size(); ++set) {
                auto use = base;
                double saved = 0;
                for (std::size_t p = 0; p < all.size(); ++p)
                    if (set >> p & 1) add(all[p], use, saved);
                if (!(saved > most) || violation(use) > 0) continue;
                most = saved;
                for (std::size_t p = 0; p < all.size(); ++p) best[p] = set >> p & 1;
            }
        } else {
            std::vector<std::size_t> order(all.size());
            for (std::size_t p = 0; p < order.size(); ++p) order[p] = p;
            std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
                return all[a].saved * (all[b].price + 1e-12) > all[b].saved * (all[a].price + 1e-12);
            });
            auto use = base;
            for (auto p : order) {
                auto trial = use;
                double saved = 0;
                add(all[p], trial, saved);
                if (!(saved > 0) || violation(trial) > 0) continue;
                use = trial;
                best[p] = true;
            }
        }
        auto mixed = inside;
        for (std::uint32_t v = 0; v < inside.size(); ++v)
            if (part_of[v] != none && best[part_of[v]]) mixed[v] = outside[v];
        if (violation(uses(mixed)) == 0 && energy(g_, mixed) < energy(g_, inside)) inside = std::move(mixed);
    }

private:
    using move = std::pair<variable_id, label>;
    struct choice {
        double saved = 0, price = 0;
        std::vector<double> used;
    };
    static constexpr std::size_t most_parts = 12, most_pairs = 256;
    factor_graph const& g_;
    std::span<linear_budget const> budgets_;
    std::vector<double> scale_;

    static void add(choice const& c, std::vector<double>& use, double& saved) {
        saved += c.saved;
        for (std::size_t k = 0; k < use.size(); ++k) use[k] += c.used[k];
    }
    bool is_weighted(variable_id v) const {
        for (auto const& b : budgets_) {
            if (b.weights(v)) return true;
            for (edge_id e : g_.incident(v))
                if (b.weights(e)) return true;
        }
        return false;
    }
    /// Uses after moves of one variable, or of both ends of an edge.
    std::vector<double> after(std::span<label const> labels, std::span<double const> use, std::vector<move> const& moves) const {
        std::vector<double> out(use.begin(), use.end());
        auto const label_after = [&](variable_id v) {
            for (auto const& [w, j] : moves)
                if (w == v) return j;
            return labels[v.value];
        };
        for (std::size_t k = 0; k < budgets_.size(); ++k) {
            auto const& b = budgets_[k];
            if (b.of_variable.empty() && b.of_edge.empty()) continue;
            for (std::size_t i = 0; i < moves.size(); ++i) {
                auto const v = moves[i].first;
                if (auto const* w = b.weights(v)) out[k] += (*w)[moves[i].second] - (*w)[labels[v.value]];
                if (b.of_edge.empty()) continue;
                for (edge_id id : g_.incident(v)) {
                    auto const* w = b.weights(id);
                    if (!w) continue;
                    auto const& e = g_.edge(id);
                    if (i > 0 && (e.u == moves[0].first || e.v == moves[0].first)) continue;  // counted with the first
                    out[k] += (*w)(label_after(e.u), label_after(e.v)) - (*w)(labels[e.u.value], labels[e.v.value]);
                }
            }
        }
        return out;
    }
    /// [variable] -> connected part of the variables that differ, numbered in order of their first variables; n for equal ones.
    std::vector<std::uint32_t> parts(std::span<label const> a, std::span<label const> b) const {
        auto const n = static_cast<std::uint32_t>(a.size());
        std::vector<std::uint32_t> part(n, n);
        std::uint32_t next = 0;
        for (std::uint32_t v = 0; v < n; ++v) {
            if (a[v] == b[v] || part[v] != n) continue;
            std::vector<std::uint32_t> open{v};
            part[v] = next;
            while (!open.empty()) {
                auto const w = open.back();
                open.pop_back();
                for (edge_id id : g_.incident(variable_id(w))) {
                    auto const& e = g_.edge(id);
                    auto const x = e.u.value == w ? e.v.value : e.u.value;
                    if (a[x] == b[x] || part[x] != n) continue;
                    part[x] = next;
                    open.push_back(x);
                }
            }
            ++next;
        }
        return part;
    }
    /// Energy of the terms that part p touches; every edge is counted once, as both ends are in p or one is no part at all.
    double part_energy(std::span<label const> labels, std::span<std::uint32_t const> part_of, std::uint32_t p) const {
        exact_enough_sum sum;
        for (std::uint32_t v = 0; v < labels.size(); ++v)
            if (part_of[v] == p) sum.add(g_.costs(variable_id(v))[labels[v]]);
        for (auto const& e : g_.edges())
            if (part_of[e.u.value] == p || part_of[e.v.value] == p) sum.add(g_.pair_cost(e, labels[e.u.value], labels[e.v.value]));
        return sum.value();
    }
};

}  // namespace cantle::mrf::detail
