// SPDX-License-Identifier: BSL-1.0
#pragma once
// Sliding windows over the trailing dims of a tensor, as convolutions and poolings have them: where windows neither overlap nor reach into
// padding, the dim may be cut between them (1x1 convolutions, patch embeddings, the usual 2x2 pooling).
#include <cantle/graph/op_query.hpp>

#include <cstdint>
#include <vector>

namespace cantle::rules {

/// Entry i of a list literal; a list of one entry stands for all dims, an empty or absent one for `fallback`.
inline std::int64_t entry_of(std::vector<std::int64_t> const& list, std::size_t i, std::int64_t fallback) {
    return list.empty() ? fallback : list.size() == 1 ? list[0] : i < list.size() ? list[i] : fallback;
}
inline std::int64_t entry_of(op const& o, char const* name, std::size_t i, std::int64_t fallback) {
    return entry_of(o.get<std::vector<std::int64_t>>(name, {}), i, fallback);
}

/// Windows of `extent` elements at multiples of `stride`: do they tile `wide`, one for each of the `narrow` elements?
inline bool windows_tile(std::int64_t wide, std::int64_t narrow, std::int64_t extent, std::int64_t stride, std::int64_t padding) {
    return padding == 0 && extent <= stride && narrow * stride == wide;
}

}  // namespace cantle::rules
