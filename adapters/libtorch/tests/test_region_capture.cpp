// SPDX-License-Identifier: BSL-1.0
// A region is captured as one op with one backward; replayed on one rank it gives the reference's numbers and autograd's gradients.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/module_request.hpp>
#include <adapters/libtorch/region.hpp>
#include <adapters/libtorch/replay.hpp>
#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/validate.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <filesystem>
#include <unistd.h>

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using tensors = std::vector<at::Tensor>;

/// x [4, 3], scale [3], ids [4, 3] -> x * scale, and ids + 1, which has no gradient.
region_spec scaling() {
    region_spec s;
    s.options.name = "scaling";
    s.options.inputs = {"*=S0", "*=R", "*=S0"};
    s.options.outputs = {"*=S0", "*=S0"};
    s.options.flops_per_element = 1;
    s.reference = [](tensors const& in) { return tensors{(in[0] * in[1]).relu(), in[2] + 1}; };
    return s;
}
at::Tensor model_of(region_spec const& s, tensors const& in) {
    auto const out = region(s, in);
    return (out[0] * out[0]).sum() + out[1].sum().to(at::kFloat);
}
/// The model above with x an input and scale a parameter.
training_graph capture_scaling(region_spec const& s) {
    auto const meta = at::TensorOptions(at::kMeta);
    capture_request r;
    r.parameters.push_back({"scale", at::empty({3}, meta).requires_grad_(true)});
    r.inputs.push_back({"x", at::empty({4, 3}, meta)});
    r.inputs.push_back({"ids", at::empty({4, 3}, meta.dtype(at::kLong))});
    auto const scale = r.parameters[0].tensor;
    r.run = [s, scale](tensors const& in, tensors const&) { return model_of(s, {in[0], scale, in[1]}); };
    return capture(r);
}
graph_node const* find_op(training_graph const& g, std::string_view name) {
    for (auto const& n : g.nodes)
        if (n.operation.name == name) return &n;
    return nullptr;
}
std::ptrdiff_t count_op(training_graph const& g, std::string_view name) {
    return std::count_if(g.nodes.begin(), g.nodes.end(), [&](graph_node const& n) { return n.operation.name == name; });
}

}  // namespace

TEST_CASE("a region is one op and one backward; nothing of its reference is in the graph") {
    auto const g = capture_scaling(scaling());
    validate(g);
    CHECK(count_op(g, "cantle::region") == 1);
    CHECK(count_op(g, "cantle::region_backward") == 1);
    CHECK(count_op(g, "aten::relu") == 0);
    auto const& f = *find_op(g, "cantle::region");
    CHECK(f.operation == region_op(scaling().options));
    REQUIRE(f.outputs.size() == 2);
    CHECK(f.outputs[1].type == dtype::int64);
    auto const& b = *find_op(g, "cantle::region_backward");
    CHECK(b.operation == region_backward_op(scaling().options, {0}, {1}));  // only the parameter needs a gradient
    REQUIRE(b.forward_node.has_value());
    CHECK(g[*b.forward_node].operation.name == "cantle::region");
}

TEST_CASE("a replay of a region has the bits of eager autograd") {
    auto const s = scaling();
    at::manual_seed(7);
    auto const x = at::randn({4, 3}), ids = at::arange(12).view({4, 3});
    auto const scale = at::randn({3}).requires_grad_(true);
    auto const loss = model_of(s, {x, scale, ids});  // outside a capture: the reference
    auto const gradient = torch::autograd::grad({loss}, {scale})[0];
    auto const results = replay(capture_scaling(s), {{"x", x}, {"ids", ids}, {"scale", scale}}, {});
    CHECK(at::equal(results.at("loss"), loss));
    CHECK(at::equal(results.at("scale.grad"), gradient));
    CHECK(gradient.abs().sum().item<double>() > 0);
}

TEST_CASE("a region without a shape function finds shapes from its reference, one with it never runs the reference") {
    auto s = scaling();
    s.options.name = "scaling_by_shapes";
    auto runs = std::make_shared<int>(0);
    auto const reference = s.reference;
    s.reference = [runs, reference](tensors const& in) {
        ++*runs;
        return reference(in);
    };
    capture_scaling(s);
    CHECK(*runs == 1);
    s.shapes = [](tensors const& in) { return tensors{at::empty_like(in[0]), at::empty_like(in[2])}; };
    CHECK(capture_scaling(s).size() > 0);
    CHECK(*runs == 1);
}

TEST_CASE("a region whose declaration does not fit its tensors is refused by name") {
    auto const refused = [](region_spec const& s, std::string const& word) {
        try {
            capture_scaling(s);
            FAIL("no error");
        } catch (error const& e) {
            CHECK(e.code() == error_code::bad_region);
            CHECK_MESSAGE(std::string(e.what()).find(word) != std::string::npos, std::string(e.what()));
        }
    };
    auto s = scaling();
    s.options.inputs.pop_back();
    refused(s, "3 tensors");
    s = scaling();
    s.options.outputs.pop_back();
    refused(s, "makes 2 tensors");
    s = scaling();
    s.options.name = "";
    refused(s, "no name");
    s = scaling();
    s.reference = nullptr;
    refused(s, "no reference");
    s = scaling();
    s.reference = [](tensors const& in) { return tensors{in[2] + 1, in[0] * in[1]}; };
    refused(s, "first output");
}

TEST_CASE("attention whose values are narrower than its keys stays one op, with the numbers of the composite") {
    at::manual_seed(11);
    auto const q = at::randn({2, 3, 5, 8}), k = at::randn({2, 3, 5, 8});
    auto const v = at::randn({2, 3, 5, 4}).requires_grad_(true);
    auto const out = at::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
    auto const gradient = torch::autograd::grad({out.square().sum()}, {v})[0];
    capture_request r;
    auto const meta = [](at::Tensor const& t) { return at::empty(t.sizes(), at::TensorOptions(at::kMeta)); };
    r.parameters.push_back({"v", meta(v).requires_grad_(true)});
    r.inputs = {{"q", meta(q)}, {"k", meta(k)}};
    auto const value = r.parameters[0].tensor;
    r.run = [value](tensors const& in, tensors const&) {
        return at::scaled_dot_product_attention(in[0], in[1], value, {}, 0.0, true).square().sum();
    };
    auto const g = capture(r);
    CHECK(count_op(g, "cantle::sdpa") == 1);
    CHECK(count_op(g, "cantle::sdpa_backward") == 1);
    auto const results = replay(g, {{"q", q}, {"k", k}, {"v", v.detach()}}, {});
    CHECK(at::allclose(results.at("v.grad"), gradient, 1e-4, 1e-5));
}

TEST_CASE("the models with regions and windows replay as eager runs them, also after canonical form and JSON") {
    for (std::string const name : {"deepseek-tiny", "llama3-cp-tiny", "qwen3-tiny", "hybrid-tiny"}) {
        CAPTURE(name);
        model_request r;
        r.model = name;
        r.batch = 2;
        r.sequence = 12;
        r.precision = "fp32";
        at::manual_seed(5);
        auto model = cantle_models::make_model(name, {}, r.sequence);
        auto const example = model.example(r.batch, r.sequence);
        auto const request = request_of(*model.module);
        std::map<std::string, at::Tensor> inputs{{"tokens", example.inputs[0].second}, {"target", example.target}};
        std::vector<at::Tensor> parameters;
        for (auto const& p : request.parameters) {
            parameters.push_back(p.tensor);
            inputs[p.name] = p.tensor;
        }
        for (auto const& b : request.buffers) inputs[b.name] = b.tensor;
        auto const loss = model.loss(model.forward({example.inputs[0].second}), example.target);
        auto const gradients = torch::autograd::grad({loss}, parameters);

        auto const path = std::filesystem::temp_directory_path() / ("cantle_test_region_" + std::to_string(::getpid()) + ".json");
        write_graph_json(canonicalize(capture_model(r)), path);
        auto const g = read_graph_json(path);
        std::filesystem::remove(path);
        validate(g);
        auto const results = replay(g, inputs, {});
        CHECK(at::allclose(results.at("loss"), loss, 1e-5, 1e-6));
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            INFO(request.parameters[i].name);
            CHECK(at::allclose(results.at(request.parameters[i].name + ".grad"), gradients[i], 1e-3, 1e-5));
            CHECK(gradients[i].abs().sum().item<double>() > 0);
        }
    }
}
