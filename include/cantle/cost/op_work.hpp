// SPDX-License-Identifier: BSL-1.0
#pragma once
// How much an op has to do: floating point operations and bytes moved, from the metas of its operands and outputs. Counts are doubles.
// Strides are not looked at: a program makes its tensors contiguous, and views are free (DECISIONS 20).
#include <cantle/base/error.hpp>
#include <cantle/graph/op_query.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cantle {

/// What decides an op's work.
enum class work_kind : std::uint8_t {
    memory,               ///< reads its operands, writes its outputs; flops not counted
    free,                 ///< moves nothing: sources, sinks, relays, getitem, views
    contraction,          ///< a matrix product over the last dim of an argument
    leading_contraction,  ///< a matrix product over all but the last dim of an argument
    attention,
    attention_backward,
    batched_contraction,  ///< a contraction whose batch is summed over as well
    grouped_contraction,  ///< a matrix product per run of the rows of `self` or of the columns of `mat2`
    convolution,
    convolution_backward,
    lookup,               ///< reads only those rows of its first argument that it writes
    declared,             ///< a region: argument flops_per_element times the elements of its output 0
    declared_backward,    ///< twice that, for the gradient of output 0, which is its operand 0
};

struct work_row {
    std::string_view name;
    work_kind kind = work_kind::memory;
    std::string_view argument = {};  ///< of a contraction: the tensor whose dims are contracted and whose dtype sets the rate
};

namespace detail {
/// Sorted by name; every op that is not here is bound by memory.
inline constexpr std::array work_rows = std::to_array<work_row>({
    {"aten::_conj", work_kind::free},
    {"aten::_grouped_mm", work_kind::grouped_contraction, "self"},
    {"aten::_reshape_alias", work_kind::free},
    {"aten::_scaled_dot_product_cudnn_attention", work_kind::attention},
    {"aten::_scaled_dot_product_cudnn_attention_backward", work_kind::attention_backward},
    {"aten::_scaled_dot_product_efficient_attention", work_kind::attention},
    {"aten::_scaled_dot_product_efficient_attention_backward", work_kind::attention_backward},
    {"aten::_scaled_dot_product_flash_attention", work_kind::attention},
    {"aten::_scaled_dot_product_flash_attention_backward", work_kind::attention_backward},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", work_kind::attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", work_kind::attention_backward},
    {"aten::_scaled_dot_product_fused_attention_overrideable", work_kind::attention},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", work_kind::attention_backward},
    {"aten::_unsafe_view", work_kind::free},
    {"aten::addbmm", work_kind::batched_contraction, "batch1"},
    {"aten::addmm", work_kind::contraction, "mat1"},
    {"aten::addmv", work_kind::contraction, "mat"},
    {"aten::alias", work_kind::free},
    {"aten::as_strided", work_kind::free},
    {"aten::baddbmm", work_kind::contraction, "batch1"},
    {"aten::bmm", work_kind::contraction, "self"},
    {"aten::chunk", work_kind::free},
    {"aten::convolution", work_kind::convolution, "input"},
    {"aten::convolution_backward", work_kind::convolution_backward, "input"},
    {"aten::detach", work_kind::free},
    {"aten::diagonal", work_kind::free},
    {"aten::dot", work_kind::contraction, "self"},
    {"aten::embedding", work_kind::lookup},
    {"aten::expand", work_kind::free},
    {"aten::flatten.using_ints", work_kind::free},
    {"aten::imag", work_kind::free},
    {"aten::linear", work_kind::contraction, "input"},
    {"aten::matmul", work_kind::contraction, "self"},
    {"aten::mm", work_kind::contraction, "self"},
    {"aten::movedim.int", work_kind::free},
    {"aten::mv", work_kind::contraction, "self"},
    {"aten::narrow", work_kind::free},
    {"aten::permute", work_kind::free},
    {"aten::real", work_kind::free},
    {"aten::reshape", work_kind::free},
    {"aten::select.int", work_kind::free},
    {"aten::slice.Tensor", work_kind::free},
    {"aten::split.Tensor", work_kind::free},
    {"aten::split_with_sizes", work_kind::free},
    {"aten::squeeze", work_kind::free},
    {"aten::squeeze.dim", work_kind::free},
    {"aten::squeeze.dims", work_kind::free},
    {"aten::t", work_kind::free},
    {"aten::transpose.int", work_kind::free},
    {"aten::unbind.int", work_kind::free},
    {"aten::unflatten.int", work_kind::free},
    {"aten::unfold", work_kind::free},
    {"aten::unsqueeze", work_kind::free},
    {"aten::vdot", work_kind::contraction, "self"},
    {"aten::view", work_kind::free},
    {"aten::view.dtype", work_kind::free},
    {"aten::view_as", work_kind::free},
    {"aten::view_as_complex", work_kind::free},
    {"aten::view_as_real", work_kind::free},
    {"cantle::buffer", work_kind::free},
    {"cantle::constant", work_kind::free},
    {"cantle::getitem", work_kind::free},
    {"cantle::input", work_kind::free},
    {"cantle::linear_grad_input", work_kind::contraction, "grad"},
    {"cantle::linear_grad_weight", work_kind::leading_contraction, "grad"},
    {"cantle::output", work_kind::free},
    {"cantle::parameter", work_kind::free},
    {"cantle::region", work_kind::declared},
    {"cantle::region_backward", work_kind::declared_backward},
    {"cantle::relay", work_kind::free},
    {"cantle::sdpa", work_kind::attention},
    {"cantle::sdpa_backward", work_kind::attention_backward},
    {"cantle::tangent", work_kind::free},
    {"cantle::target", work_kind::free},
});
static_assert(std::is_sorted(work_rows.begin(), work_rows.end(), [](auto const& a, auto const& b) { return a.name < b.name; }));

inline tensor_meta const& work_operand(op_query const& q, std::string_view argument, std::size_t least_rank) {
    auto const slot = q.operation->slot(argument);
    if (!slot || *slot >= q.operands.size() || !q.operands[*slot].defined || q.operands[*slot].rank() < least_rank)
        throw error(error_code::bad_graph, q.name(),
                    "its argument '" + std::string(argument) + "' is not a tensor of at least " + std::to_string(least_rank) + " dims",
                    "give the op the arguments of its schema");
    return q.operands[*slot];
}
inline double work_size(tensor_meta const& m, std::size_t from_last) { return static_cast<double>(m.sizes[m.rank() - from_last]); }
}  // namespace detail

/// The row of an op; kind memory for ops without one.
inline work_row find_work(std::string_view name) {
    auto const& rows = detail::work_rows;
    auto const at = std::lower_bound(rows.begin(), rows.end(), name, [](work_row const& r, std::string_view n) { return r.name < n; });
    return at != rows.end() && at->name == name ? *at : work_row{name};
}

/// True for ops that cost nothing at all, not even a launch.
inline bool is_free_op(std::string_view name) { return find_work(name).kind == work_kind::free; }

/// What a causal mask is worth. `full`: nothing, as the reference's counts have it (torch.utils.flop_counter); attention kernels also stay
/// further below their peak than matrix products, so this errs less than it seems. `kept_pairs`: only pairs that the mask keeps.
enum class causal_count : std::uint8_t { full, kept_pairs };

namespace detail {
/// Query-key pairs of an attention op over its batch and query heads. is_causal keeps key j for query i where j <= i.
inline double attention_pairs(op_query const& q, tensor_meta const& query, tensor_meta const& key, causal_count causal) {
    double const s = work_size(query, 2), t = work_size(key, 2);
    double heads = 1;
    for (std::size_t d = 0; d + 2 < query.rank(); ++d) heads *= static_cast<double>(query.sizes[d]);
    double pairs = s * t;
    if (causal == causal_count::kept_pairs && q.operation->get("is_causal", false)) {
        double const m = std::min(s, t);
        pairs = m * (m + 1) / 2 + (s - m) * t;
    }
    return heads * pairs;
}
}  // namespace detail

/// Floating point operations; a multiply-add counts two. Matrix products, convolutions and attention only, 0 for everything else.
/// Attention: 2 products forward, 5 backward (scores once more, and the gradients of scores, value, query and key).
/// Throws bad_graph where an argument that the count needs is missing.
inline double count_flops(op_query const& q, work_row const& row, causal_count causal = causal_count::full) {
    switch (row.kind) {
        case work_kind::contraction: {
            auto const& in = detail::work_operand(q, row.argument, 1);
            return q.outputs.empty() ? 0.0 : 2.0 * static_cast<double>(q.outputs[0].elements()) * detail::work_size(in, 1);
        }
        case work_kind::leading_contraction: {
            auto const& in = detail::work_operand(q, row.argument, 1);
            double const last = detail::work_size(in, 1);
            if (q.outputs.empty() || last == 0) return 0.0;
            return 2.0 * static_cast<double>(q.outputs[0].elements()) * (static_cast<double>(in.elements()) / last);
        }
        case work_kind::batched_contraction: {
            auto const& in = detail::work_operand(q, row.argument, 3);
            if (q.outputs.empty()) return 0.0;
            return 2.0 * static_cast<double>(q.outputs[0].elements()) * detail::work_size(in, 1) * detail::work_size(in, 3);
        }
        case work_kind::grouped_contraction: {
            auto const& a = detail::work_operand(q, "self", 2);
            auto const& b = detail::work_operand(q, "mat2", 2);
            // Every run is multiplied once: where both are matrices the runs lie in the contracted dim, whatever the number of groups.
            double const columns = detail::work_size(b, 1);
            return a.rank() == 3 && b.rank() == 2 ? 2.0 * detail::work_size(a, 2) * detail::work_size(a, 1) * columns
                                                  : 2.0 * static_cast<double>(a.elements()) * columns;
        }
        case work_kind::convolution:
        case work_kind::convolution_backward: {
            // A multiply-add per element of the weight and pixel: of the output, or of the input where it is transposed; twice in backward,
            // once per gradient asked for.
            bool const backward = row.kind == work_kind::convolution_backward;
            auto const& weight = detail::work_operand(q, "weight", 3);
            auto const& input = detail::work_operand(q, "input", 3);
            if (!backward && q.outputs.empty()) return 0.0;
            auto const& out = backward ? detail::work_operand(q, "grad_output", 3) : q.outputs[0];
            auto const& pixels = q.operation->get("transposed", false) ? input : out;
            double const channels = detail::work_size(pixels, pixels.rank() - 1);
            if (channels == 0) return 0.0;
            double const once = 2.0 * static_cast<double>(weight.elements()) * static_cast<double>(pixels.elements()) / channels;
            if (!backward) return once;
            double products = 0;
            for (std::size_t o = 0; o < q.outputs.size() && o < 2; ++o) products += q.outputs[o].defined ? 1 : 0;
            return products * once;
        }
        case work_kind::attention:
        case work_kind::attention_backward: {
            auto const& query = detail::work_operand(q, "query", 2);
            auto const& key = detail::work_operand(q, "key", 2);
            double const e = detail::work_size(query, 1), ev = detail::work_size(detail::work_operand(q, "value", 2), 1);
            double const pairs = detail::attention_pairs(q, query, key, causal);
            return row.kind == work_kind::attention ? 2.0 * pairs * (e + ev) : 2.0 * pairs * (3 * e + 2 * ev);
        }
        case work_kind::declared:
        case work_kind::declared_backward: {
            bool const backward = row.kind == work_kind::declared_backward;
            auto const counted = backward ? q.operands : q.outputs;
            double const elements = counted.empty() ? 0.0 : static_cast<double>(counted[0].elements());
            return (backward ? 2.0 : 1.0) * q.operation->get<double>("flops_per_element", 0.0) * elements;
        }
        default: return 0.0;
    }
}
/// The type whose arithmetic rate an op with flops runs at.
inline dtype work_type(op_query const& q, work_row const& row) {
    if (row.kind == work_kind::declared) return q.outputs[0].type;
    if (row.kind == work_kind::declared_backward) return q.operands[0].type;
    return q.operands[*q.operation->slot(row.argument.empty() ? "query" : row.argument)].type;
}
inline double count_flops(op_query const& q, causal_count causal = causal_count::full) {
    return count_flops(q, find_work(q.name()), causal);
}

/// Bytes: all tensor operands (an operand used twice counts twice) and all outputs; 0 for free ops. A lookup reads, instead of its
/// table, as much as it writes: pricing the whole table would pay for sharding it, and pricing nothing misleads as well (case C16).
inline double count_bytes(op_query const& q, work_row const& row) {
    if (row.kind == work_kind::free) return 0.0;
    double read = 0, written = 0;
    for (auto const& m : q.operands) read += static_cast<double>(m.size_in_bytes().count);
    for (auto const& m : q.outputs) written += static_cast<double>(m.size_in_bytes().count);
    if (row.kind == work_kind::lookup && !q.operands.empty()) {
        double const table = static_cast<double>(q.operands[0].size_in_bytes().count);
        read += std::min(table, written) - table;
    }
    return read + written;
}
inline double count_bytes(op_query const& q) { return count_bytes(q, find_work(q.name())); }

}  // namespace cantle
