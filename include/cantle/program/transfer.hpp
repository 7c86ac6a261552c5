// SPDX-License-Identifier: BSL-1.0
#pragma once
// One step of a redistribution path as a rank runs it: what it packs, which collective moves it, how it unpacks. Every collective speaks of
// buffers whose first dim is the member of its group; a cut in the middle of a tensor is brought to the front and back:
//
//     all_gather      x [.. b a ..]             -> buffer [n][.. b a ..]  -> unpack: n goes between b and a  -> [.. b n a ..]
//     reduce_scatter  x [.. b n a ..] -> pack: n to the front, [n][.. b a ..]  -> [.. b a ..]
//     all_to_all      pack as reduce_scatter in the dim that is cut, unpack as all_gather in the dim that is gathered
//     slice           pack, then take the rank's own part; no communication
//     permute         the whole piece goes to one other member
//
// b: local elements of the dim in front of the digit (its whole factors), a: those behind it.
//
// Where the digits do not divide a dim, the members' pieces of it differ. Each is padded to the largest of the group before it is packed,
// and what was padded is left out after unpacking (dim_spacing.hpp); between the two stands the even case. Example: [7] cut by 3 ranks,
// pieces 3 3 1, gathered:   g -> g . . -> all_gather [3][3] -> [9] -> the parts 3 3 1 of it -> [7]
//
// The dims that a step does not touch are the same on all members. So the buffers of a group have one size, which is that of the price on
// the ranks with the largest pieces (rank 0 is always one of them) and at most that on the others.
#include <cantle/mesh/local_piece.hpp>
#include <cantle/mesh/transition.hpp>
#include <cantle/program/dim_spacing.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace cantle {

/// A tensor seen as `view`, its dims then put in `order` and written down contiguously as `result`.
struct rearrangement {
    shape view;
    std::vector<std::int64_t> order;
    shape result;
    bool is_identity() const {  // dims of size 1 may move: no element does
        std::int64_t last = -1;
        for (auto d : order) {
            if (view[static_cast<std::size_t>(d)] == 1) continue;
            if (d < last) return false;
            last = d;
        }
        return true;
    }
    bool operator==(rearrangement const&) const = default;
};

/// One collective (or local slice) of one rank.
struct transfer {
    collective_kind kind = collective_kind::slice;
    std::vector<std::uint8_t> axes;  ///< the communicator: its members ordered by their coordinates on these axes, the first slowest
    reduction reduce = reduction::sum;
    std::int64_t members = 1, member = 0;            ///< size of the group, and this rank's place in it
    std::int64_t send_to = 0, receive_from = 0;      ///< of a permute: members
    shape before, after;                             ///< local sizes
    rearrangement pack, unpack;                      ///< identities where the kind has none
    std::vector<dim_spacing> spread, close;          ///< before pack and after unpack; empty where all pieces are equal
    bool communicates() const { return kind != collective_kind::slice; }
    /// A slice of equal pieces takes its part from the packed tensor; one of unequal pieces closes to it.
    bool takes_part() const { return kind == collective_kind::slice && close.empty(); }
    /// Sizes of the buffer that the rank brings; its first dim counts the members where the kind scatters.
    shape const& sent() const { return pack.result; }
    /// Sizes of the buffer that it gets; its first dim counts the members where the kind gathers. Precondition: it communicates.
    shape received() const {
        shape s = pack.result;
        if (kind == collective_kind::all_gather) s.insert(s.begin(), members);
        else if (kind == collective_kind::reduce_scatter) s.erase(s.begin());
        return s;
    }
};

namespace detail {

inline rearrangement same(shape const& s) {
    rearrangement r{s, std::vector<std::int64_t>(s.size()), s};
    std::iota(r.order.begin(), r.order.end(), 0);
    return r;
}
/// Sizes with dim `d` as [b][n][size / (b n)].
inline shape split_dim(shape s, std::size_t d, std::int64_t b, std::int64_t n) {
    auto const a = s[d] / (b * n);
    s[d] = b;
    s.insert(s.begin() + static_cast<std::ptrdiff_t>(d) + 1, {n, a});
    return s;
}
/// local [.. b n a ..] -> [n][.. b a ..]
inline rearrangement to_front(shape local, std::size_t d, std::int64_t b, std::int64_t n) {
    rearrangement r;
    r.view = split_dim(local, d, b, n);
    r.order.push_back(static_cast<std::int64_t>(d) + 1);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(r.view.size()); ++i)
        if (i != static_cast<std::int64_t>(d) + 1) r.order.push_back(i);
    local[d] /= n;
    local.insert(local.begin(), n);
    r.result = std::move(local);
    return r;
}
/// [n][.. b a ..] -> [.. b n a ..], `local` being the sizes behind n.
inline rearrangement from_front(shape local, std::size_t d, std::int64_t b, std::int64_t n) {
    rearrangement r;
    r.view = local;
    r.view[d] = b;
    r.view.insert(r.view.begin() + static_cast<std::ptrdiff_t>(d) + 1, local[d] / b);
    r.view.insert(r.view.begin(), n);
    for (std::int64_t i = 1; i < static_cast<std::int64_t>(r.view.size()); ++i) {
        if (i == static_cast<std::int64_t>(d) + 2) r.order.push_back(0);
        r.order.push_back(i);
    }
    local[d] *= n;
    r.result = std::move(local);
    return r;
}
/// Who holds the piece of each member after a permute: the cuts in old order name the piece, in new order its holder.
inline std::vector<std::int64_t> holders_after(device_mesh const& mesh, transition const& t) {
    // The new order of the axes that change their place, outermost first.
    std::vector<std::uint8_t> order;
    for (auto const& d : t.to.digits())
        if (d.is_cut() && (t.axis_mask() >> d.axis & 1u)) order.push_back(static_cast<std::uint8_t>(d.axis));
    std::int64_t members = 1;
    for (auto a : t.axes) members *= mesh.size(a);
    std::vector<std::int64_t> holder(static_cast<std::size_t>(members));
    for (std::int64_t piece = 0; piece < members; ++piece) {
        std::array<std::int64_t, max_mesh_axes> coordinate{};
        std::int64_t rest = piece;
        for (std::size_t i = order.size(); i-- > 0; rest /= mesh.size(order[i])) coordinate[order[i]] = rest % mesh.size(order[i]);
        std::int64_t m = 0;
        for (auto a : t.axes) m = m * mesh.size(a) + coordinate[a];
        holder[static_cast<std::size_t>(piece)] = m;
    }
    return holder;
}

}  // namespace detail

/// This rank's place in the group of `axes`.
inline std::int64_t member_of(device_mesh const& mesh, std::vector<std::uint8_t> const& axes, std::int64_t rank) {
    std::int64_t m = 0;
    for (auto a : axes) m = m * mesh.size(a) + mesh.coordinate(rank, a);
    return m;
}

/// The rank that has place `m` in the group of `axes` to which `rank` belongs.
inline std::int64_t rank_of_member(device_mesh const& mesh, std::vector<std::uint8_t> const& axes, std::int64_t rank, std::int64_t m) {
    auto other = rank;
    for (std::size_t i = axes.size(); i-- > 0; m /= mesh.size(axes[i]))
        other += (m % mesh.size(axes[i]) - mesh.coordinate(rank, axes[i])) * mesh.stride(axes[i]);
    return other;
}

namespace detail {

/// What the members hold of `dim` under `l`, in their order, as parts of rooms of the largest.
inline dim_spacing spacing_of(device_mesh const& mesh, layout const& l, transfer const& x, shape const& sizes, std::int64_t rank,
                              std::size_t dim) {
    dim_spacing s;
    s.dim = dim;
    for (std::int64_t m = 0; m < x.members; ++m)
        s.sizes.push_back(piece_of(l, mesh, sizes, rank_of_member(mesh, x.axes, rank, m)).sizes[dim]);
    auto const room = *std::max_element(s.sizes.begin(), s.sizes.end());
    for (std::int64_t m = 0; m < x.members; ++m) s.begins.push_back(m * room);
    s.extent = x.members * room;
    return s;
}
/// One member's part of it, in a room of its own.
inline dim_spacing own_part(dim_spacing const& all, std::int64_t member) {
    return {all.dim, all.extent / static_cast<std::int64_t>(all.sizes.size()), {0}, {all.sizes[static_cast<std::size_t>(member)]}};
}
/// The same where no room is left around it: where it stands among the others.
inline dim_spacing own_among(dim_spacing const& all, std::int64_t member) {
    std::int64_t begin = 0;
    for (std::int64_t m = 0; m < member; ++m) begin += all.sizes[static_cast<std::size_t>(m)];
    return {all.dim, all.closed_extent(), {begin}, {all.sizes[static_cast<std::size_t>(member)]}};
}

}  // namespace detail

/// The step `t` out of `from` as `rank` runs it, for a tensor of the global sizes `sizes`. Precondition: both layouts fit, under either
/// policy.
inline transfer transfer_of(device_mesh const& mesh, layout const& from, transition const& t, shape const& sizes, std::int64_t rank) {
    using kind = collective_kind;
    transfer x;
    x.kind = t.kind;
    x.axes = t.axes;
    x.reduce = t.reduce;
    for (auto a : t.axes) x.members *= mesh.size(a);
    x.member = member_of(mesh, t.axes, rank);
    x.before = piece_of(from, mesh, sizes, rank).sizes;
    x.after = piece_of(t.to, mesh, sizes, rank).sizes;
    auto const n = x.members;
    auto const add = [](std::vector<dim_spacing>& list, dim_spacing s) {
        if (!s.is_identity()) list.push_back(std::move(s));
    };
    auto buffer = x.before;  // with every piece padded to the largest of the group
    bool const gathers = t.kind == kind::all_gather || t.kind == kind::all_to_all;
    bool const scatters = t.kind == kind::slice || t.kind == kind::reduce_scatter || t.kind == kind::all_to_all;
    if (scatters && t.to.is_uneven(t.to_dim, sizes[t.to_dim])) {
        auto const parts = detail::spacing_of(mesh, t.to, x, sizes, rank, t.to_dim);
        if (t.kind == kind::slice) {
            x.close.push_back(detail::own_among(parts, x.member));
            x.pack = x.unpack = detail::same(x.before);
            return x;
        }
        add(x.spread, parts);
        add(x.close, detail::own_part(parts, x.member));
        buffer[t.to_dim] = parts.extent;
    }
    if (gathers && from.is_uneven(t.from_dim, sizes[t.from_dim])) {
        auto const parts = detail::spacing_of(mesh, from, x, sizes, rank, t.from_dim);
        add(x.spread, detail::own_part(parts, x.member));
        add(x.close, parts);
        buffer[t.from_dim] = parts.extent / n;
    }
    x.pack = x.unpack = detail::same(buffer);
    auto const outer = [&] { return detail::whole_before(t.to, t.to_dim, t.axes[0]); };   // in front of the new cut
    auto const was = [&] { return detail::whole_before(from, t.from_dim, t.axes[0]); };   // in front of the old one
    switch (t.kind) {
        case kind::slice:
        case kind::reduce_scatter: {
            x.pack = detail::to_front(buffer, t.to_dim, outer(), n);
            buffer[t.to_dim] /= n;
            x.unpack = detail::same(buffer);
            break;
        }
        case kind::all_gather: x.unpack = detail::from_front(buffer, t.from_dim, was(), n); break;
        case kind::all_to_all: {
            // Within one dim each digit is counted without the other one where that stands in front.
            bool const inner_cut = t.from_dim == t.to_dim && outer() >= was() * n;
            bool const outer_cut = t.from_dim == t.to_dim && !inner_cut;
            x.pack = detail::to_front(buffer, t.to_dim, inner_cut ? outer() / n : outer(), n);
            buffer[t.to_dim] /= n;
            x.unpack = detail::from_front(buffer, t.from_dim, outer_cut ? was() / n : was(), n);
            break;
        }
        case kind::permute: {
            auto const holder = detail::holders_after(mesh, t);
            x.send_to = holder[static_cast<std::size_t>(x.member)];
            for (std::int64_t m = 0; m < n; ++m)
                if (holder[static_cast<std::size_t>(m)] == x.member) x.receive_from = m;
            break;
        }
        case kind::all_reduce: break;
    }
    return x;
}

}  // namespace cantle
