// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which part of a tensor one rank holds: sizes, and the first global index per dim where the part is an interval.
#include <cantle/mesh/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cantle {

/// `offset[d]` is the rank's first index of dim d. A piece behind a whole factor (a strided shard) is no interval: `interval` is then false
/// and the offset of such a dim is that of its first element.
struct local_piece {
    shape sizes, offset;
    bool interval = true;
};

/// The piece of `rank` under `l`. A dim that the digits do not divide is cut into nested ceil chunks: a rank's piece may then be short or
/// empty; an empty one starts where the piece before it ends, so that all pieces tile the dim (case A59). Preconditions: digits that do not
/// divide are plain cuts in mesh order; 0 <= rank < mesh.device_count().
inline local_piece piece_of(layout const& l, device_mesh const& mesh, shape const& global, std::int64_t rank) {
    local_piece p{global, shape(global.size(), 0), true};
    auto const& digits = l.digits();
    for (std::size_t i = 0; i < digits.size();) {
        std::size_t const dim = digits[i].dim;
        bool const uneven = l.is_uneven(dim, global[dim]);
        std::int64_t rest = global[dim];  // extent of what the digits read so far have left
        bool factor = false;
        for (; i < digits.size() && digits[i].dim == dim; ++i) {
            auto const& d = digits[i];
            if (!d.is_cut()) {
                rest /= d.extent;
                factor = true;
                continue;
            }
            std::int64_t const coordinate = mesh.coordinate(rank, static_cast<std::size_t>(d.axis));
            if (uneven) {
                std::int64_t const chunk = (rest + d.extent - 1) / d.extent, begin = std::min(rest, coordinate * chunk);
                p.offset[dim] += begin;
                rest = std::min(rest - begin, chunk);
                p.sizes[dim] = rest;
            } else {
                rest /= d.extent;
                if (factor) p.interval = false;
                p.sizes[dim] /= d.extent;
                p.offset[dim] += coordinate * rest;
            }
        }
    }
    return p;
}

/// Size of the smallest piece that any rank holds of dim `dim`: 0 where some rank's chunk is empty.
inline std::int64_t smallest_piece(layout const& l, std::size_t dim, std::int64_t size) {
    std::vector<std::int64_t> sizes{size};
    for (auto const& d : l.digits()) {
        if (d.dim != dim || !d.is_cut()) continue;
        std::vector<std::int64_t> next;
        for (auto s : sizes) {
            std::int64_t const chunk = (s + d.extent - 1) / d.extent, last = std::max<std::int64_t>(0, s - (d.extent - 1) * chunk);
            next.push_back(chunk);
            next.push_back(last);
            if (chunk > 0 && s % chunk != 0) next.push_back(s % chunk);  // the one short chunk, where empty ones follow it
        }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        sizes = std::move(next);
    }
    return *std::min_element(sizes.begin(), sizes.end());
}

/// Mesh axes (bit a = axis a) that cut dim `dim`.
inline std::uint32_t axes_cutting(layout const& l, std::size_t dim) {
    std::uint32_t axes = 0;
    for (auto const& d : l.digits())
        if (d.is_cut() && d.dim == dim) axes |= 1u << d.axis;
    return axes;
}

}  // namespace cantle
