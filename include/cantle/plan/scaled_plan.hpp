// SPDX-License-Identifier: BSL-1.0
#pragma once
// A plan of a graph, carried over to the same graph at other sizes on a smaller mesh: every tensor lies as its counterpart does, cut along
// the same dims in the same order, and goes the same ways. What `cantle verify` runs.
//
//   w [4096, 4096] on 4x8: S0,S1    ->   w [32, 32] on 2x4: S0,S1
//   all_gather(dp,tp) d0            ->   all_gather(dp,tp) d0;  on 1x8 all_gather(tp) d0: an axis of one rank moves nothing
#include <cantle/base/error.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/graph/op_traits.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/plan/plan_check.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

/// Where views split or merge dims: a dim's size at full and small scale, and a place inside it -> that place at small scale.
class view_places {
public:
    view_places(training_graph const& full, training_graph const& scaled) {
        for (vertex v = 0; v < full.size(); ++v) {
            if (full[v].operands.size() != 1 || full[v].outputs.size() != 1 || !is_alias(full[v].operation)) continue;
            auto const &in = full.meta(full[v].operands[0]).sizes, &out = full[v].outputs[0].sizes;
            auto const &small_in = scaled.meta(scaled[v].operands[0]).sizes, &small_out = scaled[v].outputs[0].sizes;
            note(in, small_in, out, small_out);
            note(out, small_out, in, small_in);
        }
    }
    /// 0 where no view says so.
    std::int64_t at_small_scale(std::int64_t dim, std::int64_t small_dim, std::int64_t place) const {
        auto const at = places_.find({dim, small_dim, place});
        return at == places_.end() ? 0 : at->second;
    }

private:
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> places_;

    /// Every run of dims of `parts` whose product is one dim of `whole`.
    void note(shape const& whole, shape const& small_whole, shape const& parts, shape const& small_parts) {
        for (std::size_t d = 0; d < whole.size(); ++d)
            for (std::size_t first = 0; first < parts.size(); ++first) {
                std::int64_t product = 1, small_product = 1;
                std::vector<std::pair<std::int64_t, std::int64_t>> passed;
                for (std::size_t i = first; i < parts.size() && product < whole[d]; ++i) {
                    product *= parts[i];
                    small_product *= small_parts[i];
                    passed.emplace_back(product, small_product);
                }
                if (product != whole[d] || small_product != small_whole[d]) continue;
                for (auto const& [place, small] : passed) places_.try_emplace({whole[d], small_whole[d], place}, small);
            }
    }
};

class plan_scaler {
public:
    plan_scaler(sharding_plan const& plan, training_graph const& full, training_graph const& scaled, device_mesh const& mesh)
        : plan_(plan), full_(full), small_(scaled), views_(full, scaled) {
        result_.mesh = mesh;
    }
    sharding_plan run() {
        for (vertex v = 0; v < full_.size(); ++v) {
            auto const& from = plan_.nodes[v];
            node_placement n;
            for (std::uint32_t i = 0; i < from.operands.size(); ++i)
                n.operands.push_back(layout_of(v, from.operands[i], full_.meta(full_[v].operands[i]), small_.meta(small_[v].operands[i])));
            for (std::uint32_t i = 0; i < from.outputs.size(); ++i)
                n.outputs.push_back(layout_of(v, from.outputs[i], full_[v].outputs[i], small_[v].outputs[i]));
            for (auto const& s : from.inner) add_inner(n, v, s);
            result_.nodes.push_back(std::move(n));
        }
        for (auto const& r : plan_.relays)
            result_.relays.push_back({r.value, layout_of(r.value.node, r.at, full_.meta(r.value), small_.meta(r.value))});
        for (auto m : plan_.moves) {
            m.path = path_of(m);
            // Out over an axis of one rank and back again: nobody moves.
            if (result_.paths[m.path].from != result_.paths[m.path].to) result_.moves.push_back(m);
        }
        result_.memory = parameter_memory(small_, result_);
        result_.bounded_problem = "none: carried over from a plan of " + std::to_string(plan_.mesh.device_count()) + " devices";
        result_.constraints = plan_.constraints;
        result_.fallbacks = plan_.fallbacks;
        result_.made_from = plan_.made_from;
        result_.made_from.graph = structural_hash(small_);
        return std::move(result_);
    }

private:
    sharding_plan const& plan_;
    training_graph const& full_;
    training_graph const& small_;
    view_places views_;
    sharding_plan result_;
    std::map<layout, plan_layout> layouts_;
    std::map<std::tuple<plan_layout, shape, shape>, plan_layout> known_;
    std::map<std::tuple<std::uint32_t, shape, shape, int>, std::uint32_t> paths_;

    device_mesh const& mesh() const { return result_.mesh; }
    [[noreturn]] void misfit(vertex v, layout const& l, shape const& sizes, shape const& small, std::string const& why) const {
        throw error(error_code::bad_layout, "'" + full_[v].name + "' " + shape_text(sizes) + " as " + l.text(plan_.mesh),
                    "at " + shape_text(small) + " on mesh " + mesh().text() + " " + why, "use sizes that the plan's cuts divide");
    }
    plan_layout keep(layout const& l) {
        auto const [at, fresh] = layouts_.try_emplace(l, static_cast<plan_layout>(result_.layouts.size()));
        if (fresh) result_.layouts.push_back(l);
        return at->second;
    }
    /// The same placements in the same order of cuts; whole factors end where they ended.
    layout small_layout(vertex v, layout const& l, shape const& sizes, shape const& small) const {
        layout to(mesh().dims());
        std::int64_t place = 1, small_place = 1, outer = 1;
        std::size_t dim = static_cast<std::size_t>(-1);
        for (auto const& d : l.digits()) {
            if (d.dim >= sizes.size()) misfit(v, l, sizes, small, "names a dim that is not there");
            if (d.dim != dim) {
                dim = d.dim;
                place = small_place = outer = 1;
            }
            place *= d.extent;
            if (d.is_cut()) {
                auto const a = static_cast<std::size_t>(d.axis);
                small_place *= mesh().size(a);
                if (mesh().size(a) > 1) {
                    to.push_cut(a, mesh().size(a), dim, outer);
                    outer = 1;
                }
            } else {
                auto const end = views_.at_small_scale(sizes[dim], small[dim], place);
                if (end == 0 || end % small_place != 0) misfit(v, l, sizes, small, "has no such whole factor");
                outer *= end / small_place;
                small_place = end;
            }
        }
        for (std::size_t a = 0; a < mesh().dims(); ++a)
            if (l.on(a).is_partial() && mesh().size(a) > 1) to.set_partial(a, l.on(a).reduce);
        auto const policy = l.fits(sizes) ? shard_policy::even : shard_policy::uneven;  // in kind: even cuts stay even
        if (!to.fits(small, policy)) misfit(v, l, sizes, small, "does not fit as " + to.text(mesh()));
        return to;
    }
    plan_layout layout_of(vertex v, plan_layout l, tensor_meta const& t, tensor_meta const& small) {
        if (!t.defined) return keep(layout(mesh().dims()));
        auto const [at, fresh] = known_.try_emplace({l, t.sizes, small.sizes}, 0);
        if (fresh) at->second = keep(small_layout(v, plan_.at(l), t.sizes, small.sizes));
        return at->second;
    }
    /// Of the axes in a mask those that still have ranks to talk to.
    std::uint32_t live_axes(std::uint32_t mask) const {
        for (std::size_t a = 0; a < mesh().dims(); ++a)
            if (mesh().size(a) == 1) mask &= ~(1u << a);
        return mask;
    }
    void add_inner(node_placement& n, vertex v, inner_step s) const {
        s.call.axes = live_axes(s.call.axes);
        if (!s.call.axes) return;
        auto const& t = s.on_output ? small_[v].outputs[s.index] : small_.meta(small_[v].operands[s.index]);
        auto const& l = result_.at(s.on_output ? n.outputs[s.index] : n.operands[s.index]);
        s.call.bytes_before = s.call.bytes_after = element_count(l.local_shape(t.sizes)) * element_bytes(t.type);
        s.call.packed_bytes = 0;
        s.cost = 0;
        n.inner.push_back(s);
    }
    std::uint32_t path_of(tensor_move const& m) {
        auto const &full = full_.meta(m.value), &small = small_.meta(m.value);
        auto const [at, fresh] = paths_.try_emplace({m.path, full.sizes, small.sizes, element_bytes(small.type)},
                                                    static_cast<std::uint32_t>(result_.paths.size()));
        if (!fresh) return at->second;
        auto const& path = plan_.paths[m.path];
        redistribution_path to;
        to.from = layout_of(m.value.node, path.from, full, small);
        to.to = layout_of(m.value.node, path.to, full, small);
        std::vector<layout> ways;  // of the same length as the full path
        bool uneven = !plan_.at(path.from).fits(full.sizes);
        for (auto const& s : path.steps) {
            ways.push_back(small_layout(m.value.node, s.step.to, full.sizes, small.sizes));
            uneven = uneven || !s.step.to.fits(full.sizes);
        }
        lattice_class tensors{mesh(), small.sizes, element_bytes(small.type), {}, uneven ? shard_policy::uneven : shard_policy::even};
        tensors.add_boundaries(result_.at(to.from));
        for (auto const& l : ways) tensors.add_boundaries(l);
        layout now = result_.at(to.from);
        for (std::size_t i = 0; i < ways.size(); ++i) {
            auto const& step = path.steps[i].step;
            std::vector<std::uint8_t> axes;
            for (auto a : step.axes)
                if (mesh().size(a) > 1) axes.push_back(a);
            if (ways[i] == now) continue;  // all its axes have one rank
            priced_transition found;
            for_each_transition(tensors, now, [&](transition&& t) {
                bool const same = t.kind == step.kind && t.to == ways[i] && t.reduce == step.reduce;
                // A permute between axes of one rank moves fewer axes than it did.
                if (same && (t.axes == axes || (t.kind == collective_kind::permute && found.step.axes.empty()))) found.step = std::move(t);
            });
            if (found.step.axes.empty())
                misfit(m.value.node, step.to, full.sizes, small.sizes,
                       "is not reached from " + now.text(mesh()) + " by " + std::string(to_string(step.kind)));
            found.call = call_of(tensors, now, found.step);
            now = ways[i];
            to.steps.push_back(std::move(found));
        }
        result_.paths.push_back(std::move(to));
        return at->second;
    }
};

}  // namespace detail

/// The plan for `scaled` on `mesh`. All its costs are 0. Preconditions: the plan is one of `full` (refuse_foreign), the graphs have one
/// structure (structural_difference), and `mesh` is a shrunk_mesh of the plan's. Throws bad_layout, naming the tensor, where a layout does
/// not fit the small sizes evenly as it did the full ones.
inline sharding_plan scaled_plan(sharding_plan const& plan, training_graph const& full, training_graph const& scaled,
                                 device_mesh const& mesh) {
    return detail::plan_scaler(plan, full, scaled, mesh).run();
}

}  // namespace cantle
