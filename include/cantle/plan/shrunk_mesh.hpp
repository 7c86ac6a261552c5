// SPDX-License-Identifier: BSL-1.0
#pragma once
// A mesh of fewer devices with the same axes: every size is divided, so whatever the mesh divides is still divided (DECISIONS 14).
//
//   4x8 (dp, tp) to 8 ranks: 2x4 (dp, tp)
#include <cantle/base/error.hpp>
#include <cantle/mesh/device_mesh.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace cantle {

namespace detail {

/// visit(sizes) for every choice of one divisor per axis whose product is at most `most`, in lexicographic order.
inline void for_each_shrunk(device_mesh const& mesh, std::int64_t most, std::function<void(std::vector<std::int64_t> const&)> const& visit,
                            std::vector<std::int64_t>& sizes) {
    if (sizes.size() == mesh.dims()) return visit(sizes);
    auto const whole = mesh.size(sizes.size());
    for (std::int64_t s = 1; s <= std::min(whole, most); ++s) {
        if (whole % s != 0) continue;
        sizes.push_back(s);
        for_each_shrunk(mesh, most / s, visit, sizes);
        sizes.pop_back();
    }
}

}  // namespace detail

/// The numbers of ranks that shrunk_mesh can give, ascending, up to `most`.
inline std::vector<std::int64_t> shrunk_rank_counts(device_mesh const& mesh, std::int64_t most) {
    std::set<std::int64_t> counts;
    std::vector<std::int64_t> sizes;
    detail::for_each_shrunk(mesh, most, [&](std::vector<std::int64_t> const& s) {
        std::int64_t n = 1;
        for (auto x : s) n *= x;
        counts.insert(n);
    }, sizes);
    return {counts.begin(), counts.end()};
}

/// The mesh with sizes whose product is `ranks`, each a divisor of the axis' own; names and order stay. Of several the one that leaves most
/// axes above 1, then the most even one, then the one with the smaller outer axes. Throws bad_mesh with the numbers that are possible.
inline device_mesh shrunk_mesh(device_mesh const& mesh, std::int64_t ranks) {
    std::optional<std::tuple<std::size_t, std::int64_t, std::vector<std::int64_t>>> best;  // axes lost, largest size, sizes
    std::vector<std::int64_t> sizes;
    detail::for_each_shrunk(mesh, ranks, [&](std::vector<std::int64_t> const& s) {
        std::int64_t n = 1, largest = 1;
        std::size_t lost = 0;
        for (std::size_t a = 0; a < s.size(); ++a) {
            n *= s[a];
            largest = std::max(largest, s[a]);
            lost += s[a] == 1 && mesh.size(a) > 1;
        }
        if (n == ranks && (!best || std::tuple(lost, largest, s) < *best)) best.emplace(lost, largest, s);
    }, sizes);
    if (!best) {
        std::string possible;
        for (auto n : shrunk_rank_counts(mesh, 64)) possible += (possible.empty() ? "" : ", ") + std::to_string(n);
        throw error(error_code::bad_mesh, "mesh " + mesh.text(),
                    "no divisors of its sizes have the product " + std::to_string(ranks), "up to 64 ranks it can have " + possible);
    }
    auto axes = mesh.axes();
    for (std::size_t a = 0; a < axes.size(); ++a) axes[a].size = std::get<2>(*best)[a];
    return device_mesh(std::move(axes));
}

}  // namespace cantle
