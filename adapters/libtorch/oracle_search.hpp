// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which rows are true: input placements are enumerated, the ranks run, and the placements of the outputs are read off the numbers. Also
// the strategies of several axes that rules expand to.
#include <adapters/libtorch/oracle.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// A row that holds on every partial split. `ample`: every output has at least eight different values, so that it is no coincidence.
struct true_row {
    axis_row row;
    bool ample = false;
};

struct row_search {
    /// Of each input placement the strongest: Replicate where that holds, no whole factor where none is needed.
    std::vector<true_row> rows;
    std::size_t inputs = 0;      ///< combinations of input placements that were run
    bool all_inputs = true;      ///< false: more than three operands, and not every combination was run
};

/// Input placements: Replicate, every plain shard that divides, the four kinds of Partial (one kind per row). Up to three operands all
/// combinations; above that those with at most two operands that are not Replicate, those with all operands alike, and `also`.
row_search find_true_rows(rule_oracle const& oracle, std::int64_t n, std::vector<axis_row> const& also);

/// Does the row hold wherever `better` does, at no cost? Its operands are those of `better` or Replicate (which becomes anything for free),
/// its outputs those of `better`, or `better` leaves Replicate.
bool is_dominated(axis_row const& row, axis_row const& better);

/// The row's partial placements are of several kinds: true or not, no rule may list it.
bool mixes_kinds(axis_row const& row);

/// Strategies of the op on `mesh`, evenly picked where there are more than `most`. `inner_first`: axes are applied in reverse order, so
/// that a dim cut by two axes is cut by the last one first.
std::vector<oracle_strategy> composed_strategies(rule_oracle const& oracle, device_mesh const& mesh, bool inner_first, std::size_t most);

/// All placements that output or operand may have on an axis of n: Replicate, shards (with whole factors if asked), kinds of Partial.
std::vector<placement> placements_of(tensor_meta const& t, std::int64_t n, bool whole_factors);

}  // namespace cantle::libtorch
