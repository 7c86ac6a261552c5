// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether a plan is one of this graph on this mesh: asked before a plan is shown, lowered or run.
#include <cantle/graph/graph_hash.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/plan/plan_check.hpp>

#include <string>

namespace cantle {

/// Throws foreign_plan (802), naming all that differs, unless the plan was made for a graph of this structure and for this mesh; bad_field
/// (105) where it contradicts that graph (plan_check.hpp).
inline void refuse_foreign(sharding_plan const& plan, training_graph const& graph, device_mesh const& mesh) {
    std::string differs;
    auto const add = [&differs](std::string const& what) { differs += (differs.empty() ? "" : "; ") + what; };
    if (plan.mesh != mesh) add("its mesh is " + plan.mesh.text() + ", this one is " + mesh.text());
    if (plan.nodes.size() != graph.size())
        add("it places " + std::to_string(plan.nodes.size()) + " vertices, the graph has " + std::to_string(graph.size()));
    if (auto const hash = structural_hash(graph); plan.made_from.graph != hash)
        add("its graph has the structural hash " + plan.made_from.graph.hex() + ", this one " + hash.hex());
    // Equal hashes are no proof for a file that was edited: what indexes into the graph must fit it.
    for (vertex v = 0; differs.empty() && v < graph.size(); ++v)
        if (plan.nodes[v].operands.size() != graph[v].operands.size() || plan.nodes[v].outputs.size() != graph[v].outputs.size())
            add("it gives '" + graph[v].name + "' another number of operands or outputs");
    if (!differs.empty())
        throw error(error_code::foreign_plan, "plan", "it belongs to another graph or mesh: " + differs,
                    "plan this graph on this mesh, or give the graph and mesh that the plan was made for");
    if (auto const wrong = find_contradiction(plan, graph))
        throw error(error_code::bad_field, "plan" + (wrong->place.empty() ? "" : ": " + wrong->place),
                    "field '" + wrong->field + "' " + wrong->problem, "correct the field, or plan again");
}

}  // namespace cantle
