// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: no choice of strategies satisfies everything that was demanded. Which demands conflict, and where?
// Idea: QuickXplain over the demands of the boundary, each a mask over the labels of one loosened problem, with all rules of the planner's
// own in force; then those rules are left out one by one where the conflict stays without them. What remains is minimal: without any one
// of it a plan exists.
// Complexity: one build of the problem, whose factor graph is made anew for each rule of the planner's own, and few solves of its small
// hard part.
#include <cantle/base/quick_xplain.hpp>
#include <cantle/problem/constraint_texts.hpp>
#include <cantle/problem/loosened_problem.hpp>

#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// Demands that cannot hold together under these rules of the planner's own; without any one demand or rule they can.
struct demand_conflict {
    std::vector<std::string> demands;  ///< as given: "pin y=S0,R", "parameters: fully_sharded (default)"
    std::vector<std::string> rules;    ///< in words, e.g. that gradients lie as their parameter
    std::vector<std::string> tensors;  ///< where they meet, in the graph's order
    bool of_one_pin = false;           ///< a single pin and no rule
    bool by_clustering = false;        ///< deciding per copy would help
};

namespace detail {

class demand_conflict_finder {
public:
    demand_conflict_finder(loosened_problem& problem, device_mesh const& mesh, problem_options const& options)
        : problem_(problem), mesh_(mesh), options_(options) {
        own_.clustering = options.clustering;
    }
    /// Nothing when the demands do not conflict, or it cannot be told.
    std::optional<demand_conflict> run() {
        std::vector<std::uint32_t> all(options_.boundary.pins.size() + 3);
        std::iota(all.begin(), all.end(), 0U);
        if (problem_.regroup(own_)) {
            auto found = minimal_conflict_of(all, [this](std::vector<std::uint32_t> const& some) { return problem_.satisfiable(some); });
            if (!found) return std::nullopt;
            demands_ = std::move(*found);
        }  // else the rules alone conflict
        leave_out(&own_rules::clustering, own_.clustering, "copies of a layer share one decision");
        leave_out(&own_rules::gradient_types, problem_.gradient_types_matter(), "gradients are reduced in the type of their sink");
        leave_out(&own_rules::casts, problem_.casts_matter(),
                  "parameters are gathered behind their cast and gradients reduced behind theirs");
        leave_out(&own_rules::pairing, true, pairing_text);
        for (auto i : demands_) result_.demands.push_back(text(i));
        result_.by_clustering = own_.clustering;
        result_.of_one_pin = result_.rules.empty() && demands_.size() == 1 && demands_[0] < options_.boundary.pins.size();
        result_.tensors = problem_.regroup(own_) ? problem_.where(demands_) : quoted_in(problem_.failed_at());
        return std::move(result_);
    }

private:
    loosened_problem& problem_;
    device_mesh const& mesh_;
    problem_options const& options_;
    own_rules own_;
    std::vector<std::uint32_t> demands_;
    demand_conflict result_;

    /// Where the conflict stays without a rule of the planner's own, the rule is none of its reasons.
    void leave_out(bool own_rules::*rule, bool matters, char const* text) {
        if (matters) {
            own_.*rule = false;
            if (!problem_.regroup(own_) || !problem_.satisfiable(demands_)) return;
            own_.*rule = true;
            result_.rules.push_back(text);
        } else own_.*rule = false;
    }
    /// Names that an error's subject has between quotes.
    static std::vector<std::string> quoted_in(std::string const& subject) {
        std::vector<std::string> names;
        for (std::size_t from = subject.find('\''); from != std::string::npos;) {
            auto const to = subject.find('\'', from + 1);
            if (to == std::string::npos) break;
            names.push_back(subject.substr(from + 1, to - from - 1));
            from = subject.find('\'', to + 1);
        }
        return names;
    }
    std::string text(std::uint32_t demand) const {
        auto const& b = options_.boundary;
        demand_numbers const numbers(b);
        if (demand == numbers.inputs) return inputs_text(b, mesh_);
        if (demand == numbers.outputs) return outputs_text(b);
        if (demand == numbers.parameters) return parameters_text(b);
        return "pin " + pin_text(b.pins[demand]);
    }
};

}  // namespace detail

/// Why build_problem or solving found no choice for these arguments. Throws what build_problem throws for one demand alone (a layout that
/// does not divide, a sharded loss).
template <class Rules, class Cost>
std::optional<demand_conflict> find_demand_conflict(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                                                    problem_options const& options) {
    detail::loosened_problem problem(g, mesh, rules, cost, options);
    return detail::demand_conflict_finder(problem, mesh, options).run();
}

/// The conflict as an error that names demands, rules and tensors.
inline error conflict_error(demand_conflict const& c) {
    std::string subject, problem, remedy;
    for (auto const& d : c.demands) subject += (subject.empty() ? "" : "; ") + d;
    if (c.demands.empty()) {
        subject = "the rules of the ops";
        problem = "no choice of strategies fits together, whatever is demanded";
        remedy = "declare more rows for these ops";
    } else if (c.demands.size() == 1) {
        problem = "no choice of strategies satisfies it";
        remedy = "loosen it";
    } else {
        problem = "no choice of strategies satisfies these " + std::to_string(c.demands.size()) + " together, without any one there is one";
        remedy = "loosen one of them";
    }
    for (std::size_t i = 0; i < c.rules.size(); ++i) problem += (i ? ", and " : ", as ") + c.rules[i];
    constexpr std::size_t most = 6;
    for (std::size_t i = 0; i < c.tensors.size() && i < most; ++i) problem += (i ? ", '" : "; they meet at '") + c.tensors[i] + "'";
    if (c.tensors.size() > most) problem += " and " + std::to_string(c.tensors.size() - most) + " more";
    if (c.by_clustering) remedy += ", or let every copy decide for itself (no clustering)";
    return {error_code::unsatisfiable_constraint, subject, problem, remedy};
}

}  // namespace cantle
