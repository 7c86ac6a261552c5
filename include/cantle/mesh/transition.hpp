// SPDX-License-Identifier: BSL-1.0
#pragma once
// The edges of the placement lattice: one collective step from a layout to another (DECISIONS 2).
//
//   all_gather      innermost cuts of an atom go away         (several at once: one flattened communicator, ranks in cut order)
//   slice           a free axis cuts an atom, innermost       (local, no communication)
//   reduce_scatter  partial axes become innermost cuts        (several axes of one kind at once, in any order)
//   all_reduce      partial axes become Replicate             (several axes of one kind at once)
//   all_to_all      innermost cuts of an atom become innermost cuts of another, of the same dim or another one
//   permute         the cuts of a run without whole factors between them change order (never between dims)
//
// An atom ends where a whole factor ends: at the end of a dim or at a boundary of the class. Its innermost cuts are those at the end of a
// run of cuts; behind a run stands a whole factor or the trailing digit, so what is gathered melts into that and makes no new boundary.
// Replicate -> Partial and Shard -> Partial are no edges. Where the class allows uneven shards, a dim that is not divided has plain cuts in
// mesh order only: its innermost cuts are gathered, scattered, sliced and exchanged as the others are, in messages padded to the largest
// piece, and never permuted.
#include <cantle/mesh/collective.hpp>
#include <cantle/mesh/layout.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace cantle {

/// What one step does; `axes` in cut order, outermost first (for reductions in ascending order).
struct transition {
    collective_kind kind = collective_kind::slice;
    std::vector<std::uint8_t> axes;
    std::uint8_t from_dim = 0, to_dim = 0;  ///< the dim gathered from, the dim cut; only where the kind has one
    reduction reduce = reduction::sum;
    layout to;                              ///< the layout reached

    bool operator==(transition const&) const = default;
    std::uint32_t axis_mask() const {
        std::uint32_t m = 0;
        for (auto a : axes) m |= 1u << a;
        return m;
    }
};

/// Tensors that share all prices and paths: mesh, shape, element size and the places where whole factors may end (DECISIONS 1: they exist
/// only where a view made them). `boundaries[d]`: prefix extents of dim d, ascending, above 1.
struct lattice_class {
    device_mesh mesh;
    shape sizes;
    int element_bytes = 4;
    std::vector<std::vector<std::int64_t>> boundaries;
    shard_policy policy = shard_policy::even;

    /// Add the ends of all whole factors of `l`.
    void add_boundaries(layout const& l) {
        boundaries.resize(sizes.size());
        std::int64_t prefix = 1;
        for (std::size_t i = 0; i < l.digits().size(); ++i) {
            auto const& d = l.digits()[i];
            if (i == 0 || l.digits()[i - 1].dim != d.dim) prefix = 1;
            prefix *= d.extent;
            auto& b = boundaries[d.dim];
            if (!d.is_cut() && !std::binary_search(b.begin(), b.end(), prefix))
                b.insert(std::upper_bound(b.begin(), b.end(), prefix), prefix);
        }
    }
    /// Of the largest piece.
    std::int64_t local_bytes(layout const& l) const {
        if (policy == shard_policy::uneven) return element_count(l.local_shape(sizes)) * element_bytes;
        return element_count(sizes) / l.cut_count() * element_bytes;
    }
};

namespace detail {

/// The digits of one dim inside a layout, as positions [first, last).
struct digit_range { std::size_t first, last; };
inline digit_range digits_of(layout const& l, std::size_t dim) {
    std::size_t first = 0;
    while (first < l.digits().size() && l.digits()[first].dim < dim) ++first;
    std::size_t last = first;
    while (last < l.digits().size() && l.digits()[last].dim == dim) ++last;
    return {first, last};
}

/// Product of the whole factors of `dim` in front of the cut of `axis`.
inline std::int64_t whole_before(layout const& l, std::size_t dim, std::uint8_t axis) {
    std::int64_t n = 1;
    for (auto const& g : l.digits()) {
        if (g.dim != dim) continue;
        if (g.axis == static_cast<std::int8_t>(axis)) break;
        if (!g.is_cut()) n *= g.extent;
    }
    return n;
}
/// Product of all digits of `dim` in front of the cut of `axis`: where it stands in the whole dim.
inline std::int64_t prefix_before(layout const& l, std::size_t dim, std::uint8_t axis) {
    std::int64_t n = 1;
    for (auto const& g : l.digits()) {
        if (g.dim != dim) continue;
        if (g.axis == static_cast<std::int8_t>(axis)) break;
        n *= g.extent;
    }
    return n;
}
/// Local elements of the dims in front of `dim`.
inline std::int64_t elements_before(lattice_class const& c, layout const& l, std::size_t dim) {
    std::int64_t n = 1;
    auto const local = l.local_shape(c.sizes);
    for (std::size_t d = 0; d < dim; ++d) n *= local[d];
    return n;
}

/// Call visit(outer) for every place where cuts of `extent` may come behind `outer` local elements of `dim` as the innermost ones of an
/// atom: at the front of a whole digit, or inside it at a boundary.
template <class Visit>
void for_each_cut_place(lattice_class const& c, layout const& l, std::size_t dim, std::int64_t extent, Visit visit) {
    auto const r = digits_of(l, dim);
    std::int64_t prefix = 1, outer = 1;  // digits passed: all of them, whole ones
    for (std::size_t i = r.first; i <= r.last; ++i) {
        bool const trailing = i == r.last;
        std::int64_t const digit = trailing ? c.sizes[dim] / prefix : l.digits()[i].extent;
        if (trailing || !l.digits()[i].is_cut()) {
            auto const fits = [&](std::int64_t skip) { return digit > 0 && digit % skip == 0 && digit / skip % extent == 0; };
            if (fits(1)) visit(outer);
            if (dim < c.boundaries.size())
                for (std::int64_t b : c.boundaries[dim])
                    if (b > prefix && b % prefix == 0 && fits(b / prefix)) visit(outer * (b / prefix));
            outer *= digit;
        }
        prefix *= digit;
    }
}

/// All non-empty subsets of `axes`, as lists in ascending order.
inline std::vector<std::vector<std::uint8_t>> subsets(std::vector<std::uint8_t> const& axes) {
    std::vector<std::vector<std::uint8_t>> all;
    for (std::uint32_t m = 1; m < (1u << axes.size()); ++m) {
        all.emplace_back();
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (m >> i & 1) all.back().push_back(axes[i]);
    }
    return all;
}

}  // namespace detail

/// Call visit(transition&&) for every edge out of `from`, in a fixed order.
template <class Visit>
void for_each_transition(lattice_class const& c, layout const& from, Visit visit) {
    std::size_t const mesh_dims = c.mesh.dims(), rank = c.sizes.size();
    using axes_list = std::vector<std::uint8_t>;
    auto const release_all = [](layout l, axes_list const& axes) {
        for (auto a : axes) l.release(a);
        return l;
    };
    auto const extent_of = [&](axes_list const& axes) {
        std::int64_t n = 1;
        for (auto a : axes) n *= c.mesh.size(a);
        return n;
    };
    // Let `axes` cut `dim` one inside the other; done(outer, layout) for every place.
    auto const uneven = [&](layout const& l, std::size_t dim) {
        return c.policy == shard_policy::uneven && l.is_uneven(dim, c.sizes[dim]);
    };
    auto const push_all = [&](layout const& l, axes_list const& axes, std::size_t dim, auto&& done) {
        if (c.policy == shard_policy::uneven) {
            // Several axes at once may pass through an even cut on the way to an uneven one, never back.
            layout to = l;
            bool fits = true;
            for (std::size_t i = 0; fits && i < axes.size(); ++i)
                fits = to.apply(axes[i], c.mesh.size(axes[i]), placement::shard(dim), c.sizes, c.policy) && to.is_plain(dim);
            if (fits && uneven(to, dim)) return done(std::int64_t{0}, std::move(to));
            if (uneven(l, dim)) return;
        }
        detail::for_each_cut_place(c, l, dim, extent_of(axes), [&](std::int64_t outer) {
            layout to = l;
            for (auto a : axes) {
                [[maybe_unused]] bool const cut = to.apply(a, c.mesh.size(a), placement::shard(dim, outer), c.sizes);
                CANTLE_ASSERT(cut, "a place found for a cut takes it");
            }
            done(outer, std::move(to));
        });
    };
    auto const emit = [&](collective_kind kind, axes_list const& axes, std::size_t from_dim, std::size_t to_dim, reduction reduce,
                          layout to) {
        auto const f = static_cast<std::uint8_t>(from_dim), t = static_cast<std::uint8_t>(to_dim);
        visit(transition{kind, axes, f, t, reduce, std::move(to)});
    };

    // Runs of cuts: all-gather and all-to-all of every suffix; permute of every run.
    for (std::size_t dim = 0; dim < rank; ++dim) {
        auto const r = detail::digits_of(from, dim);
        for (std::size_t i = r.first, j = i; i < r.last; i = j + 1) {
            std::vector<std::pair<std::int8_t, std::int64_t>> run;
            for (j = i; j < r.last && from.digits()[j].is_cut(); ++j) run.emplace_back(from.digits()[j].axis, from.digits()[j].extent);
            axes_list suffix;
            for (std::size_t k = run.size(); k-- > 0;) {
                suffix.insert(suffix.begin(), static_cast<std::uint8_t>(run[k].first));
                layout const gathered = release_all(from, suffix);
                emit(collective_kind::all_gather, suffix, dim, 0, reduction::sum, gathered);
                std::int64_t const n = extent_of(suffix), was = detail::whole_before(from, dim, suffix[0]);
                for (std::size_t other = 0; other < rank; ++other)
                    push_all(gathered, suffix, other, [&](std::int64_t outer, layout to) {
                        if (other == dim && outer == 0) return;  // an uneven dim has one place for a cut
                        // Within one dim both must be digits of one number, else the pieces would not be equal.
                        if (other == dim && was % (outer * n) != 0 && outer % (was * n) != 0) return;
                        emit(collective_kind::all_to_all, suffix, dim, other, reduction::sum, std::move(to));
                    });
            }
            if (run.size() < 2 || uneven(from, dim)) continue;
            auto order = run;
            std::sort(order.begin(), order.end());
            do {
                if (order == run) continue;
                layout to = from;
                to.reorder(i, order);
                // Axes at either end that keep their place take no part.
                std::size_t a = 0, b = run.size();
                while (order[a] == run[a]) ++a;
                while (order[b - 1] == run[b - 1]) --b;
                axes_list axes;
                for (std::size_t k = a; k < b; ++k) axes.push_back(static_cast<std::uint8_t>(run[k].first));
                emit(collective_kind::permute, axes, dim, dim, reduction::sum, std::move(to));
            } while (std::next_permutation(order.begin(), order.end()));
        }
    }

    // Partial axes, kind by kind: all-reduce of every subset, reduce-scatter of every ordered subset.
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min}) {
        axes_list partial;
        for (std::size_t a = 0; a < mesh_dims; ++a)
            if (from.on(a) == placement::partial(kind)) partial.push_back(static_cast<std::uint8_t>(a));
        for (auto axes : detail::subsets(partial)) {
            layout const reduced = release_all(from, axes);
            emit(collective_kind::all_reduce, axes, 0, 0, kind, reduced);
            do
                for (std::size_t dim = 0; dim < rank; ++dim)
                    push_all(reduced, axes, dim, [&](std::int64_t, layout to) {
                        emit(collective_kind::reduce_scatter, axes, 0, dim, kind, std::move(to));
                    });
            while (std::next_permutation(axes.begin(), axes.end()));
        }
    }

    // Free axes: slice.
    for (std::size_t a = 0; a < mesh_dims; ++a) {
        if (!from.is_free(a) || c.mesh.size(a) == 1) continue;
        axes_list const one{static_cast<std::uint8_t>(a)};
        for (std::size_t dim = 0; dim < rank; ++dim)
            push_all(from, one, dim, [&](std::int64_t, layout to) {
                emit(collective_kind::slice, one, 0, dim, reduction::sum, std::move(to));
            });
    }
}

namespace detail {
/// Messages of equal size for pieces that are not: every piece padded to the largest. True where the step needs that.
inline bool pad_call(lattice_class const& c, layout const& from, transition const& t, collective_call& call) {
    std::int64_t n = 1;
    for (auto a : t.axes) n *= c.mesh.size(a);
    bool const from_uneven = !c.sizes.empty() && from.is_uneven(t.from_dim, c.sizes[t.from_dim]),
               to_uneven = !c.sizes.empty() && t.to.is_uneven(t.to_dim, c.sizes[t.to_dim]);
    if (t.kind == collective_kind::all_gather && from_uneven) call.bytes_after = call.bytes_before * n;
    else if (t.kind == collective_kind::reduce_scatter && to_uneven) call.bytes_before = call.bytes_after * n;
    else if (t.kind == collective_kind::all_to_all && (from_uneven || to_uneven)) {
        shape piece = t.to.local_shape(c.sizes);
        piece[t.from_dim] = from.local_shape(c.sizes)[t.from_dim];
        call.bytes_before = call.bytes_after = element_count(piece) * c.element_bytes * n;
    } else return false;
    return true;
}
}  // namespace detail

/// The request to the cost model for one step.
inline collective_call call_of(lattice_class const& c, layout const& from, transition const& t) {
    collective_call call{t.kind, t.axis_mask(), c.local_bytes(from), c.local_bytes(t.to), 0, t.reduce};
    // The pieces of the members are contiguous in memory where no local element stands outside the cut.
    auto const strided = [&](layout const& whole, layout const& cut, std::size_t dim, layout const& other, std::size_t other_dim) {
        std::int64_t n = detail::elements_before(c, whole, dim) * detail::whole_before(cut, dim, t.axes[0]);
        // An all-to-all inside one dim: the digit of the other end is cut in `whole`.
        if (t.kind == collective_kind::all_to_all && dim == other_dim &&
            detail::prefix_before(other, dim, t.axes[0]) < detail::prefix_before(cut, dim, t.axes[0]))
            for (auto a : t.axes) n /= c.mesh.size(a);
        return n > 1;
    };
    auto const gathers_strided = [&] { return strided(t.to, from, t.from_dim, t.to, t.to_dim); };
    auto const scatters_strided = [&] { return strided(from, t.to, t.to_dim, from, t.from_dim); };
    if (c.policy == shard_policy::uneven && detail::pad_call(c, from, t, call)) {
        // A gather leaves its padding behind the data where one axis cuts contiguous pieces; a scatter pads what it sends.
        bool const gathers = t.kind == collective_kind::all_gather || t.kind == collective_kind::all_to_all;
        bool const scatters = t.kind == collective_kind::reduce_scatter || t.kind == collective_kind::all_to_all;
        if (gathers && (t.axes.size() > 1 || t.kind == collective_kind::all_to_all || gathers_strided()))
            call.packed_bytes += call.bytes_after;
        if (scatters) call.packed_bytes += call.bytes_before;
        return call;
    }
    switch (t.kind) {
        case collective_kind::all_gather:
            if (gathers_strided()) call.packed_bytes = call.bytes_after;
            break;
        case collective_kind::reduce_scatter:
            if (scatters_strided()) call.packed_bytes = call.bytes_before;
            break;
        case collective_kind::all_to_all:
            if (gathers_strided()) call.packed_bytes += call.bytes_after;
            if (scatters_strided()) call.packed_bytes += call.bytes_before;
            break;
        case collective_kind::slice: case collective_kind::all_reduce: case collective_kind::permute: break;
    }
    return call;
}

/// "all_gather(dp,tp) d0", "reduce_scatter(tp) d1", "all_to_all(tp) d2>d1".
inline std::string text_of(transition const& t, device_mesh const& mesh) {
    std::string s(to_string(t.kind));
    s += '(';
    for (std::size_t i = 0; i < t.axes.size(); ++i) s += (i ? "," : "") + mesh.name(t.axes[i]);
    s += ')';
    if (t.kind == collective_kind::all_gather || t.kind == collective_kind::permute) s += " d" + std::to_string(t.from_dim);
    if (t.kind == collective_kind::reduce_scatter || t.kind == collective_kind::slice) s += " d" + std::to_string(t.to_dim);
    if (t.kind == collective_kind::all_to_all) s += " d" + std::to_string(t.from_dim) + ">d" + std::to_string(t.to_dim);
    return s;
}

}  // namespace cantle
