// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops of a graph that no rule covers: all of them at once, with what a reader needs to write the rules.
#include <cantle/base/error.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/problem/identical_regions.hpp>
#include <cantle/rules/concepts.hpp>
#include <cantle/rules/rule_stub.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace cantle {

/// One op without a rule. Lists hold each text once, in order of first use.
struct uncovered_op {
    std::string name;
    std::size_t count = 0;
    std::vector<std::string> shapes;    ///< "self [4, 6], other [4, 6] -> [4, 6]"
    std::vector<std::string> modules;   ///< module paths, list indices erased; "" at the root
    std::string stub;                   ///< a rule to fill in
};

/// By name.
template <RuleSet Rules>
std::vector<uncovered_op> uncovered_ops(training_graph const& g, Rules const& rules) {
    std::map<std::string, uncovered_op> all;
    auto const note = [](std::vector<std::string>& list, std::string text) {
        if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
    };
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (n.role != node_role::computation) continue;
        std::vector<tensor_meta> operands;
        for (auto const& r : n.operands) operands.push_back(g.meta(r));
        if (rules.covers(op_query{&n.operation, operands, n.outputs})) continue;
        auto& u = all[n.operation.name];
        if (u.count++ == 0) {
            u.name = n.operation.name;
            u.stub = rule_stub(n.operation, operands, n.outputs);
        }
        note(u.shapes, detail::operand_text(n.operation, operands) + " -> " + detail::output_text(n.outputs));
        note(u.modules, erase_indices(n.module_path).text);
    }
    std::vector<uncovered_op> list;
    for (auto& [name, u] : all) list.push_back(std::move(u));
    return list;
}

namespace detail {
/// The first texts of a list and how many there are beyond.
inline std::string first_few(std::vector<std::string> const& list, char const* separator) {
    constexpr std::size_t most = 4;
    std::string s;
    for (std::size_t i = 0; i < list.size() && i < most; ++i) s += (i ? separator : "") + (list[i].empty() ? "the root" : list[i]);
    if (list.size() > most) s += " and " + std::to_string(list.size() - most) + " more";
    return s;
}
}  // namespace detail

/// Throws op_without_rule naming all ops without a rule at once: how often, on which shapes, in which modules, with a rule to fill in.
template <RuleSet Rules>
void require_rules(training_graph const& g, Rules const& rules) {
    auto const missing = uncovered_ops(g, rules);
    if (missing.empty()) return;
    std::string subject, problem, stubs;
    for (auto const& u : missing) {
        subject += (subject.empty() ? "op " : ", ") + u.name;
        problem += (problem.empty() ? "" : "; ") + u.name + ": " + std::to_string(u.count) + (u.count == 1 ? " time" : " times");
        problem += ", on (" + detail::first_few(u.shapes, ") (") + "), in " + detail::first_few(u.modules, ", ");
        stubs += " " + u.stub;
    }
    throw error(error_code::op_without_rule, subject, "no rule covers " + std::string(missing.size() == 1 ? "it: " : "them: ") + problem,
                "add a rule for each, or plan them whole on every rank (fallback replicate). To fill in:" + stubs);
}

}  // namespace cantle
