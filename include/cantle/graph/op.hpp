// SPDX-License-Identifier: BSL-1.0
#pragma once
// An op as a graph holds it: the name of an ATen overload (or of one of cantle's own ops) and its arguments in schema order. Tensor
// arguments are slots into the vertex' operands; everything else is a literal. Enough to call the op again.
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/tensor_type.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cantle {

/// A tensor argument: index into the vertex' operands.
struct operand_slot { std::uint32_t index = 0; bool operator==(operand_slot const&) const = default; };

/// A list of tensors; -1 stands for None in a list of optional tensors.
struct operand_slots { std::vector<std::int32_t> indices; bool operator==(operand_slots const&) const = default; };

/// A literal that is a name: kind "device", "layout" or "memory_format", text as PyTorch prints it ("cpu", "strided", "contiguous_format").
struct symbol { std::string kind, text; bool operator==(symbol const&) const = default; };

/// None (monostate), tensors, or a literal. A bool is never an int.
using argument_value = std::variant<std::monostate, operand_slot, operand_slots, bool, std::int64_t, double, std::string,
                                    std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, dtype, symbol>;

/// One argument with its schema name.
struct argument {
    std::string name;
    argument_value value;
    bool operator==(argument const&) const = default;
};

/// Name ("aten::add.Tensor", "cantle::linear_grad_input") and arguments in schema order.
struct op {
    std::string name;
    std::vector<argument> arguments;
    bool operator==(op const&) const = default;

    /// The argument of that name, or nullptr.
    argument_value const* find(std::string_view argument_name) const {
        for (auto const& a : arguments)
            if (a.name == argument_name) return &a.value;
        return nullptr;
    }
    /// The literal of that name as T, or `fallback` where it is absent, None or of another type.
    template <class T>
    T get(std::string_view argument_name, T fallback) const {
        auto const* v = find(argument_name);
        if (!v) return fallback;
        if (auto const* x = std::get_if<T>(v)) return *x;
        if constexpr (std::is_same_v<T, double>)
            if (auto const* i = std::get_if<std::int64_t>(v)) return static_cast<double>(*i);
        return fallback;
    }
    /// The operand index of a tensor argument, or nothing where it is absent or None.
    std::optional<std::uint32_t> slot(std::string_view argument_name) const {
        auto const* v = find(argument_name);
        if (v)
            if (auto const* s = std::get_if<operand_slot>(v)) return s->index;
        return std::nullopt;
    }
    void feed(stable_hasher& h) const;
};

namespace detail {
inline void feed_value(stable_hasher& h, argument_value const& v) {
    h.add(v.index());
    std::visit([&h](auto const& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, std::monostate>) h.add(0);
        else if constexpr (std::is_same_v<T, operand_slot>) h.add(x.index);
        else if constexpr (std::is_same_v<T, operand_slots>) h.add(x.indices);
        else if constexpr (std::is_same_v<T, symbol>) h.add(x.kind).add(x.text);
        else if constexpr (std::is_same_v<T, std::vector<bool>>) {
            h.add(x.size());
            for (bool b : x) h.add(b);
        } else h.add(x);
    }, v);
}
}  // namespace detail

inline void op::feed(stable_hasher& h) const {
    h.add(name).add(arguments.size());
    for (auto const& a : arguments) {
        h.add(a.name);
        detail::feed_value(h, a.value);
    }
}

}  // namespace cantle
