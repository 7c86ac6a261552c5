// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops of one's own of a common kind, in one line each:
//
//     rules.add_op(cantle::own_pointwise{"mine::gated_add", 2, {.linear = true}});
//     rules.add_op(cantle::own_reduction{"mine::absmax", cantle::reduction::max});
//     rules.add_op(cantle::own_linear{"mine::fp8_linear"});
#include <cantle/rules/linear.hpp>
#include <cantle/rules/own_op.hpp>
#include <cantle/rules/pointwise.hpp>
#include <cantle/rules/reduction.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// Elementwise over `operand_count` tensors that broadcast; `traits` say how it treats Partial. One output of the first operand's type.
struct own_pointwise {
    std::string op_name;
    std::size_t operand_count = 1;
    rules::pointwise_traits traits{};

    std::string name() const { return op_name; }
    void rows(op_query const& q, std::int64_t n, row_list& rows) const { rules::pointwise_rule(traits)(q, n, rows); }
    std::vector<tensor_meta> output_metas(op const& o, std::vector<tensor_meta> const& operands) const {
        shape full;
        for (auto const& x : operands) {
            if (x.rank() > full.size()) full.insert(full.begin(), x.rank() - full.size(), 1);
            for (std::size_t i = 0; i < x.rank(); ++i) {
                auto& size = full[full.size() - 1 - i];
                auto const own = x.sizes[x.rank() - 1 - i];
                if (size != own && size != 1 && own != 1)
                    throw error(error_code::bad_graph, o.name, "the shapes of its operands do not broadcast", "correct the operands");
                if (size == 1) size = own;
            }
        }
        if (operands.empty()) throw error(error_code::bad_graph, o.name, "it has no operands", "give at least one");
        return {contiguous_meta(std::move(full), operands[0].type)};
    }
    own_example example() const {
        return {std::vector<tensor_meta>(operand_count, contiguous_meta({12, 24}, dtype::float32)), {}};
    }
};

/// A reduction over the dims of its argument "dim" (a list, an int, or absent: all), kept as size 1 where "keepdim" is true. `kind`: what
/// the parts of a cut dim combine by; `linear`: Partial(sum) passes (true of sums and means only).
struct own_reduction {
    std::string op_name;
    reduction kind = reduction::sum;
    bool linear = false;

    std::string name() const { return op_name; }
    void rows(op_query const& q, std::int64_t n, row_list& rows) const { rules::reduction_rule(kind, linear)(q, n, rows); }
    std::vector<tensor_meta> output_metas(op const& o, std::vector<tensor_meta> const& operands) const {
        auto const* dims = o.find("dim");
        std::vector<std::int64_t> named;
        if (dims && std::holds_alternative<std::int64_t>(*dims)) named = {std::get<std::int64_t>(*dims)};
        else named = o.get<std::vector<std::int64_t>>("dim", {});
        auto const rank = static_cast<std::int64_t>(operands[0].rank());
        std::vector<bool> reduced(operands[0].rank(), named.empty());
        for (auto d : named) {
            if (d < -rank || d >= rank)
                throw error(error_code::bad_graph, o.name, "it reduces dim " + std::to_string(d) + " of " + shape_text(operands[0].sizes),
                            "name dims that exist");
            reduced[static_cast<std::size_t>(d < 0 ? d + rank : d)] = true;
        }
        bool const keep = o.get<bool>("keepdim", false);
        shape sizes;
        for (std::size_t d = 0; d < reduced.size(); ++d)
            if (!reduced[d] || keep) sizes.push_back(reduced[d] ? 1 : operands[0].sizes[d]);
        return {contiguous_meta(std::move(sizes), operands[0].type)};
    }
    std::vector<own_example> example() const {
        std::vector<own_example> list;
        for (bool keep : {false, true})
            list.push_back({{contiguous_meta({12, 24}, dtype::float32)},
                            {{"self", operand_slot{0}}, {"dim", std::vector<std::int64_t>{1}}, {"keepdim", keep}}});
        return list;
    }
};

/// y[..., N] = x[..., K] w[N, K]^T in some arithmetic that is linear in x and in w.
struct own_linear {
    std::string op_name;

    std::string name() const { return op_name; }
    void rows(op_query const& q, std::int64_t n, row_list& rows) const { rules::linear_rule(q, n, rows); }
    std::vector<tensor_meta> output_metas(op const& o, std::vector<tensor_meta> const& operands) const {
        if (operands.size() != 2 || operands[0].rank() < 1 || operands[1].rank() != 2 || operands[0].sizes.back() != operands[1].sizes[1])
            throw error(error_code::bad_graph, o.name, "its operands are no x[..., K] and w[N, K]", "correct the operands");
        shape sizes = operands[0].sizes;
        sizes.back() = operands[1].sizes[0];
        return {contiguous_meta(std::move(sizes), operands[0].type)};
    }
    own_example example() const { return {{contiguous_meta({4, 12, 24}, dtype::float32), contiguous_meta({36, 24}, dtype::float32)}, {}}; }
};

}  // namespace cantle
