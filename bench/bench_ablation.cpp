// SPDX-License-Identifier: BSL-1.0
// What each part of the solver buys: the published instances solved with everything, then with one part left out at a time, at last with
// TRW-S alone. Every run ends at a limit; medians of three where a run takes less than a second.
//
//     ./dev bench bench_ablation                      (four instances of ../shared/instances, about 3 minutes)
//     build/release/bin/bench_ablation [--limit S] INSTANCE.json.xz...
#include <cantle/mrf/ap_instance.hpp>
#include <cantle/mrf/solve.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace cantle;
using namespace cantle::mrf;
namespace fs = std::filesystem;

namespace {

/// The text of a file compressed by xz; empty when it cannot be read.
std::string read_compressed(fs::path const& file) {
    std::string text;
    std::FILE* const pipe = popen(("xz -dc '" + file.string() + "'").c_str(), "r");
    if (!pipe) return text;
    char buffer[65536];
    while (auto const n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    if (pclose(pipe) != 0) text.clear();
    return text;
}

/// The same problem with its variables in another order.
factor_graph reordered(factor_graph const& g, std::vector<std::uint32_t> const& order) {
    factor_graph out;
    std::vector<variable_id> place(g.variable_count());
    for (auto v : order) {
        auto const costs = g.costs(variable_id(v));
        place[v] = out.add_variable({costs.begin(), costs.end()});
    }
    for (auto const& e : g.edges()) out.add_edge(place[e.u.value], place[e.v.value], out.add_table(g.shared_table(e.table)), e.use);
    return out;
}

factor_graph reversed(factor_graph const& g) {
    std::vector<std::uint32_t> order(g.variable_count());
    std::iota(order.rbegin(), order.rend(), 0U);
    return reordered(g, order);
}

factor_graph shuffled(factor_graph const& g) {
    std::vector<std::uint32_t> order(g.variable_count());
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 bits(1);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[bits() % i]);
    return reordered(g, order);
}

void no_reductions(solve_options& o) {
    o.reduce.rules = {.split = false, .merge = false, .eliminate = false};
    o.reduce.max_work = 0;
}
void no_bucket_elimination(solve_options& o) { o.max_elimination_work = o.max_elimination_entries = 0; }
void no_last_resorts(solve_options& o) { o.max_block_work = o.max_branch_entries = 0; }

struct ablation {
    char const* without;
    std::function<void(solve_options&)> change;
    factor_graph (*order)(factor_graph const&) = nullptr;
};

std::vector<ablation> ablations() {
    return {
        {"nothing", [](solve_options&) {}},
        {"dominated labels", [](solve_options& o) { o.reduce.max_work = 0; }},
        {"nodes of two neighbours eliminated", [](solve_options& o) { o.reduce.rules.eliminate = false; }},
        {"edges split, equal variables merged", [](solve_options& o) { o.reduce.rules.split = o.reduce.rules.merge = false; }},
        {"all of these reductions", no_reductions},
        {"fixing by the bound", [](solve_options& o) { o.fix_labels = false; }},
        {"coordinate descent", [](solve_options& o) { o.local_search = false; }},
        {"bucket elimination", no_bucket_elimination},
        {"block search and branching", no_last_resorts},
        {"topological order: reversed", [](solve_options&) {}, reversed},
        {"topological order: shuffled", [](solve_options&) {}, shuffled},
        {"all but TRW-S and its decoding",
         [](solve_options& o) {
             no_reductions(o);
             no_bucket_elimination(o);
             no_last_resorts(o);
             o.fix_labels = o.local_search = false;
         }},
    };
}

struct measured {
    solve_result result;
    double seconds = 0;
};

measured measure(factor_graph const& g, solve_options const& options, double limit) {
    measured m;
    std::vector<double> seconds;
    do {
        control limits;
        auto const start = std::chrono::steady_clock::now();
        limits.deadline = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(limit));
        m.result = solve(g, options, limits);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    } while (seconds.size() < 3 && seconds.front() < 1);
    std::sort(seconds.begin(), seconds.end());
    m.seconds = seconds[seconds.size() / 2];
    return m;
}

void run(fs::path const& file, double limit) {
    auto const name = file.stem().stem().string();
    auto const text = read_compressed(file);
    if (text.empty()) {
        std::fprintf(stderr, "bench_ablation: %s cannot be read\n", file.c_str());
        return;
    }
    auto const graph = build_ap_instance(read_ap_file(text, name)).graph;
    double optimum = 0, seconds = 0;
    for (auto const& a : ablations()) {
        solve_options options;
        a.change(options);
        auto const m = measure(a.order ? a.order(graph) : graph, options, limit);
        auto const& r = m.result;
        if (seconds == 0) {
            optimum = r.energy;
            seconds = m.seconds;
        }
        // Against the optimum, so that a bad bound and a bad labelling can be told apart.
        double const above = r.labels.empty() ? forbidden : std::max(r.energy / optimum - 1, 0.0), below = 1 - r.lower_bound / optimum;
        std::printf("| %s | %s | %s | %.1e | %.1e | %zu | %zu | %.4f | %.2g |\n", name.c_str(), a.without,
                    std::string(to_string(r.status)).c_str(), above, below < 1e-9 ? 0.0 : below, r.stats.variables, r.stats.sweeps,
                    m.seconds, m.seconds / seconds);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    double limit = 4;
    std::vector<fs::path> files;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--limit" && i + 1 < argc) limit = std::atof(argv[++i]);
        else files.emplace_back(argv[i]);
    }
    char const* const shared = std::getenv("CANTLE_SHARED_DIR");
    if (files.empty())
        for (char const* name : {"distilbert_1d8", "llama3_8b_2d4x8", "llama3_8b_2d4x8_unclustered", "llama3_8b_3d4x2x4"})
            files.push_back(fs::path(shared ? shared : "../shared") / "instances" / (std::string(name) + ".json.xz"));
    std::erase_if(files, [](fs::path const& f) { return !fs::exists(f); });
    if (files.empty()) {
        std::puts("bench_ablation: no instance is there (../shared/instances); nothing was measured");
        return 0;
    }
    std::printf("at most %g s each; energy and bound as distances from the optimum, relative\n\n", limit);
    std::puts("| instance | without | status | energy above | bound below | variables left | sweeps | seconds | times that of all |\n"
              "|---|---|---|---|---|---|---|---|---|");
    for (auto const& f : files) run(f, limit);
    return 0;
}
