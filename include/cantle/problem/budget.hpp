// SPDX-License-Identifier: BSL-1.0
#pragma once
// Budgets on what one rank holds, in the user's terms, and as sums of weights over labels and label pairs (mrf/budget.hpp). Bytes are those
// of the largest local piece, copies of a layer counted.
//
//   parameters         parameters, as they are stored
//   optimizer          the same times a factor: optimizer state lies as its parameter does. 2: two moments in the parameter's type
//   saved_activations  forward tensors that backward ops use, in the layout in which they are kept: of a tensor with several users that of
//                      its relay, to which it is moved once, else its producer's. Sources count only where a moved copy is kept.
//                      Every tensor counts, views too, so that this is never too little
//   kept_weights       the same of parameters and what is made of parameters alone (casts): the gathered copies that backward goes on from
//   parameter_ratio    mean over all parameters of local elements / global elements
//   any other name     a sum of one's own, over vertices and moves
#include <cantle/base/budget_use.hpp>
#include <cantle/mrf/lagrangian.hpp>
#include <cantle/problem/build_problem.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// One vertex under one strategy: the layouts that its op sees and gives. Sources and sinks have one output.
struct strategy_choice {
    training_graph const& graph;
    device_mesh const& mesh;
    vertex at;
    std::vector<layout const*> operands, outputs;
};

/// A value that goes on in another layout (or the same) to its relay or to one of its users.
struct move_choice {
    training_graph const& graph;
    device_mesh const& mesh;
    value_ref value;
    layout const &from, &to;
};

/// "This sum is at most `limit`." A name of the list above, or a name of one's own with at least one of the functions.
struct budget {
    std::string name;
    double limit = 0;             ///< bytes per rank; of parameter_ratio within (0, 1]; of an own sum what it counts
    double factor = 0;            ///< of optimizer: bytes of state per byte of parameter; 0: 2
    std::function<double(strategy_choice const&)> of_strategy;  ///< finite; called once per vertex and strategy
    std::function<double(move_choice const&)> of_move;          ///< finite; called once per flow edge and pair of layouts
};

inline constexpr std::array<std::string_view, 5> budget_names = {"parameters", "optimizer", "saved_activations", "kept_weights",
                                                                 "parameter_ratio"};

/// Throws bad_option naming the budget: an unknown or doubled name, a limit or factor that is no finite number of at least 0.
inline void check_budgets(std::span<budget const> budgets) {
    for (std::size_t i = 0; i < budgets.size(); ++i) {
        auto const& b = budgets[i];
        auto const refuse = [&b](std::string problem, std::string remedy) {
            throw error(error_code::bad_option, "budget '" + b.name + "'", std::move(problem), std::move(remedy));
        };
        bool known = false;
        std::string names;
        for (auto name : budget_names) {
            known = known || b.name == name;
            names += (names.empty() ? "" : ", ") + std::string(name);
        }
        bool const own = b.of_strategy || b.of_move;
        if (!known && !own) refuse("there is no budget of that name", "use " + names + ", or give a sum of your own (C++)");
        if (known && own) refuse("the name is taken", "give your own sum another name than " + names);
        std::string const remedy = "give a finite number of at least 0";
        if (!std::isfinite(b.limit) || (known && b.limit < 0)) refuse("the limit is " + std::to_string(b.limit), remedy);
        if (b.name == "parameter_ratio" && known && b.limit > 1)
            refuse("the limit is " + std::to_string(b.limit), "give a ratio of at most 1, as in 0.05");
        if (!std::isfinite(b.factor) || b.factor < 0) refuse("the factor is " + std::to_string(b.factor), remedy);
        for (std::size_t j = 0; j < i; ++j)
            if (budgets[j].name == b.name) refuse("it is given twice", "give one limit");
    }
}

namespace detail {

/// The shortest text that reads back to the same number; whole numbers without an exponent.
inline std::string shortest_number(double x) {
    char buffer[40];
    auto const end = std::abs(x) < 1e15 && x == std::floor(x) ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::int64_t>(x))
                                                             : std::to_chars(buffer, buffer + sizeof buffer, x);
    return {buffer, end.ptr};
}
/// "40000000000 bytes (40.00 GB)".
inline std::string exact_bytes(double x) {
    std::string text = shortest_number(x) + " bytes";
    if (x < 1e6) return text;
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, " (%.2f %s)", x < 1e9 ? x / 1e6 : x / 1e9, x < 1e9 ? "MB" : "GB");
    return text + buffer;
}
inline double optimizer_factor(budget const& b) { return b.factor > 0 ? b.factor : 2; }
inline bool is_in_bytes(budget const& b) { return b.name != "parameter_ratio" && !b.of_strategy && !b.of_move; }

class budget_builder {
public:
    budget_builder(planning_problem const& p, training_graph const& g, budget const& b) : p_(p), g_(g), b_(b) {}

    mrf::linear_budget run() {
        mrf::linear_budget out;
        out.name = b_.name;
        out.limit = b_.limit;
        if (b_.name == "parameters") add_parameters(1, false);
        else if (b_.name == "optimizer") add_parameters(optimizer_factor(b_), false);
        else if (b_.name == "parameter_ratio") {
            add_parameters(1, true);
            out.limit *= 1 + 1e-9;  // means of fractions are rounded
        } else if (b_.name == "saved_activations") add_kept(false);
        else if (b_.name == "kept_weights") add_kept(true);
        else add_own();
        std::map<std::vector<double>, mrf::label_weights> known;
        out.of_variable.resize(p_.factors.variable_count());
        for (auto& [group, weights] : unary_) {
            auto& shared = known[weights];
            if (!shared) shared = std::make_shared<std::vector<double> const>(weights);
            out.of_variable[group] = shared;
        }
        if (!pairs_.empty()) out.of_edge.resize(p_.factors.edge_count());
        for (auto& [edge, table] : pairs_) out.of_edge[edge] = std::make_shared<mrf::cost_table const>(std::move(table));
        return out;
    }

private:
    planning_problem const& p_;
    training_graph const& g_;
    budget const& b_;
    std::map<std::uint32_t, std::vector<double>> unary_;  // [group][label]
    std::map<std::uint32_t, mrf::cost_table> pairs_;      // [edge of the factor graph]
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> edge_between_;

    std::uint32_t group_of(variable_index v) const { return p_.grouping.group_of[v]; }
    std::size_t labels(std::uint32_t group) const { return p_.grouping.groups[group].label_count(); }
    double local_elements(tensor_meta const& t, layout_id l) const {
        return t.defined ? static_cast<double>(element_count(p_.layouts[l].local_shape(t.sizes))) : 0.0;
    }
    double local_bytes(tensor_meta const& t, layout_id l) const { return local_elements(t, l) * element_bytes(t.type); }

    /// Adds f(label) to the group of v.
    template <class F>
    void add(variable_index v, F f) {
        auto& w = unary_[group_of(v)];
        w.resize(labels(group_of(v)), 0.0);
        for (mrf::label l = 0; l < w.size(); ++l) w[l] += f(l);
    }
    /// Adds f(layout at the start, layout at the end) to a flow edge; f is called once per pair of layouts.
    template <class F>
    void add(flow_edge const& e, F f) {
        std::map<std::pair<layout_id, layout_id>, double> known;
        auto const value = [&](mrf::label a, mrf::label b) {
            auto const from = p_.layout_at(e.from, e.from_port, a), to = p_.layout_at(e.to, e.to_port, b);
            auto const [at, fresh] = known.try_emplace({from, to}, 0.0);
            if (fresh) at->second = f(from, to);
            return at->second;
        };
        auto const a = group_of(e.from), b = group_of(e.to);
        if (a == b) {
            add(e.from, [&](mrf::label l) { return value(l, l); });
            return;
        }
        if (edge_between_.empty())
            for (std::uint32_t i = 0; i < p_.factors.edge_count(); ++i)
                edge_between_.emplace(std::pair{p_.factors.edge(mrf::edge_id(i)).u.value, p_.factors.edge(mrf::edge_id(i)).v.value}, i);
        auto const [u, v] = std::minmax(a, b);
        auto& t = pairs_[edge_between_.at({u, v})];
        t.rows = static_cast<std::uint32_t>(labels(u));
        t.cols = static_cast<std::uint32_t>(labels(v));
        t.values.resize(std::size_t{t.rows} * t.cols, 0.0);
        for (mrf::label r = 0; r < t.rows; ++r)
            for (mrf::label c = 0; c < t.cols; ++c) t.values[std::size_t{r} * t.cols + c] += a < b ? value(r, c) : value(c, r);
    }

    void add_parameters(double factor, bool as_mean_ratio) {
        double count = 0;
        for (auto const& n : g_.nodes) count += n.role == node_role::parameter;
        for (vertex v = 0; v < g_.size(); ++v) {
            if (g_[v].role != node_role::parameter) continue;
            auto const& t = g_[v].outputs[0];
            double const whole = static_cast<double>(element_count(t.sizes));
            add(v, [&](mrf::label l) {
                auto const at = p_.layout_at(v, 0, l);
                if (!as_mean_ratio) return factor * local_bytes(t, at);
                return (whole > 0 ? local_elements(t, at) / whole : 1.0) / count;
            });
        }
    }
    /// [vertex] parameters and what is made of nothing else.
    std::vector<bool> weights() const {
        std::vector<bool> is(g_.size(), false);
        for (vertex v = 0; v < g_.size(); ++v) {
            auto const& n = g_[v];
            is[v] = n.role == node_role::parameter;
            if (n.role != node_role::computation || n.operands.empty()) continue;
            is[v] = true;
            for (auto const& r : n.operands) is[v] = is[v] && is[r.node];
        }
        return is;
    }
    void add_kept(bool of_weights) {
        auto const is_weight = weights();
        std::vector<std::vector<bool>> kept(g_.size());
        for (vertex v = 0; v < g_.size(); ++v) kept[v].assign(g_[v].outputs.size(), false);
        for (vertex v = 0; v < g_.size(); ++v)
            if (g_[v].in_phase == phase::backward && g_[v].role == node_role::computation)
                for (auto const& r : g_[v].operands)
                    if (g_[r.node].in_phase == phase::forward && g_[r.node].role != node_role::tangent) kept[r.node][r.output] = true;
        auto const counts = [&](value_ref r) { return kept[r.node][r.output] && is_weight[r.node] == of_weights; };
        auto const first_relay = static_cast<variable_index>(g_.size());
        for (vertex v = 0; v < g_.size(); ++v)
            for (std::uint32_t o = 0; o < g_[v].outputs.size(); ++o) {
                if (g_[v].role != node_role::computation || !counts({v, o})) continue;
                auto const relay = p_.relays.relay_of[v][o];
                bool const moved_once = relay != relay_table::none;
                auto const holder = moved_once ? first_relay + relay : v;
                auto const port = moved_once ? 0u : static_cast<std::uint32_t>(g_[v].operands.size()) + o;
                add(holder, [&](mrf::label l) { return local_bytes(g_[v].outputs[o], p_.layout_at(holder, port, l)); });
            }
        for (auto const& e : p_.edges)
            if (e.to >= first_relay && g_[e.value.node].role != node_role::computation && counts(e.value))
                add(e, [&](layout_id from, layout_id to) { return from == to ? 0.0 : local_bytes(g_.meta(e.value), to); });
    }
    void add_own() {
        if (b_.of_strategy)
            for (vertex v = 0; v < g_.size(); ++v) {
                bool const op = g_[v].role == node_role::computation;
                auto const operands = op ? static_cast<std::uint32_t>(g_[v].operands.size()) : 0u;
                auto const ports = operands + static_cast<std::uint32_t>(g_[v].outputs.size());
                add(v, [&](mrf::label l) {
                    strategy_choice c{g_, p_.mesh, v, {}, {}};
                    for (std::uint32_t i = 0; i < ports; ++i)
                        (i < operands ? c.operands : c.outputs).push_back(&p_.layouts[p_.layout_at(v, op ? i : 0, l)]);
                    return b_.of_strategy(c);
                });
            }
        if (b_.of_move)
            for (auto const& e : p_.edges)
                add(e, [&](layout_id from, layout_id to) {
                    return b_.of_move({g_, p_.mesh, e.value, p_.layouts[from], p_.layouts[to]});
                });
    }
};

}  // namespace detail

/// The budgets as sums over the labels of the problem's groups. Throws what check_budgets throws, and bad_field where a function of one's
/// own returns what is not finite.
inline std::vector<mrf::linear_budget> linear_budgets(planning_problem const& p, training_graph const& g, std::span<budget const> budgets) {
    check_budgets(budgets);
    std::vector<mrf::linear_budget> out;
    for (auto const& b : budgets) {
        out.push_back(detail::budget_builder(p, g, b).run());
        mrf::check_budget(p.factors, out.back());
    }
    return out;
}

/// In words, for a plan's constraints: "budget: parameters at most 40000000000 bytes (40.00 GB) per GPU".
inline std::string budget_text(budget const& b) {
    std::string const text = "budget: " + b.name + " at most ";
    if (b.name == "parameter_ratio") return text + detail::shortest_number(b.limit) + " of the whole, on average over parameters";
    if (!detail::is_in_bytes(b)) return text + detail::shortest_number(b.limit);
    std::string state;
    if (b.name == "optimizer") state = ", " + detail::shortest_number(detail::optimizer_factor(b)) + " per byte of parameter";
    return text + detail::exact_bytes(b.limit) + " per GPU" + state;
}

/// What solving a problem under budgets gives.
struct budgeted_solution {
    mrf::solve_result solved;      ///< no labels where there is none even without budgets
    std::vector<budget_use> uses;  ///< [budget]
};

/// Solves the problem within the budgets. `seeded`: labels were restricted beforehand, for errors. Throws what linear_budgets throws, and
/// unsatisfiable_constraint where they cannot be kept, naming the least that can be reached, or where nothing within them was found.
inline budgeted_solution solve_within(planning_problem const& p, training_graph const& g, std::span<budget const> budgets,
                                      mrf::solve_options const& options, control const& limits, bool seeded = false) {
    auto const linear = linear_budgets(p, g, budgets);
    auto r = mrf::solve_with_budgets(p.factors, linear, {.inner = options}, limits);
    auto const amount = [&](std::size_t k, double x) {
        return detail::is_in_bytes(budgets[k]) ? detail::exact_bytes(std::ceil(x)) : detail::shortest_number(x);
    };
    if (r.unreachable) {
        auto const k = *r.unreachable;
        bool const of_parameters = budgets[k].name.starts_with("parameter") || budgets[k].name == "optimizer";
        throw error(error_code::unsatisfiable_constraint, "budget '" + budgets[k].name + "' of " + amount(k, budgets[k].limit),
                    std::string(seeded ? "no plan near the seeds keeps it; the least that one there can reach is "
                                       : "no plan keeps it; the least that one can reach is ") +
                        amount(k, r.least[k]),
                    std::string(seeded ? "allow a larger seed radius, " : "") +
                        std::string("raise the limit, take more GPUs, or loosen pins and boundary") +
                        (of_parameters ? " (storage of parameters, replica axes)" : ""));
    }
    budgeted_solution out;
    bool const none_at_all = r.status == solve_status::infeasible && r.stats.evaluations <= 1;
    if (none_at_all) return out;
    if (r.labels.empty() && p.factors.variable_count() > 0) {
        std::string all;
        for (std::size_t k = 0; k < budgets.size(); ++k) all += (k ? ", " : "") + budgets[k].name + " of " + amount(k, budgets[k].limit);
        throw error(error_code::unsatisfiable_constraint, "the budgets together: " + all,
                    r.status == solve_status::infeasible ? "each can be kept, but no plan keeps them all"
                                                         : "no plan within them was found, nor is it proven that there is none",
                    "raise a limit");
    }
    out.solved.labels = std::move(r.labels);
    out.solved.energy = r.energy;
    out.solved.lower_bound = r.lower_bound;
    out.solved.status = r.status;
    out.solved.stats = r.stats.first;
    for (std::size_t k = 0; k < budgets.size(); ++k)
        out.uses.push_back({budgets[k].name, budgets[k].limit, r.use[k], r.multipliers[k], detail::is_in_bytes(budgets[k])});
    return out;
}

}  // namespace cantle
