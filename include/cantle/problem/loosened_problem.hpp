// SPDX-License-Identifier: BSL-1.0
#pragma once
// The hard part of a planning problem with every demand of the boundary at hand: sources and sinks may take all layouts, and each demand
// (a pin, the layout of inputs, ...) is a mask over the labels. Any subset of the demands is then tested without building anything anew.
// Rules of the planner's own (that gradients lie as their parameter, say) shape the problem itself: which of them hold is given.
#include <cantle/mrf/conflict.hpp>
#include <cantle/mrf/hard_part.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/problem/build_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle::detail {

/// Which of the planner's own rules hold.
struct own_rules {
    bool pairing = true;         ///< gradients lie as their parameter or input, tangents as their output
    bool casts = true;           ///< nothing is paid at the wide side of the casts of parameters and gradients
    bool gradient_types = true;  ///< gradients are reduced in the type of their sink
    bool clustering = true;      ///< copies of a layer share one decision
};

/// Demands of the boundary are numbered: pins in their order, then these.
struct demand_numbers {
    std::uint32_t inputs, outputs, parameters;
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    explicit demand_numbers(boundary const& b)
        : inputs(static_cast<std::uint32_t>(b.pins.size())), outputs(inputs + 1), parameters(inputs + 2) {}
    /// Which demand speaks of a vertex; `pin`: the one that names it, or -1.
    std::uint32_t of(graph_node const& n, std::int32_t pin) const {
        if (pin >= 0) return static_cast<std::uint32_t>(pin);
        switch (n.role) {
            case node_role::input: case node_role::target: return inputs;
            case node_role::output: return outputs;
            case node_role::parameter: return parameters;
            default: return none;
        }
    }
};

class loosened_problem {
public:
    using set = std::vector<std::uint32_t>;  // of demands

    /// Rules, prices and tables; regroup() does the rest and can be repeated.
    template <class Rules, class Cost>
    loosened_problem(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost, problem_options const& options)
        : g_(g), unpaired_(without_pairs(g)), p_(mesh, options), pin_of_(match_pins(g, options.boundary)),
          strict_(boundary_domains(g, mesh, options.boundary, pin_of_, p_.layouts, options.policy())), domains_(loosened()) {
        cast_sides const casts(g);
        p_.classes = intern_op_classes(g, mesh, rules, cost, p_.layouts,
                                       [&](vertex v) { return casts.is_parameter_cast(v) ? &domains_[g[v].operands[0].node] : nullptr; },
                                       options.policy());
        p_.relays = find_relays(g);
        edges_ = collect_edges(g, p_.relays, casts, gradient_chains(g, p_.classes, p_.layouts), p_.tables);
        // With no rules labels are most, so the tables have all that any rules will ask for.
        prepare({false, false, false, false});
        announce_moves(p_);
        p_.tables.form(p_.layouts, cost);
        p_.tables.price(p_.layouts);
    }

    /// Makes these rules hold. False where they leave no label somewhere, whatever is demanded; failed_at() then has the names.
    bool regroup(own_rules const& own) {
        try {
            prepare(own);
            p_.factors = {};
            problem_builder(p_, g_).run();
        } catch (error const& e) {
            if (e.code() != error_code::unsatisfiable_constraint) throw;
            failed_at_ = e.subject();
            return false;
        }
        make_masks();
        return true;
    }
    std::string const& failed_at() const { return failed_at_; }

    bool casts_matter() const {
        return std::any_of(edges_.begin(), edges_.end(), [](flow_edge const& e) { return e.free_only; });
    }
    bool gradient_types_matter() const {
        return std::any_of(edges_.begin(), edges_.end(), [](flow_edge const& e) { return e.keeps_partial; });
    }

    // These three: precondition: regroup() returned true.

    /// Is there a choice that satisfies these demands? Also true where solving could not refute it.
    bool satisfiable(set const& demands) const {
        auto const kept = kept_labels(demands);
        for (auto const& k : kept)
            if (k.empty()) return false;
        return mrf::solve(mrf::with_labels(hard_.graph, kept)).status != solve_status::infeasible;
    }
    /// Names of the tensors among which these demands conflict, in the graph's order. Precondition: they do.
    std::vector<std::string> where(set const& demands) const {
        auto const kept = kept_labels(demands);
        std::vector<std::size_t> groups;
        for (std::size_t i = 0; i < kept.size() && groups.empty(); ++i)
            if (kept[i].empty()) groups.push_back(i);
        if (groups.empty()) {
            auto const graph = mrf::with_labels(hard_.graph, kept);
            for (auto const id : mrf::minimal_conflict(graph))
                for (auto const v : {graph.edge(id).u, graph.edge(id).v}) groups.push_back(v.value);
            std::sort(groups.begin(), groups.end());
        }
        std::vector<std::string> names;
        for (auto i : groups)
            if (auto const name = name_of(i); std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        return names;
    }

private:
    struct mask {
        std::uint32_t demand = 0;
        std::vector<char> allowed;  // [label]
        bool operator==(mask const&) const = default;
    };
    training_graph const& g_;
    training_graph unpaired_;
    planning_problem p_;
    std::vector<std::int32_t> pin_of_;
    std::vector<std::vector<layout_id>> strict_, domains_;  // [vertex] as demanded, and loosened
    std::vector<flow_edge> edges_;          // with all rules in force
    std::vector<std::vector<mask>> masks_;  // [group]
    mrf::hard_part hard_;
    std::string failed_at_;

    /// Edges and groups under these rules.
    void prepare(own_rules const& own) {
        p_.edges = edges_;
        for (auto& e : p_.edges) {
            e.free_only = e.free_only && own.casts;
            e.keeps_partial = e.keeps_partial && own.gradient_types;
        }
        // Pins are masks here, but still keep apart what they tell apart: negative numbers do that.
        std::vector<std::int32_t> apart;
        for (auto i : pin_of_) apart.push_back(-2 - i);
        p_.grouping = form_groups(own.pairing ? g_ : unpaired_, p_.mesh, p_.options.boundary, own.clustering, p_.relays, p_.classes,
                                  domains_, p_.edges, apart, p_.layouts);
    }
    /// Every layout that some boundary allows; those that this one allows first, so that what is demanded otherwise is no copy.
    std::vector<std::vector<layout_id>> loosened() {
        boundary free;
        free.inputs = "free";
        free.parameters = parameter_storage::free;
        auto domains = boundary_domains(g_, p_.mesh, free, std::vector<std::int32_t>(g_.size(), -1), p_.layouts, p_.options.policy());
        for (vertex v = 0; v < g_.size(); ++v) {
            auto all = strict_[v];
            for (auto l : domains[v])
                if (std::find(strict_[v].begin(), strict_[v].end(), l) == strict_[v].end()) all.push_back(l);
            domains[v] = std::move(all);
        }
        return domains;
    }
    static training_graph without_pairs(training_graph g) {
        for (auto& n : g.nodes)
            if (is_paired(n)) n.of.reset();
        return g;
    }
    void make_masks() {
        demand_numbers const numbers(p_.options.boundary);
        masks_.clear();
        masks_.resize(p_.grouping.groups.size());
        for (vertex v = 0; v < g_.size(); ++v) {
            mask m{numbers.of(g_[v], pin_of_[v]), {}};
            if (m.demand == demand_numbers::none) continue;
            bool const op = g_[v].role == node_role::computation;
            auto const wanted = op ? layout::parse(p_.mesh, p_.options.boundary.pins[m.demand].layout) : layout();
            auto const i = p_.grouping.group_of[v];
            auto const first_output = static_cast<std::uint32_t>(g_[v].operands.size());
            for (mrf::label l = 0; l < p_.grouping.groups[i].label_count(); ++l) {
                auto const at = p_.layout_at(v, op ? first_output : 0, l);
                bool const fits = op ? p_.layouts[at] == wanted : std::count(strict_[v].begin(), strict_[v].end(), at) > 0;
                m.allowed.push_back(fits);
            }
            if (std::find(masks_[i].begin(), masks_[i].end(), m) == masks_[i].end()) masks_[i].push_back(std::move(m));
        }
        std::vector<std::vector<std::uint32_t>> kinds(masks_.size());
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            std::map<std::vector<char>, std::uint32_t> known;
            for (mrf::label l = 0; l < p_.grouping.groups[i].label_count(); ++l) {
                std::vector<char> bits;
                for (auto const& m : masks_[i]) bits.push_back(m.allowed[l]);
                kinds[i].push_back(known.try_emplace(std::move(bits), static_cast<std::uint32_t>(known.size())).first->second);
            }
        }
        hard_ = mrf::hard_part_of(p_.factors, kinds);
    }
    std::vector<std::vector<mrf::label>> kept_labels(set const& demands) const {
        std::vector<std::vector<mrf::label>> kept(masks_.size());
        for (std::size_t i = 0; i < kept.size(); ++i)
            for (mrf::label l = 0; l < hard_.representative[i].size(); ++l) {
                bool fits = true;
                for (auto const& m : masks_[i])
                    fits = fits && (m.allowed[hard_.representative[i][l]] ||
                                    std::find(demands.begin(), demands.end(), m.demand) == demands.end());
                if (fits) kept[i].push_back(l);
            }
        return kept;
    }
    std::string name_of(std::size_t group) const {
        auto const v = p_.grouping.groups[group].members.front();
        return g_[v < g_.size() ? v : p_.relays.values[v - g_.size()].node].name;
    }
};

}  // namespace cantle::detail
