// SPDX-License-Identifier: BSL-1.0
#pragma once
// A graph around one op with the numbers of a rule sample: ops in front of its operands and behind its outputs bring them into layouts that
// a bare input or output cannot have (Partial, whole factors, other cut orders).
#include <adapters/libtorch/property/drawing.hpp>
#include <adapters/libtorch/property/run_case.hpp>

#include <optional>

namespace cantle::libtorch {

struct sample_graph {
    training_graph graph;
    tensor_map data;
};

/// One of rule_samples(), drawn; nothing where it cannot be run alone on one rank (random ops, ops with effects).
std::optional<sample_graph> draw_sample_graph(dice& d);

}  // namespace cantle::libtorch
