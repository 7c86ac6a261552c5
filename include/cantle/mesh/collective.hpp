// SPDX-License-Identifier: BSL-1.0
#pragma once
// One collective as a cost model is asked for it and as a rank runs it: kind, group and bytes.
#include <cantle/mesh/placement.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cantle {

enum class collective_kind : std::uint8_t { slice, all_gather, reduce_scatter, all_reduce, all_to_all, permute };

constexpr std::string_view to_string(collective_kind k) {
    constexpr std::string_view names[] = {"slice", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"};
    return static_cast<std::size_t>(k) < std::size(names) ? names[static_cast<std::size_t>(k)] : "?";
}

/// A request to a cost model. The group is the set of ranks that differ only in the coordinates of `axes` (bit a = mesh axis a).
struct collective_call {
    collective_kind kind = collective_kind::slice;
    std::uint32_t axes = 0;            ///< bit mask of mesh axes; several bits: one flattened communicator
    std::int64_t bytes_before = 0;     ///< what a rank holds before, bytes
    std::int64_t bytes_after = 0;      ///< what a rank holds after, bytes
    std::int64_t packed_bytes = 0;     ///< bytes that must be copied once more because a cut dim is not the leading one; 0 when contiguous
    reduction reduce = reduction::sum; ///< of all_reduce and reduce_scatter

    /// NCCL's message size: the gathered buffer of an all-gather, the input of a reduce-scatter, the buffer of the others.
    std::int64_t message_bytes() const { return kind == collective_kind::all_gather ? bytes_after : bytes_before; }
};

}  // namespace cantle
