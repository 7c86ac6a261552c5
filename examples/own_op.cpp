// SPDX-License-Identifier: BSL-1.0
// An op of one's own, from its rule to a plan: a gate over pairs of features, y[b, f] = x[b, f] * sigmoid(g[b, f]).
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <cstdio>

// [gate]
struct gate {
    std::string name() const { return "mine::gate"; }
    /// Every dim may be cut on all three tensors alike; the op is linear in x, so a sum over ranks may wait until after it.
    void rows(cantle::op_query const& q, std::int64_t /*axis_size*/, cantle::row_list& rows) const {
        using p = cantle::placement;
        for (std::size_t d = 0; d < q.operands[0].rank(); ++d) rows.add({p::shard(d), p::shard(d)}, {p::shard(d)});
        rows.add({p::partial(), p::replicate()}, {p::partial()});
    }
    std::vector<cantle::tensor_meta> output_metas(cantle::op const&, std::vector<cantle::tensor_meta> const& operands) const {
        return {operands[0]};
    }
    /// The rows are checked on this call when the op is added.
    cantle::own_example example() const {
        return {std::vector<cantle::tensor_meta>(2, cantle::contiguous_meta({8, 16}, cantle::dtype::float32))};
    }
};
// [/gate]

int main() {
    // [use]
    auto rules = cantle::standard_rules();
    rules.add_op(gate{});

    cantle::graph_builder b;
    b.shapes_from(rules.shapes());
    auto const x = b.input("x", {4096, 1024});
    auto const up = b.linear(x, b.parameter("up", {4096, 1024})), side = b.linear(x, b.parameter("side", {4096, 1024}));
    b.output(b.linear(b.call("mine::gate", {{"x", up}, {"g", side}}), b.parameter("down", {1024, 4096})));
    auto const graph = b.build();

    auto const mesh = cantle::device_mesh::parse("8", "tp");
    cantle::plan_options options;
    options.boundary.inputs = "R";
    options.boundary.outputs = "R";
    options.boundary.parameters = cantle::parameter_storage::free;
    auto const plan = cantle::plan(graph, mesh, rules, cantle::standard_cost_model(mesh, cantle::find_cluster("h100")), options);
    // [/use]
    for (cantle::vertex v = 0; v < graph.size(); ++v)
        if (graph[v].operation.name == "mine::gate")
            std::printf("%s takes %s and gives %s\n", graph[v].name.c_str(), plan.at(plan.nodes[v].operands[0]).text(mesh).c_str(),
                        plan.at(plan.nodes[v].outputs[0]).text(mesh).c_str());
    return plan.status == cantle::solve_status::optimal ? 0 : 1;
}
