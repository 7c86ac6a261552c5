// SPDX-License-Identifier: BSL-1.0
#pragma once
// A row of a rule: placements of all operands and outputs on ONE mesh axis under which running the op on every rank's local tensors gives
// the placed outputs. A rule is a list of rows; expand_axes.hpp makes D-axis strategies of it (ARCHITECTURE idea 1).
#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/collective.hpp>
#include <cantle/mesh/placement.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// A collective inside the op on the row's axis (DECISIONS 6). Its message is one tensor: operand or output `index`, at its local size; or
/// that `scale` times, or `bytes` where that is above 0.
struct inner_collective {
    collective_kind kind = collective_kind::all_reduce;
    reduction reduce = reduction::sum;
    bool on_output = true;
    std::uint32_t index = 0;
    std::int64_t scale = 1, bytes = 0;
    std::int64_t message(std::int64_t tensor_bytes) const { return bytes > 0 ? bytes : scale * tensor_bytes; }
    bool operator==(inner_collective const&) const = default;
};

struct axis_row {
    std::vector<placement> operands;  ///< one per operand
    std::vector<placement> outputs;   ///< one per output; Replicate for an undefined one
    std::vector<inner_collective> inner{};
    /// The local op needs the rank's offset: foreign indices of a vocabulary-sharded embedding or loss contribute zero (DECISIONS 4).
    bool masked = false;
    /// True only for cuts into equal pieces. Rows on uneven dims are checked beyond that: see expand_axes.hpp.
    bool even_only = false;
    bool operator==(axis_row const&) const = default;
};

/// Collects rows. The all-Replicate row is always there: every op equals itself.
class row_list {
public:
    row_list(std::size_t operands, std::size_t outputs)
        : operands_(operands), outputs_(outputs),
          rows_{axis_row{std::vector<placement>(operands), std::vector<placement>(outputs)}} {}

    /// A row with the same placement for all outputs where one is given.
    row_list& add(std::vector<placement> operands, std::vector<placement> outputs) {
        rows_.push_back({std::move(operands), std::move(outputs)});
        return *this;
    }
    row_list& add(axis_row row) {
        rows_.push_back(std::move(row));
        return *this;
    }
    /// This row and no other, not the all-Replicate one either: a declaration leaves no choice (regions).
    row_list& only(axis_row row) {
        rows_.assign(1, std::move(row));
        return *this;
    }
    std::size_t size() const { return rows_.size(); }
    std::size_t operand_count() const { return operands_; }
    std::size_t output_count() const { return outputs_; }
    std::vector<axis_row> take() { return std::move(rows_); }

private:
    std::size_t operands_, outputs_;
    std::vector<axis_row> rows_;
};

/// "S0, R -> P" for messages and reports.
inline std::string text_of(axis_row const& row) {
    std::string s;
    for (std::size_t i = 0; i < row.operands.size(); ++i) s += (i ? ", " : "") + to_string(row.operands[i]);
    s += " -> ";
    for (std::size_t i = 0; i < row.outputs.size(); ++i) s += (i ? ", " : "") + to_string(row.outputs[i]);
    return s;
}

}  // namespace cantle
