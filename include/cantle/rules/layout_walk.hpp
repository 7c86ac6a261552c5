// SPDX-License-Identifier: BSL-1.0
#pragma once
// The layouts that a tensor of one shape takes while a rule is applied axis after axis, as a graph that is built while it is walked: a
// node is a layout, an edge a placement on an axis. Expanding an op is then a walk of small numbers; each layout is made once for all ops
// on tensors of that shape.
#include <cantle/mesh/layout.hpp>
#include <cantle/mesh/local_piece.hpp>
#include <cantle/rules/strategy.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cantle {

/// Partial kinds as bits, so that rows on kinds that nothing upstream can yield are dropped.
using partial_kinds = std::uint8_t;
inline constexpr partial_kinds every_partial_kind = 0xf;
inline partial_kinds partial_kinds_of(layout const& l) {
    partial_kinds k = 0;
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (auto const p = l.on(a); p.is_partial()) k = static_cast<partial_kinds>(k | 1u << static_cast<unsigned>(p.reduce));
    return k;
}

namespace detail {

class layout_walk {
public:
    using node_id = std::uint32_t;
    static constexpr node_id dead = static_cast<node_id>(-1);

    struct node {
        layout lies;
        std::uint32_t local = 0;        ///< index into locals(): sizes on the largest rank
        std::uint64_t uneven = 0;       ///< dims that the cuts do not divide, as bits
        bool empty_pieces = false;      ///< some rank holds nothing
        layout_id id = none;            ///< in the table of the problem, once a strategy names it
    };

    layout_walk(shape global, std::size_t mesh_dims, shard_policy policy) : global_(std::move(global)), policy_(policy) {
        intern(layout(mesh_dims));
    }
    shape const& global() const { return global_; }
    node const& at(node_id n) const { return nodes_[n]; }
    shape const& local(node_id n) const { return locals_[nodes_[n].local]; }
    std::size_t size() const { return nodes_.size(); }

    /// Where `axis` takes the node that is Replicate on it; dead where the placement does not fit.
    node_id step(node_id from, std::size_t axis, std::int64_t axis_size, placement p) {
        for (auto const& e : edges_[from])
            if (e.axis == axis && e.place == p) return e.to;
        layout next = nodes_[from].lies;
        node_id const to = next.apply(axis, axis_size, p, global_, policy_) ? intern(next) : dead;
        edges_[from].push_back({static_cast<std::uint8_t>(axis), p, to});
        return to;
    }
    layout_id id_of(node_id n, layout_table& table) {
        if (nodes_[n].id == none) nodes_[n].id = table.intern(nodes_[n].lies);
        return nodes_[n].id;
    }

private:
    struct edge { std::uint8_t axis; placement place; node_id to; };
    static constexpr layout_id none = static_cast<layout_id>(-1);
    shape global_;
    shard_policy policy_;
    std::vector<node> nodes_;
    std::vector<std::vector<edge>> edges_;
    std::vector<shape> locals_;
    std::map<layout, node_id> node_of_;
    std::map<shape, std::uint32_t> local_of_;

    node_id intern(layout const& l) {
        auto const [at, fresh] = node_of_.try_emplace(l, static_cast<node_id>(nodes_.size()));
        if (!fresh) return at->second;
        node n;
        n.lies = l;
        auto local = l.local_shape(global_);
        auto const [place, new_shape] = local_of_.try_emplace(local, static_cast<std::uint32_t>(locals_.size()));
        if (new_shape) locals_.push_back(std::move(local));
        n.local = place->second;
        if (policy_ == shard_policy::uneven)
            for (std::size_t d = 0; d < global_.size(); ++d)
                if (l.is_uneven(d, global_[d])) {
                    n.uneven |= std::uint64_t{1} << d;
                    n.empty_pieces = n.empty_pieces || smallest_piece(l, d, global_[d]) == 0;
                }
        nodes_.push_back(std::move(n));
        edges_.emplace_back();
        return at->second;
    }
};

}  // namespace detail

}  // namespace cantle
