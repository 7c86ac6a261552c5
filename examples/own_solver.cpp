// SPDX-License-Identifier: BSL-1.0
// A potential and a solver of one's own, on a problem without any sharding: a noisy picture of 4 greys is restored on a Boost graph.
#include <cantle/mrf/trws_search.hpp>

#include <boost/graph/adjacency_list.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace mrf = cantle::mrf;
/// Neighbours pay for their difference, but an edge of the picture no more than `most`. The first three members are all that is needed.
struct truncated_linear {
    std::size_t greys;
    double slope, most;
    std::size_t rows() const { return greys; }
    std::size_t cols() const { return greys; }
    double operator()(mrf::label a, mrf::label b) const { return std::min(most, slope * std::abs(double(a) - double(b))); }
    truncated_linear quantised(double unit) const { return {greys, std::floor(slope / unit), std::floor(most / unit)}; }  // stays small
};
struct pixel { std::vector<double> costs; };  // of each grey
struct coupling { truncated_linear potential; };
using picture = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, pixel, coupling>;
/// Simulated annealing, called as cantle's solvers are. Its bound: every term at its least.
mrf::search_result anneal(picture const& g, auto unary, auto potential) {
    mrf::pairwise_problem const p(g, unary, potential);
    mrf::search_result r{std::vector<mrf::label>(p.variable_count()), 0, 0};
    for (std::size_t v = 0; v < num_vertices(g); ++v) r.lower_bound += *std::ranges::min_element(g[v].costs);
    for (auto const& e : p.edges()) r.lower_bound += mrf::lowest(e.potential);
    std::minstd_rand dice(1);
    for (double heat = 4; heat > 0.02; heat *= 0.9999) {
        mrf::variable_id const v(static_cast<std::uint32_t>(dice() % p.variable_count()));
        auto const to = static_cast<mrf::label>(dice() % p.label_count(v));
        if (std::exp(-move_delta(p, r.labels, v, to) / heat) > double(dice() % 1000) / 1000) r.labels[v.value] = to;
    }
    r.energy = energy(p, r.labels);
    return r;
}
int main() {
    std::size_t const width = 32, height = 12;
    std::minstd_rand dice(7);
    picture g(width * height);
    for (std::size_t i = 0; i < width * height; ++i) {
        auto const seen = dice() % 3 ? i % width / 8 : dice() % 4;  // four stripes, a quarter of them noise
        for (int grey = 0; grey < 4; ++grey) g[i].costs.push_back(2 * std::abs(grey - double(seen)));
        if (i % width + 1 < width) add_edge(i, i + 1, {{4, 1.5, 3.5}}, g);
        if (i + width < width * height) add_edge(i, i + width, {{4, 1.5, 3.5}}, g);
    }
    auto const unary = get(&pixel::costs, g);
    auto const potential = get(&coupling::potential, g);
    auto const own = anneal(g, unary, potential), best = mrf::trws_search(g, unary, potential);
    std::printf("own solver:     energy %.1f, bound %.1f\ncantle's TRW-S: energy %.1f, bound %.1f\n", own.energy, own.lower_bound,
                best.energy, best.lower_bound);
    for (std::size_t y = 0; y < height; ++y, std::puts(""))
        for (std::size_t x = 0; x < width; ++x) std::putchar(" .o#"[best.labels[y * width + x]]);
    return best.lower_bound <= best.energy && best.lower_bound <= own.energy && best.energy <= own.energy ? 0 : 1;
}
