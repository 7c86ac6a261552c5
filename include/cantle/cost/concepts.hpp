// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a cost model is. Any class with these three members can price a plan; see examples/own_cost_model.cpp.
#include <cantle/base/stable_hash.hpp>
#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/collective.hpp>

#include <concepts>

namespace cantle {

/// Satisfied by `microseconds-as-double compute(op_query const& local) const`: time of one op on one device, metas local to a rank.
template <class C>
concept PricesCompute = requires(C const& c, op_query const& q) { { c.compute(q) } -> std::convertible_to<double>; };

/// Satisfied by `double collective(collective_call const&) const`: time of one collective, microseconds; slices and groups of one are 0.
template <class C>
concept PricesCollectives = requires(C const& c, collective_call const& call) { { c.collective(call) } -> std::convertible_to<double>; };

/// Satisfied by `void feed(stable_hasher&) const`: whatever changes a price changes the hash.
template <class C>
concept HasCostHash = requires(C const& c, stable_hasher& h) { c.feed(h); };

/// A cost model: all parts of it. Prices must be finite and not negative; planner.hpp checks each (error bad_cost).
/// Optional: `device_mesh const& mesh() const`, the mesh it was made for; plan() refuses another one.
template <class C>
concept CostModel = PricesCompute<C> && PricesCollectives<C> && HasCostHash<C>;

/// A cost model whose const members may be called by several threads at once says `static constexpr bool allows_threads = true`.
template <class C>
inline constexpr bool allows_threads = [] {
    if constexpr (requires { { C::allows_threads } -> std::convertible_to<bool>; }) return C::allows_threads;
    else return false;
}();

/// Called at a public door: one clear sentence per missing part.
template <class C>
constexpr void require_cost_model() {
    static_assert(PricesCompute<C>, "a cost model needs: double compute(cantle::op_query const&) const;");
    static_assert(PricesCollectives<C>, "a cost model needs: double collective(cantle::collective_call const&) const;");
    static_assert(HasCostHash<C>, "a cost model needs: void feed(cantle::stable_hasher&) const;");
}

}  // namespace cantle
