// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a good labelling early, from a poor one: reduced-cost fixing removes labels only as far as the best energy known is near.
// Idea: a planning problem is nearly a tree with a few hubs. With the labels of a cutset fixed, all other variables are optimised together
// by exact elimination [1] (a neighbourhood of exponential size, searched in linear time). Greedy elimination, cheapest variable first,
// finds the cutset: where the next step would be too dear, a hub of it is fixed instead. Hubs take turns: one that was fixed less often is
// fixed first, so that after a few rounds each variable has been free.
// Invariant: the energy never grows. Ends after a number of rounds without an improvement.
// Complexity: per round one greedy order and at most n steps of `step_work` label tuples. Whole-number costs: sums are exact.
// Deterministic: ties go to the lower number.
// [1] R. Dechter, "Enhancement schemes for constraint processing: backjumping, learning, and cutset decomposition", Artificial
// Intelligence 41 (1990).
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace cantle::mrf {

namespace detail {

/// Optimises the variables of `block` together, the others' labels fixed. `plan`: of the graph of the block alone, variables numbered as
/// listed. Precondition: the energy of `labels` is finite.
inline void improve_block(factor_graph const& g, std::span<std::uint32_t const> block, elimination_plan const& plan,
                          std::vector<label>& labels) {
    constexpr auto none = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> place(labels.size(), none);
    for (std::uint32_t i = 0; i < block.size(); ++i) place[block[i]] = i;
    // The block given the rest. A label that a fixed neighbour forbids gets a price above everything the block could save; label costs
    // must be finite, and the labels it has now are allowed.
    double now = 0, least = 0;
    std::vector<std::vector<double>> costs(block.size());
    std::vector<pairwise_edge> edges;
    for (std::uint32_t i = 0; i < block.size(); ++i) {
        auto const own = g.costs(variable_id(block[i]));
        costs[i].assign(own.begin(), own.end());
        for (edge_id id : g.incident(variable_id(block[i]))) {
            auto const& e = g.edge(id);
            bool const is_u = e.u.value == block[i];
            auto const other = is_u ? e.v.value : e.u.value;
            if (place[other] == none) {
                for (label j = 0; j < costs[i].size(); ++j)
                    costs[i][j] += is_u ? g.pair_cost(e, j, labels[other]) : g.pair_cost(e, labels[other], j);
            } else if (is_u) {
                edges.push_back(e);
                now += g.pair_cost(e, labels[e.u.value], labels[e.v.value]);
                least += min_of(g.table(e.table).values.data(), g.table(e.table).values.size());
            }
        }
        now += costs[i][labels[block[i]]];
        least += min_of(costs[i].data(), costs[i].size());
    }
    double const most = now - least + 1;  // above the least cost of its variable: no labelling that pays it is better than now
    factor_graph inside;
    for (auto& c : costs) {
        double const dear = min_of(c.data(), c.size()) + most;
        for (double& x : c) x = std::min(x, dear);
        inside.add_variable(std::move(c));
    }
    for (auto const& e : edges)
        inside.add_edge(variable_id(place[e.u.value]), variable_id(place[e.v.value]), inside.add_table(g.shared_table(e.table)), e.use);
    auto const exact = bucket_elimination(inside, plan, 1);
    if (!(exact.energy < now)) return;
    for (std::uint32_t i = 0; i < block.size(); ++i) labels[block[i]] = exact.labels[i];
}

}  // namespace detail

class cutset_search {
public:
    /// Keeps a reference to g. `step_work`: label tuples that the elimination of one variable may visit.
    cutset_search(factor_graph const& g, double step_work)
        : g_(&g), step_work_(step_work), near_(detail::neighbours(g)), times_fixed_(g.variable_count(), 0) {
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) counts_.push_back(g.label_count(variable_id(v)));
    }

    /// Improves `labels`, whose energy is finite, until `patience` rounds in a row did not or about `work` label tuples are spent. Returns
    /// true when something changed.
    bool run(std::vector<label>& labels, int patience, double work) {
        bool any = false;
        double const overhead = round_work(counts_.size());
        for (int idle = 0; idle < patience && spent_ + overhead <= work; ++idle) {
            auto const before = labels;
            elimination_plan plan;
            auto const block = next_block(plan);
            detail::improve_block(*g_, block, plan, labels);
            spent_ += overhead + plan.work;
            if (labels == before) continue;
            any = true;
            idle = -1;
        }
        return any;
    }
    /// What a round costs besides elimination, in label tuples (measured: some 4 us per variable).
    static double round_work(std::size_t variables) { return 16384.0 * static_cast<double>(variables); }
    double spent() const { return spent_; }  ///< in label tuples

private:
    factor_graph const* g_;
    double step_work_, spent_ = 0;
    std::vector<std::vector<std::uint32_t>> near_;
    std::vector<double> counts_;
    std::vector<std::uint32_t> times_fixed_;

    /// All variables but those of a cutset, and how to eliminate them: in the order listed.
    std::vector<std::uint32_t> next_block(elimination_plan& plan) {
        auto near = near_;
        std::vector<double> now(near.size());
        std::set<std::pair<double, std::uint32_t>> queue;
        auto const work = [&](std::uint32_t v) {
            double w = counts_[v];
            for (auto x : near[v]) w *= counts_[x];
            return w;
        };
        for (std::uint32_t v = 0; v < near.size(); ++v) queue.emplace(now[v] = work(v), v);
        auto const renew = [&](std::uint32_t v) {
            queue.erase({now[v], v});
            queue.emplace(now[v] = work(v), v);
        };
        std::vector<std::uint32_t> free;
        while (!queue.empty()) {
            auto const v = queue.begin()->second;
            if (now[v] > step_work_) {
                auto hub = v;
                for (auto w : near[v]) {
                    auto const rank = [&](std::uint32_t x) { return std::pair{-static_cast<double>(times_fixed_[x]), counts_[x]}; };
                    if (rank(w) > rank(hub)) hub = w;
                }
                ++times_fixed_[hub];
                queue.erase({now[hub], hub});
                for (auto w : near[hub]) {
                    std::erase(near[w], hub);
                    renew(w);
                }
                continue;
            }
            queue.erase(queue.begin());
            plan.order.push_back(static_cast<std::uint32_t>(free.size()));
            plan.work += now[v];
            free.push_back(v);
            for (auto a : near[v]) {
                std::vector<std::uint32_t> merged;
                std::set_union(near[a].begin(), near[a].end(), near[v].begin(), near[v].end(), std::back_inserter(merged));
                std::erase_if(merged, [a, v](auto w) { return w == a || w == v; });
                near[a] = std::move(merged);
            }
            for (auto a : near[v]) renew(a);
        }
        return free;
    }
};

}  // namespace cantle::mrf
