// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/dispatch_hook.hpp>
#include <adapters/libtorch/meta_scope.hpp>
#include <adapters/libtorch/shape_functions.hpp>

#include <ATen/core/Tensor.h>

namespace cantle::libtorch {
namespace {

/// Rewrites the device argument of factory ops. An op without one, or with one left empty beside a tensor argument, follows its tensors.
class build_on_meta final : public dispatch_hook {
public:
    void call(c10::OperatorHandle const& handle, c10::DispatchKeySet below, torch::jit::Stack& stack) override {
        auto const& arguments = handle.schema().arguments();
        auto const first = stack.size() - arguments.size();
        bool device = false, tensor = false;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            auto& value = stack[first + i];
            tensor = tensor || value.isTensor();
            if (arguments[i].name() != "device") continue;
            device = true;
            if (!value.isNone() || !tensor) value = c10::Device(c10::kMeta);
        }
        if (auto const* shape = find_shape_function(handle)) (*shape)(stack);
        else if (device && !tensor) handle.callBoxed(&stack);  // from the top again, so that BackendSelect sees the device
        else handle.redispatchBoxed(below, &stack);
        for (std::size_t i = stack.size() - handle.schema().returns().size(); i < stack.size(); ++i)
            if (stack[i].isTensor() && stack[i].toTensor().defined() && stack[i].toTensor().is_meta())
                stack[i].toTensor().storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
    }
};

}  // namespace

struct meta_scope::state {
    build_on_meta hook;
    dispatch_hook_guard guard{hook};
};
meta_scope::meta_scope() : state_(std::make_unique<state>()) {}
meta_scope::~meta_scope() = default;

}  // namespace cantle::libtorch
