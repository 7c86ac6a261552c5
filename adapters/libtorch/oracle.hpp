// SPDX-License-Identifier: BSL-1.0
#pragma once
// The rule oracle: is a row of a rule true? The ranks of one mesh axis are played one after the other in this process. Global operands are
// cut, copied or split into partial values as the row says; every rank runs the real op; the outputs are put together as the row says and
// compared with the op on the whole operands. Partial values are split in several ways made to expose what is not linear or not monotone.
#include <cantle/graph/op_query.hpp>
#include <cantle/rules/axis_row.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cantle::libtorch {

/// One op with concrete global operands. Values should be distinct multiples of 1/8 in float64: exact under sums and products.
struct rule_sample {
    op operation;
    std::vector<at::Tensor> operands;
    bool values_matter = true;  ///< false for ops that leave memory as it is (empty): then only sizes and types are compared
};

/// What a run of a row on the ranks showed.
struct oracle_verdict {
    enum class kind : std::uint8_t { holds, refuted, does_not_divide };
    kind outcome = kind::holds;
    std::string reason;  ///< of a refuted row: split, output and largest difference, or what the op said

    bool holds() const { return outcome == kind::holds; }
    bool refuted() const { return outcome == kind::refuted; }
};

/// How a tensor is split into partial values (by reduction kind the ranks' values are sums, averages, maxima or minima of each other's).
enum class partial_split : std::uint8_t { all_on_first, all_on_last, cancelling, sign_mixed, dyadic };
inline constexpr partial_split partial_splits[] = {partial_split::all_on_first, partial_split::all_on_last, partial_split::cancelling,
                                                   partial_split::sign_mixed, partial_split::dyadic};
std::string_view to_string(partial_split s);

/// The tensors of one operand or output on every rank.
using rank_tensors = std::vector<at::Tensor>;

/// What rank `rank` of `n` holds of `global` under a shard. Precondition: the extents divide.
at::Tensor shard_of(at::Tensor const& global, placement p, std::int64_t n, std::int64_t rank);
/// Values for n ranks whose reduction of that kind is `global` exactly, as long as global holds multiples of 1/8 of moderate size.
rank_tensors split_partial(at::Tensor const& global, reduction kind, std::int64_t n, partial_split how, std::uint64_t seed);
/// The tensor meant by local ones: the copy, the shards in order, or the reduction (in float64). Undefined where copies differ or sizes
/// do not fit; `why` then says so.
at::Tensor combine(rank_tensors const& locals, placement p, std::string& why);

/// Holds an op's global result; judges rows against it.
class rule_oracle {
public:
    /// Runs the op on the whole operands. Throws whatever the op throws.
    explicit rule_oracle(rule_sample sample);

    op_query query() const { return {&sample_.operation, operand_metas_, output_metas_}; }
    std::vector<at::Tensor> const& outputs() const { return outputs_; }

    /// Is `row` true on an axis of n ranks? Every partial split is tried; the first that fails decides.
    oracle_verdict check(axis_row const& row, std::int64_t n) const;

    /// The local outputs of `row`, per split: [split][output][rank]; empty where the shards do not divide. Throws what the op throws.
    std::vector<std::vector<rank_tensors>> run(axis_row const& row, std::int64_t n) const;
    /// Do local outputs of `run` mean the global result under these placements?
    oracle_verdict judge(std::vector<std::vector<rank_tensors>> const& locals, std::vector<placement> const& outputs) const;
    /// True where all shards of the row divide on n ranks.
    bool divides(axis_row const& row, std::int64_t n) const;

private:
    rule_sample sample_;
    std::vector<at::Tensor> outputs_;
    std::vector<tensor_meta> operand_metas_, output_metas_;

    std::vector<rank_tensors> run_ranks(std::vector<rank_tensors> const& operands, axis_row const& row, std::int64_t n) const;
};

}  // namespace cantle::libtorch
