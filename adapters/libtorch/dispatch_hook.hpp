// SPDX-License-Identifier: BSL-1.0
#pragma once
// The place in PyTorch's dispatcher where cantle listens: DispatchKey::Fake, which sits below autograd, Python and Functionalize and above
// the backends, and for which LibTorch registers no fallback. One boxed fallback is registered there for the whole process; it does nothing
// until a thread installs a hook. Torch is pinned (2.15), and the key is this one constant.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace cantle::libtorch {

inline constexpr c10::DispatchKey listening_key = c10::DispatchKey::Fake;

/// What a thread does with every op call that reaches the listening key.
class dispatch_hook {
public:
    virtual ~dispatch_hook() = default;
    /// Must leave the op's returns on the stack in place of its arguments; `below` are the keys below the listening key.
    virtual void call(c10::OperatorHandle const& handle, c10::DispatchKeySet below, torch::jit::Stack& stack) = 0;
};

/// Installs a hook for this thread while it lives. Guards nest; the innermost hook is called.
class dispatch_hook_guard {
public:
    explicit dispatch_hook_guard(dispatch_hook& hook);
    ~dispatch_hook_guard();
    dispatch_hook_guard(dispatch_hook_guard const&) = delete;
    dispatch_hook_guard& operator=(dispatch_hook_guard const&) = delete;

private:
    dispatch_hook* previous_;
    c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace cantle::libtorch
