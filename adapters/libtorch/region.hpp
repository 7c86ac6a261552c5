// SPDX-License-Identifier: BSL-1.0
#pragma once
// Regions in a model: a part that its author runs in parallel by hand (expert dispatch, ring attention). Capture keeps it as one op with
// one backward; planning gives it the declared placements and no others (docs/regions.md).
//
//     auto const out = cantle::libtorch::region(spec, {tokens, ids, weight})[0];
//
// Outside a capture this runs `reference`, with autograd's gradient. Inside, only the shapes of its results are asked for. On the ranks of
// a plan `local` runs, on a rank's pieces.
#include <adapters/libtorch/region_ranks.hpp>

#include <cantle/graph/region_op.hpp>

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace cantle::libtorch {

/// All tensors at their global sizes -> the outputs.
using region_computation = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> const&)>;

/// This rank's pieces of the inputs, as the region declares their placements -> its pieces of the outputs. Ranks of one process call it at
/// once, so it shares nothing that changes. It runs with the mesh's other ranks only, never in a capture.
using region_local = std::function<std::vector<at::Tensor>(region_ranks&, std::vector<at::Tensor> const&)>;

/// Gradients of the outputs (undefined where none arrives) and the inputs, both this rank's pieces -> gradients of all inputs, in the
/// placements that the region declares or that are derived; undefined means zero.
using region_local_backward = std::function<std::vector<at::Tensor>(region_ranks&, std::vector<at::Tensor> const& gradients,
                                                                    std::vector<at::Tensor> const& inputs)>;

struct region_spec {
    region_options options;
    /// The dense computation on one device. It depends on its arguments alone: a replay knows the region by its name, and the last spec
    /// that was used under a name is the one meant.
    region_computation reference;
    /// Makes tensors (on meta) of the outputs' sizes and types. Empty: `reference` is run on meta.
    region_computation shapes{};
    /// What a rank runs. Empty: the region runs on one device, or where all its tensors are replicated (`reference` then).
    region_local local{};
    /// Empty: the backward runs `local` again and autograd differentiates it.
    region_local_backward local_backward{};
};

/// Makes the region known to this process by its name, replacing one that was: what a program of a graph that was captured elsewhere needs.
/// A capture registers the regions that it meets. Throws bad_region for a spec without name or reference.
void register_region(region_spec const& spec);

/// Runs or captures the region. Throws bad_region for a declaration that does not fit its tensors or has no reference.
std::vector<at::Tensor> region(region_spec const& spec, std::vector<at::Tensor> const& inputs);

}  // namespace cantle::libtorch
