// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs a captured graph on one rank with real tensors. Loss and gradients have the bits of eager autograd, for graphs as captured and for
// canonical ones: own ops expand to eager's kernels, and a bias add goes back into the linear that it follows (addmm rounds once).
#include <cantle/graph/training_graph.hpp>

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace cantle::libtorch {

struct replay_options {
    c10::Device device = c10::kCPU;
    bool check_metas = true;     ///< compare every result's sizes and type with the graph's, error 303 where they differ
    bool check_strides = false;  ///< and its strides
};

/// The tensor of a constant node; a wrapped number (a Python literal) stays one. Throws 303 where its data do not fill its shape.
at::Tensor constant_tensor(graph_node const& node, c10::Device device);

/// Runs every node in order; a tensor is let go after its last use. `inputs` has a tensor for every source but constants, by node name;
/// result: the tensor of every sink, by node name. Throws 502 where an input is missing, 303 where shapes or types do not fit.
std::map<std::string, at::Tensor> replay(training_graph const& graph, std::map<std::string, at::Tensor> const& inputs,
                                         replay_options const& options = {});

}  // namespace cantle::libtorch
