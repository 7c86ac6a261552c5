// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random factor graphs of the shapes that the solver tests run over. The generator is std::mt19937_64 with arithmetic of our own on top,
// because the distributions of the standard library differ between implementations.
#include <cantle/mrf/factor_graph.hpp>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf::testing {

class dice {
public:
    explicit dice(std::uint64_t seed) : bits_(seed) {}
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(bits_() % n); }
    double unit() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
    bool chance(double p) { return unit() < p; }

private:
    std::mt19937_64 bits_;
};

enum class shape { tree, grid, full, star, pieces, doubled };
inline constexpr shape all_shapes[] = {shape::tree, shape::grid, shape::full, shape::star, shape::pieces, shape::doubled};

inline char const* name(shape s) {
    switch (s) {
        case shape::tree: return "tree";
        case shape::grid: return "grid";
        case shape::full: return "full";
        case shape::star: return "star";
        case shape::pieces: return "pieces";
        case shape::doubled: return "doubled";
    }
    return "?";
}

/// Where the costs come from.
enum class costs {
    real,       ///< uniform in [-10, 90)
    tied,       ///< 0, 1 or 2: many optima
    magnitude,  ///< 10^-3 to 10^9, both signs
    whole,      ///< whole numbers in [-50, 50)
};
inline constexpr costs all_costs[] = {costs::real, costs::tied, costs::magnitude, costs::whole};

inline double draw(dice& d, costs c) {
    switch (c) {
        case costs::real: return d.unit() * 100 - 10;
        case costs::tied: return d.below(3);
        case costs::magnitude: return std::pow(10.0, d.unit() * 12 - 3) * (d.chance(0.3) ? -1 : 1);
        case costs::whole: return static_cast<double>(d.below(100)) - 50;
    }
    return 0;
}

inline std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_of(shape s, std::uint32_t n, dice& d) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> e;
    switch (s) {
        case shape::tree:
            for (std::uint32_t v = 1; v < n; ++v) e.emplace_back(v, d.below(v));
            break;
        case shape::grid: {  // 0-1-2 / 3-4-5 / ..: rows of three
            for (std::uint32_t v = 0; v < n; ++v) {
                if (v % 3 != 2 && v + 1 < n) e.emplace_back(v, v + 1);
                if (v + 3 < n) e.emplace_back(v + 3, v);
            }
            break;
        }
        case shape::full:
            for (std::uint32_t v = 0; v < n; ++v)
                for (std::uint32_t w = v + 1; w < n; ++w) e.emplace_back(v, w);
            break;
        case shape::star:
            for (std::uint32_t v = 1; v < n; ++v) e.emplace_back(0, v);
            break;
        case shape::pieces:  // two triangles, what is left is isolated
            if (n >= 3) e = {{0, 1}, {1, 2}, {2, 0}};
            if (n >= 6) e.insert(e.end(), {{3, 4}, {4, 5}, {5, 3}});
            break;
        case shape::doubled:  // a ring with every edge twice, in both directions
            for (std::uint32_t v = 0; v + 1 < n; ++v) {
                e.emplace_back(v, v + 1);
                e.emplace_back(v + 1, v);
            }
            if (n > 2) e.emplace_back(n - 1, 0);
            break;
    }
    return e;
}

struct graph_options {
    std::uint32_t variables = 6, labels = 3;  ///< labels: 1 to this many
    double forbidden_pairs = 0;               ///< chance of a pair to be forbidden
    bool equal_labels = false;                ///< all variables have `labels` labels
};

inline factor_graph random_graph(shape s, costs c, graph_options const& o, dice& d) {
    factor_graph g;
    for (std::uint32_t v = 0; v < o.variables; ++v) {
        std::vector<double> unary(o.equal_labels ? o.labels : 1 + d.below(o.labels));
        for (double& x : unary) x = draw(d, c);
        g.add_variable(std::move(unary));
    }
    for (auto [u, v] : edges_of(s, o.variables, d)) {
        bool const transposed = d.chance(0.5);
        auto const rows = g.label_count(variable_id(transposed ? v : u)), cols = g.label_count(variable_id(transposed ? u : v));
        cost_table t{rows, cols, std::vector<double>(std::size_t{rows} * cols)};
        for (double& x : t.values) x = d.chance(o.forbidden_pairs) ? forbidden : draw(d, c);
        g.add_edge(variable_id(u), variable_id(v), g.add_table(std::move(t)), transposed ? table_use::transposed : table_use::straight);
    }
    return g;
}

/// Calls f(graph, description) for every shape, kind of costs and density of forbidden pairs, `repeats` times each.
template <class F>
void for_random_graphs(std::uint64_t seed, int repeats, graph_options o, F f) {
    for (int r = 0; r < repeats; ++r)
        for (shape s : all_shapes)
            for (costs c : all_costs)
                for (double p : {0.0, 0.15, 0.4}) {
                    dice d(seed);
                    o.forbidden_pairs = p;
                    auto const g = random_graph(s, c, o, d);
                    f(g, std::string(name(s)) + ", costs " + std::to_string(static_cast<int>(c)) + ", forbidden " + std::to_string(p) +
                             ", seed " + std::to_string(seed));
                    ++seed;
                }
}

}  // namespace cantle::mrf::testing
