// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cantle/mesh/cluster.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace cantle;

namespace {
/// Geometry by definition: sort all ranks into groups and count their nodes.
group_geometry by_definition(device_mesh const& mesh, std::uint32_t axes, std::int64_t gpus_per_node) {
    std::map<std::vector<std::int64_t>, std::map<std::int64_t, std::int64_t>> groups;  // coordinates outside the set -> node -> ranks
    for (std::int64_t rank = 0; rank < mesh.device_count(); ++rank) {
        std::vector<std::int64_t> key;
        for (std::size_t a = 0; a < mesh.dims(); ++a)
            if (!(axes >> a & 1u)) key.push_back(mesh.coordinate(rank, a));
        ++groups[key][rank / gpus_per_node];
    }
    group_geometry g;
    std::set<std::int64_t> node_counts, rank_counts;
    for (auto const& [key, nodes] : groups) {
        g.size = 0;
        for (auto const& [node, ranks] : nodes) {
            g.size += ranks;
            rank_counts.insert(ranks);
        }
        node_counts.insert(static_cast<std::int64_t>(nodes.size()));
    }
    g.nodes = *node_counts.rbegin();
    g.per_node = g.nodes == 1 ? g.size : *rank_counts.begin();
    g.even = node_counts.size() == 1 && rank_counts.size() == 1;
    return g;
}
digest digest_of(cluster const& c) {
    stable_hasher h;
    c.feed(h);
    return h.finish();
}
}  // namespace

TEST_CASE("presets are found by name") {
    for (auto const* name : {"h100", "h200", "a100", "b200"}) {
        auto const c = find_cluster(name);
        CHECK(c.name == name);
        CHECK(c.gpus_per_node == 8);  // case C17: B200 HGX has 8, not 72
        CHECK(c.gpu.nvlink_ring <= c.gpu.nvlink_counted);
        CHECK(c.gpu.nvlink_counted <= c.gpu.nvlink_bytes_per_second);
        CHECK(c.nic_counted <= c.nic_bytes_per_second);
    }
    CHECK(find_cluster("h100").gpu.bf16_flops_per_second == 989.4e12);
    CHECK(find_cluster("h200").gpu.memory_bytes_per_second == 4.8e12);
    CHECK(find_cluster("a100").nic_bytes_per_second == 25e9);
    CHECK(find_cluster("b200").gpu.nvlink_bytes_per_second == 900e9);
}

TEST_CASE("an unknown cluster is an error that names the known ones") {
    try {
        find_cluster("tpu");
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::unknown_cluster);
        CHECK(e.number() == 204);
        CHECK(e.subject() == "cluster 'tpu'");
        CHECK(e.remedy() == "use one of: h100, h200, a100, b200");
    }
}

// 4x8 (dp, tp), 8 GPUs per node: a row is a node
TEST_CASE("on 4x8 the inner axis lies on one node and the outer one crosses four") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    CHECK(geometry_of(mesh, 0b00, 8) == group_geometry{1, 1, 1, true});
    CHECK(geometry_of(mesh, 0b01, 8) == group_geometry{4, 4, 1, true});
    CHECK(geometry_of(mesh, 0b10, 8) == group_geometry{8, 1, 8, true});
    CHECK(geometry_of(mesh, 0b11, 8) == group_geometry{32, 4, 8, true});
}

// 8x4: two rows per node, so a column has two ranks on each of four nodes
TEST_CASE("on 8x4 the outer axis has two ranks on each node") {
    auto const mesh = device_mesh::parse("8x4");
    CHECK(geometry_of(mesh, 0b01, 8) == group_geometry{8, 4, 2, true});
    CHECK(geometry_of(mesh, 0b10, 8) == group_geometry{4, 1, 4, true});
}

// 2x16: a row is two nodes
TEST_CASE("an axis wider than a node spans several") {
    auto const mesh = device_mesh::parse("2x16");
    CHECK(geometry_of(mesh, 0b10, 8) == group_geometry{16, 2, 8, true});
    CHECK(geometry_of(mesh, 0b01, 8) == group_geometry{2, 2, 1, true});
}

TEST_CASE("axes of size 1 change nothing") {
    auto const mesh = device_mesh::parse("1x4x1x8x1");
    CHECK(geometry_of(mesh, 0b10101, 8) == group_geometry{1, 1, 1, true});
    CHECK(geometry_of(mesh, 0b00010, 8) == geometry_of(mesh, 0b10111, 8));
    CHECK(geometry_of(mesh, 0b11111, 8) == group_geometry{32, 4, 8, true});
}

// 3x5 on nodes of 8: rows 0-4 | 5-9 | 10-14, node boundary between 7 and 8: the middle row has 3 ranks here and 2 there.
// Columns, e.g. {2, 7, 12}: 2 and 1; {4, 9, 14}: 1 and 2.
TEST_CASE("groups that lie unevenly take the figures of the worst") {
    auto const mesh = device_mesh::parse("3x5");
    CHECK(geometry_of(mesh, 0b10, 8) == group_geometry{5, 2, 2, false});
    CHECK(geometry_of(mesh, 0b01, 8) == group_geometry{3, 2, 1, false});
    CHECK(geometry_of(mesh, 0b11, 8) == group_geometry{15, 2, 7, false});
    CHECK_FALSE(fills_nodes(mesh, 8));
}

TEST_CASE("a mesh smaller than a node lies on one, whatever its sizes") {
    auto const mesh = device_mesh::parse("3x2");
    for (std::uint32_t axes = 0; axes < 4; ++axes) CHECK(geometry_of(mesh, axes, 8).nodes == 1);
    CHECK(geometry_of(mesh, 0b11, 8).per_node == 6);
    CHECK(fills_nodes(mesh, 8));
    CHECK(fills_nodes(device_mesh::parse("3x8"), 8));
}

TEST_CASE("a node of no GPUs is an error") {
    try {
        geometry_of(device_mesh::parse("4x8"), 1, 0);
        FAIL("no error");
    } catch (error const& e) {
        CHECK(e.code() == error_code::mesh_does_not_divide);
    }
}

TEST_CASE("geometry equals that of sorting all ranks into groups, on random meshes") {
    unsigned const seed = 20261;
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<mesh_axis> axes;
        std::int64_t devices = 1;
        std::size_t const dims = 1 + random() % 5;
        for (std::size_t a = 0; a < dims; ++a) {
            std::int64_t const size = 1 + static_cast<std::int64_t>(random() % (devices > 100 ? 3 : 9));
            axes.push_back({"a" + std::to_string(a), size});
            devices *= size;
        }
        device_mesh const mesh(axes);
        std::int64_t const gpus_per_node = 1 + static_cast<std::int64_t>(random() % 12);
        for (std::uint32_t set = 0; set < (1u << dims); ++set) {
            CAPTURE(mesh.text());
            CAPTURE(gpus_per_node);
            CAPTURE(set);
            auto const got = geometry_of(mesh, set, gpus_per_node), want = by_definition(mesh, set, gpus_per_node);
            CHECK(got.size == want.size);
            CHECK(got.nodes == want.nodes);
            CHECK(got.per_node == want.per_node);
            CHECK(got.even == want.even);
        }
    }
}

TEST_CASE("the largest meshes are no burden") {
    CHECK(geometry_of(device_mesh::parse("16384x8x128"), 0b101, 8) == group_geometry{16384 * 128, 16384 * 16, 8, true});
}

TEST_CASE("the hash of a cluster changes with every constant but its names") {
    auto const base = digest_of(h100_cluster());
    std::vector<cluster> changed(24, h100_cluster());
    std::size_t i = 0;
    changed[i++].gpu.bf16_flops_per_second *= 2;
    changed[i++].gpu.tf32_flops_per_second *= 2;
    changed[i++].gpu.fp32_flops_per_second *= 2;
    changed[i++].gpu.memory_bytes_per_second *= 2;
    changed[i++].gpu.memory.count *= 2;
    changed[i++].gpu.nvlink_bytes_per_second *= 2;
    changed[i++].gpu.nvlink_counted *= 2;
    changed[i++].gpu.nvlink_ring *= 2;
    changed[i++].gpu.launch_floor_us *= 2;
    changed[i++].gpus_per_node *= 2;
    changed[i++].nic_bytes_per_second *= 2;
    changed[i++].nic_counted *= 2;
    for (auto field : {&ring_protocol::base_us, &ring_protocol::nvlink_step_us, &ring_protocol::network_step_us,
                       &ring_protocol::network_step_alone_us, &ring_protocol::overhead_us, &ring_protocol::efficiency})
        changed[i++].protocols[1].*field += 1;
    for (std::size_t n = 0; n < 3; ++n) changed[i++].protocols[2].cap[n] *= 2;
    changed.resize(i);
    std::set<digest> seen{base};
    for (auto const& c : changed) CHECK(seen.insert(digest_of(c)).second);
    auto renamed = h100_cluster();
    renamed.name = "ours";
    CHECK(digest_of(renamed) == base);
}

TEST_CASE("the description names the machine and its figures in SI units") {
    auto const text = h100_cluster().describe();
    for (auto const* part : {"cluster: h100", "gpu: H100 SXM", "bf16 peak: 989.4 TFLOP/s", "memory bandwidth: 3350 GB/s",
                             "NVLink counted by NCCL: 370.8 GB/s",
                             "NIC counted by NCCL: 48 GB/s per GPU", "GPUs per node: 8", "launch floor: 7 us", "protocol LL128: 14 us"})
        CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}
