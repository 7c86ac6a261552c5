// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rule set is. Any class with these three members can be handed to plan(); see examples/own_graph.cpp.
#include <cantle/base/stable_hash.hpp>
#include <cantle/rules/axis_row.hpp>

#include <concepts>
#include <vector>

namespace cantle {

/// Satisfied by `bool covers(op_query const&) const`: true where rows() answers for that op.
template <class R>
concept CoversOps = requires(R const& r, op_query const& q) { { r.covers(q) } -> std::convertible_to<bool>; };

/// Satisfied by `std::vector<axis_row> rows(op_query const& local, std::int64_t axis_size) const`: the rows of one axis of that size, for
/// metas local to the axes outside it. Rows whose shards do not divide are dropped by the caller; the rule need not check plain shards.
template <class R>
concept GivesRows = requires(R const& r, op_query const& q, std::int64_t n) {
    { r.rows(q, n) } -> std::convertible_to<std::vector<axis_row>>;
};

/// Satisfied by `void feed(stable_hasher&) const`: a changed rule changes the hash.
template <class R>
concept HasRuleHash = requires(R const& r, stable_hasher& h) { r.feed(h); };

template <class R>
concept RuleSet = CoversOps<R> && GivesRows<R> && HasRuleHash<R>;

/// Called at a public door: one clear sentence per missing part.
template <class R>
constexpr void require_rule_set() {
    static_assert(CoversOps<R>, "a rule set needs: bool covers(cantle::op_query const&) const;");
    static_assert(GivesRows<R>,
                  "a rule set needs: std::vector<cantle::axis_row> rows(cantle::op_query const& local, std::int64_t axis_size) const;");
    static_assert(HasRuleHash<R>, "a rule set needs: void feed(cantle::stable_hasher&) const;");
}

}  // namespace cantle
