// SPDX-License-Identifier: BSL-1.0
// `cantle plan`: graph in; plan, picture and report out.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/input.hpp>
#include <adapters/cli/output_files.hpp>
#include <adapters/cli/standard_output.hpp>

#include <cantle/base/peak_memory.hpp>
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/plan/plan_json.hpp>
#include <cantle/planner.hpp>
#include <cantle/report/report_json.hpp>
#include <cantle/report/svg.hpp>
#include <cantle/report/table.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace cantle::cli {
namespace {

/// One line on stderr that is overwritten; silent unless stderr is a terminal.
class progress_line {
public:
    progress_line() : terminal_(::isatty(STDERR_FILENO) == 1) {}
    progress_line(progress_line const&) = delete;
    progress_line& operator=(progress_line const&) = delete;
    ~progress_line() { clear(); }
    void say(std::string const& text) {
        if (!terminal_) return;
        std::fprintf(stderr, "\r\033[K%s", text.c_str());
        std::fflush(stderr);
        shown_ = true;
    }
    void clear() {
        if (shown_) std::fputs("\r\033[K", stderr);
        shown_ = false;
    }

private:
    bool terminal_, shown_ = false;
};

error bad_option(std::string subject, std::string problem, std::string remedy) {
    return {error_code::bad_option, std::move(subject), std::move(problem), std::move(remedy)};
}

/// "key=value" into its halves, at the first '=': layouts may hold one more.
std::pair<std::string, std::string> halves(std::string const& text, char const* option, char const* form) {
    auto const at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size())
        throw bad_option(std::string(option) + " '" + text + "'", std::string("it is not of the form ") + form, "write it so");
    return {text.substr(0, at), text.substr(at + 1)};
}

double number(std::string const& text, std::string const& option) {
    double v = 0;
    auto const end = std::from_chars(text.data(), text.data() + text.size(), v);
    if (end.ec != std::errc{} || end.ptr != text.data() + text.size() || !(v > 0) || !(v < 1e300))
        throw bad_option(option, "'" + text + "' is no number above 0", "write it as in 0.7");
    return v;
}

boundary boundary_of(plan_command const& c, device_mesh const& mesh, training_graph const& g, std::string& outputs_note) {
    boundary b;
    b.inputs = c.inputs;
    b.outputs = c.outputs;
    if (c.parameters == "replicated") b.parameters = parameter_storage::replicated;
    else if (c.parameters == "free") b.parameters = parameter_storage::free;
    else if (c.parameters != "fully_sharded")
        throw bad_option("--parameters '" + c.parameters + "'", "there is no such storage", "use fully_sharded, replicated or free");
    if (!c.replica_axes.empty())
        for (auto const& name : detail::split_text(c.replica_axes, ',')) {
            mesh.find(name);
            b.replica_axes.push_back(name);
        }
    for (auto const& p : c.pins) {
        auto const [name, text] = halves(p, "--pin", "NAME=LAYOUT");
        b.pins.push_back({name, text});
    }
    if (c.outputs.empty() && g.origin.recipe == "table3") {
        // DECISIONS 17: the published runs shard the logits over the batch, and over the vocabulary on the last of several axes.
        std::size_t rank = 0;
        for (auto const& n : g.nodes)
            if (n.role == node_role::output) rank = std::max(rank, n.outputs[0].rank());
        std::vector<placement> per_axis(mesh.dims());
        per_axis[0] = placement::shard(0);
        if (mesh.dims() >= 2 && rank > 0) per_axis.back() = placement::shard(rank - 1);
        b.outputs = layout::from_placements(mesh, per_axis).text(mesh);
        outputs_note = b.outputs + ", as recipe table3 has it";
    }
    return b;
}

/// "40GB", "512MiB", "1e9": bytes.
double size_of(std::string const& text, std::string const& option) {
    double v = 0;
    auto const end = std::from_chars(text.data(), text.data() + text.size(), v);
    std::string const unit(end.ptr, text.data() + text.size());
    std::pair<char const*, double> const units[] = {{"", 1},     {"B", 1},         {"kB", 1e3},      {"KB", 1e3},      {"MB", 1e6},
                                                    {"GB", 1e9}, {"TB", 1e12},     {"KiB", 0x1p10},  {"MiB", 0x1p20},  {"GiB", 0x1p30},
                                                    {"TiB", 0x1p40}};
    for (auto const& [name, factor] : units)
        if (unit == name && end.ec == std::errc{} && v >= 0 && v * factor < 1e18) return std::floor(v * factor);
    throw bad_option(option, "'" + text + "' is no size", "write bytes, or a number with kB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 40GB");
}

std::vector<budget> budgets_of(plan_command const& c) {
    std::vector<budget> list;
    for (auto const& text : c.budgets) {
        auto const [name, value] = halves(text, "--budget", "NAME=SIZE");
        auto const what = "--budget " + name;
        budget b{name, 0, 0, {}, {}};
        if (name == "optimizer" && c.optimizer_factor) b.factor = *c.optimizer_factor;
        if (name == "parameter_ratio") b.limit = number(value, what);
        else if (std::find(budget_names.begin(), budget_names.end(), name) != budget_names.end()) b.limit = size_of(value, what);
        list.push_back(std::move(b));
    }
    if (c.optimizer_factor && !(*c.optimizer_factor > 0 && *c.optimizer_factor < 1e6))
        throw bad_option("--optimizer-factor", "it is no number above 0", "give bytes of optimizer state per byte of parameter, as in 2");
    check_budgets(list);
    return list;
}

standard_cost_options cost_options_of(plan_command const& c) {
    standard_cost_options o;
    for (auto const& text : c.cost) {
        auto const [key, value] = halves(text, "--cost-set", "KEY=VALUE");
        auto const what = "--cost-set " + key;
        if (key == "compute_efficiency") o.compute.compute_efficiency = number(value, what);
        else if (key == "memory_efficiency") o.compute.memory_efficiency = number(value, what);
        else if (key == "copy_efficiency") o.collectives.memory_efficiency = number(value, what);
        else if (key == "causal" && value == "full") o.compute.causal = causal_count::full;
        else if (key == "causal" && value == "kept_pairs") o.compute.causal = causal_count::kept_pairs;
        else
            throw bad_option(what, key == "causal" ? "'" + value + "' is no way to count causal attention" : "there is no such figure",
                             "use compute_efficiency, memory_efficiency, copy_efficiency (numbers), or causal=full|kept_pairs");
    }
    return o;
}

std::vector<reported_option> options_of(plan_command const& c, plan_options const& o, std::string const& outputs_note) {
    std::vector<reported_option> list;
    auto const shortest = [](double v) {
        char buffer[40];
        return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
    };
    list.push_back({"cluster", c.cluster, c.cluster == plan_command{}.cluster});
    list.push_back({"mesh axis names", c.names.empty() ? "a0, a1, ..." : c.names, c.names.empty()});
    if (!outputs_note.empty()) list.push_back({"outputs", outputs_note, true});
    list.push_back({"clustering", c.clustering ? "on" : "off", c.clustering});
    list.push_back({"polish", o.polish ? "on" : "off", !c.polish});
    list.push_back({"strategies", o.seed_radius ? "within " + std::to_string(*o.seed_radius) + " axes of the seeds" : "all",
                    !o.seed_radius});
    list.push_back({"tie-break", shortest(o.tie_break) + " us for every edge whose layouts differ", !c.tie_break});
    list.push_back({"gap to stop at", shortest(o.relative_gap) + (o.relative_gap == 0 ? ", go on to the optimum" : ""), !c.gap});
    list.push_back({"most sweeps", std::to_string(o.max_sweeps), !c.max_sweeps});
    for (auto const& cost : c.cost) list.push_back({"cost", cost, false});
    list.push_back({"uneven shards", o.uneven ? "allowed" : "off", !o.uneven});
    list.push_back({"ops without a rule", o.fallback == rule_fallback::none ? "an error" : "whole on every rank",
                    o.fallback == rule_fallback::none});
    if (c.cost.empty()) list.push_back({"cost", "standard (roofline compute, alpha-beta collectives)", true});
    return list;
}

}  // namespace

void run(plan_command const& c) {
    // All that can be wrong without the graph comes first, then the places of the outputs: nobody waits for a plan that cannot be written.
    auto const mesh = device_mesh::parse(c.mesh, c.names);
    auto const machine = find_cluster(c.cluster);
    standard_cost_model const cost(mesh, machine, cost_options_of(c));
    auto budgets = budgets_of(c);
    output_files files;
    files.keep(c.graph);
    if (c.plan_file) files.reserve("--output", *c.plan_file);
    if (c.svg_file) files.reserve("--svg", *c.svg_file);

    progress_line progress;
    stage_clock clock;
    clock.enter("read");
    progress.say("reading " + c.graph);
    auto const graph = read_graph(c.graph);
    clock.leave();

    plan_options options;
    std::string outputs_note;
    options.boundary = boundary_of(c, mesh, graph, outputs_note);
    options.clustering = c.clustering;
    if (c.polish && !c.clustering)
        throw bad_option("--polish", "with --no-clustering every copy decides for itself from the start", "leave one of them out");
    options.polish = c.polish;
    if (c.seed_radius) {
        if (*c.seed_radius < 0) throw bad_option("--seed-radius " + std::to_string(*c.seed_radius), "it is below 0", "give at least 0");
        if (c.polish)
            throw bad_option("--seed-radius", "--polish would leave the seeds behind", "leave one of them out");
        options.seed_radius = static_cast<std::size_t>(*c.seed_radius);
    }
    options.uneven = c.uneven;
    options.budgets = std::move(budgets);
    if (c.fallback == "replicate") options.fallback = rule_fallback::replicate;
    else if (c.fallback != "none")
        throw bad_option("--fallback '" + c.fallback + "'", "there is no such fallback", "use none or replicate");
    options.tie_break = c.tie_break.value_or(options.tie_break);
    options.relative_gap = c.gap.value_or(options.relative_gap);
    if (c.max_sweeps) {
        if (*c.max_sweeps < 1) throw bad_option("--max-sweeps " + std::to_string(*c.max_sweeps), "it is below 1", "give at least 1");
        options.max_sweeps = static_cast<std::size_t>(*c.max_sweeps);
    }
    if (!(options.tie_break >= 0) || !(options.tie_break < 1e300))
        throw bad_option("--tie-break", "it is negative or not finite", "give microseconds, 0 or more");
    if (!(options.relative_gap >= 0) || !(options.relative_gap < 1))
        throw bad_option("--gap", "it is not within [0, 1)", "give a share as in 1e-4");

    control limits;
    auto last = std::chrono::steady_clock::now();
    limits.progress = [&](progress_event const& e) {
        auto const now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(100)) return;
        last = now;
        std::string text = std::string(e.stage) + " " + std::to_string(e.done) + (e.total ? " of " + std::to_string(e.total) : "");
        if (e.bound != 0 || e.energy != 0)
            text += ": bound " + microseconds_text(e.bound) + ", best " + microseconds_text(e.energy) + " us";
        progress.say(text);
    };
    progress.say("planning " + std::to_string(graph.size()) + " vertices on " + mesh.text());
    planning_statistics statistics;
    auto const result = plan(graph, mesh, standard_rules(), cost, options, limits, &statistics);

    clock.enter("write");
    if (c.plan_file) files.set(*c.plan_file, plan_to_json(result, &graph));
    if (c.svg_file) files.set(*c.svg_file, layer_svg(result, graph));
    files.prepare();
    clock.leave();
    progress.clear();

    run_report report;
    report.plan = &result;
    report.graph = &graph;
    report.machine = &machine;
    report.statistics = &statistics;
    report.seconds = {clock.stages()[0]};
    for (auto const& s : statistics.clock.stages()) report.seconds.push_back(s);
    report.seconds.push_back(clock.stages()[1]);
    report.peak_bytes = peak_memory().count;
    report.options = options_of(c, options, outputs_note);
    auto text = c.json ? report_json(report) : report_text(report);
    if (!c.json) {
        if (c.plan_file) text += "\nplan written to " + visible_text(*c.plan_file) + "\n";
        if (c.svg_file) text += (c.plan_file ? "" : "\n") + ("picture written to " + visible_text(*c.svg_file)) + "\n";
    }
    print(text);
    files.commit();
}

}  // namespace cantle::cli
