// SPDX-License-Identifier: BSL-1.0
#pragma once
// One transfer by itself, and one between two members: sizes that lead from `before` through the buffers to `after`, and rooms from which
// each takes exactly what the other put there.
#include <cantle/program/transfer.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace cantle::detail {

/// Whether the rearrangement is one of a tensor of `elements`.
inline bool is_sound(rearrangement const& r, std::int64_t elements) {
    auto order = r.order;
    std::sort(order.begin(), order.end());
    if (order.size() != r.view.size()) return false;
    for (std::size_t i = 0; i < order.size(); ++i)
        if (order[i] != static_cast<std::int64_t>(i)) return false;
    return element_count(r.view) == elements && element_count(r.result) == elements;
}

/// What is wrong with the transfer of one rank; empty where nothing is. Where its sizes are not known (before is empty) only its group is
/// looked at.
inline std::string find_transfer_problem(transfer const& t, device_mesh const& mesh, std::int64_t rank) {
    std::int64_t members = 1;
    std::uint32_t seen = 0;
    for (auto a : t.axes) {
        if (a >= mesh.dims() || (seen >> a & 1u)) return "its group is along axes that the mesh does not have, or along one twice";
        seen |= 1u << a;
        members *= mesh.size(a);
    }
    if (t.members != members || t.member != member_of(mesh, t.axes, rank)) return "has a wrong place in its group";
    if (t.kind == collective_kind::permute)
        for (auto m : {t.send_to, t.receive_from})
            if (m < 0 || m >= members) return "exchanges with a member that its group does not have";
    bool const reduces = t.kind == collective_kind::all_reduce, keeps = reduces || t.kind == collective_kind::permute;
    if (keeps && (!t.spread.empty() || !t.close.empty() || t.before != t.after || !t.pack.is_identity() || !t.unpack.is_identity()))
        return "packs, although its kind sends pieces as they are";
    if (t.before.empty() && t.after.empty()) return {};

    std::string const sizes = "its sizes do not lead from " + shape_text(t.before) + " to " + shape_text(t.after);
    for (auto const* list : {&t.spread, &t.close})
        for (std::size_t i = 1; i < list->size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if ((*list)[i].dim == (*list)[j].dim) return "makes room in one dim twice";
    auto at = t.before;
    for (auto const& s : t.spread) {
        if (s.dim >= at.size() || !s.is_sound() || at[s.dim] != s.closed_extent()) return sizes + ": it cannot be spread so";
        at[s.dim] = s.extent;
    }
    if (!is_sound(t.pack, element_count(at))) return sizes + ": it cannot be packed so";
    bool const scatters = t.kind == collective_kind::reduce_scatter || t.kind == collective_kind::all_to_all || t.takes_part();
    if (scatters && (t.sent().empty() || t.sent()[0] != members)) return sizes + ": it does not pack one part per member";
    auto const got = t.communicates() ? element_count(t.received())
                                      : element_count(t.takes_part() ? shape(t.sent().begin() + 1, t.sent().end()) : t.sent());
    if (!is_sound(t.unpack, got)) return sizes + ": it cannot be unpacked so";
    at = t.unpack.result;
    for (auto const& s : t.close) {
        if (s.dim >= at.size() || !s.is_sound() || at[s.dim] != s.extent) return sizes + ": its padding cannot be left out so";
        at[s.dim] = s.closed_extent();
    }
    return at == t.after ? std::string() : sizes + ", but to " + shape_text(at);
}

/// One member's part of a dim in the room that it has in the buffer: which room, how much of it is data.
struct room_use {
    std::int64_t begin = 0, size = 0, room = 0;
    bool operator==(room_use const&) const = default;
};
/// Part `m` of `s`, or the only one that it has.
inline room_use use_of(dim_spacing const& s, std::int64_t members, std::int64_t m) {
    if (s.sizes.size() == 1) return {s.begins[0], s.sizes[0], s.extent};
    auto const i = static_cast<std::size_t>(m);
    auto const room = s.extent / members;
    return {s.begins[i] - m * room, s.sizes[i], room};
}
inline dim_spacing const* find_spacing(std::vector<dim_spacing> const& list, std::size_t dim) {
    for (auto const& s : list)
        if (s.dim == dim) return &s;
    return nullptr;
}

/// Whether `receiver` takes out of what `sender` brings exactly the part that `sender` put there for it, dim by dim. Where one of the two
/// has no room around its data in a dim, the other must fill all of it. Preconditions: both are sound, and of one group and kind.
inline bool takes_what_was_put(transfer const& sender, transfer const& receiver) {
    if (sender.spread.empty() && receiver.close.empty()) return true;
    for (std::size_t d = 0; d < sender.before.size(); ++d) {
        auto const *put = find_spacing(sender.spread, d), *taken = find_spacing(receiver.close, d);
        for (auto const* s : {put, taken})
            if (s && s->sizes.size() != 1 && static_cast<std::int64_t>(s->sizes.size()) != sender.members) return false;
        auto const was_put = put ? use_of(*put, sender.members, receiver.member) : room_use{};
        auto const is_taken = taken ? use_of(*taken, sender.members, sender.member) : room_use{};
        if (put && taken && was_put != is_taken) return false;
        if (put && !taken && was_put != room_use{0, was_put.room, was_put.room}) return false;
        if (taken && !put && is_taken != room_use{0, is_taken.room, is_taken.room}) return false;
    }
    return true;
}

}  // namespace cantle::detail
