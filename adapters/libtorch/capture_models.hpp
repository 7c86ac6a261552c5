// SPDX-License-Identifier: BSL-1.0
#pragma once
// Capturing one of the example models by its name. (Free of torch/torch.h.)
#include <adapters/libtorch/capture.hpp>
#include <cantle/graph/training_graph.hpp>

#include <examples/models/model.hpp>

#include <string>

namespace cantle::libtorch {

struct model_request {
    std::string model;               ///< a name of cantle_models::list_models()
    std::int64_t batch = 1, sequence = 1;
    std::string recipe = "train";    ///< "train": forward, loss, backward. "table3": ends at the logits, with a tangent for them
    std::string precision = "bf16";  ///< type of parameters and buffers at capture: "bf16" or "fp32"
    cantle_models::sizes overrides;  ///< {"dim", 64}, ...
};

/// Builds the model on meta and captures it, parameters in the precision's type; `origin` says from what. No pass has run on the graph.
/// Throws 603 for an unknown model, 701 for an option out of range, and what capture() throws.
training_graph capture_model(model_request const& request);

/// The request behind a built model: what capture() takes. `example` gives shapes and types only.
capture_request capture_request_of(cantle_models::model const& model, cantle_models::batch const& example, std::string const& recipe);

}  // namespace cantle::libtorch
