// SPDX-License-Identifier: BSL-1.0
// `cantle verify` from C++: a plan of the full model is carried to a small instance of it and runs there; what is wrong is found and named.
//
//   gpt2, 3 layers of 12 heads, 16 x 1024 tokens, on 4x8  ->  the same 3 layers of 4 heads, 8 x 16 tokens, on 2x4 thread ranks
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/verify.hpp>
#include <adapters/libtorch/verify_inputs.hpp>
#include <adapters/libtorch/verify_origin.hpp>
#include <adapters/libtorch/verify_rows.hpp>
#include <adapters/libtorch/verify_sizes.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

namespace {

using namespace cantle;
using namespace cantle::libtorch;

training_graph captured(std::string model, std::int64_t sequence, cantle_models::sizes sizes, std::string precision = "bf16") {
    model_request r;
    r.model = std::move(model);
    r.batch = 16;
    r.sequence = sequence;
    r.precision = std::move(precision);
    r.overrides = std::move(sizes);
    return capture_canonical(r);
}
training_graph const& gpt2() {
    static auto const g = captured("gpt2", 1024, {{"layers", 3}});
    return g;
}
sharding_plan planned(training_graph const& g, char const* mesh_sizes, char const* names = "") {
    auto const mesh = device_mesh::parse(mesh_sizes, names);
    return plan(g, mesh, standard_registry(), standard_cost_model(mesh, find_cluster("h100")));
}
/// Captures as verify does, and counts.
capture_again counting(int& captures) {
    return [&captures](model_request const& r) {
        ++captures;
        return capture_canonical(r);
    };
}
std::int64_t size_of(model_request const& r, std::string const& key) {
    for (auto const& [name, value] : r.overrides)
        if (name == key) return value;
    return 0;
}
template <class Act>
error refusal(Act act) {
    try {
        act();
    } catch (error const& e) {
        return e;
    }
    return error(error_code::out_of_memory, "no error", "", "");
}

}  // namespace

TEST_CASE("sizes are scaled down and never in kind") {
    graph_origin llama{"llama3-8b", "train", "bf16", 16, 2048,
                       {{"dim", 4096}, {"layers", 32}, {"heads", 32}, {"kv_heads", 8}, {"ffn", 14336}, {"vocab", 128256}}};
    auto const r = small_instance(llama, 4, 0);
    CHECK(r.batch % 4 == 0);
    CHECK(r.sequence % 4 == 0);
    CHECK(r.batch != r.sequence);
    CHECK(size_of(r, "layers") == 32);
    CHECK(size_of(r, "heads") == 4 * size_of(r, "kv_heads"));
    CHECK(size_of(r, "kv_heads") == 4);
    CHECK(size_of(r, "dim") % size_of(r, "heads") == 0);
    CHECK(size_of(r, "dim") <= 256);
    CHECK(size_of(small_instance(llama, 4, 1), "dim") == 2 * size_of(r, "dim"));
    // Falcon: 71 heads of one key-value head and GPT-2's vocabulary divide by nothing, before and after.
    graph_origin odd{"x", "train", "bf16", 16, 2048, {{"hidden_size", 4544}, {"num_attention_heads", 71}, {"vocab_size", 50257}}};
    auto const o = small_instance(odd, 8, 0);
    CHECK(size_of(o, "num_attention_heads") % 2 == 1);
    CHECK(size_of(o, "num_attention_heads") > 1);
    CHECK(size_of(o, "vocab_size") % 2 == 1);
    CHECK(size_of(o, "hidden_size") % 8 == 0);
    // A window of a quarter of the sequence stays one; positions as many as tokens stay as many.
    graph_origin window{"x", "train", "bf16", 16, 4096, {{"window", 1024}, {"positions", 4096}, {"experts", 64}, {"top", 6}}};
    auto const w = small_instance(window, 2, 0);
    CHECK(4 * size_of(w, "window") == w.sequence);
    CHECK(size_of(w, "positions") == w.sequence);
    CHECK(size_of(w, "experts") > 6);
    // 1024 positions lie evenly on 8 ranks where 60 tokens do not.
    graph_origin few{"x", "train", "bf16", 16, 60, {{"positions", 1024}}};
    CHECK(size_of(small_instance(few, 8, 0), "positions") % 8 == 0);
    CHECK(size_of(small_instance(few, 8, 0), "positions") > small_instance(few, 8, 0).sequence);
}

// On 3 ranks: 16 is 6 6 4, 5 is 2 2 1; 4 would be 2 2 0. On 5, 7 and 6 likewise.
TEST_CASE("where a plan cuts unevenly, small sizes are uneven too and leave no rank without elements") {
    for (std::int64_t const ranks : {3, 5, 7, 6}) {
        CAPTURE(ranks);
        graph_origin const o{"mlp", "train", "bf16", 1600, 64, {{"dim", 1024}, {"hidden", 4096}, {"classes", 1000}}};
        auto const r = small_instance(o, ranks, 0, {true, 1});
        for (auto const& sizes : {std::pair{o.batch, r.batch}, {o.sequence, r.sequence}, {1024, size_of(r, "dim")},
                                  {4096, size_of(r, "hidden")}, {1000, size_of(r, "classes")}}) {
            CAPTURE(sizes.first);
            CAPTURE(sizes.second);
            CHECK((sizes.first % ranks == 0) == (sizes.second % ranks == 0));
            auto const chunk = (sizes.second + ranks - 1) / ranks;
            CHECK((sizes.second % ranks == 0 || chunk * (ranks - 1) < sizes.second));
        }
    }
    for (auto const* mesh : {"3", "5", "3x2"}) {
        CAPTURE(mesh);
        auto const g = captured("mlp", 1, {{"layers", 2}});
        plan_options uneven;
        uneven.uneven = true;
        auto const m = device_mesh::parse(mesh);
        auto const p = plan(g, m, standard_registry(), standard_cost_model(m, find_cluster("h100")), uneven);
        REQUIRE(has_uneven(g, p));
        auto const v = verify(p, g, standard_registry(), {}, capture_canonical);
        CHECK(v.passed());
        CHECK(v.instance.batch < 17);
        CHECK(v.not_taken.empty());
    }
}

// A ring over cp has 3 steps on 4 ranks and 1 on 2.
TEST_CASE("a region's collectives are those of the small mesh, and a plan with others than its declaration is refused") {
    auto const g = captured("llama3-8b-cp", 2048, {{"layers", 2}});
    auto p = planned(g, "4x8", "cp,tp");
    verify_options options;
    options.ranks = 4;
    auto const v = verify(p, g, standard_registry(), options, capture_canonical);
    CHECK(v.passed());
    auto const ring = std::find_if(v.collectives.begin(), v.collectives.end(), [](collective_tally const& c) {
        return c.kind == collective_kind::permute;
    });
    REQUIRE(ring != v.collectives.end());
    CHECK(ring->ran > 0);
    CHECK(ring->planned_bytes == ring->ran_bytes);
    CHECK_NOTHROW(refuse_undeclared_collectives(p, g, standard_registry()));
    auto const region = std::find_if(p.nodes.begin(), p.nodes.end(), [](node_placement const& n) { return n.inner.size() > 2; });
    REQUIRE(region != p.nodes.end());
    region->inner.pop_back();
    CHECK(refusal([&] { refuse_undeclared_collectives(p, g, standard_registry()); }).code() == error_code::bad_program);
}

TEST_CASE("plans of a GPT-2 on one, two and three axes run on 8, 4 and 2 ranks with the gradients of one") {
    for (auto const& on : {std::tuple{"8", "tp", 2}, {"8", "tp", 8}, {"4x8", "dp,tp", 4}, {"2x2x4", "a,b,c", 8}}) {
        auto const mesh = std::get<0>(on), names = std::get<1>(on);
        auto const ranks = std::get<2>(on);
        CAPTURE(mesh);
        int captures = 0;
        verify_options options;
        options.ranks = ranks;
        auto const v = verify(planned(gpt2(), mesh, names), gpt2(), standard_registry(), options, counting(captures));
        CHECK(v.passed());
        CHECK(captures >= 1);
        CHECK(v.mesh.device_count() == ranks);
        CHECK(v.vertices == gpt2().size());
        CHECK(v.sinks.size() == 41);  // loss, 3 x 12 in layers, word and position embeddings, last norm (the head is tied)
        CHECK(std::none_of(v.sinks.begin(), v.sinks.end(), [](sink_difference const& s) { return s.largest == 0; }));
        CHECK(std::any_of(v.collectives.begin(), v.collectives.end(), [](collective_tally const& c) { return c.ran > 0; }));
        CHECK(text_of(v, false).find("equal: 40 gradients") != std::string::npos);
        CHECK(text_of(v, false).find("h.*.attn.c_attn.weight.grad") != std::string::npos);
        CHECK(text_of(v, true).find("h.2.attn.c_attn.weight.grad") != std::string::npos);
        CHECK(json_of(v).find("\"passed\": true") != std::string::npos);
    }
}

TEST_CASE("the ranks can run in the types of the graph, where rounding is let pass") {
    verify_options options;
    options.ranks = 2;
    options.as_captured = true;
    auto const p = planned(gpt2(), "8");
    auto const v = verify(p, gpt2(), standard_registry(), options, capture_canonical);
    CHECK(v.passed());
    CHECK(v.type == dtype::bfloat16);
    CHECK(std::any_of(v.sinks.begin(), v.sinks.end(), [](sink_difference const& s) { return s.relative > 1e-9; }));
    // One rank is off by as much as they are: that is what lets their differences pass.
    CHECK(v.rounding_times == 4);
    for (auto const& s : v.sinks) {
        CHECK(s.rounding > 0);
        CHECK(s.allowed >= 4 * s.rounding);
    }
    CHECK(text_of(v, false).find("against float64") != std::string::npos);
    CHECK(json_of(v).find("\"compared_with\": \"float64\"") != std::string::npos);
    options.tolerance = 1e-9;
    CHECK(!verify(p, gpt2(), standard_registry(), options, capture_canonical).numbers_match());
}

// Ranks that run tanh in place of gelu where one rank runs gelu: what depends on it is wrong, and only that.
TEST_CASE("a rule whose local program computes something else is found, and the gradients that it spoils are named") {
    auto wrong = standard_registry();
    wrong.add("aten::gelu", [](op_query const&, std::int64_t, row_list& rows) {
        for (std::size_t d = 0; d < 3; ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
    }, [](local_view const& v, local_program& p) { run_whole({"aten::tanh", {{"self", operand_slot{0}}}}, v, p); });
    verify_options options;
    options.ranks = 2;
    auto const v = verify(planned(gpt2(), "8"), gpt2(), wrong, options, capture_canonical);
    CHECK(!v.numbers_match());
    CHECK(v.collectives_match());
    CHECK(!v.passed());
    CHECK(text_of(v, false).find("NOT EQUAL") != std::string::npos);
    CHECK(text_of(v, true).find("differs") != std::string::npos);
    options.as_captured = true;
    CHECK(!verify(planned(gpt2(), "8"), gpt2(), wrong, options, capture_canonical).numbers_match());
    CHECK(v.sinks[0].name == "loss");
    CHECK(v.sinks[0].relative > v.tolerance);
}

TEST_CASE("layouts that no rule allows are refused before anything runs") {
    auto p = planned(gpt2(), "8");
    for (vertex v = 0; v < gpt2().size(); ++v)
        if (gpt2()[v].operation.name == "aten::gelu") {
            p.nodes[v].outputs[0] = static_cast<plan_layout>(p.layouts.size());
            break;
        }
    p.layouts.push_back(layout::parse(p.mesh, "P"));
    auto const e = refusal([&] { refuse_what_is_no_row(p, gpt2(), standard_registry()); });
    CHECK(e.code() == error_code::bad_rule);
    CHECK_MESSAGE(std::string(e.what()).find("aten::gelu") != std::string::npos, e.what());
}

TEST_CASE("what cannot be verified is refused with a number, and nothing is captured") {
    int captures = 0;
    auto const p = planned(gpt2(), "4x8");
    verify_options options;
    options.ranks = 4;
    auto const verify_it = [&](training_graph const& g) { verify(p, g, standard_registry(), options, counting(captures)); };
    auto const other = captured("gpt2", 1024, {{"layers", 2}});
    auto const foreign = refusal([&] { verify_it(other); });
    CHECK(foreign.code() == error_code::foreign_plan);
    CHECK(std::string(foreign.what()).find(structural_hash(gpt2()).hex()) != std::string::npos);
    CHECK(std::string(foreign.what()).find(structural_hash(other).hex()) != std::string::npos);
    auto priced = p;
    auto const moved = std::find_if(priced.paths.begin(), priced.paths.end(), [](auto const& x) { return !x.steps.empty(); });
    REQUIRE(moved != priced.paths.end());
    moved->steps[0].call.bytes_before = 1;
    auto const other_price = refusal([&] { verify(priced, gpt2(), standard_registry(), options, counting(captures)); });
    CHECK(other_price.code() == error_code::bad_program);
    auto nameless = gpt2();
    nameless.origin = {};
    CHECK(refusal([&] { verify_it(nameless); }).code() == error_code::bad_option);
    options.ranks = 3;
    auto const three = refusal([&] { verify_it(gpt2()); });
    CHECK(three.code() == error_code::bad_mesh);
    CHECK_MESSAGE(std::string(three.what()).find("1, 2, 4, 8, 16, 32") != std::string::npos, three.what());
    options.ranks = 0;
    CHECK(refusal([&] { verify_it(gpt2()); }).code() == error_code::bad_option);
    options.ranks = 4;
    options.tolerance = -1.0;
    CHECK(refusal([&] { verify_it(gpt2()); }).code() == error_code::bad_option);
    options.tolerance = std::numeric_limits<double>::infinity();
    CHECK(refusal([&] { verify_it(gpt2()); }).code() == error_code::bad_option);
    options.tolerance.reset();
    auto fallen_back = p;
    fallen_back.fallbacks = {{"mine::gate", 3}};
    auto const uncovered = refusal([&] { verify(fallen_back, gpt2(), standard_registry(), options, counting(captures)); });
    CHECK(uncovered.code() == error_code::bad_option);
    CHECK(std::string(uncovered.what()).find("mine::gate") != std::string::npos);
    CHECK(captures == 0);
    // The origin names a model whose graph is another one by now.
    auto const e = refusal([&] { verify(p, gpt2(), standard_registry(), options, [&](model_request r) {
        r.overrides.emplace_back("layers", 2);
        return capture_canonical(r);
    }); });
    CHECK(e.code() == error_code::capture_failed);
    CHECK_MESSAGE(std::string(e.what()).find("another graph") != std::string::npos, e.what());
    // A capture that fails twice in the same words is not tried at all sizes.
    auto const broken = refusal([&] { verify(p, gpt2(), standard_registry(), options, [&](model_request const& r) -> training_graph {
        ++captures;
        throw error(error_code::capture_failed, r.model, "it is broken", "");
    }); });
    CHECK(broken.code() == error_code::capture_failed);
    CHECK(captures == 2);
}

TEST_CASE("an origin that cannot be true is refused by the name of its field") {
    CHECK_NOTHROW(refuse_odd_origin(gpt2()));
    auto const with = [](std::string const& key, std::int64_t value) {
        auto g = gpt2();
        if (key == "batch") g.origin.batch = value;
        if (key == "sequence") g.origin.sequence = value;
        for (auto& [name, size] : g.origin.config)
            if (name == key) size = value;
        return g;
    };
    for (auto const& odd : {std::pair{"heads", 0}, {"heads", -1}, {"dim", 0}, {"vocab", 2147483647}, {"positions", 0},
                            {"layers", 20000}, {"layers", -1}, {"batch", 0}, {"batch", 1000000000}, {"sequence", 0},
                            {"sequence", 7}}) {
        CAPTURE(odd.first);
        auto const e = refusal([&] { refuse_odd_origin(with(odd.first, odd.second)); });
        CHECK(e.code() == error_code::bad_field);
        auto const named = std::string(odd.first) + "' is " + std::to_string(odd.second);
        CHECK_MESSAGE(std::string(e.what()).find(named) != std::string::npos, e.what());
    }
}

TEST_CASE("random sources fit the graph: indices below what they index, masks that let something pass") {
    auto const g = captured("bert-base", 32, {{"layers", 1}, {"dim", 24}, {"heads", 2}, {"ffn", 48}, {"vocab", 50}});
    auto const t = random_sources(g, 7);
    CHECK(t.at("tokens").max().item<std::int64_t>() < 50);
    CHECK(t.at("tokens").max().item<std::int64_t>() > 20);
    CHECK(t.at("token_types").max().item<std::int64_t>() == 1);
    CHECK(t.at("target").max().item<std::int64_t>() < 50);
    CHECK(at::equal(t.at("tokens"), random_sources(g, 7).at("tokens")));
    CHECK(!at::equal(t.at("tokens"), random_sources(g, 8).at("tokens")));
    auto const wide = in_type(g, finest_type(g));
    for (auto const& n : wide.nodes)
        for (auto const& m : n.outputs) CHECK((!is_floating_point(m.type) || m.type == dtype::float64));
}
