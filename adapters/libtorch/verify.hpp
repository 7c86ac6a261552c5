// SPDX-License-Identifier: BSL-1.0
#pragma once
// Proves a plan by running it: a small instance of its model, captured again from the graph's recorded origin, runs under the plan's
// layouts on ranks that are threads; loss, outputs and every gradient are compared with a run on one rank.
//
//   plan, graph --origin--> small instance --scaled_plan--> programs --threads--> pieces put together --+-- differences
//                                          \--one rank-------------------------> the same tensors ------+
#include <adapters/libtorch/capture_models.hpp>

#include <cantle/plan/plan.hpp>
#include <cantle/rules/registry.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cantle::libtorch {

struct verify_options {
    std::optional<std::int64_t> ranks;     ///< thread ranks; absent: the most up to 8 that the mesh can shrink to
    bool as_captured = false;              ///< run in the element types of the graph; else in float64, where errors cannot hide in rounding
    std::uint64_t seed = 1;                ///< of parameters, inputs and random ops
    std::optional<double> tolerance;       ///< of the relative difference to one rank; absent: see sink_difference::allowed
};

/// One sink: what ranks have against one rank. Element types as captured round so much that no one figure fits all models, so there (unless
/// a tolerance is given) both are measured against one rank in float64, and ranks may be off by a few times what the one rank is.
struct sink_difference {
    std::string name;
    node_role role = node_role::gradient;
    std::int64_t elements = 0;
    double largest = 0;                    ///< of the one rank's absolute values
    double absolute = 0;                   ///< largest absolute difference; not finite where a value is not
    double relative = 0;                   ///< absolute / largest; of a tensor that is next to zero: / (1e-4 of the largest gradient)
    double rounding = 0;                   ///< largest absolute difference of one rank and the run in float64, where that is compared with
    double allowed = 0;                    ///< largest absolute difference that is none
    bool matches() const;
};

/// Collectives of one kind on one set of axes, on one rank.
struct collective_tally {
    collective_kind kind = collective_kind::all_reduce;
    std::uint32_t axes = 0;                ///< bit mask
    std::size_t planned = 0, ran = 0;
    std::int64_t planned_bytes = 0, ran_bytes = 0;
    bool by_region = false;                ///< some are inside regions, where bytes may depend on data: then only numbers are compared
    bool agrees() const { return planned == ran && (by_region || planned_bytes == ran_bytes); }
};

struct verification {
    model_request instance;                ///< what was captured
    std::vector<std::string> not_taken;    ///< why smaller instances were not: they would not build, or the plan's cuts do not fit them
    device_mesh full_mesh, mesh;
    std::size_t vertices = 0;
    dtype type = dtype::float64;           ///< coarsest element type that was run
    std::uint64_t seed = 1;
    double tolerance = 0;                  ///< relative
    double rounding_times = 0;             ///< 0: compared with one rank; else with float64, this x (rounding + tolerance x largest)
    std::vector<sink_difference> sinks;    ///< in order of the graph
    std::vector<collective_tally> collectives;  ///< ranks agree in them
    double seconds = 0;                    ///< of the ranks' run
    bool numbers_match() const;
    bool collectives_match() const;
    bool passed() const { return numbers_match() && collectives_match(); }
};

/// Captures a model as `cantle capture` does: in mixed precision and canonical form.
using capture_again = std::function<training_graph(model_request const&)>;
training_graph capture_canonical(model_request const& request);

/// Nothing runs before all of this holds. Throws: 802 for a plan of another graph; 803 for one that cannot run or was not what is priced;
/// 701 for a graph without origin, for a plan with ops that no rule covers, and for options out of range; 105 for an origin that cannot be
/// true (verify_origin.hpp); 201 where the mesh cannot shrink to that many ranks (the possible ones are named); 604
/// where the small instance is another graph; 206 where the plan's layouts do not fit it at any size, 402 where they are no row of a rule;
/// what capture, lowering and ranks throw.
verification verify(sharding_plan const& plan, training_graph const& graph, rule_registry const& rules, verify_options const& options,
                    capture_again const& capture);

/// `all`: every gradient, else copies of a layer folded into one row.
std::string text_of(verification const& v, bool all);
std::string json_of(verification const& v);

}  // namespace cantle::libtorch
