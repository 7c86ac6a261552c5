// SPDX-License-Identifier: BSL-1.0
#pragma once
// The command `check-rules` of cantle-libtorch.
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace cantle::libtorch {

struct check_rules_command {
    std::string op, waivers;
    bool json = false, all = false, quick = false;
};
/// Adds the command to `app`.
CLI::App* describe(CLI::App& app, check_rules_command& command);
/// 0: all rules are proven on the samples; 1: they are not.
int run(check_rules_command const& command);

}  // namespace cantle::libtorch
