// SPDX-License-Identifier: BSL-1.0
#pragma once
// Numbers for the oracle: which global elements a rank holds, how a tensor is split into partial values, and whether what the ranks hold
// is the global tensor under a layout. Comparisons run over plain arrays, because an oracle makes millions of them.
#include <cantle/mesh/device_mesh.hpp>
#include <cantle/mesh/layout.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cantle::libtorch {

/// The tensors of one operand or output on every rank.
using rank_tensors = std::vector<at::Tensor>;

/// How a tensor is split into partial values (by reduction kind the ranks' values are sums, averages, maxima or minima of each other's).
enum class partial_split : std::uint8_t { all_on_first, all_on_last, cancelling, sign_mixed, checkerboard, dyadic };
inline constexpr partial_split partial_splits[] = {partial_split::sign_mixed,   partial_split::all_on_first, partial_split::all_on_last,
                                                   partial_split::checkerboard, partial_split::cancelling,   partial_split::dyadic};
std::string_view to_string(partial_split s);

/// False where a type has no partial values of that kind: flags have no sums, and unsigned numbers none that cancel.
bool has_partials(at::ScalarType type, reduction kind);
/// Values for n ranks whose reduction of that kind is `global` exactly, as long as global holds multiples of 1/8 of moderate size.
/// `averaged`: the sum of the parts is so many times global (some axes hold sums, others averages); n for avg. Precondition: has_partials.
rank_tensors split_partial(at::Tensor const& global, reduction kind, std::int64_t n, partial_split how, std::uint64_t seed,
                           std::int64_t averaged = 1);

/// For every dim the global indices that `rank` holds, in its own order. All the oracle knows of pieces comes from here.
std::vector<std::vector<std::int64_t>> held_indices(layout const& l, device_mesh const& mesh, shape const& global, std::int64_t rank);
/// The piece of every rank under the cuts of `l`: elements of `whole`, or, where axes hold partial values, of `parts` (by the rank's
/// coordinates on the partial axes, outermost first).
rank_tensors pieces_of(rank_tensors const& parts, layout const& l, device_mesh const& mesh);

/// A tensor's values, whatever its type, as float64.
struct plain_values {
    bool defined = false;
    at::ScalarType type = at::kDouble;
    shape sizes;
    std::vector<double> values;
    double scale = 1.0;  ///< largest finite magnitude, at least 1
};
plain_values plain(at::Tensor const& t, bool values_matter = true);

/// Do the ranks' tensors mean `want` under `l`? Nothing where they do, else what differs. `exact`: no rounding is allowed for.
std::string difference(std::vector<plain_values> const& ranks, layout const& l, device_mesh const& mesh, plain_values const& want,
                       bool exact);

/// Sums, products, views and selections of multiples of 1/8 are exact in float64: compared bit by bit.
bool is_exact_op(std::string_view name);

}  // namespace cantle::libtorch
