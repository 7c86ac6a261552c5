// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/dispatch_hook.hpp>

#include <torch/library.h>

namespace cantle::libtorch {
namespace {

thread_local dispatch_hook* current_hook = nullptr;

void listen(c10::OperatorHandle const& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    // What an op's kernel calls inside is the op's own business: the key is off until the op returns.
    c10::impl::ExcludeDispatchKeyGuard const off(listening_key);
    auto const below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, listening_key);
    // Functionalization computes shapes of views on the side, with the Python key excluded. Such calls are no part of the program.
    bool const shape_probe = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python);
    if (!current_hook || shape_probe) handle.redispatchBoxed(below, stack);
    else current_hook->call(handle, below, *stack);
}

}  // namespace

dispatch_hook_guard::dispatch_hook_guard(dispatch_hook& hook) : previous_(current_hook), include_(listening_key) { current_hook = &hook; }
dispatch_hook_guard::~dispatch_hook_guard() { current_hook = previous_; }

TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&listen>()); }

}  // namespace cantle::libtorch
