// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/dispatch_hook.hpp>
#include <adapters/libtorch/region.hpp>
#include <adapters/libtorch/region_run.hpp>
#include <adapters/libtorch/shape_functions.hpp>
#include <adapters/libtorch/whole_ops.hpp>

#include <cantle/base/error.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace cantle::libtorch {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using tensors = std::vector<Tensor>;
using spec_ptr = std::shared_ptr<region_spec const>;
using cantle::detail::joined;

/// The regions that were used in this process, by name: the ops' kernels find their functions here.
class known_regions {
public:
    static known_regions& instance() {
        static known_regions all;
        return all;
    }
    spec_ptr add(region_spec const& spec) {
        std::lock_guard const lock(mutex_);
        return specs_[spec.options.name] = std::make_shared<region_spec const>(spec);
    }
    spec_ptr find(std::string_view name) {
        std::lock_guard const lock(mutex_);
        auto const at = specs_.find(std::string(name));
        if (at == specs_.end())
            throw error(error_code::bad_region, "region '" + std::string(name) + "'", "this process does not know what it computes",
                        "call register_region() with its spec, or build the model that has it");
        return at->second;
    }

private:
    std::mutex mutex_;
    std::map<std::string, spec_ptr> specs_;
};

/// The dispatcher as at the start of a thread: what a region's function calls is neither recorded nor kept whole.
struct plain_dispatch {
    c10::impl::ForceDispatchKeyGuard keys{c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{})};
};

/// Shapes of a reference's ops, without a record of them: C++ PyTorch lacks Meta kernels that our table has.
struct shapes_only : dispatch_hook {
    void call(c10::OperatorHandle const& handle, c10::DispatchKeySet below, torch::jit::Stack& stack) override {
        if (auto const* shape = find_shape_function(handle)) (*shape)(stack);
        else handle.redispatchBoxed(below, &stack);
    }
};

Tensor contiguous_like(Tensor const& t) { return Tensor(at::detail::empty_meta(t.sizes(), t.scalar_type())); }

// ---- the ops ----

tensors region_kernel(at::TensorList inputs, std::string_view name, std::string_view, std::string_view, std::string_view, std::string_view,
                      double, std::string_view, std::string_view) {
    plain_dispatch const plain;
    c10::AutoGradMode const off(false);
    auto const spec = find_region(name);
    return current_run() ? run_region(*spec, inputs.vec()) : spec->reference(inputs.vec());
}

tensors region_meta(at::TensorList inputs, std::string_view name, std::string_view, std::string_view, std::string_view, std::string_view,
                    double, std::string_view, std::string_view) {
    plain_dispatch const plain;
    c10::AutoGradMode const off(false);
    shapes_only hook;
    dispatch_hook_guard const listen(hook);
    auto const spec = find_region(name);
    tensors results;
    for (auto const& t : (spec->shapes ? spec->shapes : spec->reference)(inputs.vec())) results.push_back(contiguous_like(t));
    return results;
}

tensors region_backward_kernel(at::TensorList grads, at::TensorList inputs, std::string_view name, std::string_view in,
                               std::string_view out, std::string_view grad_in, std::string_view grad_out, double, std::string_view,
                               std::string_view, at::IntArrayRef grad_of, at::IntArrayRef gradient_of) {
    plain_dispatch const plain;
    c10::AutoGradMode const off(false);
    auto const spec = find_region(name);
    if (current_run()) {
        op o{std::string(region_backward_op_name), {}};  // as the graph has it
        auto const add = [&](char const* argument, std::string_view text) { o.arguments.push_back({argument, std::string(text)}); };
        add("name", name);
        add("in_placements", in);
        add("out_placements", out);
        add("grad_in_placements", grad_in);
        add("grad_out_placements", grad_out);
        o.arguments.push_back({"grad_of", grad_of.vec()});
        o.arguments.push_back({"gradient_of", gradient_of.vec()});
        return run_region_backward(*spec, o, grads.vec(), inputs.vec());
    }
    c10::AutoGradMode const on(true);
    tensors leaves, wanted, outputs;
    for (auto const& t : inputs) leaves.push_back(t.detach());
    for (auto const i : gradient_of) wanted.push_back(leaves[static_cast<std::size_t>(i)].requires_grad_(true));
    auto const all = spec->reference(leaves);
    for (auto const o : grad_of) outputs.push_back(all[static_cast<std::size_t>(o)]);
    return gradients_of(outputs, wanted, grads.vec());
}

tensors region_backward_meta(at::TensorList, at::TensorList inputs, std::string_view, std::string_view, std::string_view, std::string_view,
                             std::string_view, double, std::string_view, std::string_view, at::IntArrayRef, at::IntArrayRef gradient_of) {
    tensors results;
    for (auto const i : gradient_of) results.push_back(contiguous_like(inputs[static_cast<std::size_t>(i)]));
    return results;
}

TORCH_LIBRARY_FRAGMENT(cantle, m) {
    m.def("region(Tensor[] inputs, str name, str in_placements, str out_placements, str grad_in_placements, str grad_out_placements, "
          "float flops_per_element, str collectives, str backward_collectives) -> Tensor[]");
    m.def("region_backward(Tensor[] grads, Tensor[] inputs, str name, str in_placements, str out_placements, str grad_in_placements, "
          "str grad_out_placements, float flops_per_element, str collectives, str backward_collectives, int[] grad_of, int[] gradient_of) "
          "-> Tensor[]");
}
TORCH_LIBRARY_IMPL(cantle, CPU, m) {
    m.impl("region", region_kernel);
    m.impl("region_backward", region_backward_kernel);
}
TORCH_LIBRARY_IMPL(cantle, CUDA, m) {
    m.impl("region", region_kernel);
    m.impl("region_backward", region_backward_kernel);
}
TORCH_LIBRARY_IMPL(cantle, Meta, m) {
    m.impl("region", region_meta);
    m.impl("region_backward", region_backward_meta);
}

// ---- above autograd ----

using signature = tensors(at::TensorList, std::string_view, std::string_view, std::string_view, std::string_view, std::string_view, double,
                          std::string_view, std::string_view);
using backward_signature = tensors(at::TensorList, at::TensorList, std::string_view, std::string_view, std::string_view, std::string_view,
                                   std::string_view, double, std::string_view, std::string_view, at::IntArrayRef, at::IntArrayRef);

struct region_function : torch::autograd::Function<region_function> {
    static variable_list forward(AutogradContext* context, std::string const& name, at::TensorList inputs) {
        static auto const call = c10::Dispatcher::singleton().findSchemaOrThrow("cantle::region", "").typed<signature>();
        auto const spec = find_region(name);
        auto const& o = spec->options;
        context->saved_data["name"] = name;
        context->save_for_backward(inputs.vec());
        context->set_materialize_grads(false);  // an output that nothing depends on has no gradient, rather than one of zeros
        tensors results;
        {
            at::AutoDispatchBelowADInplaceOrView const below_autograd;
            results = call.call(inputs, o.name, joined(o.inputs), joined(o.outputs), joined(o.input_gradients),
                                joined(o.output_gradients), o.flops_per_element, o.collectives, o.backward_collectives);
        }
        variable_list fixed;
        for (auto const& t : results)
            if (!t.is_floating_point()) fixed.push_back(t);
        context->mark_non_differentiable(fixed);
        return results;
    }
    static variable_list backward(AutogradContext* context, variable_list const& gradients) {
        static auto const call =
            c10::Dispatcher::singleton().findSchemaOrThrow("cantle::region_backward", "").typed<backward_signature>();
        auto const spec = find_region(context->saved_data["name"].toStringRef());
        auto const& o = spec->options;
        auto const inputs = context->get_saved_variables();
        variable_list result(inputs.size() + 1), grads;  // the name takes the first place
        std::vector<std::int64_t> grad_of, gradient_of;
        for (std::size_t i = 0; i < gradients.size(); ++i)
            if (gradients[i].defined()) {
                grads.push_back(gradients[i]);
                grad_of.push_back(static_cast<std::int64_t>(i));
            }
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (context->needs_input_grad(i) && inputs[i].is_floating_point()) gradient_of.push_back(static_cast<std::int64_t>(i));
        if (grads.empty() || gradient_of.empty()) return result;
        auto const made = call.call(grads, inputs, o.name, joined(o.inputs), joined(o.outputs),
                                    joined(o.input_gradients), joined(o.output_gradients), o.flops_per_element,
                                    o.collectives, o.backward_collectives, grad_of, gradient_of);
        for (std::size_t i = 0; i < made.size(); ++i) result[static_cast<std::size_t>(gradient_of[i]) + 1] = made[i];
        return result;
    }
};

[[noreturn]] void refuse(region_options const& o, std::string const& problem, std::string const& remedy) {
    throw error(error_code::bad_region, "region '" + o.name + "'", problem, remedy);
}

void check_complete(region_spec const& spec) {
    auto const& o = spec.options;
    if (o.name.empty()) refuse(o, "it has no name", "name it: equal names mean equal regions");
    if (!spec.reference) refuse(o, "it has no reference function", "give the dense computation on one device");
}

}  // namespace

std::shared_ptr<region_spec const> find_region(std::string_view name) { return known_regions::instance().find(name); }

void register_region(region_spec const& spec) {
    check_complete(spec);
    known_regions::instance().add(spec);
}

std::vector<at::Tensor> region(region_spec const& spec, std::vector<at::Tensor> const& inputs) {
    auto const& o = spec.options;
    check_complete(spec);
    if (inputs.size() != o.inputs.size())
        refuse(o, "it gets " + std::to_string(inputs.size()) + " tensors and declares placements of " + std::to_string(o.inputs.size()),
               "give one text per input");
    if (!whole_ops_guard::active()) return spec.reference(inputs);
    known_regions::instance().add(spec);
    auto results = region_function::apply(o.name, at::TensorList(inputs));
    if (results.size() != o.outputs.size())
        refuse(o, "it makes " + std::to_string(results.size()) + " tensors and declares placements of " + std::to_string(o.outputs.size()),
               "give one text per output");
    if (!results.empty() && !results[0].is_floating_point())
        refuse(o, "its first output is no floating point tensor", "put one first: it carries the gradient and the flops");
    return results;
}

}  // namespace cantle::libtorch
