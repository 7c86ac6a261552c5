// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/op_values.hpp>

#include <cantle/base/error.hpp>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace cantle::libtorch {
namespace {

c10::OperatorHandle find_op(std::string const& name) {
    auto const space = name.find("::");
    auto const dot = space == std::string::npos ? std::string::npos : name.find('.', space);
    auto const overload = dot == std::string::npos ? std::string() : name.substr(dot + 1);
    auto handle = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
    if (!handle)
        throw error(error_code::op_without_rule, name, "PyTorch has no op of that name",
                    "write the name as namespace::name.overload, and load the library that registers it");
    return *handle;
}

bool holds_optionals(c10::Type const& type) {
    auto const* t = &type;
    while (t->kind() == c10::TypeKind::OptionalType) t = t->containedType(0).get();
    return t->kind() == c10::TypeKind::ListType && t->containedType(0)->kind() == c10::TypeKind::OptionalType;
}

/// Takes the tensors of a result one by one.
template <class Take>
void unbox(c10::IValue&& result, Take const& take) {
    if (result.isTensor()) take(std::move(result).toTensor());
    else if (result.isTensorList())
        for (at::Tensor const& t : result.toTensorVector()) take(at::Tensor(t));
    else if (result.isNone()) take(at::Tensor());
}

/// CPU kernels of PyTorch 2.15 that read their operands as if all were contiguous (or strided alike), and other elements where they are
/// not. Ops that write into their operands must get them as they are.
bool reads_raw_memory(std::string const& name) {
    auto const begins = [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; };
    if (name.substr(0, name.find('.')).back() == '_') return false;
    return begins("aten::_fused_adam") || begins("aten::_fused_sgd") || begins("aten::_fused_adagrad") ||
           begins("aten::_scaled_dot_product_flash_attention_for_cpu") || name == "aten::native_layer_norm_backward";
}

}  // namespace

op_caller::op_caller(op const& operation) : handle_(find_op(operation.name)), wants_contiguous_(reads_raw_memory(operation.name)) {
    for (auto const& argument : handle_.schema().arguments()) {
        auto const* value = operation.find(argument.name());
        bool const none_will_do = argument.type()->kind() == c10::TypeKind::OptionalType;
        if (!value && !argument.default_value() && !none_will_do)
            throw error(error_code::bad_field, operation.name, "argument '" + argument.name() + "' is missing",
                        "give every argument of " + c10::toString(handle_.schema()));
        auto& boxed = arguments_.emplace_back();
        auto const uses = [&](std::uint32_t slot) { operands_ = std::max(operands_, slot + 1); };
        if (!value) {
            boxed.literal = argument.default_value().value_or(c10::IValue());
        } else if (auto const* slot = std::get_if<operand_slot>(value)) {
            boxed.is = role::tensor;
            uses(boxed.slot = slot->index);
        } else if (auto const* slots = std::get_if<operand_slots>(value)) {
            boxed.is = holds_optionals(*argument.real_type()) ? role::optional_tensors : role::tensors;
            boxed.slots = slots->indices;
            for (auto i : boxed.slots)
                if (i >= 0) uses(static_cast<std::uint32_t>(i));
        } else if (auto const* name = std::get_if<symbol>(value); name && name->kind == "device") {
            boxed.is = role::device;
        } else {
            boxed.literal = to_ivalue(*value, *argument.real_type(), {}, c10::kCPU);
        }
    }
}

template <class Operand>
void op_caller::push(torch::jit::Stack& stack, Operand const& operand, c10::Device device) const {
    stack.reserve(arguments_.size());
    auto const dense = [&](std::uint32_t slot) {
        auto const& t = operand(slot);
        return wants_contiguous_ && t.defined() ? t.contiguous() : t;
    };
    for (auto const& a : arguments_) {
        switch (a.is) {
            case role::literal: stack.push_back(a.literal); break;
            case role::device: stack.emplace_back(device); break;
            case role::tensor: stack.emplace_back(dense(a.slot)); break;
            case role::tensors: {
                c10::List<at::Tensor> list;
                list.reserve(a.slots.size());
                for (auto i : a.slots) list.push_back(i < 0 ? at::Tensor() : dense(static_cast<std::uint32_t>(i)));
                stack.emplace_back(std::move(list));
                break;
            }
            case role::optional_tensors: {
                c10::List<std::optional<at::Tensor>> list;
                list.reserve(a.slots.size());
                for (auto i : a.slots)
                    list.push_back(i < 0 ? std::nullopt : std::optional<at::Tensor>(dense(static_cast<std::uint32_t>(i))));
                stack.emplace_back(std::move(list));
                break;
            }
        }
    }
}

namespace {

void check_operands(std::size_t given, std::uint32_t wanted) {
    if (given < wanted)
        throw error(error_code::dangling_tensor, "operand slot " + std::to_string(wanted - 1), "there is no such operand", "");
}

}  // namespace

std::vector<at::Tensor> op_caller::operator()(std::span<at::Tensor const> operands, c10::Device device) const {
    check_operands(operands.size(), operands_);
    torch::jit::Stack stack;
    push(stack, [&](std::uint32_t slot) -> at::Tensor const& { return operands[slot]; }, device);
    {
        at::AutoDispatchBelowADInplaceOrView const below_autograd;
        handle_.callBoxed(stack);
    }
    std::vector<at::Tensor> outputs;
    for (auto& result : stack) unbox(std::move(result), [&](at::Tensor&& t) { outputs.push_back(std::move(t)); });
    return outputs;
}

std::size_t op_caller::call(torch::jit::Stack& stack, std::span<at::Tensor> values, std::span<std::uint32_t const> operands,
                            std::span<std::uint32_t const> outputs, c10::Device device) const {
    check_operands(operands.size(), operands_);
    stack.clear();
    push(stack, [&](std::uint32_t slot) -> at::Tensor const& { return values[operands[slot]]; }, device);
    handle_.callBoxed(stack);
    std::size_t made = 0;
    for (auto& result : stack)
        unbox(std::move(result), [&](at::Tensor&& t) {
            if (made < outputs.size()) values[outputs[made]] = std::move(t);
            ++made;
        });
    stack.clear();
    return made;
}

std::vector<at::Tensor> call_op(op const& operation, std::span<at::Tensor const> operands, c10::Device device) {
    return op_caller(operation)(operands, device);
}

}  // namespace cantle::libtorch
