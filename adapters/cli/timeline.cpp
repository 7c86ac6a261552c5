// SPDX-License-Identifier: BSL-1.0
// `cantle timeline`: the predicted run of one rank's program. `cantle show --program`: that program as text.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/input.hpp>
#include <adapters/cli/output_files.hpp>
#include <adapters/cli/standard_output.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/program/timeline.hpp>
#include <cantle/report/program_text.hpp>
#include <cantle/report/timeline_report.hpp>
#include <cantle/report/trace_json.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <string>

namespace cantle::cli {
namespace {

digest hash_of(standard_cost_model const& cost) {
    stable_hasher h;
    cost.feed(h);
    return h.finish();
}

/// The cluster that the plan was made for, where its prices are known ones; else h100.
std::string cluster_of(sharding_plan const& plan) {
    for (auto const& c : known_clusters())
        if (hash_of(standard_cost_model(plan.mesh, c)) == plan.made_from.cost) return c.name;
    return "h100";
}

void refuse_rank(sharding_plan const& plan, std::int64_t rank, std::string const& option) {
    if (rank < 0 || rank >= plan.mesh.device_count())
        throw error(error_code::bad_option, option + " " + std::to_string(rank),
                    "the mesh " + plan.mesh.text() + " has the ranks 0 to " + std::to_string(plan.mesh.device_count() - 1),
                    "give one of them");
}

}  // namespace

void run(timeline_command const& c) {
    if (c.streams != "one" && c.streams != "per_communicator")
        throw error(error_code::bad_option, "--streams '" + c.streams + "'", "there is no such way", "use one or per_communicator");
    output_files files;
    files.keep(c.plan);
    files.keep(c.graph);
    if (c.trace_file) files.reserve("--trace", *c.trace_file);
    auto const plan = read_plan_json(c.plan);
    auto const graph = read_graph(c.graph);
    refuse_foreign(plan, graph, plan.mesh);
    auto const cluster = c.cluster.empty() ? cluster_of(plan) : c.cluster;
    standard_cost_model const cost(plan.mesh, find_cluster(cluster));
    refuse_rank(plan, c.rank, "--rank");
    auto const program = ready_program(graph, plan, standard_rules(), c.rank);

    timeline_options options;
    options.serial = c.serial;
    if (c.streams == "per_communicator") options.streams = comm_streams::per_communicator;
    auto const timeline = predict_timeline(program, graph, plan, cost, options);
    if (c.trace_file) {
        files.set(*c.trace_file, trace_json(timeline, program, graph, plan));
        files.prepare();
    }
    timeline_report const report{&timeline, &program, &graph, &plan, cluster, hash_of(cost) == plan.made_from.cost};
    auto text = c.json ? timeline_json(report) : timeline_text(report);
    if (!c.json && c.trace_file) text += "\ntrace written to " + visible_text(*c.trace_file) + "; ui.perfetto.dev opens it\n";
    print(text);
    files.commit();
}

void show_program(show_command const& c) {
    if (c.graph.empty()) throw error(error_code::bad_option, "--program", "the program needs the graph", "add --graph GRAPH");
    auto const plan = read_plan_json(c.plan);
    auto const graph = read_graph(c.graph);
    refuse_foreign(plan, graph, plan.mesh);
    refuse_rank(plan, *c.program_of_rank, "--program");
    print(program_text(ready_program(graph, plan, standard_rules(), *c.program_of_rank), graph, plan));
}

}  // namespace cantle::cli
