// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/meta_scope.hpp>
#include <adapters/libtorch/module_request.hpp>

#include <cantle/base/error.hpp>

#include <torch/nn/module.h>

namespace cantle::libtorch {

capture_request capture_request_of(cantle_models::model const& model, cantle_models::batch const& example, std::string const& recipe) {
    capture_request request = request_of(*model.module);
    for (auto const& [name, tensor] : example.inputs) request.inputs.push_back({name, tensor});
    request.tangent = recipe == "table3";
    auto const forward = model.forward;
    auto const loss = model.loss;
    if (request.tangent) {
        request.run = [forward](std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> const&) { return forward(inputs); };
    } else {
        request.targets.push_back({"target", example.target});
        request.run = [forward, loss](std::vector<at::Tensor> const& inputs, std::vector<at::Tensor> const& targets) {
            return loss(forward(inputs), targets[0]);
        };
    }
    return request;
}

training_graph capture_model(model_request const& r) {
    auto const refuse = [](std::string const& option, std::string const& problem, std::string const& remedy) {
        throw error(error_code::bad_option, option, problem, remedy);
    };
    if (r.batch < 1) refuse("--batch " + std::to_string(r.batch), "a batch has at least one sample", "give a number of at least 1");
    if (r.sequence < 1) refuse("--seq " + std::to_string(r.sequence), "a sequence has at least one token", "give a number of at least 1");
    if (r.recipe != "train" && r.recipe != "table3")
        refuse("--recipe " + r.recipe, "there is no recipe of that name", "use train or table3");
    if (r.precision != "bf16" && r.precision != "fp32")
        refuse("--precision " + r.precision, "there is no precision of that name", "use bf16 or fp32");

    meta_scope const on_meta;
    auto model = cantle_models::make_model(r.model, r.overrides, r.sequence);
    if (r.precision == "bf16") cantle_models::cast(*model.module, at::kBFloat16);
    auto graph = capture(capture_request_of(model, model.example(r.batch, r.sequence), r.recipe));
    graph.origin = {r.model, r.recipe, r.precision, r.batch, r.sequence, model.config};
    return graph;
}

}  // namespace cantle::libtorch
