// SPDX-License-Identifier: BSL-1.0
#pragma once
// Dead-end elimination: label a of v is out when some label b is at least as good whatever the neighbours do,
//      theta_v(a) - theta_v(b) + sum_e min_k [ theta_e(a, k) - theta_e(b, k) ] >= 0          (Goldstein's criterion, eq. 9 in [1]).
// Neighbour labels k that a forbids do not count (a is worse there anyway); one that only b forbids spoils b. On a tie the lower label
// stays. A sum over one chosen k per edge, the cheapest k of a, bounds the left side from above and rejects nearly all pairs in O(degree).
// [1] R. F. Goldstein, "Efficient rotamer elimination applied to protein side-chains and related spin glasses", Biophys. J. 66 (1994).
#include <cantle/mrf/reducer.hpp>

namespace cantle::mrf::detail {

inline bool reducer::remove_dominated() {
    struct side {
        std::vector<double> rows, cols;  // table as [self][other] and [other][self]
        std::size_t others;
        std::vector<std::size_t> cheapest;  // per own label
        std::vector<double> lowest;
    };
    bool any = false;
    std::vector<side> sides;
    std::vector<double> rival;
    for (std::uint32_t v = 0; v < variables_.size() && work_left_ > 0; ++v) {
        auto& x = variables_[v];
        if (!x.alive || !x.touched) continue;
        x.touched = false;
        std::size_t const n = x.cost.size();
        if (n == 1) continue;
        sides.resize(x.edges.size());
        for (std::size_t i = 0; i < sides.size(); ++i) {
            auto const& e = edges_[x.edges[i]];
            auto& s = sides[i];
            auto const& other_cost = variables_[other(e, v)].cost;
            s.others = other_cost.size();
            auto const t = view(e, v);
            s.rows.resize(n * s.others);
            s.cols.resize(n * s.others);
            s.cheapest.assign(n, 0);
            s.lowest.assign(n, inf);
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t k = 0; k < s.others; ++k) {
                    double const c = other_cost[k] == inf ? inf : t(j, k);  // a neighbour's label that is out never matters
                    s.rows[j * s.others + k] = s.cols[k * n + j] = c;
                    if (c < s.lowest[j]) {
                        s.lowest[j] = c;
                        s.cheapest[j] = k;
                    }
                }
            work_left_ -= static_cast<double>(2 * n * s.others);
        }
        rival.resize(n);
        bool changed = false;
        for (std::size_t a = n; a-- > 0 && work_left_ > 0;) {
            double own = x.cost[a];
            if (own == inf) continue;
            std::copy(x.cost.begin(), x.cost.end(), rival.begin());
            for (auto const& s : sides) {
                own += s.lowest[a];
                double const* col = s.cols.data() + s.cheapest[a] * n;
                for (std::size_t b = 0; b < n; ++b) rival[b] += col[b];
            }
            work_left_ -= static_cast<double>(n * (sides.size() + 1)) / 4;
            for (std::size_t b = 0; b < n; ++b) {
                if (b == a || rival[b] > own || x.cost[b] == inf) continue;
                double margin = own - rival[b];  // upper bound; each edge's true minimum replaces its estimate
                for (auto const& s : sides) {
                    double const* ra = s.rows.data() + a * s.others;
                    double const* rb = s.rows.data() + b * s.others;
                    double least = inf;
                    for (std::size_t k = 0; k < s.others; ++k)
                        if (ra[k] != inf) least = std::min(least, ra[k] - rb[k]);
                    margin += least - (s.lowest[a] - rb[s.cheapest[a]]);
                    work_left_ -= static_cast<double>(s.others);
                    if (!(margin >= 0)) break;
                }
                if (!(margin >= 0)) continue;
                x.cost[a] = inf;
                changed = true;
                break;
            }
        }
        if (changed) {
            any = true;
            touch(v);
        }
    }
    return any;
}

}  // namespace cantle::mrf::detail
