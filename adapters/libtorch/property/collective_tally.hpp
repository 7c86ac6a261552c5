// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a plan prices and what its ranks ran, in a form that can be compared.
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/plan/plan.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cantle::libtorch {

/// (kind, axes) -> number and bytes. Order of axes does not matter for a price.
using tally = std::map<std::pair<collective_kind, std::uint32_t>, std::pair<std::size_t, std::int64_t>>;
/// What the plan prices.
inline tally priced(sharding_plan const& p) {
    tally t;
    auto const count = [&](collective_call const& c) {
        if (c.kind == collective_kind::slice) return;
        auto& at = t[{c.kind, c.axes}];
        ++at.first;
        at.second += c.bytes_before;
    };
    for (auto const& m : p.moves)
        for (auto const& s : p.paths[m.path].steps) count(s.call);
    for (auto const& n : p.nodes)
        for (auto const& i : n.inner) count(i.call);
    return t;
}
/// What ran.
inline tally counted(std::vector<ran_collective> const& ran) {
    tally t;
    for (auto const& c : ran) {
        std::uint32_t axes = 0;
        for (auto a : c.axes) axes |= 1u << a;
        auto& at = t[{c.kind, axes}];
        ++at.first;
        at.second += c.bytes;
    }
    return t;
}

}  // namespace cantle::libtorch
