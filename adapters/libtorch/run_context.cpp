// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/run_context.hpp>

namespace cantle::libtorch {
namespace {
thread_local run_context const* current = nullptr;
}

run_context const* current_run() { return current; }
run_context_guard::run_context_guard(run_context const& context) : before_(current) { current = &context; }
run_context_guard::~run_context_guard() { current = before_; }

}  // namespace cantle::libtorch
