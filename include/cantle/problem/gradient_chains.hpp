// SPDX-License-Identifier: BSL-1.0
#pragma once
// Where the gradient of a parameter must not be reduced: gradients are reduced in the type of their sink (DECISIONS 12), so no edge on
// which one lies in a narrower type may reduce it, however many linear ops stand between its maker and the cast.
//
//   linear_grad_weight bf16 --P--> add bf16 --P--> _to_copy fp32 --P--> reduce-scatter --> "wte.grad"
//   embedding_dense_backward --P--^                                     not before: all edges in front of the cast keep Partial
//
// A gradient is made by an op that yields Partial on an axis on which no operand is Partial (a product, a sum, a scatter); what such an op
// reads are activations, which may be reduced in their own type. An op that only passes Partial on (add, views, casts, slices) belongs to
// the chain. Both are read off the strategies, so ops of one's own need say nothing.
#include <cantle/problem/op_classes.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace cantle {

/// Mesh axes on which a layout is Partial, as bits.
inline std::uint32_t partial_axes(layout const& l) {
    std::uint32_t mask = 0;
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (l.on(a).is_partial()) mask |= 1u << a;
    return mask;
}

class gradient_chains {
public:
    gradient_chains(training_graph const& g, op_class_table const& classes, layout_table const& layouts)
        : g_(g), classes_(classes), walked_(g.size()), held_operands_(g.size()) {
        for (layout_id l = 0; l < layouts.size(); ++l) partial_.push_back(partial_axes(layouts[l]));
        for (vertex v = 0; v < g.size(); ++v) {
            walked_[v].assign(g[v].outputs.size(), 0);
            held_operands_[v].assign(g[v].operands.size(), false);
        }
        for (vertex v = 0; v < g.size(); ++v)
            if (g[v].role == node_role::gradient && g[g[v].of.value_or(v)].role == node_role::parameter)
                walk(g[v].operands[0], element_bytes(g[v].outputs[0].type));
    }
    /// Must the operand reach v with the Partials that it has?
    bool holds_operand(vertex v, std::uint32_t slot) const { return held_operands_[v][slot]; }
    /// Must the value reach its relay with the Partials that it has?
    bool holds_value(value_ref r) const { return is_narrow(r, walked_[r.node][r.output]) && can_do_without_partial(r); }

private:
    /// Of one output of an op class: does it only pass Partial on, and from which operands?
    struct passing {
        bool makes = false, can_do_without = false;
        std::vector<std::uint32_t> operands;
    };
    training_graph const& g_;
    op_class_table const& classes_;
    std::vector<std::uint32_t> partial_;              // [layout]
    std::vector<std::vector<int>> walked_;            // [vertex][output] -> bytes of the widest sink behind it, 0: on no chain
    std::vector<std::vector<bool>> held_operands_;    // [vertex][slot]
    mutable std::map<std::pair<std::uint32_t, std::uint32_t>, passing> known_;  // (class, output)

    bool is_narrow(value_ref r, int sink_bytes) const { return element_bytes(g_.meta(r).type) < sink_bytes; }
    bool can_do_without_partial(value_ref r) const { return g_[r.node].role != node_role::computation || of(r).can_do_without; }

    passing const& of(value_ref r) const {
        auto const [at, fresh] = known_.try_emplace({classes_.class_of[r.node], r.output});
        if (!fresh) return at->second;
        auto& p = at->second;
        auto const& t = classes_.classes[classes_.class_of[r.node]].strategies;
        std::vector<bool> passes(t.operand_count, false);
        for (std::size_t s = 0; s < t.size(); ++s) {
            auto const out = partial_[t.output(s, r.output)];
            p.can_do_without = p.can_do_without || out == 0;
            if (out == 0) continue;
            std::uint32_t in = 0;
            for (std::uint32_t i = 0; i < t.operand_count; ++i) {
                auto const axes = partial_[t.operand(s, i)];
                passes[i] = passes[i] || (axes & out);
                in |= axes;
            }
            p.makes = p.makes || (out & ~in);
            if (p.makes && p.can_do_without) break;
        }
        for (std::uint32_t i = 0; i < t.operand_count; ++i)
            if (passes[i]) p.operands.push_back(i);
        return p;
    }
    /// `r` is on its way to a sink of that width.
    void walk(value_ref first, int sink_bytes) {
        std::vector<value_ref> open{first};
        while (!open.empty()) {
            auto const r = open.back();
            open.pop_back();
            if (walked_[r.node][r.output] >= sink_bytes) continue;
            walked_[r.node][r.output] = sink_bytes;
            if (g_[r.node].role != node_role::computation || of(r).makes) continue;
            for (auto const slot : of(r).operands) {
                auto const from = g_[r.node].operands[slot];
                // A rule that leaves no choice but Partial (a region's) may need the reduction at once.
                if (is_narrow(from, sink_bytes) && can_do_without_partial(from)) held_operands_[r.node][slot] = true;
                open.push_back(from);
            }
        }
    }
};

}  // namespace cantle
