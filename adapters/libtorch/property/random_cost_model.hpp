// SPDX-License-Identifier: BSL-1.0
#pragma once
// Prices drawn by chance, for plans that nobody would call good.
#include <cantle/base/stable_hash.hpp>
#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/collective.hpp>

#include <cstdint>

namespace cantle::libtorch {

/// Prices drawn from a hash of the question: its optimum is any feasible plan.
struct random_cost_model {
    std::uint64_t seed = 0;
    double price(stable_hasher& h, double most) const { return most * static_cast<double>(h.add(seed).finish().low % 1000) / 1000; }
    double compute(op_query const& q) const {
        stable_hasher h;
        h.add(q.name());
        for (auto const& t : q.operands) h.add(t.sizes);
        for (auto const& t : q.outputs) h.add(t.sizes);
        return price(h, 50.0);
    }
    double collective(collective_call const& c) const {
        stable_hasher h;
        h.add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after);
        return price(h, 5.0);
    }
    void feed(stable_hasher& h) const { h.add("random").add(seed); }
};

}  // namespace cantle::libtorch
