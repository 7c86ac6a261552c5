// SPDX-License-Identifier: BSL-1.0
#pragma once
// Pooling of the trailing dims, forward and backward. The dims in front pass. Averages are linear, and pass image dims whose windows do not
// overlap. Maxima come with indices into the whole image plane, so neither image dims nor Partial(max) pass (as in cases A22, A23).
#include <cantle/rules/affine.hpp>
#include <cantle/rules/local_program.hpp>
#include <cantle/rules/windows.hpp>

namespace cantle::rules {

namespace detail {
/// The dims in front of the `image` last ones, cut alike everywhere.
inline void add_leading_rows(op_query const& q, std::size_t image, row_list& rows) {
    for (std::size_t d = 0; d + image < q.operands[0].rank(); ++d)
        rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)),
                 std::vector<placement>(q.outputs.size(), placement::shard(d)));
}
}  // namespace detail

/// max_pool*_with_indices, adaptive_max_pool* (self) -> (values, indices).
inline axis_rule max_pool_rule(std::size_t image) {
    return [image](op_query const& q, std::int64_t, row_list& rows) { detail::add_leading_rows(q, image, rows); };
}
/// (grad_output, self, ..., indices) -> grad_input: a scatter of the gradient.
inline axis_rule max_pool_backward_rule(std::size_t image) {
    return [image](op_query const& q, std::int64_t, row_list& rows) {
        detail::add_leading_rows(q, image, rows);
        affine_rows(q, rows).jointly({q.operation->slot("grad_output")});
    };
}

/// avg_pool* (self, kernel_size, stride, padding, ...), and their backward (grad_output, self, ...), which is the transposed map.
inline axis_rule avg_pool_rule(std::size_t image) {
    return [image](op_query const& q, std::int64_t, row_list& rows) {
        detail::add_leading_rows(q, image, rows);
        auto const& narrow = q.operation->slot("grad_output") ? q.operands[0] : q.outputs[0];
        auto const& wide = q.operands.back();  // self
        for (std::size_t i = 0; i < image; ++i) {
            auto const d = wide.rank() - image + i;
            auto const kernel = entry_of(*q.operation, "kernel_size", i, 1);
            if (windows_tile(wide.sizes[d], narrow.sizes[d], kernel, entry_of(*q.operation, "stride", i, kernel),
                             entry_of(*q.operation, "padding", i, 0)))
                rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d)});
        }
        affine_rows(q, rows).jointly({0});
    };
}

/// _adaptive_avg_pool* (self, output_size) and their backward (grad_output, self). Windows tile where the output's size divides the
/// input's; an output of one element is the mean of the dim, and a cut of it an average of means.
inline axis_rule adaptive_avg_pool_rule(std::size_t image) {
    return [image](op_query const& q, std::int64_t, row_list& rows) {
        detail::add_leading_rows(q, image, rows);
        bool const backward = q.operands.size() == 2;
        auto const& narrow = backward ? q.operands[0] : q.outputs[0];
        auto const& wide = q.operands.back();
        for (auto d = wide.rank() - image; d < wide.rank(); ++d) {
            if (narrow.sizes[d] != 0 && wide.sizes[d] % narrow.sizes[d] == 0)
                rows.add(std::vector<placement>(q.operands.size(), placement::shard(d)), {placement::shard(d)});
            if (!backward && narrow.sizes[d] == 1) rows.add({placement::shard(d)}, {placement::partial(reduction::avg)});
        }
        affine_rows(q, rows).jointly({0});
    };
}
inline void adaptive_pool_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    if (auto const* size = o.find("output_size"); size && std::holds_alternative<std::vector<std::int64_t>>(*size)) {
        auto const& out = v.outputs[0].sizes();
        auto const image = static_cast<std::ptrdiff_t>(std::get<std::vector<std::int64_t>>(*size).size());
        set_argument(o, "output_size", shape(out.end() - image, out.end()));
    }
    run_whole(std::move(o), v, p);
}

inline void add_pooling_rules(rule_registry& r) {
    for (std::size_t image = 2; image <= 3; ++image) {
        auto const dims = std::to_string(image) + "d";
        r.add("aten::max_pool" + dims + "_with_indices", max_pool_rule(image));
        r.add("aten::max_pool" + dims + "_with_indices_backward", max_pool_backward_rule(image));
        r.add("aten::avg_pool" + dims, avg_pool_rule(image));
        r.add("aten::avg_pool" + dims + "_backward", avg_pool_rule(image));
        r.add("aten::_adaptive_avg_pool" + dims, adaptive_avg_pool_rule(image), adaptive_pool_local);
        r.add("aten::_adaptive_avg_pool" + dims + "_backward", adaptive_avg_pool_rule(image));
    }
    r.add("aten::avg_pool1d", avg_pool_rule(1));
    r.add("aten::adaptive_max_pool2d", max_pool_rule(2));
    r.add("aten::adaptive_max_pool2d_backward", max_pool_backward_rule(2));
}

}  // namespace cantle::rules
