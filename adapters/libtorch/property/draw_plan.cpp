// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/draw_plan.hpp>

#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/property/random_cost_model.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/graph_hash.hpp>

#include <cmath>
#include <utility>

namespace cantle::libtorch {
namespace {

/// The planning problem with random costs of labels and none of pairs: any feasible choice of strategies and layouts is as likely.
mrf::factor_graph with_random_labels(mrf::factor_graph const& from, dice& d) {
    mrf::factor_graph to;
    for (std::uint32_t v = 0; v < from.variable_count(); ++v) {
        std::vector<double> costs(from.costs(mrf::variable_id(v)).size());
        for (auto& c : costs) c = static_cast<double>(d.range(0, 1000));
        to.add_variable(std::move(costs));
    }
    std::map<std::uint32_t, mrf::table_id> tables;
    for (auto const& e : from.edges()) {
        auto const at = tables.find(e.table.value);
        mrf::table_id id;
        if (at != tables.end()) id = at->second;
        else {
            auto t = from.table(e.table);
            for (auto& x : t.values) x = std::isfinite(x) ? 0.0 : mrf::forbidden;
            id = to.add_table(std::move(t));
            tables.emplace(e.table.value, id);
        }
        to.add_edge(e.u, e.v, id, e.use);
    }
    return to;
}

std::string draw_layout(device_mesh const& mesh, shape const& sizes, dice& d) {
    layout l(mesh.dims());
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (!sizes.empty() && d.chance(60)) {
            auto with = l;
            with.push_cut(a, mesh.size(a), d.below(sizes.size()));
            if (with.fits(sizes)) l = with;
        }
    return l.text(mesh);
}

plan_options draw_options(training_graph const& g, device_mesh const& mesh, dice& d) {
    plan_options o;
    o.relative_gap = 0.05;
    o.clustering = d.chance(50);
    static std::vector<std::string> const inputs{"free", "free", "free", ""};
    o.boundary.inputs = d.one_of(inputs);
    static std::vector<parameter_storage> const storages{parameter_storage::free, parameter_storage::free, parameter_storage::fully_sharded,
                                                         parameter_storage::replicated};
    o.boundary.parameters = d.one_of(storages);
    for (auto n = d.below(4); n > 1; --n) {
        auto const v = static_cast<vertex>(d.below(g.size()));
        if (is_sink(g[v].role) || !g[v].outputs[0].defined) continue;
        o.boundary.pins.push_back({g[v].name, draw_layout(mesh, g[v].outputs[0].sizes, d)});
    }
    return o;
}

sharding_plan plan_with_random_labels(training_graph const& g, device_mesh const& mesh, plan_options const& o, std::uint64_t seed) {
    random_cost_model const prices{seed};
    auto const problem = build_problem(g, mesh, standard_registry(), prices, {o.boundary, o.clustering, o.tie_break, o.uneven});
    dice labels(seed);
    auto const solved = mrf::solve(with_random_labels(problem.factors, labels), {.relative_gap = 1.0, .max_sweeps = 100}, {});
    if (solved.labels.empty()) throw error(error_code::unsatisfiable_constraint, "the constraints together", "no choice satisfies all", "");
    auto result = detail::plan_extractor<random_cost_model>(problem, g, solved.labels, prices).run();
    result.made_from.graph = structural_hash(g);
    return result;
}

}  // namespace

drawn_plan draw_plan(training_graph const& g, device_mesh const& mesh, dice& d) {
    auto options = draw_options(g, mesh, d);
    auto const way = d.below(5);
    auto const seed = d.below(1'000'000);
    drawn_plan out;
    out.how = way == 0 ? "optimal" : way <= 2 ? "random prices" : "random labels";
    for (int tries = 0; tries < 2; ++tries) {
        try {
            if (way == 0) out.plan = plan(g, mesh, standard_registry(), standard_cost_model(mesh, find_cluster("h100")), options);
            else if (way <= 2) out.plan = plan(g, mesh, standard_registry(), random_cost_model{seed}, options);
            else out.plan = plan_with_random_labels(g, mesh, options, seed);
            return out;
        } catch (error const& e) {
            out.code = e.code();
            out.why = e.what();
            if (e.code() != error_code::mesh_does_not_divide && e.code() != error_code::unsatisfiable_constraint) return out;
        }
        options.boundary = {};
        options.boundary.inputs = "free";
        options.boundary.parameters = parameter_storage::free;
    }
    return out;
}

}  // namespace cantle::libtorch
