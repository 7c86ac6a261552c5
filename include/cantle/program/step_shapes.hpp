// SPDX-License-Identifier: BSL-1.0
#pragma once
// Metas of what an op's local program makes on the way. The graph does not know these tensors, lowering leaves their sizes open; whoever
// counts memory asks here.
#include <cantle/base/error.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/shape_inference.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// Metas of all outputs of a call on local tensors; empty where they are not known. Ops that local rules use beside those of
/// shape_inference.hpp: comparisons with a number, logic, masks, gather and scatter, dims of size 1, padding.
inline std::vector<tensor_meta> step_outputs(op const& call, std::vector<tensor_meta> const& operands) {
    try {
        if (auto known = infer_outputs(call, operands)) return std::move(*known);
    } catch (error const&) {
        return {};  // local operands may be empty or of other dims than a table of whole ops expects
    }
    if (operands.empty()) return {};
    auto const& self = operands[0];
    auto const base = op_base_name(call.name);
    auto const one_of = [&](auto const& names) { return std::find(names.begin(), names.end(), base) != names.end(); };
    static constexpr std::array<std::string_view, 11> compares{"eq", "ne", "lt", "le", "gt", "ge", "logical_or", "logical_and",
                                                               "logical_not", "logical_xor", "isnan"};
    static constexpr std::array<std::string_view, 8> keeps{"masked_fill", "scatter_add", "scatter", "remainder",
                                                           "copy_",       "cumsum",      "index_add", "where"};
    if (one_of(compares)) {
        auto const* widest = &self;
        for (auto const& m : operands)
            if (m.elements() > widest->elements()) widest = &m;
        return {contiguous_meta(widest->sizes, dtype::boolean)};
    }
    if (one_of(keeps)) return {contiguous_meta(self.sizes, self.type)};
    if (base == "gather" && operands.size() > 1) return {contiguous_meta(operands[1].sizes, self.type)};
    auto sizes = self.sizes;
    auto const rank = static_cast<std::int64_t>(sizes.size());
    auto d = call.get<std::int64_t>("dim", 0);
    if (base == "unsqueeze") {
        if (d < 0) d += rank + 1;
        if (d < 0 || d > rank) return {};
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), 1);
        return {contiguous_meta(std::move(sizes), self.type)};
    }
    if (d < 0) d += rank;
    if (d < 0 || d >= rank) return {};
    auto const at = static_cast<std::size_t>(d);
    if (base == "squeeze") {
        if (sizes[at] == 1) sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
        return {contiguous_meta(std::move(sizes), self.type)};
    }
    if (base == "slice" || base == "narrow") {
        auto const begin_end = [&](char const* name, std::int64_t otherwise) {
            auto const v = call.get<std::int64_t>(name, otherwise);
            return std::clamp(v < 0 ? v + sizes[at] : v, std::int64_t{0}, sizes[at]);
        };
        auto const step = std::max<std::int64_t>(call.get<std::int64_t>("step", 1), 1);
        auto const first = begin_end("start", 0);
        auto const length = base == "slice" ? (std::max(begin_end("end", sizes[at]) - first, std::int64_t{0}) + step - 1) / step
                                            : call.get<std::int64_t>("length", 0);
        sizes[at] = length;
        return {contiguous_meta(std::move(sizes), self.type)};
    }
    if (base == "constant_pad_nd") {
        auto const pad = call.get<shape>("pad", {});
        for (std::size_t i = 0; i + 1 < pad.size() && i / 2 < sizes.size(); i += 2) sizes[sizes.size() - 1 - i / 2] += pad[i] + pad[i + 1];
        return {contiguous_meta(std::move(sizes), self.type)};
    }
    return {};
}

}  // namespace cantle
