// SPDX-License-Identifier: BSL-1.0
#pragma once
// The expansion of a rule to all axes, written down as plainly as it can be: no caches, no pruning, layouts copied at every step. What
// expand_axes.hpp must equal, strategy by strategy and in order.
#include <cantle/rules/concepts.hpp>
#include <cantle/rules/strategy.hpp>

#include <set>
#include <vector>

namespace cantle::test {

struct reference_strategy {
    std::vector<layout> ports;             // operands, then outputs
    std::vector<inner_on_axis> inner;
};

template <RuleSet Rules>
void reference_descend(op_query const& global, device_mesh const& mesh, Rules const& rules, std::size_t axis,
                       std::vector<tensor_meta> const& metas, reference_strategy const& so_far, std::set<std::vector<layout>>& seen,
                       std::vector<reference_strategy>& found) {
    if (axis == mesh.dims()) {
        if (seen.insert(so_far.ports).second) found.push_back(so_far);
        return;
    }
    std::int64_t const n = mesh.size(axis);
    if (n == 1) return reference_descend(global, mesh, rules, axis + 1, metas, so_far, seen, found);
    std::size_t const operands = global.operands.size();
    std::span<tensor_meta const> const all(metas);
    for (auto const& row : rules.rows({global.operation, all.first(operands), all.subspan(operands)}, n)) {
        auto next = so_far;
        auto local = metas;
        bool fits = true;
        for (std::size_t p = 0; fits && p < local.size(); ++p) {
            auto const place = p < operands ? row.operands[p] : row.outputs[p - operands];
            if (place.is_replicate() || !local[p].defined) continue;
            auto const& sizes = p < operands ? global.operands[p].sizes : global.outputs[p - operands].sizes;
            fits = next.ports[p].apply(axis, n, place, sizes);
            if (fits && place.is_shard()) local[p].sizes[place.dim] /= n;
        }
        if (!fits) continue;
        for (auto const& c : row.inner) next.inner.push_back({static_cast<std::uint32_t>(axis), c});
        reference_descend(global, mesh, rules, axis + 1, local, next, seen, found);
    }
}

template <RuleSet Rules>
std::vector<reference_strategy> reference_expansion(op_query const& global, device_mesh const& mesh, Rules const& rules) {
    std::vector<tensor_meta> metas(global.operands.begin(), global.operands.end());
    metas.insert(metas.end(), global.outputs.begin(), global.outputs.end());
    for (auto& m : metas) m.strides.clear();
    std::set<std::vector<layout>> seen;
    std::vector<reference_strategy> found;
    reference_descend(global, mesh, rules, 0, metas, {std::vector<layout>(metas.size(), layout(mesh.dims())), {}}, seen, found);
    return found;
}

}  // namespace cantle::test
