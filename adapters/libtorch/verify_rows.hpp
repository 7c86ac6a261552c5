// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether the layouts of a plan are strategies of the rules, and what its regions do inside.
#include <cantle/plan/plan.hpp>
#include <cantle/rules/registry.hpp>

namespace cantle::libtorch {

/// Throws bad_rule (402), naming the op and its layouts, where a vertex lies as no row of its rule says. Ops that no rule covers must be
/// whole on every rank. The plan is one of `g`.
void refuse_what_is_no_row(sharding_plan const& plan, training_graph const& g, rule_registry const& rules);

/// Gives region ops the collectives that their declarations have on the plan's mesh. How many they are depends on it: a ring takes one step
/// less than its axis has ranks.
void declare_collectives_of_regions(sharding_plan& plan, training_graph const& g, rule_registry const& rules);

/// Throws bad_program (803), naming the region, where the plan has other collectives inside it than its declaration.
void refuse_undeclared_collectives(sharding_plan const& plan, training_graph const& g, rule_registry const& rules);

}  // namespace cantle::libtorch
