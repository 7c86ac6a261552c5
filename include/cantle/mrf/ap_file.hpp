// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a file of the format "ap-instance-1" says, as plain values: placement-selection problems as Meta AutoParallel builds them, with
// stored solutions. Every index is checked here and every fault names its place, so that ap_instance.hpp can build without looking.
// Needs nlohmann-json. Compressed files are decompressed by their reader.
#include <cantle/base/json_fields.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// A solution stored with an instance.
struct ap_reference {
    std::string name;
    double objective = 0;                   ///< microseconds
    std::vector<std::uint32_t> strategies;  ///< per node; empty when none is stored
};

struct ap_file {
    static constexpr std::int32_t no_spec = -1;

    struct edge {
        std::uint32_t tensor = 0, output = 0;      ///< key into `moves`; which output of the producer
        bool least_of_all = false, no_cost = false;  ///< "free": the least cost over the producer's strategies; "nocost"
    };
    struct node {
        std::string name;
        std::uint32_t root = 0, table = 0, compute = 0;
        std::vector<std::uint32_t> producers;  ///< one per argument
        std::vector<edge> edges;               ///< likewise
    };
    /// [strategy][output] and [strategy][argument] -> spec.
    struct strategy_table {
        std::vector<std::vector<std::int32_t>> outputs, arguments;
    };
    /// Cost of moving one tensor, [to][from]; where the spec stands.
    struct move_table {
        std::map<std::int32_t, std::size_t> from, to;
        std::vector<std::vector<double>> cost;
    };
    struct fixed_node {
        std::uint32_t node;
        std::vector<std::uint32_t> strategies;
    };
    struct paired_nodes {
        std::uint32_t a, b;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> allowed;
    };

    std::vector<std::string> specs;
    std::vector<node> nodes;
    std::vector<strategy_table> tables;
    std::vector<std::vector<double>> compute;
    std::map<std::uint32_t, move_table> moves;
    std::vector<fixed_node> fixed;
    std::vector<paired_nodes> paired;
    std::vector<std::uint32_t> quiet_roots;                       ///< "nocomm": no argument of such a node may be moved at a cost
    std::vector<std::pair<std::uint32_t, std::vector<double>>> ratios;  ///< "memory": parameter, local/global size per strategy
    double least_memory = 0, most_memory = 0;                     ///< limits of the sum of ratios
    std::vector<std::vector<std::uint32_t>> same_index;
    std::vector<ap_reference> references;

    std::size_t strategy_count(std::size_t v) const { return tables[nodes[v].table].outputs.size(); }
};

namespace detail {

class ap_file_reader : cantle::detail::json_fields {
public:
    explicit ap_file_reader(std::string_view source) : json_fields(source, "; the format is described in ap-instance-1's README") {}

    ap_file read(std::string_view text) {
        auto const d = parse(text);
        if (!d.is_object() || !d.contains("format") || d["format"] != "ap-instance-1")
            throw error(error_code::wrong_format, source_, "\"format\" is not \"ap-instance-1\"", "give an instance of that format");
        for (auto const& s : array(required(d, "specs"), "specs")) out_.specs.push_back(this->text(s, "specs"));
        read_tables(d);
        read_nodes(d);
        read_constraints(required(d, "constraints"));
        if (d.contains("reference")) read_references(d["reference"]);
        return std::move(out_);
    }

private:
    ap_file out_;

    double number(json const& j, std::string_view field) const {
        if (!j.is_number()) fail(field, "is no number: " + shown(j));
        auto const x = j.get<double>();
        if (!std::isfinite(x)) fail(field, "is not finite");
        return x;
    }
    std::uint32_t index(json const& j, std::string_view field, std::size_t count) const {
        if (!j.is_number_integer() || j < 0 || j >= count)
            fail(field, "is " + shown(j) + ", and there are " + std::to_string(count) + " (counted from 0)");
        return j.get<std::uint32_t>();
    }
    std::vector<std::uint32_t> indices(json const& list, std::string_view field, std::size_t count) const {
        std::vector<std::uint32_t> all;
        for (auto const& x : array(list, field)) all.push_back(index(x, field, count));
        return all;
    }
    std::vector<std::vector<std::int32_t>> spec_rows(json const& list, std::string_view field) const {
        std::vector<std::vector<std::int32_t>> rows;
        for (auto const& row : array(list, field)) {
            auto& r = rows.emplace_back();
            for (auto const& x : array(row, field))
                r.push_back(x.is_null() ? ap_file::no_spec : static_cast<std::int32_t>(index(x, field, out_.specs.size())));
        }
        return rows;
    }
    void place(char const* list, std::size_t i) { place_ = std::string(list) + "[" + std::to_string(i) + "]"; }

    void read_tables(json const& d) {
        for (auto const& t : array(required(d, "strategy_tables"), "strategy_tables")) {
            place("strategy_tables", out_.tables.size());
            ap_file::strategy_table table{spec_rows(required(t, "out"), "out"), spec_rows(required(t, "in"), "in")};
            if (table.outputs.empty()) fail("out", "lists no strategy");
            if (table.arguments.size() != table.outputs.size()) fail("in", "has another number of strategies than out");
            out_.tables.push_back(std::move(table));
        }
        for (auto const& c : array(required(d, "compute_vectors"), "compute_vectors")) {
            place("compute_vectors", out_.compute.size());
            auto& costs = out_.compute.emplace_back();
            for (auto const& x : array(c, "compute_vectors")) costs.push_back(number(x, "entry " + std::to_string(costs.size())));
        }
        place_.clear();
        auto const& moves = required(d, "redist");
        if (!moves.is_object()) fail("redist", "is no object");
        for (auto const& [key, t] : moves.items()) {
            place_ = "redist['" + key + "']";
            if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != std::string::npos) fail("key", "is no tensor id");
            read_moves(t, out_.moves[static_cast<std::uint32_t>(std::stoul(key))]);
        }
        place_.clear();
    }
    void read_moves(json const& t, ap_file::move_table& r) const {
        for (auto s : indices(required(t, "src"), "src", out_.specs.size())) r.from.emplace(static_cast<std::int32_t>(s), r.from.size());
        for (auto s : indices(required(t, "dst"), "dst", out_.specs.size())) r.to.emplace(static_cast<std::int32_t>(s), r.to.size());
        for (auto const& row : array(required(t, "cost"), "cost")) {
            auto& costs = r.cost.emplace_back();
            for (auto const& c : array(row, "cost"))
                costs.push_back(c.is_null()
                                    ? forbidden
                                    : number(c, "cost[" + std::to_string(r.cost.size() - 1) + "][" + std::to_string(costs.size()) + "]"));
            if (costs.size() != r.from.size()) fail("cost", "row " + std::to_string(r.cost.size() - 1) + " has another length than src");
        }
        if (r.cost.size() != r.to.size()) fail("cost", "has another number of rows than dst");
    }
    void read_nodes(json const& d) {
        auto const& nodes = array(required(d, "nodes"), "nodes");
        for (auto const& j : nodes) {
            place("nodes", out_.nodes.size());
            ap_file::node n;
            n.name = text(required(j, "name"), "name");
            place_ += " '" + n.name + "'";
            n.root = index(required(j, "root"), "root", nodes.size());
            n.table = index(required(j, "strat"), "strat", out_.tables.size());
            n.compute = index(required(j, "compute"), "compute", out_.compute.size());
            auto const& table = out_.tables[n.table];
            if (out_.compute[n.compute].size() < table.outputs.size()) fail("compute", "has fewer costs than the node has strategies");
            n.producers = indices(required(j, "args"), "args", out_.nodes.size());
            auto const& edges = array(required(j, "edges"), "edges");
            if (edges.size() != n.producers.size()) fail("edges", "has another length than args");
            for (std::size_t i = 0; i < edges.size(); ++i) n.edges.push_back(read_edge(edges[i], n, i));
            out_.nodes.push_back(std::move(n));
        }
        for (std::size_t v = 0; v < out_.nodes.size(); ++v)
            if (out_.strategy_count(v) != out_.strategy_count(out_.nodes[v].root)) {
                place("nodes", v);
                fail("root", "has another number of strategies");
            }
        place_.clear();
    }
    ap_file::edge read_edge(json const& j, ap_file::node const& n, std::size_t i) const {
        auto const field = "edges[" + std::to_string(i) + "]";
        ap_file::edge e;
        auto const set = [&](char const* key) {  // as in Python: 0, false and null are as if it were not there
            if (!j.contains(key)) return false;
            auto const& x = j[key];
            if (x.is_boolean()) return x.get<bool>();
            if (x.is_number()) return x.get<double>() != 0;
            if (!x.is_null()) fail(key, "is neither a number nor true or false: " + shown(x));
            return false;
        };
        e.no_cost = set("nocost");
        e.least_of_all = set("free");
        if (e.no_cost) return e;
        auto const& t = required(j, "t");
        if (!t.is_number_integer() || t < 0 || !out_.moves.contains(t.get<std::uint32_t>()))
            fail(field + ".t", "is no key of redist: " + shown(t));
        e.tensor = t.get<std::uint32_t>();
        for (auto const& s : out_.tables[out_.nodes[n.producers[i]].table].outputs)
            e.output = index(required(j, "out"), field + ".out", s.size());
        for (auto const& s : out_.tables[n.table].arguments)
            if (i >= s.size()) fail(field, "has no place in the strategies' arguments");
        return e;
    }
    void read_constraints(json const& c) {
        place_ = "constraints";
        if (!c.is_object()) fail("constraints", "is no object: " + shown(c));
        auto const count = out_.nodes.size();
        auto const optional_list = [&](char const* field) -> json {
            return c.contains(field) ? json(array(c[field], field)) : json::array();
        };
        for (auto const& f : optional_list("fixed")) {
            if (!f.is_array() || f.size() != 2) fail("fixed", "has an entry that is no pair: " + shown(f));
            auto const v = index(f[0], "fixed", count);
            out_.fixed.push_back({v, indices(f[1], "fixed", out_.strategy_count(v))});
        }
        for (auto const& p : optional_list("paired")) {
            ap_file::paired_nodes pair{index(required(p, "a"), "paired.a", count), index(required(p, "b"), "paired.b", count), {}};
            for (auto const& s : array(required(p, "pairs"), "paired.pairs")) {
                if (!s.is_array() || s.size() != 2) fail("paired.pairs", "has an entry that is no pair: " + shown(s));
                pair.allowed.emplace_back(index(s[0], "paired.pairs", out_.strategy_count(pair.a)),
                                          index(s[1], "paired.pairs", out_.strategy_count(pair.b)));
            }
            out_.paired.push_back(std::move(pair));
        }
        out_.quiet_roots = indices(optional_list("nocomm"), "nocomm", count);
        for (auto const& g : optional_list("same_index")) {
            out_.same_index.push_back(indices(g, "same_index", count));
            for (auto v : out_.same_index.back())
                if (out_.strategy_count(v) != out_.strategy_count(out_.same_index.back()[0]))
                    fail("same_index", "joins nodes " + std::to_string(out_.same_index.back()[0]) + " and " + std::to_string(v) +
                                           ", which have different numbers of strategies");
        }
        if (c.contains("memory")) read_memory(c["memory"]);
        place_.clear();
    }
    void read_memory(json const& m) {
        auto const parameters = indices(required(m, "params"), "memory.params", out_.nodes.size());
        auto const& ratios = array(required(m, "ratios"), "memory.ratios");
        if (ratios.size() != parameters.size()) fail("memory.ratios", "has another length than params");
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            auto& [v, list] = out_.ratios.emplace_back(parameters[i], std::vector<double>());
            for (auto const& x : array(ratios[i], "memory.ratios")) list.push_back(number(x, "memory.ratios"));
            if (list.size() != out_.strategy_count(v)) fail("memory.ratios", "entry " + std::to_string(i) + " is not one per strategy");
        }
        out_.most_memory = number(required(m, "high"), "memory.high");
        if (m.contains("low")) out_.least_memory = number(m["low"], "memory.low");
        if (out_.least_memory > out_.most_memory) fail("memory.low", "is above memory.high");
    }
    void read_references(json const& all) {
        if (!all.is_object()) fail("reference", "is no object");
        for (auto const& [name, r] : all.items()) {
            place_ = "reference '" + name + "'";
            ap_reference ref{name, number(required(r, "objective"), "objective"), {}};
            if (r.contains("solution")) {
                auto const& list = array(r["solution"], "solution");
                if (list.size() != out_.nodes.size()) fail("solution", "is not one strategy per node");
                for (std::size_t v = 0; v < list.size(); ++v) ref.strategies.push_back(index(list[v], "solution", out_.strategy_count(v)));
            }
            out_.references.push_back(std::move(ref));
        }
        place_.clear();
    }
};

}  // namespace detail

/// Reads the text of an instance; `source` names it in errors. Throws broken_json (with the byte), wrong_format, bad_field (with the
/// place).
inline ap_file read_ap_file(std::string_view text, std::string_view source = "instance") {
    return detail::ap_file_reader(source).read(text);
}

}  // namespace cantle::mrf
