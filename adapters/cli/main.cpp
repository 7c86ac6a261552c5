// SPDX-License-Identifier: BSL-1.0
// The program `cantle`. Exit status: 0 done, 2 bad input (one numbered line on stderr), 1 a fault of the program itself.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/standard_output.hpp>

#include <cantle/base/error.hpp>
#include <cantle/report/figures.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>

#ifndef CANTLE_VERSION
#define CANTLE_VERSION "0.0.0"
#endif

namespace {

/// CLI11's sentences end in a full stop or span lines; ours are one line, and names in it cannot steer the terminal.
std::string one_line(std::string s) {
    for (char& c : s)
        if (c == '\n' || c == '\r') c = ' ';
    while (!s.empty() && (s.back() == '.' || s.back() == ' ')) s.pop_back();
    return cantle::visible_text(s);
}

/// CLI11 takes a number beyond 64 bits for the largest that fits.
std::string fits_64_bits(std::string const& text) {
    std::int64_t value = 0;
    auto const end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc::result_out_of_range ? text + " is beyond 64 bits" : "";
}

bool is_command(CLI::App const& app, std::string const& name) {
    for (auto const* sub : app.get_subcommands({}))
        if (sub->get_name() == name) return true;
    return false;
}

/// "capture, models, ... or clusters".
std::string commands_of(CLI::App const& app) {
    auto const all = app.get_subcommands({});
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + all[i]->get_name();
    return text;
}

/// A file to write. An empty name is a name, not an absent option: output_files refuses it.
void add_file(CLI::App& app, std::string const& names, std::optional<std::string>& file, std::string const& what) {
    app.add_option_function<std::string>(names, [&file](std::string const& name) { file = name; }, what)->type_name("FILE");
}

void describe_plan(CLI::App& app, cantle::cli::plan_command& c) {
    app.add_option("GRAPH", c.graph, "graph file as `cantle capture` writes it; - reads stdin")->required()->type_name("FILE");
    app.add_option("--mesh", c.mesh, "mesh sizes, outermost axis first: 8 or 4x8")->required()->type_name("SIZES");
    app.add_option("--names", c.names, "one name per mesh axis, as in dp,tp (default: a0,a1,...)")->type_name("NAMES");
    app.add_option("--cluster", c.cluster, "machine under the mesh; see `cantle clusters`")->capture_default_str()->type_name("NAME");
    add_file(app, "-o,--output", c.plan_file, "write the plan to this file");
    add_file(app, "--svg", c.svg_file, "draw one layer into this file");
    app.add_flag("--json", c.json, "report for machines on stdout (docs/cli.md lists the keys)");
    app.add_option("--inputs", c.inputs, "layout of inputs and targets, or free (default: S0 on the first axis)")->type_name("LAYOUT");
    app.add_option(
           "--outputs", c.outputs,
           "layout of outputs, or free (default: free; graphs of recipe table3: S0 on the first axis, last dim on the last of several)")
        ->type_name("LAYOUT");
    app.add_option("--parameters", c.parameters, "storage of parameters: fully_sharded, replicated or free")
        ->capture_default_str()
        ->type_name("HOW");
    app.add_option("--replica-axes", c.replica_axes, "axes on which parameters stay whole, as in dp (default: none)")->type_name("NAMES");
    app.add_option("--pin", c.pins, "the tensor of that name lies so; * stands for any text; may be repeated")
        ->type_name("NAME=LAYOUT")->take_all()->expected(1)->delimiter('\0');
    app.add_flag("!--no-clustering", c.clustering, "let every copy of a layer decide for itself (default: copies share a decision)");
    app.add_flag("--polish", c.polish, "then let every copy decide for itself, with a bound of that problem (slower)");
    app.add_option("--seed-radius", c.seed_radius,
                   "only strategies that differ from the optimum of each axis alone on at most N axes (default: all strategies)")
        ->type_name("N")
        ->check(CLI::Validator(fits_64_bits, "", ""));
    app.add_option("--gap", c.gap, "stop once (objective - bound) / objective is at most this (default: 0)")->type_name("SHARE");
    app.add_option("--max-sweeps", c.max_sweeps, "most sweeps of the solver (default: 2000)")
        ->type_name("N")
        ->check(CLI::Validator(fits_64_bits, "", ""));
    app.add_option("--tie-break", c.tie_break, "microseconds per edge whose layouts differ (default: 1)")->type_name("US");
    app.add_option("--cost-set", c.cost,
                   "compute_efficiency, memory_efficiency, copy_efficiency (default: 0.7 each), causal=full|kept_pairs")
        ->type_name("KEY=VALUE")
        ->take_all()
        ->expected(1)
        ->delimiter('\0');
    app.add_option("--budget", c.budgets,
                   "a GPU holds at most so much of parameters, optimizer, saved_activations, kept_weights (40GB, 512MiB, bytes), or "
                   "parameter_ratio (0.05); may be repeated")
        ->type_name("NAME=SIZE")
        ->take_all()
        ->expected(1)
        ->delimiter('\0');
    app.add_option("--optimizer-factor", c.optimizer_factor, "bytes of optimizer state per byte of parameter (default: 2)")->type_name("X");
    app.add_flag("--uneven", c.uneven, "allow shards that are not equal, where an axis does not divide a dim (default: equal ones only)");
    app.add_option("--fallback", c.fallback, "ops that no rule covers: none (an error that lists them) or replicate (whole on every rank)")
        ->capture_default_str()
        ->type_name("HOW");
    app.footer("Layouts have one placement per mesh axis: R (whole), S<dim> (cut along that dim), as in S0,R.");
}

void describe_timeline(CLI::App& app, cantle::cli::timeline_command& c) {
    app.add_option("PLAN", c.plan, "plan file as `cantle plan -o` writes it")->required()->type_name("FILE");
    app.add_option("GRAPH", c.graph, "the graph it was made for; - reads stdin")->required()->type_name("FILE");
    app.add_option("--rank", c.rank, "whose program")->capture_default_str()->type_name("N");
    app.add_option("--cluster", c.cluster, "machine under the mesh (default: the one of the plan's prices, else h100)")->type_name("NAME");
    add_file(app, "--trace", c.trace_file, "write the run for chrome://tracing or ui.perfetto.dev");
    app.add_option("--streams", c.streams, "collectives run on one stream, or on one per_communicator")
        ->capture_default_str()
        ->type_name("HOW");
    app.add_flag("--serial", c.serial, "one step after the other, nothing overlaps: what the plan's objective adds up");
    app.add_flag("--json", c.json, "figures for machines on stdout (docs/cli.md lists the keys)");
}

int run(int argc, char** argv) {
    using namespace cantle::cli;
    CLI::App app("Plans how a training graph is sharded over a device mesh, and proves how good the plan is.", "cantle");
    app.set_version_flag("--version", std::string("cantle ") + CANTLE_VERSION);
    app.require_subcommand(1);

    // Everything behind these belongs to cantle-libtorch, --help included; they stand here for the list of commands only.
    app.add_subcommand("capture", "record a model's training graph without a GPU: capture MODEL --batch N --seq N -o FILE");
    app.add_subcommand("models", "the example models that capture knows, with their sizes");
    app.add_subcommand("check-rules", "prove the sharding rules on numbers: check-rules [--op NAME] [--json] [--all]");
    app.add_subcommand("verify", "run a small instance of a planned model on thread ranks: verify PLAN GRAPH [--ranks N] [--json]");

    plan_command plan;
    auto* plan_app = app.add_subcommand("plan", "plan a graph on a mesh; report, plan file and picture");
    describe_plan(*plan_app, plan);

    show_command show;
    auto* show_app = app.add_subcommand("show", "the report of a plan that was written");
    show_app->add_option("PLAN", show.plan, "plan file as `cantle plan -o` writes it")->required()->type_name("FILE");
    show_app->add_option("--graph", show.graph, "the graph it was made for; adds projections and patterns")->type_name("GRAPH");
    add_file(*show_app, "--svg", show.svg_file, "draw one layer into this file (needs --graph)");
    show_app->add_flag("--json", show.json, "report for machines on stdout");
    show_app->add_option("--program", show.program_of_rank, "the program that this rank runs, instead of the report (needs --graph)")
        ->type_name("RANK");

    timeline_command timeline;
    auto* timeline_app = app.add_subcommand("timeline", "predicted run of one rank: step time, exposed communication, peak memory");
    describe_timeline(*timeline_app, timeline);

    graph_command graph;
    auto* graph_app = app.add_subcommand("graph", "what a graph holds: roles, ops, modules");
    graph_app->add_option("GRAPH", graph.graph, "graph file; - reads stdin")->required()->type_name("FILE");

    solve_command solve;
    auto* solve_app =
        app.add_subcommand("solve", "the optimum of a problem in a file, with its proof: ap-instance-1 or cantle-factor-graph");
    solve_app->add_option("INSTANCE", solve.instance, "problem file, also compressed by xz; - reads stdin")->required()->type_name("FILE");
    solve_app->add_option("--solver", solve.solver, "cantle, highs (the exact 0-1 program), or elimination (exact bucket elimination)")
        ->capture_default_str()
        ->type_name("NAME");
    solve_app->add_flag("!--unclustered", solve.clustered, "let copies of a layer decide for themselves");
    solve_app->add_option("--time-limit", solve.time_limit, "end after so many seconds of solving with the best found and its bound")
        ->type_name("S");
    solve_app->add_option("--gap", solve.gap, "stop once (objective - bound) / objective is at most this (default: 0)")->type_name("SHARE");
    solve_app->add_flag("--reduce", solve.reduce, "reduce the graph exactly before the solver sees it (cantle always does)");
    add_file(*solve_app, "-o,--output", solve.solution_file, "write the solution to this file");
    add_file(*solve_app, "--evaluate", solve.evaluate, "solve nothing: the objective of the solution or labels in this file");
    add_file(*solve_app, "--export", solve.export_file, "solve nothing: write the problem as .cfn (toulbar2) or .json (factor graph)");
    solve_app->add_flag("--json", solve.json, "result for machines on stdout, with the strategy of every node");

    auto* clusters_app = app.add_subcommand("clusters", "the machines that are known, with all figures");

    try {
        std::string const command = argc > 1 ? argv[1] : "";
        if (command == "capture" || command == "models" || command == "check-rules" || command == "verify")
            run(libtorch_command{{argv + 1, argv + argc}});
        if (!command.empty() && command[0] != '-' && !is_command(app, command))
            throw cantle::error(cantle::error_code::bad_option, "command '" + command + "'", "there is no such command",
                                "use " + commands_of(app));
        app.parse(argc, argv);
    } catch (CLI::Success const& e) {
        return app.exit(e);
    } catch (CLI::ParseError const& e) {
        auto const* at = &app;
        for (auto const* sub : app.get_subcommands()) at = sub;
        std::string const failed = at == &app ? "cantle" : "cantle " + at->get_name();
        throw cantle::error(cantle::error_code::bad_option, "command line", one_line(e.what()), "see `" + failed + " --help`");
    }
    if (plan_app->parsed()) run(plan);
    else if (show_app->parsed()) run(show);
    else if (timeline_app->parsed()) run(timeline);
    else if (graph_app->parsed()) run(graph);
    else if (solve_app->parsed()) run(solve);
    else if (clusters_app->parsed()) run(clusters_command{});
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error code of the write, not the end of the process with files half done
    try {
        int const status = run(argc, argv);
        cantle::cli::print("");  // what CLI11 printed
        return status;
    } catch (cantle::error const& e) {
        std::fprintf(stderr, "%s\n", one_line(e.what()).c_str());
        return 2;
    } catch (std::bad_alloc const&) {
        std::fputs("cantle error 503: this command: the memory does not suffice. Remedy: plan on a mesh of fewer axes, let copies share a "
                   "decision (no --no-clustering), or give the process more memory\n",
                   stderr);
        return 2;
    } catch (std::exception const& e) {
        std::fprintf(stderr, "cantle: internal fault: %s\n", e.what());
        return 1;
    }
}
