// SPDX-License-Identifier: BSL-1.0
#pragma once
// A rule to fill in for an op that has none: C++ that compiles as it stands, on one line, so that it survives being printed in an error.
#include <cantle/rules/axis_row.hpp>

#include <string>
#include <vector>

namespace cantle {

namespace detail {
/// "self [4, 6], other [4, 6]": operands under the names of the op's arguments.
inline std::string operand_text(op const& o, std::vector<tensor_meta> const& operands) {
    std::vector<std::string> names(operands.size());
    for (auto const& a : o.arguments) {
        if (auto const* s = std::get_if<operand_slot>(&a.value); s && s->index < names.size()) names[s->index] = a.name;
        if (auto const* list = std::get_if<operand_slots>(&a.value))
            for (auto i : list->indices)
                if (i >= 0 && static_cast<std::size_t>(i) < names.size()) names[static_cast<std::size_t>(i)] = a.name;
    }
    std::string s;
    for (std::size_t i = 0; i < operands.size(); ++i)
        s += (i ? ", " : "") + (names[i].empty() ? "" : names[i] + " ") + shape_text(operands[i].sizes);
    return s;
}
inline std::string output_text(std::vector<tensor_meta> const& outputs) {
    std::string s;
    for (std::size_t i = 0; i < outputs.size(); ++i) s += (i ? ", " : "") + (outputs[i].defined ? shape_text(outputs[i].sizes) : "none");
    return s;
}
/// Text inside a comment or a string literal.
inline std::string harmless(std::string s) {
    for (char& c : s)
        if (c == '"' || c == '\\' || c == '*' || c == '\n' || c == '\r') c = '_';
    return s;
}
}  // namespace detail

/// rules.add("mine::gate", [](...) { ... }); for a rule_registry named rules. It states the row that is true of every op, with all tensors
/// whole, in the right arity; what else is true is to be added.
inline std::string rule_stub(op const& o, std::vector<tensor_meta> const& operands, std::vector<tensor_meta> const& outputs) {
    auto const whole = [](std::size_t n) {
        std::string s = "{";
        for (std::size_t i = 0; i < n; ++i) s += i ? ", p::replicate()" : "p::replicate()";
        return s + "}";
    };
    return "rules.add(\"" + detail::harmless(o.name) +
           "\", [](cantle::op_query const&, std::int64_t, cantle::row_list& rows) { using p = cantle::placement; rows.add(" +
           whole(operands.size()) + ", " + whole(outputs.size()) + "); /* " + detail::harmless(detail::operand_text(o, operands)) + " -> " +
           detail::harmless(detail::output_text(outputs)) + ": add a row for all that is true, of p::shard(dim) and p::partial() */ });";
}

}  // namespace cantle
