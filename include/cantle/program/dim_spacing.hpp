// SPDX-License-Identifier: BSL-1.0
#pragma once
// Room between the parts of a dim. Members whose pieces differ in size bring buffers of one size: before a collective each part is put
// into a room as large as the largest part, afterwards the parts are taken out again, so that nobody reads what lies between:
//
//     [7] of 3 ranks, 3 3 1     spread   a b c | d e f | g      ->  a b c | d e f | g . .
//                               close    a b c | d e f | g . .  ->  a b c   d e f   g
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cantle {

/// Parts of dim `dim`: part i has sizes[i] elements and begins at begins[i] of the spaced dim, which has `extent` of them. They ascend and
/// do not overlap. To spread: from the parts one behind the other to the spaced dim, zeros between. To close: the other way.
struct dim_spacing {
    std::size_t dim = 0;
    std::int64_t extent = 0;
    std::vector<std::int64_t> begins, sizes;

    /// Elements of the dim where the parts stand one behind the other.
    std::int64_t closed_extent() const {
        std::int64_t n = 0;
        for (auto s : sizes) n += s;
        return n;
    }
    /// No room between, in front or behind.
    bool is_identity() const { return closed_extent() == extent; }
    /// The parts stand in order inside the extent.
    bool is_sound() const {
        std::int64_t end = 0;
        if (begins.size() != sizes.size()) return false;
        for (std::size_t i = 0; i < begins.size(); ++i) {
            if (begins[i] < end || sizes[i] < 0) return false;
            end = begins[i] + sizes[i];
        }
        return end <= extent;
    }
    bool operator==(dim_spacing const&) const = default;
};

}  // namespace cantle
