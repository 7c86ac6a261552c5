// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/cost/standard_cost_model.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace cantle;

static_assert(PricesCompute<standard_cost_model>);
static_assert(PricesCollectives<standard_cost_model>);
static_assert(HasCostHash<standard_cost_model>);
static_assert(CostModel<standard_cost_model>);

namespace {
digest digest_of(standard_cost_model const& m) {
    stable_hasher h;
    m.feed(h);
    return h.finish();
}
double gather(standard_cost_model const& m, std::uint32_t axes, std::int64_t bytes) {
    return m.collective({collective_kind::all_gather, axes, bytes / m.geometry(axes).size, bytes, 0, reduction::sum});
}
constexpr std::int64_t weight = 2 * 4096 * 14336;
}  // namespace

// 4x8 and 8x4 side by side: axis 0 is 4 ranks on 4 nodes in one, 8 ranks on 4 nodes (2 each) in the other
TEST_CASE("case C17: two meshes of different shape in one process have prices of their own") {
    standard_cost_model const wide(device_mesh::parse("4x8"), h100_cluster()), tall(device_mesh::parse("8x4"), h100_cluster());
    double const first = gather(wide, 1, weight);
    CHECK(gather(tall, 1, weight) < first);
    CHECK(gather(wide, 1, weight) == first);  // asking the other model has changed nothing
    CHECK(gather(tall, 2, 1024) < gather(wide, 2, 1024));  // 4 GPUs, not 8
    CHECK(digest_of(wide) != digest_of(tall));
    // The same in the other order of asking gives the same figures.
    standard_cost_model const tall_again(device_mesh::parse("8x4"), h100_cluster()), wide_again(device_mesh::parse("4x8"), h100_cluster());
    CHECK(gather(tall_again, 1, weight) == gather(tall, 1, weight));
    CHECK(gather(wide_again, 1, weight) == first);
}

TEST_CASE("case C17: 72 GPUs are 9 nodes of B200 HGX and one NVLink domain of 72, where latency does not stop at 8 ranks") {
    auto nvl72 = b200_cluster();
    nvl72.gpus_per_node = 72;
    standard_cost_model const hgx(device_mesh::parse("72"), b200_cluster()), domain(device_mesh::parse("72"), nvl72),
        eight(device_mesh::parse("8"), nvl72);
    CHECK(hgx.geometry(1).nodes == 9);
    CHECK(domain.geometry(1).nodes == 1);
    CHECK(gather(domain, 1, weight * 9) < gather(hgx, 1, weight * 9));
    CHECK(gather(domain, 1, 72) == doctest::Approx(6.6 + 71 * 0.6).epsilon(1e-3));
    CHECK(gather(eight, 1, 72) == doctest::Approx(6.6 + 7 * 0.6).epsilon(1e-3));
}

TEST_CASE("a model is a value: a copy outlives and equals the first") {
    double price = 0;
    auto make = [&] {
        standard_cost_model const m(device_mesh::parse("4x8"), h100_cluster());
        price = gather(m, 3, weight);
        standard_cost_model copy = m;
        return copy;
    };
    auto const copy = make();
    CHECK(gather(copy, 3, weight) == price);
}

TEST_CASE("compute and collectives are those of the two parts") {
    standard_cost_model const m(device_mesh::parse("4x8"), a100_cluster());
    auto const x = contiguous_meta({4096, 4096}, dtype::bfloat16);
    op const mm{"aten::mm", {{"self", operand_slot{0}}, {"mat2", operand_slot{1}}}};
    std::vector<tensor_meta> const in{x, x}, out{x};
    CHECK(m.compute({&mm, in, out}) == doctest::Approx(2.0 * 4096 * 4096 * 4096 / (0.7 * 312e6)));
    alpha_beta const links(device_mesh::parse("4x8"), a100_cluster());
    CHECK(gather(m, 3, weight) == links.collective({collective_kind::all_gather, 3, weight / 32, weight, 0, reduction::sum}));
}

TEST_CASE("the hash changes with mesh, cluster and every option, and with nothing else") {
    auto const mesh = device_mesh::parse("4x8");
    standard_cost_options o[4];
    o[0].compute.compute_efficiency = 0.6;
    o[1].compute.memory_efficiency = 0.6;
    o[2].compute.causal = causal_count::kept_pairs;
    o[3].collectives.memory_efficiency = 0.6;
    std::vector<standard_cost_model> models{{mesh, h100_cluster()}, {device_mesh::parse("2x16"), h100_cluster()},
                                            {mesh, h200_cluster()}, {mesh, a100_cluster()}, {mesh, b200_cluster()}};
    for (auto const& each : o) models.emplace_back(mesh, h100_cluster(), each);
    std::set<digest> seen;
    for (auto const& m : models) CHECK(seen.insert(digest_of(m)).second);
    CHECK(digest_of(standard_cost_model(mesh, h100_cluster())) == digest_of(models[0]));
}

TEST_CASE("the description lists every parameter and where each axis lies") {
    auto const text = standard_cost_model(device_mesh::parse("4x8", "dp,tp"), h100_cluster()).describe();
    for (auto const* part : {"cost model: standard", "cluster: h100", "compute efficiency: 0.7\n", "memory efficiency: 0.7\n",
                             "causal attention: counted in full",
                             "mesh: 4x8 (dp, tp)\n", "axis dp: groups of 4 on 4 nodes, 1 per node\n", "axis tp: groups of 8 on 1 node\n",
                             "uncalibrated: all-to-all, permute"})
        CHECK_MESSAGE(text.find(part) != std::string::npos, part);
    auto const uneven = standard_cost_model(device_mesh::parse("3x5"), h100_cluster()).describe();
    CHECK(uneven.find("(the last node is filled in part)") != std::string::npos);
}
