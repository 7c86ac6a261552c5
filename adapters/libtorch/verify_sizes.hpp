// SPDX-License-Identifier: BSL-1.0
#pragma once
// The small instance of a model that `cantle verify` runs: its recorded sizes, scaled down but never in kind (DECISIONS 14).
#include <adapters/libtorch/capture_models.hpp>

#include <cstdint>
#include <string_view>

namespace cantle::libtorch {

/// The most that `level` of small_instance may be.
inline constexpr int last_size_level = 4;

/// What small sizes must keep beyond that.
struct size_needs {
    bool uneven = false;      ///< the plan cuts dims that an axis does not divide: theirs leave no rank without elements either
    std::int64_t unit = 1;    ///< widths are multiples of this on every rank, where the full ones are (grouped products: 16 bytes)
};

/// What to capture in place of `origin` for a run on `ranks` ranks. Layers, experts per token and whatever counts kinds stay; sizes become
/// small ones that `ranks` divides as far as it divided the full ones (50257 stays odd, 25 heads stay odd); heads per key-value head, and
/// dim = heads x head_dim, stay. A size of unknown meaning stays. `level`: 0 gives the smallest instance; each next one has heads twice as
/// wide, for plans that cut inside them.
model_request small_instance(graph_origin const& origin, std::int64_t ranks, int level, size_needs needs = {});

/// What a recorded size is by its name: a dim of some tensor, a number of positions, or something else (layers, kinds, flags).
enum class size_kind { other, dim, length };
size_kind kind_of_size(std::string_view key);

}  // namespace cantle::libtorch
