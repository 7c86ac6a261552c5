// SPDX-License-Identifier: BSL-1.0
#pragma once
// Builds training graphs by hand: for tests, examples and those whose framework has no capture. Nodes come in the order of the calls, names
// are kept unique, output metas are inferred where shape_inference.hpp knows the op.
//
//   graph_builder b;
//   auto x = b.input("x", {4, 8});
//   auto w = b.parameter("fc.weight", {16, 8});
//   auto y = b.in_module("fc").linear(x, w);              // "fc/linear", [4,16]
//   auto l = b.in_module("").call("aten::sum", {{"self", y}, {"dtype", none}});
//   b.loss(l);
//   b.backward();                                         // what follows is in the backward phase
//   auto g = b.call("aten::expand", {{"self", b.ones({})}, {"size", shape{4, 16}}, {"implicit", false}});
//   b.gradient(w, b.linear_grad_weight(g, x, y));         // "fc.weight.grad"; the last argument is the forward value
//   training_graph graph = b.build();
#include <cantle/base/error.hpp>
#include <cantle/graph/shape_inference.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/graph/validate.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace cantle {

/// Python's None as an argument.
struct none_t {};
inline constexpr none_t none{};

/// An argument's value as it is written in a call: a value_ref is a tensor, everything else a literal.
struct call_value {
    std::variant<argument_value, value_ref, std::vector<std::optional<value_ref>>> value;

    call_value(none_t) : value(argument_value{}) {}
    call_value(value_ref r) : value(r) {}
    call_value(std::vector<value_ref> const& list) : value(std::vector<std::optional<value_ref>>(list.begin(), list.end())) {}
    call_value(std::vector<std::optional<value_ref>> list) : value(std::move(list)) {}  ///< std::nullopt is None
    call_value(bool b) : value(argument_value{b}) {}
    call_value(int i) : value(argument_value{std::int64_t{i}}) {}
    call_value(std::int64_t i) : value(argument_value{i}) {}
    call_value(double d) : value(argument_value{d}) {}
    call_value(char const* s) : value(argument_value{std::string(s)}) {}
    call_value(std::string s) : value(argument_value{std::move(s)}) {}
    call_value(std::vector<std::int64_t> list) : value(argument_value{std::move(list)}) {}
    call_value(std::vector<double> list) : value(argument_value{std::move(list)}) {}
    call_value(std::vector<bool> list) : value(argument_value{std::move(list)}) {}
    call_value(dtype type) : value(argument_value{type}) {}
    call_value(symbol s) : value(argument_value{std::move(s)}) {}
};

/// One argument of a call: {"dim", shape{0, 1}}.
struct call_argument {
    std::string name;
    call_value value;
};

class graph_builder {
public:
    // -- where the next nodes belong; all stay in force until changed -------------------------------------------------------------------
    graph_builder& forward() { phase_ = phase::forward; return *this; }
    graph_builder& backward() { phase_ = phase::backward; return *this; }
    graph_builder& in_module(std::string path) { module_ = std::move(path); return *this; }
    /// Gives the node of a value a name of its own: b.named("fc/product", b.mm(x, w)). Made unique if it is taken.
    value_ref named(std::string const& name, value_ref value) {
        auto& node = graph_[value.node];
        names_.erase(node.name);
        node.name = unique(name);
        return value;
    }
    /// Ask `f` for output metas before shape_inference.hpp: rule_registry::shapes() knows the ops of one's own.
    graph_builder& shapes_from(std::function<std::optional<std::vector<tensor_meta>>(op const&, std::vector<tensor_meta> const&)> f) {
        own_shapes_ = std::move(f);
        return *this;
    }
    graph_builder& origin(graph_origin o) { graph_.origin = std::move(o); return *this; }

    // -- sources; their metas are contiguous; module_path of parameters and buffers is the name up to its last dot ----------------------
    value_ref parameter(std::string name, shape sizes, dtype type = dtype::float32) {
        return source(node_role::parameter, std::move(name), std::move(sizes), type);
    }
    value_ref buffer(std::string name, shape sizes, dtype type = dtype::float32) {
        return source(node_role::buffer, std::move(name), std::move(sizes), type);
    }
    value_ref input(std::string name, shape sizes, dtype type = dtype::float32) {
        return source(node_role::input, std::move(name), std::move(sizes), type);
    }
    value_ref target(std::string name, shape sizes, dtype type = dtype::int64) {
        return source(node_role::target, std::move(name), std::move(sizes), type);
    }
    /// The gradient that comes in for the sink `of` (as loss() and output() return it).
    value_ref tangent(std::string name, value_ref of) {
        auto const meta = graph_.meta(of);
        auto const r = source(node_role::tangent, std::move(name), meta.sizes, meta.type);
        graph_[r.node].of = of.node;
        return r;
    }
    /// Values in row-major order, as many as elements.
    value_ref constant(std::string name, shape sizes, std::vector<double> data, dtype type = dtype::float32) {
        auto const r = source(node_role::constant, std::move(name), std::move(sizes), type);
        graph_[r.node].constant_data = std::move(data);
        return r;
    }
    /// A constant of ones: the gradient that starts a backward pass has shape {}.
    value_ref ones(shape sizes, dtype type = dtype::float32) {
        auto const n = static_cast<std::size_t>(element_count(sizes));
        return constant("ones", std::move(sizes), std::vector<double>(n, 1.0), type);
    }

    // -- computations ------------------------------------------------------------------------------------------------------------------
    /// A node with the given output metas. Returns its output 0; the others are {node, i}. `forward_of`: a value of the forward node whose
    /// derivative this is. Tensor arguments become operands in the order of the arguments.
    value_ref call(std::string op_name, std::vector<call_argument> const& arguments, std::vector<tensor_meta> outputs,
                   std::optional<value_ref> forward_of = {}) {
        graph_node node;
        node.operation.name = std::move(op_name);
        for (auto const& a : arguments) node.operation.arguments.push_back({a.name, literal(a.value, node.operands)});
        node.outputs = std::move(outputs);
        node.in_phase = phase_;
        node.module_path = module_;
        if (forward_of) node.forward_node = forward_of->node;
        auto const name = (module_.empty() ? "" : module_ + "/") + short_name(node.operation.name);
        return add(std::move(node), name);
    }
    /// The same with inferred metas. Errors: bad_graph (303) where neither shapes_from nor shape_inference.hpp knows the op, or the
    /// operands do not fit.
    value_ref call(std::string op_name, std::vector<call_argument> const& arguments, std::optional<value_ref> forward_of = {}) {
        op o{op_name, {}};
        std::vector<value_ref> operands;
        for (auto const& a : arguments) o.arguments.push_back({a.name, literal(a.value, operands)});
        std::vector<tensor_meta> metas;
        for (auto const r : operands) metas.push_back(graph_.meta(r));
        auto outputs = own_shapes_ ? own_shapes_(o, metas) : std::nullopt;
        if (!outputs) outputs = infer_outputs(o, metas);
        if (!outputs) throw error(error_code::bad_graph, o.name, "the shapes of its outputs are not known here", "give the output metas");
        return call(std::move(op_name), arguments, std::move(*outputs), forward_of);
    }

    value_ref linear(value_ref x, value_ref weight) {
        return call("aten::linear", {{"input", x}, {"weight", weight}, {"bias", none}});
    }
    value_ref linear_grad_input(value_ref grad, value_ref weight, std::optional<value_ref> forward_of = {}) {
        return call("cantle::linear_grad_input", {{"grad", grad}, {"weight", weight}}, forward_of);
    }
    value_ref linear_grad_weight(value_ref grad, value_ref x, std::optional<value_ref> forward_of = {}) {
        return call("cantle::linear_grad_weight", {{"grad", grad}, {"input", x}}, forward_of);
    }
    value_ref add(value_ref a, value_ref b) { return call("aten::add.Tensor", {{"self", a}, {"other", b}, {"alpha", 1}}); }
    value_ref mul(value_ref a, value_ref b) { return call("aten::mul.Tensor", {{"self", a}, {"other", b}}); }
    value_ref relu(value_ref x) { return call("aten::relu", {{"self", x}}); }
    value_ref relu_backward(value_ref grad, value_ref y, std::optional<value_ref> forward_of = {}) {
        return call("aten::threshold_backward", {{"grad_output", grad}, {"self", y}, {"threshold", 0}}, forward_of);
    }
    value_ref view(value_ref x, shape size) { return call("aten::view", {{"self", x}, {"size", std::move(size)}}); }
    value_ref t(value_ref x) { return call("aten::t", {{"self", x}}); }
    value_ref mm(value_ref a, value_ref b, std::optional<value_ref> forward_of = {}) {
        return call("aten::mm", {{"self", a}, {"mat2", b}}, forward_of);
    }
    value_ref sum(value_ref x, shape dims, bool keepdim = false) {
        return call("aten::sum.dim_IntList", {{"self", x}, {"dim", std::move(dims)}, {"keepdim", keepdim}, {"dtype", none}});
    }
    value_ref cast(value_ref x, dtype type) {
        return call("aten::_to_copy", {{"self", x}, {"dtype", type}, {"layout", none}, {"device", none}, {"pin_memory", none},
                                       {"non_blocking", false}, {"memory_format", none}});
    }

    // -- sinks; they return the sink's own output ----------------------------------------------------------------------------------------
    value_ref loss(value_ref value, std::string name = "loss") { return sink(node_role::loss, value, std::move(name), {}); }
    value_ref output(value_ref value, std::string name = "output") { return sink(node_role::output, value, std::move(name), {}); }
    /// The gradient of a parameter or input; named "<its name>.grad". In the backward phase whatever the current one.
    value_ref gradient(value_ref of, value_ref grad) {
        auto const r = sink(node_role::gradient, grad, graph_[of.node].name + ".grad", of.node);
        graph_[r.node].in_phase = phase::backward;
        graph_[r.node].module_path = graph_[of.node].module_path;
        return r;
    }

    /// The graph so far, validated. Errors: those of validate().
    training_graph build() const {
        validate(graph_);
        return graph_;
    }
    /// The graph so far, to look at or to break on purpose; not validated.
    training_graph& graph() { return graph_; }

private:
    training_graph graph_;
    phase phase_ = phase::forward;
    std::string module_;
    std::function<std::optional<std::vector<tensor_meta>>(op const&, std::vector<tensor_meta> const&)> own_shapes_;
    std::unordered_set<std::string> names_;  // only looked up

    static argument_value literal(call_value const& v, std::vector<value_ref>& operands) {
        if (auto const* r = std::get_if<value_ref>(&v.value)) {
            operands.push_back(*r);
            return operand_slot{static_cast<std::uint32_t>(operands.size() - 1)};
        }
        if (auto const* list = std::get_if<std::vector<std::optional<value_ref>>>(&v.value)) {
            operand_slots slots;
            for (auto const& r : *list) {
                if (r) operands.push_back(*r);
                slots.indices.push_back(r ? static_cast<std::int32_t>(operands.size() - 1) : -1);
            }
            return slots;
        }
        return std::get<argument_value>(v.value);
    }
    /// "aten::add.Tensor" -> "add".
    static std::string short_name(std::string_view op_name) {
        if (auto const colons = op_name.rfind("::"); colons != std::string_view::npos) op_name.remove_prefix(colons + 2);
        return std::string(op_name.substr(0, op_name.find('.')));
    }
    std::string unique(std::string const& wanted) {
        std::string name = wanted;
        for (int i = 2; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
        return name;
    }
    value_ref add(graph_node node, std::string const& default_name) {
        node.name = unique(default_name);
        graph_.nodes.push_back(std::move(node));
        return {static_cast<vertex>(graph_.size() - 1), 0};
    }
    value_ref source(node_role role, std::string name, shape sizes, dtype type) {
        graph_node node;
        node.operation.name = "cantle::" + std::string(to_string(role));
        node.outputs.push_back(contiguous_meta(std::move(sizes), type));
        node.role = role;
        node.in_phase = role == node_role::tangent ? phase::backward : phase_;
        if (role == node_role::parameter || role == node_role::buffer) {
            auto const dot = name.rfind('.');
            node.module_path = dot == std::string::npos ? "" : name.substr(0, dot);
        } else {
            node.module_path = module_;
        }
        return add(std::move(node), name);
    }
    value_ref sink(node_role role, value_ref value, std::string name, std::optional<vertex> of) {
        graph_node node;
        node.operation.name = "cantle::output";
        node.operands = {value};
        node.outputs = {graph_.meta(value)};
        node.role = role;
        node.in_phase = phase_;
        node.of = of;
        return add(std::move(node), name);
    }
};

}  // namespace cantle
