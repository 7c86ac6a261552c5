// SPDX-License-Identifier: BSL-1.0
#pragma once
// One rewriting pass of canonicalize(): reads the old graph in topological order and builds the new one, so that every node sees operands
// that are already in their new form.
#include <cantle/graph/op_traits.hpp>
#include <cantle/graph/shapes_fit.hpp>
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace cantle {

/// What canonicalize() may do.
struct canonical_options {
    bool merge_across_phases = true;  ///< false keeps what activation checkpointing recomputes in the backward phase
};

namespace detail {

class canonical_rewriter {
public:
    canonical_rewriter(training_graph g, canonical_options const& options) : old_(std::move(g)), options_(options) {
        new_.origin = std::move(old_.origin);
        new_.nodes.reserve(old_.size());
        for (auto const& n : old_.nodes) {
            names_.insert(n.name);
            names_.insert(n.also_named.begin(), n.also_named.end());
        }
        only_viewed_.assign(old_.size(), true);
        for (auto const& n : old_.nodes)
            for (auto const& r : n.operands)
                if (!is_reshape(n.operation)) only_viewed_[r.node] = false;
    }

    /// Rewrites everything once; true when something changed.
    bool run() {
        value_of_.resize(old_.size());
        node_of_.assign(old_.size(), nothing);
        for (vertex v = 0; v < old_.size(); ++v) {
            at_ = v;
            auto n = std::move(old_[v]);
            for (auto& r : n.operands) r = value_of_[r.node][r.output];
            if (is_source(n.role) || is_sink(n.role)) {
                if (is_sink(n.role)) n.outputs[0] = new_.meta(n.operands[0]);
                finish(push(std::move(n)));
            } else {
                rewrite(std::move(n));
            }
        }
        for (vertex v = 0; v < new_.size(); ++v) {  // links still name old nodes, some of them later than their user
            auto& n = new_[v];
            if (n.of) n.of = node_of_[*n.of];
            if (!n.forward_node) continue;
            auto const target = node_of_[*n.forward_node];
            if (target == nothing || target == v || n.in_phase == phase::forward) n.forward_node.reset();
            else n.forward_node = target;
        }
        return changed_;
    }
    training_graph take() { return std::move(new_); }

private:
    static constexpr vertex nothing = std::numeric_limits<vertex>::max();

    training_graph old_, new_;
    canonical_options options_;
    std::vector<std::vector<value_ref>> value_of_;  // old value -> new value
    std::vector<vertex> node_of_;                   // old node -> the new node that does its work, or nothing (identities)
    std::vector<bool> only_viewed_;                 // old node -> all its users are views
    std::unordered_map<std::size_t, std::vector<vertex>> equal_;  // hash -> pure nodes; only looked up
    std::unordered_set<std::string> names_;                       // only looked up
    std::unordered_set<vertex> foreign_;            // nodes whose shapes are not those of their op; only looked up
    op unknown_;
    std::set<value_ref> weights_;                   // second operands of aten::linear so far
    vertex at_ = 0;
    bool changed_ = false;

    // -- building ------------------------------------------------------------------------------------------------------------------------
    vertex push(graph_node n) {
        new_.nodes.push_back(std::move(n));
        return static_cast<vertex>(new_.size() - 1);
    }
    /// The old node at hand is done by new node v, output by output.
    void finish(vertex v) {
        node_of_[at_] = v;
        for (std::uint32_t o = 0; o < new_[v].outputs.size(); ++o) value_of_[at_].push_back({v, o});
    }
    void finish(vertex worker, value_ref result) {
        node_of_[at_] = worker;
        value_of_[at_] = {result};
        changed_ = true;
    }
    /// Appends the node, or finds the equal one that is there.
    vertex append(graph_node n) {
        if (!is_pure(n.operation)) return push(std::move(n));
        std::size_t h = std::hash<std::string>{}(n.operation.name);
        auto mix = [&h](std::size_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ULL + (h >> 29); };
        for (auto const& r : n.operands) {
            mix(r.node);
            mix(r.output);
        }
        for (auto const& m : n.outputs)
            for (auto const s : m.sizes) mix(static_cast<std::size_t>(s));
        auto& bucket = equal_[h];
        for (vertex const v : bucket) {
            auto& e = new_[v];
            if (!(e.operation == n.operation && e.operands == n.operands && e.outputs == n.outputs)) continue;
            if (e.in_phase != n.in_phase && !options_.merge_across_phases) continue;
            if (n.in_phase == phase::forward) e.in_phase = phase::forward;
            if (!e.forward_node) e.forward_node = n.forward_node;
            changed_ = true;
            return v;
        }
        bucket.push_back(push(std::move(n)));
        return bucket.back();
    }
    std::string fresh_name(std::string const& wanted) {
        std::string name = wanted;
        for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
        return name;
    }
    /// A new node that belongs to the same place as `like`. An empty suffix takes over its name.
    value_ref make(graph_node const& like, std::string const& suffix, op o, std::vector<value_ref> operands, tensor_meta meta) {
        graph_node n;
        n.operation = std::move(o);
        n.operands = std::move(operands);
        n.outputs = {std::move(meta)};
        n.in_phase = like.in_phase;
        n.module_path = like.module_path;
        if (suffix.empty()) n.forward_node = like.forward_node;  // a helper has no counterpart
        n.name = like.name + suffix;
        auto const before = new_.size();
        vertex const v = append(std::move(n));
        if (new_.size() > before && !suffix.empty()) new_[v].name = fresh_name(new_[v].name);
        return {v, 0};
    }
    static argument tensor(std::string name, std::uint32_t slot) { return {std::move(name), operand_slot{slot}}; }

    // -- looking -------------------------------------------------------------------------------------------------------------------------
    tensor_meta const& meta(value_ref r) const { return new_.meta(r); }
    /// The op that made a value; one without a name where the node does not keep to its op's shapes, so that nobody builds on it.
    op const& maker(value_ref r) const { return foreign_.count(r.node) ? unknown_ : new_[r.node].operation; }
    value_ref operand(value_ref r, std::size_t i = 0) const { return new_[r.node].operands[i]; }
    static std::optional<value_ref> tensor_argument(graph_node const& n, std::string_view name) {
        auto const slot = n.operation.slot(name);
        return slot ? std::optional(n.operands[*slot]) : std::nullopt;
    }
    bool is_t(value_ref r) const { return maker(r).name == "aten::t" && meta(r).rank() == 2; }
    /// Same memory layout, as far as it matters (the stride of a dim of size 1 does not).
    static bool same_tensor(tensor_meta const& a, tensor_meta const& b) {
        if (a.sizes != b.sizes || a.type != b.type) return false;
        auto const sa = a.strides.empty() ? contiguous_strides(a.sizes) : a.strides;
        auto const sb = b.strides.empty() ? contiguous_strides(b.sizes) : b.strides;
        for (std::size_t i = 0; i < sa.size(); ++i)
            if (a.sizes[i] > 1 && sa[i] != sb[i]) return false;
        return true;
    }

    // -- views and transposes ------------------------------------------------------------------------------------------------------------
    /// x seen with the given sizes: merged with the views behind it, or x itself.
    value_ref view(graph_node const& like, std::string const& suffix, value_ref x, tensor_meta target) {
        while (maker(x).name == "aten::view") x = operand(x);
        if (same_tensor(meta(x), target)) return x;
        auto size = target.sizes;
        return make(like, suffix, op{"aten::view", {tensor("self", 0), {"size", std::move(size)}}}, {x}, std::move(target));
    }
    value_ref transposed(graph_node const& like, value_ref w) {
        if (is_t(w)) return operand(w);
        auto const& m = meta(w);
        tensor_meta target{{m.sizes[1], m.sizes[0]}, {}, m.type, true};
        auto const strides = m.strides.empty() ? contiguous_strides(m.sizes) : m.strides;
        target.strides = {strides[1], strides[0]};
        return make(like, "/t", op{"aten::t", {tensor("self", 0)}}, {w}, std::move(target));
    }
    bool rewrite_view(graph_node& n) {
        if (!is_reshape(n.operation) || n.operands.size() != 1) return false;
        auto base = n.operands[0];
        while (maker(base).name == "aten::view") base = operand(base);
        op canonical{"aten::view", {tensor("self", 0), {"size", n.outputs[0].sizes}}};  // -1 in a size is spelled out
        if (base == n.operands[0] && canonical == n.operation && !same_tensor(meta(base), n.outputs[0])) return false;
        auto const r = view(n, "", base, n.outputs[0]);
        finish(r == base ? nothing : r.node, r);
        return true;
    }
    bool rewrite_identity(graph_node const& n) {
        if (n.operands.size() != 1 || n.outputs.size() != 1) return false;
        auto const x = n.operands[0];
        bool const noop_expand = n.operation.name == "aten::expand" && same_tensor(meta(x), n.outputs[0]);
        if ((!is_identity(n.operation) && !noop_expand) || meta(x).sizes != n.outputs[0].sizes || meta(x).type != n.outputs[0].type)
            return false;
        finish(nothing, x);
        return true;
    }
    bool rewrite_transpose(graph_node& n) {
        if (n.operands.size() != 1) return false;
        auto const rank = n.outputs[0].rank();
        auto p = permutation(n.operation, rank);
        if (!p) return false;
        value_ref x = n.operands[0];
        auto is_unit = [](std::vector<std::size_t> const& q) { return std::is_sorted(q.begin(), q.end()); };
        if (!is_unit(*p)) {
            auto const inner = permutation(maker(x), rank);
            if (!inner) {
                if (rank == 2 && n.operation.name != "aten::t") {  // one spelling of the matrix transpose
                    n.operation = op{"aten::t", {tensor("self", 0)}};
                    changed_ = true;
                }
                return false;
            }
            for (auto& d : *p) d = (*inner)[d];
            if (!is_unit(*p)) return false;
            x = operand(x);
        }
        finish(nothing, x);
        return true;
    }

    // -- linear layers -------------------------------------------------------------------------------------------------------------------
    /// The tensor [lead...,K] of which the matrix a [M,K] is a flattening over two or more leading dims; nothing where it is none.
    std::optional<value_ref> unflattened(graph_node const& like, value_ref a) {
        if (maker(a).name != "aten::view" || meta(a).rank() != 2 || meta(a).elements() == 0) return std::nullopt;
        auto const x = operand(a);
        auto const sizes = meta(x).sizes;
        auto const rows = meta(a).sizes[0], columns = meta(a).sizes[1];
        if (sizes.size() < 3) return std::nullopt;
        if (sizes.back() == columns) return x;
        std::int64_t count = sizes[0];
        for (std::size_t lead = 1; lead + 1 < sizes.size() && count <= rows; ++lead) {
            count *= sizes[lead];
            if (count != rows) continue;
            shape wanted(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(lead) + 1);
            wanted.push_back(columns);
            return view(like, "/unflatten", x, contiguous_meta(std::move(wanted), meta(x).type));
        }
        return std::nullopt;
    }
    static shape with_last(shape s, std::int64_t last) {
        s.back() = last;
        return s;
    }
    struct product {
        vertex worker;
        value_ref whole;  ///< over the unflattened dims
        bool flattened;   ///< whether `whole` must be viewed as a matrix to stand for the old output
    };
    /// op(x, weight) over unflattened x, for aten::linear and cantle::linear_grad_input.
    product whole_linear(graph_node const& n, char const* op_name, value_ref x, value_ref weight) {
        bool const is_linear = std::string_view(op_name) == "aten::linear";
        auto const wide = unflattened(n, x);
        auto const in = wide ? *wide : x;
        auto const columns = meta(weight).sizes[is_linear ? 0 : 1];
        op o{op_name, {tensor(is_linear ? "input" : "grad", 0), tensor("weight", 1)}};
        if (is_linear) {
            o.arguments.push_back({"bias", std::monostate{}});
            weights_.insert(weight);
        }
        auto const y = make(n, "", std::move(o), {in, weight}, contiguous_meta(with_last(meta(in).sizes, columns), n.outputs[0].type));
        return {y.node, y, wide.has_value()};
    }
    product whole_grad_weight(graph_node const& n, value_ref grad, value_ref x) {
        auto const wide_grad = unflattened(n, grad);
        auto const wide_x = unflattened(n, x);
        auto g = wide_grad ? *wide_grad : grad, in = wide_x ? *wide_x : x;
        auto const lead = wide_grad ? meta(g).sizes : meta(in).sizes;  // both take the leading dims of one
        for (auto* side : {&g, &in})
            if (auto sizes = with_last(lead, meta(*side).sizes.back()); sizes != meta(*side).sizes)
                *side = view(n, "/unflatten", *side, contiguous_meta(std::move(sizes), meta(*side).type));
        auto const y = make(n, "", op{"cantle::linear_grad_weight", {tensor("grad", 0), tensor("input", 1)}}, {g, in},
                            contiguous_meta({meta(g).sizes.back(), meta(in).sizes.back()}, n.outputs[0].type));
        return {y.node, y, false};
    }
    /// The linear op that a product of matrices is, or nothing. `always`: the op is a linear layer by its nature (addmm).
    std::optional<product> whole_matmul(graph_node const& n, value_ref a, value_ref b, bool always) {
        bool const backward = n.in_phase == phase::backward;
        bool const weight_known = weights_.count(b) > 0;
        if (meta(a).rank() == 2 && is_t(a) && !is_t(b) && !weight_known) {
            auto const grad = operand(a);
            if (backward || is_flattening(grad) || is_flattening(b)) return whole_grad_weight(n, grad, b);
        }
        if (backward && weight_known) return whole_linear(n, "cantle::linear_grad_input", a, b);
        if (is_t(b)) return whole_linear(n, "aten::linear", a, operand(b));
        bool const wide = meta(a).rank() > 2 || is_flattening(a);
        if (!backward) return wide || always ? std::optional(whole_linear(n, "aten::linear", a, transposed(n, b))) : std::nullopt;
        for (auto const& w : weights_)  // a recomputed x @ w whose forward is linear(x, t(w))
            if (is_t(w) && operand(w) == b) return whole_linear(n, "aten::linear", a, w);
        return wide ? std::optional(whole_linear(n, "cantle::linear_grad_input", a, b)) : std::nullopt;
    }
    bool is_flattening(value_ref a) const {
        if (maker(a).name != "aten::view" || meta(a).rank() != 2 || meta(a).elements() == 0) return false;
        auto const& sizes = meta(operand(a)).sizes;
        std::int64_t count = 1;
        for (std::size_t lead = 0; lead + 1 < sizes.size(); ++lead) {
            count *= sizes[lead];
            if (lead > 0 && count == meta(a).sizes[0]) return true;
        }
        return false;
    }
    value_ref add_bias(graph_node const& n, value_ref y, value_ref bias) {
        op o{"aten::add.Tensor", {tensor("self", 0), tensor("other", 1), {"alpha", std::int64_t{1}}}};
        return make(n, "/bias", std::move(o), {y, bias}, contiguous_meta(meta(y).sizes, n.outputs[0].type));
    }
    /// The old output from the whole product and a bias.
    void finish_product(graph_node const& n, product const& p, std::optional<value_ref> bias) {
        auto y = p.whole;
        bool const early = bias && meta(*bias).rank() <= 1;  // a bias that only runs along the last dim goes to the whole tensor
        if (early) y = add_bias(n, y, *bias);
        if (p.flattened) y = view(n, "/flatten", y, contiguous_meta(n.outputs[0].sizes, n.outputs[0].type));
        if (bias && !early) y = add_bias(n, y, *bias);
        finish(p.worker, y);
    }
    static bool is_one(op const& o, std::string_view name) { return o.get<double>(name, 1.0) == 1.0; }

    bool rewrite_linear(graph_node const& n) {
        auto const& name = n.operation.name;
        auto arg = [&n](std::string_view a) { return tensor_argument(n, a); };
        if (name == "aten::mm" || name == "aten::matmul") {
            auto const a = arg("self"), b = arg(name == "aten::mm" ? "mat2" : "other");
            if (!a || !b || meta(*a).rank() < 2 || meta(*b).rank() != 2) return false;
            if (auto const p = whole_matmul(n, *a, *b, false)) return finish_product(n, *p, {}), true;
        } else if (name == "aten::addmm") {
            auto const bias = arg("self"), a = arg("mat1"), b = arg("mat2");
            if (!bias || !a || !b || !is_one(n.operation, "beta") || !is_one(n.operation, "alpha")) return false;
            auto p = whole_matmul(n, *a, *b, true);
            if (!p) {
                auto const y = make(n, "", op{"aten::mm", {tensor("self", 0), tensor("mat2", 1)}}, {*a, *b}, n.outputs[0]);
                p = product{y.node, y, false};
            }
            return finish_product(n, *p, bias), true;
        } else if (name == "aten::bmm") {  // a weight expanded over the batch
            auto const a = arg("self"), b = arg("mat2");
            if (!a || !b || maker(*b).name != "aten::expand") return false;
            auto w = operand(*b);
            auto const m = meta(w);
            auto const& wide = meta(*b).sizes;
            if (m.rank() < 2 || m.sizes[m.rank() - 2] != wide[1] || m.sizes.back() != wide[2]) return false;  // stretched rows or columns
            if (m.rank() == 3 && m.sizes[0] == 1) {
                auto strides = m.strides.empty() ? shape{} : shape{m.strides[1], m.strides[2]};
                w = view(n, "/unflatten", w, {{m.sizes[1], m.sizes[2]}, std::move(strides), m.type, true});
            }
            if (meta(w).rank() == 2) return finish_product(n, whole_linear(n, "aten::linear", *a, transposed(n, w)), {}), true;
        } else if (name == "aten::linear") {
            auto const x = arg("input"), w = arg("weight"), bias = arg("bias");
            if (!x || !w || meta(*w).rank() != 2) return false;
            weights_.insert(*w);
            if (bias || is_flattening(*x)) return finish_product(n, whole_linear(n, "aten::linear", *x, *w), bias), true;
        } else if (name == "cantle::linear_grad_input") {
            auto const g = arg("grad"), w = arg("weight");
            if (g && w && is_flattening(*g)) return finish_product(n, whole_linear(n, "cantle::linear_grad_input", *g, *w), {}), true;
        } else if (name == "cantle::linear_grad_weight") {
            auto const g = arg("grad"), x = arg("input");
            if (g && x && (is_flattening(*g) || is_flattening(*x))) return finish_product(n, whole_grad_weight(n, *g, *x), {}), true;
        }
        return false;
    }
    /// A sum over the rows of a matrix (the gradient of a bias) becomes a sum over the unflattened leading dims, without keepdim where the
    /// kept dim is viewed away again.
    bool rewrite_row_sum(graph_node const& n) {
        if (n.operation.name != "aten::sum.dim_IntList" || n.operands.size() != 1) return false;
        auto const x = n.operands[0];
        auto const dims = n.operation.get<shape>("dim", {});
        if (meta(x).rank() != 2 || (dims != shape{0} && dims != shape{-2})) return false;
        bool const keepdim = n.operation.get<bool>("keepdim", false), drop_kept = keepdim && only_viewed_[at_];
        auto const wide = unflattened(n, x);
        if (!wide && !drop_kept) return false;
        auto const in = wide ? *wide : x;
        shape leading(meta(in).rank() - 1);
        std::iota(leading.begin(), leading.end(), std::int64_t{0});
        auto const* type = n.operation.find("dtype");
        op o{n.operation.name, {tensor("self", 0), {"dim", std::move(leading)}, {"keepdim", false}}};
        o.arguments.push_back({"dtype", type ? *type : argument_value{}});
        auto const y = make(n, "", std::move(o), {in}, contiguous_meta({meta(in).sizes.back()}, n.outputs[0].type));
        finish(y.node, keepdim ? view(n, "/keepdim", y, n.outputs[0]) : y);
        return true;
    }

    void rewrite(graph_node n) {
        if (!shapes_fit(new_, n)) {
            finish(push(std::move(n)));
            foreign_.insert(node_of_[at_]);
            return;
        }
        if (n.outputs.size() == 1 && (rewrite_view(n) || rewrite_identity(n) || rewrite_transpose(n))) return;
        if (n.outputs.size() == 1 && (rewrite_linear(n) || rewrite_row_sum(n))) return;
        finish(append(std::move(n)));
    }
};

}  // namespace detail
}  // namespace cantle
