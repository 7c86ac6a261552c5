// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which local tensors share memory. A view costs nothing where its operand's strides allow it and a copy where they do not: an op called as
// a reshape decides that when it runs, so what a rank really holds is found by following strides as the executor's calls do.
#include <cantle/base/tensor_type.hpp>
#include <cantle/graph/op_traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace cantle {

/// Strides under which the elements of a tensor of `sizes` and `strides` read as `wanted`, in row-major order; nothing where they must be
/// copied. Precondition: as many elements.
inline std::optional<shape> view_strides(shape const& sizes, shape const& strides, shape const& wanted) {
    if (element_count(sizes) == 0) return contiguous_strides(wanted);
    // Runs of dims that lie in memory as one, innermost first; dims of size 1 lie anywhere.
    struct run { std::int64_t elements, stride; };
    std::vector<run> runs;
    for (std::size_t d = sizes.size(); d-- > 0;) {
        if (sizes[d] == 1) continue;
        if (!runs.empty() && strides[d] == runs.back().elements * runs.back().stride) runs.back().elements *= sizes[d];
        else runs.push_back({sizes[d], strides[d]});
    }
    shape result(wanted.size(), 1);
    std::size_t at = 0;
    std::int64_t taken = 1;  // elements of runs[at] that dims further in have
    for (std::size_t d = wanted.size(); d-- > 0;) {
        if (wanted[d] == 1) continue;
        if (at == runs.size() || runs[at].elements / taken % wanted[d] != 0) return std::nullopt;
        result[d] = runs[at].stride * taken;
        taken *= wanted[d];
        if (taken == runs[at].elements) {
            ++at;
            taken = 1;
        }
    }
    return result;
}

/// Strides of a dense tensor of `sizes` whose dims are nested as those of `like` (empty: row-major).
inline shape dense_strides(shape const& sizes, shape const& like) {
    if (like.size() != sizes.size()) return contiguous_strides(sizes);
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return like[a] > like[b]; });
    shape strides(sizes.size(), 1);
    std::int64_t step = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[order[i]] = step;
        step *= std::max<std::int64_t>(sizes[order[i]], 1);
    }
    return strides;
}

/// Row-major without gaps; a single number always is.
inline bool is_contiguous(shape const& sizes, shape const& strides) {
    auto const as_row = view_strides(sizes, strides, {element_count(sizes)});
    return as_row && as_row->front() == 1;
}

/// Strides of the result of `call` where it shares the memory of its first operand, nothing where it has memory of its own.
inline std::optional<shape> shared_strides(op const& call, shape const& sizes, shape const& strides, shape const& result) {
    auto const base = op_base_name(call.name);
    auto const rank = static_cast<std::int64_t>(sizes.size());
    auto const dim = [&](char const* name, std::int64_t otherwise) {
        auto const d = call.get<std::int64_t>(name, otherwise);
        return static_cast<std::size_t>(d < 0 ? d + rank : d);
    };
    if (base == "reshape" || base == "flatten" || base == "unflatten" || base == "view" || base == "_unsafe_view" ||
        base == "_reshape_alias" || base == "squeeze" || base == "unsqueeze")
        return view_strides(sizes, strides, result);
    bool const in_place = base.size() > 1 && base.back() == '_' && base[0] != '_';
    if (is_identity(call) || in_place) return strides;
    if (!is_alias(call)) return std::nullopt;
    shape s = strides;
    if (base == "t") std::reverse(s.begin(), s.end());
    else if (base == "transpose") {
        if (rank > 0) std::swap(s[dim("dim0", 0)], s[dim("dim1", 0)]);
    } else if (base == "permute") {
        auto const dims = call.get<std::vector<std::int64_t>>("dims", {});
        for (std::size_t i = 0; i < dims.size() && i < s.size(); ++i)
            s[i] = strides[static_cast<std::size_t>(dims[i] < 0 ? dims[i] + rank : dims[i])];
    } else if (base == "expand") {
        s.assign(result.size(), 0);
        for (std::size_t back = 1; back <= sizes.size() && back <= result.size(); ++back)
            if (sizes[sizes.size() - back] == result[result.size() - back]) s[result.size() - back] = strides[sizes.size() - back];
    } else if (base == "slice") {
        if (rank > 0) s[dim("dim", 0)] *= call.get<std::int64_t>("step", 1);
    } else if (base == "select") {
        if (rank > 0) s.erase(s.begin() + static_cast<std::ptrdiff_t>(dim("dim", 0)));
    } else if (base != "narrow") {
        s = contiguous_strides(result);  // the others: memory is shared, how it lies does not matter to what follows
    }
    return s.size() == result.size() ? s : contiguous_strides(result);
}

}  // namespace cantle
