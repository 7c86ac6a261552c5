// SPDX-License-Identifier: BSL-1.0
#pragma once
// The placement lattice of one tensor class: layouts as vertices, collectives as edges, prices from a cost model. Redistribution is a
// shortest path on it, and the path found is the path executed: price and execution cannot differ.
//
// States are found by closure from the terminals (the layouts that some neighbour names), so only those exist that a path can cross.
// Among paths of equal price the one with fewer steps wins, then the one found first in the fixed order of for_each_transition.
// An edge is kept as its target and price; the step itself is found again where a path is asked for, so that lattices of millions of edges
// (five mesh axes) stay small.
// Complexity: closure O(states * degree); one source O(states * degree * log). 4x8, rank 3: about 30 states of degree 10; 2x2x2x4, rank 4:
// 2,400 states of degree 20.
#include <cantle/base/distance_transform.hpp>
#include <cantle/mesh/transition.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cantle {

/// One step of a path and its price in microseconds.
struct priced_transition {
    transition step;
    collective_call call;
    double cost = 0;
};

class placement_lattice {
public:
    /// Explore everything reachable from `terminals`. `price(collective_call) -> double` microseconds, finite, >= 0.
    /// Precondition: all terminals fit the class' shape.
    template <class Price>
    placement_lattice(lattice_class c, std::vector<layout> const& terminals, Price price) : class_(std::move(c)) {
        for (auto const& t : terminals) class_.add_boundaries(t);
        for (auto const& t : terminals) state_of(t);
        for (std::size_t s = 0; s < states_.size(); ++s) {  // states_ grows while we walk
            first_edge_.push_back(to_.size());
            layout const from = states_[s];
            for_each_transition(class_, from, [&](transition&& t) {
                double cost = 0;
                if (t.kind != collective_kind::slice) cost = static_cast<double>(price(call_of(class_, from, t)));
                CANTLE_ASSERT(cost >= 0 && cost < std::numeric_limits<double>::infinity(), "prices are finite and not negative");
                to_.push_back(static_cast<std::uint32_t>(state_of(t.to)));
                cost_.push_back(cost);
                kind_.push_back(t.kind);
            });
        }
        first_edge_.push_back(to_.size());
        graph_ = distance_graph(states_.size(), arcs([](collective_kind, double) { return true; }, 1.0));
    }

    lattice_class const& tensor_class() const { return class_; }
    std::size_t state_count() const { return states_.size(); }
    std::size_t edge_count() const { return to_.size(); }
    layout const& state(std::size_t s) const { return states_[s]; }
    /// The state of a layout; state_count() for one that is none.
    std::size_t find(layout const& l) const {
        auto const at = index_.find(l);
        return at == index_.end() ? states_.size() : at->second;
    }

    /// Prices from `from` to every layout of `to`; infinity where no path exists (Partial can only be reached from Partial) and for a
    /// layout that is no state. Precondition: `from` is a state, as every terminal is.
    std::vector<double> distances(layout const& from, std::vector<layout> const& to) const {
        return distances(std::vector<layout>{from}, to).front();
    }
    /// The same from each of several layouts.
    std::vector<std::vector<double>> distances(std::vector<layout> const& from, std::vector<layout> const& to) const {
        constexpr auto lanes = distance_graph::lanes;
        std::vector<std::size_t> targets;
        for (auto const& t : to) targets.push_back(find(t));
        std::vector<double> all;
        std::vector<std::vector<double>> d(from.size());
        for (std::size_t first = 0; first < from.size(); first += lanes) {
            std::size_t const count = std::min(lanes, from.size() - first);
            all.assign(states_.size() * lanes, std::numeric_limits<double>::infinity());
            for (std::size_t i = 0; i < count; ++i) all[index_.at(from[first + i]) * lanes + i] = 0;
            if (count == 1) {
                std::vector<double> one(states_.size(), std::numeric_limits<double>::infinity());
                one[index_.at(from[first])] = 0;
                graph_.transform(one.data());
                for (std::size_t s = 0; s < one.size(); ++s) all[s * lanes] = one[s];
            } else {
                graph_.transform_many(all.data());
            }
            for (std::size_t i = 0; i < count; ++i) {
                d[first + i].reserve(targets.size());
                for (auto s : targets)
                    d[first + i].push_back(s == states_.size() ? std::numeric_limits<double>::infinity() : all[s * lanes + i]);
            }
        }
        return d;
    }
    /// The cheapest path; empty for from == to. Precondition: distances(from, {to}) is finite.
    std::vector<priced_transition> path(layout const& from, layout const& to) const {
        auto const tree = shortest_paths(index_.at(from));
        std::vector<priced_transition> reversed;
        for (std::size_t s = index_.at(to), source = index_.at(from); s != source; s = tree.parent[s]) {
            CANTLE_ASSERT(tree.edge_into[s] != none, "a path is asked for only where one exists");
            reversed.push_back(step_of(tree.parent[s], tree.edge_into[s]));
        }
        return {reversed.rbegin(), reversed.rend()};
    }
    /// visit(target state, cost, step) for every edge out of state s.
    template <class Visit>
    void for_each_edge(std::size_t s, Visit visit) const {
        std::size_t e = first_edge_[s];
        for_each_transition(class_, states_[s], [&](transition&& t) {
            visit(std::size_t{to_[e]}, cost_[e], static_cast<transition const&>(t));
            ++e;
        });
    }
    /// The edges that `keep(collective_kind, price)` accepts, with their prices times `scale`, rounded down to whole numbers if asked for.
    template <class Keep>
    std::vector<weighted_edge> arcs(Keep keep, double scale, bool whole = false) const {
        std::vector<weighted_edge> list;
        list.reserve(to_.size());
        for (std::uint32_t s = 0; s < states_.size(); ++s)
            for (std::size_t e = first_edge_[s]; e < first_edge_[s + 1]; ++e)
                if (keep(kind_[e], cost_[e])) list.push_back({s, to_[e], whole ? std::floor(cost_[e] * scale) : cost_[e] * scale});
        return list;
    }

private:
    struct path_tree { std::vector<double> distance; std::vector<std::size_t> edge_into, parent; };
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    lattice_class class_;
    std::vector<layout> states_;
    std::unordered_map<layout, std::size_t, layout_hash> index_;  // looked up, never walked
    std::vector<std::size_t> first_edge_;
    std::vector<std::uint32_t> to_;
    std::vector<double> cost_;
    std::vector<collective_kind> kind_;
    distance_graph graph_;  // the same edges by target

    std::size_t state_of(layout const& l) {
        auto const [at, fresh] = index_.try_emplace(l, states_.size());
        if (fresh) states_.push_back(l);
        return at->second;
    }
    priced_transition step_of(std::size_t from, std::size_t edge) const {
        priced_transition found;
        std::size_t e = first_edge_[from];
        for_each_transition(class_, states_[from], [&](transition&& t) {
            if (e++ == edge) found = {t, call_of(class_, states_[from], t), cost_[edge]};
        });
        return found;
    }
    /// Dijkstra with the lexicographic key (price, steps, state).
    path_tree shortest_paths(std::size_t source) const {
        path_tree t{std::vector<double>(states_.size(), std::numeric_limits<double>::infinity()),
                    std::vector<std::size_t>(states_.size(), none), std::vector<std::size_t>(states_.size(), none)};
        std::vector<int> steps(states_.size(), std::numeric_limits<int>::max());
        using key = std::pair<std::pair<double, int>, std::size_t>;
        std::priority_queue<key, std::vector<key>, std::greater<>> open;
        t.distance[source] = 0;
        steps[source] = 0;
        open.push({{0.0, 0}, source});
        while (!open.empty()) {
            auto const [k, s] = open.top();
            open.pop();
            if (k > std::pair{t.distance[s], steps[s]}) continue;
            for (std::size_t e = first_edge_[s]; e < first_edge_[s + 1]; ++e) {
                std::pair const next{k.first + cost_[e], k.second + 1};
                std::size_t const to = to_[e];
                if (next < std::pair{t.distance[to], steps[to]}) {
                    t.distance[to] = next.first;
                    steps[to] = next.second;
                    t.edge_into[to] = e;
                    t.parent[to] = s;
                    open.push({next, to});
                }
            }
        }
        return t;
    }
};

}  // namespace cantle
