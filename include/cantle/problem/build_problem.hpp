// SPDX-License-Identifier: BSL-1.0
#pragma once
// graph + rules + cost -> factor graph. One variable per group; label costs are the computation of all members and the moves inside the
// group, pairwise costs the moves between groups, copies counted. Everything in microseconds.
#include <cantle/base/stage_clock.hpp>
#include <cantle/problem/edge_columns.hpp>
#include <cantle/problem/planning_problem.hpp>
#include <cantle/problem/uncovered_ops.hpp>

#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

class problem_builder {
public:
    problem_builder(planning_problem& p, training_graph const& g) : p_(p), g_(g) { columns_.emplace(p_); }

    /// Precondition: moves between the labels of now are announced and priced.
    void run() {
        drop_forbidden_labels();
        sum_costs();
        fill_factor_graph();
    }

private:
    using weighted_tables = std::map<std::tuple<std::uint32_t, bool>, std::int64_t>;  // (table, first end is the larger group) -> count

    planning_problem& p_;
    training_graph const& g_;
    std::vector<std::vector<double>> unary_;
    std::optional<edge_columns> columns_;
    std::map<edge_columns::key, std::uint32_t> table_ids_;
    std::vector<std::vector<double>> tables_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, weighted_tables> pairs_;

    std::uint32_t group_of(variable_index v) const { return p_.grouping.group_of[v]; }
    decision_group& group(std::uint32_t i) { return p_.grouping.groups[i]; }

    std::uint32_t table(flow_edge const& e) {
        auto const key = columns_->of(e);
        auto const [at, fresh] = table_ids_.try_emplace(key, static_cast<std::uint32_t>(tables_.size()));
        if (fresh) {
            std::vector<double> values;
            auto const &rows = columns_->layouts(key.from), &cols = columns_->layouts(key.to);
            values.reserve(rows.size() * cols.size());
            for (auto from : rows) {
                auto row = p_.tables.costs(e.tensor_class, from, cols);
                for (std::size_t j = 0; j < row.size(); ++j) {
                    double d = row[j];
                    if (e.free_only && d > 0) d = mrf::forbidden;
                    if (e.keeps_partial && (partial_axes(p_.layouts[from]) & ~partial_axes(p_.layouts[cols[j]]))) d = mrf::forbidden;
                    if (from != cols[j]) d += p_.options.tie_break;
                    values.push_back(d);
                }
            }
            tables_.push_back(std::move(values));
        }
        return at->second;
    }
    /// Computation of all members plus the moves inside a group; labels that a move inside forbids leave the domain.
    void drop_forbidden_labels() {
        auto const& groups = p_.grouping.groups;
        unary_.resize(groups.size());
        for (std::uint32_t i = 0; i < groups.size(); ++i) unary_[i] = computation(p_, groups[i]);
        for (auto const& e : p_.edges) {
            auto const i = group_of(e.from);
            if (i != group_of(e.to)) continue;
            auto const& t = tables_[table(e)];
            for (std::size_t l = 0; l < unary_[i].size(); ++l) unary_[i][l] += t[l * unary_[i].size() + l];
        }
        bool dropped = false;
        for (std::uint32_t i = 0; i < groups.size(); ++i) {
            auto& u = unary_[i];
            auto& gr = group(i);
            std::vector<double> kept;
            std::vector<std::uint32_t> strategies;
            std::vector<layout_id> layouts;
            for (std::size_t l = 0; l < u.size(); ++l) {
                if (!std::isfinite(u[l])) continue;
                kept.push_back(u[l]);
                if (gr.of_strategies) strategies.push_back(gr.strategies[l]);
                else layouts.push_back(gr.layouts[l]);
            }
            if (kept.size() == u.size()) continue;
            if (kept.empty()) {
                auto const v = gr.members.front();
                throw error(error_code::unsatisfiable_constraint, "'" + (v < g_.size() ? g_[v].name : std::string("relay")) + "'",
                            "no layout of it satisfies all constraints", "loosen a pin, or solve without clustering");
            }
            dropped = true;
            u = std::move(kept);
            gr.strategies = std::move(strategies);
            gr.layouts = std::move(layouts);
        }
        if (!dropped) return;
        columns_.emplace(p_);  // label domains changed: number tables anew
        table_ids_.clear();
        tables_.clear();
    }
    void sum_costs() {
        for (auto const& e : p_.edges) {
            auto const a = group_of(e.from), b = group_of(e.to);
            if (a != b) ++pairs_[{std::min(a, b), std::max(a, b)}][{table(e), a > b}];
        }
    }
    void fill_factor_graph() {
        p_.factors = {};
        for (auto& u : unary_) p_.factors.add_variable(std::move(u));
        std::map<weighted_tables, std::map<std::pair<std::size_t, std::size_t>, mrf::table_id>> known;
        for (auto const& [ends, weights] : pairs_) {
            std::size_t const rows = group(ends.first).label_count(), cols = group(ends.second).label_count();
            auto& slot = known[weights];
            auto at = slot.find({rows, cols});
            if (at == slot.end()) {
                mrf::cost_table sum{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols),
                                    std::vector<double>(rows * cols, 0.0)};
                for (auto const& [which, count] : weights) {
                    auto const& [id, flipped] = which;
                    auto const& t = tables_[id];
                    for (std::size_t r = 0; r < rows; ++r)
                        for (std::size_t c = 0; c < cols; ++c)
                            sum.values[r * cols + c] += static_cast<double>(count) * (flipped ? t[c * rows + r] : t[r * cols + c]);
                }
                at = slot.emplace(std::pair{rows, cols}, p_.factors.add_table(std::move(sum))).first;
            }
            p_.factors.add_edge(mrf::variable_id(ends.first), mrf::variable_id(ends.second), at->second);
        }
    }
};

}  // namespace detail

/// All but the factor graph: op classes, moves, groups, lattices. Precondition: g is valid (graph/validate.hpp). Throws as build_problem.
template <RuleSet Rules, CostModel Cost>
planning_problem form_problem(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                              problem_options const& options = {}, stage_clock* clock = nullptr) {
    auto const stage = [clock](char const* name) { if (clock) clock->enter(name); };
    stage("build");
    require_rules(g, rules);
    planning_problem p(mesh, options);
    auto const pin_of = match_pins(g, options.boundary);
    auto const domains = boundary_domains(g, mesh, options.boundary, pin_of, p.layouts, options.policy());
    cast_sides const casts(g);
    stage("rules");
    p.classes = intern_op_classes(g, mesh, rules, cost, p.layouts,
                                  [&](vertex v) { return casts.is_parameter_cast(v) ? &domains[g[v].operands[0].node] : nullptr; },
                                  options.policy());
    stage("build");
    p.relays = find_relays(g);
    p.edges = collect_edges(g, p.relays, casts, gradient_chains(g, p.classes, p.layouts), p.tables);
    p.grouping = form_groups(g, mesh, options.boundary, options.clustering, p.relays, p.classes, domains, p.edges, pin_of, p.layouts);
    detail::announce_moves(p);
    stage("costs");
    p.tables.form(p.layouts, cost, options.threads);
    stage("build");
    return p;
}

/// Prices the moves between the labels that groups have now and fills the factor graph; labels that a move inside their group forbids go.
/// To be called again after labels were taken out. Precondition: form_problem made p of g. Throws unsatisfiable_constraint.
inline void price_problem(planning_problem& p, training_graph const& g, stage_clock* clock = nullptr) {
    auto const stage = [clock](char const* name) { if (clock) clock->enter(name); };
    stage("costs");
    p.tables.clear_wants();
    detail::announce_moves(p);
    p.tables.price(p.layouts, p.options.threads);
    stage("build");
    detail::problem_builder(p, g).run();
}

/// Build the problem. Precondition: g is valid (graph/validate.hpp). Throws op_without_rule, bad_rule, bad_cost, mesh_does_not_divide,
/// unknown_tensor, unsatisfiable_constraint, bad_layout, unknown_axis.
template <RuleSet Rules, CostModel Cost>
planning_problem build_problem(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost,
                               problem_options const& options = {}, stage_clock* clock = nullptr) {
    auto p = form_problem(g, mesh, rules, cost, options, clock);
    price_problem(p, g, clock);
    return p;
}

}  // namespace cantle
