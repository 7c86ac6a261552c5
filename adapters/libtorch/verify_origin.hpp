// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether what a graph says of its origin can be true, asked before a model is built from it: a file that was edited must not start a
// capture of minutes, or divide by its zeros.
#include <cantle/graph/training_graph.hpp>

namespace cantle::libtorch {

/// Throws bad_option (701) for a graph without origin, bad_field (105), naming field and value, where a size is below 1, where there are
/// more layers than vertices, where a size is larger than every tensor, and where no input has the recorded batch and sequence.
void refuse_odd_origin(training_graph const& g);

/// Elements of the largest tensor.
std::int64_t largest_tensor(training_graph const& g);

}  // namespace cantle::libtorch
