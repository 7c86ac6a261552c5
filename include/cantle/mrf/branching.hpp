// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: branch and bound over a graph whose bound no longer rises needs the variable to branch on.
// Idea: cycles are what keeps the bound of trws.hpp from the optimum and what makes exact elimination dear [1]. The variable without which
// elimination is cheapest, all its labels counted, is on the most of them; with its label fixed the rest is often easy (a cutset of loops
// [2]).
// Complexity: one greedy elimination order per variable. Deterministic: ties go to the lower number.
// [1] U. Bertele, F. Brioschi, "Nonserial Dynamic Programming", 1972. [2] R. Dechter, "Enhancement schemes for constraint processing:
// backjumping, learning, and cutset decomposition", Artificial Intelligence 41 (1990).
#include <cantle/base/assert.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <cstdint>
#include <vector>

namespace cantle::mrf::detail {

/// The variable to branch on. Precondition: g has one.
inline std::uint32_t branching_variable(factor_graph const& g) {
    CANTLE_ASSERT(g.variable_count() > 0, "there is a variable to branch on");
    auto const near = neighbours(g);
    std::vector<double> counts;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) counts.push_back(g.label_count(variable_id(v)));
    std::uint32_t chosen = 0;
    double least = forbidden;
    for (std::uint32_t v = 0; v < near.size(); ++v) {
        if (g.label_count(variable_id(v)) == 1) continue;
        auto fixed = counts;
        fixed[v] = 1;
        auto const plan = greedy_order(near, fixed, false, forbidden, forbidden);
        if (plan->work * counts[v] >= least) continue;
        least = plan->work * counts[v];
        chosen = v;
    }
    return chosen;
}

}  // namespace cantle::mrf::detail
