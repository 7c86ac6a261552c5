// SPDX-License-Identifier: BSL-1.0
#pragma once
// A planning problem with lattice potentials: the same labels, the same costs as build_problem's factor graph, and no table. Several moves
// between two groups are several edges, which weakens the bound of TRW-S a little and its truth not at all.
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/problem/edge_columns.hpp>
#include <cantle/problem/label_subset.hpp>
#include <cantle/problem/lattice_potential.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::detail {

class lattice_problem {
public:
    /// Keeps a reference. Finds the labels that a move inside their group, or between groups, does not forbid.
    explicit lattice_problem(planning_problem const& p) : p_(p), columns_(p) {
        collect_edges();
        own_costs();
        make_arc_consistent();
    }

    /// The labels that have an allowed partner across every edge.
    label_subset const& alive() const { return alive_; }
    bool feasible() const {
        return std::none_of(alive_.begin(), alive_.end(), [](auto const& a) { return a.empty(); });
    }
    /// Sum of the largest costs of all groups, microseconds: a scale of what plans cost.
    double scale() const {
        double sum = 0;
        for (std::size_t i = 0; i < alive_.size(); ++i) {
            double most = 0;
            for (auto l : alive_[i]) most = std::max(most, own_[i][l]);
            sum += most;
        }
        return sum;
    }
    /// Labels alive, costs in whole units, nowhere above the real ones. Precondition: feasible().
    mrf::pairwise_problem<lattice_potential> whole(double unit) const {
        std::vector<std::vector<double>> costs;
        for (std::size_t i = 0; i < alive_.size(); ++i) {
            costs.emplace_back();
            for (auto l : alive_[i]) costs.back().push_back(std::floor(own_[i][l] / unit));
        }
        return {std::move(costs), potentials(1.0 / unit, true)};
    }

private:
    using metric_key = std::tuple<tensor_class_id, bool, bool, std::int64_t>;  // free_only, keeps_partial, copies
    struct group_edge {
        std::uint32_t from, to;
        edge_columns::key prices;
        std::int64_t copies;
    };
    planning_problem const& p_;
    edge_columns columns_;
    std::vector<group_edge> edges_;
    std::map<std::pair<std::uint32_t, edge_columns::key>, std::int64_t> inside_;  // moves inside a group, with copies
    std::vector<std::vector<double>> own_;  // [group][label], microseconds; forbidden where not allowed
    label_subset alive_;

    /// The steps that an edge may take. A move that must cost nothing takes free steps only; one that keeps partial values reduces none.
    static auto kinds_of(bool free_only, bool keeps_partial) {
        return [free_only, keeps_partial](collective_kind k, double cost) {
            if (free_only && cost > 0) return false;
            return !keeps_partial || (k != collective_kind::all_reduce && k != collective_kind::reduce_scatter);
        };
    }

    void collect_edges() {
        std::map<std::tuple<std::uint32_t, std::uint32_t, edge_columns::key>, std::int64_t> count;
        for (auto const& e : p_.edges) {
            auto const from = p_.grouping.group_of[e.from], to = p_.grouping.group_of[e.to];
            if (from == to) ++inside_[{from, columns_.of(e)}];
            else ++count[{from, to, columns_.of(e)}];
        }
        for (auto const& [key, copies] : count) edges_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), copies});
    }

    void own_costs() {
        for (auto const& g : p_.grouping.groups) own_.push_back(computation(p_, g));
        for (auto const& [key, copies] : inside_) {
            auto& own = own_[key.first];
            auto const &from = columns_.layouts(key.second.from), &to = columns_.layouts(key.second.to);
            auto const d = distances_along(key.second, from, to);
            for (std::size_t l = 0; l < own.size(); ++l)
                if (from[l] != to[l]) own[l] += static_cast<double>(copies) * (d[l] + p_.options.tie_break);
        }
    }
    /// dist(from[l], to[l]) for every l; forbidden where no path of the wanted kind exists.
    std::vector<double> distances_along(edge_columns::key const& k, std::vector<layout_id> const& from,
                                        std::vector<layout_id> const& to) const {
        auto const& lattice = p_.tables.lattice(k.tensor_class);
        distance_graph const graph(lattice.state_count(), lattice.arcs(kinds_of(k.free_only, k.keeps_partial), 1.0));
        constexpr auto lanes = distance_graph::lanes;
        std::map<layout_id, std::vector<std::size_t>> by_source;
        for (std::size_t l = 0; l < from.size(); ++l)
            if (from[l] != to[l]) by_source[from[l]].push_back(l);
        std::vector<double> out(from.size(), 0.0), all;
        for (auto at = by_source.begin(); at != by_source.end();) {
            all.assign(lattice.state_count() * lanes, mrf::forbidden);
            auto const first = at;
            for (std::size_t i = 0; i < lanes && at != by_source.end(); ++i, ++at) all[lattice.find(p_.layouts[at->first]) * lanes + i] = 0;
            graph.transform_many(all.data());
            std::size_t i = 0;
            for (auto done = first; done != at; ++done, ++i)
                for (auto l : done->second) out[l] = all[lattice.find(p_.layouts[to[l]]) * lanes + i];
        }
        return out;
    }
    std::vector<mrf::pairwise_problem<lattice_potential>::edge_type> potentials(double scale, bool whole) const {
        std::map<metric_key, std::shared_ptr<lattice_metric const>> metrics;
        std::map<std::pair<tensor_class_id, std::vector<layout_id>>, lattice_potential::states> states;
        auto const states_of = [&](tensor_class_id c, std::uint32_t group, std::vector<layout_id> const& column) {
            std::vector<layout_id> layouts;
            for (auto l : alive_[group]) layouts.push_back(column[l]);
            auto const [at, fresh] = states.try_emplace({c, std::move(layouts)});
            if (fresh) {
                std::vector<std::uint32_t> list;
                for (auto l : at->first.second) list.push_back(static_cast<std::uint32_t>(p_.tables.lattice(c).find(p_.layouts[l])));
                at->second = std::make_shared<std::vector<std::uint32_t> const>(std::move(list));
            }
            return at->second;
        };
        std::vector<mrf::pairwise_problem<lattice_potential>::edge_type> list;
        for (auto const& e : edges_) {
            auto const& k = e.prices;
            auto const [at, fresh] = metrics.try_emplace({k.tensor_class, k.free_only, k.keeps_partial, e.copies});
            if (fresh) {
                auto const& lattice = p_.tables.lattice(k.tensor_class);
                double const times = static_cast<double>(e.copies) * scale;
                auto arcs = lattice.arcs(kinds_of(k.free_only, k.keeps_partial), times, whole);
                distance_graph forward(lattice.state_count(), arcs);
                for (auto& a : arcs) std::swap(a.from, a.to);
                double const tie = p_.options.tie_break * times;
                at->second = std::make_shared<lattice_metric const>(
                    lattice_metric{std::move(forward), distance_graph(lattice.state_count(), arcs), whole ? std::floor(tie) : tie});
            }
            list.push_back({mrf::variable_id(e.from), mrf::variable_id(e.to),
                            lattice_potential(at->second, states_of(k.tensor_class, e.from, columns_.layouts(k.from)),
                                              states_of(k.tensor_class, e.to, columns_.layouts(k.to)))});
        }
        return list;
    }

    /// Labels without an allowed partner across some edge go, until none does. Whether a layout can become another is a matter of what is
    /// Partial on which axis: no step makes values partial, and all else can be gathered and sliced. So labels meet in a few kinds per
    /// edge; only free moves are walked (they are few).
    void make_arc_consistent() {
        for (auto const& own : own_) {
            alive_.emplace_back();
            for (mrf::label l = 0; l < own.size(); ++l)
                if (own[l] != mrf::forbidden) alive_.back().push_back(l);
        }
        std::vector<std::vector<char>> in;
        for (auto const& own : own_) {
            in.emplace_back();
            for (double c : own) in.back().push_back(c != mrf::forbidden);
        }
        std::vector<std::uint64_t> partial;  // [layout]
        for (layout_id l = 0; l < p_.layouts.size(); ++l) partial.push_back(partial_signature(p_.layouts[l]));
        std::map<edge_columns::key, std::vector<std::vector<char>>> free_moves;
        for (auto const& e : edges_)
            if (e.prices.free_only && !free_moves.contains(e.prices)) free_moves.emplace(e.prices, free_pairs(e.prices));
        std::vector<char> changed(in.size(), 1);
        while (std::find(changed.begin(), changed.end(), 1) != changed.end()) {
            auto const now = std::exchange(changed, std::vector<char>(in.size(), 0));
            for (auto const& e : edges_) {
                if (!now[e.from] && !now[e.to]) continue;
                auto const &rows = columns_.layouts(e.prices.from), &cols = columns_.layouts(e.prices.to);
                auto const* const free = e.prices.free_only ? &free_moves.at(e.prices) : nullptr;
                auto const allowed = [&](std::size_t r, std::size_t c) {
                    if (free && !(*free)[r][c]) return false;
                    return e.prices.keeps_partial ? partial[rows[r]] == partial[cols[c]] : becomes(partial[rows[r]], partial[cols[c]]);
                };
                changed[e.to] |= support(in[e.from], in[e.to], rows, cols, partial, free != nullptr, allowed);
                auto const back = [&](std::size_t c, std::size_t r) { return allowed(r, c); };
                changed[e.from] |= support(in[e.to], in[e.from], cols, rows, partial, free != nullptr, back);
            }
        }
        for (std::size_t i = 0; i < alive_.size(); ++i)
            std::erase_if(alive_[i], [&](mrf::label l) { return !in[i][l]; });
    }
    /// Four bits per axis: 0, or 1 + the kind of Partial.
    static std::uint64_t partial_signature(layout const& l) {
        std::uint64_t s = 0;
        for (std::size_t a = 0; a < l.mesh_dims(); ++a)
            if (auto const on = l.on(a); on.is_partial()) s |= static_cast<std::uint64_t>(1 + static_cast<int>(on.reduce)) << 4 * a;
        return s;
    }
    /// True when every partial axis of `to` is one of `from`, of the same kind.
    static bool becomes(std::uint64_t from, std::uint64_t to) {
        for (; to != 0; to >>= 4, from >>= 4)
            if ((to & 15) != 0 && (to & 15) != (from & 15)) return false;
        return true;
    }
    /// Clears what no label that is in supports. Labels of one layout, or of one signature where moves cost, are asked about once.
    template <class Allowed>
    static bool support(std::vector<char> const& by, std::vector<char>& labels, std::vector<layout_id> const& of_by,
                        std::vector<layout_id> const& of_labels, std::vector<std::uint64_t> const& partial, bool by_layout,
                        Allowed allowed) {
        auto const kind = [&](layout_id l) { return by_layout ? std::uint64_t{l} : partial[l]; };
        std::map<std::uint64_t, std::size_t> sources;  // kind -> a label of it that is in
        for (std::size_t j = 0; j < by.size(); ++j)
            if (by[j]) sources.emplace(kind(of_by[j]), j);
        std::map<std::uint64_t, bool> known;
        bool any = false;
        for (std::size_t k = 0; k < labels.size(); ++k) {
            if (!labels[k]) continue;
            auto const [at, fresh] = known.try_emplace(kind(of_labels[k]), false);
            for (auto s = sources.begin(); fresh && !at->second && s != sources.end(); ++s) at->second = allowed(s->second, k);
            if (at->second) continue;
            labels[k] = 0;
            any = true;
        }
        return any;
    }
    /// [row][column] of a move that must cost nothing.
    std::vector<std::vector<char>> free_pairs(edge_columns::key const& k) const {
        auto const &rows = columns_.layouts(k.from), &cols = columns_.layouts(k.to);
        auto const& lattice = p_.tables.lattice(k.tensor_class);
        distance_graph const graph(lattice.state_count(), lattice.arcs(kinds_of(true, k.keeps_partial), 1.0));
        std::vector<std::vector<char>> allowed;
        std::vector<std::size_t> targets;
        for (auto l : cols) targets.push_back(lattice.find(p_.layouts[l]));
        std::map<layout_id, std::vector<char>> known;
        for (auto l : rows) {
            auto& row = known[l];
            if (row.empty()) {
                std::vector<double> d(lattice.state_count(), mrf::forbidden);
                d[lattice.find(p_.layouts[l])] = 0;
                graph.transform(d.data());
                for (auto t : targets) row.push_back(d[t] != mrf::forbidden);
            }
            allowed.push_back(row);
        }
        return allowed;
    }
};

}  // namespace cantle::detail
