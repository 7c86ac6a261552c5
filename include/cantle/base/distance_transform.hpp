// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a vector over the vertices of a weighted digraph is to be closed under its edges,
//      d[k] := min_j d[j] + dist(j, k)          (the min-plus product with the matrix of all distances, never formed).
// Idea: the distance transform [1] on a graph instead of a grid: relax d[k] = min(d[k], d[j] + length(j, k)) over all edges until nothing
// changes. Passes go forth and back over the vertices, each vertex pulling from all its predecessors, so that what one pass finds is used
// in the same pass. Shortest paths of few edges need few passes; a last pass sees that nothing changes.
// Complexity: O(edges) per pass, without allocation; passes: one more than the most edges of a shortest path that no pass order serves.
// Exactness: lengths are >= 0 and d may hold +infinity. On whole numbers below 2^53 the result is exact; otherwise d[k] is the least, over
// all paths, of their sums from the source on, as Dijkstra's algorithm has it: the same bits.
// [1] P. Felzenszwalb, D. Huttenlocher, "Distance transforms of sampled functions", Theory of Computing 8 (2012) 415-428.
#include <cantle/base/assert.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cantle {

/// One edge of a weighted digraph; the length is finite and >= 0.
struct weighted_edge {
    std::uint32_t from = 0, to = 0;
    double length = 0;
};

class distance_graph {
public:
    distance_graph() = default;
    /// Vertices 0..n-1. Parallel edges are allowed.
    distance_graph(std::size_t n, std::span<weighted_edge const> edges) : first_(n + 1, 0), from_(edges.size()), length_(edges.size()) {
        for (auto const& e : edges) {
            CANTLE_ASSERT(e.from < n && e.to < n && e.length >= 0, "edges join vertices, lengths are not negative");
            ++first_[e.to + 1];
        }
        for (std::size_t v = 0; v < n; ++v) first_[v + 1] += first_[v];
        std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
        for (auto const& e : edges) {
            from_[fill[e.to]] = e.from;
            length_[fill[e.to]++] = e.length;
        }
    }

    std::size_t size() const { return first_.size() - 1; }
    std::size_t edge_count() const { return from_.size(); }

    /// Closes d, of size() entries. Returns the number of passes.
    std::size_t transform(double* d) const {
        std::size_t const n = size();
        for (std::size_t passes = 1;; ++passes) {
            bool changed = false;
            if (passes & 1)
                for (std::size_t v = 0; v < n; ++v) changed |= pull(v, d);
            else
                for (std::size_t v = n; v-- > 0;) changed |= pull(v, d);
            if (!changed) return passes;
        }
    }

    /// The same, with the graph whose edges all point the other way. After one pass forth and one back few vertices change any more: those
    /// tell their successors, which `reverse` lists, instead of all vertices asking all predecessors again. Half the time of transform().
    void transform(double* d, distance_graph const& reverse) const {
        std::size_t const n = size();
        static thread_local std::vector<std::uint32_t> queue;
        static thread_local std::vector<char> waits;
        queue.clear();
        waits.assign(n, 0);
        for (std::size_t v = 0; v < n; ++v) pull(v, d);
        for (std::size_t v = n; v-- > 0;)
            if (pull(v, d)) {
                queue.push_back(static_cast<std::uint32_t>(v));
                waits[v] = 1;
            }
        for (std::size_t next = 0; next < queue.size(); ++next) {
            auto const v = queue[next];
            waits[v] = 0;
            double const own = d[v];
            for (std::uint32_t e = reverse.first_[v]; e < reverse.first_[v + 1]; ++e) {
                double const x = own + reverse.length_[e];
                auto const to = reverse.from_[e];
                if (!(x < d[to])) continue;
                d[to] = x;
                if (waits[to]) continue;
                waits[to] = 1;
                queue.push_back(to);
            }
        }
    }

    /// Vectors that transform_many closes at once.
    static constexpr std::size_t lanes = 8;

    /// Closes `lanes` vectors, d[v * lanes + lane]: each as transform() does, at a third of its time.
    void transform_many(double* d) const {
        std::size_t const n = size();
        for (bool forth = true, changed = true; changed; forth = !forth) {
            changed = false;
            for (std::size_t i = 0; i < n; ++i) changed |= pull_many(forth ? i : n - 1 - i, d);
        }
    }

private:
    std::vector<std::uint32_t> first_ = {0}, from_;  // edges by target
    std::vector<double> length_;

    // Four chains of minima, so that none waits for the one before. (Gather instructions were slower on the machine measured.)
    bool pull(std::size_t v, double* d) const {
        double best[4] = {d[v], d[v], d[v], d[v]};
        std::uint32_t e = first_[v];
        std::uint32_t const last = first_[v + 1];
        for (; e + 4 <= last; e += 4)
            for (std::uint32_t k = 0; k < 4; ++k) {
                double const x = d[from_[e + k]] + length_[e + k];
                best[k] = x < best[k] ? x : best[k];
            }
        for (; e < last; ++e) {
            double const x = d[from_[e]] + length_[e];
            best[0] = x < best[0] ? x : best[0];
        }
        double const a = best[0] < best[1] ? best[0] : best[1], b = best[2] < best[3] ? best[2] : best[3];
        double const low = a < b ? a : b;
        if (!(low < d[v])) return false;
        d[v] = low;
        return true;
    }
    bool pull_many(std::size_t v, double* d) const {
        double best[lanes];
        double* const own = d + v * lanes;
        for (std::size_t k = 0; k < lanes; ++k) best[k] = own[k];
        for (std::uint32_t e = first_[v]; e < first_[v + 1]; ++e) {
            double const length = length_[e];
            double const* from = d + from_[e] * lanes;
            for (std::size_t k = 0; k < lanes; ++k) {
                double const x = from[k] + length;
                best[k] = x < best[k] ? x : best[k];
            }
        }
        bool changed = false;
        for (std::size_t k = 0; k < lanes; ++k) {
            changed |= best[k] < own[k];
            own[k] = best[k];
        }
        return changed;
    }
};

}  // namespace cantle
