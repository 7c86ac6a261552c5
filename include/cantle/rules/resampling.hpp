// SPDX-License-Identifier: BSL-1.0
#pragma once
// Upsampling [N, C, ...] and pixel shuffles, forward and backward. All are linear in their one tensor; nearest neighbours and shuffles only
// copy, so they pass every kind of Partial. Batch and channels pass. Image dims pass where an output element needs no neighbour of its
// block: shuffles always, nearest neighbours when the image grows by a power of two (other ratios round the index of the source in
// floating point, and may round differently on a rank's part).
#include <cantle/rules/affine.hpp>
#include <cantle/rules/local_program.hpp>

#include <string>

namespace cantle::rules {

namespace detail {
inline void add_all_partials(op_query const& q, bool copies, row_list& rows) {
    affine_rows partial(q, rows);
    partial.jointly({0});
    if (copies) partial.addend(0);
}
inline bool is_power_of_two(std::int64_t x) { return x > 0 && (x & (x - 1)) == 0; }
/// Kernels divide by the scale where one is given, not by the ratio of the sizes. `from_last`: 1 for the last dim.
inline bool scale_is_ratio(op const& o, std::size_t from_last, double ratio) {
    char const* const names[] = {"scales_w", "scales_h", "scales_d"};
    auto scale = from_last <= 3 ? number(o, names[from_last - 1]) : std::nullopt;
    if (!scale) scale = number(o, "scales");  // the 1d forms
    return !scale || *scale == ratio;
}
}  // namespace detail

/// upsample_* (self, output_size, ...) or its backward (grad_output, output_size, input_size, ...). `nearest`: copies, does not mix.
inline axis_rule upsample_rule(bool nearest, bool backward) {
    return [nearest, backward](op_query const& q, std::int64_t, row_list& rows) {
        auto const& low = (backward ? q.outputs[0] : q.operands[0]).sizes;
        auto const& high = (backward ? q.operands[0] : q.outputs[0]).sizes;
        for (std::size_t d = 0; d < low.size(); ++d) {
            bool const blocks = nearest && low[d] > 0 && high[d] % low[d] == 0 && detail::is_power_of_two(high[d] / low[d]) &&
                                detail::scale_is_ratio(*q.operation, low.size() - d, static_cast<double>(high[d] / low[d]));
            if (d < 2 || blocks) rows.add({placement::shard(d)}, {placement::shard(d)});
        }
        detail::add_all_partials(q, nearest && !backward, rows);
    };
}

/// The image sizes of what the rank holds. The scales, where given, are ratios and stay.
inline void upsample_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    bool const backward = o.slot("grad_output").has_value();
    auto const& high = backward ? v.operands[0].sizes() : v.outputs[0].sizes();
    set_argument(o, "output_size", shape(high.begin() + 2, high.end()));
    if (backward) set_argument(o, "input_size", v.outputs[0].sizes());
    run_whole(std::move(o), v, p);
}

/// pixel_shuffle [..., C r r, H, W] -> [..., C, H r, W r] and its inverse: blocks of channels become blocks of pixels.
inline void pixel_shuffle_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d < q.operands[0].rank(); ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
    detail::add_all_partials(q, true, rows);
}

inline void add_resampling_rules(rule_registry& r) {
    for (std::string name : {"upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
                             "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
                             "upsample_trilinear3d", "upsample_bicubic2d"}) {
        bool const nearest = name.find("nearest") != std::string::npos;
        r.add("aten::" + name, upsample_rule(nearest, false), upsample_local);
        r.add("aten::" + name + "_backward", upsample_rule(nearest, true), upsample_local);
    }
    r.add_all({"aten::pixel_shuffle", "aten::pixel_unshuffle"}, pixel_shuffle_rule);
}

}  // namespace cantle::rules
