// SPDX-License-Identifier: BSL-1.0
#pragma once
// What the caller demands of the tensors at the graph's boundary, and the layouts that sources and sinks may therefore take.
//
// Defaults (DECISIONS 17, 18): inputs and targets Shard(0) on the first axis and Replicate elsewhere; loss Replicate; outputs and buffers
// free; parameters fully sharded: any even layout, in any cut order, whose local/global ratio is the smallest reachable over the axes that
// are no replica axes (Replicate on those). Gradients lie as their parameter or input does, tangents as their output.
#include <cantle/base/error.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/mesh/layout.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cantle {

enum class parameter_storage : std::uint8_t { fully_sharded, replicated, free };

constexpr std::string_view to_string(parameter_storage s) {
    return s == parameter_storage::fully_sharded ? "fully_sharded" : s == parameter_storage::replicated ? "replicated" : "free";
}

/// "The tensor of that name lies so." `tensor` is a node's name; * stands for any text. Of an op the first output is meant.
struct pin {
    std::string tensor, layout;
    bool operator==(pin const&) const = default;
};

struct boundary {
    std::string inputs;   ///< layout of inputs and targets as layout::parse reads it; empty: S0 on the first axis; "free": any even one
    std::string outputs;  ///< layout of outputs that are no loss; empty: free
    parameter_storage parameters = parameter_storage::fully_sharded;
    std::vector<std::string> replica_axes;  ///< axes on which parameters stay Replicate (HSDP)
    std::vector<pin> pins;                  ///< override everything above for the tensors they name
    bool operator==(boundary const&) const = default;
};

/// True when `text` matches `pattern`, in which * stands for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else return false;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// All layouts without Partial that the policy allows and that cut by axes of `axes` (bit mask) only: every axis Replicate or Shard of any
/// dim. In mesh order, or with `any_order` in every order of the cuts of an even dim. Axes of size 1 stay Replicate. Sorted.
inline std::vector<layout> cut_layouts(shape const& sizes, device_mesh const& mesh, std::uint32_t axes, bool any_order,
                                       shard_policy policy = shard_policy::even) {
    std::vector<layout> all{layout(mesh.dims())};
    std::vector<std::uint8_t> order;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (axes >> a & 1 && mesh.size(a) > 1) order.push_back(static_cast<std::uint8_t>(a));
    do {
        std::vector<layout> grown{layout(mesh.dims())};
        for (auto a : order) {
            std::size_t const count = grown.size();
            for (std::size_t i = 0; i < count; ++i)
                for (std::size_t d = 0; d < sizes.size(); ++d) {
                    layout l = grown[i];
                    l.push_cut(a, mesh.size(a), d);
                    if (l.fits(sizes, policy)) grown.push_back(std::move(l));
                }
        }
        all.insert(all.end(), grown.begin(), grown.end());
    } while (any_order && std::next_permutation(order.begin(), order.end()));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

/// The layouts of `storage` for a tensor of that shape (see boundary).
inline std::vector<layout> parameter_layouts(shape const& sizes, device_mesh const& mesh, parameter_storage storage,
                                             std::uint32_t replica_axes, shard_policy policy = shard_policy::even) {
    if (storage == parameter_storage::replicated) return {layout(mesh.dims())};
    auto all = cut_layouts(sizes, mesh, ~replica_axes, true, policy);
    if (storage == parameter_storage::fully_sharded) {
        // Smallest on the largest rank. Of uneven layouts that end there as even ones do, only the even ones are kept.
        auto const local = [&sizes](layout const& l) { return element_count(l.local_shape(sizes)); };
        std::int64_t least = element_count(sizes);
        for (auto const& l : all) least = std::min(least, local(l));
        std::int64_t most = 1;
        for (auto const& l : all)
            if (l.fits(sizes)) most = std::max(most, l.cut_count());
        bool const even = policy == shard_policy::even || element_count(sizes) / most == least;
        std::erase_if(all, [&](layout const& l) { return even ? !l.fits(sizes) || l.cut_count() != most : local(l) != least; });
    }
    return all;
}

namespace detail {

/// A layout of the boundary as the user wrote it. `whose`: "inputs", "pin of 'x'". Throws bad_layout, unknown_axis.
inline layout parse_at_boundary(device_mesh const& mesh, std::string const& text, std::string const& whose) {
    auto l = layout::parse(mesh, text);
    if (l.has_partial())
        throw error(error_code::bad_layout, whose + " to " + text, "a tensor at the boundary cannot be Partial", "use R and S<dim>");
    return l;
}

/// Throws bad_layout where `wanted` cuts a dim that the tensor does not have.
inline void require_dims(device_mesh const& mesh, layout const& wanted, tensor_meta const& t, std::string const& name) {
    for (auto const& d : wanted.digits())
        if (d.dim >= t.rank())
            throw error(error_code::bad_layout, "layout " + wanted.text(mesh) + " of '" + name + "' " + shape_text(t.sizes),
                        "the tensor has no dim " + std::to_string(d.dim),
                        t.rank() == 0 ? "a scalar can only be R" : "cut dims 0 to " + std::to_string(t.rank() - 1));
}

/// One wanted layout of a tensor. Throws bad_layout naming a dim that is not there, mesh_does_not_divide naming tensor, dim and mesh.
inline std::vector<layout> wanted_layout(device_mesh const& mesh, layout const& wanted, tensor_meta const& t, std::string const& name,
                                         shard_policy policy) {
    require_dims(mesh, wanted, t, name);
    if (!wanted.fits(t.sizes, policy)) {
        throw error(error_code::mesh_does_not_divide, "tensor '" + name + "' " + shape_text(t.sizes),
                    "layout " + wanted.text(mesh) + " of mesh " + mesh.text() + " does not divide it",
                    "choose a mesh whose axes divide the dim, another batch size, or another layout");
    }
    return {wanted};
}

inline layout default_input_layout(device_mesh const& mesh) {
    std::vector<placement> per_axis(mesh.dims());
    if (mesh.size(0) > 1) per_axis[0] = placement::shard(0);
    return layout::from_placements(mesh, per_axis);
}

}  // namespace detail

/// Throws bad_layout, unknown_axis for texts that do not parse or are Partial, whether or not the graph has a tensor that they speak of:
/// a constraint that is shown must have been understood.
inline void check_boundary(device_mesh const& mesh, boundary const& b) {
    if (!b.inputs.empty() && b.inputs != "free") detail::parse_at_boundary(mesh, b.inputs, "inputs");
    if (!b.outputs.empty() && b.outputs != "free") detail::parse_at_boundary(mesh, b.outputs, "outputs");
    for (auto const& p : b.pins) layout::parse(mesh, p.layout);
    for (auto const& name : b.replica_axes) mesh.find(name);
}

/// Layouts that the boundary allows for a source or sink, before pins. Gradients and tangents are free here: pairing ties them.
inline std::vector<layout> boundary_layouts(graph_node const& node, device_mesh const& mesh, boundary const& b,
                                            std::uint32_t replica_axes, shard_policy policy = shard_policy::even) {
    auto const& t = node.outputs[0];
    std::uint32_t const every_axis = ~std::uint32_t{0};
    auto const given = [&](std::string const& text, bool with_default) -> std::vector<layout> {
        if (text == "free" || (text.empty() && !with_default)) return cut_layouts(t.sizes, mesh, every_axis, false, policy);
        if (t.rank() == 0) return {layout(mesh.dims())};  // what is said of all inputs is not said of a scalar
        auto const whose = std::string(to_string(node.role)) + " '" + node.name + "'";
        auto const wanted = text.empty() ? detail::default_input_layout(mesh) : detail::parse_at_boundary(mesh, text, whose);
        return detail::wanted_layout(mesh, wanted, t, node.name, policy);
    };
    switch (node.role) {
        case node_role::parameter: return parameter_layouts(t.sizes, mesh, b.parameters, replica_axes, policy);
        case node_role::input: case node_role::target: return given(b.inputs, true);
        case node_role::output: return given(b.outputs, false);
        case node_role::loss: case node_role::constant: return {layout(mesh.dims())};
        case node_role::gradient: return cut_layouts(t.sizes, mesh, every_axis, true, policy);
        case node_role::buffer: case node_role::tangent: case node_role::computation: break;
    }
    return cut_layouts(t.sizes, mesh, every_axis, false, policy);
}

}  // namespace cantle
