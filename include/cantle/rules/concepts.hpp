// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rule set is. Any class with these three members can be handed to plan(); see examples/own_graph.cpp.
#include <cantle/base/stable_hash.hpp>
#include <cantle/mesh/device_mesh.hpp>
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

/// Which axis rows are asked for. Mathematics needs its size only; a region declares its placements by axis name (region.hpp).
struct axis_context {
    device_mesh const* mesh = nullptr;
    std::size_t axis = 0;
    std::int64_t size() const { return mesh->size(axis); }
    std::string const& name() const { return mesh->name(axis); }
};

/// Satisfied by rule sets that have, in addition, rules for named axes: `bool names_axes(op const&) const` is true for ops whose rows
/// depend on the axis' name, and `rows(op_query const& local, axis_context const&) const` gives them. Optional.
template <class R>
concept GivesRowsOfNamedAxes = requires(R const& r, op const& o, op_query const& q, axis_context const& a) {
    { r.names_axes(o) } -> std::convertible_to<bool>;
    { r.rows(q, a) } -> std::convertible_to<std::vector<axis_row>>;
};

/// The rows of an op on one axis of a mesh, whatever the rule set needs to know of the axis.
template <RuleSet R>
std::vector<axis_row> rows_on_axis(R const& rules, op_query const& local, axis_context const& a) {
    if constexpr (GivesRowsOfNamedAxes<R>)
        if (rules.names_axes(*local.operation)) return rules.rows(local, a);
    return rules.rows(local, a.size());
}

/// Two axes of equal key have equal rows for equal local shapes: the key is the axis' size, or the axis where its name counts.
template <RuleSet R>
std::uint32_t rows_key(R const& rules, op const& o, axis_context const& a) {
    if constexpr (GivesRowsOfNamedAxes<R>)
        if (rules.names_axes(o)) return std::uint32_t{1} << 31 | static_cast<std::uint32_t>(a.axis);
    return static_cast<std::uint32_t>(a.size());
}

/// Called at a public door: one clear sentence per missing part.
template <class R>
constexpr void require_rule_set() {
    static_assert(CoversOps<R>, "a rule set needs: bool covers(cantle::op_query const&) const;");
    static_assert(GivesRows<R>,
                  "a rule set needs: std::vector<cantle::axis_row> rows(cantle::op_query const& local, std::int64_t axis_size) const;");
    static_assert(HasRuleHash<R>, "a rule set needs: void feed(cantle::stable_hasher&) const;");
}

}  // namespace cantle
