// SPDX-License-Identifier: BSL-1.0
#pragma once
// The collectives of a plan, added up by kind, axes and what they move.
#include <cantle/report/plan_view.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace cantle {

struct collective_row {
    collective_kind kind = collective_kind::slice;
    std::uint32_t axes = 0;             ///< bit mask of mesh axes; several: one flattened communicator
    std::optional<cargo> what;          ///< absent when the graph is not known
    std::size_t count = 0;
    std::int64_t bytes = 0;             ///< messages of one GPU together (collective_call::message_bytes)
    double cost = 0;                    ///< microseconds
};

/// "dp", "dp,tp".
inline std::string axes_text(device_mesh const& mesh, std::uint32_t axes) {
    std::string s;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (axes >> a & 1) s += (s.empty() ? "" : ",") + mesh.name(a);
    return s;
}

/// Sorted by kind, then axes, then cargo. `view` may be null: then all cargos are absent, except that of collectives inside ops.
inline std::vector<collective_row> sum_collectives(sharding_plan const& plan, plan_view const* view) {
    std::map<std::tuple<collective_kind, std::uint32_t, int>, collective_row> rows;
    auto const add = [&rows](collective_call const& call, std::optional<cargo> what, double cost) {
        auto& r = rows[{call.kind, call.axes, what ? static_cast<int>(*what) : -1}];
        r.kind = call.kind;
        r.axes = call.axes;
        r.what = what;
        ++r.count;
        r.bytes += call.message_bytes();
        r.cost += cost;
    };
    for (auto const& m : plan.moves) {
        std::optional<cargo> what;
        if (view) what = view->cargo_of(m);
        for (auto const& s : plan.paths[m.path].steps) add(s.call, what, s.cost);
    }
    for (auto const& n : plan.nodes)
        for (auto const& s : n.inner) add(s.call, cargo::inside_ops, s.cost);
    std::vector<collective_row> list;
    for (auto const& [key, row] : rows) list.push_back(row);
    return list;
}

}  // namespace cantle
