// SPDX-License-Identifier: BSL-1.0
#pragma once
// How a graph of one's own reaches a solver. Any graph that models Boost's VertexListGraph and EdgeListGraph states a problem
//
//      minimise  E(x) = sum_v theta_v(x_v) + sum_e theta_e(x_source(e), x_target(e))
//
// together with property maps, as every algorithm of Boost.Graph takes its weights:
//
//      unary       vertex -> contiguous range of double: the finite cost of each label of that vertex, at least one
//      potential   edge -> a Potential (potential.hpp): rows are labels of source(e, g), columns of target(e, g)
//      index       vertex -> 0 .. num_vertices(g) - 1; by default get(boost::vertex_index, g)
//
// A map is read by get(map, key), and by map[key] where there is no get. Directions mean nothing beyond which end has the rows; parallel
// edges add up; an edge from a vertex to itself is an error. Message passing is quickest to converge where the index is a topological or
// otherwise local order (trws.hpp).
//
// pairwise_problem reads all of that once: label costs into one array, potentials by value (so let a large potential share its data, as
// dense_potential does). Solvers then see plain numbers: variables by index, edges by their place along edges(g). They are templates
// over the concept PairwiseProblem, which factor_graph models too without being copied.
#include <cantle/base/error.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/potential.hpp>

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// What a problem's edges hold, and the potential of one of them.
inline dense_potential potential_of(factor_graph const& g, pairwise_edge const& e) { return dense_potential(g.table(e.table), e.use); }

/// Satisfied by factor_graph and pairwise_problem<P>: counts, costs(v), edges(), edge(e), incident(v), pair_cost(e, of_u, of_v), and
/// potential_of(g, e).
template <class G>
concept PairwiseProblem = requires(G const& g, variable_id v, edge_id e, label l) {
    { g.variable_count() } -> std::convertible_to<std::size_t>;
    { g.edge_count() } -> std::convertible_to<std::size_t>;
    { g.label_count(v) } -> std::convertible_to<label>;
    { g.costs(v) } -> std::convertible_to<std::span<double const>>;
    { g.incident(v) } -> std::convertible_to<std::span<edge_id const>>;
    { g.edge(e).u } -> std::convertible_to<variable_id>;
    { g.edge(e).v } -> std::convertible_to<variable_id>;
    { g.pair_cost(g.edge(e), l, l) } -> std::convertible_to<double>;
    { potential_of(g, g.edge(e)) } -> Potential;
    g.edges();
};

/// The potential that an edge of problem G has.
template <PairwiseProblem G>
using potential_type = std::remove_cvref_t<decltype(potential_of(std::declval<G const&>(), std::declval<G const&>().edge(edge_id())))>;

template <class G>
using edge_descriptor_of = typename boost::graph_traits<G>::edge_descriptor;

namespace detail {
template <class Map, class Key>
decltype(auto) read(Map const& map, Key const& key) {
    if constexpr (requires { get(map, key); }) return get(map, key);
    else return map[key];
}
/// edges(g), from where a member of that name would hide it.
template <class G>
auto all_edges(G const& g) { return edges(g); }
}  // namespace detail

/// Satisfied by a graph whose vertices(g), num_vertices(g), edges(g), source(e, g) and target(e, g) are those of Boost's concepts.
template <class G>
concept ListsVerticesAndEdges = requires(G const& g, edge_descriptor_of<G> e) {
    typename boost::graph_traits<G>::vertex_descriptor;
    { vertices(g).first == vertices(g).second } -> std::convertible_to<bool>;
    { num_vertices(g) } -> std::convertible_to<std::size_t>;
    { edges(g).first == edges(g).second } -> std::convertible_to<bool>;
    { source(e, g) } -> std::convertible_to<typename boost::graph_traits<G>::vertex_descriptor>;
    { target(e, g) } -> std::convertible_to<typename boost::graph_traits<G>::vertex_descriptor>;
};
/// Satisfied by a readable map from the vertices of G to something with data() and size(), a range of double.
template <class M, class G>
concept UnaryMap = requires(M const& m, typename boost::graph_traits<G>::vertex_descriptor v) {
    std::span<double const>(detail::read(m, v));
};
/// Satisfied by a readable map from the edges of G, to a Potential as pairwise_problem checks.
template <class M, class G>
concept PotentialMap = requires(M const& m, edge_descriptor_of<G> e) { detail::read(m, e); };
/// Satisfied by a readable map from the vertices of G to 0 .. num_vertices - 1.
template <class M, class G>
concept VertexIndexMap = requires(M const& m, typename boost::graph_traits<G>::vertex_descriptor v) {
    { detail::read(m, v) } -> std::convertible_to<std::size_t>;
};

// The maps that a factor_graph has of itself, for algorithms that take a graph and maps.
struct vertex_costs_t {};
struct edge_potential_t {};
inline constexpr vertex_costs_t vertex_costs{};
inline constexpr edge_potential_t edge_potential{};

namespace detail {
template <class Tag>
struct factor_graph_map {
    factor_graph const* g;
};
inline std::span<double const> get(factor_graph_map<vertex_costs_t> m, variable_id v) { return m.g->costs(v); }
inline dense_potential get(factor_graph_map<edge_potential_t> m, edge_id e) { return potential_of(*m.g, m.g->edge(e)); }
inline std::size_t get(factor_graph_map<boost::vertex_index_t>, variable_id v) { return v.value; }
}  // namespace detail
template <class Tag>
detail::factor_graph_map<Tag> get(Tag, factor_graph const& g) { return {&g}; }

/// Called at a public door: one clear sentence per missing part.
template <class G, class Unary, class Potentials>
constexpr void require_problem() {
    static_assert(ListsVerticesAndEdges<G>,
                  "a problem needs vertices(g), num_vertices(g), edges(g), source(e, g) and target(e, g), as Boost's graph concepts");
    static_assert(UnaryMap<Unary, G>, "a problem needs get(unary, vertex): the costs of its labels, a contiguous range of double");
    static_assert(PotentialMap<Potentials, G>, "a problem needs get(potential, edge): a cantle::mrf::Potential");
}

/// The index map that a graph has of itself.
template <class G>
auto default_index(G const& g) {
    return get(boost::vertex_index, g);
}

namespace detail {
template <class G, class Potentials>
using potential_in = std::remove_cvref_t<decltype(read(std::declval<Potentials const&>(), std::declval<edge_descriptor_of<G> const&>()))>;
}

/// A graph with its property maps, read once. Immutable. P: a Potential.
template <class P>
class pairwise_problem {
    static_assert(HasSides<P>, "a potential needs: std::size_t rows() const; and std::size_t cols() const;");
    static_assert(PricesLabelPairs<P>, "a potential needs: double operator()(cantle::mrf::label row, cantle::mrf::label col) const;");

public:
    struct edge_type {
        variable_id u, v;  ///< rows are labels of u, columns of v
        P potential;
    };

    /// Reads g through its maps. Throws bad_field where a vertex has no label or a cost that is not finite, an index is out of range or
    /// taken, an edge joins a vertex to itself or a potential's sides are not the label counts of its ends.
    template <class G, class Unary, class Potentials, class Index>
    pairwise_problem(G const& g, Unary const& unary, Potentials const& potential, Index const& index) {
        require_problem<G, Unary, Potentials>();
        static_assert(VertexIndexMap<Index, G>, "a problem needs get(index, vertex): a number below num_vertices(g)");
        std::vector<std::vector<double>> costs(num_vertices(g));
        auto const [first, last] = vertices(g);
        for (auto v = first; v != last; ++v) {
            auto const i = static_cast<std::size_t>(detail::read(index, *v));
            if (i >= costs.size() || !costs[i].empty())
                throw error(error_code::bad_field, "index " + std::to_string(i), "two vertices have it, or it is not below num_vertices",
                            "number the vertices from 0 on");
            auto&& range = detail::read(unary, *v);
            std::span<double const> const of_v(range);
            if (of_v.empty()) throw error(error_code::bad_field, name(i), "no labels", "give every vertex at least one label");
            costs[i].assign(of_v.begin(), of_v.end());
        }
        std::vector<edge_type> edges_of_g;
        auto const [begin, end] = detail::all_edges(g);
        for (auto e = begin; e != end; ++e)
            edges_of_g.push_back({at(detail::read(index, source(*e, g))), at(detail::read(index, target(*e, g))),
                                  P(detail::read(potential, *e))});
        take(costs, std::move(edges_of_g));
    }
    template <class G, class Unary, class Potentials>
    pairwise_problem(G const& g, Unary const& unary, Potentials const& potential)
        : pairwise_problem(g, unary, potential, default_index(g)) {}

    /// The same from plain lists: the costs of each variable, and edges. Throws bad_field likewise.
    pairwise_problem(std::vector<std::vector<double>> const& costs, std::vector<edge_type> edges) { take(costs, std::move(edges)); }

    std::size_t variable_count() const { return at_.size() - 1; }
    std::size_t edge_count() const { return edges_.size(); }
    label label_count(variable_id v) const { return static_cast<label>(at_[v.value + 1] - at_[v.value]); }
    std::span<double const> costs(variable_id v) const { return {unary_.data() + at_[v.value], at_[v.value + 1] - at_[v.value]}; }
    edge_type const& edge(edge_id e) const { return edges_[e.value]; }
    std::span<edge_type const> edges() const { return edges_; }
    /// Edges at v, in order.
    std::span<edge_id const> incident(variable_id v) const {
        return {incident_.data() + incident_at_[v.value], incident_at_[v.value + 1] - incident_at_[v.value]};
    }
    double pair_cost(edge_type const& e, label of_u, label of_v) const { return e.potential(of_u, of_v); }

private:
    std::vector<std::size_t> at_, incident_at_;
    std::vector<double> unary_;
    std::vector<edge_type> edges_;
    std::vector<edge_id> incident_;

    static std::string name(std::size_t v) { return "variable " + std::to_string(v); }
    template <class I>
    static variable_id at(I i) { return variable_id(static_cast<std::uint32_t>(i)); }

    void take(std::vector<std::vector<double>> const& costs, std::vector<edge_type> from) {
        edges_ = std::move(from);
        at_.assign(1, 0);
        for (std::size_t v = 0; v < costs.size(); ++v) {
            if (costs[v].empty()) throw error(error_code::bad_field, name(v), "no labels", "give every variable at least one label");
            for (double c : costs[v])
                if (!std::isfinite(c))
                    throw error(error_code::bad_field, name(v), "a label cost is not finite", "leave forbidden labels out");
            unary_.insert(unary_.end(), costs[v].begin(), costs[v].end());
            at_.push_back(unary_.size());
        }
        incident_at_.assign(costs.size() + 1, 0);
        for (std::size_t i = 0; i < edges_.size(); ++i) {
            auto const& e = edges_[i];
            auto const bad = [&](char const* what, char const* remedy) {
                return error(error_code::bad_field,
                             "edge " + std::to_string(i) + " (" + std::to_string(e.u.value) + "-" + std::to_string(e.v.value) + ")", what,
                             remedy);
            };
            if (e.u.value >= costs.size() || e.v.value >= costs.size()) throw bad("an end is unknown", "index all vertices");
            if (e.u == e.v) throw bad("both ends are one variable", "add the diagonal to its label costs");
            if (e.potential.rows() != label_count(e.u) || e.potential.cols() != label_count(e.v))
                throw bad("the potential's sides are not the label counts of its ends", "rows are labels of the source");
            ++incident_at_[e.u.value + 1];
            ++incident_at_[e.v.value + 1];
        }
        std::partial_sum(incident_at_.begin(), incident_at_.end(), incident_at_.begin());
        incident_.resize(2 * edges_.size());
        auto next = incident_at_;
        for (std::uint32_t i = 0; i < edges_.size(); ++i)
            for (auto v : {edges_[i].u, edges_[i].v}) incident_[next[v.value]++] = edge_id(i);
    }
};

template <class G, class Unary, class Potentials, class Index>
pairwise_problem(G const&, Unary const&, Potentials const&, Index const&) -> pairwise_problem<detail::potential_in<G, Potentials>>;
template <class G, class Unary, class Potentials>
pairwise_problem(G const&, Unary const&, Potentials const&) -> pairwise_problem<detail::potential_in<G, Potentials>>;

/// `e`: an edge of g.
template <Potential P>
P const& potential_of(pairwise_problem<P> const&, typename pairwise_problem<P>::edge_type const& e) {
    return e.potential;
}

/// The same problem with tables, for solve.hpp and everything else that wants a factor_graph. O(sum of label pairs) memory.
/// Throws bad_field where a potential has an entry that is NaN or -infinity.
template <PairwiseProblem G>
factor_graph as_factor_graph(G const& g) {
    factor_graph out;
    for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
        std::span<double const> const costs = g.costs(variable_id(v));
        out.add_variable({costs.begin(), costs.end()});
    }
    for (auto const& e : g.edges()) out.add_edge(e.u, e.v, materialised(potential_of(g, e)));
    return out;
}

/// The problem with the labels of `kept` only (increasing, at least one per variable), as tables; same variables and edges.
template <PairwiseProblem G>
factor_graph with_labels(G const& g, std::vector<std::vector<label>> const& kept) {
    factor_graph out;
    for (std::uint32_t v = 0; v < kept.size(); ++v) {
        std::span<double const> const all = g.costs(variable_id(v));
        std::vector<double> costs;
        for (label l : kept[v]) costs.push_back(all[l]);
        out.add_variable(std::move(costs));
    }
    for (auto const& e : g.edges()) {
        cost_table t{out.label_count(e.u), out.label_count(e.v), {}};
        for (label r : kept[e.u.value])
            for (label c : kept[e.v.value]) t.values.push_back(g.pair_cost(e, r, c));
        out.add_edge(e.u, e.v, std::move(t));
    }
    return out;
}

}  // namespace cantle::mrf
