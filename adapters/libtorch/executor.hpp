// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs the program of one rank with real tensors: boxed ATen calls, transfers through a communicator, tensors let go at their last use.
// A transfer starts where it stands; the first step that reads its result waits for it (cantle/program/schedule.hpp puts starts early).
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/communicator.hpp>

#include <cantle/program/program.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cantle::libtorch {

class rank_executor {
public:
    /// Looks all ops up and boxes their literals, so that a run only calls; biases go back into their linears (fuse_bias.hpp), so that one
    /// rank gives eager's bits. Throws 401 for an op that PyTorch does not know. `names`: of the graph's vertices, for messages.
    rank_executor(rank_program program, std::vector<std::string> names, c10::Device device = c10::kCPU);

    /// `inputs`: this rank's piece of every source, in the order of program().inputs. Gives the pieces of the sinks in order. Throws 303
    /// where a tensor has another shape or type than planned (both are named), and what an op or the communicator throws, with op and rank;
    /// the other ranks are told first. `seed` is equal on all ranks: random ops depend on it, on the op and on global indices only.
    std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, communicator& others, std::uint64_t seed = 0) const;
    /// As it runs: with biases put back.
    rank_program const& program() const { return program_; }

private:
    struct prepared_step {
        std::unique_ptr<op_caller> caller;  // null for transfers
        std::vector<std::uint32_t> lands;   // transfers (by step) whose results this step is the first to read
    };
    struct running;
    rank_program program_;
    std::vector<std::string> names_;
    c10::Device device_;
    std::vector<prepared_step> steps_;
    std::vector<std::uint32_t> lands_at_end_;

    void check_inputs(std::vector<at::Tensor> const& inputs) const;
    void call(std::size_t s, running& r) const;
    void start(std::size_t s, running& r, communicator& others) const;
    void land(std::size_t s, running& r) const;
};

}  // namespace cantle::libtorch
