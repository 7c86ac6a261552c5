// SPDX-License-Identifier: BSL-1.0
#pragma once
// The working state of reductions.hpp: a factor graph that shrinks. A label that is out has cost +infinity here (nowhere else), so that
// minima pass over it; compact() then takes it out of lists and tables. Each elimination leaves a record from which the lost label is
// found again.
#include <cantle/base/assert.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// Reductions that can be left out; each is exact alone. Parallel edges and arc consistency always apply, dominance has its work limit.
struct reduction_rules {
    bool split = true;      ///< edges whose table is f(row) + g(col) go
    bool merge = true;      ///< variables that another one determines go
    bool eliminate = true;  ///< variables with at most two neighbours go
};

namespace detail {

using shared_table = std::shared_ptr<cost_table const>;
using label_list = std::shared_ptr<std::vector<label> const>;  ///< ascending original labels of a variable

/// A table seen from one of its two variables.
struct table_view {
    double const* values;
    std::size_t self_step, other_step;
    double operator()(std::size_t self, std::size_t other) const { return values[self * self_step + other * other_step]; }
};

/// How an eliminated variable gets its label back: the minimiser given its (at most two) neighbours.
struct elimination_record {
    struct neighbour {
        std::uint32_t variable;
        label_list labels;
        shared_table table;
        bool self_is_row;
    };
    std::uint32_t variable;
    label_list labels;
    std::vector<double> cost;
    std::array<neighbour, 2> near;
    std::size_t near_count = 0;
};

class reducer {
public:
    struct edge {
        std::uint32_t u, v;
        shared_table table;
        bool transposed, alive, may_forbid;
    };
    struct variable {
        std::vector<double> cost;
        label_list labels;
        std::vector<std::uint32_t> edges;  // alive ones
        bool alive = true, touched = true;
    };

    reducer(factor_graph const& g, std::size_t max_table, double work, reduction_rules rules = {})
        : max_table_(max_table), work_left_(work), rules_(rules) {
        std::vector<char> may_forbid(g.table_count());
        for (std::uint32_t t = 0; t < may_forbid.size(); ++t) may_forbid[t] = has_forbidden(g.table(table_id(t)));
        std::map<std::size_t, label_list> all_labels;
        variables_.resize(g.variable_count());
        for (std::uint32_t v = 0; v < variables_.size(); ++v) {
            auto const costs = g.costs(variable_id(v));
            variables_[v].cost.assign(costs.begin(), costs.end());
            auto& list = all_labels[costs.size()];
            if (!list) {
                std::vector<label> every(costs.size());
                std::iota(every.begin(), every.end(), label{0});
                list = std::make_shared<std::vector<label> const>(std::move(every));
            }
            variables_[v].labels = list;
        }
        for (auto const& e : g.edges())
            join({e.u.value, e.v.value, g.shared_table(e.table), e.use == table_use::transposed, true, may_forbid[e.table.value] != 0});
    }

    /// Applies every reduction until none applies. False when the problem is infeasible.
    bool run() {
        bool again = true;
        while (again && !infeasible_) {
            again = remove_unsupported();
            if (infeasible_) break;
            compact();
            if (rules_.split) again |= split_decomposable();
            if (rules_.merge) again |= merge_determined();
            if (rules_.eliminate) again |= eliminate_all();
            if (infeasible_) break;
            if (!again) again = remove_dominated();
        }
        return !infeasible_;
    }

    bool infeasible() const { return infeasible_; }
    double constant() const { return constant_; }
    std::vector<variable> const& variables() const { return variables_; }
    std::vector<edge> const& edges() const { return edges_; }
    std::vector<elimination_record> const& records() const { return records_; }

private:
    std::vector<variable> variables_;
    std::vector<edge> edges_;
    std::vector<elimination_record> records_;
    std::size_t max_table_;
    double work_left_;  // label comparisons left for dominance: deterministic, unlike a time limit
    reduction_rules rules_;
    double constant_ = 0;
    bool infeasible_ = false;

    static bool has_forbidden(cost_table const& t) {
        return std::find(t.values.begin(), t.values.end(), forbidden) != t.values.end();
    }
    std::uint32_t other(edge const& e, std::uint32_t v) const { return e.u == v ? e.v : e.u; }
    bool is_row(edge const& e, std::uint32_t v) const { return (e.u == v) != e.transposed; }
    table_view view(edge const& e, std::uint32_t self) const {
        double const* values = e.table->values.data();
        return is_row(e, self) ? table_view{values, e.table->cols, 1} : table_view{values, 1, e.table->cols};
    }
    void touch(std::uint32_t v) {
        variables_[v].touched = true;
        for (auto id : variables_[v].edges) variables_[other(edges_[id], v)].touched = true;
    }
    void drop_edge(std::uint32_t id) {
        edges_[id].alive = false;
        edges_[id].table.reset();
        for (auto v : {edges_[id].u, edges_[id].v}) std::erase(variables_[v].edges, id);
    }

    /// Adds an edge, or adds its table to the edge that joins the same two variables already.
    void join(edge e) {
        for (auto id : variables_[e.u].edges) {
            auto& old = edges_[id];
            if (other(old, e.u) != e.v) continue;
            cost_table sum = *old.table;
            auto const row_variable = is_row(old, e.u) ? e.u : e.v;
            auto const add = view(e, row_variable);
            for (std::uint32_t r = 0, i = 0; r < sum.rows; ++r)
                for (std::uint32_t c = 0; c < sum.cols; ++c, ++i) sum.values[i] += add(r, c);
            old.may_forbid |= e.may_forbid;
            old.table = std::make_shared<cost_table const>(std::move(sum));
            return;
        }
        auto const id = static_cast<std::uint32_t>(edges_.size());
        variables_[e.u].edges.push_back(id);
        variables_[e.v].edges.push_back(id);
        edges_.push_back(std::move(e));
    }

    /// Arc consistency: a label without an allowed partner across some edge is out.
    bool remove_unsupported() {
        bool any = false;
        std::vector<std::uint32_t> stack;
        std::vector<char> waiting(variables_.size(), 0);
        for (std::uint32_t v = 0; v < variables_.size(); ++v) {
            if (!variables_[v].alive) continue;
            any |= min_of(variables_[v].cost.data(), variables_[v].cost.size()) == inf;
            if (any) return infeasible_ = true;
            stack.push_back(v);
            waiting[v] = 1;
        }
        while (!stack.empty()) {
            auto const v = stack.back();
            stack.pop_back();
            waiting[v] = 0;
            for (auto id : variables_[v].edges) {
                auto const& e = edges_[id];
                if (!e.may_forbid) continue;
                auto const w = other(e, v);
                auto const t = view(e, v);
                bool changed = false, left = false;
                for (std::size_t k = 0; k < variables_[w].cost.size(); ++k) {
                    if (variables_[w].cost[k] == inf) continue;
                    bool supported = false;
                    for (std::size_t j = 0; j < variables_[v].cost.size() && !supported; ++j)
                        supported = t(j, k) != inf && variables_[v].cost[j] != inf;
                    if (supported) {
                        left = true;
                    } else {
                        variables_[w].cost[k] = inf;
                        changed = true;
                    }
                }
                if (!left) return infeasible_ = true;
                if (!changed) continue;
                any = true;
                touch(w);
                if (!waiting[w]) stack.push_back(w);
                waiting[w] = 1;
            }
        }
        return any;
    }

    /// Takes labels that are out from lists and tables. Tables that shrink in the same way stay shared.
    void compact() {
        std::vector<std::shared_ptr<std::vector<label> const>> keep(variables_.size());
        for (std::uint32_t v = 0; v < variables_.size(); ++v) {
            auto& x = variables_[v];
            if (!x.alive || std::find(x.cost.begin(), x.cost.end(), inf) == x.cost.end()) continue;
            std::vector<label> kept, labels;
            std::vector<double> cost;
            for (label j = 0; j < x.cost.size(); ++j) {
                if (x.cost[j] == inf) continue;
                kept.push_back(j);
                labels.push_back((*x.labels)[j]);
                cost.push_back(x.cost[j]);
            }
            x.cost = std::move(cost);
            x.labels = std::make_shared<std::vector<label> const>(std::move(labels));
            keep[v] = std::make_shared<std::vector<label> const>(std::move(kept));
            touch(v);
        }
        using key = std::tuple<cost_table const*, std::vector<label>, std::vector<label>>;
        std::map<key, std::pair<shared_table, shared_table>> done;  // looked up only, never iterated; holds the old table alive too
        for (auto& e : edges_) {
            if (!e.alive || (!keep[e.u] && !keep[e.v])) continue;
            auto const& rows = keep[e.transposed ? e.v : e.u];
            auto const& cols = keep[e.transposed ? e.u : e.v];
            auto& found = done[{e.table.get(), rows ? *rows : std::vector<label>{}, cols ? *cols : std::vector<label>{}}];
            if (!found.second) found = {e.table, shrink(*e.table, rows.get(), cols.get())};
            e.table = found.second;
            e.may_forbid = e.may_forbid && has_forbidden(*e.table);
        }
    }
    static shared_table shrink(cost_table const& t, std::vector<label> const* rows, std::vector<label> const* cols) {
        cost_table s;
        s.rows = rows ? static_cast<std::uint32_t>(rows->size()) : t.rows;
        s.cols = cols ? static_cast<std::uint32_t>(cols->size()) : t.cols;
        s.values.resize(std::size_t{s.rows} * s.cols);
        for (std::uint32_t r = 0; r < s.rows; ++r) {
            double const* from = t.values.data() + std::size_t{rows ? (*rows)[r] : r} * t.cols;
            double* to = s.values.data() + std::size_t{r} * s.cols;
            for (std::uint32_t c = 0; c < s.cols; ++c) to[c] = from[cols ? (*cols)[c] : c];
        }
        return std::make_shared<cost_table const>(std::move(s));
    }

    /// An edge whose table is f(row) + g(col) couples nothing: its parts go to the variables. Variables with one label are of this kind.
    bool split_decomposable() {
        bool any = false;
        for (std::uint32_t id = 0; id < edges_.size(); ++id) {
            auto const e = edges_[id];
            if (!e.alive || e.may_forbid) continue;
            auto const& t = *e.table;
            bool splits = true;
            for (label r = 1; r < t.rows && splits; ++r) {
                double const step = t(r, 0) - t(0, 0);
                for (label c = 1; c < t.cols && splits; ++c) splits = t(r, c) == t(0, c) + step;
            }
            if (!splits) continue;
            auto& row_cost = variables_[e.transposed ? e.v : e.u].cost;
            auto& col_cost = variables_[e.transposed ? e.u : e.v].cost;
            for (label r = 0; r < t.rows; ++r) row_cost[r] += t(r, 0) - t(0, 0);
            for (label c = 0; c < t.cols; ++c) col_cost[c] += t(0, c);
            drop_edge(id);
            variables_[e.u].touched = variables_[e.v].touched = true;
            any = true;
        }
        return any;
    }

    /// An edge that leaves one label of v for each label of u (equalities, permutations, label maps): v's costs and edges go to u.
    bool merge_determined() {
        bool any = false;
        for (std::uint32_t id = 0; id < edges_.size(); ++id) {
            for (bool from_u : {true, false}) {
                auto const& e = edges_[id];
                if (!e.alive || !e.may_forbid) continue;
                auto const u = from_u ? e.u : e.v, v = from_u ? e.v : e.u;
                auto const partner = only_partners(view(e, u), variables_[u].cost.size(), variables_[v].cost.size());
                if (!partner.empty()) any |= merge(id, u, v, partner);
            }
        }
        return any;
    }
    /// For each label of self the one label of the other that is allowed with it; empty if some label has more or none.
    static std::vector<label> only_partners(table_view t, std::size_t own, std::size_t others) {
        std::vector<label> partner(own);
        for (std::size_t j = 0; j < own; ++j) {
            std::size_t found = 0;
            for (label k = 0; k < others && found < 2; ++k)
                if (t(j, k) != inf) {
                    partner[j] = k;
                    ++found;
                }
            if (found != 1) return {};
        }
        return partner;
    }
    bool merge(std::uint32_t id, std::uint32_t u, std::uint32_t v, std::vector<label> const& partner) {
        std::size_t const own = partner.size(), lost = variables_[v].cost.size();
        if (own > 2 * lost) return false;  // every table of v would grow by that factor
        for (auto other_id : variables_[v].edges)
            if (other_id != id && own * variables_[other(edges_[other_id], v)].cost.size() > max_table_ && own > lost) return false;
        elimination_record record{v, variables_[v].labels, variables_[v].cost, {}, 1};
        record.near[0] = {u, variables_[u].labels, edges_[id].table, is_row(edges_[id], v)};
        auto const t = view(edges_[id], u);
        for (std::size_t j = 0; j < own; ++j) variables_[u].cost[j] += t(j, partner[j]) + variables_[v].cost[partner[j]];
        records_.push_back(std::move(record));
        touch(v);
        drop_edge(id);
        auto const moved = variables_[v].edges;
        for (auto other_id : moved) {
            edge e = edges_[other_id];
            auto const w = other(e, v);
            bool const v_is_row = is_row(e, v);
            drop_edge(other_id);
            bool same = own == lost;
            for (label j = 0; j < own && same; ++j) same = partner[j] == j;
            if (!same) e.table = shrink(*e.table, v_is_row ? &partner : nullptr, v_is_row ? nullptr : &partner);
            join({u, w, e.table, !v_is_row, true, e.may_forbid});
        }
        variables_[v].alive = false;
        touch(u);
        return true;
    }

    /// Eliminates variables with at most two neighbours, the cheapest first.
    bool eliminate_all() {
        using entry = std::pair<double, std::uint32_t>;
        std::priority_queue<entry, std::vector<entry>, std::greater<>> queue;
        auto const price = [&](std::uint32_t v) {
            double p = static_cast<double>(variables_[v].cost.size());
            for (auto id : variables_[v].edges) p *= static_cast<double>(variables_[other(edges_[id], v)].cost.size());
            return p;
        };
        auto const offer = [&](std::uint32_t v) {
            if (variables_[v].alive && variables_[v].edges.size() <= 2) queue.emplace(price(v), v);
        };
        for (std::uint32_t v = 0; v < variables_.size(); ++v) offer(v);
        bool any = false;
        while (!queue.empty() && !infeasible_) {
            auto const [p, v] = queue.top();
            queue.pop();
            if (!variables_[v].alive || p != price(v)) continue;
            std::vector<std::uint32_t> near;
            for (auto id : variables_[v].edges) near.push_back(other(edges_[id], v));
            if (!eliminate(v)) continue;
            any = true;
            for (auto w : near) offer(w);
        }
        return any;
    }

    bool eliminate(std::uint32_t v) {
        auto& x = variables_[v];
        if (x.edges.size() == 2 && !joins_within_limit(x.edges[0], x.edges[1], v)) return false;
        elimination_record record{v, x.labels, x.cost, {}, x.edges.size()};
        for (std::size_t i = 0; i < x.edges.size(); ++i) {
            auto const& e = edges_[x.edges[i]];
            auto const w = other(e, v);
            record.near[i] = {w, variables_[w].labels, e.table, is_row(e, v)};
        }
        auto const gone = x.edges;
        x.alive = false;
        if (gone.empty()) {
            double const best = min_of(x.cost.data(), x.cost.size());
            if (best == inf) infeasible_ = true;
            constant_ += best;
        } else if (gone.size() == 1) {
            fold_leaf(record);
        } else {
            fold_chain(record);
        }
        for (auto id : gone) drop_edge(id);
        for (std::size_t i = 0; i < record.near_count; ++i) touch(record.near[i].variable);
        records_.push_back(std::move(record));
        return true;
    }

    bool joins_within_limit(std::uint32_t first, std::uint32_t second, std::uint32_t v) const {
        auto const a = other(edges_[first], v), b = other(edges_[second], v);
        if (variables_[a].cost.size() * variables_[b].cost.size() <= max_table_) return true;
        return std::any_of(variables_[a].edges.begin(), variables_[a].edges.end(), [&](auto id) { return other(edges_[id], a) == b; });
    }

    void fold_leaf(elimination_record const& r) {
        auto const& n = r.near[0];
        std::vector<double> m(variables_[n.variable].cost.size());
        auto const& t = *n.table;
        if (n.self_is_row)
            min_plus_over_rows(r.cost.data(), t.values.data(), t.rows, t.cols, m.data());
        else
            min_plus_over_cols(r.cost.data(), t.values.data(), t.rows, t.cols, m.data());
        for (std::size_t k = 0; k < m.size(); ++k) variables_[n.variable].cost[k] += m[k];
    }

    /// theta(i, k) = min_j A(i, j) + theta_v(j) + B(j, k).
    void fold_chain(elimination_record const& r) {
        auto const &na = r.near[0], &nb = r.near[1];
        cost_table out;
        out.rows = static_cast<std::uint32_t>(na.labels->size());
        out.cols = static_cast<std::uint32_t>(nb.labels->size());
        out.values.assign(std::size_t{out.rows} * out.cols, inf);
        std::vector<double> flipped;
        double const* b = nb.table->values.data();
        if (!nb.self_is_row) {
            flipped.resize(nb.table->values.size());
            for (std::uint32_t k = 0; k < nb.table->rows; ++k)
                for (std::uint32_t j = 0; j < nb.table->cols; ++j) flipped[std::size_t{j} * out.cols + k] = (*nb.table)(k, j);
            b = flipped.data();
        }
        std::size_t const labels = r.cost.size();
        table_view const a = na.self_is_row ? table_view{na.table->values.data(), 1, na.table->cols}
                                            : table_view{na.table->values.data(), na.table->cols, 1};
        std::vector<double> sum(labels), finite(labels);
        for (std::uint32_t i = 0; i < out.rows; ++i) {
            for (std::size_t j = 0; j < labels; ++j) sum[j] = a(i, j) + r.cost[j];
            double* row = out.values.data() + std::size_t{i} * out.cols;
            for (std::size_t j = 0; j < labels; ++j)
                if (sum[j] != inf) relax_row(sum[j], b + j * out.cols, out.cols, row);
        }
        bool const may_forbid = has_forbidden(out);
        join({na.variable, nb.variable, std::make_shared<cost_table const>(std::move(out)), false, true, may_forbid});
    }

    bool remove_dominated();  // dominance.hpp
};

}  // namespace detail
}  // namespace cantle::mrf
