// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random ops. Every number is a function of the run's seed, the op's number in the graph and the element's global index, so that a rank's
// share is the same numbers as on one device: random ops are cut like factories and elementwise ops, and copies agree. Only a permutation
// needs the whole. Ranks call cantle's own ops (cantle::counter_*), whose literals say which elements they hold; docs/random.md.
#include <cantle/mesh/held_elements.hpp>
#include <cantle/rules/factory.hpp>
#include <cantle/rules/local_steps.hpp>

#include <iterator>

namespace cantle::rules {

/// native_dropout(x, p, train) -> (x * mask * scale, mask): the mask is drawn, so it is the same whatever part of x a rank holds.
inline void dropout_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    for (auto kind : every_kind)
        if (carried(all_kinds, q.operands[0].type, q.outputs[0].type) & kind_bit(kind))
            rows.add({placement::partial(kind)}, {placement::partial(kind), placement::replicate()});
}
/// grad * mask * scale.
inline void dropout_backward_rule(op_query const& q, std::int64_t, row_list& rows) {
    add_cuts(q, rows);
    add_partials(q, rows, {"grad_output"}, number(*q.operation, "scale", -1) >= 0 ? all_kinds : sums);
}

// ---- local programs ----

/// Which op draws, and for which elements of output o.
inline std::vector<step_argument> drawn_elements(local_view const& v, std::size_t o) {
    auto const& port = v.outputs[o];
    auto const held = elements_of(*port.lies, port.piece, port.global.sizes);
    return {{"draw", static_cast<std::int64_t>(v.draw)}, {"first", held.first}, {"counts", held.counts}, {"strides", held.strides}};
}
/// A step that makes output 0 from random bits: cantle::counter_NAME(size, parameters, dtype, device, elements).
inline local_value drawn(local_view const& v, local_program& p, char const* name, std::vector<step_argument> parameters) {
    std::vector<step_argument> all{{"size", v.outputs[0].sizes()}};
    std::move(parameters.begin(), parameters.end(), std::back_inserter(all));
    all.push_back({"dtype", v.outputs[0].global.type});
    all.push_back({"device", symbol{"device", "device"}});
    for (auto& a : drawn_elements(v, 0)) all.push_back(std::move(a));
    return step(p, std::string("cantle::counter_") + name, std::move(all));
}

/// Uniform in [from, to).
inline void uniform_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "uniform", {{"from", number(*v.operation, "from", 0)}, {"to", number(*v.operation, "to", 1)}})});
}
/// Normal, of literal mean and deviation.
inline void normal_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "normal", {{"mean", number(*v.operation, "mean", 0)}, {"std", number(*v.operation, "std", 1)}})});
}
/// Normal, of a mean or deviation (or both) given element by element. Literals stay exact: multiplied and added as ATen does it.
inline void normal_of_tensors_local(local_view const& v, local_program& p) {
    auto x = drawn(v, p, "normal", {{"mean", 0.0}, {"std", 1.0}});
    auto const change = [&](char const* with, char const* operation) {
        std::string const name = std::string("aten::") + operation;
        if (auto const s = v.operation->slot(with)) {
            auto const other = in_type(p, *s, v.operands[*s].global.type, v.outputs[0].global.type);
            x = step(p, name + ".Tensor", {{"self", x}, {"other", other}});
        } else x = step(p, name + ".Scalar", {{"self", x}, {"other", number(*v.operation, with, with == std::string("std") ? 1 : 0)}});
    };
    change("std", "mul");
    change("mean", "add");
    p.returns({x});
}
inline void exponential_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "exponential", {{"lambd", number(*v.operation, "lambd", 1)}})});
}
/// Whole numbers in [low, high).
inline void randint_local(local_view const& v, local_program& p) {
    auto const &o = *v.operation;
    p.returns({drawn(v, p, "randint", {{"low", o.get<std::int64_t>("low", 0)}, {"high", o.get<std::int64_t>("high", 0)}})});
}
/// 1 with probability p, a literal.
inline void bernoulli_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "bernoulli", {{"p", number(*v.operation, "p", 0.5)}})});
}
/// 1 with the probability that stands in the last operand: bernoulli(self), bernoulli(self, p).
inline void bernoulli_of_tensor_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "bernoulli.Tensor", {{"p", static_cast<local_value>(v.operands.size() - 1)}})});
}
inline void randperm_local(local_view const& v, local_program& p) {
    p.returns({drawn(v, p, "randperm", {})});
}
inline void dropout_local(local_view const& v, local_program& p) {
    op call{"cantle::counter_dropout", v.operation->arguments};
    for (auto& a : drawn_elements(v, 1)) call.arguments.push_back({std::move(a.name), std::move(a.literal)});
    run_whole(std::move(call), v, p);
}

inline void add_random_rules(rule_registry& r) {
    r.add("aten::rand", fill_rule, uniform_local);
    r.add_all({"aten::randn", "aten::normal.float_float"}, fill_rule, normal_local);
    r.add_all({"aten::randint", "aten::randint.low"}, fill_rule, randint_local);
    r.add_all({"aten::rand_like", "aten::uniform"}, like_rule, uniform_local);
    r.add_all({"aten::randn_like", "aten::normal_functional"}, like_rule, normal_local);
    r.add_all({"aten::randint_like", "aten::randint_like.low_dtype"}, like_rule, randint_local);
    r.add("aten::bernoulli.p", like_rule, bernoulli_local);
    r.add("aten::exponential", like_rule, exponential_local);
    // their operands are probabilities, means and deviations
    r.add_all({"aten::bernoulli", "aten::bernoulli.Tensor"}, pointwise_rule(), bernoulli_of_tensor_local);
    r.add_all({"aten::normal.Tensor_float", "aten::normal.float_Tensor", "aten::normal.Tensor_Tensor"}, pointwise_rule(),
              normal_of_tensors_local);
    r.add("aten::randperm", whole_rule, randperm_local);
    r.add("aten::native_dropout", dropout_rule, dropout_local);
    r.add("aten::native_dropout_backward", dropout_backward_rule);
}

}  // namespace cantle::rules
