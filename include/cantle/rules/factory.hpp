// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that make tensors. Every rank makes its own share (case A52): constants as they are, ramps from the rank's offset (case A49).
// What a "like" or "new" op is given is read for its shape and type only, so that its values may be partial while the result is whole;
// and zeros are the sum of zeros. A slice of what is made is free: no row from a cut operand to another cut.
#include <cantle/rules/pointwise.hpp>

namespace cantle::rules {

/// Rows of an op that does not read the values of operand 0.
inline void add_unread_partials(op_query const& q, row_list& rows) {
    for (auto kind : every_kind)
        if (kinds_of(q.operands[0].type) & kind_bit(kind)) {
            std::vector<placement> in(q.operands.size());
            in[0] = placement::partial(kind);
            rows.add(std::move(in), std::vector<placement>(q.outputs.size()));
        }
}
/// True for ops that make zeros, by name or by a literal.
inline bool makes_zeros(op const& o) {
    if (o.name.find("zero") != std::string::npos) return true;
    for (auto name : {"fill_value", "value"})
        if (auto const v = number(o, name)) return *v == 0;
    return false;
}
inline void add_zero_sums(op_query const& q, row_list& rows) {
    if (!makes_zeros(*q.operation) || !(kinds_of(q.outputs[0].type) & kind_bit(reduction::sum))) return;
    rows.add(std::vector<placement>(q.operands.size()), {placement::partial()});
    if (q.operands.empty()) return;
    if (auto const sum = kinds_of(q.operands[0].type) & kind_bit(reduction::sum)) add_partials_of(q, rows, {0}, sum);
}

/// full, zeros, empty, rand(size): made of sizes and literals. The new_* forms have an operand that tells a type.
inline void fill_rule(op_query const& q, std::int64_t, row_list& rows) {
    for (std::size_t d = 0; d < q.outputs[0].rank(); ++d)
        rows.add(std::vector<placement>(q.operands.size()), {placement::shard(d)});
    if (!q.operands.empty()) {
        for (std::size_t d = 0; d < q.operands[0].rank(); ++d) rows.add({placement::shard(d)}, {placement::replicate()});
        add_unread_partials(q, rows);
    }
    add_zero_sums(q, rows);
}
/// full_like and its kin, and those that overwrite their operand.
inline void like_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_unread_partials(q, rows);
    add_zero_sums(q, rows);
}
/// fill(self, value), value a tensor of rank 0.
inline void fill_tensor_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_unread_partials(q, rows);
    add_partials(q, rows, {"value"}, all_kinds);
    kind_set const together = carried(kinds_of(q.operands[0].type), q.operands[1].type, q.outputs[0].type);
    add_partials_of(q, rows, {0, 1}, together);
}
inline void whole_rule(op_query const&, std::int64_t, row_list&) {}

/// Sizes and strides of the local tensor, dense.
inline void strided_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    set_argument(o, "size", v.outputs[0].sizes());
    set_argument(o, "stride", contiguous_strides(v.outputs[0].sizes()));
    run_whole(std::move(o), v, p);
}

namespace detail {
/// Whole numbers in steps of a whole number, or any in a floating point tensor: what starts anew at an offset without other roundings.
inline bool can_start_anywhere(op_query const& q) {
    if (is_floating_point(q.outputs[0].type)) return true;
    for (auto name : {"start", "end", "step"})
        if (auto const* v = q.operation->find(name); v && !std::holds_alternative<std::int64_t>(*v)) return false;
    return q.name().rfind("aten::linspace", 0) != 0;  // which divides
}
}  // namespace detail

/// arange and linspace: the one dim may be cut.
inline void ramp_rule(op_query const& q, std::int64_t, row_list& rows) {
    if (detail::can_start_anywhere(q)) rows.add(std::vector<placement>(q.operands.size()), {placement::shard(0)});
}
/// arange in any form, started at the rank's offset. A rank without elements makes an empty one.
inline void arange_local(local_view const& v, local_program& p) {
    op const& o = *v.operation;
    auto const n = v.outputs[0].sizes()[0], offset = v.outputs[0].offset(0);
    op local{"aten::arange.start_step", {}};
    auto const* const start = o.find("start");
    auto const* const step = o.find("step");
    bool const whole = (!start || std::holds_alternative<std::int64_t>(*start)) && (!step || std::holds_alternative<std::int64_t>(*step));
    if (whole) {
        auto const by = o.get<std::int64_t>("step", 1), first = o.get<std::int64_t>("start", 0) + offset * by;
        local.arguments = {{"start", first}, {"end", first + n * by}, {"step", by}};
    } else {  // half a step before the next element: no rounding adds or loses one
        double const by = number(o, "step", 1), first = number(o, "start", 0) + static_cast<double>(offset) * by;
        double const last = n == 0 ? first : first + (static_cast<double>(n) - 0.5) * by;
        local.arguments = {{"start", first}, {"end", last}, {"step", by}};
    }
    local.arguments.push_back({"dtype", v.outputs[0].global.type});
    for (auto name : {"layout", "device", "pin_memory"})
        if (auto const* a = o.find(name)) local.arguments.push_back({name, *a});
    run_whole(std::move(local), v, p);
}
inline void iota_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    set_argument(o, "length", v.outputs[0].sizes()[0]);
    set_argument(o, "start", o.get<std::int64_t>("start", 0) + v.outputs[0].offset(0) * o.get<std::int64_t>("step", 1));
    run_whole(std::move(o), v, p);
}
/// linspace(start, end, steps): both ends are met exactly on the whole, so that the distance is a fraction of steps - 1.
inline void linspace_local(local_view const& v, local_program& p) {
    op o = *v.operation;
    auto const n = v.outputs[0].sizes()[0];
    double const start = number(o, "start", 0), steps = static_cast<double>(v.outputs[0].global.sizes[0]);
    double const by = steps > 1 ? (number(o, "end", 0) - start) / (steps - 1) : 0;
    double const first = start + static_cast<double>(v.outputs[0].offset(0)) * by;
    set_argument(o, "start", first);
    set_argument(o, "end", first + static_cast<double>(n > 0 ? n - 1 : 0) * by);
    set_argument(o, "steps", n);
    set_argument(o, "dtype", v.outputs[0].global.type);
    run_whole(std::move(o), v, p);
}

inline void add_factory_rules(rule_registry& r) {
    r.add_all({"aten::full", "aten::zeros", "aten::ones", "aten::empty.memory_format", "aten::empty_permuted", "aten::new_zeros",
               "aten::new_ones", "aten::new_full", "aten::new_empty"},
              fill_rule);
    r.add_all({"aten::empty_strided", "aten::new_empty_strided"}, fill_rule, strided_local);
    r.add_all({"aten::ones_like", "aten::zeros_like", "aten::full_like", "aten::empty_like", "aten::zero", "aten::fill.Scalar"}, like_rule);
    r.add("aten::fill.Tensor", fill_tensor_rule);
    r.add("aten::scalar_tensor", whole_rule);
    r.add_all({"aten::arange", "aten::arange.start", "aten::arange.start_step"}, ramp_rule, arange_local);
    r.add("prims::iota", ramp_rule, iota_local);
    r.add("aten::linspace", ramp_rule, linspace_local);
}

}  // namespace cantle::rules
