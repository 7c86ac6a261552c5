// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/replay.hpp>

#include <cantle/base/error.hpp>

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <vector>

namespace cantle::libtorch {
namespace {

[[noreturn]] void misfit(graph_node const& node, std::string const& problem) {
    throw error(error_code::bad_graph, node.name + " (" + node.operation.name + ")", problem, "");
}

std::string describe(tensor_meta const& m, bool with_strides) {
    if (!m.defined) return "undefined";
    std::string s = std::string(to_string(m.type)) + c10::str(at::IntArrayRef(m.sizes));
    return with_strides ? s + " with strides " + c10::str(at::IntArrayRef(m.strides)) : s;
}

void check(graph_node const& node, std::vector<at::Tensor> const& results, replay_options const& options) {
    if (results.size() != node.outputs.size())
        misfit(node, "it gives " + std::to_string(results.size()) + " tensors, the graph says " + std::to_string(node.outputs.size()));
    if (!options.check_metas) return;
    for (std::size_t i = 0; i < results.size(); ++i) {
        auto const real = to_meta(results[i]);
        auto const& said = node.outputs[i];
        // CPU kernels keep a norm's mean and rstd in the type of the input; graphs say float32, as GPUs have them.
        bool const statistics =
            i > 0 && (node.operation.name == "aten::native_layer_norm" || node.operation.name == "aten::native_group_norm");
        bool const type_differs = real.type != said.type && !statistics;
        bool const strides_differ = options.check_strides && !said.strides.empty() && real.strides != said.strides;
        if (real.defined != said.defined || (said.defined && (real.sizes != said.sizes || type_differs || strides_differ)))
            misfit(node, "output " + std::to_string(i) + " is " + describe(real, options.check_strides) + ", the graph says " +
                             describe(said, options.check_strides));
    }
}

/// add(linear(x, w), bias) as one call, where PyTorch did it so and nothing else uses the product. Gives, by node, the linear that an add
/// takes in.
std::vector<std::optional<vertex>> find_biased_linears(training_graph const& g) {
    auto const uses = collect_uses(g);
    std::vector<std::optional<vertex>> biased(g.size());
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& add = g[v];
        if (add.operation.name != "aten::add.Tensor" || add.operands.size() != 2 || !add.operation.get<bool>("fused_with_linear", false))
            continue;
        auto const product = add.operands[0];
        auto const& linear = g[product.node];
        auto const& bias = g.meta(add.operands[1]);
        if (linear.operation.name == "aten::linear" && linear.operands.size() == 2 && uses[product.node][0].size() == 1 &&
            bias.rank() == 1 && bias.sizes[0] == g.meta(product).sizes.back() && bias.type == g.meta(product).type)
            biased[v] = product.node;
    }
    return biased;
}

}  // namespace

at::Tensor constant_tensor(graph_node const& node, c10::Device device) {
    bool const wrapped = node.operation.get<bool>("wrapped_number", false);
    auto const& meta = node.outputs.at(0);
    auto const count = static_cast<std::size_t>(meta.elements());
    if (node.constant_data.size() != count)
        throw error(error_code::bad_graph, node.name + " (" + node.operation.name + ")", "its data do not fill its shape", "");
    auto t = at::empty(meta.sizes, at::TensorOptions(at::kDouble));
    std::copy(node.constant_data.begin(), node.constant_data.end(), t.mutable_data_ptr<double>());
    t = t.to(to_scalar_type(meta.type));
    if (!wrapped) return meta.sizes.empty() ? t : t.to(device);  // a 0-dim CPU tensor may meet any device, as in eager
    t.unsafeGetTensorImpl()->set_wrapped_number(true);
    return t;
}

std::map<std::string, at::Tensor> replay(training_graph const& g, std::map<std::string, at::Tensor> const& inputs,
                                         replay_options const& options) {
    c10::AutoGradMode const no_gradients(false);
    auto const biased = find_biased_linears(g);
    std::vector<bool> taken_in(g.size(), false);
    for (auto const& linear : biased)
        if (linear) taken_in[*linear] = true;
    // Operands of a linear live until the add that takes it in.
    std::vector<vertex> last_use(g.size(), 0);
    for (vertex v = 0; v < g.size(); ++v) {
        for (auto const& r : g[v].operands) last_use[r.node] = v;
        if (biased[v])
            for (auto const& r : g[*biased[v]].operands) last_use[r.node] = v;
    }

    std::vector<std::vector<at::Tensor>> values(g.size());
    std::map<std::string, at::Tensor> results;
    auto const value = [&](value_ref r) -> at::Tensor const& {
        if (r.node >= values.size() || r.output >= values[r.node].size())
            throw error(error_code::dangling_tensor, "operand " + std::to_string(r.node) + ":" + std::to_string(r.output),
                        "it has no value yet", "");
        return values[r.node][r.output];
    };
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& node = g[v];
        if (taken_in[v]) continue;
        if (node.role == node_role::constant) {
            values[v] = {constant_tensor(node, options.device)};
        } else if (is_source(node.role)) {
            auto const it = inputs.find(node.name);
            if (it == inputs.end())
                throw error(error_code::unknown_tensor, std::string(to_string(node.role)) + " '" + node.name + "'",
                            "no tensor was given for it", "");
            values[v] = {it->second.detach()};
            check(node, values[v], {.device = options.device, .check_metas = options.check_metas, .check_strides = false});
        } else if (is_sink(node.role)) {
            results[node.name] = value(node.operands.at(0));
        } else {
            std::vector<at::Tensor> operands;
            for (auto const& r : biased[v] ? g[*biased[v]].operands : node.operands) operands.push_back(value(r));
            if (biased[v]) values[v] = {at::linear(operands[0], operands[1], value(node.operands[1]))};
            else values[v] = call_op(node.operation, operands, options.device);
            check(node, values[v], options);
        }
        for (auto const& r : node.operands)
            if (last_use[r.node] == v) values[r.node].clear();
        if (biased[v])
            for (auto const& r : g[*biased[v]].operands)
                if (last_use[r.node] == v) values[r.node].clear();
    }
    return results;
}

}  // namespace cantle::libtorch
