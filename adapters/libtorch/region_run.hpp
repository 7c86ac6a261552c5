// SPDX-License-Identifier: BSL-1.0
#pragma once
// Regions on ranks: which function runs, on what, and what must come out (docs/regions.md).
#include <adapters/libtorch/region.hpp>
#include <adapters/libtorch/run_context.hpp>

#include <cantle/program/program.hpp>

#include <memory>
#include <string_view>

namespace cantle::libtorch {

/// The region registered under a name. Throws bad_region where there is none.
std::shared_ptr<region_spec const> find_region(std::string_view name);

/// Before anything runs: every region of the program is registered, declared as in the graph, and has a function for this mesh. Throws
/// bad_region naming the region.
void check_regions(rank_program const& program);

/// The region op's outputs, or the gradients of the backward op `declared`, of the rank that runs in this thread. Throws bad_region where
/// the author's function gives other tensors than planned, rank_failed naming region and rank where it throws.
std::vector<at::Tensor> run_region(region_spec const& spec, std::vector<at::Tensor> const& inputs);
std::vector<at::Tensor> run_region_backward(region_spec const& spec, op const& declared, std::vector<at::Tensor> const& grads,
                                            std::vector<at::Tensor> const& inputs);

/// Autograd's gradients of `outputs` (those that depend on anything), zeros where an input has no influence.
std::vector<at::Tensor> gradients_of(std::vector<at::Tensor> const& outputs, std::vector<at::Tensor> const& wanted,
                                     std::vector<at::Tensor> const& grads);

}  // namespace cantle::libtorch
