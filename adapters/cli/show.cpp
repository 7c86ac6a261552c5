// SPDX-License-Identifier: BSL-1.0
// The commands that only look: show, graph, clusters.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/input.hpp>
#include <adapters/cli/output_files.hpp>

#include <cantle/plan/plan_json.hpp>
#include <cantle/report/graph_table.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/svg.hpp>
#include <cantle/report/table.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace cantle::cli {
namespace {

void print(std::string const& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

void run(show_command const& c) {
    if (!c.svg_file.empty() && c.graph.empty())
        throw error(error_code::bad_option, "--svg", "the picture needs the graph", "add --graph GRAPH");
    output_files files;
    if (!c.svg_file.empty()) files.reserve(c.svg_file);
    auto const plan = read_plan_json(c.plan);
    std::optional<training_graph> graph;
    if (!c.graph.empty()) {
        graph = read_graph(c.graph);
        refuse_foreign(plan, *graph, plan.mesh);
    }
    if (!c.svg_file.empty()) {
        files.set(c.svg_file, layer_svg(plan, *graph));
        files.commit();
    }
    run_report report;
    report.plan = &plan;
    report.graph = graph ? &*graph : nullptr;
    print(c.json ? report_json(report) : report_text(report));
}

void run(graph_command const& c) { print(graph_text(read_graph(c.graph))); }

void run(clusters_command const&) {
    std::string text;
    for (auto const& c : known_clusters()) text += (text.empty() ? "" : "\n") + c.describe();
    print(text);
}

}  // namespace cantle::cli
