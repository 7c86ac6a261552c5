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
#include <cantle/base/control.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/cutset_search.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

    /// Improves `labels`, whose energy is finite, with at most about `work` label tuples and until `limits` expire. Returns true when
    /// something changed.
    bool run(std::vector<label>& labels, double work, control const& limits = {}) {
        bool any = false;
        for (bool again = true; again && spent_ < work && !limits.expired();) {
            again = false;
            for (std::uint32_t v = 0; v < counts_.size() && spent_ < work && !limits.expired(); ++v) again |= improve_around(v, labels);
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

    bool improve_around(std::uint32_t v, std::vector<label>& labels) {
        std::vector<std::uint32_t> block;
        std::optional<elimination_plan> plan;
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
            if (auto larger = detail::greedy_order(std::move(near), counts, false, most_entries, block_work_)) {
                plan = std::move(larger);
                continue;
            }
            place[w] = none;
            block.pop_back();
        }
        if (!plan) return false;
        auto const before = labels;
        detail::improve_block(*g_, block, *plan, labels);
        spent_ += plan->work;
        return labels != before;
    }

    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace cantle::mrf
