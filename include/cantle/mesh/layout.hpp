// SPDX-License-Identifier: BSL-1.0
#pragma once
// A layout says how a tensor lies on a mesh. Each tensor dim is a mixed-radix number; its digits, outermost first, are cuts (a mesh axis
// takes the digit) and whole factors (an uncut atom, DECISIONS 1); what stands behind the last cut is the implicit trailing digit:
//
//     [64] (S0,S0) on (4,8):           dp tp          |.   rank (i,j) holds rows 2*(8 i + j) ...
//     the same, cut by tp first:       tp dp          |.
//     [B=16][S=2048] flattened, (S0 of B, S of S) on (4,8):  dp 4 tp |.     4 is the whole factor left of B
//
// Every mesh axis that cuts nothing is Replicate or Partial(kind). The form is canonical (no digit of extent 1, no two factors in a row,
// no trailing factor), so two layouts are the same distribution of data exactly when they compare equal. An axis of size 1 is therefore
// always Replicate, whatever it is asked to be (case B11).
//
// Digits divide their dim. With shard_policy::uneven a dim may also be cut where they do not: then only by plain nested cuts in mesh order,
// each cutting what the one before left of that rank into chunks of ceil(size / ranks), the trailing ones short or empty (torch.chunk):
//
//     [7] by 4: 2 2 2 1      [5] by 4: 2 2 1 0      [6] by 2, then by 2: 2 1 | 2 1
#include <cantle/base/assert.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/tensor_type.hpp>
#include <cantle/mesh/device_mesh.hpp>
#include <cantle/mesh/placement.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <compare>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// One digit of a dim: a cut by a mesh axis (axis >= 0, extent = the axis' size) or a whole factor (axis = -1).
struct layout_digit {
    std::uint8_t dim = 0;
    std::int8_t axis = -1;
    std::int64_t extent = 1;
    bool is_cut() const { return axis >= 0; }
    auto operator<=>(layout_digit const&) const = default;
};

/// Which cuts a dim may take: only those that divide it, or nested ceil chunks too.
enum class shard_policy : std::uint8_t { even, uneven };

class layout {
public:
    layout() = default;
    /// Replicated over all axes.
    explicit layout(std::size_t mesh_dims) : axes_(static_cast<std::uint8_t>(mesh_dims)) {}
    /// One plain placement per axis, nested in mesh order: (S0,S0) is cut by axis 0 first. The caller checks divisibility (fits).
    static layout from_placements(device_mesh const& mesh, std::vector<placement> const& per_axis);
    /// "S0,R", "S0,S0; d0=tp>dp", "R,S0; d0=4>tp" (the part behind ';' lists the digits of every dim that is not in plain mesh order).
    /// Throws bad_layout, or unknown_axis for a name that the mesh does not have.
    static layout parse(device_mesh const& mesh, std::string_view text);

    std::size_t mesh_dims() const { return axes_; }
    std::vector<layout_digit> const& digits() const { return digits_; }
    /// Replicate, Shard(dim) or Partial of that axis; a shard's `outer` is not filled.
    placement on(std::size_t axis) const {
        if (partial_[axis]) return placement::partial(static_cast<reduction>(partial_[axis] - 1));
        for (auto const& d : digits_)
            if (d.axis == static_cast<std::int8_t>(axis)) return placement::shard(d.dim);
        return placement::replicate();
    }
    bool is_replicated() const { return digits_.empty() && !has_partial(); }
    bool has_partial() const {
        for (auto p : partial_)
            if (p) return true;
        return false;
    }
    /// Into how many pieces the tensor is cut: global elements / local elements.
    std::int64_t cut_count() const {
        std::int64_t n = 1;
        for (auto const& d : digits_)
            if (d.is_cut()) n *= d.extent;
        return n;
    }
    /// True when every dim is a plain list of cuts in mesh order: what rules over products of axes name.
    bool in_mesh_order() const {
        for (std::size_t i = 0; i < digits_.size(); ++i) {
            if (!digits_[i].is_cut()) return false;
            if (i && digits_[i].dim == digits_[i - 1].dim && digits_[i].axis < digits_[i - 1].axis) return false;
        }
        return true;
    }
    /// True when all dims exist and the digits of each divide it evenly; under the uneven policy also where the digits are plain cuts in
    /// mesh order and the dim has at least as many elements as ranks that share it (case A61).
    bool fits(shape const& global, shard_policy policy = shard_policy::even) const {
        if (policy == shard_policy::uneven) return fits_unevenly(global);
        std::vector<std::int64_t> rest(global);
        for (auto const& d : digits_) {
            if (d.dim >= rest.size() || d.extent < 1 || rest[d.dim] % d.extent != 0 || rest[d.dim] == 0) return false;
            rest[d.dim] /= d.extent;
        }
        return true;
    }
    /// True when the digits of `dim` do not divide its size: its pieces are nested ceil chunks.
    bool is_uneven(std::size_t dim, std::int64_t size) const {
        for (auto const& d : digits_)
            if (d.dim == dim) {
                if (size % d.extent != 0) return true;
                size /= d.extent;
            }
        return false;
    }
    /// True when every digit of `dim` is a cut and they stand in mesh order.
    bool is_plain(std::size_t dim) const {
        int last = -1;
        for (auto const& d : digits_)
            if (d.dim == dim) {
                if (d.axis <= last) return false;
                last = d.axis;
            }
        return true;
    }
    /// Sizes of the piece that each rank holds; of the largest one where pieces differ. Precondition: fits(global), under either policy.
    shape local_shape(shape global) const {
        for (auto const& d : digits_)
            if (d.is_cut()) global[d.dim] = (global[d.dim] + d.extent - 1) / d.extent;
        return global;
    }

    /// Let `axis` (now Replicate) become `p`. A Shard cuts the *local* dim p.dim behind `p.outer` local elements; false (and no change)
    /// where no single digit can say that: the axis is not free, the extents do not divide, or the cut would straddle a boundary of digits.
    /// An axis of size 1 stays Replicate (true). Precondition: fits(global).
    bool apply(std::size_t axis, std::int64_t axis_size, placement p, shape const& global);
    /// The same under the uneven policy: what does not divide may become a nested ceil chunk. Precondition: fits(global, uneven).
    bool apply(std::size_t axis, std::int64_t axis_size, placement p, shape const& global, shard_policy policy) {
        bool const even_before = policy == shard_policy::even || !p.is_shard() || p.dim >= global.size() ||
                                 !is_uneven(p.dim, global[p.dim]);
        if (even_before && apply(axis, axis_size, p, global)) return true;
        return policy == shard_policy::uneven && p.is_shard() && p.dim < global.size() && p.outer == 1 && is_free(axis) &&
               push_uneven(axis, axis_size, p.dim, global[p.dim]);
    }
    /// Cut `dim` once more, innermost, into ceil chunks; false (and no change) where the result is even, not in mesh order, has whole
    /// factors, or fewer elements than ranks. Precondition: the axis is free.
    bool push_uneven(std::size_t axis, std::int64_t axis_size, std::size_t dim, std::int64_t size);
    /// Take the cut or partial of `axis` away (a gather or reduction). The inverse of apply. What a cut in front of others leaves is a
    /// whole factor.
    void release(std::size_t axis);
    /// Append a cut as the innermost digit of dim, after a whole factor `outer` (1: directly).
    void push_cut(std::size_t axis, std::int64_t axis_size, std::size_t dim, std::int64_t outer = 1);
    /// Exchange cuts: `order` lists the axes of the digits at positions [first, first + order.size()) anew.
    void reorder(std::size_t first, std::vector<std::pair<std::int8_t, std::int64_t>> const& order) {
        for (std::size_t i = 0; i < order.size(); ++i) {
            digits_[first + i].axis = order[i].first;
            digits_[first + i].extent = order[i].second;
        }
    }
    void set_partial(std::size_t axis, reduction r) { partial_[axis] = static_cast<std::uint8_t>(1 + static_cast<int>(r)); }
    /// True when the axis neither cuts nor holds partial values.
    bool is_free(std::size_t axis) const { return on(axis).is_replicate(); }

    std::string text(device_mesh const& mesh) const;
    void feed(stable_hasher& h) const {
        h.add(axes_).add(digits_.size());
        for (auto const& d : digits_) h.add(d.dim).add(d.axis).add(d.extent);
        for (auto p : partial_) h.add(p);
    }
    auto operator<=>(layout const&) const = default;
    /// Of equal layouts equal, and no more than that: for tables that are looked up, never walked.
    std::size_t hash() const {
        std::uint64_t h = axes_;
        auto const mix = [&h](std::uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15ULL ^ (h >> 29); };
        for (auto const& d : digits_)
            mix(std::uint64_t{d.dim} << 56 ^ static_cast<std::uint64_t>(static_cast<std::uint8_t>(d.axis)) << 48 ^
                static_cast<std::uint64_t>(d.extent));
        std::uint64_t partial = 0;
        for (auto p : partial_) partial = partial * 8 + p;
        mix(partial);
        return static_cast<std::size_t>(h ^ h >> 32);
    }

private:
    std::vector<layout_digit> digits_;  // sorted by dim; within a dim outermost first
    std::array<std::uint8_t, max_mesh_axes> partial_{};  // 0: none, else 1 + reduction
    std::uint8_t axes_ = 0;
    void normalise();
    bool fits_unevenly(shape const& global) const {
        for (std::size_t i = 0; i < digits_.size();) {
            std::size_t const dim = digits_[i].dim;
            std::int64_t ranks = 1;
            bool sound = dim < global.size();
            for (; i < digits_.size() && digits_[i].dim == dim; ++i) {
                sound = sound && digits_[i].extent >= 1;
                ranks *= digits_[i].extent;
            }
            if (!sound || global[dim] == 0) return false;
            if (is_uneven(dim, global[dim]) && (!is_plain(dim) || global[dim] < ranks)) return false;
        }
        return true;
    }
};

/// For std::unordered_map.
struct layout_hash {
    std::size_t operator()(layout const& l) const { return l.hash(); }
};

inline void layout::normalise() {
    std::vector<layout_digit> out;
    for (std::size_t i = 0; i < digits_.size(); ++i) {
        auto const& d = digits_[i];
        if (d.extent == 1) continue;
        if (!d.is_cut()) {
            if (!out.empty() && out.back().dim == d.dim && !out.back().is_cut()) {
                out.back().extent *= d.extent;
                continue;
            }
        }
        // A factor that ended its dim says nothing: it is part of the implicit trailing digit.
        if (!out.empty() && out.back().dim != d.dim && !out.back().is_cut()) out.pop_back();
        out.push_back(d);
    }
    if (!out.empty() && !out.back().is_cut()) out.pop_back();
    digits_ = std::move(out);
}

inline bool layout::apply(std::size_t axis, std::int64_t axis_size, placement p, shape const& global) {
    if (!is_free(axis)) return false;
    if (p.is_replicate()) return true;
    if (p.is_shard() && (p.dim >= global.size() || p.outer < 1)) return false;
    if (axis_size == 1) return true;
    if (p.is_partial()) {
        for (std::size_t a = 0; a < axes_; ++a)
            if (auto q = on(a); q.is_partial() && !commute(q.reduce, p.reduce)) return false;
        set_partial(axis, p.reduce);
        return true;
    }
    // Walk the whole digits of the dim (those the local dim consists of) until the cut's place.
    std::size_t first = 0;
    while (first < digits_.size() && digits_[first].dim < p.dim) ++first;
    std::size_t last = first;
    std::int64_t rest = global[p.dim];
    while (last < digits_.size() && digits_[last].dim == p.dim) rest /= digits_[last++].extent;
    std::int64_t skip = p.outer;
    for (std::size_t i = first; i <= last; ++i) {
        if (i < last && digits_[i].is_cut()) continue;
        std::int64_t const extent = i < last ? digits_[i].extent : rest;  // i == last: the trailing digit
        if (i < last && skip >= extent && skip % extent == 0) {
            skip /= extent;
            continue;
        }
        // The cut lies in this digit: [skip][axis_size][extent / skip / axis_size]
        if (extent == 0 || extent % skip != 0 || extent / skip % axis_size != 0) return false;
        std::uint8_t const dim = p.dim;
        layout_digit const three[] = {
            {dim, -1, skip}, {dim, static_cast<std::int8_t>(axis), axis_size}, {dim, -1, extent / skip / axis_size}};
        if (i < last) digits_.erase(digits_.begin() + static_cast<std::ptrdiff_t>(i));
        digits_.insert(digits_.begin() + static_cast<std::ptrdiff_t>(i), std::begin(three), std::end(three));
        normalise();
        return true;
    }
    return false;
}

inline void layout::release(std::size_t axis) {
    partial_[axis] = 0;
    for (auto& d : digits_)
        if (d.axis == static_cast<std::int8_t>(axis)) d.axis = -1;
    normalise();
}

inline void layout::push_cut(std::size_t axis, std::int64_t axis_size, std::size_t dim, std::int64_t outer) {
    std::size_t end = 0;
    while (end < digits_.size() && digits_[end].dim <= dim) ++end;
    auto const d = static_cast<std::uint8_t>(dim);
    layout_digit const pair[] = {{d, -1, outer}, {d, static_cast<std::int8_t>(axis), axis_size}};
    digits_.insert(digits_.begin() + static_cast<std::ptrdiff_t>(end), std::begin(pair), std::end(pair));
    normalise();
}

inline bool layout::push_uneven(std::size_t axis, std::int64_t axis_size, std::size_t dim, std::int64_t size) {
    if (axis_size == 1) return false;
    std::int64_t ranks = axis_size;
    for (auto const& d : digits_)
        if (d.dim == dim) {
            if (!d.is_cut() || d.axis >= static_cast<std::int8_t>(axis)) return false;
            ranks *= d.extent;
        }
    if (!is_plain(dim) || size < ranks || size % ranks == 0) return false;
    push_cut(axis, axis_size, dim);
    return true;
}

inline layout layout::from_placements(device_mesh const& mesh, std::vector<placement> const& per_axis) {
    CANTLE_ASSERT(per_axis.size() == mesh.dims(), "one placement per axis");
    layout l(mesh.dims());
    for (std::size_t a = 0; a < per_axis.size(); ++a) {
        CANTLE_ASSERT(per_axis[a].outer == 1, "plain placements have no outer factor");
        if (mesh.size(a) == 1) continue;
        if (per_axis[a].is_partial()) l.set_partial(a, per_axis[a].reduce);
        else if (per_axis[a].is_shard()) l.push_cut(a, mesh.size(a), per_axis[a].dim);
    }
    return l;
}

inline std::string layout::text(device_mesh const& mesh) const {
    std::string s;
    for (std::size_t a = 0; a < axes_; ++a) s += (a ? "," : "") + to_string(on(a));
    if (in_mesh_order()) return s;
    for (std::size_t i = 0; i < digits_.size();) {
        std::size_t j = i;
        bool plain = true;
        std::string list;
        for (; j < digits_.size() && digits_[j].dim == digits_[i].dim; ++j) {
            plain = plain && digits_[j].is_cut() && (j == i || digits_[j].axis > digits_[j - 1].axis);
            auto const& d = digits_[j];
            list += (j > i ? ">" : "") + (d.is_cut() ? mesh.name(static_cast<std::size_t>(d.axis)) : std::to_string(d.extent));
        }
        if (!plain) s += "; d" + std::to_string(digits_[i].dim) + "=" + list;
        i = j;
    }
    return s;
}

inline layout layout::parse(device_mesh const& mesh, std::string_view text) {
    auto fail = [&](std::string const& why) -> error {
        return error(error_code::bad_layout, "layout '" + std::string(text) + "'", why,
                     "write one placement per mesh axis: R, S<dim> or P, as in S0,R for mesh " + mesh.text());
    };
    auto trim = [](std::string s) {
        while (!s.empty() && s.front() == ' ') s.erase(s.begin());
        while (!s.empty() && s.back() == ' ') s.pop_back();
        return s;
    };
    auto parts = detail::split_text(text, ';');
    std::vector<placement> per_axis;
    for (auto const& p : detail::split_text(parts[0], ',')) {
        auto const q = parse_placement(trim(p));
        if (!q) throw fail("'" + p + "' is no placement");
        per_axis.push_back(*q);
    }
    if (per_axis.size() != mesh.dims())
        throw fail(std::to_string(per_axis.size()) + " placements for " + std::to_string(mesh.dims()) + " axes");
    layout l = from_placements(mesh, per_axis);
    for (std::size_t a = 0; a < per_axis.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
            if (per_axis[a].is_partial() && per_axis[b].is_partial() && !commute(per_axis[a].reduce, per_axis[b].reduce))
                throw fail("kinds of Partial that do not commute");
    // Far above every tensor, far below overflow of a product of two.
    constexpr std::int64_t most = std::int64_t{1} << 50;
    std::vector<std::uint8_t> listed;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        auto const eq = detail::split_text(trim(parts[i]), '=');
        auto const dim = eq.size() == 2 && eq[0].size() >= 2 && eq[0][0] == 'd' ? parse_placement("S" + eq[0].substr(1)) : std::nullopt;
        if (!dim) throw fail("'" + parts[i] + "' is not of the form d0=tp>dp");
        if (std::find(listed.begin(), listed.end(), dim->dim) != listed.end())
            throw fail("dim " + std::to_string(dim->dim) + " is listed twice");
        listed.push_back(dim->dim);
        std::int64_t product = 1;
        std::vector<layout_digit> digits;
        for (auto const& text_of_item : detail::split_text(eq[1], '>')) {
            auto const item = trim(text_of_item);
            if (!item.empty() && item.size() < 16 && item.find_first_not_of("0123456789") == std::string::npos && item[0] != '0')
                digits.push_back({dim->dim, -1, std::stoll(item)});
            else {
                if (item.empty() || (item[0] != '_' && !std::isalpha(static_cast<unsigned char>(item[0]))))
                    throw fail("'" + item + "' is neither an axis nor a whole factor");
                auto const a = mesh.find(item);
                if (!per_axis[a.value].is_shard(dim->dim)) throw fail("axis " + item + " is not S" + std::to_string(dim->dim));
                for (auto const& d : digits)
                    if (d.axis == static_cast<std::int8_t>(a.value)) throw fail("axis " + item + " stands twice");
                digits.push_back({dim->dim, static_cast<std::int8_t>(a.value), mesh.size(a)});
            }
            if (digits.back().extent > most / product) throw fail("its factors are too large");
            product *= digits.back().extent;
        }
        std::size_t cuts = 0, wanted = 0;
        for (auto const& d : digits) cuts += d.is_cut();
        for (auto const& p : per_axis) wanted += p.is_shard(dim->dim);
        if (cuts == 0 || cuts != wanted) throw fail("not all axes that cut dim " + std::to_string(dim->dim) + " are listed");
        std::erase_if(l.digits_, [&](auto const& d) { return d.dim == dim->dim; });
        auto at = l.digits_.begin();
        while (at != l.digits_.end() && at->dim < dim->dim) ++at;
        l.digits_.insert(at, digits.begin(), digits.end());
        l.normalise();
    }
    return l;
}

}  // namespace cantle
