// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reads a placement-selection problem in the format "ap-instance-1" (JSON, described in the instances' README) into a factor graph.
// Not part of the solver: it needs nlohmann-json, so only tests and benches include it. Compressed files are decompressed by their reader.
//
// Nodes that must take the same strategy index (copies of a cluster, same_index groups) are one variable; its labels are the strategy
// indices that every member allows (fixed placements, smallest memory ratio, no forbidden edge inside the group). The order of variables
// is that of their first node, so topological. Pairings are edges whose table forbids everything but the listed pairs. Equal edges of
// copies become one edge whose table is multiplied by their number.
#include <cantle/mrf/factor_graph.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// A solution stored with an instance.
struct ap_reference {
    std::string name;
    double objective;  ///< microseconds
    std::vector<std::uint32_t> strategies;  ///< per node; empty when none is stored
};

/// The factor graph of an instance and the meaning of its labels.
struct ap_instance {
    factor_graph graph;
    std::vector<std::uint32_t> variable_of;            ///< per node
    std::vector<std::vector<std::uint32_t>> strategy;  ///< [variable][label] -> strategy index
    std::vector<ap_reference> references;

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
};

namespace detail {

class ap_reader {
public:
    explicit ap_reader(nlohmann::json const& d) : d_(d), nodes_(d.at("nodes")) {}

    ap_instance read() {
        if (d_.value("format", "") != "ap-instance-1") throw error(error_code::wrong_format, "instance", "format is not ap-instance-1", "");
        read_tables();
        unite();
        restrict_labels();
        add_costs();
        add_edges();
        for (auto const& [name, r] : d_.at("reference").items()) {
            ap_reference ref{name, r.at("objective").get<double>(), {}};
            if (r.contains("solution")) ref.strategies = r.at("solution").get<std::vector<std::uint32_t>>();
            out_.references.push_back(std::move(ref));
        }
        return std::move(out_);
    }

private:
    using json = nlohmann::json;
    struct redistribution {
        std::map<int, std::size_t> src, dst;
        std::vector<std::vector<double>> cost;  // [dst][src]
    };
    // What decides an edge's table: tensor, producer's strategy table and output, consumer's strategy table and argument, no communication.
    using edge_kind = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, bool>;
    json const& d_;
    json const& nodes_;
    ap_instance out_;
    std::vector<std::vector<std::vector<int>>> spec_out_, spec_in_;  // [strategy table][strategy][slot] -> spec, -1 for none
    std::map<std::size_t, redistribution> redist_;
    std::vector<std::size_t> root_;
    std::vector<char> no_comm_;
    std::vector<std::vector<char>> allowed_;  // [variable][strategy]

    static std::vector<std::vector<int>> specs(json const& rows) {
        std::vector<std::vector<int>> all;
        for (auto const& row : rows) {
            auto& r = all.emplace_back();
            for (auto const& x : row) r.push_back(x.is_null() ? -1 : x.get<int>());
        }
        return all;
    }
    void read_tables() {
        for (auto const& t : d_.at("strategy_tables")) {
            spec_out_.push_back(specs(t.at("out")));
            spec_in_.push_back(specs(t.at("in")));
        }
        for (auto const& [key, t] : d_.at("redist").items()) {
            auto& r = redist_[std::stoul(key)];
            for (auto const& s : t.at("src")) r.src.emplace(s.get<int>(), r.src.size());
            for (auto const& s : t.at("dst")) r.dst.emplace(s.get<int>(), r.dst.size());
            for (auto const& row : t.at("cost")) {
                auto& costs = r.cost.emplace_back();
                for (auto const& c : row) costs.push_back(c.is_null() ? forbidden : c.get<double>());
            }
        }
        no_comm_.assign(nodes_.size(), 0);
        std::vector<char> roots(nodes_.size(), 0);
        for (auto const& v : d_.at("constraints").at("nocomm")) roots[v.get<std::size_t>()] = 1;
        for (std::size_t v = 0; v < nodes_.size(); ++v) no_comm_[v] = roots[nodes_[v].at("root").get<std::size_t>()];
    }
    std::size_t table_of(std::size_t v) const { return nodes_[v].at("strat").get<std::size_t>(); }
    std::size_t strategies(std::size_t v) const { return spec_out_[table_of(v)].size(); }

    void unite() {
        root_.resize(nodes_.size());
        std::iota(root_.begin(), root_.end(), std::size_t{0});
        auto const find = [&](std::size_t v) {
            while (root_[v] != v) v = root_[v] = root_[root_[v]];
            return v;
        };
        auto const join = [&](std::size_t a, std::size_t b) {
            a = find(a);
            b = find(b);
            root_[std::max(a, b)] = std::min(a, b);
        };
        for (std::size_t v = 0; v < nodes_.size(); ++v) join(v, nodes_[v].at("root").get<std::size_t>());
        for (auto const& group : d_.at("constraints").at("same_index"))
            for (auto const& v : group) join(v.get<std::size_t>(), group[0].get<std::size_t>());
        out_.variable_of.resize(nodes_.size());
        for (std::size_t v = 0; v < nodes_.size(); ++v) {
            if (find(v) == v) {
                out_.variable_of[v] = static_cast<std::uint32_t>(allowed_.size());
                allowed_.emplace_back(strategies(v), char{1});
            }
            out_.variable_of[v] = out_.variable_of[find(v)];
            if (strategies(v) != allowed_[out_.variable_of[v]].size())
                throw error(error_code::bad_field, nodes_[v].at("name").get<std::string>(),
                            "joined with a node of another strategy count", "");
        }
    }

    void restrict_labels() {
        auto const& c = d_.at("constraints");
        for (auto const& f : c.at("fixed")) {
            std::vector<char> in(strategies(f[0].get<std::size_t>()), 0);
            for (auto const& s : f[1]) in[s.get<std::size_t>()] = 1;
            auto& a = allowed_[out_.variable_of[f[0].get<std::size_t>()]];
            for (std::size_t s = 0; s < in.size(); ++s) a[s] = a[s] && in[s];
        }
        for (auto const& p : c.at("paired")) {
            auto const v = out_.variable_of[p.at("a").get<std::size_t>()];
            if (v != out_.variable_of[p.at("b").get<std::size_t>()]) continue;
            std::vector<char> in(allowed_[v].size(), 0);
            for (auto const& s : p.at("pairs"))
                if (s[0] == s[1]) in[s[0].get<std::size_t>()] = 1;
            for (std::size_t s = 0; s < in.size(); ++s) allowed_[v][s] = allowed_[v][s] && in[s];
        }
        auto const& m = c.at("memory");
        double total = 0;
        for (std::size_t i = 0; i < m.at("params").size(); ++i) {
            auto& a = allowed_[out_.variable_of[m.at("params")[i].get<std::size_t>()]];
            auto const ratios = m.at("ratios")[i].get<std::vector<double>>();
            double least = forbidden;
            for (std::size_t s = 0; s < ratios.size(); ++s)
                if (a[s]) least = std::min(least, ratios[s]);
            for (std::size_t s = 0; s < ratios.size(); ++s) a[s] = a[s] && ratios[s] <= least;
            total += least;
        }
        if (!m.at("params").empty() && total < m.at("high").get<double>() - 1e-6)
            throw error(error_code::bad_field, "constraints.memory", "budget is above the smallest ratios: not a pairwise problem", "");
    }

    /// (consumer strategy, producer strategy) -> cost; `forbidden` where impossible.
    double edge_cost(edge_kind const& kind, std::size_t consumer, std::size_t producer) const {
        auto const& [tensor, producer_table, output, consumer_table, arg, no_comm] = kind;
        int const from = spec_out_[producer_table][producer][output], to = spec_in_[consumer_table][consumer][arg];
        auto const& r = redist_.at(tensor);
        double const c = r.cost[r.dst.at(to)][r.src.at(from)];
        if (c == forbidden || (no_comm && c > 0)) return forbidden;
        return c + (from != to ? 1.0 : 0.0);
    }

    std::vector<std::vector<double>> unary_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, edge_kind>, double> edges_;  // (consumer, producer, kind) -> number

    void add_costs() {
        unary_.resize(allowed_.size());
        for (std::size_t g = 0; g < allowed_.size(); ++g) unary_[g].assign(allowed_[g].size(), 0.0);
        for (std::size_t v = 0; v < nodes_.size(); ++v) {
            auto& u = unary_[out_.variable_of[v]];
            auto const& compute = d_.at("compute_vectors")[nodes_[v].at("compute").get<std::size_t>()];
            for (std::size_t s = 0; s < u.size(); ++s) u[s] += compute[s].get<double>();
            auto const& args = nodes_[v].at("args");
            for (std::size_t i = 0; i < args.size(); ++i) {
                auto const& e = nodes_[v].at("edges")[i];
                if (e.contains("nocost")) continue;
                auto const p = args[i].get<std::size_t>();
                edge_kind const kind{e.at("t").get<std::size_t>(), table_of(p), e.at("out").get<std::size_t>(), table_of(v), i,
                                     no_comm_[v] != 0};
                if (e.contains("free")) {
                    for (std::size_t s = 0; s < u.size(); ++s) {
                        double least = forbidden;
                        for (std::size_t k = 0; k < strategies(p); ++k) least = std::min(least, edge_cost(kind, s, k));
                        u[s] += least;
                    }
                } else if (out_.variable_of[p] == out_.variable_of[v]) {
                    for (std::size_t s = 0; s < u.size(); ++s) u[s] += edge_cost(kind, s, s);
                } else {
                    edges_[{out_.variable_of[v], out_.variable_of[p], kind}] += 1;
                }
            }
        }
        for (std::size_t g = 0; g < unary_.size(); ++g) {
            std::vector<double> costs;
            auto& list = out_.strategy.emplace_back();
            for (std::uint32_t s = 0; s < unary_[g].size(); ++s) {
                if (!allowed_[g][s] || unary_[g][s] == forbidden) continue;
                list.push_back(s);
                costs.push_back(unary_[g][s]);
            }
            if (costs.empty())
                throw error(error_code::unsatisfiable_constraint, "variable " + std::to_string(g),
                            "no strategy satisfies its constraints", "");
            out_.graph.add_variable(std::move(costs));
        }
    }

    template <class Cost>
    void add_edge(std::uint32_t row, std::uint32_t col, Cost cost) {
        auto const &rows = out_.strategy[row], &cols = out_.strategy[col];
        cost_table t{static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(cols.size()), {}};
        t.values.reserve(rows.size() * cols.size());
        for (auto r : rows)
            for (auto c : cols) t.values.push_back(cost(r, c));
        out_.graph.add_edge(variable_id(row), variable_id(col), std::move(t));
    }

    void add_edges() {
        for (auto const& [key, times] : edges_) {
            auto const& kind = std::get<2>(key);
            auto const& [tensor, producer_table, output, consumer_table, arg, no_comm] = kind;
            auto const& r = redist_.at(tensor);
            std::vector<std::size_t> from, to;  // columns and rows of the price table, found once per strategy
            std::vector<int> from_spec, to_spec;
            for (auto const& s : spec_out_[producer_table]) {
                from_spec.push_back(s[output]);
                auto const it = r.src.find(s[output]);
                from.push_back(it == r.src.end() ? 0 : it->second);
            }
            for (auto const& s : spec_in_[consumer_table]) {
                to_spec.push_back(s[arg]);
                auto const it = r.dst.find(s[arg]);
                to.push_back(it == r.dst.end() ? 0 : it->second);
            }
            double const factor = times;
            bool const quiet = no_comm;
            add_edge(std::get<0>(key), std::get<1>(key), [&, factor, quiet](std::uint32_t consumer, std::uint32_t producer) {
                double const c = r.cost[to[consumer]][from[producer]];
                if (c == forbidden || (quiet && c > 0)) return forbidden;
                return factor * (c + (from_spec[producer] != to_spec[consumer] ? 1.0 : 0.0));
            });
        }
        for (auto const& p : d_.at("constraints").at("paired")) {
            auto const a = p.at("a").get<std::size_t>(), b = p.at("b").get<std::size_t>();
            std::vector<std::vector<char>> in(strategies(a), std::vector<char>(strategies(b), 0));
            for (auto const& s : p.at("pairs")) in[s[0].get<std::size_t>()][s[1].get<std::size_t>()] = 1;
            auto const va = out_.variable_of[a], vb = out_.variable_of[b];
            if (va != vb)  // inside a group it has restricted the labels
                add_edge(va, vb, [&](std::uint32_t x, std::uint32_t y) { return in[x][y] ? 0.0 : forbidden; });
        }
    }
};

}  // namespace detail

/// Throws wrong_format, bad_field or unsatisfiable_constraint.
inline ap_instance read_ap_instance(nlohmann::json const& d) { return detail::ap_reader(d).read(); }

}  // namespace cantle::mrf
