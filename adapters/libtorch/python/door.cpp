// SPDX-License-Identifier: BSL-1.0
// The Python extension module cantle_door: cantle::libtorch::capture for models that are Python code. A door only: what is captured, how
// graphs are made canonical and written is the same C++ code that serves LibTorch models; which model and with which inputs is decided in
// the Python files beside this one.
//
// cantle::error crosses Python as the exception cantle_door.Error; one that was thrown below an op that Python called arrives there as a
// RuntimeError of PyTorch with the same text, because PyTorch keeps only texts.
#include <adapters/libtorch/capture.hpp>
#include <adapters/libtorch/module_scope.hpp>
#include <adapters/libtorch/replay.hpp>

#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/mixed_precision.hpp>
#include <cantle/graph/validate.hpp>

#include <torch/csrc/utils/pybind.h>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace py = pybind11;
using cantle::training_graph;
using cantle::libtorch::module_scope;
using named = std::vector<std::pair<std::string, at::Tensor>>;
using run_function = std::function<at::Tensor(std::vector<at::Tensor>, std::vector<at::Tensor>)>;

/// The modules whose forward runs, entered and left by Python's forward hooks.
std::vector<std::unique_ptr<module_scope>>& scopes() {
    thread_local std::vector<std::unique_ptr<module_scope>> all;
    return all;
}
void enter_module(std::uintptr_t id) { scopes().push_back(std::make_unique<module_scope>(reinterpret_cast<void const*>(id))); }
void leave_module() {
    if (!scopes().empty()) scopes().pop_back();
}

std::vector<cantle::libtorch::named_tensor> to_named(named const& from) {
    std::vector<cantle::libtorch::named_tensor> to;
    for (auto const& [name, tensor] : from) to.push_back({name, tensor});
    return to;
}

training_graph capture(named const& parameters, named const& buffers, named const& inputs, named const& targets, run_function const& run,
                       std::vector<std::pair<std::uintptr_t, std::string>> const& modules, bool tangent) {
    cantle::libtorch::capture_request request;
    request.parameters = to_named(parameters);
    request.buffers = to_named(buffers);
    request.inputs = to_named(inputs);
    request.targets = to_named(targets);
    request.run = [&run](std::vector<at::Tensor> const& in, std::vector<at::Tensor> const& target) { return run(in, target); };
    request.tangent = tangent;
    for (auto const& [id, path] : modules) request.modules.emplace_back(reinterpret_cast<void const*>(id), path);
    struct leave_all {  // a model that threw left scopes behind
        ~leave_all() {
            while (!scopes().empty()) leave_module();
        }
    } const at_the_end;
    py::gil_scoped_release const released;  // autograd asks for it; `run` takes it again
    return cantle::libtorch::capture(request);
}

using config_list = std::vector<std::pair<std::string, std::int64_t>>;
void set_origin(training_graph& g, std::string model, std::string recipe, std::string precision, std::int64_t batch, std::int64_t sequence,
                config_list config) {
    g.origin = {std::move(model), std::move(recipe), std::move(precision), batch, sequence, std::move(config)};
}

}  // namespace

PYBIND11_MODULE(cantle_door, m) {
    m.doc() = "cantle's capture of training graphs, for models written in Python";
    py::register_exception<cantle::error>(m, "Error");
    py::class_<training_graph>(m, "Graph")
        .def("__len__", &training_graph::size)
        .def("set_origin", &set_origin, py::arg("model"), py::arg("recipe"), py::arg("precision"), py::arg("batch"), py::arg("sequence"),
             py::arg("config"))
        .def("mixed_precision", [](training_graph& g) { g = cantle::mixed_precision(g); })
        .def("canonicalize", [](training_graph& g) { g = cantle::canonicalize(std::move(g)); })
        .def("validate", [](training_graph const& g) { cantle::validate(g); })
        .def("replay", [](training_graph const& g, std::map<std::string, at::Tensor> const& sources) {
                 py::gil_scoped_release const released;
                 return cantle::libtorch::replay(g, sources);
             }, "Runs the graph on one rank: tensors of all sources by name -> tensors of all sinks by name.")
        .def("write", [](training_graph const& g, std::string const& path) { cantle::write_graph_json(g, path); });
    m.def("capture", &capture, py::arg("parameters"), py::arg("buffers"), py::arg("inputs"), py::arg("targets"), py::arg("run"),
          py::arg("modules"), py::arg("tangent") = false);
    m.def("enter_module", &enter_module, "The forward of the module of that id begins.");
    m.def("leave_module", &leave_module, "The forward of the module that was entered last ends.");
}
