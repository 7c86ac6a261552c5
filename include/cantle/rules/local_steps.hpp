// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs of steps that several local rules share. Steps are ATen calls by name; their tensor slots index the inputs of the call.
#include <cantle/base/error.hpp>
#include <cantle/rules/local_program.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cantle::rules {

/// An argument of a step: a value of the program, or a literal.
struct step_argument {
    std::string name;
    bool is_value = false;
    local_value value = 0;
    argument_value literal{};

    template <class T>
    step_argument(char const* argument_name, T v) : name(argument_name) {
        if constexpr (std::is_same_v<T, local_value>) {
            is_value = true;
            value = v;
        } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) literal = static_cast<std::int64_t>(v);
        else literal = std::move(v);
    }
};

/// One call with one result; arguments in schema order.
inline local_value step(local_program& p, std::string name, std::vector<step_argument> arguments) {
    op call{std::move(name), {}};
    std::vector<local_value> inputs;
    for (auto& a : arguments) {
        if (a.is_value) {
            a.literal = operand_slot{static_cast<std::uint32_t>(inputs.size())};
            inputs.push_back(a.value);
        }
        call.arguments.push_back({std::move(a.name), std::move(a.literal)});
    }
    return p.call(std::move(call), std::move(inputs));
}
/// x in that type; x itself where it has it already.
inline local_value in_type(local_program& p, local_value x, dtype is, dtype wanted) {
    return is == wanted ? x : step(p, "aten::_to_copy", {{"self", x}, {"dtype", wanted}});
}
inline local_value trailing_dim(local_program& p, local_value x) { return step(p, "aten::unsqueeze", {{"self", x}, {"dim", -1}}); }
/// x where the mask is false, `value` where it is true.
template <class T>
local_value filled(local_program& p, local_value x, local_value mask, T value) {
    return step(p, "aten::masked_fill.Scalar", {{"self", x}, {"mask", mask}, {"value", value}});
}

/// Global indices into a dim of which a rank holds [first, first + count): made local, and which of them point elsewhere. Those become
/// `elsewhere`, so that the op that uses the indices can run. The offset belongs to this instance of the op (case A47).
struct own_indices {
    local_value local, foreign;
};
inline own_indices made_local(local_program& p, local_value indices, std::int64_t first, std::int64_t count, std::int64_t elsewhere = 0) {
    auto const shifted = step(p, "aten::sub.Scalar", {{"self", indices}, {"other", first}});
    auto const below = step(p, "aten::lt.Scalar", {{"self", shifted}, {"other", 0}});
    auto const above = step(p, "aten::ge.Scalar", {{"self", shifted}, {"other", count}});
    auto const foreign = step(p, "aten::logical_or", {{"self", below}, {"other", above}});
    return {filled(p, shifted, foreign, elsewhere), foreign};
}

/// The rank's part of dim d must be an interval, as all parts are that no whole factor stands in front of.
inline void need_interval(local_view const& v, port_view const& port, std::size_t d) {
    if (port.piece.interval || !port.is_cut(d)) return;
    throw error(error_code::bad_rule, "local program of " + v.operation->name, "its cut dim lies behind a whole factor",
                "let the rule place plain shards only");
}

}  // namespace cantle::rules
