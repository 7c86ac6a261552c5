// SPDX-License-Identifier: BSL-1.0
#pragma once
// For the tests of rules: an op with the metas that it sees, its rows as text, and the elements that a rank holds under a layout.
#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cantle::test {

using texts = std::vector<std::string>;
inline constexpr std::monostate none{};  ///< an argument that is None

/// An op with metas of its own. Tensor arguments count up in the order they are given.
struct example_op {
    op operation;
    std::vector<tensor_meta> operands, outputs;

    explicit example_op(std::string name) { operation.name = std::move(name); }
    example_op& tensor(std::string argument, shape sizes, dtype type = dtype::float32) {
        operation.arguments.push_back({std::move(argument), operand_slot{static_cast<std::uint32_t>(operands.size())}});
        operands.push_back(contiguous_meta(std::move(sizes), type));
        return *this;
    }
    example_op& tensors(std::string argument, std::vector<shape> const& list) {
        operand_slots slots;
        for (auto const& s : list) {
            slots.indices.push_back(static_cast<std::int32_t>(operands.size()));
            operands.push_back(contiguous_meta(s, dtype::float32));
        }
        operation.arguments.push_back({std::move(argument), std::move(slots)});
        return *this;
    }
    example_op& literal(std::string argument, argument_value value) {
        operation.arguments.push_back({std::move(argument), std::move(value)});
        return *this;
    }
    example_op& out(shape sizes, dtype type = dtype::float32) {
        outputs.push_back(contiguous_meta(std::move(sizes), type));
        return *this;
    }
    example_op& no_out() {
        outputs.push_back({{}, {}, dtype::float32, false});
        return *this;
    }
    op_query query() const { return {&operation, operands, outputs}; }
};

inline example_op view_op(shape from, shape to) {
    return example_op("aten::view").tensor("self", std::move(from)).literal("size", to).out(to);
}

/// The rows of one axis of size n whose shards divide, as text, in the rule's order, the all-Replicate row first.
inline std::vector<std::string> rows_of(example_op const& e, std::int64_t n, rule_registry const& rules = standard_rules()) {
    auto const divides = [n](placement p, tensor_meta const& t) {
        return !p.is_shard() || !t.defined || t.sizes[p.dim] % (p.outer * n) == 0;
    };
    std::vector<std::string> texts;
    for (auto const& row : rules.rows(e.query(), n)) {
        bool fits = true;
        for (std::size_t i = 0; i < row.operands.size(); ++i) fits = fits && divides(row.operands[i], e.operands[i]);
        for (std::size_t i = 0; i < row.outputs.size(); ++i) fits = fits && divides(row.outputs[i], e.outputs[i]);
        if (fits) texts.push_back(text_of(row));
    }
    return texts;
}
inline bool has(std::vector<std::string> const& texts, std::string_view text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// The strategies of an op on a mesh, as "operand layout | operand layout -> output layout".
struct expanded {
    layout_table table;
    strategy_table strategies;
    std::vector<std::string> texts;

    template <class Rules>
    expanded(example_op const& e, device_mesh const& mesh, Rules const& rules) {
        strategies = expand_axes(e.query(), mesh, rules, table);
        for (std::size_t s = 0; s < strategies.size(); ++s) {
            std::string t;
            for (std::size_t p = 0; p < strategies.ports(); ++p)
                t += (p == 0                          ? ""
                      : p == strategies.operand_count ? " -> "
                                                      : " | ") +
                     table[strategies.layouts[s * strategies.ports() + p]].text(mesh);
            texts.push_back(std::move(t));
        }
    }
    expanded(example_op const& e, device_mesh const& mesh) : expanded(e, mesh, standard_rules()) {}
    bool has(std::string_view text) const { return test::has(texts, text); }
    /// What stands behind "-> " for every strategy whose operands read `operands`.
    std::vector<std::string> outputs_for(std::string const& operands) const {
        std::vector<std::string> found;
        for (auto const& t : texts)
            if (t.rfind(operands + " -> ", 0) == 0) found.push_back(t.substr(operands.size() + 4));
        return found;
    }
};

/// Flat global indices of the elements that `rank` holds, in the order of its local tensor.
inline std::vector<std::int64_t> elements_held(layout const& l, shape const& global, device_mesh const& mesh, std::int64_t rank) {
    std::vector<std::int64_t> flat{0};
    for (std::size_t d = 0; d < global.size(); ++d) {
        std::vector<std::int64_t> here{0};
        std::int64_t rest = global[d];
        auto const digit = [&](std::int64_t extent, std::int64_t fixed) {
            std::vector<std::int64_t> next;
            for (auto x : here)
                for (std::int64_t v = 0; v < extent; ++v)
                    if (fixed < 0 || v == fixed) next.push_back(x * extent + v);
            here = std::move(next);
        };
        for (auto const& g : l.digits())
            if (g.dim == d) {
                digit(g.extent, g.is_cut() ? mesh.coordinate(rank, static_cast<std::size_t>(g.axis)) : -1);
                rest /= g.extent;
            }
        digit(rest, -1);
        std::vector<std::int64_t> next;
        for (auto f : flat)
            for (auto x : here) next.push_back(f * global[d] + x);
        flat = std::move(next);
    }
    return flat;
}

}  // namespace cantle::test
