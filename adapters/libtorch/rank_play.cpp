// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/rank_play.hpp>

#include <adapters/libtorch/kernel_guard.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Functions.h>

#include <algorithm>
#include <string>
#include <utility>

namespace cantle::libtorch {
namespace {

bool same_shape(local_step const& a, local_step const& b) {
    return a.call.name == b.call.name && a.inputs == b.inputs && a.outputs == b.outputs && a.axis == b.axis && a.reduce == b.reduce;
}

port_view view_of(tensor_meta const& t, layout const& l, device_mesh const& mesh, std::int64_t rank) {
    return {t, t.defined ? piece_of(l, mesh, t.sizes, rank) : local_piece{}, &l};
}

}  // namespace

rank_play::rank_play(op_query const& global, std::vector<layout> const& layouts, device_mesh const& mesh, local_rule const& rule)
    : mesh_(&mesh), operands_(global.operands.size()), outputs_(global.outputs.size()) {
    auto const fail = [&](std::string const& why) {
        return error(error_code::bad_rule, "local program of " + global.name(), why, "mend the local rule");
    };
    for (std::int64_t rank = 0; rank < mesh.device_count(); ++rank) {
        local_view v;
        v.operation = global.operation;
        v.mesh_dims = mesh.dims();
        for (std::size_t i = 0; i < operands_; ++i) v.operands.push_back(view_of(global.operands[i], layouts[i], mesh, rank));
        for (std::size_t o = 0; o < outputs_; ++o) v.outputs.push_back(view_of(global.outputs[o], layouts[operands_ + o], mesh, rank));
        rule(v, programs_.emplace_back(operands_));
        if (programs_.back().results().size() != outputs_) throw fail("it returns another number of outputs than the op");
    }
    auto const& first = programs_[0];
    for (auto const& p : programs_) {
        bool same = p.steps().size() == first.steps().size() && p.results() == first.results();
        for (std::size_t s = 0; same && s < p.steps().size(); ++s) same = same_shape(p.steps()[s], first.steps()[s]);
        if (!same) throw fail("the ranks run different steps");
    }
    for (std::size_t s = 0; s < first.steps().size(); ++s) {
        step_of_ranks step;
        step.first = &first.steps()[s];
        if (!step.first->is_all_reduce())
            for (std::size_t r = 0; r < programs_.size(); ++r) {
                auto const& call = programs_[r].steps()[s].call;
                std::size_t like = 0;
                while (like < r && !(programs_[like].steps()[s].call == call)) ++like;
                step.callers.push_back(like < r ? step.callers[like] : std::make_shared<op_caller const>(call));
            }
        else if (step.first->axis >= mesh.dims()) throw fail("an all_reduce names an axis that the mesh does not have");
        steps_.push_back(std::move(step));
    }
}

bool rank_play::same_as(rank_play const& other) const {
    if (programs_.size() != other.programs_.size() || steps_.size() != other.steps_.size()) return false;
    for (std::size_t r = 0; r < programs_.size(); ++r) {
        auto const &a = programs_[r], &b = other.programs_[r];
        if (a.results() != b.results()) return false;
        for (std::size_t s = 0; s < steps_.size(); ++s)
            if (!same_shape(a.steps()[s], b.steps()[s]) || !(a.steps()[s].call == b.steps()[s].call)) return false;
    }
    return true;
}

rank_tensors rank_play::all_reduce(rank_tensors const& values, local_step const& step) const {
    auto const n = mesh_->size(step.axis), stride = mesh_->stride(step.axis);
    rank_tensors reduced(values.size());
    for (std::int64_t rank = 0; rank < mesh_->device_count(); ++rank) {
        if (mesh_->coordinate(rank, step.axis) != 0) continue;
        rank_tensors group;
        for (std::int64_t k = 0; k < n; ++k) group.push_back(values[static_cast<std::size_t>(rank + k * stride)]);
        auto const all = at::stack(group);
        auto const sum = [&] { return all.sum(at::IntArrayRef{0}, false, all.scalar_type()); };
        at::Tensor result;
        switch (step.reduce) {
            case reduction::sum: result = sum(); break;
            case reduction::avg: result = at::div(sum(), n); break;
            case reduction::max: result = all.amax(at::IntArrayRef{0}); break;
            case reduction::min: result = all.amin(at::IntArrayRef{0}); break;
        }
        for (std::int64_t k = 0; k < n; ++k) reduced[static_cast<std::size_t>(rank + k * stride)] = result;
    }
    return reduced;
}

std::vector<rank_tensors> rank_play::run(std::vector<rank_tensors> const& operands) {
    issued_.clear();
    std::vector<rank_tensors> values(operands);  // [value][rank]
    for (auto const& step : steps_) {
        if (step.first->is_all_reduce()) {
            auto const& value = values.at(step.first->inputs.at(0));
            issued_.push_back({step.first->axis, step.first->reduce, static_cast<std::int64_t>(value[0].nbytes())});
            values.push_back(all_reduce(value, *step.first));
            continue;
        }
        auto const made = values.size();
        values.resize(made + step.first->outputs, rank_tensors(programs_.size()));
        for (std::size_t r = 0; r < programs_.size(); ++r) {
            std::vector<at::Tensor> in;
            for (auto i : step.first->inputs) in.push_back(values.at(i)[r]);
            guard_kernel(step.first->call, in);
            auto out = (*step.callers[r])(in, c10::kCPU);
            if (out.size() != step.first->outputs)
                throw error(error_code::bad_rule, "local program step " + step.first->call.name,
                            "it has " + std::to_string(out.size()) + " outputs instead of " + std::to_string(step.first->outputs),
                            "mend the local rule");
            for (std::size_t o = 0; o < out.size(); ++o) values[made + o][r] = std::move(out[o]);
        }
    }
    std::vector<rank_tensors> results;
    for (auto v : programs_[0].results()) results.push_back(values.at(v));
    return results;
}

}  // namespace cantle::libtorch
