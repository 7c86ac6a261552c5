// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/executor.hpp>

#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/packing.hpp>
#include <adapters/libtorch/region_run.hpp>
#include <adapters/libtorch/run_context.hpp>

#include <cantle/base/error.hpp>
#include <cantle/program/fuse_bias.hpp>

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cantle::libtorch {

/// What one run holds.
struct rank_executor::running {
    std::vector<at::Tensor> values;                    // by program_value
    std::vector<std::unique_ptr<pending>> in_flight;   // by step; null before the start and after the landing
    std::vector<std::uint32_t> started;                // steps in flight, in the order of their start
    torch::jit::Stack stack;
    std::size_t at = 0;                                // the step to blame for what is thrown
};

rank_executor::rank_executor(rank_program program, std::vector<std::string> names, c10::Device device)
    : program_(fuse_biases(std::move(program))), names_(std::move(names)), device_(device), steps_(program_.steps.size()) {
    check_regions(program_);
    constexpr auto none = static_cast<std::uint32_t>(-1);
    std::vector<std::uint32_t> flies(program_.values.size(), none);  // by value: the transfer that nobody has waited for yet
    for (std::uint32_t s = 0; s < steps_.size(); ++s) {
        auto const& step = program_.steps[s];
        auto& mine = steps_[s];
        for (auto v : step.inputs)
            if (auto const t = std::exchange(flies.at(v), none); t != none) mine.lands.push_back(t);
        if (!step.is_transfer()) {
            mine.caller = std::make_unique<op_caller>(step.call);
            continue;
        }
        if (step.move.communicates()) flies[step.outputs[0]] = s;
    }
    for (auto t : flies)
        if (t != none) lands_at_end_.push_back(t);
    std::sort(lands_at_end_.begin(), lands_at_end_.end());
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

void rank_executor::call(std::size_t s, running& r) const {
    auto const& step = program_.steps[s];
    auto const made = steps_[s].caller->call(r.stack, r.values, step.inputs, step.outputs, device_);
    if (made != step.outputs.size())
        throw error(error_code::bad_program, step.call.name,
                    "it gives " + std::to_string(made) + " tensors instead of " + std::to_string(step.outputs.size()), "");
    for (std::size_t o = 0; o < made; ++o) {
        auto const& result = r.values[step.outputs[o]];
        auto const& sizes = program_.values[step.outputs[o]].sizes;
        if (sizes && result.defined() && result.sizes() != at::IntArrayRef(*sizes))
            throw error(error_code::bad_program, step.call.name,
                        "output " + std::to_string(o) + " is " + c10::str(result.sizes()) + ", the plan says " + shape_text(*sizes), "");
    }
}

void rank_executor::start(std::size_t s, running& r, communicator& others) const {
    auto const& step = program_.steps[s];
    auto const& t = step.move;
    if (!t.communicates()) {
        r.values[step.outputs[0]] = unpacked(packed(r.values[step.inputs[0]], t), t);
        return;
    }
    // What has come in meanwhile lands, so that its buffers go.
    std::erase_if(r.started, [&](std::uint32_t other) {
        if (r.in_flight[other] && r.in_flight[other]->is_done()) land(other, r);
        return !r.in_flight[other];
    });
    r.at = s;
    r.in_flight[s] = others.start(t, packed(r.values[step.inputs[0]], t));
    r.started.push_back(static_cast<std::uint32_t>(s));
}

void rank_executor::land(std::size_t s, running& r) const {
    if (!r.in_flight[s]) return;
    auto const& step = program_.steps[s];
    r.at = s;
    auto const moved = r.in_flight[s]->wait();
    r.in_flight[s] = nullptr;
    r.values[step.outputs[0]] = unpacked(moved, step.move);
}

std::vector<at::Tensor> rank_executor::run(std::vector<at::Tensor> inputs, communicator& others, std::uint64_t seed) const {
    c10::AutoGradMode const no_gradients(false);
    at::AutoDispatchBelowADInplaceOrView const below_autograd;
    run_context context{seed, &program_.mesh, program_.rank, &others, &program_};
    run_context_guard const current(context);
    running r;
    try {
        check_inputs(inputs);
    } catch (error const& e) {
        others.fail(e.what());
        throw;
    }
    r.values.resize(program_.values.size());
    r.in_flight.resize(steps_.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) r.values[program_.inputs[i].value] = std::move(inputs[i]);
    try {
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            for (auto t : steps_[s].lands) land(t, r);
            r.at = context.step = s;
            if (steps_[s].caller) call(s, r);
            else start(s, r, others);
            for (auto v : program_.steps[s].last_uses) r.values[v] = at::Tensor();
        }
        for (auto t : lands_at_end_) land(t, r);
    } catch (std::exception const& e) {
        auto const& step = program_.steps[r.at];
        std::string const why = e.what();
        error const named(error_code::rank_failed, "rank " + std::to_string(program_.rank) + ", '" + names_.at(step.at) + "' (" +
                              (step.is_transfer() ? std::string(to_string(step.move.kind)) : step.call.name) + ")",
                          why.substr(0, why.find('\n')), "");
        others.fail(named.what());
        throw named;
    }
    std::vector<at::Tensor> outputs;
    outputs.reserve(program_.outputs.size());
    for (auto const& port : program_.outputs) outputs.push_back(r.values[port.value]);
    return outputs;
}

}  // namespace cantle::libtorch
