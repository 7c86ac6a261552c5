// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle_values.hpp>
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/replay.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorIndexing.h>

namespace cantle::libtorch {
namespace {

at::Tensor indices_of(std::vector<std::int64_t> const& list) { return at::tensor(list, at::kLong); }

/// Where in the global tensor the elements of a rank's piece lie, flat, in the piece's order.
at::Tensor flat_places(layout const& l, device_mesh const& mesh, shape const& global, std::int64_t rank) {
    auto places = at::zeros({1}, at::kLong);
    auto const held = held_indices(l, mesh, global, rank);
    for (std::size_t d = 0; d < global.size(); ++d)
        places = (places.unsqueeze(-1) * global[d] + indices_of(held[d])).reshape({-1});
    return places;
}

}  // namespace

at::Tensor reduced(std::vector<at::Tensor> const& all, reduction kind) {
    auto sum = all[0].clone();
    for (std::size_t m = 1; m < all.size(); ++m) {
        if (kind == reduction::max) sum = at::maximum(sum, all[m]);
        else if (kind == reduction::min) sum = at::minimum(sum, all[m]);
        else sum = sum.add(all[m]);
    }
    return kind == reduction::avg ? sum.div(static_cast<double>(all.size())) : sum;
}

at::Tensor put_together(std::vector<at::Tensor> const& pieces, layout const& l, device_mesh const& mesh, shape const& global) {
    std::vector<at::Tensor> by_partial;  // one whole tensor per coordinate on the Partial axes
    auto kind = reduction::sum;
    std::int64_t averaged = 1;
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (l.on(a).is_partial()) {
            axes.push_back(a);
            if (l.on(a).reduce == reduction::avg) averaged *= mesh.size(a);
            else kind = l.on(a).reduce;
        }
    std::size_t parts = 1;
    for (auto a : axes) parts *= static_cast<std::size_t>(mesh.size(a));
    by_partial.resize(parts);
    for (std::int64_t rank = mesh.device_count(); rank-- > 0;) {
        std::size_t at = 0;
        for (auto a : axes) at = at * static_cast<std::size_t>(mesh.size(a)) + static_cast<std::size_t>(mesh.coordinate(rank, a));
        auto& whole = by_partial[at];
        auto const& piece = pieces[static_cast<std::size_t>(rank)];
        if (!whole.defined()) whole = at::zeros({element_count(global)}, piece.options());
        whole.index_put_({flat_places(l, mesh, global, rank)}, piece.reshape({-1}));
    }
    auto result = reduced(by_partial, kind);
    if (averaged > 1) result = result / averaged;
    return result.reshape(global);
}

std::vector<std::vector<at::Tensor>> cut_inputs(training_graph const& g, sharding_plan const& plan,
                                                std::map<std::string, at::Tensor> const& tensors) {
    std::vector<std::vector<at::Tensor>> by_rank(static_cast<std::size_t>(plan.mesh.device_count()));
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (!is_source(n.role)) continue;
        at::Tensor whole;
        if (n.role == node_role::constant) whole = constant_tensor(n, c10::kCPU);
        else if (auto const t = tensors.find(n.name); t != tensors.end()) whole = t->second.detach();
        else throw error(error_code::unknown_tensor, std::string(to_string(n.role)) + " '" + n.name + "'", "no tensor was given for it",
                         "give a tensor of shape " + shape_text(n.outputs[0].sizes));
        if (whole.sizes() != at::IntArrayRef(n.outputs[0].sizes) || to_meta(whole).type != n.outputs[0].type)
            throw error(error_code::bad_graph, std::string(to_string(n.role)) + " '" + n.name + "'",
                        "given is " + std::string(to_string(to_meta(whole).type)) + " " + c10::str(whole.sizes()) + ", planned is " +
                            std::string(to_string(n.outputs[0].type)) + " " + shape_text(n.outputs[0].sizes),
                        "give a tensor of the planned shape and type");
        auto const& l = plan.at(plan.nodes[v].outputs[0]);
        for (std::int64_t rank = 0; rank < plan.mesh.device_count(); ++rank) {
            auto piece = whole;
            auto const held = held_indices(l, plan.mesh, n.outputs[0].sizes, rank);
            for (std::size_t d = 0; d < held.size(); ++d)
                if (static_cast<std::int64_t>(held[d].size()) != whole.size(static_cast<std::int64_t>(d)))
                    piece = piece.index_select(static_cast<std::int64_t>(d), indices_of(held[d]));
            by_rank[static_cast<std::size_t>(rank)].push_back(piece);
        }
    }
    return by_rank;
}

}  // namespace cantle::libtorch
