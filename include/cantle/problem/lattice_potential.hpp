// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: on four mesh axes two groups have 1,300 layouts each, so that a table of all moves between them has 1.7 million prices, and a
// table per edge does not fit into memory or time.
// Idea: prices of moves are distances on the placement lattice (mesh/placement_lattice.hpp), and the min-plus product with a matrix of
// distances is a distance transform (base/distance_transform.hpp): labels are mapped to lattice states, states are relaxed, and states are
// mapped back. No pair is ever priced. In whole numbers: every step's price is rounded down, so that a path costs at most what it costs.
//
//      theta(r, c) = weight * dist(state of r, state of c) + tie * [layouts differ]
//
// Complexity: a product takes O(lattice edges) per pass of the transform, three to seven of them; 2x2x2x4 and rank 4: 0.1 ms.
#include <cantle/base/distance_transform.hpp>
#include <cantle/mrf/potential.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace cantle {

/// Distances of one tensor class, in both directions; edges that move such tensors share it.
struct lattice_metric {
    distance_graph forward;    ///< d[k] = min_j d[j] + dist(j, k)
    distance_graph backward;   ///< d[j] = min_k d[k] + dist(j, k)
    double tie = 0;            ///< added where layouts differ
};

/// A potential (mrf/potential.hpp) whose rows and columns are labels with a lattice state each.
class lattice_potential {
public:
    using states = std::shared_ptr<std::vector<std::uint32_t> const>;  ///< [label] -> state

    lattice_potential(std::shared_ptr<lattice_metric const> metric, states of_row, states of_col)
        : metric_(std::move(metric)), of_row_(std::move(of_row)), of_col_(std::move(of_col)) {}

    std::size_t rows() const { return of_row_->size(); }
    std::size_t cols() const { return of_col_->size(); }
    /// A whole transform for one entry.
    double operator()(mrf::label r, mrf::label c) const {
        std::vector<std::uint32_t> const one{(*of_col_)[c]};
        double price = 0;
        slice(metric_->forward, metric_->backward, (*of_row_)[r], one, &price);
        return price;
    }
    /// Distances are not negative: a lower bound is all that message passing asks for.
    double lowest() const { return 0; }
    std::size_t work() const { return metric_->forward.edge_count(); }

    void min_plus_over_rows(double const* in, double* out) const {
        product(metric_->forward, metric_->backward, *of_row_, *of_col_, in, out);
    }
    void min_plus_over_cols(double const* in, double* out) const {
        product(metric_->backward, metric_->forward, *of_col_, *of_row_, in, out);
    }
    /// One transform each.
    void add_row(mrf::label r, double* to) const { slice(metric_->forward, metric_->backward, (*of_row_)[r], *of_col_, to); }
    void add_col(mrf::label c, double* to) const { slice(metric_->backward, metric_->forward, (*of_col_)[c], *of_row_, to); }

private:
    std::shared_ptr<lattice_metric const> metric_;
    states of_row_, of_col_;

    /// Products allocate nothing after the first ones of a thread.
    static std::vector<double>& scratch() {
        static thread_local std::vector<double> d;
        return d;
    }
    void slice(distance_graph const& graph, distance_graph const& reverse, std::uint32_t from, std::vector<std::uint32_t> const& to,
               double* out) const {
        auto& d = scratch();
        d.assign(graph.size(), mrf::forbidden);
        d[from] = 0;
        graph.transform(d.data(), reverse);
        for (std::size_t k = 0; k < to.size(); ++k) out[k] += to[k] == from ? 0 : d[to[k]] + metric_->tie;
    }
    void product(distance_graph const& graph, distance_graph const& reverse, std::vector<std::uint32_t> const& from,
                 std::vector<std::uint32_t> const& to, double const* in, double* out) const {
        std::size_t const n = graph.size();
        auto& d = scratch();
        d.assign(2 * n, mrf::forbidden);
        for (std::size_t j = 0; j < from.size(); ++j) d[from[j]] = std::min(d[from[j]], in[j]);
        std::copy_n(d.begin(), n, d.begin() + static_cast<std::ptrdiff_t>(n));  // what stays where it lies pays no tie-break
        graph.transform(d.data(), reverse);
        for (std::size_t k = 0; k < to.size(); ++k) out[k] = std::min(d[to[k]] + metric_->tie, d[n + to[k]]);
    }
};

}  // namespace cantle
