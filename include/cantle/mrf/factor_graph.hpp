// SPDX-License-Identifier: BSL-1.0
#pragma once
// A pairwise Markov random field, the form in which every planning problem reaches a solver. Variables have labels 0..L-1 with a finite
// cost each; an edge couples two variables by a dense table of costs. A forbidden pair is the value `forbidden` (+infinity) in a table and
// nowhere else: no large number stands for "no", and no solver adds one. Costs are microseconds, but nothing here depends on the unit.
//
//      minimise  E(x) = sum_v theta_v(x_v) + sum_(u,v) theta_uv(x_u, x_v)
//
// Tables are interned: equal tables are stored once however many edges use them, as rows x cols or transposed. The graph is a model of
// boost::VertexListGraph and boost::EdgeListGraph (end of the file).
#include <boost/graph/graph_traits.hpp>

#include <cantle/base/error.hpp>
#include <cantle/base/strong_id.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

using label = std::uint32_t;                       ///< index into the labels of one variable
using variable_id = strong_id<struct variable_tag>;
using edge_id = strong_id<struct edge_tag>;
using table_id = strong_id<struct table_tag>;

/// The cost of a pair of labels that must not occur together. Legal inside tables only.
inline constexpr double forbidden = std::numeric_limits<double>::infinity();

/// Costs of all label pairs, row-major. An entry is finite or `forbidden`.
struct cost_table {
    std::uint32_t rows = 0, cols = 0;
    std::vector<double> values;

    double operator()(label r, label c) const { return values[std::size_t{r} * cols + c]; }
    bool operator==(cost_table const&) const = default;
};

/// How an edge (u, v) reads its table: `straight` rows are labels of u, `transposed` rows are labels of v.
enum class table_use : std::uint8_t { straight, transposed };

/// An edge between two different variables.
struct pairwise_edge {
    variable_id u, v;
    table_id table;
    table_use use = table_use::straight;
};

/// Variables, edges and interned tables. Ids are 0-based in order of addition; nothing is ever removed.
class factor_graph {
public:
    /// Adds a variable with one label per entry of `costs`.
    /// Throws bad_field when there is no label or a cost is not finite (a forbidden label is one that is left out).
    variable_id add_variable(std::vector<double> costs) {
        if (costs.empty()) throw error(error_code::bad_field, name_of_next(), "no labels", "give every variable at least one label");
        for (double c : costs)
            if (!std::isfinite(c))
                throw error(error_code::bad_field, name_of_next(), "a label cost is not finite", "leave forbidden labels out");
        unary_.push_back(std::move(costs));
        incident_.emplace_back();
        return variable_id(static_cast<std::uint32_t>(unary_.size() - 1));
    }

    /// Stores a table, or finds an equal one. Throws bad_field on a wrong number of values, an empty side, NaN or -infinity.
    table_id add_table(cost_table table) {
        check(table);
        auto const key = content_hash(table);
        for (auto [it, end] = by_content_.equal_range(key); it != end; ++it)
            if (*tables_[it->second] == table) return table_id(it->second);
        return store(std::make_shared<cost_table const>(std::move(table)), key);
    }

    /// The same for a table that is shared already: found by content, kept without a copy.
    table_id add_table(std::shared_ptr<cost_table const> table) {
        check(*table);
        auto const key = content_hash(*table);
        for (auto [it, end] = by_content_.equal_range(key); it != end; ++it)
            if (tables_[it->second] == table || *tables_[it->second] == *table) return table_id(it->second);
        return store(std::move(table), key);
    }

    /// Adds an edge; several edges between two variables add up.
    /// Throws bad_field when u == v, an id is unknown, or the table's sides are not the label counts of u and v.
    edge_id add_edge(variable_id u, variable_id v, table_id table, table_use use = table_use::straight) {
        if (u.value >= unary_.size() || v.value >= unary_.size() || table.value >= tables_.size())
            throw error(error_code::bad_field, name_of_edge(u, v), "unknown variable or table", "add both before the edge");
        if (u == v)
            throw error(error_code::bad_field, name_of_edge(u, v), "both ends are one variable", "add the diagonal to its label costs");
        auto const& t = *tables_[table.value];
        auto const [rows, cols] = use == table_use::straight ? std::pair{u, v} : std::pair{v, u};
        if (t.rows != label_count(rows) || t.cols != label_count(cols))
            throw error(error_code::bad_field, name_of_edge(u, v), "table sides differ from the label counts", "");
        edge_id const id(static_cast<std::uint32_t>(edges_.size()));
        edges_.push_back({u, v, table, use});
        incident_[u.value].push_back(id);
        incident_[v.value].push_back(id);
        return id;
    }
    /// add_table and add_edge in one.
    edge_id add_edge(variable_id u, variable_id v, cost_table table) { return add_edge(u, v, add_table(std::move(table))); }

    std::size_t variable_count() const { return unary_.size(); }
    std::size_t edge_count() const { return edges_.size(); }
    std::size_t table_count() const { return tables_.size(); }
    label label_count(variable_id v) const { return static_cast<label>(unary_[v.value].size()); }

    std::span<double const> costs(variable_id v) const { return unary_[v.value]; }
    pairwise_edge const& edge(edge_id e) const { return edges_[e.value]; }
    std::span<pairwise_edge const> edges() const { return edges_; }
    std::span<edge_id const> incident(variable_id v) const { return incident_[v.value]; }
    cost_table const& table(table_id t) const { return *tables_[t.value]; }
    std::shared_ptr<cost_table const> const& shared_table(table_id t) const { return tables_[t.value]; }

    /// Cost of edge e when its u has label `of_u` and its v has label `of_v`.
    double pair_cost(pairwise_edge const& e, label of_u, label of_v) const {
        auto const& t = *tables_[e.table.value];
        return e.use == table_use::straight ? t(of_u, of_v) : t(of_v, of_u);
    }

private:
    std::vector<std::vector<double>> unary_;
    std::vector<std::vector<edge_id>> incident_;
    std::vector<pairwise_edge> edges_;
    std::vector<std::shared_ptr<cost_table const>> tables_;
    std::multimap<std::uint64_t, std::uint32_t> by_content_;

    table_id store(std::shared_ptr<cost_table const> table, std::uint64_t key) {
        tables_.push_back(std::move(table));
        auto const id = static_cast<std::uint32_t>(tables_.size() - 1);
        by_content_.emplace(key, id);
        return table_id(id);
    }
    static void check(cost_table const& t) {
        auto const bad = [](char const* what) { return error(error_code::bad_field, "cost table", what, ""); };
        if (t.rows == 0 || t.cols == 0 || t.values.size() != std::size_t{t.rows} * t.cols) throw bad("number of values is not rows x cols");
        for (double c : t.values)
            if (!(c > -forbidden)) throw bad("an entry is NaN or -infinity");
    }
    // Four independent lanes: one multiply per value and no chain between neighbours, since large tables are hashed whole.
    static std::uint64_t content_hash(cost_table const& t) {
        std::uint64_t lane[4] = {t.rows, t.cols, 0x9e3779b97f4a7c15ULL, 0xc2b2ae3d27d4eb4fULL};
        for (std::size_t i = 0; i < t.values.size(); ++i)
            lane[i & 3] = (std::rotl(lane[i & 3], 27) ^ std::bit_cast<std::uint64_t>(t.values[i])) * 0x9e3779b97f4a7c15ULL;
        return lane[0] ^ std::rotl(lane[1], 16) ^ std::rotl(lane[2], 32) ^ std::rotl(lane[3], 48);
    }
    std::string name_of_next() const { return "variable " + std::to_string(unary_.size()); }
    static std::string name_of_edge(variable_id u, variable_id v) {
        return "edge " + std::to_string(u.value) + "-" + std::to_string(v.value);
    }
};

// Boost.Graph by argument-dependent lookup.

struct factor_graph_category : boost::vertex_list_graph_tag, boost::edge_list_graph_tag {};

namespace detail {
/// Counts through strong ids.
template <class Id>
class id_iterator {
public:
    using value_type = Id;
    using reference = Id;
    using pointer = void;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    id_iterator() = default;
    explicit id_iterator(std::size_t i) : i_(static_cast<std::uint32_t>(i)) {}
    Id operator*() const { return Id(i_); }
    id_iterator& operator++() { ++i_; return *this; }
    id_iterator operator++(int) { auto old = *this; ++i_; return old; }
    bool operator==(id_iterator const&) const = default;

private:
    std::uint32_t i_ = 0;
};
}  // namespace detail

inline std::size_t num_vertices(factor_graph const& g) { return g.variable_count(); }
inline std::size_t num_edges(factor_graph const& g) { return g.edge_count(); }
inline auto vertices(factor_graph const& g) {
    return std::pair{detail::id_iterator<variable_id>(0), detail::id_iterator<variable_id>(g.variable_count())};
}
inline auto edges(factor_graph const& g) {
    return std::pair{detail::id_iterator<edge_id>(0), detail::id_iterator<edge_id>(g.edge_count())};
}
inline variable_id source(edge_id e, factor_graph const& g) { return g.edge(e).u; }
inline variable_id target(edge_id e, factor_graph const& g) { return g.edge(e).v; }

}  // namespace cantle::mrf

template <>
struct boost::graph_traits<cantle::mrf::factor_graph> {
    using vertex_descriptor = cantle::mrf::variable_id;
    using edge_descriptor = cantle::mrf::edge_id;
    using directed_category = boost::undirected_tag;
    using edge_parallel_category = boost::allow_parallel_edge_tag;
    using traversal_category = cantle::mrf::factor_graph_category;
    using vertex_iterator = cantle::mrf::detail::id_iterator<vertex_descriptor>;
    using edge_iterator = cantle::mrf::detail::id_iterator<edge_descriptor>;
    using vertices_size_type = std::size_t;
    using edges_size_type = std::size_t;
    using degree_size_type = std::size_t;
};
