// SPDX-License-Identifier: BSL-1.0
// Rules to strategies: every op class of a captured graph, on meshes of one to five axes. Prints op classes, strategies, seconds of the
// expansion alone and with its prices (medians over the runs), the ratio of each mesh to the one before, and the process' peak memory.
//
//     cantle capture llama3-8b --batch 16 --seq 2048 -o l.json;  bench_expand_axes l.json [RUNS [MESH...]]
#include <cantle/cantle.hpp>
#include <cantle/graph/graph_json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}
/// A cost model that costs nothing itself: what is left is the expansion.
struct no_cost {
    double compute(cantle::op_query const&) const { return 0; }
    double collective(cantle::collective_call const&) const { return 0; }
    void feed(cantle::stable_hasher&) const {}
};

/// What the expansion starts from, as in planning; not timed here.
struct given {
    cantle::layout_table layouts;
    cantle::cast_sides casts;
    std::vector<std::vector<cantle::layout_id>> domains;
    given(cantle::training_graph const& g, cantle::device_mesh const& mesh)
        : casts(g), domains(cantle::boundary_domains(g, mesh, {}, cantle::match_pins(g, {}), layouts)) {}
};

template <class Cost>
cantle::op_class_table intern(cantle::training_graph const& g, cantle::device_mesh const& mesh, cantle::rule_registry const& rules,
                              Cost const& cost, given const& start, double& seconds) {
    auto layouts = start.layouts;
    auto const begin = std::chrono::steady_clock::now();
    auto table = cantle::intern_op_classes(g, mesh, rules, cost, layouts, [&](cantle::vertex v) {
        return start.casts.is_parameter_cast(v) ? &start.domains[g[v].operands[0].node] : nullptr;
    });
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return table;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::puts("bench_expand_axes: give a graph file (cantle capture llama3-8b --batch 16 --seq 2048 -o l.json); nothing was measured");
        return 0;
    }
    auto const graph = cantle::read_graph_json(argv[1]);
    int const runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
    std::vector<std::string> meshes(argv + std::min(argc, 3), argv + argc);
    if (meshes.empty()) meshes = {"8", "4x8", "4x2x4", "2x2x2x4", "2x2x2x2x2"};
    auto const rules = cantle::standard_rules();
    std::printf("%s: %zu vertices, %d runs\n", argv[1], graph.size(), runs);
    std::printf("%-12s %10s %11s %10s %8s %12s %8s %10s\n", "mesh", "op classes", "strategies", "expand s", "ratio", "with prices", "ratio",
                "peak MB");
    double before = 0, before_priced = 0;
    for (auto const& sizes : meshes) {
        auto const mesh = cantle::device_mesh::parse(sizes);
        cantle::standard_cost_model const cost(mesh, cantle::find_cluster("h100"));
        std::vector<double> alone, priced;
        std::size_t classes = 0, strategies = 0;
        given const start(graph, mesh);
        for (int run = 0; run < runs; ++run) {
            double seconds = 0;
            intern(graph, mesh, rules, no_cost{}, start, seconds);
            alone.push_back(seconds);
            auto const table = intern(graph, mesh, rules, cost, start, seconds);
            priced.push_back(seconds);
            classes = table.classes.size();
            strategies = 0;
            for (auto const& c : table.classes) strategies += c.strategies.size();
        }
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        std::printf("%-12s %10zu %11zu %10.4f %8.2f %12.4f %8.2f %10.1f\n", sizes.c_str(), classes, strategies, median(alone),
                    before > 0 ? median(alone) / before : 0.0, median(priced), before_priced > 0 ? median(priced) / before_priced : 0.0,
                    static_cast<double>(usage.ru_maxrss) / 1024.0);
        before = median(alone);
        before_priced = median(priced);
    }
}
