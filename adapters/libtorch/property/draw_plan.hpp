// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random feasible plans of a graph: optimal ones, those that are optimal for random prices, and random labels of the planning problem under
// random demands at the boundary.
#include <adapters/libtorch/property/drawing.hpp>

#include <cantle/plan/plan.hpp>
#include <cantle/planner.hpp>

#include <optional>
#include <string>

namespace cantle::libtorch {

/// Meshes that are tried.
inline char const* const property_meshes[] = {"2", "3", "4", "2x2", "2x3", "2x2x2"};

struct drawn_plan {
    std::optional<sharding_plan> plan;  ///< nothing: refused, for `why`
    std::string how, why;
    error_code code{};
};

/// A plan of `g` for `mesh`. A demand that this mesh cannot meet is dropped.
drawn_plan draw_plan(training_graph const& g, device_mesh const& mesh, dice& d);

}  // namespace cantle::libtorch
