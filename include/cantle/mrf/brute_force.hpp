// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: the optimum without any doubt, as the measure of all other solvers in tests.
// Idea: every labelling, one after another in lexicographic order (an odometer whose last variable turns fastest).
// Complexity: product of all label counts, times the number of terms. Limit: 2^24 labellings.
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <cstdint>
#include <vector>

namespace cantle::mrf {

/// The first labelling (in lexicographic order) of least energy. Its energy is `forbidden` when no labelling is allowed.
struct brute_force_result {
    std::vector<label> labels;
    double energy = forbidden;
};

/// Tries all labellings. Throws bad_field above 2^24 of them.
template <PairwiseProblem G>
brute_force_result brute_force(G const& g) {
    double count = 1;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) count *= g.label_count(variable_id(v));
    if (count > 16777216.0) throw error(error_code::bad_field, "brute force", "more than 2^24 labellings", "use solve");
    std::vector<label> x(g.variable_count(), 0);
    brute_force_result best{x, forbidden};
    while (true) {
        if (double const e = energy(g, x); e < best.energy) best = {x, e};
        std::size_t v = x.size();
        while (v > 0 && ++x[v - 1] == g.label_count(variable_id(static_cast<std::uint32_t>(v - 1)))) x[--v] = 0;
        if (v == 0) return best;
    }
}

/// The same for a graph with property maps (pairwise_problem.hpp): labels are in the order of the index.
template <class G, class Unary, class Potentials, class Index>
brute_force_result brute_force(G const& g, Unary const& unary, Potentials const& potential, Index const& index) {
    return brute_force(pairwise_problem(g, unary, potential, index));
}
template <class G, class Unary, class Potentials>
brute_force_result brute_force(G const& g, Unary const& unary, Potentials const& potential) {
    return brute_force(pairwise_problem(g, unary, potential));
}

}  // namespace cantle::mrf
