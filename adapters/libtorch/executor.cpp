// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/executor.hpp>

#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/packing.hpp>
#include <adapters/libtorch/region_run.hpp>
#include <adapters/libtorch/run_context.hpp>

#include <cantle/base/error.hpp>

#include <c10/core/GradMode.h>

#include <string>
#include <utility>

namespace cantle::libtorch {

rank_executor::rank_executor(rank_program program, std::vector<std::string> names, c10::Device device)
    : program_(std::move(program)), names_(std::move(names)), device_(device) {
    check_regions(program_);
    for (auto const& s : program_.steps) callers_.push_back(s.is_transfer() ? nullptr : std::make_unique<op_caller>(s.call));
}

void rank_executor::check_inputs(std::vector<at::Tensor> const& inputs) const {
    if (inputs.size() != program_.inputs.size())
        throw error(error_code::bad_graph, "rank " + std::to_string(program_.rank),
                    std::to_string(inputs.size()) + " tensors are given, the program has " + std::to_string(program_.inputs.size()) +
                        " sources",
                    "give one per source, in the graph's order");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        auto const& port = program_.inputs[i];
        auto const& info = program_.values[port.value];
        bool const fits = inputs[i].defined() && inputs[i].sizes() == at::IntArrayRef(port.piece.sizes) &&
                          inputs[i].scalar_type() == to_scalar_type(info.type);
        if (!fits)
            throw error(
                error_code::bad_graph, "rank " + std::to_string(program_.rank) + ", '" + names_.at(port.node) + "'",
                "its piece is planned as " + std::string(to_string(info.type)) + " " + shape_text(port.piece.sizes) + ", given is " +
                    (inputs[i].defined() ? c10::toString(inputs[i].scalar_type()) + (" " + c10::str(inputs[i].sizes())) : "nothing"),
                "give a tensor of the planned shape and type");
    }
}

void rank_executor::run_step(std::size_t s, std::vector<at::Tensor>& values, communicator& others) const {
    auto const& step = program_.steps[s];
    if (!step.is_transfer()) {
        std::vector<at::Tensor> operands;
        for (auto v : step.inputs) operands.push_back(values[v]);
        auto results = (*callers_[s])(operands, device_);
        if (results.size() != step.outputs.size())
            throw error(error_code::bad_program, step.call.name,
                        "it gives " + std::to_string(results.size()) + " tensors instead of " + std::to_string(step.outputs.size()), "");
        for (std::size_t o = 0; o < results.size(); ++o) {
            auto const& sizes = program_.values[step.outputs[o]].sizes;
            if (results[o].defined() && sizes && results[o].sizes() != at::IntArrayRef(*sizes))
                throw error(error_code::bad_program, step.call.name,
                            "output " + std::to_string(o) + " is " + c10::str(results[o].sizes()) + ", the plan says " + shape_text(*sizes),
                            "");
            values[step.outputs[o]] = std::move(results[o]);
        }
        return;
    }
    auto const& t = step.move;
    auto const buffer = packed(values[step.inputs[0]], t);
    values[step.outputs[0]] = unpacked(t.communicates() ? others.run(t, buffer) : buffer, t);
}

std::vector<at::Tensor> rank_executor::run(std::vector<at::Tensor> inputs, communicator& others, std::uint64_t seed) const {
    c10::AutoGradMode const no_gradients(false);
    run_context context{seed, &program_.mesh, program_.rank, &others, &program_};
    run_context_guard const current(context);
    check_inputs(inputs);
    std::vector<at::Tensor> values(program_.values.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) values[program_.inputs[i].value] = std::move(inputs[i]);
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
        auto const& step = program_.steps[s];
        context.step = s;
        try {
            run_step(s, values, others);
        } catch (std::exception const& e) {
            std::string why = e.what();
            throw error(error_code::rank_failed, "rank " + std::to_string(program_.rank) + ", '" + names_.at(step.at) + "' (" +
                            (step.is_transfer() ? std::string(to_string(step.move.kind)) : step.call.name) + ")",
                        why.substr(0, why.find('\n')), "");
        }
        for (auto v : step.last_uses) values[v] = at::Tensor();
    }
    std::vector<at::Tensor> outputs;
    for (auto const& port : program_.outputs) outputs.push_back(values[port.value]);
    return outputs;
}

}  // namespace cantle::libtorch
