// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a labelling that no change of one or two variables improves may still be far from the optimum.
// Idea: large neighbourhood search [1] with exact elimination. Around each variable in turn, as many variables are freed, nearest first,
// as bucket elimination can optimise together within a work limit; the others keep their labels. A variable that would make elimination
// too dear is passed over, so that the block is what is left of the graph without a few hubs: of a planning problem nearly all of it.
// Invariant: the energy never grows. Ends when a round over all variables improves nothing, or with the work allowed.
// Complexity: per block its elimination work, and n orders of at most most_free variables. Whole-number costs: sums are exact.
// Deterministic: variables in order of breadth-first search, then by number.
// [1] R. Ahuja, O. Ergun, J. Orlin, A. Punnen, "A survey of very large-scale neighborhood search techniques", Discrete Applied Mathematics
// 123 (2002) 75-102.
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace cantle::mrf {

class block_search {
public:
    /// Keeps a reference to g. `block_work`: label tuples that the elimination of one block may visit.
    block_search(factor_graph const& g, double block_work) : g_(&g), block_work_(block_work), near_(detail::neighbours(g)) {
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) counts_.push_back(g.label_count(variable_id(v)));
    }

    /// Improves `labels`, whose energy is finite, with at most about `work` label tuples. Returns true when something changed.
    bool run(std::vector<label>& labels, double work) {
        bool any = false;
        for (bool again = true; again && spent_ < work;) {
            again = false;
            for (std::uint32_t v = 0; v < counts_.size() && spent_ < work; ++v) again |= improve_around(v, labels);
            any |= again;
        }
        return any;
    }

private:
    static constexpr std::size_t most_free = 64, most_seen = 96;
    factor_graph const* g_;
    double block_work_, spent_ = 0;
    std::vector<std::vector<std::uint32_t>> near_;
    std::vector<double> counts_;

    /// Variables around v, nearest first.
    std::vector<std::uint32_t> around(std::uint32_t v) const {
        std::vector<char> seen(counts_.size(), 0);
        std::vector<std::uint32_t> list{v};
        seen[v] = 1;
        for (std::size_t i = 0; i < list.size() && list.size() < most_seen; ++i)
            for (auto w : near_[list[i]])
                if (!seen[w]) {
                    seen[w] = 1;
                    list.push_back(w);
                }
        return list;
    }

    /// The variables of the block around v, in increasing order.
    std::vector<std::uint32_t> block_of(std::uint32_t v) {
        std::vector<std::uint32_t> block;
        std::vector<std::uint32_t> place(counts_.size(), none);
        double const most_entries = block_work_ / 8;
        for (auto w : around(v)) {
            if (block.size() == most_free) break;
            place[w] = static_cast<std::uint32_t>(block.size());
            block.push_back(w);
            std::vector<std::vector<std::uint32_t>> near(block.size());
            std::vector<double> counts(block.size());
            for (std::uint32_t i = 0; i < block.size(); ++i) {
                counts[i] = counts_[block[i]];
                for (auto x : near_[block[i]])
                    if (place[x] != none) near[i].push_back(place[x]);
                std::sort(near[i].begin(), near[i].end());
            }
            spent_ += 64.0 * static_cast<double>(block.size());  // an order costs about as much
            if (detail::greedy_order(std::move(near), counts, false, most_entries, block_work_)) continue;
            place[w] = none;
            block.pop_back();
        }
        std::sort(block.begin(), block.end());
        return block;
    }

    bool improve_around(std::uint32_t v, std::vector<label>& labels) {
        auto const block = block_of(v);
        std::vector<std::uint32_t> place(counts_.size(), none);
        for (std::uint32_t i = 0; i < block.size(); ++i) place[block[i]] = i;
        // The block given the rest. A label that a fixed neighbour forbids gets a price above everything the block could save; label costs
        // must be finite, and the labels it has now are allowed.
        double now = 0, most = 1;
        std::vector<std::vector<double>> costs(block.size());
        for (std::uint32_t i = 0; i < block.size(); ++i) {
            auto const own = g_->costs(variable_id(block[i]));
            costs[i].assign(own.begin(), own.end());
            for (edge_id id : g_->incident(variable_id(block[i]))) {
                auto const& e = g_->edge(id);
                bool const is_u = e.u.value == block[i];
                auto const other = is_u ? e.v.value : e.u.value;
                if (place[other] != none) continue;
                for (label j = 0; j < costs[i].size(); ++j)
                    costs[i][j] += is_u ? g_->pair_cost(e, j, labels[other]) : g_->pair_cost(e, labels[other], j);
            }
            now += costs[i][labels[block[i]]];
        }
        factor_graph inside;
        std::vector<pairwise_edge> edges;
        for (std::uint32_t i = 0; i < block.size(); ++i)
            for (edge_id id : g_->incident(variable_id(block[i]))) {
                auto const& e = g_->edge(id);
                if (e.u.value != block[i] || place[e.v.value] == none) continue;
                edges.push_back(e);
                now += g_->pair_cost(e, labels[e.u.value], labels[e.v.value]);
            }
        double least = 0;
        for (auto const& c : costs) least += detail::min_of(c.data(), c.size());
        for (auto const& e : edges) least += detail::min_of(g_->table(e.table).values.data(), g_->table(e.table).values.size());
        most = now - least + 1;  // above the least cost of its variable: no labelling that pays it is better than now
        for (auto& c : costs) {
            double const dear = detail::min_of(c.data(), c.size()) + most;
            for (double& x : c) x = std::min(x, dear);
            inside.add_variable(c);
        }
        for (auto const& e : edges)
            inside.add_edge(variable_id(place[e.u.value]), variable_id(place[e.v.value]), inside.add_table(g_->shared_table(e.table)),
                            e.use);
        auto const plan = plan_elimination(inside, block_work_ / 8, block_work_);
        if (!plan) return false;
        spent_ += plan->work;
        auto const exact = bucket_elimination(inside, *plan);
        if (!(exact.energy < now)) return false;
        for (std::uint32_t i = 0; i < block.size(); ++i) labels[block[i]] = exact.labels[i];
        return true;
    }

    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace cantle::mrf
