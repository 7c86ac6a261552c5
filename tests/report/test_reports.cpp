// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/report/graph_table.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/svg.hpp>
#include <cantle/report/table.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <doctest/doctest.h>

#include "../graph/residual_mlp.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace cantle;
using cantle::test::residual_mlp;

namespace {

device_mesh const mesh = device_mesh::parse("4x8", "dp,tp");

sharding_plan plan_of(training_graph const& g, plan_options const& options = {}, device_mesh const& m = mesh) {
    return plan(g, m, standard_rules(), standard_cost_model(m, h100_cluster()), options);
}

run_report report_of(sharding_plan const& p, training_graph const& g) {
    run_report r;
    r.plan = &p;
    r.graph = &g;
    return r;
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

// One projection y = x w with the given layouts around it, placed on a plan by hand; what pattern_on reads of them.
axis_pattern pattern_of(std::string const& x_from, std::string const& x, std::string const& stored, std::string const& used,
                        std::string const& y, std::string const& y_to, std::size_t axis, std::string const& grad = "") {
    auto const g = residual_mlp(1, 512);
    auto p = plan_of(g);
    plan_view const view(p, g);
    auto projection = find_projections(view)[0].variants[0].first;
    auto const add = [&p](std::string const& text) {
        p.layouts.push_back(layout::parse(mesh, text));
        return static_cast<plan_layout>(p.layouts.size() - 1);
    };
    auto& l = projection.layouts;
    l.x_from = add(x_from);
    l.x = l.x_kept = add(x);
    l.stored = add(stored);
    l.used = l.weight_kept = add(used);
    l.y = add(y);
    l.y_to = add(y_to);
    l.to_weight.reset();
    if (!grad.empty()) l.to_weight = {l.y, l.x, add(grad), l.stored};
    return pattern_on(view, projection, axis);
}

}  // namespace

TEST_CASE("The patterns of Table 1 are recognised from layouts alone") {
    // Table 1 of arXiv 2611.08660 has weights as [K, N]; here they are stored as [N, K], so its S1 is our S0.
    auto const data_parallel = pattern_of("S0,R", "S0,R", "R,R", "R,R", "S0,R", "S0,R", 0, "P,R");
    CHECK(data_parallel.name == "data parallel");
    CHECK(contains(data_parallel.detail, "gradient all-reduced"));
    auto const fsdp = pattern_of("S0,R", "S0,R", "S0,R", "R,R", "S0,R", "S0,R", 0, "P,R");
    CHECK(fsdp.name == "FSDP");
    CHECK(fsdp.detail == "weight S0 gathered, x S0, gradient reduce-scattered");
    CHECK(pattern_of("S0,R", "S0,R", "R,S0", "R,S0", "S0,S2", "S0,S2", 1).name == "column TP");
    auto const row = pattern_of("S0,S2", "S0,S2", "R,S1", "R,S1", "S0,P", "S0,R", 1);
    CHECK(row.name == "row TP");
    CHECK(contains(row.detail, "y all-reduced"));
    CHECK(pattern_of("S0,S1", "S0,R", "S0,S0", "R,S0", "S0,S2", "S0,S2", 1).name == "column TP + sequence parallel");
    CHECK(pattern_of("S0,S2", "S0,S2", "S0,S1", "R,S1", "S0,P", "S0,S1", 1).name == "row TP + sequence parallel");
    CHECK(pattern_of("S0,S1", "S0,S1", "S0,S0", "R,R", "S0,S1", "S0,S1", 1).name == "FSDP, sequence-sharded");
    CHECK(pattern_of("R,R", "R,R", "R,R", "R,R", "R,R", "R,R", 0).name == "replicated");
}

TEST_CASE("A wide model on one axis is planned as FSDP, and the report says so") {
    auto const g = residual_mlp(3, 1024);
    auto const one_axis = device_mesh::parse("8", "dp");
    auto const p = plan_of(g, {}, one_axis);
    auto const text = report_text(report_of(p, g));
    CHECK(contains(text, "plan of mlp (batch 64, sequence 128, bf16, recipe train)"));
    CHECK(contains(text, "mesh 8 (dp): 8 GPUs"));
    CHECK(contains(text, "dp: 6 FSDP"));
    CHECK(contains(text, "weight gradients"));
    CHECK(contains(text, "inputs and targets: S0 (default)"));
    CHECK(contains(text, "the bound is of the problem: clustered"));
}

TEST_CASE("Without the graph a report leaves out what it cannot know") {
    auto const g = residual_mlp(2, 512);
    auto const p = plan_of(g);
    run_report r;
    r.plan = &p;
    auto const text = report_text(r);
    CHECK(contains(text, "objective"));
    CHECK_FALSE(contains(text, "projections"));
    CHECK_FALSE(contains(text, "seconds:"));
}

TEST_CASE("Every projection is found once, with its gradients, and pinned copies are kept apart") {
    auto const g = residual_mlp(3, 512);
    plan_options options;
    options.boundary.pins = {{"layers.1.w1.weight", "R,R"}};
    auto const p = plan_of(g, options);
    plan_view const view(p, g);
    auto const roles = find_projections(view);
    REQUIRE(roles.size() == 2);
    CHECK(roles[0].name == "layers.*.w1.weight");
    CHECK(roles[1].name == "layers.*.w2.weight");
    CHECK(roles[0].count() == 3);
    CHECK(roles[1].count() == 3);
    REQUIRE(roles[0].variants.size() >= 2);
    CHECK(roles[0].variants[0].second >= roles[0].variants[1].second);
    std::size_t replicated = 0;
    for (auto const& role : roles)
        for (auto const& [projection, count] : role.variants) {
            CHECK(projection.layouts.to_weight.has_value());
            CHECK(projection.layouts.to_input.has_value());
            if (p.at(projection.layouts.stored).is_replicated()) replicated += count;
        }
    CHECK(replicated == 1);
}

TEST_CASE("The collectives of a report add up to the communication of the plan") {
    for (auto const* sizes : {"8", "4x8", "2x2x2"}) {
        CAPTURE(sizes);
        auto const g = residual_mlp(2, 1024);
        auto const p = plan_of(g, {}, device_mesh::parse(sizes));
        plan_view const view(p, g);
        for (auto const* v : {static_cast<plan_view const*>(nullptr), &view}) {
            double sum = 0;
            std::size_t steps = 0, expected = 0;
            for (auto const& row : sum_collectives(p, v)) {
                sum += row.cost;
                steps += row.count;
            }
            for (auto const& m : p.moves) expected += p.paths[m.path].steps.size();
            for (auto const& n : p.nodes) expected += n.inner.size();
            CHECK(sum == doctest::Approx(p.cost.communication()));
            CHECK(steps == expected);
        }
    }
}

TEST_CASE("Machines read the same figures as people") {
    auto const g = residual_mlp(2, 512);
    auto const p = plan_of(g);
    auto r = report_of(p, g);
    r.seconds = {{"read", 0.25}, {"solve", 0.5}};
    r.peak_bytes = 12345;
    r.options = {{"clustering", "on", true}};
    auto const j = nlohmann::json::parse(report_json(r));
    CHECK(j["format"] == "cantle-report");
    CHECK(j["objective"] == p.objective);
    CHECK(j["bound"] == p.bound);
    CHECK(j["gap"] == p.gap());
    CHECK(j["status"] == "optimal");
    CHECK(j["seconds"]["read"] == 0.25);
    CHECK(j["seconds"]["total"] == 0.75);
    CHECK(j["peak_bytes"] == 12345);
    CHECK(j["cost"]["total"] == p.cost.total());
    CHECK(j["cost"]["total"] == doctest::Approx(p.objective));
    CHECK(j["mesh"][1]["name"] == "tp");
    CHECK(j["mesh"][1]["size"] == 8);
    CHECK(j["memory"]["parameters_global"] == p.memory.parameters_global);
    CHECK(j["projections"].size() >= 2);
    CHECK(j["projections"][0]["patterns"].contains("dp"));
    CHECK(j["hashes"]["graph"] == p.made_from.graph.hex());
    CHECK(j["options"]["clustering"]["default"] == true);
    CHECK(j["constraints"].size() == p.constraints.size());
    double sum = 0;
    for (auto const& c : j["collectives"]) sum += c["microseconds"].get<double>();
    CHECK(sum == doctest::Approx(p.cost.communication()));
}

TEST_CASE("Two writings of a report or picture have the same bytes") {
    auto const g = residual_mlp(3, 512);
    auto const p = plan_of(g), q = plan_of(g);
    CHECK(report_text(report_of(p, g)) == report_text(report_of(q, g)));
    CHECK(report_json(report_of(p, g)) == report_json(report_of(q, g)));
    CHECK(layer_svg(p, g) == layer_svg(q, g));
}

TEST_CASE("The picture shows the second layer, its parameters and every move of its tensors") {
    auto const g = residual_mlp(3, 1024);
    CHECK(representative_layer(g) == "layers.1");
    CHECK(representative_layer(residual_mlp(1, 512)) == "layers.0");
    auto const p = plan_of(g);
    auto const svg = layer_svg(p, g);
    CHECK(svg.rfind("<svg xmlns=", 0) == 0);
    CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
    CHECK(contains(svg, "layers.1 on mesh 4x8 (dp, tp)"));
    CHECK(contains(svg, "weight, stored"));
    CHECK(contains(svg, "weight gradient"));
    CHECK(contains(svg, ">forward<"));
    CHECK(contains(svg, ">backward<"));
    std::size_t open = 0, close = 0;
    for (std::size_t at = 0; (at = svg.find("<text", at)) != std::string::npos; ++at) ++open;
    for (std::size_t at = 0; (at = svg.find("</text>", at)) != std::string::npos; ++at) ++close;
    CHECK(open == close);
    CHECK(open > 30);
}

TEST_CASE("Names with markup do not break the picture") {
    auto g = residual_mlp(2, 512);
    g.origin.model = "a<b>&c";
    auto const svg = layer_svg(plan_of(g), g);
    CHECK(contains(svg, "a&lt;b&gt;&amp;c"));
    CHECK_FALSE(contains(svg, "a<b>"));
}

TEST_CASE("A graph without list modules is drawn whole, an empty phase is left out") {
    graph_builder b;
    auto const x = b.input("x", {64, 512}, dtype::bfloat16);
    auto const w = b.parameter("w", {512, 512}, dtype::bfloat16);
    b.output(b.linear(x, w));
    auto const g = b.build();
    CHECK(representative_layer(g).empty());
    auto const svg = layer_svg(plan_of(g), g);
    CHECK(contains(svg, ">forward<"));
    CHECK_FALSE(contains(svg, ">backward<"));
}

// 0 -> 1 -> 3, 0 -> 2 -> 3, 0 -> 3 (past a row): no two boxes of a row overlap, edges run down, and the passage keeps off the boxes.
TEST_CASE("Boxes in rows do not overlap and edges pass beside them") {
    layered_drawing d;
    for (double w : {40.0, 100.0, 60.0, 80.0}) d.boxes.push_back({w, 20, 0, 0, 0});
    for (auto const& [from, to] : {std::pair<std::size_t, std::size_t>{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}})
        d.edges.push_back({from, to, {}});
    place_in_rows(d, 10, 30);
    CHECK(d.boxes[0].row == 0);
    CHECK(d.boxes[1].row == 1);
    CHECK(d.boxes[2].row == 1);
    CHECK(d.boxes[3].row == 2);
    CHECK(std::abs((d.boxes[1].x + d.boxes[1].width / 2) - (d.boxes[2].x + d.boxes[2].width / 2)) >= 80 + 10 - 1e-6);
    for (auto const& e : d.edges) CHECK(d.boxes[e.from].y + d.boxes[e.from].height < d.boxes[e.to].y);
    REQUIRE(d.edges[4].passages.size() == 1);
    double const x = d.edges[4].passages[0].x;
    for (std::size_t i : {1, 2}) CHECK((x < d.boxes[i].x || x > d.boxes[i].x + d.boxes[i].width));
    for (auto const& b : d.boxes) {
        CHECK(b.x >= -1e-9);
        CHECK(b.x + b.width <= d.width + 1e-9);
    }
}

TEST_CASE("Figures are written with groups, units and enough digits") {
    CHECK(count_text(std::int64_t{1234567}) == "1,234,567");
    CHECK(count_text(std::int64_t{-1234}) == "-1,234");
    CHECK(microseconds_text(311290.04) == "311,290.0");
    CHECK(bytes_text(512) == "512 B");
    CHECK(bytes_text(33554432) == "33.55 MB");
    CHECK(bytes_text(999) == "999 B");
    CHECK(percent_text(0) == "0 %");
    CHECK(percent_text(0.123) == "12.3 %");
    CHECK(percent_text(1e-5) == "0.001 %");
}

TEST_CASE("The summary of a graph counts roles, ops by phase, and modules") {
    auto const text = graph_text(residual_mlp(3, 512));
    CHECK(contains(text, "graph of mlp"));
    CHECK(contains(text, "aten::linear                      6         0"));
    CHECK(contains(text, "layers.*"));
}

TEST_CASE("Names that hold control characters cannot steer a terminal or break a line") {
    CHECK(visible_text("plain größe") == "plain größe");
    CHECK(visible_text("a\x1b[2Jb\nc\td\r\x7f") == "a\\x1b[2Jb\\nc\\td\\x0d\\x7f");
    CHECK(visible_text("\xc2\x9b" "2J") == "\\x9b2J");  // U+009B, what ESC [ is in one character
    auto g = residual_mlp(1, 512);
    g.origin.model = "evil\x1b]0;owned\x07\nmodel";
    g.origin.recipe = "\x1b[31m";
    for (auto& n : g.nodes) {
        n.name = n.name + "\x1b[1m";
        if (!n.module_path.empty()) n.module_path += "\x1b[2m\nmore";
    }
    auto const p = plan_of(g);
    auto r = report_of(p, g);
    r.options = {{"option\x1b[3m", "value\n", false}};
    for (auto const& text : {report_text(r), graph_text(g)}) {
        for (char c : text) CHECK((c == '\n' || static_cast<unsigned char>(c) >= 0x20));
        CHECK(contains(text, "evil\\x1b]0;owned\\x07\\nmodel"));
    }
}

TEST_CASE("Every status of a solver has words of its own in the report") {
    auto const g = residual_mlp(1, 512);
    auto p = plan_of(g);
    std::vector<std::string> seen;
    for (auto s : all_solve_statuses) {
        p.status = s;
        auto const text = report_text(report_of(p, g));
        auto const at = text.find("status " + std::string(to_string(s)) + ": ");
        REQUIRE(at != std::string::npos);
        auto const words = text.substr(text.find(": ", at) + 2, text.find('\n', at) - text.find(": ", at) - 2);
        CHECK(words.size() > 10);
        for (auto const& w : seen) CHECK(w != words);
        seen.push_back(words);
    }
    p.status = solve_status::stalled;
    CHECK(contains(report_text(report_of(p, g)), "more sweeps do not help"));
}
