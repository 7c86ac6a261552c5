// SPDX-License-Identifier: BSL-1.0
#pragma once
// The cost model that plans use unless they are given another: roofline compute and alpha-beta collectives for one mesh of one cluster.
#include <cantle/cost/alpha_beta.hpp>
#include <cantle/cost/concepts.hpp>
#include <cantle/cost/roofline.hpp>

#include <cstdio>
#include <string>
#include <utility>

namespace cantle {

struct standard_cost_options {
    roofline_options compute;
    alpha_beta_options collectives;
};

/// An immutable value; two of them share nothing (case C17), and calls from many threads are safe.
class standard_cost_model {
public:
    static constexpr bool allows_threads = true;  ///< prices are computed from constants

    /// Throws mesh_does_not_divide (a node of no GPUs), bad_cost where a figure of the cluster or an option is not above 0.
    standard_cost_model(device_mesh mesh, cluster machine, standard_cost_options options = {})
        : mesh_(std::move(mesh)), machine_(std::move(machine)), options_(options), roofline_(machine_.gpu, options.compute),
          alpha_beta_(mesh_, machine_, options.collectives) {}

    /// Microseconds of an op with metas local to a rank.
    double compute(op_query const& local) const { return roofline_.compute(local); }
    /// Microseconds of a collective.
    double collective(collective_call const& call) const { return alpha_beta_.collective(call); }
    /// Where the groups of these axes lie.
    group_geometry const& geometry(std::uint32_t axes) const { return alpha_beta_.geometry(axes); }
    device_mesh const& mesh() const { return mesh_; }
    cantle::cluster const& machine() const { return machine_; }
    standard_cost_options const& options() const { return options_; }

    /// Every constant: two models of equal digest give equal prices.
    void feed(stable_hasher& h) const {
        h.add("standard_cost_model 1");
        roofline_.feed(h);
        alpha_beta_.feed(h);
    }
    /// Name and all parameters, one "name: value" per line.
    std::string describe() const;

private:
    device_mesh mesh_;
    cantle::cluster machine_;
    standard_cost_options options_;
    roofline roofline_;
    alpha_beta alpha_beta_;
};
static_assert(CostModel<standard_cost_model>);

inline std::string standard_cost_model::describe() const {
    char text[256];
    std::string s = "cost model: standard (roofline compute, alpha-beta collectives over rings; SI units)\n" + machine_.describe();
    std::snprintf(text, sizeof text, "compute efficiency: %g\nmemory efficiency: %g\ncopy efficiency: %g\n",
                  options_.compute.compute_efficiency, options_.compute.memory_efficiency, options_.collectives.memory_efficiency);
    s += text;
    s += "causal attention: ";
    s += options_.compute.causal == causal_count::full ? "counted in full\n" : "only kept pairs counted\n";
    s += "mesh: " + mesh_.text() + (fills_nodes(mesh_, machine_.gpus_per_node) ? "" : " (the last node is filled in part)") + "\n";
    for (std::size_t a = 0; a < mesh_.dims(); ++a) {
        auto const& g = geometry(std::uint32_t{1} << a);
        s += "axis " + mesh_.name(a) + ": groups of " + std::to_string(g.size) + " on ";
        s += g.nodes == 1 ? "1 node" : std::to_string(g.nodes) + " nodes, " + std::to_string(g.per_node) + " per node";
        s += g.even ? "\n" : " at worst\n";
    }
    return s + "uncalibrated: all-to-all, permute\n";
}

}  // namespace cantle
