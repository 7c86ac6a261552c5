// SPDX-License-Identifier: BSL-1.0
#pragma once
// The bias goes back into its linear: add(linear(x, w), b) -> linear(x, w, b), where the graph says that PyTorch ran it so, nobody else
// reads the product and no collective lies between (DECISIONS 5). One rounding instead of two, which are eager's bits, and one pass over
// the product less.
#include <cantle/program/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cantle {

/// The program with its biases put back; the call stands where the add stood.
inline rank_program fuse_biases(rank_program p) {
    constexpr auto none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> made(p.values.size(), none), reads(p.values.size(), 0);
    for (auto const& port : p.outputs) ++reads[port.value];
    for (std::size_t s = 0; s < p.steps.size(); ++s) {
        for (auto v : p.steps[s].inputs) ++reads[v];
        for (auto v : p.steps[s].outputs) made[v] = s;
    }
    std::vector<bool> gone(p.steps.size(), false);
    for (auto& add : p.steps) {
        if (add.call.name != "aten::add.Tensor" || add.inputs.size() != 2 || !add.call.get<bool>("fused_with_linear", false)) continue;
        auto const *const self = add.call.find("self"), *const other = add.call.find("other");
        if (!self || !other || *self != argument_value(operand_slot{0}) || *other != argument_value(operand_slot{1})) continue;
        auto const product = add.inputs[0], bias = add.inputs[1];
        if (made[product] == none || reads[product] != 1) continue;
        auto& linear = p.steps[made[product]];
        auto const &of = p.values[product], &b = p.values[bias];
        auto const* const own = linear.call.find("bias");
        bool const fits = linear.call.name == "aten::linear" && linear.inputs.size() == 2 &&
                          (!own || std::holds_alternative<std::monostate>(*own)) && of.sizes && b.sizes &&
                          b.type == of.type && b.sizes->size() == 1 && !of.sizes->empty() && (*b.sizes)[0] == of.sizes->back();
        if (!fits) continue;
        gone[made[product]] = true;
        add.call = linear.call;
        add.inputs = {linear.inputs[0], linear.inputs[1], bias};
        std::erase_if(add.call.arguments, [](auto const& a) { return a.name == "bias"; });
        add.call.arguments.push_back({"bias", operand_slot{2}});
    }
    std::size_t kept = 0;
    for (std::size_t s = 0; s < p.steps.size(); ++s) {
        if (gone[s]) continue;
        if (kept != s) p.steps[kept] = std::move(p.steps[s]);
        ++kept;
    }
    p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(kept), p.steps.end());
    note_last_uses(p);
    return p;
}

}  // namespace cantle
