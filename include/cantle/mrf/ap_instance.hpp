// SPDX-License-Identifier: BSL-1.0
#pragma once
// A placement-selection problem of the format "ap-instance-1" as a factor graph.
//
// Nodes that must take the same strategy index (copies of a cluster, same_index groups) are one variable; its labels are the strategy
// indices that every member allows (fixed placements, smallest memory ratio, no forbidden edge inside the group) and that some strategy of
// every neighbour allows (arc consistency, by placements: before tables exist, which it shrinks to a third). The order of variables is that
// of their first node, so topological. Pairings are edges whose table forbids everything but the listed pairs. Equal edges of
// copies become one edge whose table is multiplied by their number.
#include <cantle/mrf/ap_file.hpp>
#include <cantle/mrf/ap_prices.hpp>
#include <cantle/mrf/budget.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <memory>
#include <vector>

namespace cantle::mrf {

struct ap_options {
    bool clustered = true;  ///< false: copies of a layer decide for themselves ("root" and "same_index" are left out)
};

/// The factor graph of an instance and the meaning of its labels.
struct ap_instance {
    factor_graph graph;
    std::vector<std::uint32_t> variable_of;            ///< per node
    std::vector<std::vector<std::uint32_t>> strategy;  ///< [variable][label] -> strategy index
    /// "memory" as sums over labels, where it asks for more than that every parameter takes its smallest ratio (which the labels then say).
    std::vector<linear_budget> budgets;

    /// Labels of a solution given per node, or nothing when it uses a strategy that the constraints rule out.
    std::optional<std::vector<label>> labels_of(std::span<std::uint32_t const> strategies) const {
        std::vector<label> labels(strategy.size());
        for (std::size_t v = 0; v < strategies.size(); ++v) {
            auto const& list = strategy[variable_of[v]];
            auto const at = std::find(list.begin(), list.end(), strategies[v]);
            if (at == list.end()) return std::nullopt;
            labels[variable_of[v]] = static_cast<label>(at - list.begin());
        }
        return labels;
    }
    /// The strategy of every node.
    std::vector<std::uint32_t> strategies_of(std::span<label const> labels) const {
        std::vector<std::uint32_t> all;
        for (auto v : variable_of) all.push_back(strategy[v][labels[v]]);
        return all;
    }
};

namespace detail {

class ap_builder {
public:
    ap_builder(ap_file const& f, ap_options const& options) : f_(f), options_(options) {}

    ap_instance build() {
        std::vector<char> quiet(f_.nodes.size(), 0);
        for (auto v : f_.quiet_roots) quiet[v] = 1;
        for (auto const& n : f_.nodes) quiet_.push_back(quiet[n.root]);
        unite();
        restrict_labels();
        add_costs();
        remove_unreachable();
        add_variables();
        add_edges();
        add_budgets();
        return std::move(out_);
    }

private:
    ap_file const& f_;
    ap_options options_;
    ap_instance out_;
    std::vector<char> quiet_;
    bool weigh_memory_ = false;
    std::vector<std::vector<char>> allowed_;  // [variable][strategy]
    std::vector<std::uint32_t> first_node_;   // [variable]
    std::vector<std::vector<double>> unary_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, ap_edge_kind>, double> edges_;  // (consumer, producer, kind) -> number
    std::map<ap_edge_kind, ap_prices> prices_;

    void unite() {
        std::vector<std::uint32_t> root(f_.nodes.size());
        std::iota(root.begin(), root.end(), 0U);
        auto const find = [&](std::uint32_t v) {
            while (root[v] != v) v = root[v] = root[root[v]];
            return v;
        };
        auto const join = [&](std::uint32_t a, std::uint32_t b) {
            a = find(a);
            b = find(b);
            root[std::max(a, b)] = std::min(a, b);
        };
        if (options_.clustered) {
            for (std::uint32_t v = 0; v < root.size(); ++v) join(v, f_.nodes[v].root);
            for (auto const& group : f_.same_index)
                for (auto v : group) join(v, group[0]);
        }
        out_.variable_of.resize(root.size());
        for (std::uint32_t v = 0; v < root.size(); ++v) {
            if (find(v) == v) {
                out_.variable_of[v] = static_cast<std::uint32_t>(allowed_.size());
                allowed_.emplace_back(f_.strategy_count(v), char{1});
                first_node_.push_back(v);
            }
            out_.variable_of[v] = out_.variable_of[find(v)];
        }
    }

    void keep_only(std::uint32_t variable, std::vector<char> const& in) {
        auto& a = allowed_[variable];
        for (std::size_t s = 0; s < in.size(); ++s) a[s] = a[s] && in[s];
    }
    void restrict_labels() {
        for (auto const& fixed : f_.fixed) {
            std::vector<char> in(f_.strategy_count(fixed.node), 0);
            for (auto s : fixed.strategies) in[s] = 1;
            keep_only(out_.variable_of[fixed.node], in);
        }
        for (auto const& p : f_.paired) {
            auto const v = out_.variable_of[p.a];
            if (v != out_.variable_of[p.b]) continue;
            std::vector<char> in(allowed_[v].size(), 0);
            for (auto const& [a, b] : p.allowed)
                if (a == b) in[a] = 1;
            keep_only(v, in);
        }
        if (f_.ratios.empty()) return;
        std::vector<double> smallest;
        for (auto const& [node, ratios] : f_.ratios) {
            auto const& a = allowed_[out_.variable_of[node]];
            double least = forbidden;
            for (std::size_t s = 0; s < ratios.size(); ++s)
                if (a[s]) least = std::min(least, ratios[s]);
            smallest.push_back(least);
        }
        double const total = std::accumulate(smallest.begin(), smallest.end(), 0.0);
        if (total != forbidden && total > f_.most_memory + 1e-6)
            throw error(error_code::unsatisfiable_constraint, "constraints.memory",
                        "the smallest ratios add up to " + std::to_string(total) + ", the limit is " + std::to_string(f_.most_memory),
                        "raise memory.high");
        weigh_memory_ = total < f_.most_memory - 1e-6;
        if (weigh_memory_) return;
        for (std::size_t i = 0; i < smallest.size(); ++i) {
            auto const& [node, ratios] = f_.ratios[i];
            auto& a = allowed_[out_.variable_of[node]];
            for (std::size_t s = 0; s < ratios.size(); ++s) a[s] = a[s] && ratios[s] <= smallest[i];
        }
    }
    /// The limits of "memory" where labels alone do not keep them.
    void add_budgets() {
        if (!weigh_memory_) return;
        std::vector<std::vector<double>> weights(out_.strategy.size());
        for (auto const& [node, ratios] : f_.ratios) {
            auto const v = out_.variable_of[node];
            weights[v].resize(out_.strategy[v].size(), 0.0);
            for (std::size_t l = 0; l < weights[v].size(); ++l) weights[v][l] += ratios[out_.strategy[v][l]];
        }
        auto const limit = [&](char const* name, double sign, double most) {
            linear_budget b{name, most, {}, {}};
            for (auto list : weights) {
                for (double& w : list) w *= sign;
                b.of_variable.push_back(list.empty() ? nullptr : std::make_shared<std::vector<double> const>(std::move(list)));
            }
            out_.budgets.push_back(std::move(b));
        };
        limit("memory.high", 1, f_.most_memory + 1e-6);
        if (f_.least_memory > 0) limit("memory.low", -1, -f_.least_memory + 1e-6);
    }

    /// `node`: a consumer, for errors.
    ap_prices const& prices(ap_edge_kind const& kind, std::uint32_t node) {
        auto const at = prices_.find(kind);
        return at != prices_.end() ? at->second : prices_.try_emplace(kind, f_, kind, node).first->second;
    }

    void add_costs() {
        unary_.resize(allowed_.size());
        for (std::size_t g = 0; g < allowed_.size(); ++g) unary_[g].assign(allowed_[g].size(), 0.0);
        for (std::uint32_t v = 0; v < f_.nodes.size(); ++v) {
            auto const& n = f_.nodes[v];
            auto const variable = out_.variable_of[v];
            auto& u = unary_[variable];
            auto const& compute = f_.compute[n.compute];
            for (std::size_t s = 0; s < u.size(); ++s) u[s] += compute[s];
            for (std::size_t i = 0; i < n.producers.size(); ++i) {
                auto const& e = n.edges[i];
                if (e.no_cost) continue;
                auto const p = n.producers[i];
                ap_edge_kind const kind{e.tensor, f_.nodes[p].table, e.output, n.table, i, quiet_[v] != 0};
                if (!e.least_of_all && out_.variable_of[p] != variable) {
                    edges_[{variable, out_.variable_of[p], kind}] += 1;
                    continue;
                }
                auto const& price = prices(kind, v);
                for (std::size_t s = 0; s < u.size(); ++s) {
                    if (!allowed_[variable][s]) continue;
                    double least = forbidden;
                    if (e.least_of_all)
                        for (std::size_t k = 0; k < f_.strategy_count(p); ++k) least = std::min(least, price(s, k));
                    else least = price(s, s);
                    u[s] += least;
                }
            }
        }
    }

    /// Takes out strategies that some neighbour cannot meet, until none is left. Where that leaves a variable without any, all stay: the
    /// solver says then which edges are in conflict.
    void remove_unreachable() {
        for (std::size_t g = 0; g < unary_.size(); ++g)
            for (std::size_t s = 0; s < unary_[g].size(); ++s) allowed_[g][s] = allowed_[g][s] && unary_[g][s] != forbidden;
        auto const before = allowed_;
        struct arc {
            std::uint32_t consumer, producer;
            ap_prices const* price;
        };
        std::vector<arc> arcs;
        for (auto const& [key, times] : edges_)
            arcs.push_back({std::get<0>(key), std::get<1>(key), &prices(std::get<2>(key), first_node_[std::get<0>(key)])});
        std::vector<std::size_t> changed(allowed_.size(), 1);  // round in which a variable last lost a strategy
        bool again = true;
        for (std::size_t round = 1; again; ++round) {
            again = false;
            for (auto const& a : arcs) {
                if (std::max(changed[a.consumer], changed[a.producer]) < round) continue;
                if (!a.price->remove_unreachable(allowed_[a.consumer], allowed_[a.producer])) continue;
                changed[a.consumer] = changed[a.producer] = round + 1;
                again = true;
            }
        }
        for (auto const& in : allowed_)
            if (std::find(in.begin(), in.end(), char{1}) == in.end()) {
                allowed_ = before;
                return;
            }
    }

    void add_variables() {
        for (std::size_t g = 0; g < unary_.size(); ++g) {
            std::vector<double> costs;
            auto& list = out_.strategy.emplace_back();
            for (std::uint32_t s = 0; s < unary_[g].size(); ++s) {
                if (!allowed_[g][s]) continue;
                list.push_back(s);
                costs.push_back(unary_[g][s]);
            }
            if (costs.empty())
                throw error(error_code::unsatisfiable_constraint, "node '" + f_.nodes[first_node_[g]].name + "' and what decides with it",
                            "no strategy satisfies its constraints (fixed, paired, memory, nocomm)", "loosen one of them");
            out_.graph.add_variable(std::move(costs));
        }
    }

    /// Variables of equal label lists share tables.
    std::vector<std::uint32_t> list_of_;  // [variable]
    void number_lists() {
        std::map<std::vector<std::uint32_t>, std::uint32_t> seen;
        for (auto const& list : out_.strategy)
            list_of_.push_back(seen.try_emplace(list, static_cast<std::uint32_t>(seen.size())).first->second);
    }
    void add_edges() {
        number_lists();
        std::map<std::tuple<ap_edge_kind, double, std::uint32_t, std::uint32_t>, table_id> known;
        for (auto const& [key, times] : edges_) {
            auto const consumer = std::get<0>(key), producer = std::get<1>(key);
            auto const [at, fresh] = known.try_emplace({std::get<2>(key), times, list_of_[consumer], list_of_[producer]});
            if (fresh)
                at->second = out_.graph.add_table(prices(std::get<2>(key), first_node_[consumer])
                                                      .table(out_.strategy[consumer], out_.strategy[producer], times));
            out_.graph.add_edge(variable_id(consumer), variable_id(producer), at->second);
        }
        for (auto const& p : f_.paired) {
            auto const va = out_.variable_of[p.a], vb = out_.variable_of[p.b];
            if (va == vb) continue;  // it has restricted the labels
            std::vector<std::vector<char>> in(f_.strategy_count(p.a), std::vector<char>(f_.strategy_count(p.b), 0));
            for (auto const& [a, b] : p.allowed) in[a][b] = 1;
            auto const &rows = out_.strategy[va], &cols = out_.strategy[vb];
            cost_table t{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(cols.size()), {}};
            for (auto x : rows)
                for (auto y : cols) t.values.push_back(in[x][y] ? 0.0 : forbidden);
            out_.graph.add_edge(variable_id(va), variable_id(vb), std::move(t));
        }
    }
};

}  // namespace detail

/// Throws bad_field or unsatisfiable_constraint (which names the node).
inline ap_instance build_ap_instance(ap_file const& file, ap_options const& options = {}) {
    return detail::ap_builder(file, options).build();
}

}  // namespace cantle::mrf
