// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops on tensors of shape [8], each with a few rows beside "all whole", which every op has. What is cut or whole can never become Partial,
// so rows that want Partial are the hard constraints of these graphs. Every collective costs 10 microseconds, every op 1.
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/registry.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cantle::test {

struct small_prices {
    double compute(op_query const&) const { return 1; }
    double collective(collective_call const& c) const { return c.kind == collective_kind::slice ? 0.0 : 10.0; }
    void feed(stable_hasher& h) const { h.add("small-prices-1"); }
};

inline rule_registry small_rules() {
    auto const R = placement::replicate(), S0 = placement::shard(0), P = placement::partial(), M = placement::partial(reduction::max);
    rule_registry r;
    r.add("t::make", rows_rule({{{R}, {P}}, {{S0}, {S0}}}));
    r.add("t::add", rows_rule({{{P, P}, {P}}, {{S0, S0}, {S0}}}));
    r.add("aten::_to_copy", rows_rule({{{S0}, {S0}}}));
    r.add("t::keep", rows_rule({{{P}, {P}}, {{S0}, {S0}}}));
    // One of two outputs is Partial: the first or the second.
    r.add("t::choose", rows_rule({{{R}, {P, R}}, {{R}, {R, P}}}));
    // Gives S0 only where two choices differ: (first of a, second of b) or (second of a, first of b) are Partial.
    r.add("t::differ", rows_rule({{{P, R, R, P}, {S0}}, {{R, P, P, R}, {S0}}}));
    // A sum from what is whole, or a maximum from what is cut; and ops that want the one or the other.
    r.add("t::sum_or_max", rows_rule({{{R}, {P}}, {{S0}, {M}}}));
    r.add("t::want_sum", rows_rule({{{P}, {S0}}}));
    r.add("t::want_max", rows_rule({{{M}, {S0}}}));
    return r;
}

/// A call of a small op under a name of its own. Outputs behind the first are {node, i}.
inline value_ref small_op(graph_builder& b, std::string const& op, std::vector<value_ref> const& operands, std::string const& as,
                          std::size_t outputs = 1) {
    std::vector<call_argument> arguments;
    for (std::size_t i = 0; i < operands.size(); ++i) arguments.push_back({"x" + std::to_string(i), operands[i]});
    return b.named(as, b.call("t::" + op, arguments, std::vector<tensor_meta>(outputs, contiguous_meta({8}, dtype::float32))));
}

inline sharding_plan small_plan(training_graph const& g, plan_options const& options, planning_statistics* stats = nullptr,
                                control const& limits = {}, char const* mesh = "2") {
    return plan(g, device_mesh::parse(mesh), small_rules(), small_prices{}, options, limits, stats);
}

}  // namespace cantle::test
