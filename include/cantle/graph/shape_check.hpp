// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether the outputs of a node have the shapes that its op makes of its operands: a plan of shapes that no run produces is worth nothing.
// Only sizes are compared (types depend on autocast), only where shape_inference.hpp knows the op and the node spells its arguments out.
#include <cantle/base/error.hpp>
#include <cantle/graph/shape_inference.hpp>
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle::detail {

/// False where a literal that decides the shape is left out, as graphs of one's own may do: they give the output metas.
inline bool spells_out_its_shape(op const& o) {
    constexpr std::pair<std::string_view, std::string_view> needed[] = {
        {"aten::view", "size"},          {"aten::_unsafe_view", "size"},  {"aten::reshape", "size"},    {"aten::expand", "size"},
        {"aten::permute", "dims"},       {"aten::transpose.int", "dim0"}, {"aten::transpose.int", "dim1"}, {"aten::sum.dim_IntList", "dim"},
        {"aten::mean.dim", "dim"},       {"aten::amax", "dim"},           {"aten::embedding_dense_backward", "num_weights"}};
    return std::all_of(std::begin(needed), std::end(needed), [&o](auto const& n) {
        return n.first != o.name || std::any_of(o.arguments.begin(), o.arguments.end(), [&n](auto const& a) { return a.name == n.second; });
    });
}

/// Throws bad_graph naming the node and both shapes. Pre: operands and slots are valid.
inline void check_shapes(training_graph const& g, graph_node const& n) {
    if (!spells_out_its_shape(n.operation)) return;
    std::vector<tensor_meta> operands;
    for (auto const r : n.operands) operands.push_back(g.meta(r));
    for (auto& m : operands) m.strides.clear();
    std::optional<std::vector<tensor_meta>> wanted;
    try {
        wanted = infer_outputs(n.operation, operands);
    } catch (argument_missing const&) {
        return;
    } catch (error const& e) {
        throw error(e.code(), "node '" + n.name + "'", e.subject() + ": " + e.problem(), "correct the node's operands or its arguments");
    }
    for (std::size_t i = 0; wanted && i < std::min(wanted->size(), n.outputs.size()); ++i) {
        if (!n.outputs[i].defined || n.outputs[i].sizes == (*wanted)[i].sizes) continue;
        std::string from;
        for (auto const& m : operands) from += (from.empty() ? "" : ", ") + shape_text(m.sizes);
        throw error(error_code::bad_graph, "node '" + n.name + "'",
                    "output " + std::to_string(i) + " is " + shape_text(n.outputs[i].sizes) + ", but " + n.operation.name + " of " + from +
                        " gives " + shape_text((*wanted)[i].sizes),
                    "correct the meta of the output or the operands");
    }
}

}  // namespace cantle::detail
