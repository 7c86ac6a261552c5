// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs layouts and transitions on small integer tensors, rank by rank, as the yardstick of the mesh tests. It reads of a layout only its
// digits and its partial kinds, and of a transition only what an executor gets (kind, axes, dims, both layouts); it never asks the code
// under test where a piece lies. All arithmetic is on whole numbers, so equality is exact.
#include <cantle/mesh/transition.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace simulate {

using cantle::collective_kind;
using cantle::device_mesh;
using cantle::layout;
using cantle::reduction;
using cantle::shape;
using values = std::vector<std::int64_t>;

/// A tensor as one rank holds it: row-major elements.
struct block {
    shape sizes;
    values data;
    bool operator==(block const&) const = default;
};

inline std::int64_t coordinate(device_mesh const& mesh, std::int64_t rank, std::size_t axis) {
    std::vector<std::int64_t> c(mesh.dims());
    for (std::size_t a = mesh.dims(); a-- > 0; rank /= mesh.axes()[a].size) c[a] = rank % mesh.axes()[a].size;
    return c[axis];
}

/// True when the digits of `dim` do not divide it: its pieces are ceil chunks of ceil chunks.
inline bool uneven(layout const& l, std::size_t dim, std::int64_t size) {
    std::int64_t product = 1;
    for (auto const& d : l.digits())
        if (d.dim == dim) product *= d.extent;
    return size % product != 0;
}
/// Of a list: what member `index` of `n` gets, torch.chunk's way.
inline values chunk(values const& all, std::int64_t n, std::int64_t index) {
    values mine;
    std::int64_t const size = static_cast<std::int64_t>(all.size()), c = size / n + (size % n != 0);
    for (std::int64_t i = index * c; i < std::min(size, (index + 1) * c); ++i) mine.push_back(all[static_cast<std::size_t>(i)]);
    return mine;
}

/// Global indices of one dim that `rank` holds: those whose digit at every cut equals the rank's coordinate.
inline values held_indices(device_mesh const& mesh, layout const& l, std::size_t dim, std::int64_t size, std::int64_t rank) {
    values held;
    if (uneven(l, dim, size)) {
        for (std::int64_t x = 0; x < size; ++x) held.push_back(x);
        for (auto const& d : l.digits())
            if (d.dim == dim) held = chunk(held, d.extent, coordinate(mesh, rank, static_cast<std::size_t>(d.axis)));
        return held;
    }
    for (std::int64_t x = 0; x < size; ++x) {
        std::int64_t weight = size;
        bool mine = true;
        for (auto const& d : l.digits()) {
            if (d.dim != dim) continue;
            weight /= d.extent;
            if (d.axis >= 0) mine = mine && x / weight % d.extent == coordinate(mesh, rank, static_cast<std::size_t>(d.axis));
        }
        if (mine) held.push_back(x);
    }
    return held;
}

/// Global row-major positions of the elements that `rank` holds, in its local order, and the local sizes.
inline block held(device_mesh const& mesh, layout const& l, shape const& sizes, std::int64_t rank) {
    block b{{}, {0}};
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        auto const indices = held_indices(mesh, l, d, sizes[d], rank);
        values next;
        for (auto outer : b.data)
            for (auto i : indices) next.push_back(outer * sizes[d] + i);
        b.sizes.push_back(static_cast<std::int64_t>(indices.size()));
        b.data = std::move(next);
    }
    return b;
}

/// What every rank holds, Partial left out: equal exactly when two layouts cut the tensor equally.
inline std::vector<values> distribution(device_mesh const& mesh, layout const& l, shape const& sizes) {
    std::vector<values> all;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) all.push_back(held(mesh, l, sizes, r).data);
    return all;
}

/// Ranks that differ from `rank` only on `axes`, ordered by their coordinates there, the first of `axes` slowest.
inline std::vector<std::int64_t> group(device_mesh const& mesh, std::int64_t rank, std::vector<std::uint8_t> const& axes) {
    std::vector<std::int64_t> members{rank};
    for (auto a : axes) {
        std::int64_t stride = 1;
        for (std::size_t i = a + 1; i < mesh.dims(); ++i) stride *= mesh.axes()[i].size;
        std::vector<std::int64_t> next;
        for (auto m : members)
            for (std::int64_t c = 0; c < mesh.axes()[a].size; ++c) next.push_back(m + (c - coordinate(mesh, m, a)) * stride);
        members = std::move(next);
    }
    return members;
}
inline std::size_t member_index(std::vector<std::int64_t> const& members, std::int64_t rank) {
    return static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

/// The value meant at a global position: distinct, and divisible by every product of axes here, so that averages stay whole.
inline std::int64_t true_value(std::int64_t position) { return 5040 * (position - 7); }

inline std::vector<std::uint8_t> partial_axes(layout const& l, reduction kind) {
    std::vector<std::uint8_t> axes;
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (l.on(a).is_partial() && l.on(a).reduce == kind) axes.push_back(static_cast<std::uint8_t>(a));
    return axes;
}

inline std::int64_t combine(reduction kind, values const& v) {
    if (kind == reduction::max) return *std::max_element(v.begin(), v.end());
    if (kind == reduction::min) return *std::min_element(v.begin(), v.end());
    std::int64_t sum = 0;
    for (auto x : v) sum += x;
    return kind == reduction::sum ? sum : sum / static_cast<std::int64_t>(v.size());
}

/// Blocks of all ranks in layout `l`, Partial contributions chosen at random so that they combine to true_value: for sums and averages
/// any numbers of that sum, for max and min the true value at one member and worse ones elsewhere.
inline std::vector<block> distribute(device_mesh const& mesh, layout const& l, shape const& sizes, std::mt19937& random) {
    std::vector<std::uint8_t> axes, extreme;
    std::int64_t averaged = 1;
    bool is_max = false;
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
        for (auto a : partial_axes(l, kind)) {
            if (kind == reduction::avg) averaged *= mesh.axes()[a].size;
            if (kind == reduction::max || kind == reduction::min) extreme.push_back(a);
            is_max = is_max || kind == reduction::max;
            axes.push_back(a);
        }
    std::vector<block> blocks;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) blocks.push_back(held(mesh, l, sizes, r));
    std::uniform_int_distribution<std::int64_t> noise(1, 9);
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const members = group(mesh, r, axes);
        if (members[0] != r) continue;
        for (std::size_t i = 0; i < blocks[static_cast<std::size_t>(r)].data.size(); ++i) {
            std::int64_t const meant = true_value(blocks[static_cast<std::size_t>(r)].data[i]);
            std::int64_t left = meant * averaged;
            auto const keeper = std::uniform_int_distribution<std::size_t>(0, members.size() - 1)(random);
            for (std::size_t m = 0; m < members.size(); ++m) {
                auto& x = blocks[static_cast<std::size_t>(members[m])].data[i];
                if (m == keeper) continue;
                std::int64_t const n = 5040 * noise(random) * (random() % 2 ? 1 : -1);
                x = extreme.empty() ? n : is_max ? meant - std::abs(n) : meant + std::abs(n);
                left -= n;
            }
            blocks[static_cast<std::size_t>(members[keeper])].data[i] = extreme.empty() ? left : meant;
        }
    }
    return blocks;
}

/// True when the blocks are a right state of `l`: local sizes, and values that combine to the true ones over the partial axes.
inline bool is_right(device_mesh const& mesh, layout const& l, shape const& sizes, std::vector<block> const& blocks) {
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const wanted = held(mesh, l, sizes, r);
        auto const& mine = blocks[static_cast<std::size_t>(r)];
        if (mine.sizes != wanted.sizes || mine.data.size() != wanted.data.size()) return false;
        std::vector<std::uint8_t> axes;
        std::int64_t averaged = 1;
        auto kind = reduction::sum;
        for (auto k : {reduction::sum, reduction::avg, reduction::max, reduction::min})
            for (auto a : partial_axes(l, k)) {
                axes.push_back(a);
                if (k == reduction::avg) averaged *= mesh.axes()[a].size;
                else kind = k;
            }
        auto const members = group(mesh, r, axes);
        for (std::size_t i = 0; i < mine.data.size(); ++i) {
            values v;
            for (auto m : members) v.push_back(blocks[static_cast<std::size_t>(m)].data[i]);
            if (combine(kind, v) != true_value(wanted.data[i]) * averaged) return false;
        }
    }
    return true;
}

/// A dim seen as [before][outer][n][inner][behind]: where the pieces of a collective lie in a local block.
struct piece_view {
    std::int64_t before = 1, outer = 1, n = 1, inner = 1;
    std::int64_t rows() const { return before * outer; }
};
inline piece_view view_of(shape const& local, std::size_t dim, std::int64_t outer, std::int64_t n) {
    piece_view v{1, outer, n, 1};
    for (std::size_t d = 0; d < dim; ++d) v.before *= local[d];
    v.inner = local[dim] / outer / n;
    for (std::size_t d = dim + 1; d < local.size(); ++d) v.inner *= local[d];
    return v;
}
inline block take(block const& b, std::size_t dim, std::int64_t outer, std::int64_t n, std::int64_t index) {
    auto const v = view_of(b.sizes, dim, outer, n);
    block out{b.sizes, {}};
    out.sizes[dim] /= n;
    for (std::int64_t row = 0; row < v.rows(); ++row)
        for (std::int64_t i = 0; i < v.inner; ++i) out.data.push_back(b.data[static_cast<std::size_t>((row * n + index) * v.inner + i)]);
    return out;
}
inline block concatenate(std::vector<block> const& pieces, std::size_t dim, std::int64_t outer) {
    block out{pieces[0].sizes, {}};
    auto const n = static_cast<std::int64_t>(pieces.size());
    out.sizes[dim] *= n;
    auto const v = view_of(out.sizes, dim, outer, n);
    for (std::int64_t row = 0; row < v.rows(); ++row)
        for (auto const& p : pieces)
            for (std::int64_t i = 0; i < v.inner; ++i) out.data.push_back(p.data[static_cast<std::size_t>(row * v.inner + i)]);
    return out;
}

/// Local elements of `dim` outside the digit of `axis` in `l`, where what `l` or `other` cuts is cut.
inline std::int64_t local_outside(layout const& l, layout const& other, std::size_t dim, std::uint8_t axis) {
    std::int64_t prefix = 1, end = 1;
    for (auto const& d : l.digits())
        if (d.dim == dim) {
            if (d.axis == axis) break;
            prefix *= d.extent;
        }
    std::map<int, std::int64_t> cut;  // by axis, so that what both cut counts once
    for (auto const* which : {&l, &other}) {
        end = 1;
        for (auto const& d : which->digits())
            if (d.dim == dim) {
                if (d.axis >= 0 && end < prefix) cut[d.axis] = d.extent;
                end *= d.extent;
            }
    }
    for (auto const& [a, extent] : cut) prefix /= extent;
    return prefix;
}

/// The rows of `dim` that nested chunks over `axes` leave to `rank`.
inline block take_chunk(device_mesh const& mesh, block const& b, std::size_t dim, std::vector<std::uint8_t> const& axes,
                        std::int64_t rank) {
    values rows;
    for (std::int64_t i = 0; i < b.sizes[dim]; ++i) rows.push_back(i);
    for (auto a : axes) rows = chunk(rows, mesh.axes()[a].size, coordinate(mesh, rank, a));
    block out{b.sizes, {}};
    out.sizes[dim] = static_cast<std::int64_t>(rows.size());
    std::int64_t before = 1, behind = 1;
    for (std::size_t d = 0; d < b.sizes.size(); ++d) (d < dim ? before : behind) *= d == dim ? 1 : b.sizes[d];
    for (std::int64_t o = 0; o < before; ++o)
        for (auto r : rows)
            for (std::int64_t i = 0; i < behind; ++i)
                out.data.push_back(b.data[static_cast<std::size_t>((o * b.sizes[dim] + r) * behind + i)]);
    return out;
}
/// Pieces of any size along `dim`, one behind the other.
inline block join(std::vector<block> const& pieces, std::size_t dim) {
    block out{pieces[0].sizes, {}};
    out.sizes[dim] = 0;
    for (auto const& p : pieces) out.sizes[dim] += p.sizes[dim];
    std::int64_t before = 1, behind = 1;
    for (std::size_t d = 0; d < out.sizes.size(); ++d) (d < dim ? before : behind) *= d == dim ? 1 : out.sizes[d];
    for (std::int64_t o = 0; o < before; ++o)
        for (auto const& p : pieces) {
            auto const n = p.sizes[dim] * behind;
            for (std::int64_t i = 0; i < n; ++i) out.data.push_back(p.data[static_cast<std::size_t>(o * n + i)]);
        }
    return out;
}

/// What a run of one transition shows besides its result.
struct outcome {
    std::vector<block> blocks;
    bool packs_send = false, packs_receive = false;  ///< some piece is not contiguous in the buffer sent from or received into
};

/// Do what `t` says, as the ranks of its groups would with a real collective. `sizes`: the global shape, where dims may be uneven.
inline outcome execute(device_mesh const& mesh, layout const& from, cantle::transition const& t, std::vector<block> const& before,
                       shape const& sizes = {}) {
    bool const cuts = t.kind == collective_kind::slice || t.kind == collective_kind::reduce_scatter ||
                      t.kind == collective_kind::all_to_all;
    bool const joins = t.kind == collective_kind::all_gather || t.kind == collective_kind::all_to_all;
    bool const chunks = cuts && !sizes.empty() && uneven(t.to, t.to_dim, sizes[t.to_dim]);
    bool const ragged = joins && !sizes.empty() && uneven(from, t.from_dim, sizes[t.from_dim]);
    outcome result;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r) {
        auto const members = group(mesh, r, t.axes);
        auto const me = static_cast<std::int64_t>(member_index(members, r));
        auto const n = static_cast<std::int64_t>(members.size());
        auto const of = [&](std::int64_t m) -> block const& { return before[static_cast<std::size_t>(m)]; };
        auto const reduced = [&] {
            block sum = of(r);
            for (std::size_t i = 0; i < sum.data.size(); ++i) {
                values v;
                for (auto m : members) v.push_back(of(m).data[i]);
                sum.data[i] = combine(t.reduce, v);
            }
            return sum;
        };
        switch (t.kind) {
            case collective_kind::slice:
                result.blocks.push_back(chunks ? take_chunk(mesh, of(r), t.to_dim, t.axes, r)
                                               : take(of(r), t.to_dim, local_outside(t.to, from, t.to_dim, t.axes[0]), n, me));
                break;
            case collective_kind::all_reduce: result.blocks.push_back(reduced()); break;
            case collective_kind::reduce_scatter: {
                if (chunks) {
                    result.blocks.push_back(take_chunk(mesh, reduced(), t.to_dim, t.axes, r));
                    break;
                }
                auto const outer = local_outside(t.to, from, t.to_dim, t.axes[0]);
                result.packs_send = result.packs_send || view_of(of(r).sizes, t.to_dim, outer, n).rows() > 1;
                result.blocks.push_back(take(reduced(), t.to_dim, outer, n, me));
                break;
            }
            case collective_kind::all_gather: case collective_kind::all_to_all: {
                bool const exchange = t.kind == collective_kind::all_to_all;
                std::vector<block> pieces;
                for (auto m : members) {
                    if (!exchange) {
                        pieces.push_back(of(m));
                        continue;
                    }
                    if (chunks) {
                        pieces.push_back(take_chunk(mesh, of(m), t.to_dim, t.axes, r));
                        continue;
                    }
                    auto const outer = local_outside(t.to, from, t.to_dim, t.axes[0]);
                    result.packs_send = result.packs_send || view_of(of(m).sizes, t.to_dim, outer, n).rows() > 1;
                    pieces.push_back(take(of(m), t.to_dim, outer, n, me));
                }
                if (ragged) {
                    result.blocks.push_back(join(pieces, t.from_dim));
                    break;
                }
                auto const outer = local_outside(from, t.to, t.from_dim, t.axes[0]);
                result.blocks.push_back(concatenate(pieces, t.from_dim, outer));
                result.packs_receive = result.packs_receive || view_of(result.blocks.back().sizes, t.from_dim, outer, n).rows() > 1;
                break;
            }
            case collective_kind::permute: {
                // Whole blocks move: I need the block whose number in the old order is mine in the new one.
                auto const number = [&](layout const& l, std::int64_t rank) {
                    std::int64_t k = 0;
                    for (auto const& d : l.digits())
                        if (d.axis >= 0 && std::find(t.axes.begin(), t.axes.end(), static_cast<std::uint8_t>(d.axis)) != t.axes.end())
                            k = k * d.extent + coordinate(mesh, rank, static_cast<std::size_t>(d.axis));
                    return k;
                };
                for (auto m : members)
                    if (number(from, m) == number(t.to, r)) result.blocks.push_back(of(m));
                break;
            }
        }
    }
    return result;
}

/// Every plain layout of the tensor that fits: per axis Replicate, Shard of a dim, or Partial of one of `kinds` (kinds that commute only).
inline std::vector<layout> plain_layouts(device_mesh const& mesh, shape const& sizes, std::vector<reduction> const& kinds,
                                         cantle::shard_policy policy = cantle::shard_policy::even) {
    std::vector<cantle::placement> choices{cantle::placement::replicate()};
    for (std::size_t d = 0; d < sizes.size(); ++d) choices.push_back(cantle::placement::shard(d));
    for (auto k : kinds) choices.push_back(cantle::placement::partial(k));
    std::vector<std::vector<cantle::placement>> all{{}};
    for (std::size_t a = 0; a < mesh.dims(); ++a) {
        std::vector<std::vector<cantle::placement>> next;
        for (auto const& p : all)
            for (auto const& c : choices) {
                next.push_back(p);
                next.back().push_back(c);
            }
        all = std::move(next);
    }
    std::vector<layout> out;
    for (auto const& p : all) {
        bool mixed = false;
        for (auto const& x : p)
            for (auto const& y : p) mixed = mixed || (x.is_partial() && y.is_partial() && !cantle::commute(x.reduce, y.reduce));
        auto const l = layout::from_placements(mesh, p);
        if (!mixed && l.fits(sizes, policy)) out.push_back(l);
    }
    return out;
}

/// Every layout of the tensor without Partial there is: all axes, orders and whole factors.
inline std::vector<layout> all_layouts(device_mesh const& mesh, shape const& sizes) {
    std::vector<layout> all;
    auto const grow = [&](auto const& self, layout const& l, std::size_t dim, std::int64_t left) -> void {
        if (dim == sizes.size()) {
            all.push_back(l);
            return;
        }
        self(self, l, dim + 1, dim + 1 < sizes.size() ? sizes[dim + 1] : 1);
        for (std::size_t a = 0; a < mesh.dims(); ++a) {
            std::int64_t const n = mesh.axes()[a].size;
            if (n == 1 || !l.on(a).is_replicate()) continue;
            for (std::int64_t outer = 1; outer * n <= left; ++outer) {
                if (left % (outer * n) != 0) continue;
                layout next = l;
                next.push_cut(a, n, dim, outer);
                self(self, next, dim, left / outer / n);
            }
        }
    };
    grow(grow, layout(mesh.dims()), 0, sizes.empty() ? 1 : sizes[0]);
    return all;
}

}  // namespace simulate
