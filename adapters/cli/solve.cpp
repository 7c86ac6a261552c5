// SPDX-License-Identifier: BSL-1.0
// `cantle solve`: a problem from a file, its optimum and the proof of it.
#include <adapters/cli/commands.hpp>
#include <adapters/cli/compressed_file.hpp>
#include <adapters/cli/output_files.hpp>
#include <adapters/cli/standard_output.hpp>

#include <cantle/base/peak_memory.hpp>
#include <cantle/base/stage_clock.hpp>
#include <cantle/mrf/ap_instance.hpp>
#include <cantle/mrf/bucket_elimination.hpp>
#include <cantle/mrf/conflict.hpp>
#include <cantle/mrf/factor_graph_json.hpp>
#include <cantle/mrf/solve.hpp>
#include <cantle/report/figures.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle::cli {
namespace {

using steady = std::chrono::steady_clock;

/// A problem in either format, and how its variables are called.
struct problem {
    mrf::factor_graph graph;
    std::vector<std::string> names;           // [variable]
    std::optional<mrf::ap_instance> instance; // graph moved out; labels still mean its strategies

    std::vector<std::uint32_t> solution(std::vector<mrf::label> const& labels) const {
        return instance ? instance->strategies_of(labels) : std::vector<std::uint32_t>(labels.begin(), labels.end());
    }
};

problem build(mrf::ap_file const& file, bool clustered) {
    problem p;
    p.instance = mrf::build_ap_instance(file, {clustered});
    p.graph = std::move(p.instance->graph);
    p.names.resize(p.graph.variable_count());
    for (std::size_t v = file.nodes.size(); v-- > 0;) p.names[p.instance->variable_of[v]] = file.nodes[v].name;
    return p;
}

/// Throws unsatisfiable_constraint with a minimal set of what cannot hold together.
[[noreturn]] void refuse_infeasible(problem const& p, std::string const& file) {
    auto const conflict = mrf::minimal_conflict(p.graph);
    std::string text;
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < conflict.size() && i < most; ++i) {
        auto const name = [&](mrf::variable_id v) {
            return p.names[v.value].empty() ? std::to_string(v.value) : "'" + p.names[v.value] + "'";
        };
        auto const& e = p.graph.edge(conflict[i]);
        text += (i ? ", " : "") + name(e.u) + " with " + name(e.v);
    }
    if (conflict.size() > most) text += " and " + std::to_string(conflict.size() - most) + " more";
    throw error(
        error_code::unsatisfiable_constraint, file,
        "no labelling is allowed; these " + std::to_string(conflict.size()) + " couplings cannot hold together, any fewer can: " + text,
        "allow a pair of labels of one of them");
}

struct outcome {
    mrf::solve_result result;
    double until_best = 0;  // seconds from the start of solving
};

outcome solve_here(problem const& p, solve_command const& c) {
    control limits;
    auto const start = steady::now();
    auto const since = [&] { return std::chrono::duration<double>(steady::now() - start).count(); };
    if (c.time_limit) limits.deadline = start + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(*c.time_limit));
    outcome out;
    double best = mrf::forbidden;
    limits.progress = [&](progress_event const& e) {
        if (e.stage != "trws" || !(e.energy < best)) return;
        best = e.energy;
        out.until_best = since();
    };
    if (c.solver == "cantle") {
        mrf::solve_options options;
        options.relative_gap = c.gap.value_or(0);
        out.result = mrf::solve(p.graph, options, limits);
        // The last improvement may come after the last sweep, or without any.
        if (out.result.energy < best - 1e-9 * std::abs(best) || best == mrf::forbidden) out.until_best = since();
        return out;
    }
    auto const plan = mrf::plan_elimination(p.graph, 1e9, 1e11);
    if (!plan)
        throw error(error_code::out_of_memory, "--solver elimination",
                    "the tables of this graph are too large to eliminate without reductions", "use --solver cantle");
    auto exact = mrf::bucket_elimination(p.graph, *plan);
    out.until_best = since();
    out.result.energy = exact.energy;
    out.result.lower_bound = exact.energy;
    out.result.status = exact.energy == mrf::forbidden ? solve_status::infeasible : solve_status::optimal;
    out.result.labels = std::move(exact.labels);
    return out;
}

}  // namespace

void run(solve_command const& c) {
    if (c.solver != "cantle" && c.solver != "elimination")
        throw error(error_code::bad_option, "--solver '" + c.solver + "'", "there is no such solver", "use cantle or elimination");
    if (c.time_limit && !(*c.time_limit >= 0 && *c.time_limit < 1e9))
        throw error(error_code::bad_option, "--time-limit", "it is negative or not finite", "give seconds, 0 or more");
    if (c.gap && !(*c.gap >= 0 && *c.gap < 1))
        throw error(error_code::bad_option, "--gap", "it is not within [0, 1)", "give a share as in 1e-4");
    output_files files;
    files.keep(c.instance);
    if (c.solution_file) files.reserve("--output", *c.solution_file);

    stage_clock clock;
    clock.enter("read");
    auto const name = c.instance == "-" ? std::string("stdin") : c.instance;
    problem p;
    {
        auto const text = read_maybe_compressed(c.instance);
        if (text.find("\"cantle-factor-graph\"") < 200) {
            if (!c.clustered)
                throw error(error_code::bad_option, "--unclustered", "a factor graph has no clusters", "leave it out");
            auto read = mrf::factor_graph_from_json(text, name);
            clock.enter("build");
            p.graph = std::move(read.graph);
            p.names = std::move(read.names);
        } else {
            auto const file = mrf::read_ap_file(text, name);
            clock.enter("build");
            p = build(file, c.clustered);
        }
    }
    clock.enter("solve");
    auto const out = solve_here(p, c);
    clock.leave();
    auto const& r = out.result;
    if (r.status == solve_status::infeasible) refuse_infeasible(p, name);

    nlohmann::ordered_json j;
    j["format"] = "cantle-solution";
    j["version"] = 1;
    j["solver"] = c.solver;
    j["status"] = to_string(r.status);
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
        char line[512];
        std::snprintf(line, sizeof line, "%s: %s\nobjective %.6f\nbound     %.6f\ngap       %.3g\n%zu variables, %zu edges, %zu sweeps\n",
                      visible_text(name).c_str(), std::string(to_string(r.status)).c_str(), r.energy, r.lower_bound,
                      r.labels.empty() ? 1.0 : r.relative_gap(), p.graph.variable_count(), p.graph.edge_count(), r.stats.sweeps);
        std::string text = line;
        for (auto const& s : clock.stages()) {
            std::snprintf(line, sizeof line, "%-9s %.4f s\n", s.first.c_str(), s.second);
            text += line;
        }
        std::snprintf(line, sizeof line, "best      %.4f s after the start of solving\npeak      %.1f MB\n", out.until_best,
                      static_cast<double>(peak_memory().count) / 1e6);
        print(text + line);
    }
    files.commit();
}

}  // namespace cantle::cli
