// SPDX-License-Identifier: BSL-1.0
// From a torch::nn module to a certified plan, in one process: LLaMA 3 8B, 16 x 2048 tokens, clustering on, on 8 and on 4x8 H100.
// Prints medians over the runs, seconds per stage, the ratio of the two meshes and the process' peak memory.
// Rival: the published system, 25 s (1-D) to 233 s (4-D) for the same model (shared/facts/paper.md), on its own machine.
#include <adapters/libtorch/capture_models.hpp>
#include <cantle/base/peak_memory.hpp>
#include <cantle/cantle.hpp>


#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

struct series {
    std::vector<std::string> names;
    std::vector<std::vector<double>> seconds;
    void add(std::string const& name, double s) {
        auto const at = std::find(names.begin(), names.end(), name);
        auto const i = static_cast<std::size_t>(at - names.begin());
        if (at == names.end()) {
            names.push_back(name);
            seconds.emplace_back();
        }
        seconds[i].push_back(s);
    }
};

}  // namespace

int main(int argc, char** argv) {
    int const runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
    std::vector<double> totals;
    for (auto const* sizes : {"8", "4x8"}) {
        series stages;
        std::vector<double> total;
        double gap = 0, objective = 0;
        for (int run = 0; run < runs; ++run) {
            cantle::stage_clock clock;
            clock.enter("capture");
            auto graph = cantle::libtorch::capture_model({"llama3-8b", 16, 2048, "train", "bf16", {}});
            clock.enter("canonical form");
            graph = cantle::canonicalize(cantle::mixed_precision(graph));
            clock.leave();
            auto const mesh = cantle::device_mesh::parse(sizes);
            cantle::planning_statistics statistics;
            cantle::standard_cost_model const cost(mesh, cantle::find_cluster("h100"));
            auto const plan = cantle::plan(graph, mesh, cantle::standard_rules(), cost, {}, {}, &statistics);
            double sum = 0;
            for (auto const* c : {&clock, &statistics.clock})
                for (auto const& [name, seconds] : c->stages()) {
                    stages.add(name, seconds);
                    sum += seconds;
                }
            total.push_back(sum);
            gap = plan.gap();
            objective = plan.objective;
        }
        std::printf("llama3-8b on %-4s  objective %.3f us, gap %.2g, %d runs\n", sizes, objective, gap, runs);
        for (std::size_t i = 0; i < stages.names.size(); ++i)
            std::printf("  %-15s %8.4f s\n", stages.names[i].c_str(), median(stages.seconds[i]));
        std::printf("  %-15s %8.4f s\n", "total", median(total));
        totals.push_back(median(total));
    }
    std::printf("ratio of totals 4x8 / 8: %.2f\n", totals[1] / totals[0]);
    std::printf("peak memory of the process, LibTorch included: %.1f MB\n", static_cast<double>(cantle::peak_memory().count) / (1 << 20));
}
