// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which elements of a tensor a rank holds, by their global row-major index: also where its piece is no interval (strided shards).
#include <cantle/mesh/local_piece.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace cantle {

/// Local element (i0, i1, ...), row-major over `counts`, is the global element first + i0 * strides[0] + i1 * strides[1] + ...; row-major
/// over the counts is row-major in the local tensor too. As few counts as will do: the whole tensor is one, a single element none.
///
///     rank 1 of [4][6] cut by 2 in dim 1, of index 0..23:   . . . 3 4 5 | . . . 9 10 11 | ...     first 3, counts 4 3, strides 6 1
struct held_elements {
    std::int64_t first = 0;
    std::vector<std::int64_t> counts{}, strides{};
    bool operator==(held_elements const&) const = default;
};

/// What the owner of `piece` holds of a tensor that lies as `l`. Precondition: piece is piece_of(l, mesh, global, some rank).
inline held_elements elements_of(layout const& l, local_piece const& piece, shape const& global) {
    held_elements held;
    std::int64_t below = 1;  // elements behind one index of the dim at hand
    std::vector<std::pair<std::int64_t, std::int64_t>> from_behind;
    auto const add = [&](std::int64_t count, std::int64_t stride) {
        if (count == 1) return;
        if (!from_behind.empty() && from_behind.back().first * from_behind.back().second == stride) from_behind.back().first *= count;
        else from_behind.emplace_back(count, stride);
    };
    for (std::size_t d = global.size(); d-- > 0;) {
        held.first += piece.offset[d] * below;
        if (l.is_uneven(d, global[d])) add(piece.sizes[d], below);  // an interval
        else {                                                     // the digits that no axis takes, innermost first
            std::int64_t inner = global[d];
            for (auto const& x : l.digits())
                if (x.dim == d) inner /= x.extent;
            add(inner, below);
            for (auto x = l.digits().rbegin(); x != l.digits().rend(); ++x) {
                if (x->dim != d) continue;
                if (!x->is_cut()) add(x->extent, inner * below);
                inner *= x->extent;
            }
        }
        below *= global[d];
    }
    for (auto at = from_behind.rbegin(); at != from_behind.rend(); ++at) {
        held.counts.push_back(at->first);
        held.strides.push_back(at->second);
    }
    return held;
}

}  // namespace cantle
