// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs the program of one rank with real tensors: boxed ATen calls, transfers through a communicator, tensors let go at their last use.
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/communicator.hpp>

#include <cantle/program/program.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace cantle::libtorch {

class rank_executor {
public:
    /// Looks all ops up, so that a run only calls. Throws 401 for an op that PyTorch does not know. `names`: of the graph's vertices, for
    /// messages.
    rank_executor(rank_program program, std::vector<std::string> names, c10::Device device = c10::kCPU);

    /// `inputs`: this rank's piece of every source, in the order of program().inputs. Gives the pieces of the sinks in order. Throws 303
    /// where a tensor has another shape or type than planned (both are named), and what an op or the communicator throws, with op and rank.
    /// `seed` is equal on all ranks: random ops depend on it, on the op and on global indices only.
    std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, communicator& others, std::uint64_t seed = 0) const;
    rank_program const& program() const { return program_; }

private:
    rank_program program_;
    std::vector<std::string> names_;
    c10::Device device_;
    std::vector<std::unique_ptr<op_caller>> callers_;  // [step]; null for transfers

    void check_inputs(std::vector<at::Tensor> const& inputs) const;
    void run_step(std::size_t s, std::vector<at::Tensor>& values, communicator& others) const;
};

}  // namespace cantle::libtorch
