// SPDX-License-Identifier: BSL-1.0
#pragma once
// The time of one collective: latency per step (alpha) plus bytes over bandwidth (beta), by the links that its group crosses.
//
// Rings. A group of n ranks on N nodes takes s = n - 1 steps (all-reduce 2(n - 1)), of which k = N - 1 (2(N - 1)) cross nodes:
//     latency   = base + (s - k) * step inside a node + k * step between nodes
//     bandwidth = bus * n / s,   bus = NVLink on one node, else min(NVLink, p * NIC) with p = ranks of the group per node
// p, not 1, NICs: every GPU has one, and a ring has a channel per NIC. Time is the least over NCCL's protocols LL, LL128 and Simple.
// Each is a line of positive slope, so their minimum is strictly increasing in bytes, has no jump, and stays below each of them.
// This is NCCL's ring model ([1] section 3 and 4) without what would break that: the 1.4 plateau factor of multi-node all-reduce, trees
// and NVLS. A small or very wide all-reduce is therefore priced above what NCCL's trees reach.
//
// UNCALIBRATED: all-to-all and permute across nodes have no published figure. All-to-all: a call, one NVLink step per peer on the node, one
// network step per other node, and the slower of what NVLink and the NIC carry. Permute: a call, one step over the slowest link that the
// group crosses, and the whole piece over that link. Large all-to-alls on many nodes are known to be slower than this (case C13).
// References: [1] shared/facts/nccl.md (NCCL 2.30.7, src/graph/tuning.cc); [2] shared/facts/hardware.md, "Collectives over several axes".
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/mesh/cluster.hpp>
#include <cantle/mesh/collective.hpp>
#include <cantle/mesh/device_mesh.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cantle {

/// A line: latency_us + bytes * us_per_byte.
struct affine_cost {
    double latency_us = 0, us_per_byte = 0;
    double at(double message_bytes) const { return latency_us + message_bytes * us_per_byte; }
    /// Bytes per second of a message without latency.
    double bandwidth() const { return 1e6 / us_per_byte; }
};

/// Bus bandwidth of a ring, bytes per second: NVLink within a node, min(NVLink, p x NIC) beyond [2], with NVLink at its line rate:
/// NCCL's 8 x 48 = 384 GB/s on H100 nodes lies above the 360 that its channel ladder leaves a ring on one node ([1] section 6).
inline double ring_bus_bandwidth(cluster const& c, group_geometry const& g) {
    if (g.nodes == 1) return c.gpu.nvlink_ring;
    return std::min(c.gpu.nvlink_bytes_per_second, static_cast<double>(g.per_node) * c.nic_counted);
}

/// The lines of LL, LL128 and Simple for all_gather, reduce_scatter (equal) or all_reduce. Precondition: g.size > 1.
inline std::array<affine_cost, 3> ring_costs(cluster const& c, group_geometry const& g, collective_kind kind) {
    double const n = static_cast<double>(g.size), nodes = static_cast<double>(g.nodes);
    double const rounds = kind == collective_kind::all_reduce ? 2.0 : 1.0;
    double const steps = rounds * (n - 1), crossing = rounds * (nodes - 1);
    std::array<affine_cost, 3> lines;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        auto const& p = c.protocols[i];
        double const inside = g.nodes == 1 ? p.nvlink_step_us : std::max(p.nvlink_step_us, p.overhead_us);
        double const between = g.per_node == 1 ? p.network_step_alone_us : p.network_step_us;
        double const cap = p.cap[static_cast<std::size_t>(std::min<std::int64_t>(g.nodes, 3) - 1)];
        double const bus = std::min(p.efficiency * ring_bus_bandwidth(c, g), cap);
        lines[i] = {p.base_us + (steps - crossing) * inside + crossing * between, 1e6 * steps / (bus * n)};
    }
    return lines;
}

/// Uncalibrated. Message: what a rank holds before. Simple protocol. Precondition: g.size > 1.
inline affine_cost all_to_all_cost(cluster const& c, group_geometry const& g) {
    auto const& p = c.protocols[2];
    double const n = static_cast<double>(g.size), on_node = static_cast<double>(g.nodes == 1 ? g.size : g.per_node);
    double const between = g.per_node == 1 ? p.network_step_alone_us : p.network_step_us;
    double const latency = p.base_us + (on_node - 1) * p.nvlink_step_us + static_cast<double>(g.nodes - 1) * between;
    double const near = (on_node - 1) / n / c.gpu.nvlink_ring, far = g.nodes == 1 ? 0.0 : (n - on_node) / n / c.nic_counted;
    return {latency, 1e6 * std::max(near, far)};
}

/// Uncalibrated. Message: what a rank holds; it goes to one other rank. Simple protocol. Precondition: g.size > 1.
inline affine_cost permute_cost(cluster const& c, group_geometry const& g) {
    auto const& p = c.protocols[2];
    if (g.nodes == 1) return {p.base_us + p.nvlink_step_us, 1e6 / c.gpu.nvlink_ring};
    return {p.base_us + p.network_step_us, 1e6 / c.nic_counted};
}

struct alpha_beta_options {
    double memory_efficiency = 0.70;  ///< of memory bandwidth, when a cut dim that is not the leading one costs a copy; as in roofline.hpp
};

/// Prices collectives on one mesh of one cluster. Everything is worked out in the constructor, so a call is a look-up and a minimum: no
/// allocation, no state shared between models, safe to call from many threads.
class alpha_beta {
public:
    /// Throws mesh_does_not_divide (a node of no GPUs), bad_cost where a figure that divides is not above 0.
    alpha_beta(device_mesh const& mesh, cluster const& machine, alpha_beta_options options = {});

    /// Microseconds. 0 for a slice and for a group of one. See collective_call for the bytes meant.
    /// Throws bad_cost where it names axes that the mesh does not have: the model was made for another one.
    double collective(collective_call const& call) const {
        if (call.axes >= groups_.size())
            throw error(error_code::bad_cost, "cost model of mesh " + mesh_.text(), "it is asked for a collective over axes beyond its own",
                        "make the cost model for the mesh that is planned");
        auto const& g = groups_[call.axes];
        if (g.geometry.size == 1) return 0.0;
        double const message = static_cast<double>(call.message_bytes());
        double time = 0.0;
        switch (call.kind) {
            case collective_kind::slice: return 0.0;
            case collective_kind::all_gather:
            case collective_kind::reduce_scatter: time = least(g.gather, message); break;
            case collective_kind::all_reduce: time = least(g.reduce, message); break;
            case collective_kind::all_to_all: time = g.exchange.at(message); break;
            case collective_kind::permute: time = g.permute.at(message); break;
        }
        return time + static_cast<double>(call.packed_bytes) * pack_us_per_byte_;
    }
    /// Where the groups of these axes lie.
    group_geometry const& geometry(std::uint32_t axes) const { return groups_[axes].geometry; }
    /// True for kinds whose figures nobody has measured; reports mark them.
    static constexpr bool is_uncalibrated(collective_kind k) { return k == collective_kind::all_to_all || k == collective_kind::permute; }
    /// Mesh, cluster and options: all that a price depends on.
    void feed(stable_hasher& h) const {
        h.add("alpha_beta 1");
        mesh_.feed(h);
        machine_.feed(h);
        h.add(options_.memory_efficiency);
    }

private:
    struct group {
        group_geometry geometry;
        std::array<affine_cost, 3> gather, reduce;
        affine_cost exchange, permute;
    };
    device_mesh mesh_;
    cluster machine_;
    alpha_beta_options options_;
    double pack_us_per_byte_ = 0;
    std::vector<group> groups_;  // by axes

    static double least(std::array<affine_cost, 3> const& lines, double message) {
        return std::min(lines[0].at(message), std::min(lines[1].at(message), lines[2].at(message)));
    }
};

inline alpha_beta::alpha_beta(device_mesh const& mesh, cluster const& machine, alpha_beta_options options)
    : mesh_(mesh), machine_(machine), options_(options) {
    auto positive = [&](double value, char const* what) {
        if (!(value > 0))
            throw error(error_code::bad_cost, "cluster " + machine.name, std::string(what) + " is not above 0", "fill in that figure");
    };
    positive(machine.gpu.memory_bytes_per_second, "memory bandwidth");
    positive(machine.gpu.nvlink_bytes_per_second, "the NVLink line rate");
    positive(machine.gpu.nvlink_ring, "NVLink bandwidth in a ring");
    positive(machine.nic_counted, "NIC bandwidth");
    positive(options.memory_efficiency, "memory efficiency");
    for (auto const& p : machine.protocols) {
        positive(p.efficiency, "the efficiency of a protocol");
        for (double cap : p.cap) positive(cap, "the bandwidth cap of a protocol");
    }
    // A copy reads and writes.
    pack_us_per_byte_ = 2e6 / (options.memory_efficiency * machine.gpu.memory_bytes_per_second);
    groups_.resize(std::size_t{1} << mesh.dims());
    for (std::uint32_t axes = 0; axes < groups_.size(); ++axes) {
        auto& g = groups_[axes];
        g.geometry = geometry_of(mesh, axes, machine.gpus_per_node);
        if (g.geometry.size == 1) continue;
        g.gather = ring_costs(machine, g.geometry, collective_kind::all_gather);
        g.reduce = ring_costs(machine, g.geometry, collective_kind::all_reduce);
        g.exchange = all_to_all_cost(machine, g.geometry);
        g.permute = permute_cost(machine, g.geometry);
    }
}

}  // namespace cantle
