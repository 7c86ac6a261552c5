// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops on lists of tensors, as optimizers call them: element i of the output is an elementwise op on element i of each list.
//
// Each element could lie in its own way, which would be a product of rows over the list. The rows here cut the same dim of all elements
// that have it and that the axis divides, the others staying whole: what a fully sharded optimizer runs. Partial passes where it passes in
// every element. A graph whose parameters lie in different ways holds the ops of the elements instead of the list's.
#include <cantle/rules/activation.hpp>
#include <cantle/rules/arithmetic.hpp>
#include <cantle/rules/comparison.hpp>
#include <cantle/rules/factory.hpp>
#include <cantle/rules/cast.hpp>
#include <cantle/rules/norm.hpp>

#include <string>

namespace cantle::rules {

namespace detail {
/// The op on element i of the lists, and where its operands stand among those of the whole.
struct list_element {
    op operation;
    std::vector<std::size_t> place;
    std::vector<tensor_meta> operands;
    tensor_meta output;
    op_query query() const { return {&operation, operands, {&output, 1}}; }
};
/// `renamed`: what the element op calls the literals ("scalars" of a list op are one number each).
inline list_element element_of(op_query const& q, std::size_t i, std::string const& name,
                               std::vector<std::pair<std::string, std::string>> const& renamed) {
    list_element e{{name, {}}, {}, {}, q.outputs[i]};
    auto const tensor = [&](std::size_t slot) {
        e.place.push_back(slot);
        e.operands.push_back(q.operands[slot]);
        return operand_slot{static_cast<std::uint32_t>(e.place.size() - 1)};
    };
    for (auto const& a : q.operation->arguments) {
        argument one{a.name, a.value};
        for (auto const& [from, to] : renamed)
            if (a.name == from) one.name = to;
        if (auto const* list = std::get_if<operand_slots>(&a.value)) one.value = tensor(static_cast<std::size_t>(list->indices.at(i)));
        else if (auto const* shared = std::get_if<operand_slot>(&a.value)) one.value = tensor(shared->index);
        else if (auto const* numbers = std::get_if<std::vector<double>>(&a.value)) one.value = numbers->at(i);
        else if (auto const* counts = std::get_if<std::vector<std::int64_t>>(&a.value)) one.value = counts->at(i);
        e.operation.arguments.push_back(std::move(one));
    }
    return e;
}
inline bool divides(tensor_meta const& t, std::size_t d, std::int64_t n) {
    return t.defined && d < t.rank() && t.sizes[d] > 0 && t.sizes[d] % n == 0;
}
inline std::size_t most_dims(std::span<tensor_meta const> tensors) {
    std::size_t dims = 0;
    for (auto const& t : tensors) dims = std::max(dims, t.rank());
    return dims;
}
}  // namespace detail

/// A list op whose elements follow the elementwise rule `each` of the op `name`.
inline axis_rule foreach_rule(std::string name, axis_rule each, std::vector<std::pair<std::string, std::string>> renamed = {}) {
    return [name = std::move(name), each = std::move(each), renamed = std::move(renamed)](op_query const& q, std::int64_t n,
                                                                                          row_list& rows) {
        std::vector<detail::list_element> elements;
        for (std::size_t i = 0; i < q.outputs.size(); ++i) elements.push_back(detail::element_of(q, i, name, renamed));
        axis_row const whole{std::vector<placement>(q.operands.size()), std::vector<placement>(q.outputs.size())};
        for (std::size_t d = 0; d < detail::most_dims(q.outputs); ++d) {
            axis_row row = whole;
            for (std::size_t i = 0; i < elements.size(); ++i) {
                auto const& e = elements[i];
                if (!detail::divides(e.output, d, n)) continue;
                row.outputs[i] = placement::shard(d);
                for (std::size_t o = 0; o < e.place.size(); ++o)
                    row.operands[e.place[o]] = broadcast_shard(e.operands[o].sizes, e.output.sizes, d);
            }
            if (row != whole) rows.add(std::move(row));
        }
        std::vector<axis_row> common;  // the Partial rows that all elements have
        for (std::size_t i = 0; i < elements.size(); ++i) {
            row_list list(elements[i].operands.size(), 1);
            each(elements[i].query(), n, list);
            auto found = list.take();
            auto const keep = [&](axis_row const& row) {
                bool const partial = std::any_of(row.operands.begin(), row.operands.end(), [](placement p) { return p.is_partial(); });
                return partial && (i == 0 || std::find(common.begin(), common.end(), row) != common.end());
            };
            found.erase(std::remove_if(found.begin(), found.end(), [&](axis_row const& row) { return !keep(row); }), found.end());
            common = std::move(found);
        }
        for (auto const& one : common) {
            axis_row row = whole;
            for (std::size_t i = 0; i < elements.size(); ++i) {
                row.outputs[i] = one.outputs[0];
                for (std::size_t o = 0; o < one.operands.size(); ++o) row.operands[elements[i].place[o]] = one.operands[o];
            }
            rows.add(std::move(row));
        }
    };
}

/// Norms of a list: every element is reduced whole, with the rows of its norm.
inline void foreach_norm_rule(op_query const& q, std::int64_t n, row_list& rows) {
    double const order = detail::order_of_norm(*q.operation);
    auto const kind = detail::kind_of_norm(order);
    if (!kind && !detail::sums_powers(order, q.outputs[0].type)) return;
    for (std::size_t d = 0; d < detail::most_dims(q.operands); ++d) {
        axis_row row;
        for (std::size_t i = 0; i < q.operands.size(); ++i) {
            bool const cut = detail::divides(q.operands[i], d, n);
            row.operands.push_back(cut ? placement::shard(d) : placement::replicate());
            row.outputs.push_back(cut && kind ? placement::partial(*kind) : placement::replicate());
            if (cut && !kind) row.inner.push_back({collective_kind::all_reduce, reduction::sum, true, static_cast<std::uint32_t>(i)});
        }
        rows.add(std::move(row));
    }
}
inline void foreach_norm_local(local_view const& v, local_program& p) {
    double const order = detail::order_of_norm(*v.operation);
    std::vector<local_value> in(v.operands.size()), out;
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<local_value>(i);
    auto const first = p.call(*v.operation, std::move(in), static_cast<std::uint32_t>(v.outputs.size()));
    for (std::size_t i = 0; i < v.outputs.size(); ++i) {
        std::uint32_t axes = 0;
        for (std::size_t d = 0; d < v.operands[i].sizes().size(); ++d) axes |= v.operands[i].cut_axes(d);
        bool const whole = !axes || detail::kind_of_norm(order).has_value();
        auto const norm = first + static_cast<local_value>(i);
        out.push_back(whole ? norm : detail::add_up_powers(p, norm, axes, order));
    }
    p.returns(std::move(out));
}

/// Whole optimizer steps: lists of parameters, gradients and states of one shape each, and step counts of rank 0.
inline void fused_rule(op_query const& q, std::int64_t n, row_list& rows) {
    for (std::size_t d = 0; d < detail::most_dims(q.outputs); ++d) {
        axis_row row;
        auto const cut = [&](tensor_meta const& t) { return detail::divides(t, d, n) ? placement::shard(d) : placement::replicate(); };
        for (auto const& x : q.operands) row.operands.push_back(cut(x));
        for (auto const& y : q.outputs) row.outputs.push_back(cut(y));
        rows.add(std::move(row));
    }
}

inline void add_optimizer_rules(rule_registry& r) {
    std::vector<std::pair<std::string, std::string>> const other{{"scalar", "other"}, {"scalars", "other"}}, value{{"scalars", "value"}},
        power{}, toward{{"tensors1", "end"}, {"weights", "weight"}}, least{{"other", "min"}, {"scalar", "min"}, {"scalars", "min"}},
        most{{"other", "max"}, {"scalar", "max"}, {"scalars", "max"}};
    using texts = std::vector<std::string>;
    auto const lists = [&r](std::string const& name, texts const& overloads, axis_rule const& each, auto const& renamed) {
        for (auto const& o : overloads) r.add("aten::_foreach_" + name + (o.empty() ? "" : "." + o), foreach_rule(name, each, renamed));
    };
    texts const scalars{"Scalar", "List", "ScalarList"}, tensor{"Scalar", "List", "ScalarList", "Tensor"};
    lists("add", tensor, add_rule, other);
    lists("sub", scalars, sub_rule, other);
    lists("mul", tensor, mul_rule, other);
    lists("div", tensor, div_rule, other);
    lists("maximum", scalars, bound_rule(maxima, "other"), other);
    lists("minimum", scalars, bound_rule(minima, "other"), other);
    lists("clamp_min", scalars, bound_rule(maxima, "min"), least);
    lists("clamp_max", scalars, bound_rule(minima, "max"), most);
    lists("addcmul", {"Scalar", "ScalarList"}, addc_rule(false), value);
    lists("addcdiv", {"Scalar", "ScalarList"}, addc_rule(true), value);
    lists("lerp", scalars, lerp_rule, toward);
    lists("pow", {"Scalar", "ScalarList"}, pow_rule, power);
    lists("sqrt", {""}, passing_rule(minima), power);
    lists("neg", {""}, passing_rule(sums), power);
    for (auto name : {"exp", "sign"}) lists(name, {""}, passing_rule(extremes), power);
    for (auto name : {"abs", "rsqrt", "reciprocal"}) lists(name, {""}, pointwise_rule(), power);
    lists("zero", {""}, like_rule, power);
    lists("copy", {""}, copy_rule, power);
    r.add("aten::_foreach_norm.Scalar", foreach_norm_rule, foreach_norm_local);
    r.add_all({"aten::_fused_adam", "aten::_fused_adamw", "aten::_fused_sgd"}, fused_rule);
}

}  // namespace cantle::rules
