// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/property/draw_plan.hpp>
#include <adapters/libtorch/property/run_case.hpp>
#include <adapters/libtorch/property/shrink.hpp>

#include <cantle/base/error.hpp>
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <chrono>
#include <cstdlib>
#include <cstdio>
using namespace cantle;
using namespace cantle::libtorch;
TEST_CASE("x") {
    at::set_num_threads(1);
    auto env = [](char const* n, std::uint64_t v) { auto* s = std::getenv(n); return s ? std::strtoull(s, nullptr, 10) : v; };
    auto const first = env("SEED", 1), count = env("CASES", 300);
    std::map<std::string, int> tally;
    std::map<std::string,int> ops; std::size_t nodes=0, moves=0, steps=0, inner=0, cases=0;
    double tg = 0, tp = 0, tr = 0;
    using clk = std::chrono::steady_clock;
    auto sec = [](auto a, auto b) { return std::chrono::duration<double>(b - a).count(); };
    for (auto seed = first; seed < first + count; ++seed) {
        dice d(seed);
        auto t0 = clk::now();
        auto g = draw_training_graph(d, static_cast<int>(d.range(1, 14)));
        auto t1 = clk::now();
        auto mesh = device_mesh::parse(property_meshes[d.below(6)]);
        auto p = draw_plan(g.graph, mesh, d);
        auto t2 = clk::now();
        tg += sec(t0, t1); tp += sec(t1, t2);
        if (sec(t1, t2) > 1)
            std::printf("seed %d slow plan %f %s %s nodes %zu\n", (int)seed, sec(t1, t2), p.how.c_str(), mesh.text().c_str(),
                        g.graph.size());
        if (!p.plan) { ++tally["refused"]; std::printf("seed %d refused %s\n", (int)seed, p.why.c_str()); continue; }
        ++cases; for (auto& n : g.graph.nodes) { ++ops[n.operation.name]; nodes += n.role == node_role::computation; }
        moves += p.plan->moves.size();
        for (auto& m : p.plan->moves) steps += p.plan->paths[m.path].steps.size();
        for (auto& n : p.plan->nodes) inner += n.inner.size();
        bool exact = is_exact(g.graph);
        run_case c{g.graph, *p.plan, draw_data(g.graph, g.bounds, exact, seed)};
        auto f = failure_of(c);
        tr += sec(t2, clk::now());
        ++tally[std::string(f ? "FAIL " + f->kind : "ok") + (exact ? " exact" : "")];
        if (f)
            std::printf("seed %d %s %s %s: %s %s %s\n", (int)seed, p.how.c_str(), mesh.text().c_str(), exact ? "exact" : "",
                        f->kind.c_str(), f->where.c_str(), f->what.substr(0, 600).c_str());
        if (f && std::getenv("SHRINK")) {
            auto s = shrink(c, *f);
            std::printf("tried %zu: %s %s %s\n%s\n", s.tried, s.failure.kind.c_str(), s.failure.where.c_str(), s.failure.what.c_str(),
                        text_of(s.small, "seed").c_str());
        }
    }
    for (auto& [k, n] : tally) std::printf("%s: %d\n", k.c_str(), n);
    for (auto& [k, n] : ops) std::printf("%s %d, ", k.c_str(), n);
    std::printf("\nper case: nodes %f moves %f steps %f inner %f\n", (double)nodes / (double)cases, (double)moves / (double)cases,
                (double)steps / (double)cases, (double)inner / (double)cases);
    std::printf("graph %f plan %f run %f\n", tg, tp, tr);
}
