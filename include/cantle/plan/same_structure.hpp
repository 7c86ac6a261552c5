// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whether two graphs are one model at two sizes: the same ops at the same places, with sizes of the same ranks. Vertices correspond by
// position, so a plan of the one says how the other lies (DECISIONS 14, 20).
#include <cantle/graph/training_graph.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cantle {

namespace detail {

/// "ep:all_to_all:6in0*2, ep:all_gather:64B" -> "ep:all_to_all:in0*, ep:all_gather:B": how often and how many bytes follow from sizes;
/// which tensor does not.
inline std::string without_counts(std::string const& collectives) {
    std::string kept;
    for (char const c : collectives) {
        bool const digit = c >= '0' && c <= '9';
        bool const of_name = !kept.empty() && (kept.back() == 'n' || kept.back() == 't' || (kept.back() >= '0' && kept.back() <= '9'));
        if (!digit || of_name) kept += c;
    }
    return kept;
}

/// Numbers may be sizes or follow from them; names of dims, flags, types and tensors are the op's kind.
inline bool same_kind_of_value(std::string_view name, argument_value const& a, argument_value const& b) {
    if (a.index() != b.index()) return false;
    if (name.substr(0, 3) == "dim") return a == b;
    if (std::holds_alternative<std::int64_t>(a) || std::holds_alternative<double>(a)) return true;
    if (auto const* x = std::get_if<std::vector<std::int64_t>>(&a)) return x->size() == std::get<std::vector<std::int64_t>>(b).size();
    if (auto const* x = std::get_if<std::vector<double>>(&a)) return x->size() == std::get<std::vector<double>>(b).size();
    if (auto const* x = std::get_if<std::string>(&a); x && (name == "collectives" || name == "backward_collectives"))
        return without_counts(*x) == without_counts(std::get<std::string>(b));
    return a == b;
}
inline bool same_kind_of_tensor(tensor_meta const& a, tensor_meta const& b) {
    if (a.defined != b.defined || a.type != b.type || a.rank() != b.rank()) return false;
    for (std::size_t d = 0; d < a.rank(); ++d)  // a dim of size 1 broadcasts: that is no matter of scale
        if ((a.sizes[d] == 1) != (b.sizes[d] == 1) || (a.sizes[d] == 0) != (b.sizes[d] == 0)) return false;
    return true;
}

}  // namespace detail

/// The first difference that is none of scale, in words; nothing where there is none.
inline std::optional<std::string> structural_difference(training_graph const& full, training_graph const& scaled) {
    for (vertex v = 0; v < full.size() && v < scaled.size(); ++v) {
        auto const &a = full[v], &b = scaled[v];
        auto const at = "vertex " + std::to_string(v) + " '" + a.name + "': ";
        if (a.operation.name != b.operation.name || a.role != b.role || a.in_phase != b.in_phase)
            return at + "it is " + a.operation.name + " in one and " + b.operation.name + " ('" + b.name + "') in the other";
        if (a.role != node_role::computation && a.name != b.name) return at + "the other graph has '" + b.name + "' there";
        if (a.operands != b.operands || a.of != b.of) return at + "it reads or belongs to other vertices in the other graph";
        if (a.operation.arguments.size() != b.operation.arguments.size()) return at + "its arguments are other ones";
        for (std::size_t i = 0; i < a.operation.arguments.size(); ++i) {
            auto const &x = a.operation.arguments[i], &y = b.operation.arguments[i];
            if (x.name != y.name || !detail::same_kind_of_value(x.name, x.value, y.value))
                return at + "its argument '" + x.name + "' is of another kind";
        }
        if (a.outputs.size() != b.outputs.size()) return at + "it has another number of outputs";
        for (std::size_t i = 0; i < a.outputs.size(); ++i)
            if (!detail::same_kind_of_tensor(a.outputs[i], b.outputs[i]))
                return at + "output " + std::to_string(i) + " is " + std::string(to_string(a.outputs[i].type)) +
                       shape_text(a.outputs[i].sizes) + " in one and " + std::string(to_string(b.outputs[i].type)) +
                       shape_text(b.outputs[i].sizes) + " in the other";
    }
    if (full.size() != scaled.size())
        return "one has " + std::to_string(full.size()) + " vertices, the other " + std::to_string(scaled.size());
    return std::nullopt;
}

}  // namespace cantle
