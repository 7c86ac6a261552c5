// SPDX-License-Identifier: BSL-1.0
// Autograd through `local` takes the loss for the sum over all ranks (region_ranks.hpp). On an axis where a gradient that arrives is
// replicated as its output is, every rank holds all of it, so only the first member's counts: the others' is set to zero.
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/region_ranks.hpp>
#include <adapters/libtorch/region_run.hpp>

#include <cantle/base/error.hpp>
#include <cantle/rules/region.hpp>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cantle::libtorch {
namespace {

using tensors = std::vector<at::Tensor>;
using cantle::detail::region_declaration;

error bad(std::string const& subject, std::string const& problem, std::string const& remedy) {
    return error(error_code::bad_region, subject, problem, remedy);
}

std::vector<std::size_t> indices(op const& o, char const* argument) {
    std::vector<std::size_t> list;
    for (auto i : o.get<std::vector<std::int64_t>>(argument, {})) list.push_back(static_cast<std::size_t>(i));
    return list;
}
bool is_backward(op const& o) { return o.name == region_backward_op_name; }

/// The declaration of a region's op, and how the gradients of its backward relate to its tensors.
class run_declaration {
public:
    run_declaration(op const& o, std::size_t inputs, device_mesh const& mesh)
        : mesh_(mesh), d_(o, inputs, std::nullopt), grad_of_(indices(o, "grad_of")), gradient_of_(indices(o, "gradient_of")) {
        for (std::size_t a = 0; a < mesh.dims(); ++a)
            if (mesh.size(a) > 1 && placed(a)) sum_axes_ |= 1u << a;
    }
    /// Axes on which some tensor or gradient is not replicated.
    std::uint32_t sum_axes() const { return sum_axes_; }
    std::vector<std::size_t> const& grad_of() const { return grad_of_; }
    std::vector<std::size_t> const& gradient_of() const { return gradient_of_; }

    /// Throws bad_region where autograd through `local` would give gradients that lie otherwise than declared.
    void require_autograd() const {
        for (std::size_t a = 0; a < mesh_.dims(); ++a) {
            if (!(sum_axes_ >> a & 1u)) continue;
            auto const& axis = mesh_.name(a);
            for (auto o : grad_of_)
                require(d_.output_on(o, axis), d_.gradient_of_output(o, axis), true, "output " + std::to_string(o), axis);
            for (auto i : gradient_of_)
                require(d_.input_on(i, axis), d_.gradient_of_input(i, axis), false, "input " + std::to_string(i), axis);
        }
    }
    /// Whether this rank's copy of the gradient of output `o` counts.
    bool counts(std::size_t o, std::int64_t rank) const {
        for (std::size_t a = 0; a < mesh_.dims(); ++a) {
            auto const& axis = mesh_.name(a);
            if ((sum_axes_ >> a & 1u) && d_.output_on(o, axis).is_replicate() && d_.gradient_of_output(o, axis).is_replicate() &&
                mesh_.coordinate(rank, a) != 0)
                return false;
        }
        return true;
    }

private:
    device_mesh const& mesh_;
    region_declaration d_;
    std::vector<std::size_t> grad_of_, gradient_of_;
    std::uint32_t sum_axes_ = 0;

    bool placed(std::size_t a) const {
        auto const& axis = mesh_.name(a);
        bool any = false;
        for (std::size_t i = 0; i < d_.inputs.size(); ++i) any = any || !d_.input_on(i, axis).is_replicate();
        for (std::size_t o = 0; o < d_.outputs.size(); ++o) any = any || !d_.output_on(o, axis).is_replicate();
        for (auto o : grad_of_) any = any || !d_.gradient_of_output(o, axis).is_replicate();
        for (auto i : gradient_of_) any = any || !d_.gradient_of_input(i, axis).is_replicate();
        return any;
    }
    /// Autograd's pairs: S(d) S(d); P R; R P; and for a gradient that arrives, R R.
    void require(placement p, placement g, bool arrives, std::string const& which, std::string const& axis) const {
        bool const sums = (!p.is_partial() || p.reduce == reduction::sum) && (!g.is_partial() || g.reduce == reduction::sum);
        bool const fits = p.is_shard()       ? g == p
                          : p.is_partial()   ? g.is_replicate()
                          : g.is_replicate() ? arrives
                                             : g.is_partial();
        if (!sums || !fits)
            throw bad(d_.reader().subject(),
                      which + " is " + to_string(p) + " on axis '" + axis + "' and its gradient " + to_string(g) +
                          ", which autograd through 'local' does not give",
                      "give 'local_backward', or leave the gradient to be derived");
    }
};

/// The author's function, its errors with the region's name and the rank.
template <class F>
tensors guarded(detail::region_call const& call, F&& run) {
    try {
        return run();
    } catch (error const& e) {
        if (e.subject() == call.subject()) throw;
        throw error(error_code::rank_failed, call.subject(), e.what(), "");
    } catch (std::exception const& e) {
        std::string const why = e.what();
        throw error(error_code::rank_failed, call.subject(), why.substr(0, why.find('\n')), "");
    }
}

std::shared_ptr<detail::region_call> call_of(region_spec const& spec) {
    auto call = std::make_shared<detail::region_call>();
    call->name = spec.options.name;
    call->run = *current_run();
    return call;
}

/// Throws bad_region where the tensors are not those that the plan expects of the step that is running.
void check_results(detail::region_call const& call, tensors const& results, char const* what) {
    auto const* const program = call.run.program;
    if (!program) return;
    auto const& step = program->steps[call.run.step];
    if (results.size() != step.outputs.size())
        throw bad(call.subject(), std::to_string(results.size()) + " tensors come out, planned are " + std::to_string(step.outputs.size()),
                  "give one per declared output");
    for (std::size_t i = 0; i < results.size(); ++i) {
        auto const& info = program->values[step.outputs[i]];
        if (!info.defined || !info.sizes) continue;
        if (results[i].defined() && results[i].sizes() == at::IntArrayRef(*info.sizes) &&
            results[i].scalar_type() == to_scalar_type(info.type))
            continue;
        throw bad(call.subject(),
                  what + std::to_string(i) + " is " +
                      (results[i].defined() ? c10::toString(results[i].scalar_type()) + (" " + c10::str(results[i].sizes())) : "nothing") +
                      ", its piece is planned as " + std::string(to_string(info.type)) + " " + shape_text(*info.sizes),
                  "give this rank's piece of it, as the region declares its placement");
    }
}

}  // namespace

void check_regions(rank_program const& program) {
    for (auto const& step : program.steps) {
        if (step.call.name != region_op_name && !is_backward(step.call)) continue;
        auto const name = step.call.get<std::string>("name", "");
        auto const spec = find_region(name);
        auto const subject = "region '" + name + "'";
        auto const now = region_op(spec->options);
        for (auto const* argument : {"in_placements", "out_placements", "grad_in_placements", "grad_out_placements"})
            if (now.get<std::string>(argument, "") != step.call.get<std::string>(argument, ""))
                throw bad(subject, "its " + std::string(argument) + " are not those of the graph",
                          "register the region that the graph was captured with; equal names mean equal regions");
        if (program.mesh.device_count() == 1) continue;
        run_declaration const declared(step.call, spec->options.inputs.size(), program.mesh);
        if (!spec->local && declared.sum_axes() != 0)
            throw bad(subject, "it has no function for local tensors, and mesh " + program.mesh.text() + " cuts some of them",
                      "give the spec 'local', or plan for one device");
        if (is_backward(step.call) && spec->local && !spec->local_backward) declared.require_autograd();
    }
}

tensors run_region(region_spec const& spec, tensors const& inputs) {
    auto const call = call_of(spec);
    return guarded(*call, [&] {
        region_ranks ranks(call);
        auto results = spec.local ? spec.local(ranks, inputs) : spec.reference(inputs);
        check_results(*call, results, "output ");
        return results;
    });
}

tensors run_region_backward(region_spec const& spec, op const& declared, tensors const& grads, tensors const& inputs) {
    auto const call = call_of(spec);
    run_declaration const d(declared, inputs.size(), *call->run.mesh);
    auto const by_hand = [&](region_ranks& ranks) {
        tensors by_output(spec.options.outputs.size()), results;
        for (std::size_t i = 0; i < grads.size(); ++i) by_output.at(d.grad_of()[i]) = grads[i];
        auto const made = spec.local_backward(ranks, by_output, inputs);
        if (made.size() != inputs.size())
            throw bad(call->subject(),
                      "'local_backward' gives " + std::to_string(made.size()) + " tensors for " + std::to_string(inputs.size()) + " inputs",
                      "give one per input, undefined where it has no gradient");
        for (auto i : d.gradient_of()) results.push_back(made[i].defined() ? made[i] : at::zeros_like(inputs[i]));
        return results;
    };
    auto const by_autograd = [&](region_ranks& ranks) {
        c10::AutoGradMode const on(true);
        tensors leaves, wanted, outputs, arriving;
        for (auto const& t : inputs) leaves.push_back(t.detach());
        for (auto const i : d.gradient_of()) wanted.push_back(leaves[i].requires_grad_(true));
        auto const start = at::zeros({}, at::TensorOptions(inputs.empty() ? c10::Device(c10::kCPU) : inputs[0].device()));
        call->chain = start.requires_grad_(true);
        call->sum_axes = d.sum_axes();
        auto const all = spec.local ? spec.local(ranks, leaves) : spec.reference(leaves);
        if (all.size() != spec.options.outputs.size())
            throw bad(call->subject(), "'local' gives " + std::to_string(all.size()) + " tensors", "give one per declared output");
        for (std::size_t i = 0; i < grads.size(); ++i) {
            outputs.push_back(all[d.grad_of()[i]]);
            arriving.push_back(d.counts(d.grad_of()[i], call->run.rank) ? grads[i] : at::zeros_like(grads[i]));
        }
        outputs.push_back(call->chain);
        arriving.push_back(at::zeros_like(start));
        wanted.push_back(start);
        try {
            auto results = gradients_of(outputs, wanted, arriving);
            results.pop_back();
            return results;
        } catch (...) {
            if (call->failure) std::rethrow_exception(call->failure);
            throw;
        }
    };
    return guarded(*call, [&] {
        region_ranks ranks(call);
        auto results = spec.local && spec.local_backward ? by_hand(ranks) : by_autograd(ranks);
        check_results(*call, results, "gradient ");
        return results;
    });
}

tensors gradients_of(tensors const& outputs, tensors const& wanted, tensors const& grads) {
    tensors from, with;
    for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].requires_grad()) {
            from.push_back(outputs[i]);
            with.push_back(grads[i]);
        }
    tensors results(wanted.size());
    if (!from.empty()) results = torch::autograd::grad(from, wanted, with, std::nullopt, false, /*allow_unused=*/true);
    for (std::size_t i = 0; i < results.size(); ++i)
        if (!results[i].defined()) results[i] = at::zeros_like(wanted[i]);
    return results;
}

}  // namespace cantle::libtorch
