// SPDX-License-Identifier: BSL-1.0
// What a captured graph says of the model: roles, names, links, whole ops, ties; and what is said where a model cannot be captured.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/module_request.hpp>
#include <adapters/libtorch/module_scope.hpp>
#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/validate.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/library.h>

#include <algorithm>
#include <set>

namespace {

using namespace cantle;
using namespace cantle::libtorch;

training_graph capture_small(std::string model, cantle_models::sizes sizes, std::string recipe = "train", std::string precision = "fp32") {
    model_request r;
    r.model = std::move(model);
    r.batch = 2;
    r.sequence = 8;
    r.recipe = std::move(recipe);
    r.precision = std::move(precision);
    r.overrides = std::move(sizes);
    return capture_model(r);
}
cantle_models::sizes const tiny_llama = {{"dim", 32}, {"layers", 2}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 48}, {"vocab", 64}};
cantle_models::sizes const tiny_gpt2 = {{"dim", 32}, {"layers", 2}, {"heads", 4}, {"vocab", 64}, {"positions", 16}};
cantle_models::sizes const tiny_bert = {{"dim", 32}, {"layers", 2}, {"heads", 4}, {"ffn", 48}, {"vocab", 64}, {"positions", 16}};
cantle_models::sizes const tiny_mlp = {{"dim", 16}, {"hidden", 24}, {"layers", 3}, {"classes", 8}};

std::vector<training_graph> all_small() {
    return {capture_small("llama3-tiny", tiny_llama), capture_small("llama3-tiny", tiny_llama, "table3", "bf16"),
            capture_small("gpt2", tiny_gpt2), capture_small("bert-base", tiny_bert), capture_small("mlp", tiny_mlp)};
}

vertex named(training_graph const& g, std::string_view name) {
    for (vertex v = 0; v < g.size(); ++v)
        if (g[v].name == name) return v;
    FAIL("no node named " << std::string(name));
    return 0;
}
std::size_t count_op(training_graph const& g, std::string_view op, std::optional<phase> in = {}) {
    return static_cast<std::size_t>(std::count_if(
        g.nodes.begin(), g.nodes.end(), [&](graph_node const& n) { return n.operation.name == op && (!in || n.in_phase == *in); }));
}
std::size_t count_role(training_graph const& g, node_role role) {
    return static_cast<std::size_t>(std::count_if(g.nodes.begin(), g.nodes.end(), [&](graph_node const& n) { return n.role == role; }));
}

/// Captures x [2, 3] -> f(x, w) with one parameter w [3]; the sum is the loss.
training_graph capture_function(std::function<at::Tensor(at::Tensor const&, at::Tensor const&)> f) {
    auto const meta = at::TensorOptions(at::kMeta);
    capture_request r;
    auto const w = at::empty({3}, meta).requires_grad_();
    r.parameters = {{"w", w}};
    r.inputs = {{"x", at::empty({2, 3}, meta)}};
    r.run = [&](std::vector<at::Tensor> const& in, std::vector<at::Tensor> const&) { return f(in[0], w).sum(); };
    return capture(r);
}

error error_of(std::function<at::Tensor(at::Tensor const&, at::Tensor const&)> const& f) {
    try {
        capture_function(f);
    } catch (error const& e) {
        return e;
    }
    FAIL("no error");
    return error(error_code::capture_failed, "", "", "");
}

}  // namespace

TEST_CASE("every captured graph is valid and functional: no op writes in place") {
    for (auto const& g : all_small()) {
        validate(g);
        for (auto const& n : g.nodes) {
            auto const name = n.operation.name.substr(0, n.operation.name.find('.'));
            CAPTURE(name);
            CHECK(name.back() != '_');
            CHECK(n.operation.name.find("copy_") == std::string::npos);
            CHECK(name != "aten::detach");
            CHECK(name != "aten::alias");
        }
    }
}

// tokens --> model --> logits --> loss           tokens --> model --> logits (sink)
//              parameters   target                            parameters    logits.tangent --> backward
TEST_CASE("sources and sinks have their roles, and gradients and tangents say whose they are") {
    auto const g = capture_small("llama3-tiny", tiny_llama);
    CHECK(count_role(g, node_role::parameter) == 9 * 2 + 3);
    CHECK(count_role(g, node_role::gradient) == 9 * 2 + 3);
    CHECK(count_role(g, node_role::buffer) == 2);
    CHECK(g[named(g, "tokens")].role == node_role::input);
    CHECK(g[named(g, "target")].role == node_role::target);
    CHECK(g[named(g, "loss")].role == node_role::loss);
    CHECK(count_role(g, node_role::tangent) == 0);
    for (auto const& n : g.nodes) {
        if (n.role != node_role::gradient) continue;
        CHECK(n.name == g[*n.of].name + ".grad");
        CHECK(n.outputs[0].sizes == g[*n.of].outputs[0].sizes);
    }
    auto const wq = g[named(g, "layers.1.attention.wq.weight")];
    CHECK(wq.module_path == "layers.1.attention.wq");
    CHECK(wq.outputs[0].sizes == shape{32, 32});

    auto const t = capture_small("llama3-tiny", tiny_llama, "table3", "bf16");
    CHECK(count_role(t, node_role::loss) == 0);
    CHECK(count_role(t, node_role::target) == 0);
    auto const logits = named(t, "logits"), tangent = named(t, "logits.tangent");
    CHECK(t[logits].role == node_role::output);
    CHECK(t[tangent].role == node_role::tangent);
    CHECK(*t[tangent].of == logits);
    CHECK(t[tangent].outputs[0].sizes == shape{2, 8, 64});
    CHECK(t[tangent].outputs[0].type == dtype::bfloat16);
    CHECK(t.origin.model == "llama3-tiny");
    CHECK(t.origin.recipe == "table3");
    CHECK(t.origin.precision == "bf16");
    CHECK(t.origin.batch == 2);
    CHECK(t.origin.sequence == 8);
    CHECK(t.origin.config == tiny_llama);
}

TEST_CASE("LLaMA's linears are whole: 7 per layer and the head, with two gradients each, and no mm anywhere") {
    auto const g = capture_small("llama3-tiny", tiny_llama);
    CHECK(count_op(g, "aten::linear") == 7 * 2 + 1);
    CHECK(count_op(g, "aten::linear", phase::forward) == 7 * 2 + 1);
    CHECK(count_op(g, "cantle::linear_grad_input") == 7 * 2 + 1);
    CHECK(count_op(g, "cantle::linear_grad_weight") == 7 * 2 + 1);
    CHECK(count_op(g, "aten::mm") == 0);
    CHECK(count_op(g, "aten::addmm") == 0);
    CHECK(count_op(g, "aten::t") == 0);
    CHECK(count_op(g, "cantle::sdpa") == 2);
    CHECK(count_op(g, "cantle::sdpa_backward") == 2);
    CHECK(count_op(g, "cantle::cross_entropy") == 1);
    CHECK(count_op(g, "cantle::cross_entropy_backward") == 1);
    for (auto const& n : g.nodes) {
        if (n.operation.name == "aten::linear") CHECK(g.meta(n.operands[0]).rank() == 3);
        if (n.operation.name == "cantle::cross_entropy") CHECK(g.meta(n.operands[0]).sizes == shape{2, 8, 64});
        if (n.operation.name == "aten::linear") CHECK(std::holds_alternative<std::monostate>(*n.operation.find("bias")));
    }
}

TEST_CASE("a bias is a separate add, and its gradient one sum over the leading dims, whether C++ writes matmul, addmm or linear") {
    for (auto const& g : {capture_small("gpt2", tiny_gpt2), capture_small("bert-base", tiny_bert), capture_small("mlp", tiny_mlp)}) {
        CAPTURE(g.origin.model);
        CHECK(count_op(g, "aten::addmm") == 0);
        CHECK(count_op(g, "aten::mm") == 0);
        for (auto const& n : g.nodes) {
            if (n.role != node_role::gradient || !n.name.ends_with(".bias.grad")) continue;
            auto const& maker = g[n.operands[0].node];
            if (maker.operation.name == "aten::native_layer_norm_backward") continue;
            CAPTURE(n.name);
            CHECK(maker.operation.name == "aten::sum.dim_IntList");
            CHECK(maker.operation.get<bool>("keepdim", true) == false);
            auto const rank = g.meta(maker.operands[0]).rank();
            CHECK(maker.operation.get<shape>("dim", {}) == (rank == 2 ? shape{0} : shape{0, 1}));
        }
    }
    auto const g = capture_small("gpt2", tiny_gpt2);
    CHECK(count_op(g, "aten::linear") == 4 * 2 + 1);
}

TEST_CASE("ops are named by their module, also where torch::nn modules say nothing") {
    auto const g = capture_small("llama3-tiny", tiny_llama);
    auto const& q = g[named(g, "layers.0.attention.wq/linear")];
    CHECK(q.operation.name == "aten::linear");
    CHECK(q.module_path == "layers.0.attention.wq");
    CHECK(g[named(g, "layers.1.attention/sdpa")].module_path == "layers.1.attention");
    CHECK(g[named(g, "layers.1.ffn_norm/rsqrt")].module_path == "layers.1.ffn_norm");
    CHECK(g[named(g, "tok_embeddings/embedding")].operation.name == "aten::embedding");
    CHECK(g[named(g, "layers.0/add")].operation.name == "aten::add.Tensor");
    std::set<std::string> names;
    for (auto const& n : g.nodes) CHECK(names.insert(n.name).second);
}

//  wq/linear <--forward_node-- linear_grad_input, linear_grad_weight
TEST_CASE("backward ops know their forward op and live in its module") {
    for (auto const& g : all_small()) {
        CAPTURE(g.origin.model);
        bool backward = false;
        for (vertex v = 0; v < g.size(); ++v) {
            auto const& n = g[v];
            if (n.role != node_role::computation) continue;
            CAPTURE(n.name);
            if (n.in_phase == phase::backward) {
                backward = true;
                REQUIRE(n.forward_node.has_value());
                auto const& f = g[*n.forward_node];
                CHECK(f.in_phase == phase::forward);
                CHECK(n.module_path == f.module_path);
                auto const& name = n.operation.name;
                if (name.starts_with("cantle::linear_grad")) CHECK(f.operation.name == "aten::linear");
                if (name == "cantle::sdpa_backward") CHECK(f.operation.name == "cantle::sdpa");
                if (name == "cantle::cross_entropy_backward") CHECK(f.operation.name == "cantle::cross_entropy");
                if (name == "aten::silu_backward") CHECK(f.operation.name == "aten::silu");
                if (name == "aten::gelu_backward") CHECK(f.operation.name == "aten::gelu");
                if (name == "aten::native_layer_norm_backward") CHECK(f.operation.name == "aten::native_layer_norm");
                if (name == "aten::embedding_dense_backward") CHECK(f.operation.name == "aten::embedding");
                if (name == "aten::threshold_backward") CHECK(f.operation.name == "aten::relu");
                if (name == "cantle::linear_grad_weight") {
                    auto const& weight = g[f.operands[1].node];
                    CHECK(n.outputs[0].sizes == weight.outputs[0].sizes);
                }
            } else {
                CHECK_FALSE(backward);  // forward comes first
                CHECK_FALSE(n.forward_node.has_value());
            }
        }
        CHECK(backward);
    }
}

//  wte.weight == lm_head.weight: one node, two uses, one gradient (the sum of both)
TEST_CASE("tied parameters are one node with two names and one gradient") {
    auto const g = capture_small("gpt2", tiny_gpt2);
    auto const v = named(g, "wte.weight");
    CHECK(g[v].also_named == std::vector<std::string>{"lm_head.weight"});
    CHECK(std::none_of(g.nodes.begin(), g.nodes.end(), [](auto const& n) { return n.name == "lm_head.weight"; }));
    CHECK(std::count_if(g.nodes.begin(), g.nodes.end(), [&](auto const& n) { return n.role == node_role::gradient && n.of == v; }) == 1);
    auto const& sum = g[g[named(g, "wte.weight.grad")].operands[0].node];
    CHECK(sum.operation.name == "aten::add.Tensor");
    CHECK(g[named(g, "lm_head/linear")].operands[1].node == v);
    auto const b = capture_small("bert-base", tiny_bert);
    auto const word = named(b, b[named(b, "embeddings.word_embeddings.weight")].name);
    CHECK(b[word].also_named == std::vector<std::string>{"head.weight"});
}

TEST_CASE("all schema arguments are recorded under their names, numbers as literals") {
    auto const g = capture_small("llama3-tiny", tiny_llama);
    auto const& eps = g[named(g, "norm/add")];
    CHECK(eps.operation.name == "aten::add.Scalar");
    CHECK(eps.operation.get<double>("other", 0.0) == 1e-5);
    CHECK(eps.operation.get<std::int64_t>("alpha", 0) == 1);
    auto const& mean = g[named(g, "norm/mean")];
    CHECK(mean.operation.get<shape>("dim", {}) == shape{-1});
    CHECK(mean.operation.get<bool>("keepdim", false));
    CHECK(std::holds_alternative<std::monostate>(*mean.operation.find("dtype")));
    auto const& attention = g[named(g, "layers.0.attention/sdpa")];
    std::vector<std::string> names;
    for (auto const& a : attention.operation.arguments) names.push_back(a.name);
    CHECK(names == std::vector<std::string>{"query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"});
    CHECK(attention.operation.get<bool>("is_causal", false));
    CHECK(attention.operation.get<bool>("enable_gqa", false));
    CHECK(attention.outputs[1].sizes == shape{2, 4, 8});
    CHECK(attention.outputs[1].type == dtype::float32);
    CHECK(count_role(g, node_role::constant) == 0);
}

TEST_CASE("in-place ops of the model become pure ones") {
    auto const g = capture_function([](at::Tensor const& x, at::Tensor const& w) {
        auto y = x * w;
        y.add_(1.0);
        y.select(0, 1).mul_(2.0);
        return y;
    });
    validate(g);
    for (auto const& n : g.nodes) CHECK(n.operation.name.find("_.") == std::string::npos);
    CHECK(count_op(g, "aten::add.Scalar") == 1);
    CHECK(count_op(g, "aten::select_scatter", phase::forward) == 1);
}

TEST_CASE("a split is recorded as slices") {
    auto const g = capture_function([](at::Tensor const& x, at::Tensor const& w) {
        auto const parts = (x * w).split(2, 1);
        return parts[0].sum() + parts[1].sum();
    });
    CHECK(count_op(g, "aten::slice.Tensor") == 2);
    CHECK(count_op(g, "aten::split.Tensor") == 0);
}

TEST_CASE("views that change nothing, detach and double transposes leave no node") {
    auto const g = capture_function([](at::Tensor const& x, at::Tensor const& w) {
        return (x.detach().t().t().view({2, 3}) * w).slice(0, 0, 2);
    });
    CHECK(count_op(g, "aten::view") == 0);
    CHECK(count_op(g, "aten::t") == 0);
    CHECK(count_op(g, "aten::slice.Tensor") == 0);
    CHECK(count_op(g, "aten::mul.Tensor", phase::forward) == 1);
}

TEST_CASE("reading a value is refused with error 601, naming op and module") {
    auto const e = error_of([](at::Tensor const& x, at::Tensor const& w) { return x.sum().item<double>() > 0 ? x * w : w; });
    CHECK(e.code() == error_code::data_dependent);
    CHECK(std::string(e.what()).find("_local_scalar_dense in the model") != std::string::npos);
    for (auto const& shape_of_values : std::vector<std::function<at::Tensor(at::Tensor const&, at::Tensor const&)>>{
             [](auto const& x, auto const& w) { return (x * w).masked_select(x > 0); },
             [](auto const& x, auto const& w) { return (x * w).index({x > 0}); },
             [](auto const& x, auto const& w) { return w.index({(x > 0).nonzero().select(1, 1)}); }})
        CHECK(error_of(shape_of_values).code() == error_code::data_dependent);
}

TEST_CASE("an error inside a module says the module's path") {
    int address = 0;  // module scopes only compare addresses
    auto const* const module = reinterpret_cast<torch::nn::Module const*>(&address);
    capture_request r;
    r.parameters = {{"layers.3.w", at::empty({3}, at::TensorOptions(at::kMeta)).requires_grad_()}};
    r.modules = {{&address, "layers.3"}};
    r.run = [&](auto const&, auto const&) {
        module_scope const scope(module);
        return r.parameters[0].tensor * r.parameters[0].tensor.sum().template item<double>();
    };
    CHECK_THROWS_WITH_AS(capture(r), doctest::Contains("cantle error 601: aten::_local_scalar_dense in layers.3"), error);
}

// The guards of a capture are put back when it ends by an exception: PyTorch works as before.
TEST_CASE("a failed capture leaves PyTorch as it was") {
    error_of([](at::Tensor const& x, at::Tensor const& w) { return x.sum().item<double>() > 0 ? x * w : w; });
    auto const x = at::ones({2, 3});
    CHECK(x.sum().item<double>() == 6.0);
    CHECK(at::linear(x, at::ones({4, 3})).sum().item<double>() == 24.0);
    CHECK_NOTHROW(capture_small("mlp", tiny_mlp));
}

TORCH_LIBRARY(cantle_test, m) {
    m.def("unknown(Tensor self) -> Tensor");
    m.impl("unknown", c10::DispatchKey::CPU, [](at::Tensor const& t) { return t.clone(); });
}
TEST_CASE("an op whose shape is unknown is refused with error 602, naming the op and what to add") {
    auto const e = error_of([](at::Tensor const& x, at::Tensor const& w) {
        static auto const unknown =
            c10::Dispatcher::singleton().findSchemaOrThrow("cantle_test::unknown", "").typed<at::Tensor(at::Tensor const&)>();
        return unknown.call(x.detach()) * w;
    });
    CHECK(e.code() == error_code::no_shape_function);
    CHECK(e.subject() == "cantle_test::unknown in the model");
    CHECK(e.remedy().find("shape_functions.cpp") != std::string::npos);
}

TEST_CASE("other faults inside the model are error 604 with PyTorch's own words") {
    auto const misfit = error_of([](at::Tensor const& x, at::Tensor const& w) { return x.view({7}) * w; });
    CHECK(misfit.code() == error_code::capture_failed);
    auto const frozen = error_of([](at::Tensor const& x, at::Tensor const&) { return x * 2.0; });
    CHECK(frozen.code() == error_code::capture_failed);

    capture_request r;
    r.parameters = {{"w", at::empty({3}).requires_grad_()}};
    CHECK_THROWS_WITH_AS(capture(r), doctest::Contains("'w': it is on cpu, not on meta"), error);
}

TEST_CASE("unknown models and sizes that do not fit are refused by name") {
    CHECK_THROWS_WITH_AS(capture_small("llama4", {}), doctest::Contains("cantle error 603"), error);
    CHECK_THROWS_WITH_AS(capture_small("llama3-tiny", {{"width", 3}}), doctest::Contains("it has no size 'width'"), error);
    CHECK_THROWS_WITH_AS(capture_small("llama3-tiny", {{"heads", 3}}), doctest::Contains("do not divide"), error);
    CHECK_THROWS_WITH_AS(capture_small("llama3-tiny", {{"layers", 0}}), doctest::Contains("layers is 0"), error);
    CHECK_THROWS_WITH_AS(capture_small("mlp", tiny_mlp, "table4"), doctest::Contains("--recipe table4"), error);
}

TEST_CASE("the same model is captured to the same bytes every time, and canonical form changes no role") {
    for (auto const& [model, sizes] : {std::pair{std::string("llama3-tiny"), tiny_llama}, {"gpt2", tiny_gpt2}, {"bert-base", tiny_bert}}) {
        auto const g = capture_small(model, sizes);
        CHECK(graph_to_json(g) == graph_to_json(capture_small(model, sizes)));
        auto const c = canonicalize(g);
        for (auto role : {node_role::parameter, node_role::buffer, node_role::input, node_role::gradient, node_role::loss})
            CHECK(count_role(g, role) == count_role(c, role));
    }
}

TEST_CASE("LLaMA 3 70B is built and captured without memory for its weights") {
    model_request r;
    r.model = "llama3-70b";
    r.batch = 16;
    r.sequence = 2048;
    r.overrides = {{"layers", 2}};
    auto const g = capture_model(r);
    CHECK(g[named(g, "output.weight")].outputs[0].sizes == shape{128256, 8192});
    CHECK(g[named(g, "layers.0.attention.wk/linear")].outputs[0].sizes == shape{16, 2048, 1024});
}
