// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/recorder.hpp>
#include <adapters/libtorch/shape_functions.hpp>

#include <cantle/base/error.hpp>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/node.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace cantle::libtorch {
namespace {

/// A Python or C++ number that PyTorch wrapped to pass it as a tensor.
bool is_wrapped_number(c10::IValue const& v) {
    if (!v.isTensor()) return false;
    auto const& t = v.toTensor();
    return t.defined() && t.dim() == 0 && t.is_cpu() && t.unsafeGetTensorImpl()->is_wrapped_number();
}

argument_value literal_of(at::Tensor const& wrapped) {
    switch (wrapped.scalar_type()) {
        case at::kDouble: return *wrapped.const_data_ptr<double>();
        case at::kLong: return *wrapped.const_data_ptr<std::int64_t>();
        case at::kBool: return *wrapped.const_data_ptr<bool>();
        default:
            throw error(error_code::capture_failed, "a complex number", "cantle's graphs have no such literal",
                        "write the model without it");
    }
}

std::vector<at::Tensor> tensors_of(std::span<c10::IValue const> values) {
    std::vector<at::Tensor> tensors;
    for (auto const& v : values) {
        if (v.isTensor()) tensors.push_back(v.toTensor());
        else if (v.isTensorList())
            for (at::Tensor const& t : v.toTensorVector()) tensors.push_back(t);
    }
    return tensors;
}

/// aten::mul.Scalar of aten::mul.Tensor, aten::div.Scalar_mode of aten::div.Tensor_mode, where its arguments have the same names.
std::optional<std::string> find_scalar_form(c10::OperatorHandle const& handle) {
    auto const& name = handle.operator_name();
    if (!name.overload_name.starts_with("Tensor")) return std::nullopt;
    c10::OperatorName const scalar(name.name, "Scalar" + name.overload_name.substr(6));
    auto const found = c10::Dispatcher::singleton().findSchema(scalar);
    if (!found) return std::nullopt;
    auto const& ours = handle.schema().arguments();
    auto const& theirs = found->schema().arguments();
    bool const same = ours.size() >= 2 && ours[1].name() == "other" &&
                      std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                 [](auto const& a, auto const& b) { return a.name() == b.name(); });
    return same ? std::optional(op_name(scalar)) : std::nullopt;
}

/// The forward ops of a whole linear under the names that graphs know. A bias that PyTorch adds inside its linear kernel is marked: there
/// the sum is rounded once, and a replay calls the same kernel. (Not an argument of the schema; callers of the op ignore it.)
void use_aten_name(op& o) {
    if (o.name == "cantle::linear") {
        o.name = "aten::linear";
        o.arguments.push_back({"bias", std::monostate{}});
    } else if (o.name == "cantle::add_bias") {
        o.name = "aten::add.Tensor";
        o.arguments = {{"self", operand_slot{0}}, {"other", operand_slot{1}}, {"alpha", std::int64_t{1}}, {"fused_with_linear", true}};
    }
}

/// "mul" of "aten::mul.Tensor"
std::string base_name_of(std::string const& name) {
    auto const space = name.find("::");
    auto const first = space == std::string::npos ? 0 : space + 2;
    return name.substr(first, name.find('.', first) - first);
}

bool indexes_by_mask(std::vector<c10::IValue> const& arguments) {
    for (auto const& v : arguments) {
        if (!v.isList()) continue;
        for (c10::IValue const& item : v.toListRef())
            if (item.isTensor() && item.toTensor().defined() &&
                (item.toTensor().scalar_type() == at::kBool || item.toTensor().scalar_type() == at::kByte))
                return true;
    }
    return false;
}

/// Whether an autograd node of that name ("MulBackward0", "torch::autograd::CppNode<..::sdpa_function>") derives the op ("mul", "sdpa").
bool is_derivative_name(std::string_view node, std::string_view base_name) {
    if (auto const space = node.rfind("::"); space != std::string_view::npos) node.remove_prefix(space + 2);
    auto const plain = [](std::string_view s) {
        std::string r;
        for (char c : s)
            if (c != '_') r += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        return r;
    };
    auto const n = plain(node), b = plain(base_name);
    return n.starts_with(b + "backward") || n.starts_with(b + "function");
}

/// PyTorch's message without its C++ stack and without the lines that list backends.
std::string first_line(char const* message) {
    std::string_view const text(message);
    return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

recorder::recorder(std::vector<std::pair<void const*, std::string>> const& modules)
    : modules_(modules.begin(), modules.end()), first_sequence_(at::sequence_number::peek()) {}

// ---- sources and sinks ----

vertex recorder::add_source(node_role role, std::string name, at::Tensor const& tensor) {
    if (auto const known = find(tensor)) {
        graph_[known->node].also_named.push_back(std::move(name));
        return known->node;
    }
    graph_node node;
    node.operation.name = "cantle::" + std::string(to_string(role));
    node.outputs = {to_meta(tensor)};
    node.role = role;
    node.in_phase = phase_;
    if (role == node_role::parameter || role == node_role::buffer)
        if (auto const dot = name.rfind('.'); dot != std::string::npos) node.module_path = name.substr(0, dot);
    node.name = std::move(name);
    auto const v = push(std::move(node));
    keeps_[v] = role != node_role::buffer && role != node_role::constant;
    remember(tensor, {v, 0});
    return v;
}

vertex recorder::add_sink(node_role role, std::string name, at::Tensor const& tensor, std::optional<vertex> of) {
    auto const value = find(tensor);
    if (!value)
        throw error(error_code::capture_failed, name, "the model returns a tensor that it did not compute from its inputs and parameters",
                    "return what forward computes");
    graph_node node;
    node.operation = {"cantle::output", {{"self", operand_slot{0}}}};
    node.operands = {*value};
    node.outputs = {graph_.meta(*value)};
    node.role = role;
    node.in_phase = phase_;
    node.name = std::move(name);
    node.of = of;
    auto const v = push(std::move(node));
    keeps_[v] = true;
    return v;
}

vertex recorder::push(graph_node node) {
    graph_.nodes.push_back(std::move(node));
    keeps_.push_back(false);
    base_names_.emplace_back();
    return static_cast<vertex>(graph_.size() - 1);
}

// ---- which value a tensor is ----

std::optional<value_ref> recorder::find(at::Tensor const& tensor) const {
    if (!tensor.has_storage()) return std::nullopt;
    auto const it = known_.find(tensor.storage().unsafeGetStorageImpl());
    if (it == known_.end()) return std::nullopt;
    for (auto const& k : it->second)
        if (k.type == tensor.scalar_type() && k.offset == tensor.storage_offset() && at::IntArrayRef(k.sizes) == tensor.sizes() &&
            at::IntArrayRef(k.strides) == tensor.strides())
            return k.value;
    return std::nullopt;
}

void recorder::remember(at::Tensor const& tensor, value_ref value) {
    auto& looks = known_[tensor.storage().unsafeGetStorageImpl()];
    if (looks.empty()) alive_.push_back(tensor.storage());
    looks.push_back({tensor.scalar_type(), tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec(), value});
}

value_ref recorder::operand(at::Tensor const& tensor, op_facts const& facts) {
    if (auto const known = find(tensor)) return *known;
    constexpr std::int64_t largest_constant = 65536;
    if (tensor.is_cpu() && tensor.has_storage() && tensor.numel() <= largest_constant) return {add_constant(tensor, facts), 0};
    throw error(error_code::capture_failed, where(facts),
                "it reads a tensor of shape " + c10::str(tensor.sizes()) + " that is neither parameter, buffer nor input of the model",
                "register it with register_buffer or pass it as an input");
}

vertex recorder::add_constant(at::Tensor const& tensor, op_facts const&) {
    bool const wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    graph_node node;
    node.operation = {"cantle::constant", {{"wrapped_number", wrapped}}};
    node.outputs = {to_meta(tensor)};
    node.role = node_role::constant;
    node.in_phase = phase_;
    node.name = "constant_" + std::to_string(constants_++);
    node.constant_data = values_of(tensor.contiguous());
    node.outputs[0].strides = contiguous_strides(node.outputs[0].sizes);
    auto const v = push(std::move(node));
    if (!wrapped) remember(tensor, {v, 0});
    return v;
}

// ---- op calls ----

recorder::op_facts const& recorder::facts_of(c10::OperatorHandle const& handle) {
    auto const [it, fresh] = facts_.try_emplace(handle.operator_name());
    if (fresh) {
        auto& f = it->second;
        f.name = op_name(handle.operator_name());
        f.base_name = base_name_of(f.name);
        for (auto const& a : handle.schema().arguments()) f.writes = f.writes || (a.alias_info() && a.alias_info()->isWrite());
        f.reads_values = handle.hasTag(at::Tag::data_dependent_output) ||
                         (handle.hasTag(at::Tag::dynamic_output_shape) && f.name != "aten::index.Tensor");
        f.random = handle.hasTag(at::Tag::nondeterministic_seeded);
        f.scalar_form = find_scalar_form(handle);
    }
    return it->second;
}

std::string recorder::where(op_facts const& facts) const {
    auto const it = modules_.find(module_scope::current());
    if (phase_ == phase::backward) return facts.name + " in backward";
    if (it == modules_.end() || it->second.empty()) return facts.name + " in the model";
    return facts.name + " in " + it->second;
}

void recorder::call(c10::OperatorHandle const& handle, c10::DispatchKeySet below, torch::jit::Stack& stack) {
    auto const& facts = facts_of(handle);
    auto const count = static_cast<std::ptrdiff_t>(handle.schema().arguments().size());
    std::vector<c10::IValue> const arguments(stack.end() - count, stack.end());
    auto const refuse_reading = [&](char const* problem) {
        throw error(error_code::data_dependent, where(facts), problem,
                    "compute with tensors only: masks (where, masked_fill) instead of branches and of selecting elements");
    };
    if (facts.reads_values || (facts.name == "aten::index.Tensor" && indexes_by_mask(arguments)))
        refuse_reading(facts.name == "aten::_local_scalar_dense"
                           ? "the model reads a value of a tensor (.item() or a branch on it)"
                           : "its result depends on the values of a tensor, or the result's shape does");
    if (facts.writes)
        throw error(error_code::capture_failed, where(facts),
                    "it writes into a parameter, a buffer or another tensor from outside of forward",
                    "write forward without changing parameters and buffers in place");
    try {
        if (auto const* shape = find_shape_function(handle)) (*shape)(stack);
        else handle.redispatchBoxed(below, &stack);
    } catch (c10::NotImplementedError const& e) {
        if (std::string_view(e.what_without_backtrace()).find("copy out of meta tensor") != std::string_view::npos)
            refuse_reading("the model reads a value of a tensor (it copies it to another device: .cpu(), .tolist())");
        throw error(error_code::no_shape_function, where(facts), "PyTorch has no C++ Meta kernel for it, and cantle no shape function",
                    "add one line to the table in adapters/libtorch/shape_functions.cpp");
    } catch (c10::Error const& e) {
        throw error(error_code::capture_failed, where(facts), first_line(e.what_without_backtrace()), "");
    }
    auto const returns = handle.schema().returns().size();
    record(handle, facts, arguments, tensors_of(std::span(stack).last(returns)));
}

void recorder::record(c10::OperatorHandle const& handle, op_facts const& facts, std::vector<c10::IValue> const& arguments,
                      std::vector<at::Tensor> const& results) {
    // The autograd node of this call, if one was made, is the newest one: numbers are given out in order, and the node comes before the
    // call.
    auto const newest = at::sequence_number::peek();
    auto const note_sequence = [&](vertex v, bool recorded) {
        if (phase_ == phase::forward && newest > first_sequence_)
            forward_of_sequence_[newest - 1].push_back({v, &facts.base_name, recorded});
    };

    if (facts.name == "aten::_to_copy" && arguments[0].toTensor().is_cpu() && results[0].is_meta() &&
        results[0].scalar_type() == arguments[0].toTensor().scalar_type()) {
        remember(results[0], operand(arguments[0].toTensor(), facts));  // a constant is where the graph runs
        return;
    }

    std::optional<value_ref> known;
    bool anything_new = false;
    for (auto const& t : results) {
        if (!t.defined()) continue;
        auto const k = find(t);
        if (!k) anything_new = true;
        else if (!known) known = k;
    }
    if (!anything_new && !facts.random) {
        if (known) note_sequence(known->node, false);
        return;  // detach, alias and views that change nothing
    }

    graph_node node;
    node.operation.name = facts.name;
    auto values = arguments;
    if (facts.scalar_form) {
        bool const commutes = facts.name == "aten::mul.Tensor" || (facts.name == "aten::add.Tensor" && values[2].toScalar().equal(1));
        if (commutes && is_wrapped_number(values[0]) && !is_wrapped_number(values[1])) std::swap(values[0], values[1]);
        if (is_wrapped_number(values[1]) && !is_wrapped_number(values[0])) node.operation.name = *facts.scalar_form;
    }
    bool const scalar = node.operation.name != facts.name;
    auto const slot = [&](at::Tensor const& t) {
        node.operands.push_back(operand(t, facts));
        return static_cast<std::uint32_t>(node.operands.size() - 1);
    };
    auto const& schema = handle.schema().arguments();
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto value = scalar && i == 1 ? literal_of(values[1].toTensor()) : to_argument(values[i], *schema[i].real_type(), slot);
        node.operation.arguments.push_back({schema[i].name(), std::move(value)});
    }
    use_aten_name(node.operation);
    fold_kept_dims(node, results);
    for (auto const& t : results) node.outputs.push_back(to_meta(t));
    node.in_phase = phase_;
    if (phase_ == phase::backward) {
        node.forward_node = forward_of_current();
    } else {
        node.module_path = module_of(node);
    }

    auto const first = static_cast<vertex>(graph_.size());
    if (!record_as_slices(facts, node, results)) {
        auto const v = push(std::move(node));
        keeps_[v] = facts.random;
        base_names_[v] = base_name_of(graph_[v].operation.name);
        for (std::uint32_t i = 0; i < results.size(); ++i)
            if (results[i].defined() && !find(results[i])) remember(results[i], {v, i});
    }
    if (graph_.size() > first) note_sequence(first, true);
}

/// The forward op whose derivative autograd computes now.
std::optional<vertex> recorder::forward_of_current() const {
    auto const current = torch::autograd::get_current_node();
    if (!current) return std::nullopt;
    auto const it = forward_of_sequence_.find(current->sequence_nr());
    if (it == forward_of_sequence_.end()) return std::nullopt;
    auto const& candidates = it->second;
    if (candidates.size() > 1) {
        auto const name = current->name();
        for (auto const& c : candidates)
            if (is_derivative_name(name, *c.base_name)) return c.node;
    }
    for (auto const& c : candidates)
        if (c.recorded) return c.node;
    return candidates.front().node;
}

/// split, split_with_sizes and unbind become one slice or select per result: rules then need to know only those.
bool recorder::record_as_slices(op_facts const& facts, graph_node const& node, std::vector<at::Tensor> const& results) {
    bool const split = facts.name == "aten::split.Tensor" || facts.name == "aten::split_with_sizes";
    if (!split && facts.name != "aten::unbind.int") return false;
    auto const rank = static_cast<std::int64_t>(graph_.meta(node.operands[0]).rank());
    auto dim = node.operation.get<std::int64_t>("dim", 0);
    if (dim < 0) dim += rank;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
        auto const length = split ? results[i].size(dim) : 1;
        if (!find(results[i])) {
            graph_node piece = node;
            piece.outputs = {node.outputs[i]};
            if (split)
                piece.operation = {
                    "aten::slice.Tensor",
                    {{"self", operand_slot{0}}, {"dim", dim}, {"start", start}, {"end", start + length}, {"step", std::int64_t{1}}}};
            else
                piece.operation = {"aten::select.int", {{"self", operand_slot{0}}, {"dim", dim}, {"index", start}}};
            auto const v = push(std::move(piece));
            base_names_[v] = split ? "slice" : "select";
            remember(results[i], {v, 0});
        }
        start += length;
    }
    return true;
}

/// The gradient of what was broadcast is sum(keepdim) and a view that drops the kept dims (at::sum_to): one sum without keepdim.
void recorder::fold_kept_dims(graph_node& node, std::vector<at::Tensor> const& results) const {
    if (node.operation.name != "aten::view" || results.size() != 1) return;
    auto const& sum = graph_[node.operands[0].node];
    if (sum.operation.name != "aten::sum.dim_IntList" || !sum.operation.get<bool>("keepdim", false)) return;
    auto const dims = sum.operation.get<shape>("dim", {});
    auto const rank = static_cast<std::int64_t>(sum.outputs[0].rank());
    shape left;
    for (std::int64_t d = 0; d < rank; ++d)
        if (std::none_of(dims.begin(), dims.end(), [&](std::int64_t s) { return s == d || s == d - rank; }))
            left.push_back(sum.outputs[0].sizes[static_cast<std::size_t>(d)]);
    if (results[0].sizes() != at::IntArrayRef(left)) return;
    node.operation = sum.operation;
    for (auto& a : node.operation.arguments)
        if (a.name == "keepdim") a.value = false;
    node.operands = sum.operands;
}

std::string recorder::module_of(graph_node const& node) const {
    auto const it = modules_.find(module_scope::current());
    std::string const scope = it == modules_.end() ? std::string() : it->second;
    for (auto const& r : node.operands) {
        auto const& source = graph_[r.node];
        if (source.role != node_role::parameter) continue;
        auto const& owner = source.module_path;
        if (scope.empty() || owner == scope || (owner.starts_with(scope) && owner[scope.size()] == '.')) return owner;
    }
    return scope;
}

// ---- the end ----

training_graph recorder::finish() {
    link_orphans();
    remove_dead();
    give_names();
    known_.clear();
    alive_.clear();
    return std::move(graph_);
}

/// Sums of gradients and the first tangent are made by the engine between two autograd nodes. They belong to what their user belongs to.
void recorder::link_orphans() {
    std::vector<std::optional<vertex>> from_user(graph_.size());
    for (auto v = static_cast<vertex>(graph_.size()); v-- > 0;) {
        auto& node = graph_[v];
        if (node.in_phase != phase::backward) continue;
        if (node.role == node_role::computation && !node.forward_node) node.forward_node = from_user[v];
        auto const link = node.role == node_role::gradient ? node.of : node.forward_node;
        for (auto const& r : node.operands) from_user[r.node] = link;  // the earliest user has the last word
    }
    for (auto& node : graph_.nodes)
        if (node.role == node_role::computation && node.in_phase == phase::backward && node.forward_node)
            node.module_path = graph_[*node.forward_node].module_path;
}

void recorder::remove_dead() {
    auto live = keeps_;
    for (auto v = static_cast<vertex>(graph_.size()); v-- > 0;)
        if (live[v])
            for (auto const& r : graph_[v].operands) live[r.node] = true;
    std::vector<vertex> renamed(graph_.size());
    training_graph kept;
    std::vector<std::string> kept_names;
    for (vertex v = 0; v < graph_.size(); ++v) {
        if (!live[v]) continue;
        renamed[v] = static_cast<vertex>(kept.size());
        kept.nodes.push_back(std::move(graph_[v]));
        kept_names.push_back(std::move(base_names_[v]));
    }
    auto const rename = [&](std::optional<vertex>& link) {
        if (link) link = live[*link] ? std::optional(renamed[*link]) : std::nullopt;
    };
    for (auto& node : kept.nodes) {
        for (auto& r : node.operands) r.node = renamed[r.node];
        rename(node.forward_node);
        rename(node.of);
    }
    graph_ = std::move(kept);
    base_names_ = std::move(kept_names);
}

void recorder::give_names() {
    std::unordered_map<std::string, std::size_t> used;
    for (auto const& node : graph_.nodes)
        if (!node.name.empty()) ++used[node.name];
    for (vertex v = 0; v < graph_.size(); ++v) {
        auto& node = graph_[v];
        if (!node.name.empty()) continue;
        std::string name = node.module_path.empty() ? "" : node.module_path + "/";
        if (node.in_phase == phase::backward) name += "backward.";
        name += base_names_[v];
        auto const base = name;
        for (auto n = used[base]++; n > 0; n = used[name]++) name = base + "_" + std::to_string(used[base] - 1);
        node.name = std::move(name);
    }
}

}  // namespace cantle::libtorch
