// SPDX-License-Identifier: BSL-1.0
#pragma once
// Between PyTorch's boxed values and the literals of a graph. Devices are neutral in a graph (symbol {"device", "device"}): whoever runs it
// says where.
#include <cantle/base/tensor_type.hpp>
#include <cantle/graph/op.hpp>
#include <cantle/graph/tensor_meta.hpp>

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// PyTorch's element type as ours. Throws error 604 for a type that graphs do not know.
dtype to_dtype(at::ScalarType type);
at::ScalarType to_scalar_type(dtype type);

/// Sizes, strides and type of a tensor; an undefined tensor gives defined == false.
tensor_meta to_meta(at::Tensor const& tensor);

/// The elements of a contiguous CPU tensor in order. Throws error 604 for an element type that graphs cannot hold as data.
std::vector<double> values_of(at::Tensor const& tensor);

/// A boxed argument as a graph holds it. `operand` is asked for the slot of every defined tensor. `type` is the schema's real type.
argument_value to_argument(c10::IValue const& value, c10::Type const& type, std::function<std::uint32_t(at::Tensor const&)> const& operand);

/// The other way: `type` tells what a literal stands for; slots are looked up in `operands`; a device becomes `device`.
c10::IValue to_ivalue(argument_value const& value, c10::Type const& type, std::span<at::Tensor const> operands, c10::Device device);

/// "aten::add.Tensor" of an operator name; ".overload" only where there is one.
std::string op_name(c10::OperatorName const& name);

}  // namespace cantle::libtorch
