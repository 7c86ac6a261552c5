// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a graph holds, as text for people: roles, ops and modules.
#include <cantle/graph/graph_hash.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/problem/identical_regions.hpp>
#include <cantle/report/figures.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

inline std::string graph_text(training_graph const& g) {
    auto const& o = g.origin;
    std::string out = "graph" + (o.model.empty() ? "" : " of " + visible_text(o.model)) + ": " + count_text(g.size()) +
                      " vertices, structural hash " +
                      structural_hash(g).hex() + "\n";
    if (!o.model.empty()) {
        out += "captured with batch " + count_text(o.batch) + ", sequence " + count_text(o.sequence) + ", precision " +
               visible_text(o.precision) +
               ", recipe " + visible_text(o.recipe) + "\n";
        std::string sizes;
        for (auto const& [key, value] : o.config) sizes += (sizes.empty() ? "" : ", ") + key + " " + std::to_string(value);
        if (!sizes.empty()) out += "sizes: " + visible_text(sizes) + "\n";
    }

    struct role_sum { std::size_t count = 0; std::int64_t bytes = 0; };
    std::map<node_role, role_sum> roles;
    struct op_sum { std::size_t forward = 0, backward = 0; };
    std::map<std::string, op_sum> ops;
    std::map<std::string, std::size_t> modules;
    for (auto const& n : g.nodes) {
        auto& r = roles[n.role];
        ++r.count;
        for (auto const& t : n.outputs) r.bytes += t.size_in_bytes().count;
        if (n.role != node_role::computation) continue;
        auto& op = ops[n.operation.name];
        ++(n.in_phase == phase::forward ? op.forward : op.backward);
        ++modules[erase_indices(n.module_path).text];
    }
    text_table role_table({"role", ">vertices", ">bytes"});
    for (auto const& [role, sum] : roles) role_table.add({std::string(to_string(role)), count_text(sum.count), bytes_text(sum.bytes)});
    out += "\nroles\n" + role_table.text();

    std::vector<std::pair<std::string, op_sum>> sorted(ops.begin(), ops.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) {
        return a.second.forward + a.second.backward > b.second.forward + b.second.backward;
    });
    text_table op_table({"op", ">forward", ">backward"});
    for (auto const& [name, sum] : sorted) op_table.add({name, count_text(sum.forward), count_text(sum.backward)});
    out += "\nops\n" + op_table.text();

    text_table module_table({"module (list indices erased)", ">vertices"});
    for (auto const& [path, count] : modules) module_table.add({path.empty() ? "(root)" : path, count_text(count)});
    return out + "\nmodules\n" + module_table.text();
}

}  // namespace cantle
