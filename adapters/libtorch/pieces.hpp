// SPDX-License-Identifier: BSL-1.0
#pragma once
// Cutting a tensor into the pieces of all ranks, and putting pieces together again.
#include <cantle/graph/training_graph.hpp>
#include <cantle/plan/plan.hpp>

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// The reduction of the members' tensors, in their order.
at::Tensor reduced(std::vector<at::Tensor> const& all, reduction kind);

/// The tensor that the ranks' pieces mean under `l`: cuts joined, Partial axes reduced, copies taken from the first rank.
at::Tensor put_together(std::vector<at::Tensor> const& pieces, layout const& l, device_mesh const& mesh, shape const& global);

/// [rank][source]: pieces of `tensors` (by node name; constants come from the graph) for all sources under the plan's layouts. Throws 502
/// where one is missing, 303 where one has another shape or type than the graph says.
std::vector<std::vector<at::Tensor>> cut_inputs(training_graph const& g, sharding_plan const& plan,
                                                std::map<std::string, at::Tensor> const& tensors);

}  // namespace cantle::libtorch
