// SPDX-License-Identifier: BSL-1.0
#pragma once
// The other ranks as a region's own function sees them: groups by mesh axis name, and collectives that autograd differentiates.
//
//     auto const trip = ranks.exchange(counts, "ep?");             // data-dependent: who sends how many rows to whom
//     auto const rows = trip.back(experts(trip.there(tokens)));
//
// Gradients. Inside a region autograd works as if the loss were the sum over all ranks: the gradient of a tensor on a rank is what that
// rank contributes. So all_gather and reduce_scatter are each other's gradient, an all_to_all's is the all_to_all back, a shift's the shift
// back, and an all_reduce's is an all_reduce. What of this goes in and comes out is in docs/regions.md.
//
// All members of a group make the same calls in the same order, whatever their data; a call on a group of one moves nothing. In the
// backward all collectives on floating point tensors run in reverse order on every rank, also where a rank's own gradient is zero.
#include <adapters/libtorch/run_context.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// Mesh axes by name: "ep"; "ep?", a group of one where the mesh has no axis ep; or several, the first slowest: {"dp", "ep?"}.
struct region_axes {
    std::vector<std::string> names;
    region_axes(char const* name) : names{name} {}
    region_axes(std::string name) : names{std::move(name)} {}
    region_axes(std::initializer_list<std::string> list) : names(list) {}
};

namespace detail {

/// The members that differ from this rank on some axes only.
struct region_group {
    std::vector<std::uint8_t> axes;  ///< those of more than one rank
    std::int64_t members = 1, member = 0;
};

/// One call of a region's function on one rank; autograd's nodes hold it too, because they may run in other threads.
struct region_call {
    std::string name;
    run_context run;
    std::uint32_t sum_axes = 0;  ///< axes on which gradients are contributions to a sum
    at::Tensor chain{};          ///< while autograd listens: what ties each collective to the one before
    std::exception_ptr failure{};  ///< what ended the backward of a collective

    std::string subject() const { return "region '" + name + "', rank " + std::to_string(run.rank); }
};

/// A collective on whole tensors: `cut_dim` is cut into one part per member, parts are joined in `join_dim`.
struct region_move {
    collective_kind kind = collective_kind::all_reduce;
    std::int64_t cut_dim = 0, join_dim = 0, by = 0;
    reduction reduce = reduction::sum;
    region_group group;
};

}  // namespace detail

class row_exchange;

class region_ranks {
public:
    explicit region_ranks(std::shared_ptr<detail::region_call> call) : call_(std::move(call)) {}

    std::int64_t rank() const { return call_->run.rank; }
    device_mesh const& mesh() const { return *call_->run.mesh; }
    bool has(std::string const& axis) const;  ///< whether the mesh has an axis of that name (no '?')
    /// Ranks in the group of these axes. As all calls below, throws 203 for an axis that the mesh lacks and that is not marked '?'.
    std::int64_t size(region_axes const& axes) const { return group(axes).members; }
    /// This rank's place in the group, from 0.
    std::int64_t coordinate(region_axes const& axes) const { return group(axes).member; }

    /// The members' tensors joined in `dim`: [.. a ..] -> [.. size a ..]. All members give one shape (of this and all calls below); what a
    /// tensor lacks (a dim, or a size that the group divides) is error 404.
    at::Tensor all_gather(at::Tensor const& t, std::int64_t dim, region_axes const& axes) const;
    /// Reduces over the members and keeps this member's part of `dim`: [.. a ..] -> [.. a / size ..].
    at::Tensor reduce_scatter(at::Tensor const& t, std::int64_t dim, region_axes const& axes, reduction kind = reduction::sum) const;
    /// The reduction over the members. Only sum and avg have gradients.
    at::Tensor all_reduce(at::Tensor const& t, region_axes const& axes, reduction kind = reduction::sum) const;
    /// Cuts `cut_dim` into one part per member and sends them out; joins what comes in `join_dim`, in order of the members.
    at::Tensor all_to_all(at::Tensor const& t, std::int64_t cut_dim, std::int64_t join_dim, region_axes const& axes) const;
    /// The tensor of the member `by` places before this one, round the ring.
    at::Tensor shift(at::Tensor const& t, region_axes const& axes, std::int64_t by = 1) const;
    /// Prepares an all_to_all of rows, `counts` [size] or [size, kinds] (int64) saying how many this rank has for each member; zero is
    /// fine. One all_gather of the counts.
    row_exchange exchange(at::Tensor const& counts, region_axes const& axes) const;

private:
    friend class row_exchange;
    std::shared_ptr<detail::region_call> call_;

    detail::region_group group(region_axes const& axes) const;
    at::Tensor moved(at::Tensor const& t, detail::region_move const& m) const;
    std::int64_t dim_of(at::Tensor const& t, std::int64_t dim, std::int64_t parts) const;
    [[noreturn]] void refuse(std::string const& problem, std::string const& remedy) const;
};

/// The way of rows to the members and back. Messages are padded to the largest number of rows that any member has for any other one.
class row_exchange {
public:
    /// Rows that come in, [size, kinds] int64 on the CPU: entry m is what member m sends.
    at::Tensor const& counts() const { return received_; }
    /// Rows for member 0, then for member 1 ...: [sent, ...] -> [received, ...], those of member 0 first. One all_to_all.
    at::Tensor there(at::Tensor const& rows) const;
    /// A row for every row that came, each back to where it came from: [received, ...] -> [sent, ...]. One all_to_all.
    at::Tensor back(at::Tensor const& rows) const;

private:
    friend class region_ranks;
    row_exchange(region_ranks ranks, detail::region_group group, at::Tensor const& all);
    region_ranks ranks_;
    detail::region_group group_;
    at::Tensor received_, out_, in_;  // out_, in_: [size], rows that go and come
    std::int64_t largest_ = 1;

    at::Tensor send(at::Tensor const& rows, at::Tensor const& mine, at::Tensor const& theirs) const;
};

}  // namespace cantle::libtorch
