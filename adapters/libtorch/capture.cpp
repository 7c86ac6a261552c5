// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/capture.hpp>
#include <adapters/libtorch/recorder.hpp>
#include <adapters/libtorch/whole_ops.hpp>

#include <cantle/base/error.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <string_view>

namespace cantle::libtorch {
namespace {

namespace functional = at::functionalization::impl;

void check_device(named_tensor const& t, char const* kind) {
    if (!t.tensor.is_meta())
        throw error(error_code::capture_failed, std::string(kind) + " '" + t.name + "'",
                    "it is on " + t.tensor.device().str() + ", not on meta",
                    "build the module inside a cantle::libtorch::meta_scope, or move it with module->to(torch::kMeta)");
}

at::Tensor wrap(at::Tensor const& t) {
    auto wrapped = functional::to_functional_tensor(t.detach());
    wrapped.set_requires_grad(t.requires_grad());
    return wrapped;
}

at::Tensor unwrap(at::Tensor const& t) {
    if (!t.defined() || !functional::isFunctionalTensor(t)) return t;
    functional::sync(t);
    return functional::from_functional_tensor(t);
}

/// Autograd, functionalization and the listening key, set for one thread and put back at the end, also after an exception.
struct capture_state {
    explicit capture_state(recorder& r) : listen(r) {}
    whole_ops_guard whole;
    c10::AutoGradMode gradients{true};
    functional::FunctionalizationReapplyViewsGuard views{true};
    c10::impl::IncludeDispatchKeyGuard functionalize{c10::DispatchKey::Functionalize};
    dispatch_hook_guard listen;
};

void run_and_record(capture_request const& request, recorder& record) {
    std::vector<at::Tensor> wanted;       // tensors whose gradients are asked for
    std::vector<vertex> wanted_vertices;
    std::vector<std::string> wanted_names;
    auto const want = [&](at::Tensor const& t, vertex v, std::string const& name) {
        wanted.push_back(t);
        wanted_vertices.push_back(v);
        wanted_names.push_back(name + ".grad");
    };
    std::size_t sources = 0;
    auto const add = [&](node_role role, named_tensor const& t) -> std::optional<vertex> {
        auto const v = record.add_source(role, t.name, t.tensor);
        if (v < sources) return std::nullopt;  // tied to an earlier one
        sources = v + 1;
        return v;
    };
    for (auto const& p : request.parameters) {
        check_device(p, "parameter");
        if (auto const v = add(node_role::parameter, p); v && p.tensor.requires_grad()) want(p.tensor, *v, p.name);
    }
    for (auto const& b : request.buffers) {
        check_device(b, "buffer");
        add(node_role::buffer, b);
    }
    std::vector<at::Tensor> inputs, targets;
    for (auto const& x : request.inputs) {
        check_device(x, "input");
        auto const v = add(node_role::input, x);
        inputs.push_back(wrap(x.tensor));
        if (v && x.tensor.requires_grad()) want(inputs.back(), *v, x.name);
    }
    for (auto const& y : request.targets) {
        check_device(y, "target");
        add(node_role::target, y);
        targets.push_back(wrap(y.tensor));
    }

    capture_state const state(record);
    auto const out = request.run(inputs, targets);
    if (!out.defined() || !out.requires_grad())
        throw error(error_code::capture_failed, "the model", "its result does not depend on any parameter that requires grad",
                    "set requires_grad on what is trained, and do not detach the result");
    std::optional<at::Tensor> tangent;
    if (request.tangent) {
        auto const sink = record.add_sink(node_role::output, request.output_name, unwrap(out), std::nullopt);
        record.begin_backward();
        tangent = at::Tensor(at::detail::empty_meta(out.sizes(), out.scalar_type()));
        auto const v = record.add_source(node_role::tangent, request.output_name + ".tangent", *tangent);
        record.set_of(v, sink);
        tangent = functional::to_functional_tensor(*tangent);
    } else {
        if (out.numel() != 1)
            throw error(error_code::capture_failed, "the loss", "it has shape " + c10::str(out.sizes()),
                        "give a scalar, or capture with a tangent");
        record.add_sink(node_role::loss, "loss", unwrap(out), std::nullopt);
        record.begin_backward();
    }
    if (wanted.empty()) return;
    torch::autograd::variable_list const tangents = tangent ? torch::autograd::variable_list{*tangent} : torch::autograd::variable_list{};
    auto const gradients = torch::autograd::grad({out}, wanted, tangents, std::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < gradients.size(); ++i)
        if (gradients[i].defined()) record.add_sink(node_role::gradient, wanted_names[i], unwrap(gradients[i]), wanted_vertices[i]);
}

}  // namespace

training_graph capture(capture_request const& request) {
    recorder record(request.modules);
    try {
        run_and_record(request, record);
    } catch (c10::Error const& e) {
        std::string_view const text(e.what_without_backtrace());
        throw error(error_code::capture_failed, "the model", std::string(text.substr(0, text.find('\n'))), "");
    }
    return record.finish();
}

}  // namespace cantle::libtorch
