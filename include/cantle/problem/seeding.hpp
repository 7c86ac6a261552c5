// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a first plan on many mesh axes, long before all strategies of all axes together have been weighed.
// Idea (the published one): every mesh axis alone gives a small problem; its optimum is found exactly. What these plans say axis by axis
// is a seed, and the strategies that differ from the seed on at most r axes (the Hamming distance) are a ball in which a good plan lies.
// Limits: the best plan of the ball need not be the best plan (published instance 4x2x4, r = 2: 0.07 % dearer), and a bound within the ball
// bounds nothing outside of it. So the planner starts from the ball and goes on without it, unless the ball is asked for as a policy.
#include <cantle/mrf/solve.hpp>
#include <cantle/problem/build_problem.hpp>
#include <cantle/problem/label_subset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cantle {

/// What the optima of a few axes alone say about every port of every group.
struct axis_seeds {
    /// [axis][seed][group of the whole problem][port]: the placement on that axis.
    std::vector<std::vector<std::vector<std::vector<placement>>>> at;
};

/// Which axes are solved together: every axis alone, as published, or every two of them too.
enum class seed_axes_of : std::uint8_t { single, pairs };

namespace detail {

inline std::size_t port_count(planning_problem const& p, decision_group const& g) {
    return g.of_strategies ? p.classes.classes[g.op_class].strategies.ports() : 1;
}

/// All axes outside `mask` have one rank: the texts of the boundary still mean something, and prices are those of the axes where they lie.
inline device_mesh only_axes(device_mesh const& mesh, std::uint32_t mask) {
    auto axes = mesh.axes();
    for (std::size_t a = 0; a < axes.size(); ++a)
        if (!(mask >> a & 1)) axes[a].size = 1;
    return device_mesh(std::move(axes));
}

}  // namespace detail

/// Solves single axes, or all pairs of axes too, of p's mesh alone. `p` was formed of g with rules and cost. Deterministic.
template <RuleSet Rules, CostModel Cost>
axis_seeds seed_axes(planning_problem const& p, training_graph const& g, Rules const& rules, Cost const& cost,
                     seed_axes_of which = seed_axes_of::single, mrf::solve_options const& options = {}, control const& limits = {}) {
    axis_seeds seeds;
    seeds.at.resize(p.mesh.dims());
    std::vector<std::uint32_t> masks;
    for (std::size_t a = 0; a < p.mesh.dims(); ++a) {
        if (p.mesh.size(a) == 1) continue;
        masks.push_back(1u << a);
        for (std::size_t b = 0; b < a && which == seed_axes_of::pairs; ++b)
            if (p.mesh.size(b) > 1) masks.push_back(1u << a | 1u << b);
    }
    for (auto mask : masks) {
        auto const alone = build_problem(g, detail::only_axes(p.mesh, mask), rules, cost, p.options);
        auto const solved = mrf::solve(alone.factors, options, limits);
        if (solved.labels.empty()) continue;
        for (std::size_t a = 0; a < p.mesh.dims(); ++a) {
            if (!(mask >> a & 1)) continue;
            seeds.at[a].emplace_back();
            for (auto const& group : p.grouping.groups) {
                auto const v = group.members.front();
                std::vector<placement> on_ports;
                for (std::uint32_t port = 0; port < detail::port_count(p, group); ++port) {
                    auto const l = alone.layout_at(v, port, solved.labels[alone.grouping.group_of[v]]);
                    on_ports.push_back(alone.layouts[l].on(a));
                }
                seeds.at[a].back().push_back(std::move(on_ports));
            }
        }
    }
    return seeds;
}

/// The labels of every group that are as no seed says on at most `radius` axes; of a group without one, those where that is so on the
/// fewest. Axes without a seed count for nothing.
inline label_subset seed_ball(planning_problem const& p, axis_seeds const& seeds, std::size_t radius) {
    std::size_t const axes = p.mesh.dims();
    std::vector<placement> on(axes * p.layouts.size());  // [axis, layout]
    for (layout_id l = 0; l < p.layouts.size(); ++l)
        for (std::size_t a = 0; a < axes; ++a) on[a * p.layouts.size() + l] = p.layouts[l].on(a);
    label_subset kept(p.grouping.groups.size());
    std::vector<std::size_t> distance;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        auto const& group = p.grouping.groups[i];
        std::size_t const ports = detail::port_count(p, group);
        distance.assign(group.label_count(), 0);
        std::size_t least = axes;
        for (mrf::label l = 0; l < distance.size(); ++l) {
            for (std::size_t a = 0; a < axes; ++a) {
                auto const says = [&](auto const& seed) {
                    for (std::uint32_t port = 0; port < ports; ++port)
                        if (on[a * p.layouts.size() + p.layout_at(group.members.front(), port, l)] != seed[i][port]) return false;
                    return true;
                };
                distance[l] += !seeds.at[a].empty() && std::none_of(seeds.at[a].begin(), seeds.at[a].end(), says);
            }
            least = std::min(least, distance[l]);
        }
        for (mrf::label l = 0; l < distance.size(); ++l)
            if (distance[l] <= std::max(radius, least)) kept[i].push_back(l);
    }
    return kept;
}

}  // namespace cantle
