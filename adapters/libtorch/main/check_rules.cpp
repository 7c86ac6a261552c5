// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/main/check_rules.hpp>

#include <adapters/libtorch/check_rules.hpp>
#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Parallel.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace cantle::libtorch {
namespace {

std::vector<rule_waiver> waivers_of(std::string const& path) {
    if (path.empty()) return reviewed_waivers();
    std::ifstream file(path);
    if (!file) throw error(error_code::file_not_found, path, "the file cannot be read", "check the path");
    std::ostringstream text;
    text << file.rdbuf();
    return parse_waivers(text.str(), path);
}

}  // namespace

CLI::App* describe(CLI::App& app, check_rules_command& c) {
    auto* const sub = app.add_subcommand("check-rules", "Prove the sharding rules on numbers: every row true, every true row listed");
    sub->add_option("--op", c.op, "Only this op, as aten::mm (default: all)");
    sub->add_flag("--json", c.json, "The result for machines");
    auto* const all = sub->add_flag("--all", c.all, "Search and mutate on every sample, and list what is waived");
    sub->add_flag("--quick", c.quick, "Search and mutate on three samples per op (default)")->excludes(all);
    sub->add_option("--waivers", c.waivers, "Another file of waivers than docs/rule_waivers.json as built in");
    return sub;
}

int run(check_rules_command const& c) {
    at::set_num_threads(1);  // the tensors are tiny
    auto extent = c.all ? check_extent::everything() : check_extent{};
    extent.op = c.op;
    auto const check = check_rules(standard_registry(), rule_samples(), waivers_of(c.waivers), extent);
    std::fputs((c.json ? json_of(check) : text_of(check, c.all)).c_str(), stdout);
    return check.passed() ? 0 : 1;
}

}  // namespace cantle::libtorch
