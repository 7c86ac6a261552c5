// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that write into a tensor along one dim at places that an index names: scatter (by element), index_add, index_copy, index_fill (by
// row). Cuts of the other dims pass without communication (case A46), a cut of the written dim keeps the rank's own rows. What adds up is
// linear in self and source together; shares of the updates add up where self is Partial too, so that it is counted once.
#include <cantle/rules/foreign_index.hpp>
#include <cantle/rules/pointwise.hpp>

#include <optional>
#include <string>

namespace cantle::rules {

namespace detail {

/// What an op does with a place that it writes to.
enum class write : std::uint8_t { replace, add, multiply, mean, maximum, minimum };

inline write write_of(op const& o) {
    auto const& name = o.name;
    if (name == "aten::scatter_add" || name == "aten::index_add") return write::add;
    auto const how = o.get<std::string>("reduce", "");
    if (how == "sum" || how == "add") return write::add;
    if (how == "prod" || how == "multiply") return write::multiply;
    if (how == "mean") return write::mean;
    if (how == "amax") return write::maximum;
    if (how == "amin") return write::minimum;
    return write::replace;
}

/// Slots of the tensors; `source` is src, source, a tensor value, or nothing for a literal.
struct write_ports {
    std::uint32_t self = 0, index = 0;
    std::optional<std::uint32_t> source;
    std::size_t dim = 0;
    bool by_element = true;
};
inline write_ports write_ports_of(op_query const& q) {
    auto const& o = *q.operation;
    write_ports w{o.slot("self").value_or(0), o.slot("index").value_or(0), o.slot("src"), 0, o.name.rfind("aten::scatter", 0) == 0};
    for (auto name : {"source", "value"})
        if (!w.source) w.source = o.slot(name);
    w.dim = absolute_dim(o.get<std::int64_t>("dim", 0), q.operands[w.self].rank());
    return w;
}

inline void write_shard_rows(op_query const& q, write_ports const& w, row_list& rows) {
    auto const& into = q.operands[w.self].sizes;
    for (std::size_t d = 0; d < into.size(); ++d) {
        std::vector<placement> in(q.operands.size());
        in[w.self] = placement::shard(d);
        if (d == w.dim) {
            rows.add(axis_row{std::move(in), {placement::shard(d)}, {}, true});
            continue;
        }
        // Where index or source reach over another number of rows than self, a rank's rows are not those that its indices speak of.
        bool agree = true;
        for (auto const port : {w.by_element ? std::optional(w.index) : std::nullopt, w.source}) {
            if (!port || q.operands[*port].rank() != into.size()) continue;
            in[*port] = placement::shard(d);
            agree = agree && q.operands[*port].sizes[d] == into[d];
        }
        if (agree) rows.add(std::move(in), {placement::shard(d)});
    }
}
}  // namespace detail

inline void write_along_dim_rule(op_query const& q, std::int64_t, row_list& rows) {
    using detail::write;
    auto const w = detail::write_ports_of(q);
    detail::write_shard_rows(q, w, rows);
    auto const how = detail::write_of(*q.operation);
    std::vector<std::size_t> written{w.self};
    if (w.source) written.push_back(*w.source);
    double const literal = number(*q.operation, "value", 0.0);
    bool const with_self = q.operation->get<bool>("include_self", true);
    switch (how) {
        case write::replace: detail::add_filled_rows(rows, written, w.source || literal == 0.0); break;
        case write::mean:  // of whole numbers it rounds
            if (is_floating_point(q.outputs[0].type)) detail::add_linear_rows(rows, written);
            break;
        case write::multiply:
            // A factor per place; positive ones keep the order too, and a literal's sign is known.
            if (with_self) detail::add_linear_rows(rows, {w.self});
            if (!w.source && literal >= 0.0) detail::add_kind_rows(rows, {reduction::max, reduction::min}, written);
            break;
        case write::add:
            if (w.source && with_self) detail::add_added_rows(rows, w.self, *w.source);
            else if (w.source) detail::add_linear_rows(rows, written);
            else detail::add_filled_rows(rows, written, literal == 0.0);
            break;
        case write::maximum: detail::add_kind_rows(rows, {reduction::max}, written); break;
        case write::minimum: detail::add_kind_rows(rows, {reduction::min}, written); break;
    }
    // The updates cut: every rank brings in its share.
    auto const kind = how == write::maximum ? reduction::max : how == write::minimum ? reduction::min : reduction::sum;
    bool const shares = how == write::add || how == write::maximum || how == write::minimum;
    auto const& index = q.operands[w.index];
    if (!shares || !with_self || !w.source || index.rank() == 0 || q.operands[*w.source].rank() == 0) return;
    auto const along = w.by_element ? w.dim : 0;
    if (index.sizes[along] != q.operands[*w.source].sizes[w.dim]) return;
    std::vector<placement> in(q.operands.size());
    in[w.self] = placement::partial(kind);
    in[w.index] = placement::shard(along);
    in[*w.source] = placement::shard(w.dim);
    rows.add(std::move(in), {placement::partial(kind)});
}

inline void add_scatter_rules(rule_registry& r) {
    r.add_all({"aten::scatter.src", "aten::scatter.value", "aten::scatter.reduce", "aten::scatter.value_reduce", "aten::scatter_add",
               "aten::scatter_reduce.two", "aten::index_add", "aten::index_copy", "aten::index_fill.int_Scalar",
               "aten::index_fill.int_Tensor"},
              write_along_dim_rule, write_along_dim_local);
}

}  // namespace cantle::rules
