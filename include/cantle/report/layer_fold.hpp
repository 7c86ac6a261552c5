// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which vertices of a layer are drawn as one card: views go with the op in front of them, elementwise ops of one module with each other, as
// long as nothing is moved between them and the cards stay acyclic. Casts of parameters and of their gradients belong to no card.
#include <cantle/graph/op_traits.hpp>
#include <cantle/problem/identical_regions.hpp>
#include <cantle/report/plan_view.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// The module path to draw: the second copy (the first may differ at its edge) of the list element with most vertices; "" for a graph
/// without lists, which is then drawn whole.
inline std::string representative_layer(training_graph const& g) {
    struct list {
        std::size_t vertices = 0;
        std::vector<std::string> copies;  // the first two
    };
    std::map<std::string, list> lists;    // by "layers.*"
    for (auto const& n : g.nodes) {
        if (n.role != node_role::computation) continue;
        auto const erased = erase_indices(n.module_path);
        auto const star = erased.text.find('*');
        if (star == std::string::npos) continue;
        auto& found = lists[erased.text.substr(0, star + 1)];
        ++found.vertices;
        auto const own = erased.text.substr(0, star) + std::to_string(erased.indices[0]);
        if (found.copies.size() < 2 && std::find(found.copies.begin(), found.copies.end(), own) == found.copies.end())
            found.copies.push_back(own);
    }
    list const* largest = nullptr;
    for (auto const& [key, found] : lists)
        if (!largest || found.vertices > largest->vertices) largest = &found;
    return largest ? largest->copies.back() : "";
}

namespace detail {

inline bool drawn_with_producer(graph_node const& n) { return is_alias(n.operation) || op_base_name(n.operation.name) == "reshape"; }
inline bool drawn_alone(graph_node const& n) {
    static constexpr std::string_view names[] = {"linear", "mm", "bmm", "addmm", "baddbmm", "matmul", "embedding",
                                                 "embedding_dense_backward", "native_layer_norm", "native_layer_norm_backward"};
    return n.operation.name.compare(0, 8, "cantle::") == 0 ||
           std::find(std::begin(names), std::end(names), op_base_name(n.operation.name)) != std::end(names);
}
/// A cast of a parameter, or one that only leads to a gradient sink.
inline bool is_passed_through(plan_view const& view, vertex v) {
    if (!plan_view::is_cast(view.graph()[v])) return false;
    if (view.parameter_of({v, 0})) return true;
    for (auto const& [user, slot] : view.uses({v, 0}))
        if (view.graph()[user].role != node_role::gradient) return false;
    return !view.uses({v, 0}).empty();
}

class layer_folder {
public:
    layer_folder(plan_view const& view, std::string prefix, phase which)
        : view_(view), g_(view.graph()), prefix_(std::move(prefix)), phase_(which) {}

    /// The cards in order of their first vertex, each in topological order.
    std::vector<std::vector<vertex>> run() {
        choose();
        fold();
        gather_gradients();
        std::map<std::size_t, std::size_t> place;
        std::vector<std::vector<vertex>> cards;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            auto const [at, fresh] = place.try_emplace(find(i), cards.size());
            if (fresh) cards.emplace_back();
            cards[at->second].push_back(members_[i]);
        }
        return cards;
    }

private:
    static constexpr std::size_t most_members_ = 300;
    plan_view const& view_;
    training_graph const& g_;
    std::string prefix_;
    phase phase_;
    std::vector<vertex> members_;
    std::map<vertex, std::size_t> index_;      // member -> place in members_
    std::vector<std::size_t> root_;            // union-find over members_

    bool inside(std::string const& path) const {
        return prefix_.empty() ||
               (path.compare(0, prefix_.size(), prefix_) == 0 && (path.size() == prefix_.size() || path[prefix_.size()] == '.'));
    }
    void choose() {
        for (vertex v = 0; v < g_.size() && members_.size() < most_members_; ++v) {
            auto const& n = g_[v];
            if (n.role != node_role::computation || n.in_phase != phase_ || !inside(n.module_path) || is_passed_through(view_, v)) continue;
            index_[v] = members_.size();
            members_.push_back(v);
        }
        root_.resize(members_.size());
        std::iota(root_.begin(), root_.end(), std::size_t{0});
    }

    std::size_t find(std::size_t i) const {
        while (root_[i] != i) i = root_[i];
        return i;
    }
    /// True when folding the groups of a and b (b uses a) leaves the picture acyclic: no way from a to b through a third group.
    bool may_join(std::size_t a, std::size_t b) const {
        std::vector<std::size_t> open;
        std::set<std::size_t> seen;
        auto const users = [&](std::size_t group, auto&& visit) {
            for (std::size_t i = 0; i < members_.size(); ++i) {
                if (find(i) != group) continue;
                for (std::uint32_t o = 0; o < g_[members_[i]].outputs.size(); ++o)
                    for (auto const& [user, slot] : view_.uses({members_[i], o}))
                        if (auto const at = index_.find(user); at != index_.end())
                            if (auto const to = find(at->second); to != group) visit(to);
            }
        };
        for (auto const& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
            seen.clear();
            users(from, [&, to = to](std::size_t x) { if (x != to && seen.insert(x).second) open.push_back(x); });
            while (!open.empty()) {
                auto const x = open.back();
                open.pop_back();
                bool reached = false;
                users(x, [&, to = to](std::size_t y) {
                    if (y == to) reached = true;
                    else if (seen.insert(y).second) open.push_back(y);
                });
                if (reached) return false;
            }
        }
        return true;
    }
    void fold() {
        std::vector<bool> has_major(members_.size()), only_views(members_.size());
        for (std::size_t i = 0; i < members_.size(); ++i) {
            has_major[i] = drawn_alone(g_[members_[i]]);
            only_views[i] = drawn_with_producer(g_[members_[i]]);
        }
        for (std::size_t i = 0; i < members_.size(); ++i) {
            vertex const v = members_[i];
            for (std::uint32_t s = 0; s < g_[v].operands.size(); ++s) {
                auto const r = g_[v].operands[s];
                auto const at = index_.find(r.node);
                if (at == index_.end() || view_.operand(v, s) != view_.produced(r) || view_.passed_on(r) != view_.produced(r)) continue;
                auto const a = find(at->second), b = find(i);
                if (a == b) continue;
                bool const view_behind = only_views[b];
                bool const elementwise = !has_major[a] && !has_major[b] && g_[v].module_path == g_[r.node].module_path;
                if (!(view_behind || elementwise) || !may_join(a, b)) continue;
                root_[b] = a;
                has_major[a] = has_major[a] || has_major[b];
                only_views[a] = only_views[a] && only_views[b];
            }
        }
    }

    /// Cards that only give gradients of parameters join those of the same module (a bias next to its weight). They have no users: acyclic.
    void gather_gradients() {
        std::map<std::string, std::size_t> first;  // module path -> group
        std::vector<bool> has_others(members_.size(), false);
        for (std::size_t i = 0; i < members_.size(); ++i)
            for (std::uint32_t o = 0; o < g_[members_[i]].outputs.size(); ++o)
                for (auto const& [user, slot] : view_.uses({members_[i], o}))
                    if (!leads_to_gradient(user) && (!index_.count(user) || find(index_.at(user)) != find(i))) has_others[find(i)] = true;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (find(i) != i || has_others[i]) continue;
            auto const [at, fresh] = first.try_emplace(g_[members_[i]].module_path, i);
            if (!fresh) root_[i] = at->second;
        }
    }
    bool leads_to_gradient(vertex v) const { return g_[v].role == node_role::gradient || is_passed_through(view_, v); }
};

}  // namespace detail

/// The computations of one phase under the module path `prefix` ("": all, at most a few hundred), as cards.
inline std::vector<std::vector<vertex>> fold_layer(plan_view const& view, std::string const& prefix, phase which) {
    return detail::layer_folder(view, prefix, which).run();
}

}  // namespace cantle
