// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/packing.hpp>

#include <ATen/Functions.h>

namespace cantle::libtorch {
namespace {

at::Tensor rearranged(at::Tensor const& t, rearrangement const& r) {
    if (r.is_identity()) return t.reshape(r.result).contiguous();
    return t.reshape(r.view).permute(r.order).reshape(r.result).contiguous();
}

/// This rank's part of `t` packed; the other parts are not copied.
at::Tensor own_part(at::Tensor const& t, transfer const& x) {
    auto const& r = x.pack;
    auto const part = r.is_identity() ? t.reshape(r.result).select(0, x.member) : t.reshape(r.view).permute(r.order).select(0, x.member);
    return part.reshape(at::IntArrayRef(r.result).slice(1)).contiguous();
}

at::Tensor spread(at::Tensor const& t, dim_spacing const& s) {
    auto const d = static_cast<std::int64_t>(s.dim);
    auto sizes = t.sizes().vec();
    sizes[s.dim] = s.extent;
    auto spaced = at::empty(sizes, t.options());
    std::int64_t from = 0, end = 0;
    for (std::size_t i = 0; i < s.sizes.size(); ++i) {
        spaced.narrow(d, end, s.begins[i] - end).zero_();
        spaced.narrow(d, s.begins[i], s.sizes[i]).copy_(t.narrow(d, from, s.sizes[i]));
        from += s.sizes[i];
        end = s.begins[i] + s.sizes[i];
    }
    spaced.narrow(d, end, s.extent - end).zero_();
    return spaced;
}
at::Tensor closed(at::Tensor const& t, dim_spacing const& s) {
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < s.sizes.size(); ++i) {
        if (s.sizes[i] == 0) continue;
        // Parts with no room between them are one: of one axis that cuts the dim only the end is left out.
        auto size = s.sizes[i];
        auto const begin = s.begins[i];
        while (i + 1 < s.sizes.size() && s.begins[i + 1] == begin + size) size += s.sizes[++i];
        parts.push_back(t.narrow(static_cast<std::int64_t>(s.dim), begin, size));
    }
    if (parts.empty()) return t.narrow(static_cast<std::int64_t>(s.dim), 0, 0);
    return parts.size() == 1 ? parts[0] : at::cat(parts, static_cast<std::int64_t>(s.dim));
}

}  // namespace

at::Tensor packed(at::Tensor const& value, transfer const& t) {
    if (t.before.empty()) return value.contiguous();
    if (t.takes_part()) return own_part(value, t);
    auto buffer = value;
    for (auto const& s : t.spread) buffer = spread(buffer, s);
    return rearranged(buffer, t.pack);
}

at::Tensor unpacked(at::Tensor const& buffer, transfer const& t) {
    if (t.before.empty()) return buffer;
    auto value = rearranged(buffer, t.unpack);
    for (auto const& s : t.close) value = closed(value, s);
    return value.contiguous();
}

}  // namespace cantle::libtorch
