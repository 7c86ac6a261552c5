// SPDX-License-Identifier: BSL-1.0
#pragma once
// The communicator on PyTorch's process groups, whatever the backend: one group per list of axes, its members in the order that
// transfer.hpp defines. Moves go as bytes, so that every element type can move; averages are sums, divided by the receiver, since not
// every backend has them for every type (case D17).
#include <adapters/libtorch/communicator.hpp>

#include <cantle/mesh/device_mesh.hpp>
#include <cantle/program/program.hpp>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// The axes of all groups in which a program communicates, sorted: groups are made in this order on all ranks.
std::vector<std::vector<std::uint8_t>> groups_of(rank_program const& program);

class c10d_communicator : public communicator {
public:
    using backend = c10::intrusive_ptr<c10d::Backend>;
    /// The backend of a group: a store of its own, this rank's place in it and its size.
    using make_backend = std::function<backend(c10::intrusive_ptr<c10d::Store>, int member, int members)>;

    /// One rank's end of a run of all ranks of the mesh. `store`: shared by all, empty; one store object per rank. Makes `groups` at once,
    /// others when they are first used. Throws rank_failed where a group cannot be made.
    /// `host_waits`: a wait blocks until the result is there (CPU); otherwise it only orders kernels, and nobody looks for failures.
    c10d_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh mesh, std::int64_t rank, bool host_waits, make_backend make,
                      std::vector<std::vector<std::uint8_t>> const& groups);
    ~c10d_communicator() override;

    std::unique_ptr<pending> start(transfer const& t, at::Tensor mine) override;
    /// Leaves word in the store; ranks that wait for a collective look there ten times a second. The groups of a run that failed are given
    /// up: what is under way in them cannot be called back and lives until it times out or the process ends.
    void fail(std::string const& why) noexcept override;

    /// Throws rank_failed with the word of a rank that failed, where there is one.
    void look_for_failure();
    bool host_waits() const { return host_waits_; }

private:
    c10::intrusive_ptr<c10d::Store> store_;
    device_mesh mesh_;
    std::int64_t rank_;
    bool host_waits_;
    make_backend make_;
    std::map<std::vector<std::uint8_t>, backend> groups_;
    bool failed_ = false;

    c10d::Backend& group(std::vector<std::uint8_t> const& axes);
};

}  // namespace cantle::libtorch
