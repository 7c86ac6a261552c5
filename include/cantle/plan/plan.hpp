// SPDX-License-Identifier: BSL-1.0
#pragma once
// The result of planning: an immutable value. It names layouts, never strategy indices, holds the collective path of every tensor that
// changes its layout, and carries its bound, its constraints and the hashes of what it was made from. No times, no host data.
#include <cantle/base/budget_use.hpp>
#include <cantle/base/solve_status.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/mesh/placement_lattice.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cantle {

/// Index into sharding_plan::layouts.
using plan_layout = std::uint32_t;

/// A collective that an op runs inside itself (DECISIONS 6), e.g. the maximum over a sharded vocabulary.
struct inner_step {
    collective_call call;
    bool on_output = true;      ///< the message is output (else operand) `index`, at its local size
    std::uint32_t index = 0;
    double cost = 0;            ///< microseconds
};

/// One vertex: the layouts its local op sees and gives. Sources have outputs only; sinks have one operand and one output alike.
struct node_placement {
    std::vector<plan_layout> operands, outputs;
    double compute = 0;         ///< microseconds on one rank
    std::vector<inner_step> inner;
};

/// A tensor with several uses is moved here once; its uses go on from there.
struct relay_placement {
    value_ref value;
    plan_layout at = 0;
};

/// How a tensor gets from one layout to another: the cheapest path of the placement lattice. Equal paths are stored once.
struct redistribution_path {
    plan_layout from = 0, to = 0;
    std::vector<priced_transition> steps;
    double cost = 0;            ///< microseconds, without the tie-break
};

/// One change of layout that the ranks perform. From the producer or its relay, to the relay or one operand of a user.
struct tensor_move {
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    value_ref value;
    std::uint32_t from_relay = none, to_relay = none;  ///< index into relays, or none
    vertex user = 0;                                   ///< where to_relay is none
    std::uint32_t operand = 0;
    std::uint32_t path = 0;                            ///< index into paths
};

/// The objective by part, microseconds.
struct plan_cost {
    double forward_compute = 0, backward_compute = 0;
    std::array<double, 6> moves{};   ///< by collective_kind
    double inner = 0;                ///< collectives inside ops
    double tie_break = 0;            ///< the published +1 us per flow edge whose layouts differ
    double communication() const {
        double sum = inner;
        for (double m : moves) sum += m;
        return sum;
    }
    double total() const { return forward_compute + backward_compute + communication() + tie_break; }
};

/// Bytes of parameters: of the whole model, and on one rank under the plan.
struct plan_memory {
    std::int64_t parameters_global = 0, parameters_local = 0;
};

/// What the plan was made from; a plan is refused where these differ.
struct plan_provenance {
    digest graph, rules, cost, options;
    bool operator==(plan_provenance const&) const = default;
};

/// An op that no rule covers, planned whole on every rank because the caller asked for that.
struct fallback_op {
    std::string name;
    std::size_t count = 0;     ///< vertices
    bool operator==(fallback_op const&) const = default;
};

struct sharding_plan {
    device_mesh mesh;
    std::vector<layout> layouts;
    std::vector<node_placement> nodes;     ///< [vertex]
    std::vector<relay_placement> relays;
    std::vector<redistribution_path> paths;
    std::vector<tensor_move> moves;        ///< in order of the vertices they serve
    plan_cost cost;
    plan_memory memory;
    double objective = 0;                  ///< microseconds
    double bound = 0;                      ///< no solution of `bounded_problem` costs less, microseconds
    solve_status status = solve_status::optimal;
    std::string bounded_problem;           ///< the problem that objective and bound belong to, in words
    std::vector<std::string> constraints;  ///< what was demanded, defaults included
    std::vector<budget_use> budgets;       ///< in the order given; empty where none was
    std::vector<fallback_op> fallbacks;    ///< by name; empty where rules cover all ops
    plan_provenance made_from;

    /// (objective - bound) / objective, never negative; 0 for an empty plan.
    double gap() const { return objective > 0 ? (objective - bound) / objective : 0.0; }
    layout const& at(plan_layout l) const { return layouts[l]; }
};

}  // namespace cantle
