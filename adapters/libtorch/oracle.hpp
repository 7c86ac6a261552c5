// SPDX-License-Identifier: BSL-1.0
#pragma once
// The rule oracle: is a strategy of a rule true? The ranks of a mesh are played in this process. Global operands are cut, copied or split
// into partial values as the strategy says; every rank runs the local program of the rule on real tensors; the outputs are put together as
// the strategy says and compared with the op on the whole operands. Partial values are split in several ways made to expose what is not
// linear or not monotone. docs/rules.md tells the whole story.
#include <adapters/libtorch/oracle_values.hpp>
#include <adapters/libtorch/rank_play.hpp>

#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/device_mesh.hpp>
#include <cantle/rules/axis_row.hpp>
#include <cantle/rules/registry.hpp>
#include <cantle/rules/strategy.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
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
    std::string reason;  ///< of a refuted row: split, output and first difference, or what the op said

    bool holds() const { return outcome == kind::holds; }
    bool refuted() const { return outcome == kind::refuted; }
};

/// Layouts of all ports (operands, then outputs) on a mesh, and the collectives that the rule declares inside the op.
struct oracle_strategy {
    std::vector<layout> layouts;
    std::vector<inner_on_axis> inner{};
};
/// Strategy `s` of a table that expand_axes made.
oracle_strategy strategy_of(strategy_table const& table, std::size_t s, layout_table const& layouts);
/// The mesh of one axis that rows are judged on.
device_mesh axis_of(std::int64_t n);
/// The rules that come with cantle, made once.
rule_registry const& standard_registry();

class rule_oracle;
/// "aten::mm([12,24] float64, [24,12] float64)".
std::string text_of(rule_oracle const& oracle);

/// Holds an op's global result; judges strategies against it. Not for use by several threads at once: it keeps what it has cut.
class rule_oracle {
public:
    /// Runs the op on the whole operands. Throws whatever the op throws. Precondition: `rules` outlives the oracle.
    explicit rule_oracle(rule_sample sample, rule_registry const& rules = standard_registry());

    op_query query() const { return {&sample_.operation, operand_metas_, output_metas_}; }
    std::vector<at::Tensor> const& operands() const { return sample_.operands; }
    std::vector<at::Tensor> const& outputs() const { return outputs_; }
    bool values_matter() const { return sample_.values_matter; }
    rule_registry const& rules() const { return *rules_; }

    /// Is `row` true on an axis of n ranks? Every partial split is tried; the first that fails decides.
    oracle_verdict check(axis_row const& row, std::int64_t n) const;
    /// Is a strategy true on that mesh? The all_reduces that its local program issues must be the declared ones.
    oracle_verdict check(oracle_strategy const& strategy, device_mesh const& mesh) const;

    /// Is `row` true whether or not its inner collectives are declared, by the rule's local program or by the plain op on the ranks?
    oracle_verdict check_meaning(axis_row const& row, std::int64_t n) const;

    /// The row on one axis as layouts; nothing where its shards do not divide or its partials have no meaning for a type.
    std::optional<oracle_strategy> place(axis_row const& row, std::int64_t n) const;
    /// The local rule of the op; the op itself where the rules do not know it.
    local_rule local() const;
    /// Outputs [output][rank] of a play when partial operands are split in that way. Throws what the op throws.
    std::vector<std::vector<plain_values>> outputs_of(rank_play& play, std::span<layout const> operands, device_mesh const& mesh,
                                                      partial_split how) const;
    /// Do local outputs mean the global result of output o under this layout? Nothing, or what differs.
    std::string difference_of(std::vector<plain_values> const& ranks, std::size_t o, layout const& l, device_mesh const& mesh) const;
    /// Is there anything to split? Otherwise one run tells all.
    static bool splits(std::span<layout const> operands);
    /// Drops the pieces that were kept for the next row.
    void forget() const { cuts_.clear(); }
    /// Values of output o on the whole operands.
    plain_values const& wanted(std::size_t o) const { return wanted_[o]; }

private:
    using cut_key = std::tuple<std::size_t, layout, std::vector<std::int64_t>, partial_split>;

    rule_sample sample_;
    rule_registry const* rules_;
    std::vector<at::Tensor> outputs_;
    std::vector<plain_values> wanted_;
    std::vector<tensor_meta> operand_metas_, output_metas_;
    bool exact_;
    mutable std::map<cut_key, rank_tensors> cuts_;

    rank_tensors const& cut(std::size_t operand, layout const& l, device_mesh const& mesh, partial_split how) const;
    oracle_verdict judge(oracle_strategy const& s, device_mesh const& mesh, local_rule const& rule, bool inner_counts) const;
    std::string inner_difference(oracle_strategy const& s, device_mesh const& mesh, std::vector<issued_all_reduce> issued) const;
};

}  // namespace cantle::libtorch
