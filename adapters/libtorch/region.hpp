// SPDX-License-Identifier: BSL-1.0
#pragma once
// Regions in a model: a part that its author runs in parallel by hand (expert dispatch, ring attention). Capture keeps it as one op with
// one backward; planning gives it the declared placements and no others (docs/regions.md).
//
//     auto const out = cantle::libtorch::region(spec, {tokens, ids, weight})[0];
//
// Outside a capture this runs `reference`, with autograd's gradient. Inside, only the shapes of its results are asked for.
#include <cantle/graph/region_op.hpp>

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace cantle::libtorch {

/// All tensors at their global sizes -> the outputs.
using region_computation = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> const&)>;

struct region_spec {
    region_options options;
    /// The dense computation on one device. It depends on its arguments alone: a replay knows the region by its name, and the last spec
    /// that was used under a name is the one meant.
    region_computation reference;
    /// Makes tensors (on meta) of the outputs' sizes and types. Empty: `reference` is run on meta.
    region_computation shapes{};
};

/// Runs or captures the region. Throws bad_region for a declaration that does not fit its tensors or has no reference.
std::vector<at::Tensor> region(region_spec const& spec, std::vector<at::Tensor> const& inputs);

}  // namespace cantle::libtorch
