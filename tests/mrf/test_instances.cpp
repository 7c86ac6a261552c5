// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// The published instances (ap-instance-1), which are no part of the repository: looked for in $CANTLE_SHARED_DIR, $CANTLE_SHARED or
// ../shared of the source tree. Expected figures are the reference solutions stored in each file, re-evaluated here; nothing is a
// constant of this test.
#include <cantle/mrf/ap_instance.hpp>
#include <cantle/mrf/energy.hpp>
#include <cantle/mrf/solve.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

using namespace cantle;
using namespace cantle::mrf;

namespace {
std::filesystem::path instances() {
    for (char const* name : {"CANTLE_SHARED_DIR", "CANTLE_SHARED"})
        if (char const* dir = std::getenv(name)) return std::filesystem::path(dir) / "instances";
    char const* source = std::getenv("CANTLE_SOURCE_DIR");
    return std::filesystem::path(source ? source : ".") / ".." / "shared" / "instances";
}

std::string read_compressed(std::filesystem::path const& file) {
    std::string const command = "xz -dc '" + file.string() + "'";
    std::FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[65536];
    while (auto const n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    REQUIRE(pclose(pipe) == 0);
    return text;
}

void check_instance(std::string const& name) {
    auto const file = instances() / (name + ".json.xz");
    if (!std::filesystem::exists(file)) {
        std::printf("SKIPPED: %s is missing; set CANTLE_SHARED_DIR to the folder that holds instances/\n", file.c_str());
        return;
    }
    auto const stored = read_ap_file(read_compressed(file), name);
    auto const instance = build_ap_instance(stored);
    double best = forbidden;
    bool proven = false;
    for (auto const& r : stored.references) {
        INFO(r.name);
        auto const labels = instance.labels_of(r.strategies);
        REQUIRE(labels);
        CHECK(energy(instance.graph, *labels) == doctest::Approx(r.objective).epsilon(1e-12));
        if (r.objective < best) best = r.objective;
        proven |= r.name == "exact" || r.name == "ilp";
    }
    REQUIRE(proven);
    auto const result = solve(instance.graph);
    CHECK(result.status == solve_status::optimal);
    CHECK(std::abs(result.energy - best) <= result.stats.error_bound + 1e-12 * best);
    CHECK(result.lower_bound <= best + 1e-12 * best);  // stored objectives were added up in another order
    CHECK(result.relative_gap() < 1e-8);
    std::printf("%s: energy %.6f bound %.6f stored %.6f, core %zu variables %zu edges, %zu sweeps\n", name.c_str(), result.energy,
                result.lower_bound, best, result.stats.variables, result.stats.edges, result.stats.sweeps);
}
}  // namespace

TEST_CASE("the two-layer instance on 8 is solved to its proven optimum") { check_instance("llama3_2l_1d8"); }
TEST_CASE("DistilBERT on 8 is solved to its proven optimum") { check_instance("distilbert_1d8"); }
TEST_CASE("LLaMA 3 8B on 8 is solved to its proven optimum") { check_instance("llama3_8b_1d8"); }
TEST_CASE("the two-layer instance on 4x8 is solved to its proven optimum") { check_instance("llama3_2l_2d4x8"); }
TEST_CASE("LLaMA 3 8B on 4x8 is solved to its proven optimum") { check_instance("llama3_8b_2d4x8"); }
TEST_CASE("LLaMA 3 8B on 4x8 without clustering is solved to its proven optimum") { check_instance("llama3_8b_2d4x8_unclustered"); }
TEST_CASE("the two-layer instance on 4x2x4 is solved to its proven optimum") { check_instance("llama3_2l_3d4x2x4"); }
TEST_CASE("LLaMA 3 8B on 4x2x4 is solved to its proven optimum") { check_instance("llama3_8b_3d4x2x4"); }
