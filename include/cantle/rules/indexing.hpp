// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reading and writing by tensors of indices: index, index_put, index_select, gather. Cuts of dims that no index speaks of pass, and so do
// cuts of the indices where they become dims of the result. A dim that is indexed is whole, or cut with masked rows: then reading gives
// Partial(sum), and writing keeps the rank's own rows (cases A43, A44).
#include <cantle/rules/foreign_index.hpp>
#include <cantle/rules/pointwise.hpp>

#include <algorithm>
#include <optional>

namespace cantle::rules {

namespace detail {

/// How index and index_put read `self`: which operand indexes each dim, and where the dims stand in the result x[indices].
struct index_plan {
    std::vector<std::int32_t> by;    ///< per dim of self: the operand that indexes it, -1 for none
    std::vector<std::size_t> place;  ///< per dim of self: its dim in the result; of no meaning where indexed
    shape broadcast;                 ///< common shape of the indices
    std::size_t at = 0;              ///< where its dims begin in the result
    shape result;
    std::vector<std::uint32_t> indices;  ///< the operands that index, each once
};

/// Nothing where an index is a mask: the result's shape then hangs on values. Metas may be global or local.
inline std::optional<index_plan> index_plan_of(op const& o, std::vector<tensor_meta> const& operands) {
    auto const* list = o.find("indices");
    auto const* slots = list ? std::get_if<operand_slots>(list) : nullptr;
    auto const self = o.slot("self");
    if (!slots || !self) return std::nullopt;
    auto const& sizes = operands[*self].sizes;
    index_plan plan;
    plan.by = slots->indices;
    plan.by.resize(sizes.size(), -1);
    std::size_t first = sizes.size(), last = 0, count = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (plan.by[d] < 0) continue;
        auto const i = static_cast<std::uint32_t>(plan.by[d]);
        auto const& t = operands[i];
        if (t.type == dtype::boolean || t.type == dtype::uint8) return std::nullopt;
        first = std::min(first, d);
        last = d;
        ++count;
        if (std::find(plan.indices.begin(), plan.indices.end(), i) == plan.indices.end()) plan.indices.push_back(i);
        auto const rank = std::max(t.rank(), plan.broadcast.size());
        plan.broadcast.insert(plan.broadcast.begin(), rank - plan.broadcast.size(), 1);
        for (std::size_t e = 0; e < t.rank(); ++e)
            if (t.sizes[e] != 1) plan.broadcast[rank - t.rank() + e] = t.sizes[e];
    }
    // Indexed dims in a row are replaced where they stand; with others between them the indices' dims come first.
    plan.at = count > 0 && last - first + 1 == count ? first : 0;
    plan.place.resize(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (plan.result.size() == plan.at) plan.result.insert(plan.result.end(), plan.broadcast.begin(), plan.broadcast.end());
        if (plan.by[d] >= 0) continue;
        plan.place[d] = plan.result.size();
        plan.result.push_back(sizes[d]);
    }
    return plan;
}
inline std::vector<tensor_meta> global_metas(local_view const& v) {
    std::vector<tensor_meta> metas;
    for (auto const& port : v.operands) metas.push_back(port.global);
    return metas;
}
}  // namespace detail

/// index(self, indices)
inline void index_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const self = q.operation->slot("self").value_or(0);
    detail::add_moved_rows(rows, {self});
    auto const plan = detail::index_plan_of(*q.operation, {q.operands.begin(), q.operands.end()});
    if (!plan) return;
    std::vector<placement> const whole(q.operands.size());
    for (std::size_t d = 0; d < plan->by.size(); ++d) {
        auto in = whole;
        in[self] = placement::shard(d);
        if (plan->by[d] < 0) rows.add(std::move(in), {placement::shard(plan->place[d])});
        else rows.add(axis_row{std::move(in), {masked_read(q.outputs[0].type)}, {}, true});
    }
    for (std::size_t e = 0; e < plan->broadcast.size(); ++e) {
        auto in = whole;
        for (auto i : plan->indices) in[i] = broadcast_shard(q.operands[i].sizes, plan->broadcast, e);
        rows.add(std::move(in), {placement::shard(plan->at + e)});
    }
}
inline void index_local(local_view const& v, local_program& p) {
    auto const self = *v.operation->slot("self");
    auto const& from = v.operands[self];
    auto const plan = detail::index_plan_of(*v.operation, detail::global_metas(v));
    op call = *v.operation;
    auto in = operand_values(v);
    std::vector<local_value> foreign;
    for (std::size_t d = 0; plan && d < plan->by.size(); ++d) {
        if (plan->by[d] < 0 || !from.is_cut(d)) continue;
        need_interval(v, from, d);
        auto const i = static_cast<std::size_t>(plan->by[d]);
        auto const own = made_local(p, from_the_front(p, static_cast<local_value>(i), from.global.sizes[d]), from.offset(d), from.sizes()[d]);
        // One tensor may index several dims: each gets indices of its own.
        auto slots = std::get<operand_slots>(*call.find("indices"));
        slots.indices[d] = static_cast<std::int32_t>(in.size());
        set_argument(call, "indices", std::move(slots));
        in.push_back(own.local);
        // Line the mask up with the result, which has the dims of self behind those of the indices.
        auto aligned = own.foreign;
        for (std::size_t k = plan->at + plan->broadcast.size(); k < plan->result.size(); ++k) aligned = trailing_dim(p, aligned);
        foreign.push_back(aligned);
    }
    auto result = p.call(std::move(call), std::move(in));
    for (auto mask : foreign) result = filled(p, result, mask, 0);
    p.returns({result});
}

/// index_put(self, indices, values, accumulate): values have the shape of self[indices] or broadcast to it.
inline void index_put_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const self = q.operation->slot("self").value_or(0), values = q.operation->slot("values").value_or(0);
    bool const accumulate = q.operation->get<bool>("accumulate", false);
    if (accumulate) detail::add_added_rows(rows, self, values);
    else detail::add_moved_rows(rows, {self, values});
    auto const plan = detail::index_plan_of(*q.operation, {q.operands.begin(), q.operands.end()});
    if (!plan) return;
    std::vector<placement> const whole(q.operands.size());
    auto const& source = q.operands[values].sizes;
    for (std::size_t d = 0; d < plan->by.size(); ++d) {
        auto in = whole;
        in[self] = placement::shard(d);
        bool const indexed = plan->by[d] >= 0;
        if (!indexed) in[values] = broadcast_shard(source, plan->result, plan->place[d]);
        rows.add(axis_row{std::move(in), {placement::shard(d)}, {}, indexed});
    }
    // Shares of the updates add up, if self is not counted by every rank.
    for (std::size_t e = 0; accumulate && e < plan->broadcast.size(); ++e) {
        auto in = whole;
        in[self] = placement::partial();
        for (auto i : plan->indices) in[i] = broadcast_shard(q.operands[i].sizes, plan->broadcast, e);
        in[values] = broadcast_shard(source, plan->result, plan->at + e);
        rows.add(std::move(in), {placement::partial()});
    }
}
inline void index_put_local(local_view const& v, local_program& p) {
    auto const self = *v.operation->slot("self");
    auto const& into = v.operands[self];
    auto const plan = detail::index_plan_of(*v.operation, detail::global_metas(v));
    op call = *v.operation;
    auto in = operand_values(v);
    std::vector<std::size_t> spare;
    for (std::size_t d = 0; plan && d < plan->by.size(); ++d) {
        if (plan->by[d] < 0 || !into.is_cut(d)) continue;
        need_interval(v, into, d);
        auto const count = into.sizes()[d];
        auto const front = from_the_front(p, static_cast<local_value>(plan->by[d]), into.global.sizes[d]);
        auto slots = std::get<operand_slots>(*call.find("indices"));
        slots.indices[d] = static_cast<std::int32_t>(in.size());
        set_argument(call, "indices", std::move(slots));
        in.push_back(made_local(p, front, into.offset(d), count, count).local);
        in[self] = with_spare_row(p, in[self], into.global.rank(), d);
        spare.push_back(d);
    }
    auto result = p.call(std::move(call), std::move(in));
    for (auto d : spare) result = without_spare_row(p, result, d, into.sizes()[d]);
    p.returns({result});
}

/// index_select(self, dim, index) and gather(self, dim, index): the first takes whole rows, the second an index per element.
inline void read_along_dim_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const &self = q.operands[0], &index = q.operands[1];
    bool const by_element = q.name() == "aten::gather";
    auto const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", 0), self.rank());
    auto const R = placement::replicate();
    for (std::size_t d = 0; d < self.rank(); ++d) {
        auto const S = placement::shard(d);
        if (d != dim) {
            // gather may read fewer rows than there are: then a rank's rows are not those its indices speak of.
            if (!by_element) rows.add({S, R}, {S});
            else if (index.sizes[d] == self.sizes[d]) rows.add({S, S}, {S});
            continue;
        }
        if (index.rank() > 0) rows.add({R, by_element ? S : placement::shard(0)}, {S});
        rows.add(axis_row{{S, R}, {masked_read(self.type)}, {}, true});
    }
    detail::add_moved_rows(rows, {0});
}
inline void read_along_dim_local(local_view const& v, local_program& p) {
    auto const& self = v.operands[0];
    auto const dim = detail::absolute_dim(v.operation->get<std::int64_t>("dim", 0), self.global.rank());
    if (self.global.rank() == 0 || !self.is_cut(dim)) return run_unchanged(v, p);
    need_interval(v, self, dim);
    auto const own = made_local(p, 1, self.offset(dim), self.sizes()[dim]);
    auto mask = own.foreign;
    if (v.operation->name == "aten::index_select")
        for (std::size_t d = dim + 1; d < self.global.rank(); ++d) mask = trailing_dim(p, mask);
    p.returns({filled(p, p.call(*v.operation, {0, own.local}), mask, 0)});
}

inline void add_indexing_rules(rule_registry& r) {
    r.add_all({"aten::index.Tensor", "aten::_unsafe_index.Tensor"}, index_rule, index_local);
    r.add_all({"aten::index_put", "aten::_unsafe_index_put"}, index_put_rule, index_put_local);
    r.add_all({"aten::index_select", "aten::gather"}, read_along_dim_rule, read_along_dim_local);
}

}  // namespace cantle::rules
