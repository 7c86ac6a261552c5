// SPDX-License-Identifier: BSL-1.0
#pragma once
// An op of one's own as one short class: its name, its rows, the metas of its outputs and an example to check the rows on.
//
//     struct gate {
//         std::string name() const { return "mine::gate"; }
//         void rows(cantle::op_query const& q, std::int64_t axis_size, cantle::row_list& rows) const;
//         std::vector<cantle::tensor_meta> output_metas(cantle::op const& o, std::vector<cantle::tensor_meta> const& operands) const;
//         cantle::own_example example() const;
//     };
//     rules.add_op(gate{});                  // throws bad_rule where a row is none of the example
//     builder.shapes_from(rules.shapes());   // calls of mine::gate now find their output metas
//
// Optional members: void local(local_view const&, local_program&) const, what a rank runs in place of the op (by default the op itself),
// and int version() const, to be raised when the rows change their meaning. own_op_kinds.hpp has such classes for the common kinds.
#include <cantle/rules/check_row.hpp>
#include <cantle/rules/local_program.hpp>

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// A call of an op: literals and tensor arguments by name, and what the tensors are. Without arguments the tensors are x0, x1, ...
struct own_example {
    std::vector<tensor_meta> operands;
    std::vector<argument> arguments{};
};

/// Output metas from an op and its operands; nothing for an op that it does not know.
using shape_function = std::function<std::optional<std::vector<tensor_meta>>(op const&, std::vector<tensor_meta> const&)>;

/// Satisfied by `std::string name() const`.
template <class T>
concept NamesOp = requires(T const& t) { { t.name() } -> std::convertible_to<std::string>; };

/// Satisfied by `void rows(op_query const& local, std::int64_t axis_size, row_list&) const`.
template <class T>
concept ListsRows = requires(T const& t, op_query const& q, std::int64_t n, row_list& rows) { t.rows(q, n, rows); };

/// Satisfied by `std::vector<tensor_meta> output_metas(op const&, std::vector<tensor_meta> const& operands) const`.
template <class T>
concept InfersOutputs = requires(T const& t, op const& o, std::vector<tensor_meta> const& operands) {
    { t.output_metas(o, operands) } -> std::convertible_to<std::vector<tensor_meta>>;
};

/// Satisfied by `own_example example() const`, or by one that returns a std::vector of them.
template <class T>
concept ShowsExample = requires(T const& t) { { t.example() } -> std::convertible_to<own_example>; } ||
                       requires(T const& t) { { t.example() } -> std::convertible_to<std::vector<own_example>>; };

template <class T>
concept OwnOp = NamesOp<T> && ListsRows<T> && InfersOutputs<T> && ShowsExample<T>;

/// Called at the door: one clear sentence per missing part.
template <class T>
constexpr void require_own_op() {
    static_assert(NamesOp<T>, "an op of one's own needs: std::string name() const;");
    static_assert(ListsRows<T>, "an op of one's own needs: void rows(cantle::op_query const& q, std::int64_t axis_size, cantle::row_list& "
                                "rows) const;");
    static_assert(InfersOutputs<T>, "an op of one's own needs: std::vector<cantle::tensor_meta> output_metas(cantle::op const&, "
                                    "std::vector<cantle::tensor_meta> const& operands) const;");
    static_assert(ShowsExample<T>, "an op of one's own needs: cantle::own_example example() const;");
}

/// Rows that hold for every shape, given as a list: rules.add("mine::op", rows_rule({{{S0, S0}, {S0}}, {{P, R}, {P}}})).
struct static_rows { std::vector<axis_row> list; };
inline static_rows rows_rule(std::vector<axis_row> rows) { return {std::move(rows)}; }

namespace detail {

/// Throws bad_rule where rows differ in arity or one mixes kinds of Partial.
inline void check_static_rows(std::string const& op_name, static_rows const& rows) {
    for (auto const& row : rows.list) {
        auto const count = [](std::size_t a, char const* what, std::size_t b) {
            return "it places " + std::to_string(a) + " " + what + ", the first row " + std::to_string(b);
        };
        auto const& first = rows.list.front();
        if (row.operands.size() != first.operands.size())
            throw bad_row(op_name, row, count(row.operands.size(), "operands", first.operands.size()));
        if (row.outputs.size() != first.outputs.size())
            throw bad_row(op_name, row, count(row.outputs.size(), "outputs", first.outputs.size()));
        check_kinds(op_name, row);
    }
}

/// Throws bad_rule where a row that `op` lists for one of its examples, on axes of 2, 3 and 4 ranks, is none of that call.
template <OwnOp Op>
void check_on_examples(Op const& own) {
    std::vector<own_example> examples;
    if constexpr (std::convertible_to<decltype(own.example()), own_example>) examples.push_back(own.example());
    else examples = own.example();
    std::string const name = own.name();
    if (examples.empty())
        throw error(error_code::bad_rule, "rule of " + name, "it shows no example", "let example() return a call to check the rows on");
    for (auto const& e : examples) {
        op o{name, e.arguments};
        for (std::size_t i = 0; o.arguments.size() < e.operands.size() && e.arguments.empty(); ++i)
            o.arguments.push_back({"x" + std::to_string(i), operand_slot{static_cast<std::uint32_t>(i)}});
        std::vector<tensor_meta> const outputs = own.output_metas(o, e.operands);
        if (outputs.empty())
            throw error(error_code::bad_rule, "rule of " + name, "output_metas gives no output for its example",
                        "give one meta per output");
        op_query const q{&o, e.operands, outputs};
        for (std::int64_t n : {2, 3, 4}) {
            row_list rows(e.operands.size(), outputs.size());
            try {
                own.rows(q, n, rows);
            } catch (error const& inner) {
                throw error(error_code::bad_rule, "rule of " + name + ", row " + std::to_string(rows.size()),
                            inner.subject() + ": " + inner.problem(), inner.remedy());
            }
            for (auto const& row : rows.take()) check_row(q, row);
        }
    }
}

}  // namespace detail

}  // namespace cantle
