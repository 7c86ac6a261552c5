// SPDX-License-Identifier: BSL-1.0
#pragma once
// The hard part of a planning problem with every demand of the boundary at hand: sources and sinks may take all layouts, and each demand
// (a pin, the layout of inputs, ...) is a mask over the labels. Any subset of the demands is then tested without building anything anew.
// Rules of the planner's own (that gradients lie as their parameter, say) shape the problem itself: which of them hold is given.
#include <cantle/mrf/conflict.hpp>
#include <cantle/mrf/hard_part.hpp>
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

    /// Throws unsatisfiable_constraint where the rules alone leave no label somewhere.
    template <class Rules, class Cost>
    loosened_problem(training_graph const& g, device_mesh const& mesh, Rules const& rules, Cost const& cost, problem_options const& options,
                     own_rules const& own)
        : g_(g), p_(mesh, options) {
        auto const& b = options.boundary;
        auto const pin_of = match_pins(g, b);
        auto const strict = boundary_domains(g, mesh, b, pin_of, p_.layouts, options.policy());
        auto const domains = loosened(strict, mesh);
        cast_sides const casts(g);
        p_.classes = intern_op_classes(g, mesh, rules, cost, p_.layouts,
                                       [&](vertex v) { return casts.is_parameter_cast(v) ? &domains[g[v].operands[0].node] : nullptr; },
                                       options.policy());
        p_.relays = find_relays(g);
        p_.edges = collect_edges(g, p_.relays, casts, gradient_chains(g, p_.classes, p_.layouts), p_.tables);
        for (auto& e : p_.edges) {
            casts_matter_ |= e.free_only;
            gradient_types_matter_ |= e.keeps_partial;
            e.free_only &= own.casts;
            e.keeps_partial &= own.gradient_types;
        }
        // Pins are masks here, but still keep apart what they tell apart: negative numbers do that.
        std::vector<std::int32_t> apart;
        for (auto i : pin_of) apart.push_back(-2 - i);
        auto const unpaired = own.pairing ? training_graph{} : without_pairs(g);
        p_.grouping = form_groups(own.pairing ? g : unpaired, mesh, b, own.clustering, p_.relays, p_.classes, domains, p_.edges, apart,
                                  p_.layouts);
        announce_moves(p_);
        p_.tables.form(p_.layouts, cost);
        price_problem(p_, g);
        make_masks(strict, pin_of);
    }

    bool casts_matter() const { return casts_matter_; }
    bool gradient_types_matter() const { return gradient_types_matter_; }
    bool clustering_matters() const { return p_.grouping.copies > 0; }

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
    planning_problem p_;
    std::vector<std::vector<mask>> masks_;  // [group]
    mrf::hard_part hard_;
    bool casts_matter_ = false, gradient_types_matter_ = false;

    /// Every layout that some boundary allows; those that this one allows first, so that what is demanded otherwise is no copy.
    std::vector<std::vector<layout_id>> loosened(std::vector<std::vector<layout_id>> const& strict, device_mesh const& mesh) {
        boundary free;
        free.inputs = "free";
        free.parameters = parameter_storage::free;
        auto domains = boundary_domains(g_, mesh, free, std::vector<std::int32_t>(g_.size(), -1), p_.layouts, p_.options.policy());
        for (vertex v = 0; v < g_.size(); ++v) {
            auto all = strict[v];
            for (auto l : domains[v])
                if (std::find(strict[v].begin(), strict[v].end(), l) == strict[v].end()) all.push_back(l);
            domains[v] = std::move(all);
        }
        return domains;
    }
    static training_graph without_pairs(training_graph g) {
        for (auto& n : g.nodes)
            if (is_paired(n)) n.of.reset();
        return g;
    }
    void make_masks(std::vector<std::vector<layout_id>> const& strict, std::vector<std::int32_t> const& pin_of) {
        demand_numbers const numbers(p_.options.boundary);
        masks_.resize(p_.grouping.groups.size());
        for (vertex v = 0; v < g_.size(); ++v) {
            mask m{numbers.of(g_[v], pin_of[v]), {}};
            if (m.demand == demand_numbers::none) continue;
            bool const op = g_[v].role == node_role::computation;
            auto const wanted = op ? layout::parse(p_.mesh, p_.options.boundary.pins[m.demand].layout) : layout();
            auto const i = p_.grouping.group_of[v];
            auto const first_output = static_cast<std::uint32_t>(g_[v].operands.size());
            for (mrf::label l = 0; l < p_.grouping.groups[i].label_count(); ++l) {
                auto const at = p_.layout_at(v, op ? first_output : 0, l);
                m.allowed.push_back(op ? p_.layouts[at] == wanted : std::find(strict[v].begin(), strict[v].end(), at) != strict[v].end());
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
