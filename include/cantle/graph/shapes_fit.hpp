// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether a node's metas are what its op makes of its operands, for the ops that canonicalize() rewrites. A graph from elsewhere may hold a
// node of a known name that does not keep to it; such a node is left alone.
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace cantle::detail {

/// aten::view and what means the same once strides are no concern.
inline bool is_reshape(op const& o) { return o.name == "aten::view" || o.name == "aten::_unsafe_view" || o.name == "aten::reshape"; }

/// The permutation of a t, transpose or permute of a tensor of that rank (new dim -> old dim), or nothing.
inline std::optional<std::vector<std::size_t>> permutation(op const& o, std::size_t rank) {
    auto const r = static_cast<std::int64_t>(rank);
    std::vector<std::size_t> p(rank);
    std::iota(p.begin(), p.end(), std::size_t{0});
    auto dim = [r](std::int64_t d) { return d < -r || d >= r ? static_cast<std::size_t>(r) : static_cast<std::size_t>(d < 0 ? d + r : d); };
    if (o.name == "aten::t") {
        if (rank > 2) return std::nullopt;
        std::reverse(p.begin(), p.end());
    } else if (o.name == "aten::transpose.int") {
        auto const a = dim(o.get<std::int64_t>("dim0", r)), b = dim(o.get<std::int64_t>("dim1", r));
        if (a == rank || b == rank) return std::nullopt;
        std::swap(p[a], p[b]);
    } else if (o.name == "aten::permute") {
        auto const dims = o.get<shape>("dims", {});
        std::vector<bool> seen(rank, false);
        if (dims.size() != rank) return std::nullopt;
        for (std::size_t i = 0; i < rank; ++i) {
            p[i] = dim(dims[i]);
            if (p[i] == rank || seen[p[i]]) return std::nullopt;
            seen[p[i]] = true;
        }
    } else {
        return std::nullopt;
    }
    return p;
}

/// True when the node (an op of the lists below, one output) has the shapes that its op gives; true for every op that is in no list.
inline bool shapes_fit(training_graph const& g, graph_node const& n) {
    auto const& name = n.operation.name;
    bool const reshape = is_reshape(n.operation), expand = name == "aten::expand", sum = name == "aten::sum.dim_IntList";
    bool const transpose = name == "aten::t" || name == "aten::transpose.int" || name == "aten::permute";
    bool const product = name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::matmul";
    bool const linear = name == "aten::linear" || name == "cantle::linear_grad_input" || name == "cantle::linear_grad_weight";
    if (!(reshape || expand || sum || transpose || product || linear)) return true;
    if (n.outputs.size() != 1 || !n.outputs[0].defined || n.operands.empty()) return false;
    auto const& out = n.outputs[0].sizes;
    auto arg = [&](std::string_view a) -> shape const* {
        auto const slot = n.operation.slot(a);
        return slot ? &g.meta(n.operands[*slot]).sizes : nullptr;
    };
    auto with_last = [](shape s, std::int64_t last) {
        s.back() = last;
        return s;
    };
    if (reshape || expand || transpose || sum) {
        auto const& in = g.meta(n.operands[0]);
        if (n.operands.size() != 1 || (!sum && in.type != n.outputs[0].type)) return false;
        if (reshape) return element_count(in.sizes) == element_count(out);
        if (transpose) {
            auto const p = permutation(n.operation, in.rank());
            if (!p || out.size() != in.rank()) return false;
            for (std::size_t i = 0; i < out.size(); ++i)
                if (out[i] != in.sizes[(*p)[i]]) return false;
            return true;
        }
        if (expand) {
            if (out.size() < in.rank()) return false;
            for (std::size_t i = 0, skip = out.size() - in.rank(); i < in.rank(); ++i)
                if (in.sizes[i] != out[skip + i] && in.sizes[i] != 1) return false;
            return true;
        }
        if (in.rank() != 2) return true;  // only sums over the rows of a matrix are rewritten
        auto const dims = n.operation.get<shape>("dim", {});
        if (dims != shape{0} && dims != shape{-2}) return true;
        return out == (n.operation.get<bool>("keepdim", false) ? shape{1, in.sizes[1]} : shape{in.sizes[1]});
    }
    if (product) {
        auto const* a = arg(name == "aten::addmm" ? "mat1" : "self");
        auto const* b = arg(name == "aten::matmul" ? "other" : "mat2");
        if (!a || !b || b->size() < 2 || a->size() < 2) return false;
        if (name == "aten::matmul") return b->size() != 2 || (a->back() == (*b)[0] && out == with_last(*a, (*b)[1]));
        if (a->size() != b->size() || a->size() != (name == "aten::bmm" ? 3u : 2u)) return false;
        if (a->back() != (*b)[b->size() - 2] || out != with_last(*a, b->back())) return false;
        if (name == "aten::bmm" && (*a)[0] != (*b)[0]) return false;
        if (name != "aten::addmm") return true;
        auto const* bias = arg("self");
        if (!bias || bias->size() > 2) return false;
        for (std::size_t i = 0, skip = 2 - bias->size(); i < bias->size(); ++i)
            if ((*bias)[i] != 1 && (*bias)[i] != out[skip + i]) return false;
        return true;
    }
    auto const* x = arg(name == "aten::linear" ? "input" : "grad");
    auto const* w = arg(name == "cantle::linear_grad_weight" ? "input" : "weight");
    if (!x || !w || x->empty() || w->empty()) return false;
    if (name == "cantle::linear_grad_weight")
        return with_last(*x, 1) == with_last(*w, 1) && x->size() > 1 && out == shape{x->back(), w->back()};
    if (w->size() != 2) return false;
    bool const forward = name == "aten::linear";
    if (x->back() != (*w)[forward ? 1 : 0] || out != with_last(*x, (*w)[forward ? 0 : 1])) return false;
    auto const* bias = forward ? arg("bias") : nullptr;
    return !bias || *bias == shape{(*w)[0]};
}

}  // namespace cantle::detail
