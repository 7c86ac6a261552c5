// SPDX-License-Identifier: BSL-1.0
#pragma once
// One case of "a plan, run, gives the numbers of one rank": a graph, a plan of it, numbers for its sources. Lowered for all ranks, checked,
// run on threads, put together, compared with the replay on one rank; what ran is compared with what the plan priced.
#include <cantle/graph/training_graph.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/program/program.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cantle::libtorch {

using tensor_map = std::map<std::string, at::Tensor>;

struct run_case {
    training_graph graph;
    sharding_plan plan;
    tensor_map data;  ///< a tensor per source but constants, by name
};

/// What went wrong. `kind`: "numbers", "collectives", or "error NNN" of a cantle::error on the way; `where`: the sink or op.
struct run_failure {
    std::string kind, where, what;
};

/// May change the programs of all ranks before they run: for tests of this machinery.
using tamper_programs = std::function<void(std::vector<rank_program>&)>;

/// Nothing where the case holds. Numbers are compared bit by bit where the graph has only ops that are exact on dyadic numbers and the data
/// are dyadic, else within 1e-9 of the largest number of the sink.
std::optional<run_failure> failure_of(run_case const& c, tamper_programs const& tamper = {});

/// True where `g` has only ops that are exact on small dyadic numbers.
bool is_exact(training_graph const& g);
/// Small dyadic numbers, or normal ones; indices below `bounds` by name.
tensor_map draw_data(training_graph const& g, std::map<std::string, std::int64_t> const& bounds, bool dyadic, std::uint64_t seed);

}  // namespace cantle::libtorch
