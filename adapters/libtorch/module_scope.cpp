// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/module_scope.hpp>

namespace cantle::libtorch {

thread_local module_scope const* module_scope::innermost_ = nullptr;

void const* module_scope::current() noexcept { return innermost_ ? innermost_->module_ : nullptr; }

}  // namespace cantle::libtorch
