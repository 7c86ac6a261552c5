// SPDX-License-Identifier: BSL-1.0
#pragma once
// The command `verify` of cantle-libtorch.
#include <adapters/libtorch/verify.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace cantle::libtorch {

struct verify_command {
    std::string plan, graph, types = "float64";
    std::optional<std::string> ranks, seed, tolerance;  ///< as typed
    bool all = false, json = false;
    std::vector<std::string> door;  ///< words that start the capture of models written in Python; `cantle` knows them
};
/// Adds the command to `app`.
CLI::App* describe(CLI::App& app, verify_command& command);
/// 0: ranks and one rank have the same numbers, and the planned collectives ran; 1: not.
int run(verify_command const& command);

}  // namespace cantle::libtorch
