// SPDX-License-Identifier: BSL-1.0
#pragma once
// Tensors to run a graph with, drawn from a seed, and the graph in another type.
#include <cantle/graph/training_graph.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

namespace cantle::libtorch {

/// float64, or float32 where an op has no CPU kernel for that (grouped products).
dtype finest_type(training_graph const& g);

/// The same graph with every floating point type `type`.
training_graph in_type(training_graph g, dtype type);

/// GPUs count integers, the CPU's histogram does not: integers that only a histogram reads become the same numbers of that type.
training_graph countable(training_graph g, dtype type);

/// A tensor for every source but constants, by name, so that numbers stay of size 1 from layer to layer: matrices scaled by their last dim,
/// vectors near 1 (biases near 0), indices below what they index, masks that let most pass and never nothing.
std::map<std::string, at::Tensor> random_sources(training_graph const& g, std::uint64_t seed);

}  // namespace cantle::libtorch
