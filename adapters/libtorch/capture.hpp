// SPDX-License-Identifier: BSL-1.0
#pragma once
// From a model to the joint forward-backward graph, without a GPU and without memory.
//
// How it works. The model's parameters are meta tensors (shapes without data). capture() runs forward, loss and autograd::grad once and
// listens in PyTorch's dispatcher at one key, below autograd (dispatch_hook.hpp): every op that really computes passes there, backward
// included, and composite ops have already been taken apart. Three things sit above the key: functionalization turns in-place ops into pure
// ones; linear, attention and cross-entropy are kept whole (whole_ops.hpp); module scopes say where an op belongs (module_scope.hpp). Ops
// without a Meta kernel get their shapes from a table (shape_functions.hpp).
//
// A tensor is recognised by its storage, type, offset, sizes and strides, while its storage is kept alive. So an op that gives back what it
// was given (detach, alias, a slice of everything, the transpose of a transpose) vanishes, and tied parameters are found. A backward op
// finds its forward op by autograd's sequence numbers. An op with a Python number (x * 0.5) is recorded in its .Scalar form.
//
// To add: an op without a Meta kernel -> a line in shape_functions.cpp. A composite op that should stay whole -> a kernel in whole_ops.cpp
// and, with its gradient, an op in cantle_ops.cpp. A model -> examples/models/.
#include <cantle/graph/training_graph.hpp>

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cantle::libtorch {

/// A tensor and the name its node gets.
struct named_tensor {
    std::string name;
    at::Tensor tensor;
};

/// What is captured. All tensors are on the meta device.
struct capture_request {
    std::vector<named_tensor> parameters;  ///< in the module's order, ties under every name; those that require grad get a gradient sink
    std::vector<named_tensor> buffers;     ///< those that the run does not use are left out of the graph
    std::vector<named_tensor> inputs;      ///< example inputs; those that require grad get a gradient sink
    std::vector<named_tensor> targets;     ///< example targets; empty where the loss needs none
    /// Runs the model. Gets inputs and targets in order; gives the loss (a scalar) or, with `tangent`, the output.
    std::function<at::Tensor(std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> const& targets)> run;
    bool tangent = false;                  ///< the graph ends at the output; its gradient is an input of role tangent
    std::string output_name = "logits";    ///< name of the output sink where `tangent`
    std::vector<std::pair<void const*, std::string>> modules;  ///< module address -> path, for module_scope
};

/// Captures forward and backward. Nodes: sources (parameters, buffers, inputs, targets), forward, the loss or output sink, backward, the
/// gradient sinks (named "<parameter>.grad", in parameter order). The graph is functional, free of dead code and the same on every run.
/// Throws 601 where the model reads a value or has data-dependent shapes, 602 where an op's shape is unknown, 604 for any other failure
/// inside the model; each names op and module.
training_graph capture(capture_request const& request);

}  // namespace cantle::libtorch
