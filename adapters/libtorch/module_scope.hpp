// SPDX-License-Identifier: BSL-1.0
#pragma once
// Which module an op belongs to. torch::nn has no forward hooks in C++, so a module says it itself, in the first line of its forward:
//
//     torch::Tensor forward(torch::Tensor x) {
//         cantle::libtorch::module_scope const scope(this);
//
// Outside a capture this costs two pointer moves. Modules that do not (torch::nn::Linear and the like) are recognised by the parameters
// they use: the op that reads layers.0.attention.wq.weight belongs to layers.0.attention.wq. Backward ops take the module of their forward
// op.

namespace torch::nn {
class Module;
}

namespace cantle::libtorch {

/// Ops called while it lives belong to that module (or to a module below it). Scopes nest and must be destroyed in reverse order.
class module_scope {
public:
    explicit module_scope(torch::nn::Module const* module) noexcept : module_scope(static_cast<void const*>(module)) {}
    /// A module that is no torch::nn::Module; its address or id is what capture_request::modules names.
    explicit module_scope(void const* module) noexcept : module_(module), outer_(innermost_) { innermost_ = this; }
    ~module_scope() { innermost_ = outer_; }
    module_scope(module_scope const&) = delete;
    module_scope& operator=(module_scope const&) = delete;

    /// The module whose forward runs on this thread, or nullptr.
    static void const* current() noexcept;

private:
    void const* module_;
    module_scope const* outer_;
    static thread_local module_scope const* innermost_;
};

}  // namespace cantle::libtorch
