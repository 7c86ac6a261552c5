// SPDX-License-Identifier: BSL-1.0
#pragma once
// A factor graph as a file, for `cantle solve` and for problems that have nothing to do with sharding:
//
//     {"format":"cantle-factor-graph","version":1,
//      "variables":[{"name":"x","costs":[1.0,0.5]},{"name":"y","costs":[0.0,2.0,1.0]}],
//      "tables":[{"rows":2,"cols":3,"costs":[0.0,1.0,null, 1.0,0.0,2.5]}],
//      "edges":[{"u":0,"v":1,"table":0}]}
//
// Costs are finite numbers, row-major; null in a table forbids the pair. An edge reads its table with rows as labels of u, or, with
// "transposed":true, of v. Names are optional. Needs nlohmann-json.
#include <cantle/base/json_fields.hpp>
#include <cantle/base/json_text.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// A factor graph and what its variables are called ("" where they have no name).
struct named_factor_graph {
    factor_graph graph;
    std::vector<std::string> names;
};

namespace detail {

class factor_graph_reader : cantle::detail::json_fields {
public:
    explicit factor_graph_reader(std::string_view source)
        : json_fields(source, "; include/cantle/mrf/factor_graph_json.hpp has the format") {}

    named_factor_graph read(std::string_view text) {
        auto const d = parse_format(text, "cantle-factor-graph", "factor graph", "factor_graph_to_json");
        only_fields(d, {"format", "version", "variables", "tables", "edges"});
        named_factor_graph out;
        for (auto const& v : array(required(d, "variables"), "variables")) {
            place("variables", out.names.size());
            object(v, "variable", {"name", "costs"});
            out.names.push_back(v.contains("name") ? this->text(v["name"], "name") : std::string());
            std::vector<double> costs;
            for (auto const& c : array(required(v, "costs"), "costs")) costs.push_back(number(c, costs.size()));
            if (costs.empty()) fail("costs", "is empty", "give every variable at least one label");
            out.graph.add_variable(std::move(costs));
        }
        std::vector<table_id> tables;
        for (auto const& t : array(required(d, "tables"), "tables")) {
            place("tables", tables.size());
            object(t, "table", {"rows", "cols", "costs"});
            cost_table table;
            table.rows = static_cast<std::uint32_t>(integer(required(t, "rows"), "rows", 1, 1 << 24));
            table.cols = static_cast<std::uint32_t>(integer(required(t, "cols"), "cols", 1, 1 << 24));
            for (auto const& c : array(required(t, "costs"), "costs"))
                table.values.push_back(c.is_null() ? forbidden : number(c, table.values.size()));
            if (table.values.size() != std::size_t{table.rows} * table.cols)
                fail("costs", "has " + std::to_string(table.values.size()) + " entries, not rows x cols");
            tables.push_back(out.graph.add_table(std::move(table)));
        }
        std::size_t n = 0;
        auto const variables = static_cast<std::int64_t>(out.graph.variable_count());
        for (auto const& e : array(required(d, "edges"), "edges")) {
            place("edges", n++);
            object(e, "edge", {"u", "v", "table", "transposed"});
            variable_id const u(static_cast<std::uint32_t>(integer(required(e, "u"), "u", 0, variables - 1)));
            variable_id const v(static_cast<std::uint32_t>(integer(required(e, "v"), "v", 0, variables - 1)));
            auto const t =
                tables[static_cast<std::size_t>(integer(required(e, "table"), "table", 0, static_cast<std::int64_t>(tables.size()) - 1))];
            bool transposed = false;
            if (e.contains("transposed")) {
                if (!e["transposed"].is_boolean()) fail("transposed", "is neither true nor false: " + shown(e["transposed"]));
                transposed = e["transposed"].get<bool>();
            }
            if (u == v) fail("v", "is the same variable as u", "add the diagonal to its costs");
            auto const& table = out.graph.table(t);
            if (out.graph.label_count(transposed ? v : u) != table.rows || out.graph.label_count(transposed ? u : v) != table.cols)
                fail("table", "is " + std::to_string(table.rows) + " x " + std::to_string(table.cols) + ", the variables have " +
                                  std::to_string(out.graph.label_count(u)) + " and " + std::to_string(out.graph.label_count(v)) +
                                  " labels");
            out.graph.add_edge(u, v, t, transposed ? table_use::transposed : table_use::straight);
        }
        return out;
    }

private:
    void place(char const* list, std::size_t i) { place_ = std::string(list) + "[" + std::to_string(i) + "]"; }
    double number(json const& j, std::size_t at) const {
        auto const field = "costs[" + std::to_string(at) + "]";
        if (!j.is_number()) fail(field, "is no number: " + shown(j));
        auto const x = j.get<double>();
        if (!std::isfinite(x)) fail(field, "is not finite", "write null in a table for a forbidden pair");
        return x;
    }
};

class factor_graph_writer : cantle::detail::json_text {
public:
    std::string write(factor_graph const& g, std::vector<std::string> const& names) {
        out_ = "{\"format\":\"cantle-factor-graph\",\"version\":1,\n\"variables\":[";
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
            out_ += v ? ",\n{" : "\n{";
            if (v < names.size() && !names[v].empty()) out_ += "\"name\":" + nlohmann::json(names[v]).dump() + ",";
            out_ += "\"costs\":";
            list(g.costs(variable_id(v)), [&](double c) { real(c); });
            out_ += '}';
        }
        out_ += "],\n\"tables\":[";
        for (std::uint32_t t = 0; t < g.table_count(); ++t) {
            auto const& table = g.table(table_id(t));
            out_ += (t ? ",\n{\"rows\":" : "\n{\"rows\":") + std::to_string(table.rows) + ",\"cols\":" + std::to_string(table.cols) +
                    ",\"costs\":";
            list(table.values, [&](double c) { c == forbidden ? void(out_ += "null") : real(c); });
            out_ += '}';
        }
        out_ += "],\n\"edges\":[";
        for (std::uint32_t e = 0; e < g.edge_count(); ++e) {
            auto const& edge = g.edge(edge_id(e));
            out_ += (e ? ",\n{\"u\":" : "\n{\"u\":") + std::to_string(edge.u.value) + ",\"v\":" + std::to_string(edge.v.value) +
                    ",\"table\":" + std::to_string(edge.table.value) + (edge.use == table_use::transposed ? ",\"transposed\":true}" : "}");
        }
        out_ += "]}\n";
        return std::move(out_);
    }
};

}  // namespace detail

/// Throws broken_json, wrong_format or bad_field with the place.
inline named_factor_graph factor_graph_from_json(std::string_view text, std::string_view source = "factor graph") {
    return detail::factor_graph_reader(source).read(text);
}
/// Reads back to the same graph, bit by bit. `names`: one per variable, or none.
inline std::string factor_graph_to_json(factor_graph const& g, std::vector<std::string> const& names = {}) {
    return detail::factor_graph_writer().write(g, names);
}

}  // namespace cantle::mrf
