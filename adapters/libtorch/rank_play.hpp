// SPDX-License-Identifier: BSL-1.0
#pragma once
// Plays an op on all ranks of a mesh under one strategy: every rank's local program is asked for, the ranks run step by step, and an
// all_reduce step combines over the rank groups of its axis. What lowering will run on devices, in one process (DECISIONS 4, 6).
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/oracle_values.hpp>

#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/device_mesh.hpp>
#include <cantle/rules/local_program.hpp>
#include <cantle/rules/strategy.hpp>

#include <memory>
#include <vector>

namespace cantle::libtorch {

/// An all_reduce that a program issues: over that axis, on a tensor of that many bytes.
struct issued_all_reduce {
    std::uint32_t axis = 0;
    reduction reduce = reduction::sum;
    std::int64_t bytes = 0;
    auto operator<=>(issued_all_reduce const&) const = default;
};

/// Local programs of all ranks with their ops looked up. Runs on any operands of the right sizes.
class rank_play {
public:
    /// `layouts`: operands, then outputs. Throws bad_rule where ranks would run different steps, or what the rule throws.
    rank_play(op_query const& global, std::vector<layout> const& layouts, device_mesh const& mesh, local_rule const& rule);

    /// [output][rank] of operands [operand][rank]. Throws what an op throws.
    std::vector<rank_tensors> run(std::vector<rank_tensors> const& operands);
    /// The all_reduces of the last run, in order.
    std::vector<issued_all_reduce> const& issued() const { return issued_; }
    /// Do both run the same steps with the same literals on every rank?
    bool same_as(rank_play const& other) const;

private:
    struct step_of_ranks {
        std::vector<std::shared_ptr<op_caller const>> callers;  // by rank; ranks with equal literals share one
        local_step const* first = nullptr;                      // of rank 0
    };
    device_mesh const* mesh_;
    std::vector<local_program> programs_;  // by rank
    std::vector<step_of_ranks> steps_;
    std::vector<issued_all_reduce> issued_;
    std::size_t operands_, outputs_;

    rank_tensors all_reduce(rank_tensors const& values, local_step const& step) const;
};

}  // namespace cantle::libtorch
