// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which part of a tensor one rank holds: sizes, and the first global index per dim where the part is an interval.
#include <cantle/mesh/layout.hpp>

#include <cstdint>

namespace cantle {

/// `offset[d]` is the rank's first index of dim d. A piece behind a whole factor (a strided shard) is no interval: `interval` is then false
/// and the offset of such a dim is that of its first element.
struct local_piece {
    shape sizes, offset;
    bool interval = true;
};

/// The piece of `rank` under `l`. Precondition: l.fits(global), 0 <= rank < mesh.device_count().
inline local_piece piece_of(layout const& l, device_mesh const& mesh, shape const& global, std::int64_t rank) {
    local_piece p{global, shape(global.size(), 0), true};
    shape rest = global;  // extent of what the digits read so far have left of each dim
    std::vector<bool> factor(global.size(), false);
    for (auto const& d : l.digits()) {
        rest[d.dim] /= d.extent;
        if (!d.is_cut()) {
            factor[d.dim] = true;
            continue;
        }
        if (factor[d.dim]) p.interval = false;
        p.sizes[d.dim] /= d.extent;
        p.offset[d.dim] += mesh.coordinate(rank, static_cast<std::size_t>(d.axis)) * rest[d.dim];
    }
    return p;
}

/// Mesh axes (bit a = axis a) that cut dim `dim`.
inline std::uint32_t axes_cutting(layout const& l, std::size_t dim) {
    std::uint32_t axes = 0;
    for (auto const& d : l.digits())
        if (d.is_cut() && d.dim == dim) axes |= 1u << d.axis;
    return axes;
}

}  // namespace cantle
