// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/op_values.hpp>

#include <cantle/base/error.hpp>

#include <ATen/core/LegacyTypeDispatch.h>

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

/// CPU kernels of PyTorch 2.15 that read their operands as if all were contiguous (or strided alike), and other elements where they are
/// not. Ops that write into their operands must get them as they are.
bool reads_raw_memory(std::string const& name) {
    auto const begins = [&](std::string_view prefix) { return name.rfind(prefix, 0) == 0; };
    if (name.substr(0, name.find('.')).back() == '_') return false;
    return begins("aten::_fused_adam") || begins("aten::_fused_sgd") || begins("aten::_fused_adagrad") ||
           name == "aten::native_layer_norm_backward";
}

}  // namespace

op_caller::op_caller(op operation)
    : operation_(std::move(operation)), handle_(find_op(operation_.name)), wants_contiguous_(reads_raw_memory(operation_.name)) {
    for (auto const& argument : handle_.schema().arguments()) {
        auto const* value = operation_.find(argument.name());
        bool const none_will_do = argument.type()->kind() == c10::TypeKind::OptionalType;
        if (!value && !argument.default_value() && !none_will_do)
            throw error(error_code::bad_field, operation_.name, "argument '" + argument.name() + "' is missing",
                        "give every argument of " + c10::toString(handle_.schema()));
        values_.push_back(value);
    }
}

std::vector<at::Tensor> op_caller::operator()(std::span<at::Tensor const> operands, c10::Device device) const {
    std::vector<at::Tensor> dense;
    if (wants_contiguous_) {
        for (auto const& t : operands) dense.push_back(t.defined() ? t.contiguous() : t);
        operands = dense;
    }
    auto const& schema = handle_.schema();
    torch::jit::Stack stack;
    stack.reserve(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
        auto const& argument = schema.arguments()[i];
        if (values_[i]) stack.push_back(to_ivalue(*values_[i], *argument.real_type(), operands, device));
        else stack.push_back(argument.default_value().value_or(c10::IValue()));
    }
    {
        at::AutoDispatchBelowADInplaceOrView const below_autograd;
        handle_.callBoxed(stack);
    }
    std::vector<at::Tensor> outputs;
    for (auto& result : stack) {
        if (result.isTensor()) outputs.push_back(std::move(result).toTensor());
        else if (result.isTensorList())
            for (at::Tensor const& t : result.toTensorVector()) outputs.push_back(t);
        else if (result.isNone()) outputs.emplace_back();
    }
    return outputs;
}

std::vector<at::Tensor> call_op(op const& operation, std::span<at::Tensor const> operands, c10::Device device) {
    return op_caller(operation)(operands, device);
}

}  // namespace cantle::libtorch
