// SPDX-License-Identifier: BSL-1.0
#pragma once
// A region: a part of a model whose parallel form its author wrote by hand (expert dispatch, ring attention). It is ONE op and its
// backward, with placements declared per mesh axis name; nobody looks inside. What the texts mean is in rules/region_text.hpp.
//
//     cantle::region(inputs, name, in_placements, ...)              operands: the inputs
//     cantle::region_backward(grads, inputs, name, ..., grad_of, gradient_of)
//         operands: gradients of the outputs grad_of, then all inputs; outputs: gradients of the inputs gradient_of
#include <cantle/graph/op.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

inline constexpr std::string_view region_op_name = "cantle::region", region_backward_op_name = "cantle::region_backward";

/// What a region's author declares.
struct region_options {
    std::string name;                          ///< for messages and reports; equal names mean equal regions
    std::vector<std::string> inputs, outputs;  ///< placements, one text per tensor: "dp=S0, ep?=S1, *=R"
    std::vector<std::string> input_gradients;  ///< empty, or one text per input: what it says is not derived
    std::vector<std::string> output_gradients; ///< empty, or one text per output: the same for gradients that arrive
    double flops_per_element = 0;              ///< forward flops per element of output 0
    std::string collectives;                   ///< inner collectives to price: "ep:all_to_all:6in0, cp:permute:in1*ring"
    std::string backward_collectives;          ///< of the backward; empty: the forward's, and those reversed
    bool operator==(region_options const&) const = default;
};

namespace detail {
inline std::string joined(std::vector<std::string> const& texts) {
    std::string s;
    for (std::size_t i = 0; i < texts.size(); ++i) s += (i ? ";" : "") + texts[i];
    return s;
}
/// All arguments behind the tensors, in schema order.
inline void add_region_literals(op& o, region_options const& r) {
    o.arguments.push_back({"name", r.name});
    o.arguments.push_back({"in_placements", joined(r.inputs)});
    o.arguments.push_back({"out_placements", joined(r.outputs)});
    o.arguments.push_back({"grad_in_placements", joined(r.input_gradients)});
    o.arguments.push_back({"grad_out_placements", joined(r.output_gradients)});
    o.arguments.push_back({"flops_per_element", r.flops_per_element});
    o.arguments.push_back({"collectives", r.collectives});
    o.arguments.push_back({"backward_collectives", r.backward_collectives});
}
inline operand_slots slots_from(std::size_t first, std::size_t count) {
    operand_slots s;
    for (std::size_t i = 0; i < count; ++i) s.indices.push_back(static_cast<std::int32_t>(first + i));
    return s;
}
}  // namespace detail

/// The forward op; its operands are the region's inputs in order.
inline op region_op(region_options const& r) {
    op o{std::string(region_op_name), {{"inputs", detail::slots_from(0, r.inputs.size())}}};
    detail::add_region_literals(o, r);
    return o;
}

/// The backward op. `grad_of`: the outputs whose gradients arrive; `gradient_of`: the inputs whose gradients leave.
inline op region_backward_op(region_options const& r, std::vector<std::int64_t> grad_of, std::vector<std::int64_t> gradient_of) {
    op o{std::string(region_backward_op_name),
         {{"grads", detail::slots_from(0, grad_of.size())}, {"inputs", detail::slots_from(grad_of.size(), r.inputs.size())}}};
    detail::add_region_literals(o, r);
    o.arguments.push_back({"grad_of", std::move(grad_of)});
    o.arguments.push_back({"gradient_of", std::move(gradient_of)});
    return o;
}

}  // namespace cantle
