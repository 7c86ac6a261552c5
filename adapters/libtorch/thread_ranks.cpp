// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/base/error.hpp>
#include <cantle/program/thread_group.hpp>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <map>
#include <memory>
#include <utility>

namespace cantle::libtorch {
namespace {

/// What the members of a collective must agree on.
struct collective_label {
    collective_kind kind = collective_kind::slice;
    reduction reduce = reduction::sum;
    shape sizes;
    at::ScalarType type = at::kFloat;
    bool operator==(collective_label const&) const = default;
};
using hall = thread_group<at::Tensor, collective_label>;

class thread_pending final : public pending {
public:
    thread_pending(hall& h, hall::ticket ticket, transfer const& t)
        : hall_(h), ticket_(std::move(ticket)), kind_(t.kind), reduce_(t.reduce), member_(t.member), receive_from_(t.receive_from) {}
    bool is_done() override { return hall_.is_complete(ticket_); }
    at::Tensor wait() override {
        auto const& all = hall_.wait(ticket_);
        switch (kind_) {
            case collective_kind::all_gather: return at::stack(all);
            case collective_kind::all_reduce: return reduced(all, reduce_);
            case collective_kind::permute: return all[static_cast<std::size_t>(receive_from_)].clone();
            case collective_kind::slice: break;
            case collective_kind::reduce_scatter:
            case collective_kind::all_to_all: {
                std::vector<at::Tensor> parts;
                for (auto const& x : all) parts.push_back(x.select(0, member_));
                return kind_ == collective_kind::all_to_all ? at::stack(parts) : reduced(parts, reduce_);
            }
        }
        throw error(error_code::bad_program, "slice", "it is no collective", "");
    }

private:
    hall& hall_;
    hall::ticket ticket_;
    collective_kind kind_;
    reduction reduce_;
    std::int64_t member_, receive_from_;
};

class thread_communicator final : public communicator {
public:
    thread_communicator(hall& h, device_mesh const& mesh, std::int64_t rank) : hall_(h), mesh_(mesh), rank_(rank) {}

    std::unique_ptr<pending> start(transfer const& t, at::Tensor mine) override {
        ran.push_back({t.kind, t.axes, static_cast<std::int64_t>(mine.nbytes())});
        collective_label label{t.kind, t.reduce, mine.sizes().vec(), mine.scalar_type()};
        auto ticket = hall_.start(group(t.axes), static_cast<std::size_t>(t.member), std::move(label), std::move(mine));
        return std::make_unique<thread_pending>(hall_, std::move(ticket), t);
    }
    void fail(std::string const&) noexcept override { hall_.end(); }
    std::vector<ran_collective> ran;

private:
    hall& hall_;
    device_mesh const& mesh_;
    std::int64_t rank_;
    std::map<std::vector<std::uint8_t>, hall::members*> groups_;

    hall::members& group(std::vector<std::uint8_t> const& axes) {
        auto& g = groups_[axes];
        if (!g) g = &hall_.group(ranks_of_group(mesh_, axes, rank_));
        return *g;
    }
};

/// Kernels of several ranks run at once: one thread each, put back at the end.
struct single_threaded_kernels {
    int before = at::get_num_threads();
    single_threaded_kernels() { at::set_num_threads(1); }
    ~single_threaded_kernels() { at::set_num_threads(before); }
};

}  // namespace

std::vector<std::int64_t> ranks_of_group(device_mesh const& mesh, std::vector<std::uint8_t> const& axes, std::int64_t rank) {
    std::int64_t first = rank, members = 1;
    for (auto a : axes) {
        first -= mesh.coordinate(rank, a) * mesh.stride(a);
        members *= mesh.size(a);
    }
    std::vector<std::int64_t> ranks;
    for (std::int64_t m = 0; m < members; ++m) {
        std::int64_t r = first, rest = m;
        for (std::size_t i = axes.size(); i-- > 0; rest /= mesh.size(axes[i])) r += rest % mesh.size(axes[i]) * mesh.stride(axes[i]);
        ranks.push_back(r);
    }
    return ranks;
}

thread_run run_on_threads(std::vector<rank_executor> const& ranks, std::vector<std::vector<at::Tensor>> inputs, std::uint64_t seed) {
    single_threaded_kernels const kernels;
    hall meeting(ranks.size());
    thread_run result;
    result.outputs.resize(ranks.size());
    result.collectives.resize(ranks.size());
    run_ranks(meeting, ranks.size(), [&](std::size_t r) {
        at::set_num_threads(1);
        thread_communicator others(meeting, ranks[r].program().mesh, static_cast<std::int64_t>(r));
        result.outputs[r] = ranks[r].run(std::move(inputs.at(r)), others, seed);
        result.collectives[r] = std::move(others.ran);
    });
    return result;
}

void run_with_threads(device_mesh const& mesh, std::function<void(std::int64_t, communicator&)> const& body) {
    single_threaded_kernels const kernels;
    auto const ranks = static_cast<std::size_t>(mesh.device_count());
    hall meeting(ranks);
    run_ranks(meeting, ranks, [&](std::size_t r) {
        at::set_num_threads(1);
        thread_communicator others(meeting, mesh, static_cast<std::int64_t>(r));
        body(static_cast<std::int64_t>(r), others);
    });
}

}  // namespace cantle::libtorch
