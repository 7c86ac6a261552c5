// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the planner knows of a tensor: global shape, strides and element type. No data.
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/tensor_type.hpp>
#include <cantle/base/units.hpp>

namespace cantle {

/// Global (unsharded) metadata of one tensor. `strides` in elements, as many as dims; empty strides mean contiguous.
struct tensor_meta {
    cantle::shape sizes;
    cantle::shape strides;
    cantle::dtype type = dtype::float32;
    bool defined = true;  ///< false for an optional output that the op does not produce (an output mask, None)

    bool operator==(tensor_meta const&) const = default;
    std::size_t rank() const { return sizes.size(); }
    std::int64_t elements() const { return defined ? element_count(sizes) : 0; }
    cantle::bytes size_in_bytes() const { return cantle::bytes{elements() * element_bytes(type)}; }
    void feed(stable_hasher& h) const { h.add(sizes).add(strides).add(type).add(defined); }
};

/// A contiguous tensor of that shape and type.
inline tensor_meta contiguous_meta(shape sizes, dtype type) {
    shape strides = contiguous_strides(sizes);
    return {std::move(sizes), std::move(strides), type, true};
}

}  // namespace cantle
