// SPDX-License-Identifier: BSL-1.0
#pragma once
// The program of one rank: calls of local ops and transfers between ranks in one order, values by number. All ranks have the same steps and
// values; only literals, local sizes and places in groups differ (SPMD), so their collectives come in one total order by construction, and
// check.hpp proves it.
#include <cantle/graph/training_graph.hpp>
#include <cantle/mesh/local_piece.hpp>
#include <cantle/program/transfer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cantle {

/// Index into rank_program::values.
using program_value = std::uint32_t;

/// A tensor that a rank holds for a while. Sizes are local; unknown for what an op's local program makes on the way.
struct value_info {
    std::optional<shape> sizes;
    cantle::dtype type = dtype::float32;
    bool defined = true;  ///< false: an output that the op leaves out
};

/// A local call of `call` (its tensor slots index `inputs`), or, where its name is empty, the transfer `move` of inputs[0].
struct program_step {
    op call;
    transfer move;
    std::vector<program_value> inputs, outputs;
    vertex at = 0;                         ///< the vertex it belongs to: the op called, or the one that needs the tensor moved
    std::vector<program_value> last_uses;  ///< values that nobody reads after this step
    bool is_transfer() const { return call.name.empty(); }
};

/// What goes in or comes out: a source or sink of the graph, this rank's piece of it.
struct program_port {
    vertex node = 0;
    program_value value = 0;
    local_piece piece;
};

struct rank_program {
    std::int64_t rank = 0;
    device_mesh mesh;
    std::vector<value_info> values;
    std::vector<program_port> inputs;   ///< sources in order of the graph
    std::vector<program_port> outputs;  ///< sinks in order of the graph
    std::vector<program_step> steps;
};

/// Writes last_uses anew: every value but the outputs goes at the last step that reads or makes it, a source that nobody reads with the
/// first step.
inline void note_last_uses(rank_program& p) {
    std::vector<bool> kept(p.values.size(), false);
    for (auto const& port : p.outputs) kept[port.value] = true;
    for (auto s = p.steps.rbegin(); s != p.steps.rend(); ++s) {
        s->last_uses.clear();
        for (auto const* list : {&s->inputs, &s->outputs})
            for (auto v : *list)
                if (!kept[v]) {
                    kept[v] = true;
                    s->last_uses.push_back(v);
                }
    }
    for (auto const& port : p.inputs)
        if (!kept[port.value] && !p.steps.empty()) p.steps.front().last_uses.push_back(port.value);
}

}  // namespace cantle
