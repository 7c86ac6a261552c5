// SPDX-License-Identifier: BSL-1.0
#pragma once
// What is demanded, in the words in which plans, reports and errors show it.
#include <cantle/problem/boundary.hpp>

#include <string>

namespace cantle {

inline std::string inputs_text(boundary const& b, device_mesh const& mesh) {
    return "inputs and targets: " + (b.inputs.empty() ? detail::default_input_layout(mesh).text(mesh) + " (default)" : b.inputs);
}
inline std::string outputs_text(boundary const& b) { return "outputs: " + (b.outputs.empty() ? "free (default)" : b.outputs); }
inline std::string parameters_text(boundary const& b) {
    std::string text =
        "parameters: " + std::string(to_string(b.parameters)) + (b.parameters == parameter_storage::fully_sharded ? " (default)" : "");
    for (std::size_t i = 0; i < b.replica_axes.size(); ++i) text += (i ? ", " : "; replica axes: ") + b.replica_axes[i];
    return text;
}
inline constexpr char const* pairing_text = "gradients lie as their parameter or input, tangents as their output";
inline std::string pin_text(pin const& p) { return p.tensor + "=" + p.layout; }

}  // namespace cantle
