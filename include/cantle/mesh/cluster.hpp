// SPDX-License-Identifier: BSL-1.0
#pragma once
// The machine under a mesh: what one GPU can do, how GPUs of a node and of different nodes are linked, and what a collective's step takes
// on each link. Ranks fill nodes in order (node = rank / gpus_per_node), so a set of mesh axes decides which links a group crosses:
//
//     4x8 (dp, tp), 8 GPUs per node    tp: 8 ranks on 1 node    dp: 4 ranks on 4 nodes, 1 on each    both: 32 on 4 nodes, 8 on each
//
// All figures are SI (1 GB/s = 1e9 bytes per second). Sources:
//   [hw]   shared/facts/hardware.md: public processor notes that cite NVIDIA's data sheets, and what NCCL counts per link.
//   [nccl] shared/facts/nccl.md: NVIDIA/nccl 2.30.7, src/graph/tuning.cc (latencies, caps) and src/graph/search.cc (channels).
#include <cantle/base/assert.hpp>
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/units.hpp>
#include <cantle/mesh/device_mesh.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace cantle {

/// One GPU. Rates are dense peaks: floating point operations or bytes per second, NVLink per direction.
struct gpu_spec {
    std::string name;
    double bf16_flops_per_second = 0;     ///< also float16
    double tf32_flops_per_second = 0;     ///< float32 matrix products
    double fp32_flops_per_second = 0;     ///< outside the tensor cores
    double memory_bytes_per_second = 0;
    cantle::bytes memory;
    double nvlink_bytes_per_second = 0;   ///< line rate of all links
    double nvlink_counted = 0;            ///< links x what NCCL counts for one
    double nvlink_ring = 0;               ///< what the channels of a ring inside one node take of that
    double launch_floor_us = 7.0;         ///< least time of a kernel ([hw]: "max(..., 7 us)")

    void feed(stable_hasher& h) const {
        h.add(bf16_flops_per_second).add(tf32_flops_per_second).add(fp32_flops_per_second).add(memory_bytes_per_second).add(memory.count)
            .add(nvlink_bytes_per_second).add(nvlink_counted).add(nvlink_ring).add(launch_floor_us);
    }
};

/// One of NCCL's protocols: what a call and each of its steps take, and how much of a link it fills.
struct ring_protocol {
    double base_us = 0;                   ///< of a call
    double nvlink_step_us = 0;            ///< a step inside a node
    double network_step_us = 0;           ///< a step between nodes
    double network_step_alone_us = 0;     ///< the same where a group has one rank per node
    double overhead_us = 0;               ///< least time of a step inside a node once the group also crosses nodes
    double efficiency = 1;                ///< of bus bandwidth
    std::array<double, 3> cap{};          ///< most bus bandwidth, bytes per second, on 1, 2, and more nodes

    void feed(stable_hasher& h) const {
        h.add(base_us).add(nvlink_step_us).add(network_step_us).add(network_step_alone_us).add(overhead_us).add(efficiency).add(cap);
    }
};

/// Equal nodes of equal GPUs: NVLink inside a node, one NIC per GPU between nodes.
struct cluster {
    std::string name;
    gpu_spec gpu;
    std::int64_t gpus_per_node = 8;
    double nic_bytes_per_second = 0;      ///< line rate of one GPU's NIC, per direction
    double nic_counted = 0;               ///< what a NCCL channel takes of it
    std::array<ring_protocol, 3> protocols{};  ///< LL, LL128, Simple: small, middle and large messages

    void feed(stable_hasher& h) const {
        gpu.feed(h);
        h.add(gpus_per_node).add(nic_bytes_per_second).add(nic_counted);
        for (auto const& p : protocols) p.feed(h);
    }
    /// Every constant, one "name: value" per line, for reports.
    std::string describe() const;
};

inline constexpr std::array<std::string_view, 3> protocol_names{"LL", "LL128", "Simple"};

namespace detail {
/// Per-step constants of [nccl] section 2, the same for all architectures: base 6.6/14/8.4; NVLink .6/1.9/3.4; network 2.7/4.0/14, and the
/// tree's 5.0/8.5/14 at one rank per node; host overhead 1.0 us (Intel), three times for Simple. LL fills half a link, LL128 .92 of it.
inline std::array<ring_protocol, 3> nccl_protocols(std::array<double, 3> ll_cap, std::array<double, 3> ll128_cap, double nvlink) {
    return {{{6.6, 0.6, 2.7, 5.0, 1.0, 0.5, ll_cap},
             {14.0, 1.9, 4.0, 8.5, 1.0, 0.92, ll128_cap},
             {8.4, 3.4, 14.0, 14.0, 3.0, 1.0, {nvlink, nvlink, nvlink}}}};
}

inline cluster hopper_cluster(std::string name, std::string gpu, double memory_rate, std::int64_t memory) {
    cluster c;
    c.name = std::move(name);
    // 989.4 / 494.7 / 66.9 TFLOP/s, NVLink 450 GB/s, counted 18 x 20.6 [hw]; a ring gets 12 channels x 30 [nccl 6].
    c.gpu = {std::move(gpu), 989.4e12, 494.7e12, 66.9e12, memory_rate, bytes{memory}, 450e9, 370.8e9, 360e9};
    c.nic_bytes_per_second = 50e9;  // 400G [hw]
    c.nic_counted = 48e9;           // rung of the channel ladder; 8, 4, 2, 1 ranks per node: 384, 192, 96, 48 GB/s [nccl 6]
    // LL: 141 on a node (GPU), 39 and 20.4 beyond (Intel host). LL128: 36.7 per channel, 12 channels on a node and 8 beyond [nccl 2, 6].
    c.protocols = nccl_protocols({141e9, 39e9, 20.4e9}, {12 * 36.7e9, 8 * 36.7e9, 8 * 36.7e9}, 450e9);
    return c;
}
}  // namespace detail

/// H100 SXM 80 GB: 3.35e12 B/s [hw].
inline cluster h100_cluster() { return detail::hopper_cluster("h100", "H100 SXM", 3.35e12, 80'000'000'000); }
/// H200 SXM: as H100 with 141 GB at 4.8e12 B/s ([hw], which marks the memory row as unverified).
inline cluster h200_cluster() { return detail::hopper_cluster("h200", "H200 SXM", 4.8e12, 141'000'000'000); }

/// A100 SXM 80 GB. Channels beyond one node are derived from [nccl 6], not confirmed by a table.
inline cluster a100_cluster() {
    cluster c;
    c.name = "a100";
    // 312 / 156 / 19.5 TFLOP/s, 2.039e12 B/s, NVLink 300 GB/s, counted 12 x 20.0; a ring takes all 12 channels x 20 [hw, nccl 6].
    c.gpu = {"A100 SXM", 312e12, 156e12, 19.5e12, 2.039e12, bytes{80'000'000'000}, 300e9, 240e9, 240e9};
    c.nic_bytes_per_second = 25e9;  // 200G [hw]
    c.nic_counted = 24e9;           // rung of the ladder below 25 [nccl 6]
    c.protocols = detail::nccl_protocols({87.7e9, 39e9, 20.4e9}, {12 * 20e9, 8 * 20e9, 8 * 20e9}, 300e9);  // LL128: 20 per channel [nccl 2]
    return c;
}

/// B200 HGX, 8 GPUs per node. Channels are derived from [nccl 6], not confirmed by a table.
inline cluster b200_cluster() {
    cluster c;
    c.name = "b200";
    // 2250 / 1100 / 80 TFLOP/s, 8.0e12 B/s, 180 GB, NVLink 900 GB/s, counted 18 x 40.1 [hw]; a ring 8 x 90, doubled to 16 x 45 [nccl 6].
    c.gpu = {"B200 HGX", 2250e12, 1100e12, 80e12, 8.0e12, bytes{180'000'000'000}, 900e9, 721.8e9, 720e9};
    c.nic_bytes_per_second = 50e9;  // 400G [hw]
    c.nic_counted = 48e9;           // rung of the ladder below 50 [nccl 6]
    c.protocols = detail::nccl_protocols({282e9, 39e9, 20.4e9}, {16 * 40e9, 8 * 40e9, 8 * 40e9}, 900e9);  // LL128: 40 per channel [nccl 2]
    return c;
}

/// The presets by name, in the order in which they are listed to users.
inline std::vector<cluster> known_clusters() { return {h100_cluster(), h200_cluster(), a100_cluster(), b200_cluster()}; }

/// The preset of that name. Throws unknown_cluster with the names there are.
inline cluster find_cluster(std::string_view name) {
    std::string known;
    for (auto& c : known_clusters()) {
        if (c.name == name) return c;
        known += (known.empty() ? "" : ", ") + c.name;
    }
    throw error(error_code::unknown_cluster, "cluster '" + std::string(name) + "'", "there is no preset of that name",
                "use one of: " + known);
}

/// How the groups of a set of mesh axes lie on the nodes. Groups may differ (3x4 with 8 GPUs per node): each figure is that of the worst.
struct group_geometry {
    std::int64_t size = 1;      ///< ranks of a group
    std::int64_t nodes = 1;     ///< most nodes that a group spans
    std::int64_t per_node = 1;  ///< fewest ranks that a group which spans nodes has on one of them; `size` where no group does
    bool even = true;           ///< all groups span as many nodes with as many ranks on each
    bool operator==(group_geometry const&) const = default;
};

/// Geometry of the groups whose ranks differ only in the coordinates of `axes` (bit a = mesh axis a; bits beyond the mesh are ignored).
/// Any sizes are allowed: a mesh below gpus_per_node lies on one node, and the last node may be filled in part (see fills_nodes).
/// Throws mesh_does_not_divide for a node of no GPUs. Time: O(device_count) at worst; a cost model asks once per set.
inline group_geometry geometry_of(device_mesh const& mesh, std::uint32_t axes, std::int64_t gpus_per_node) {
    if (gpus_per_node < 1)
        throw error(error_code::mesh_does_not_divide, "mesh " + mesh.text(), "a node has " + std::to_string(gpus_per_node) + " GPUs",
                    "give the cluster at least 1 GPU per node");
    group_geometry g;
    // An axis whose stride is a multiple of the node moves whole nodes: it multiplies their number and changes nothing else.
    // The axes inside it are walked. Where a group starts matters only modulo the node.
    std::int64_t whole_nodes = 1;
    struct walked { std::int64_t size, stride; };
    std::vector<walked> members;
    std::vector<char> starts(static_cast<std::size_t>(gpus_per_node), 0);
    starts[0] = 1;
    for (std::size_t a = 0; a < mesh.dims(); ++a) {
        std::int64_t const size = mesh.size(a), stride = mesh.stride(a);
        if (size == 1) continue;
        if (axes >> a & 1u) {
            g.size *= size;
            if (stride % gpus_per_node == 0) whole_nodes *= size;
            else members.push_back({size, stride});
        } else if (stride % gpus_per_node != 0) {
            std::vector<char> next(starts.size(), 0);
            for (std::int64_t c = 0; c < std::min(size, gpus_per_node); ++c)  // c * stride repeats modulo the node after that many
                for (std::size_t s = 0; s < starts.size(); ++s)
                    if (starts[s]) next[static_cast<std::size_t>((static_cast<std::int64_t>(s) + c * stride) % gpus_per_node)] = 1;
            starts = std::move(next);
        }
    }
    std::int64_t const walk = g.size / whole_nodes;
    std::int64_t fewest = g.size, first_nodes = 0, first_count = 0;
    for (std::size_t s = 0; s < starts.size(); ++s) {
        if (!starts[s]) continue;
        std::int64_t nodes = 0, current = -1, count = 0;
        auto close = [&] {  // the members on one node are complete
            if (count == 0) return;
            fewest = std::min(fewest, count);
            if (first_count == 0) first_count = count;
            g.even = g.even && count == first_count;
        };
        for (std::int64_t i = 0; i < walk; ++i) {  // in row-major order ranks ascend, so nodes come one after the other
            std::int64_t rank = static_cast<std::int64_t>(s), rest = i;
            for (auto m = members.rbegin(); m != members.rend(); ++m) {
                rank += rest % m->size * m->stride;
                rest /= m->size;
            }
            if (rank / gpus_per_node != current) {
                close();
                current = rank / gpus_per_node;
                count = 0;
                ++nodes;
            }
            ++count;
        }
        close();
        if (first_nodes == 0) first_nodes = nodes;
        g.even = g.even && nodes == first_nodes;
        g.nodes = std::max(g.nodes, nodes);
    }
    g.nodes *= whole_nodes;
    g.per_node = g.nodes == 1 ? g.size : fewest;
    return g;
}

/// True when the mesh fills its nodes, or is a part of one; false when the last of several nodes has idle GPUs (3x5 on nodes of 8).
inline bool fills_nodes(device_mesh const& mesh, std::int64_t gpus_per_node) {
    return mesh.device_count() <= gpus_per_node || mesh.device_count() % gpus_per_node == 0;
}

inline std::string cluster::describe() const {
    std::string s;
    auto line = [&s](std::string const& what, double value, char const* unit) {
        char text[64];
        std::snprintf(text, sizeof text, "%.6g", value);
        s += what + ": " + text + (*unit ? " " : "") + unit + "\n";
    };
    s += "cluster: " + name + "\ngpu: " + gpu.name + "\n";
    line("bf16 peak", gpu.bf16_flops_per_second / 1e12, "TFLOP/s");
    line("tf32 peak", gpu.tf32_flops_per_second / 1e12, "TFLOP/s");
    line("fp32 peak", gpu.fp32_flops_per_second / 1e12, "TFLOP/s");
    line("memory bandwidth", gpu.memory_bytes_per_second / 1e9, "GB/s");
    line("memory", static_cast<double>(gpu.memory.count) / 1e9, "GB");
    line("launch floor", gpu.launch_floor_us, "us");
    line("GPUs per node", static_cast<double>(gpus_per_node), "");
    line("NVLink line rate", gpu.nvlink_bytes_per_second / 1e9, "GB/s per direction");
    line("NVLink counted by NCCL", gpu.nvlink_counted / 1e9, "GB/s");
    line("NVLink in a ring", gpu.nvlink_ring / 1e9, "GB/s");
    line("NIC line rate", nic_bytes_per_second / 1e9, "GB/s per GPU");
    line("NIC counted by NCCL", nic_counted / 1e9, "GB/s per GPU");
    for (std::size_t i = 0; i < protocols.size(); ++i) {
        auto const& p = protocols[i];
        char text[256];
        std::snprintf(text, sizeof text,
                      "%g us, steps %g us NVLink (at least %g us beyond a node), %g us network (%g us with one rank per node)",
                      p.base_us, p.nvlink_step_us, p.overhead_us, p.network_step_us, p.network_step_alone_us);
        s += "protocol " + std::string(protocol_names[i]) + ": " + text;
        std::snprintf(text, sizeof text, "; %g of a link, at most %g, %g, %g GB/s on 1, 2, more nodes\n", p.efficiency, p.cap[0] / 1e9,
                      p.cap[1] / 1e9, p.cap[2] / 1e9);
        s += text;
    }
    return s;
}

}  // namespace cantle
