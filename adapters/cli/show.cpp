// SPDX-License-Identifier: BSL-1.0
// The commands that only look: show, graph, clusters.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/input.hpp>
#include <adapters/cli/output_files.hpp>
#include <adapters/cli/standard_output.hpp>

#include <cantle/plan/plan_json.hpp>
#include <cantle/report/graph_table.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/svg.hpp>
#include <cantle/report/table.hpp>

#include <optional>
#include <string>

namespace cantle::cli {

void run(show_command const& c) {
    if (c.program_of_rank) return show_program(c);
    if (c.svg_file && c.graph.empty())
        throw error(error_code::bad_option, "--svg", "the picture needs the graph", "add --graph GRAPH");
    output_files files;
    files.keep(c.plan);
    if (!c.graph.empty()) files.keep(c.graph);
    if (c.svg_file) files.reserve("--svg", *c.svg_file);
    auto const plan = read_plan_json(c.plan);
    std::optional<training_graph> graph;
    if (!c.graph.empty()) {
        graph = read_graph(c.graph);
        refuse_foreign(plan, *graph, plan.mesh);
    }
    if (c.svg_file) {
        files.set(*c.svg_file, layer_svg(plan, *graph));
        files.prepare();
    }
    run_report report;
    report.plan = &plan;
    report.graph = graph ? &*graph : nullptr;
    print(c.json ? report_json(report) : report_text(report));
    files.commit();
}

void run(graph_command const& c) { print(graph_text(read_graph(c.graph))); }

void run(clusters_command const&) {
    std::string text;
    for (auto const& c : known_clusters()) text += (text.empty() ? "" : "\n") + c.describe();
    print(text);
}

}  // namespace cantle::cli
