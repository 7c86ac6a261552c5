// SPDX-License-Identifier: BSL-1.0
#pragma once
// Cutting placed graphs smaller: the steps that shrink.hpp tries. None promises that the result is a case that can be planned or run.
#include <adapters/libtorch/property/placements.hpp>

#include <cstddef>
#include <map>
#include <vector>

namespace cantle::libtorch {

struct placed_graph {
    training_graph graph;
    placements at;
    tensor_map data;
};

/// Every value of the graph on one rank.
std::map<value_ref, at::Tensor> all_values(training_graph const& g, tensor_map const& data);

std::size_t op_count(training_graph const& g);
/// Sizes above 1 that occur, largest first.
std::vector<std::int64_t> sizes_of(training_graph const& g);

/// What `value`, read as it lies at `as`, needs; it becomes the only sink.
placed_graph with_sink(placed_graph const& c, value_ref value, layout const& as);
/// The op's outputs become inputs that hold `values`; what only it needed goes.
placed_graph without_op(placed_graph const& c, vertex op, std::map<value_ref, at::Tensor> const& values);
/// The mesh without an axis; nothing is cut or partial on it.
placed_graph without_axis(placed_graph const& c, std::size_t axis);
/// Every dim of size `from` gets size `to`, and so does every literal of that value.
placed_graph with_size(placed_graph const& c, std::int64_t from, std::int64_t to);

}  // namespace cantle::libtorch
