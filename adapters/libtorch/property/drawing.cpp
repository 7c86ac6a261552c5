// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/drawing.hpp>

#include <adapters/libtorch/capture.hpp>

#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/validate.hpp>

#include <c10/core/GradMode.h>

#include <utility>

namespace cantle::libtorch {

std::size_t drawing::source(std::string const& kind, shape const& sizes, at::ScalarType type, bool trained, std::int64_t bound) {
    auto const name = kind + std::to_string(items_.size());
    items_.push_back({{}, name, trained, 1});
    values_.push_back(at::zeros(sizes, type));
    if (bound > 0) bounds_[name] = bound;
    return last();
}

bool drawing::apply(step f) {
    c10::AutoGradMode const no_gradients(false);
    tensor_list made;
    try {
        made = f(values_);
    } catch (std::exception const&) {
        return false;
    }
    for (auto const& t : made)
        if (t.numel() > most_elements || t.numel() == 0 || t.dim() > 5) return false;
    items_.push_back({std::move(f), {}, false, made.size()});
    for (auto& t : made) values_.push_back(std::move(t));
    return true;
}

std::optional<std::size_t> drawing::pick(std::function<bool(at::Tensor const&)> const& fits) {
    std::vector<std::size_t> can;
    for (std::size_t v = 0; v < values_.size(); ++v)
        if (fits(values_[v])) can.push_back(v);
    if (can.empty()) return std::nullopt;
    auto const a = random.below(can.size()), b = random.below(can.size());
    return can[std::max(a, b)];
}

std::optional<training_graph> drawing::capture_all(bool tangent) {
    capture_request request;
    tensor_list sources;  // by item; empty for steps
    std::vector<std::size_t> input_of(items_.size(), 0);
    std::size_t value = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        sources.emplace_back();
        if (!items_[i].run) {
            sources[i] = at::empty(values_[value].sizes(), at::TensorOptions(at::kMeta).dtype(values_[value].scalar_type()));
            sources[i].set_requires_grad(items_[i].trained);
            if (items_[i].name[0] == 'w') request.parameters.push_back({items_[i].name, sources[i]});
            else {
                input_of[i] = request.inputs.size();
                request.inputs.push_back({items_[i].name, sources[i]});
            }
        }
        value += items_[i].values;
    }
    request.tangent = tangent;
    // What the loss does with each value that it takes in.
    std::vector<std::uint64_t> how;
    for (std::size_t v = 0; v < values_.size(); ++v) how.push_back(random.below(4));
    auto const from = values_.size() > 3 ? values_.size() - 3 : 0;
    request.run = [&](std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> const&) {
        tensor_list values;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            if (!items_[i].run) values.push_back(items_[i].name[0] == 'w' ? sources[i] : inputs[input_of[i]]);
            else
                for (auto& t : items_[i].run(values)) values.push_back(t);
        }
        at::Tensor total;
        for (std::size_t v = values.size(); v-- > from;) {
            auto x = values[v];
            if (!x.requires_grad() || x.scalar_type() != at::kDouble) continue;
            if (tangent) return x * 1.0;
            if (how[v] == 1) x = x * x;
            if (how[v] == 2) x = x.mean();
            x = x.sum();
            total = total.defined() ? total + x : x;
        }
        return total;
    };
    try {
        auto g = capture(request);
        validate(g);
        return g;
    } catch (error const& e) {
        if (e.code() == error_code::capture_failed) return std::nullopt;
        throw;
    }
}

random_graph draw_training_graph(dice& d, int ops) {
    for (;;) {
        drawing drawn(d);
        static std::vector<std::int64_t> const sizes{2, 3, 4, 6, 8, 12, 24, 5};
        auto const size = [&] { return sizes[std::min(d.below(sizes.size()), d.below(sizes.size()))]; };
        shape x;
        for (auto n = d.range(2, 3); n > 0; --n) x.push_back(size());
        if (element_count(x) > 600) x.back() = 2;
        drawn.input(x);
        drawn.parameter({x.back()});
        for (int made = 0, tries = 0; made < ops && tries < 20 * ops; ++tries) made += draw_op(drawn);
        auto g = drawn.capture_all(d.chance(15));
        if (!g) continue;
        return {d.chance(80) ? canonicalize(*g) : *g, drawn.bounds()};
    }
}

}  // namespace cantle::libtorch
