// SPDX-License-Identifier: BSL-1.0
// `cantle solve`: a problem from a file, its optimum and the proof of it; or its energy under given labels, or its export for others.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/output_files.hpp>
#include <adapters/cli/problem_file.hpp>
#include <adapters/cli/standard_output.hpp>
#ifdef CANTLE_HAS_HIGHS
#include <adapters/highs/highs_solver.hpp>
#endif

#include <cantle/base/peak_memory.hpp>
#include <cantle/base/stage_clock.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/lagrangian.hpp>
#include <cantle/mrf/cost_function_network.hpp>
#include <cantle/mrf/factor_graph_json.hpp>
#include <cantle/mrf/reductions.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/report/figures.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle::cli {
namespace {

using steady = std::chrono::steady_clock;

mrf::solve_result with_highs([[maybe_unused]] mrf::factor_graph const& g, [[maybe_unused]] double gap,
                             [[maybe_unused]] control const& limits) {
#ifdef CANTLE_HAS_HIGHS
    if (mrf::magnitude(g) >= 1e19)
        throw error(error_code::bad_field, "costs", "they add up to 1e19 and more, and HiGHS takes 1e20 for infinity", "scale them down");
    return highs::solve(g, {.relative_gap = gap}, limits);
#else
    throw error(error_code::adapter_missing, "--solver highs", "this program was built without HiGHS",
                "./dev build installs the wheel highsbox and builds the program with it");
#endif
}

/// In plain floating point: the bound is the optimum up to rounding of the sums. Stops at the deadline without a result.
mrf::solve_result with_elimination(mrf::factor_graph const& g, control const& limits) {
    if (!(mrf::magnitude(g) < 1e300)) throw error(error_code::bad_field, "costs", "too large to add up", "scale them down");
    auto const plan = mrf::plan_elimination(g, 1e9, 1e11);
    if (!plan)
        throw error(error_code::out_of_memory, "--solver elimination", "the tables of this graph are too large to eliminate",
                    "use --solver cantle, or --reduce");
    auto exact = mrf::bucket_elimination(g, *plan, 0, limits);
    mrf::solve_result result;
    if (exact.stopped) {
        result.status = solve_status::stopped;
        return result;
    }
    result.energy = result.lower_bound = exact.energy;
    if (exact.energy != mrf::forbidden) result.energy = mrf::energy(g, exact.labels);
    result.lower_bound = std::min(result.lower_bound, result.energy);  // both are rounded where they are added up
    result.status = exact.energy == mrf::forbidden ? solve_status::infeasible : solve_status::optimal;
    result.labels = std::move(exact.labels);
    return result;
}

mrf::solve_result with(solve_command const& c, mrf::factor_graph const& g, control const& limits) {
    if (c.solver == "highs") return with_highs(g, c.gap.value_or(0), limits);
    if (c.solver == "elimination") return with_elimination(g, limits);
    mrf::solve_options options;
    options.relative_gap = c.gap.value_or(0);
    return mrf::solve(g, options, limits);
}

/// The same on the exactly reduced graph. In plain floating point, which leaves its rounding in the bound.
mrf::solve_result reduced_with(solve_command const& c, mrf::factor_graph const& g, control const& limits) {
    mrf::reduction const reduced(g);
    mrf::solve_result result;
    if (reduced.infeasible()) {
        result.lower_bound = mrf::forbidden;
        result.status = solve_status::infeasible;
        return result;
    }
    result = with(c, reduced.graph(), limits);
    result.lower_bound += reduced.constant();
    if (result.labels.empty() && reduced.graph().variable_count() > 0) return result;
    if (result.status == solve_status::infeasible) return result;
    result.labels = reduced.reconstruct(result.labels);
    result.energy = mrf::energy(g, result.labels);
    result.lower_bound = std::min(result.lower_bound, result.energy);
    return result;
}

/// A problem whose "memory" limits a sum.
mrf::solve_result within_budgets(problem_file const& p, solve_command const& c, control const& limits) {
    if (c.solver != "cantle" || c.reduce)
        throw error(error_code::bad_option, c.reduce ? "--reduce" : "--solver " + c.solver,
                    "constraints.memory limits a sum over all parameters here, and only --solver cantle keeps that", "leave it out");
    mrf::budget_options options;
    options.inner.relative_gap = c.gap.value_or(0);
    auto r = mrf::solve_with_budgets(p.graph, p.instance->budgets, options, limits);
    if (r.status == solve_status::infeasible && r.stats.evaluations > 1)
        throw error(error_code::unsatisfiable_constraint, p.name + ": constraints.memory",
                    "no labelling keeps memory.low and memory.high together with the other constraints", "move the limits");
    mrf::solve_result result;
    result.labels = std::move(r.labels);
    result.energy = r.energy;
    result.lower_bound = r.lower_bound;
    result.status = r.status;
    result.stats = r.stats.first;
    return result;
}

struct outcome {
    mrf::solve_result result;
    double until_best = 0;  // seconds from the start of solving
    bool allowed = true;    // of given labels: no forbidden pair
};

outcome solve_here(problem_file const& p, solve_command const& c) {
    control limits;
    auto const start = steady::now();
    auto const since = [&] { return std::chrono::duration<double>(steady::now() - start).count(); };
    if (c.time_limit) limits.deadline = start + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(*c.time_limit));
    outcome out;
    double best = mrf::forbidden;
    limits.progress = [&](progress_event const& e) {
        if ((e.stage != "trws" && e.stage != "highs") || !(e.energy < best)) return;
        best = e.energy;
        out.until_best = since();
    };
    if (p.instance && !p.instance->budgets.empty()) out.result = within_budgets(p, c, limits);
    else out.result = c.reduce ? reduced_with(c, p.graph, limits) : with(c, p.graph, limits);
    // The last improvement may come after the last event, or without any.
    bool const seen = best != mrf::forbidden && (c.reduce || out.result.energy >= best - 1e-9 * std::abs(best));
    if (!seen) out.until_best = since();
    return out;
}

outcome evaluate(problem_file const& p, std::string const& file) {
    outcome out;
    auto labels = read_labels(file, p);
    if (labels) out.result.energy = mrf::energy(p.graph, *labels);
    if (labels && p.instance)
        for (auto const& b : p.instance->budgets)
            if (mrf::budget_use(p.graph, b, *labels) > b.limit) out.result.energy = mrf::forbidden;
    out.allowed = out.result.energy != mrf::forbidden;
    if (out.allowed) out.result.labels = std::move(*labels);
    return out;
}

bool ends_with(std::string const& text, std::string_view end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Writes the problem for others, and says how exactly.
void write_export(problem_file const& p, std::string const& path, output_files& files) {
    char line[256];
    if (p.instance && !p.instance->budgets.empty())
        throw error(error_code::bad_option, "--export", "constraints.memory limits a sum here, which the formats cannot say",
                    "leave it out");
    if (ends_with(path, ".cfn")) {
        auto network = mrf::cost_function_network_of(p.graph);
        files.set(path, std::move(network.text));
        std::snprintf(line, sizeof line, "%zu variables, %zu edges; costs to %d decimals, any energy to %.3g\n", p.graph.variable_count(),
                      p.graph.edge_count(), network.decimals, network.error_bound);
    } else {
        files.set(path, mrf::factor_graph_to_json(p.graph, p.names));
        std::snprintf(line, sizeof line, "%zu variables, %zu edges\n", p.graph.variable_count(), p.graph.edge_count());
    }
    files.prepare();
    print(line);
    files.commit();
}

void check(solve_command const& c) {
    auto const wrong = [](std::string const& subject, std::string const& problem, std::string const& remedy) {
        return error(error_code::bad_option, subject, problem, remedy);
    };
    if (c.solver != "cantle" && c.solver != "highs" && c.solver != "elimination")
        throw wrong("--solver '" + c.solver + "'", "there is no such solver", "use cantle, highs or elimination");
    if (c.time_limit && !(*c.time_limit >= 0 && *c.time_limit < 1e9))
        throw wrong("--time-limit", "it is negative or not finite", "give seconds, 0 or more");
    if (c.gap && !(*c.gap >= 0 && *c.gap < 1)) throw wrong("--gap", "it is not within [0, 1)", "give a share as in 1e-4");
    if (c.export_file && (c.solution_file || c.json || c.evaluate))
        throw wrong("--export", "nothing is solved, so there is no solution to write", "leave out --output, --json and --evaluate");
    if (c.export_file && !ends_with(*c.export_file, ".cfn") && !ends_with(*c.export_file, ".json"))
        throw wrong("--export", "the name ends neither in .cfn nor in .json", "give a name that says the format");
}

nlohmann::ordered_json report_of(solve_command const& c, problem_file const& p, outcome const& out, stage_clock const& clock) {
    auto const& r = out.result;
    nlohmann::ordered_json j;
    j["format"] = "cantle-solution";
    j["version"] = 1;
    j["solver"] = c.evaluate ? "none" : c.solver;
    if (c.evaluate) j["status"] = out.allowed ? "allowed" : "forbidden";
    else j["status"] = to_string(r.status);
    auto const number = [](double x) { return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(); };
    j["objective"] = number(r.energy);
    j["bound"] = number(r.lower_bound);
    j["gap"] = r.labels.empty() ? nlohmann::ordered_json() : number(r.relative_gap());
    double total = 0;
    for (auto const& s : clock.stages()) {
        j["seconds"][s.first] = s.second;
        total += s.second;
    }
    j["seconds"]["until_best"] = out.until_best;
    j["seconds"]["total"] = total;
    j["peak_bytes"] = peak_memory().count;
    j["variables"] = p.graph.variable_count();
    j["edges"] = p.graph.edge_count();
    j["sweeps"] = r.stats.sweeps;
    return j;
}

void print_for_people(solve_command const& c, problem_file const& p, outcome const& out, stage_clock const& clock) {
    auto const& r = out.result;
    char line[512];
    if (c.evaluate)
        std::snprintf(line, sizeof line, "%s under the labels of %s: %s\nobjective %.6f\n", visible_text(p.name).c_str(),
                      visible_text(*c.evaluate).c_str(), out.allowed ? "allowed" : "forbidden", r.energy);
    else
        std::snprintf(line, sizeof line, "%s: %s\nobjective %.6f\nbound     %.6f\ngap       %.3g\n%zu variables, %zu edges, %zu sweeps\n",
                      visible_text(p.name).c_str(), std::string(to_string(r.status)).c_str(), r.energy, r.lower_bound,
                      r.labels.empty() ? 1.0 : r.relative_gap(), p.graph.variable_count(), p.graph.edge_count(), r.stats.sweeps);
    std::string text = line;
    for (auto const& s : clock.stages()) {
        std::snprintf(line, sizeof line, "%-9s %.4f s\n", s.first.c_str(), s.second);
        text += line;
    }
    if (!c.evaluate) {
        std::snprintf(line, sizeof line, "best      %.4f s after the start of solving\n", out.until_best);
        text += line;
    }
    std::snprintf(line, sizeof line, "peak      %.1f MB\n", static_cast<double>(peak_memory().count) / 1e6);
    print(text + line);
}

}  // namespace

void run(solve_command const& c) {
    check(c);
    output_files files;
    files.keep(c.instance);
    if (c.evaluate) files.keep(*c.evaluate);
    if (c.solution_file) files.reserve("--output", *c.solution_file);
    if (c.export_file) files.reserve("--export", *c.export_file);

    stage_clock clock;
    auto const p = read_problem(c.instance, c.clustered, clock);
    if (c.export_file) {
        clock.leave();
        write_export(p, *c.export_file, files);
        return;
    }
    clock.enter(c.evaluate ? "evaluate" : "solve");
    auto const out = c.evaluate ? evaluate(p, *c.evaluate) : solve_here(p, c);
    clock.leave();
    auto const& r = out.result;
    if (r.status == solve_status::infeasible) p.refuse_as_infeasible();

    auto j = report_of(c, p, out, clock);
    auto solution = nlohmann::ordered_json::array();
    if (!r.labels.empty() || p.graph.variable_count() == 0)
        for (auto s : p.solution(r.labels)) solution.push_back(s);
    if (c.solution_file) {
        nlohmann::ordered_json file{{"format", "cantle-solution"}, {"version", 1}, {"objective", j["objective"]}, {"bound", j["bound"]}};
        file["solution"] = solution;
        files.set(*c.solution_file, file.dump() + "\n");
        files.prepare();
    }
    if (c.json) {
        j["solution"] = std::move(solution);
        print(j.dump() + "\n");
    } else {
        print_for_people(c, p, out, clock);
    }
    files.commit();
}

}  // namespace cantle::cli
