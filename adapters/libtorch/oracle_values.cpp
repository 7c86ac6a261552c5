// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle_values.hpp>

#include <cantle/base/assert.hpp>
#include <cantle/base/tensor_type.hpp>
#include <cantle/mesh/local_piece.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

namespace cantle::libtorch {
namespace {

/// visit(position in the local tensor, position in the global one), in local order; stops where visit says false.
template <class Visit>
void for_each_held(std::vector<std::vector<std::int64_t>> const& held, shape const& global, Visit visit) {
    std::size_t const rank = global.size();
    std::vector<std::int64_t> stride(rank, 1);
    for (std::size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * global[d];
    std::int64_t count = 1;
    for (auto const& h : held) count *= static_cast<std::int64_t>(h.size());
    std::vector<std::size_t> at(rank, 0);
    std::int64_t position = 0;
    for (std::size_t d = 0; d < rank && count > 0; ++d) position += held[d][0] * stride[d];
    for (std::int64_t i = 0; i < count; ++i) {
        if (!visit(i, position)) return;
        for (std::size_t d = rank; d-- > 0;) {
            position -= held[d][at[d]] * stride[d];
            if (++at[d] < held[d].size()) {
                position += held[d][at[d]] * stride[d];
                break;
            }
            at[d] = 0;
            position += held[d][0] * stride[d];
        }
    }
}

shape sizes_of(std::vector<std::vector<std::int64_t>> const& held) {
    shape s;
    for (auto const& h : held) s.push_back(static_cast<std::int64_t>(h.size()));
    return s;
}

/// The rank's number among those that hold partial values of one element, and how many there are.
struct partial_group {
    std::int64_t number = 0, count = 1;
};
partial_group partial_group_of(layout const& l, device_mesh const& mesh, std::int64_t rank) {
    partial_group g;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (l.on(a).is_partial()) {
            g.number = g.number * mesh.size(a) + mesh.coordinate(rank, a);
            g.count *= mesh.size(a);
        }
    return g;
}

}  // namespace

std::vector<std::vector<std::int64_t>> held_indices(layout const& l, device_mesh const& mesh, shape const& global, std::int64_t rank) {
    std::vector<std::vector<std::int64_t>> held(global.size());
    std::size_t digit = 0;
    for (std::size_t d = 0; d < global.size(); ++d) {
        if (l.is_uneven(d, global[d])) {  // nested ceil chunks: an interval
            auto const piece = piece_of(l, mesh, global, rank);
            for (std::int64_t k = 0; k < piece.sizes[d]; ++k) held[d].push_back(piece.offset[d] + k);
            while (digit < l.digits().size() && l.digits()[digit].dim == d) ++digit;
            continue;
        }
        // Digits from the outermost: every whole one multiplies what is held, every cut one picks.
        std::vector<std::int64_t> starts{0};
        std::int64_t rest = global[d];
        for (; digit < l.digits().size() && l.digits()[digit].dim == d; ++digit) {
            auto const& x = l.digits()[digit];
            rest /= x.extent;
            std::vector<std::int64_t> next;
            for (auto start : starts)
                for (std::int64_t k = 0; k < x.extent; ++k)
                    if (!x.is_cut() || k == mesh.coordinate(rank, static_cast<std::size_t>(x.axis))) next.push_back(start + k * rest);
            starts = std::move(next);
        }
        for (auto start : starts)
            for (std::int64_t k = 0; k < rest; ++k) held[d].push_back(start + k);
    }
    return held;
}

rank_tensors pieces_of(rank_tensors const& parts, layout const& l, device_mesh const& mesh) {
    rank_tensors pieces;
    auto const global = parts[0].sizes().vec();
    for (std::int64_t rank = 0; rank < mesh.device_count(); ++rank) {
        auto const& whole = parts[static_cast<std::size_t>(partial_group_of(l, mesh, rank).number)];
        if (l.digits().empty()) {
            pieces.push_back(whole);
            continue;
        }
        auto const held = held_indices(l, mesh, global, rank);
        auto const source = whole.contiguous();
        auto piece = at::empty(sizes_of(held), whole.options());
        auto const size = static_cast<std::int64_t>(whole.element_size());
        auto const* from = static_cast<char const*>(source.data_ptr());
        auto* to = static_cast<char*>(piece.data_ptr());
        for_each_held(held, global, [&](std::int64_t i, std::int64_t position) {
            std::memcpy(to + i * size, from + position * size, static_cast<std::size_t>(size));
            return true;
        });
        pieces.push_back(std::move(piece));
    }
    return pieces;
}

plain_values plain(at::Tensor const& t, bool values_matter) {
    plain_values p;
    p.defined = t.defined();
    if (!p.defined) return p;
    p.type = t.scalar_type();
    p.sizes = t.sizes().vec();
    if (t.is_complex()) {  // pairs of numbers, in a last dim that no layout names
        auto const type = p.type;
        p = plain(at::view_as_real(t.resolve_conj()), values_matter);
        p.type = type;
        return p;
    }
    auto const count = static_cast<std::size_t>(t.numel());
    if (!values_matter) {
        p.values.assign(count, 0.0);
        return p;
    }
    auto const as_double = (p.type == at::kDouble ? t.resolve_neg() : t.to(at::kDouble)).contiguous();
    auto const* data = as_double.const_data_ptr<double>();
    p.values.assign(data, data + count);
    for (double v : p.values)
        if (std::isfinite(v)) p.scale = std::max(p.scale, std::abs(v));
    return p;
}

std::string difference(std::vector<plain_values> const& ranks, layout const& l, device_mesh const& mesh, plain_values const& want,
                       bool exact) {
    for (auto const& r : ranks) {
        if (r.defined != want.defined) return "defined on some ranks only";
        if (r.defined && r.type != want.type) return "another type";
    }
    if (!want.defined) return {};
    // Ops that round are compared within their type's precision; bf16 has none to spare.
    bool const wide = want.type == at::kDouble || want.type == at::kComplexDouble;
    double const epsilon = exact ? 0.0 : wide ? 1e-12 : want.type == at::kFloat ? 1e-6 : 0.0;
    // Partial sums may be large and cancel: what they round counts by their own size.
    double scale = want.scale;
    if (l.has_partial())
        for (auto const& r : ranks) scale = std::max(scale, r.scale);
    double const allowed = epsilon * scale;
    std::string found;
    auto const same = [&](double got, std::int64_t position) {
        double const w = want.values[static_cast<std::size_t>(position)];
        if (got == w || std::abs(got - w) <= allowed || (std::isnan(got) && std::isnan(w))) return true;
        std::ostringstream text;
        text << got << " instead of " << w << " at element " << position;
        found = text.str();
        return false;
    };
    double average_of = 1;
    reduction kind = reduction::sum;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (auto const p = l.on(a); p.is_partial()) {
            if (p.reduce == reduction::avg) average_of *= static_cast<double>(mesh.size(a));
            else kind = p.reduce;
        }
    for (std::int64_t rank = 0; rank < mesh.device_count(); ++rank) {
        auto const& first = ranks[static_cast<std::size_t>(rank)];
        auto const group = partial_group_of(l, mesh, rank);
        auto const held = held_indices(l, mesh, want.sizes, rank);
        if (auto const wanted = sizes_of(held); first.sizes != wanted)
            return "rank " + std::to_string(rank) + " has sizes " + shape_text(first.sizes) + " instead of " + shape_text(wanted);
        if (group.number != 0) continue;
        auto const compare = [&](std::vector<double> const& values) {
            for_each_held(held, want.sizes, [&](std::int64_t i, std::int64_t at) { return same(values[static_cast<std::size_t>(i)], at); });
        };
        if (group.count == 1) compare(first.values);
        else {
            auto all = first.values;
            for (std::int64_t other = 0; other < mesh.device_count(); ++other) {
                if (other == rank || partial_group_of(l, mesh, other).number == 0) continue;
                bool same_place = true;
                for (std::size_t a = 0; a < mesh.dims(); ++a)
                    same_place = same_place && (l.on(a).is_partial() || mesh.coordinate(rank, a) == mesh.coordinate(other, a));
                if (!same_place) continue;
                auto const& more = ranks[static_cast<std::size_t>(other)];
                if (more.sizes != first.sizes) return "the ranks' sizes differ";
                for (std::size_t i = 0; i < all.size(); ++i) {
                    double const v = more.values[i];
                    if (kind == reduction::max) all[i] = std::isnan(v) ? v : std::max(all[i], v);
                    else if (kind == reduction::min) all[i] = std::isnan(v) ? v : std::min(all[i], v);
                    else all[i] += v;
                }
            }
            for (auto& v : all) v /= average_of;
            compare(all);
        }
        if (!found.empty()) return found;
    }
    return {};
}

}  // namespace cantle::libtorch
