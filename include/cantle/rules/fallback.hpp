// SPDX-License-Identifier: BSL-1.0
#pragma once
// What happens to an op that no rule covers. By default it ends the run; who asks for it gets the op whole on every rank, which is true of
// every op and may cost gathers. Plans name the ops that were planned so.
#include <cantle/rules/concepts.hpp>

#include <string_view>

namespace cantle {

enum class rule_fallback : std::uint8_t { none, replicate };

constexpr std::string_view to_string(rule_fallback f) { return f == rule_fallback::replicate ? "replicate" : "none"; }

/// A rule set, with the fallback for what it does not cover. Refers to the rule set.
template <RuleSet Rules>
class rules_with_fallback {
public:
    rules_with_fallback(Rules const& rules, rule_fallback fallback) : rules_(rules), fallback_(fallback) {}

    bool covers(op_query const& q) const { return fallback_ == rule_fallback::replicate || rules_.covers(q); }
    std::vector<axis_row> rows(op_query const& q, std::int64_t axis_size) const {
        if (!rules_.covers(q)) return row_list(q.operands.size(), q.outputs.size()).take();
        return rules_.rows(q, axis_size);
    }
    bool names_axes(op const& o) const requires GivesRowsOfNamedAxes<Rules> { return rules_.names_axes(o); }
    std::vector<axis_row> rows(op_query const& q, axis_context const& a) const requires GivesRowsOfNamedAxes<Rules> {
        return rules_.rows(q, a);
    }
    void feed(stable_hasher& h) const { rules_.feed(h); }

private:
    Rules const& rules_;
    rule_fallback fallback_;
};

}  // namespace cantle
