// SPDX-License-Identifier: BSL-1.0
#pragma once
// How one op runs on the ranks of one mesh axis: literals that hold sizes are made local, masked rows know their rank's offset, and rows
// with inner collectives run in parts with the reductions played between them. The same duties that lowering has (DECISIONS 4, 6).
#include <cantle/graph/op_query.hpp>
#include <cantle/rules/axis_row.hpp>

#include <ATen/core/Tensor.h>

#include <vector>

namespace cantle::libtorch {

/// The op as a rank calls it when its outputs have these local sizes: sizes of views, expands and factories, input sizes of slice and
/// select backward, bounds of a slice over a whole dim. A squeeze becomes a reshape, because a dim cut down to 1 must stay.
op localised(op const& operation, op_query const& global, std::vector<shape> const& local_outputs);

/// Outputs [rank][output] of the op on local operands [rank][operand] under `row`. Throws what the op throws.
std::vector<std::vector<at::Tensor>> play_ranks(op const& operation, op_query const& global, axis_row const& row,
                                                std::vector<std::vector<at::Tensor>> const& operands,
                                                std::vector<shape> const& local_outputs);

}  // namespace cantle::libtorch
