// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/op_values.hpp>

#include <cantle/base/error.hpp>

#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace cantle::libtorch {
namespace {

constexpr std::pair<dtype, at::ScalarType> types[] = {
    {dtype::float64, at::kDouble}, {dtype::float32, at::kFloat}, {dtype::bfloat16, at::kBFloat16}, {dtype::float16, at::kHalf},
    {dtype::float8_e4m3fn, at::kFloat8_e4m3fn}, {dtype::float8_e5m2, at::kFloat8_e5m2}, {dtype::int64, at::kLong}, {dtype::int32, at::kInt},
    {dtype::int16, at::kShort}, {dtype::int8, at::kChar}, {dtype::uint8, at::kByte}, {dtype::boolean, at::kBool},
    {dtype::complex64, at::kComplexFloat}, {dtype::complex128, at::kComplexDouble}};

constexpr std::pair<at::MemoryFormat, std::string_view> memory_formats[] = {
    {at::MemoryFormat::Contiguous, "contiguous_format"}, {at::MemoryFormat::Preserve, "preserve_format"},
    {at::MemoryFormat::ChannelsLast, "channels_last"}, {at::MemoryFormat::ChannelsLast3d, "channels_last_3d"}};

[[noreturn]] void refuse(std::string const& what) {
    throw error(error_code::capture_failed, what, "cantle's graphs have no such literal", "write the model without it");
}

c10::Type const& strip_optional(c10::Type const& type) {
    auto const* t = &type;
    while (t->kind() == c10::TypeKind::OptionalType) t = t->containedType(0).get();
    return *t;
}

argument_value scalar_argument(c10::IValue const& v) {
    if (v.isBool()) return v.toBool();
    if (v.isInt()) return v.toInt();
    if (v.isDouble()) return v.toDouble();
    if (v.isSymInt()) return v.toSymInt().guard_int(__FILE__, __LINE__);
    if (v.isSymFloat()) return v.toSymFloat().guard_float(__FILE__, __LINE__);
    refuse("a scalar of kind " + v.tagKind());
}

std::int64_t integer(c10::IValue const& v) { return v.isInt() ? v.toInt() : v.toSymInt().guard_int(__FILE__, __LINE__); }

argument_value list_argument(c10::IValue const& v, c10::Type const& element,
                             std::function<std::uint32_t(at::Tensor const&)> const& operand) {
    auto const& of = strip_optional(element);
    switch (of.kind()) {
        case c10::TypeKind::TensorType: {
            operand_slots slots;
            auto const add = [&](c10::IValue const& item) {
                bool const there = item.isTensor() && item.toTensor().defined();
                slots.indices.push_back(there ? static_cast<std::int32_t>(operand(item.toTensor())) : -1);
            };
            if (v.isTensorList())
                for (at::Tensor const& t : v.toTensorVector()) add(t);
            else
                for (c10::IValue const& item : v.toListRef()) add(item);
            return slots;
        }
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType: {
            if (v.isIntList()) return v.toIntVector();
            std::vector<std::int64_t> values;
            for (c10::IValue const& item : v.toListRef()) values.push_back(integer(item));
            return values;
        }
        case c10::TypeKind::FloatType: return v.toDoubleVector();
        case c10::TypeKind::BoolType: {
            std::vector<bool> values;
            for (bool b : v.toBoolList()) values.push_back(b);
            return values;
        }
        default: refuse("a list of " + element.str());
    }
}

template <class T>
std::vector<double> read_as_doubles(at::Tensor const& t) {
    auto const* data = t.const_data_ptr<T>();
    std::vector<double> values(static_cast<std::size_t>(t.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(data[i]);
    return values;
}

}  // namespace

dtype to_dtype(at::ScalarType type) {
    for (auto const& [ours, theirs] : types)
        if (theirs == type) return ours;
    refuse(std::string("element type ") + c10::toString(type));
}

at::ScalarType to_scalar_type(dtype type) {
    for (auto const& [ours, theirs] : types)
        if (ours == type) return theirs;
    refuse("element type " + std::string(to_string(type)));
}

std::vector<double> values_of(at::Tensor const& t) {
    switch (t.scalar_type()) {
        case at::kDouble: return read_as_doubles<double>(t);
        case at::kFloat: return read_as_doubles<float>(t);
        case at::kBFloat16: return read_as_doubles<at::BFloat16>(t);
        case at::kHalf: return read_as_doubles<at::Half>(t);
        case at::kLong: return read_as_doubles<std::int64_t>(t);
        case at::kInt: return read_as_doubles<std::int32_t>(t);
        case at::kBool: return read_as_doubles<bool>(t);
        default:
            throw error(error_code::capture_failed, "a constant tensor", "its element type is not supported", "register it as a buffer");
    }
}

tensor_meta to_meta(at::Tensor const& tensor) {
    if (!tensor.defined()) return {{}, {}, dtype::float32, false};
    tensor_meta meta{tensor.sizes().vec(), {}, to_dtype(tensor.scalar_type()), true};
    meta.strides = tensor.is_contiguous() ? contiguous_strides(meta.sizes) : tensor.strides().vec();
    return meta;
}

argument_value to_argument(c10::IValue const& value, c10::Type const& type,
                           std::function<std::uint32_t(at::Tensor const&)> const& operand) {
    if (value.isNone()) return std::monostate{};
    auto const& of = strip_optional(type);
    switch (of.kind()) {
        case c10::TypeKind::TensorType:
            if (!value.toTensor().defined()) return std::monostate{};
            return operand_slot{operand(value.toTensor())};
        case c10::TypeKind::ListType: return list_argument(value, *of.containedType(0), operand);
        case c10::TypeKind::NumberType: return scalar_argument(value);
        case c10::TypeKind::IntType:
        case c10::TypeKind::SymIntType: return integer(value);
        case c10::TypeKind::FloatType:
        case c10::TypeKind::SymFloatType: return value.isDouble() ? value.toDouble() : value.toSymFloat().guard_float(__FILE__, __LINE__);
        case c10::TypeKind::BoolType:
        case c10::TypeKind::SymBoolType: return value.isBool() ? value.toBool() : value.toSymBool().guard_bool(__FILE__, __LINE__);
        case c10::TypeKind::StringType: return value.toStringRef();
        case c10::TypeKind::DeviceObjType: return symbol{"device", "device"};
        case c10::TypeKind::ScalarTypeType: return to_dtype(value.toScalarType());
        case c10::TypeKind::LayoutType:
            if (value.toLayout() == c10::kStrided) return symbol{"layout", "strided"};
            refuse("a layout that is not strided");
        case c10::TypeKind::MemoryFormatType:
            for (auto const& [format, name] : memory_formats)
                if (value.toMemoryFormat() == format) return symbol{"memory_format", std::string(name)};
            refuse("a memory format");
        default: refuse("an argument of type " + type.str());
    }
}

c10::IValue to_ivalue(argument_value const& value, c10::Type const& type, std::span<at::Tensor const> operands, c10::Device device) {
    bool const optional = type.kind() == c10::TypeKind::OptionalType;
    auto const& of = strip_optional(type);
    auto const operand = [&](std::size_t slot) -> at::Tensor const& {
        if (slot >= operands.size())
            throw error(error_code::dangling_tensor, "operand slot " + std::to_string(slot), "there is no such operand", "");
        return operands[slot];
    };
    if (std::holds_alternative<std::monostate>(value)) {
        if (of.kind() == c10::TypeKind::TensorType && !optional) return at::Tensor();
        return {};
    }
    if (auto const* slot = std::get_if<operand_slot>(&value)) return operand(slot->index);
    if (auto const* slots = std::get_if<operand_slots>(&value)) {
        if (of.kind() == c10::TypeKind::ListType && of.containedType(0)->kind() == c10::TypeKind::OptionalType) {
            c10::List<std::optional<at::Tensor>> list;
            for (auto i : slots->indices)
                list.push_back(i < 0 ? std::nullopt : std::optional<at::Tensor>(operand(static_cast<std::size_t>(i))));
            return list;
        }
        c10::List<at::Tensor> list;
        for (auto i : slots->indices) list.push_back(i < 0 ? at::Tensor() : operand(static_cast<std::size_t>(i)));
        return list;
    }
    if (auto const* s = std::get_if<symbol>(&value)) {
        if (s->kind == "device") return device;
        if (s->kind == "layout") return c10::kStrided;
        for (auto const& [format, name] : memory_formats)
            if (s->text == name) return format;
        throw error(error_code::bad_field, s->kind + " '" + s->text + "'", "no such name", "write it as PyTorch prints it");
    }
    if (auto const* t = std::get_if<dtype>(&value)) return to_scalar_type(*t);
    if (auto const* b = std::get_if<bool>(&value)) return *b;
    if (auto const* x = std::get_if<double>(&value)) return *x;
    if (auto const* text = std::get_if<std::string>(&value)) return *text;
    if (auto const* i = std::get_if<std::int64_t>(&value)) {
        if (of.kind() == c10::TypeKind::FloatType) return static_cast<double>(*i);
        return *i;
    }
    if (of.kind() == c10::TypeKind::ListType && of.containedType(0)->kind() == c10::TypeKind::NumberType) {
        // Scalar[]: a list of floats would become one only while nobody else holds it.
        c10::impl::GenericList list(c10::NumberType::get());
        if (auto const* whole = std::get_if<std::vector<std::int64_t>>(&value)) for (auto x : *whole) list.push_back(x);
        if (auto const* real = std::get_if<std::vector<double>>(&value)) for (auto x : *real) list.push_back(x);
        return list;
    }
    if (auto const* list = std::get_if<std::vector<std::int64_t>>(&value)) {
        if (of.kind() == c10::TypeKind::ListType && of.containedType(0)->kind() == c10::TypeKind::FloatType)
            return std::vector<double>(list->begin(), list->end());
        return *list;
    }
    if (auto const* list = std::get_if<std::vector<double>>(&value)) return *list;
    c10::List<bool> flags;
    for (bool b : std::get<std::vector<bool>>(value)) flags.push_back(b);
    return flags;
}

std::string op_name(c10::OperatorName const& name) {
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

}  // namespace cantle::libtorch
