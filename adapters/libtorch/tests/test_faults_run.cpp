// SPDX-License-Identifier: BSL-1.0
// Faults that users of such systems reported, at run time: the reported graph under the reported placements is lowered, scheduled and run
// on thread ranks. Sinks are compared with the run on one rank and with the number of the report; what ran is what was priced.
//
//   graph by hand --placements pinned--> plan -> programs -> threads --put together--> replay, and the report's own number
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/capture.hpp>
#include <adapters/libtorch/tests/pinned_runs.hpp>

#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/canonical.hpp>

#include <cmath>

using namespace cantle;
using namespace cantle::libtorch;
using namespace cantle::libtorch::tests;

// ---- views ------------------------------------------------------------------------------------------------------------------------------

TEST_CASE("A2, A4, E1, E2, D20: views that a layout can follow run without any collective") {
    struct {
        shape from, to;
        char const *mesh, *in, *out;
    } const views[] = {
        {{4, 4, 4}, {8, 8}, "2x3", "S1,R", "S0,R; d0=4>a0"},     {{2, 8, 3}, {16, 3}, "2x2", "S1,S1", "S0,S0; d0=2>a0>a1"},
        {{16, 3}, {2, 8, 3}, "2x2", "S0,S0; d0=2>a0>a1", "S1,S1"}, {{4, 6, 5}, {24, 5}, "2x3", "S0,S1", "S0,S0; d0=a0>2>a1"},
        {{16}, {2, 8}, "2x2", "S0,S0", "S0,S1"},                {{2, 8}, {16}, "2x2", "S0,S1", "S0,S0"},
        {{2, 8}, {16}, "2x2", "R,S1", "R,S0; d0=2>a1"},          {{3, 24}, {3, 6, 4}, "4", "S1; d1=6>a0", "S2"},
    };
    for (auto const& [from, to, mesh, in, out] : views) {
        CAPTURE(in);
        drawn d;
        auto const x = d.in("x", counted_up(from));
        auto const y = d.view(x, to);
        auto const z = d.output(y, "y");
        auto const got = run_placed(d, mesh, {{x, {}, {in}}, {y, {in}, {out}}, {z, {out}, {}}});
        CHECK(near(got.whole.at("y"), counted_up(to)));
        CHECK(got.count() == 0);
        if (from.size() == 3 && to == shape{8, 8}) CHECK(near(got.pieces.at("y")[0], counted_up(to).index_select(0, longs({0, 2, 4, 6}))));
    }
}

TEST_CASE("A1, A5, A8, A11: views that would need pieces cut anew gather first and give the view of the whole") {
    for (auto const& [from, to, in] : {std::tuple<shape, shape, char const*>{{12, 8}, {16, 6}, "S1"}, {{3, 24}, {3, 6, 4}, "S1"}}) {
        drawn d;
        d.output(d.view(d.in("x", counted_up(from)), to), "y");
        auto const got = run_planned(d, "4", {{"x", in}, {"y", "R"}});
        CHECK(near(got.whole.at("y"), counted_up(to)));
        CHECK(got.count() > 0);
    }
    drawn uneven;  // 2 2 2 0 rows of 6
    uneven.output(uneven.view(uneven.in("x", counted_up({6, 16})), {96}), "y");
    auto const got = run_planned(uneven, "4", {{"x", "S0"}, {"y", "S0"}}, true);
    for (std::size_t r = 0; r < 4; ++r) CHECK(got.pieces.at("y")[r].numel() == 24);
    drawn t;
    t.output(t.call("aten::t", {{"self", t.in("x", counted_up({12}))}}), "y");
    CHECK(run_planned(t, "3", {{"x", "S0"}, {"y", "S0"}}).count() == 0);
}

TEST_CASE("A10: a cartesian product of two cut vectors has its 8 pairs") {
    drawn d;
    auto const a = d.view(d.in("a", counted_up({4})), {4, 1}), b = d.view(d.in("b", counted_up({2}) + 10), {1, 2});
    auto const wide = [&](value_ref x) { return d.call("aten::expand", {{"self", x}, {"size", shape{4, 2}}, {"implicit", false}}); };
    d.output(d.view(d.call("aten::stack", {{"tensors", refs{wide(a), wide(b)}}, {"dim", -1}}), {8, 2}), "pairs");
    for (auto const* out : {"R", "S0"})
        CHECK(near(run_planned(d, "2", {{"a", "S0"}, {"b", "S0"}, {"pairs", out}}).whole.at("pairs"),
                   at::cartesian_prod({counted_up({4}), counted_up({2}) + 10})));
}

// ---- paths: what runs is what is priced, and no more of it ------------------------------------------------------------------------------

TEST_CASE("C7, E3, D20: a gather of the inner axis is one step, of the outer one two, of both one; nothing gathers all to cut it again") {
    auto const moved = [](std::string const& mesh, std::string const& to) {
        drawn d;
        d.output(d.call("aten::neg", {{"self", d.in("x", counted_up({1024, 1024}))}}), "y");
        auto const m = device_mesh::parse(mesh);
        auto const g = d.build();
        auto const o = pinned({{"x", "S0,S0"}, {"neg", "S0,S0"}, {"y", to}});
        return run(g, plan(g, m, standard_registry(), standard_cost_model(m, find_cluster("h100")), o), d.data);
    };
    using kind = collective_kind;
    auto const inner = moved("2x4", "S0,R"), both = moved("2x4", "R,R"), outer = moved("4x8", "R,S0");
    CHECK(inner.count() == 1);
    CHECK(inner.collectives[0][0].axes == std::vector<std::uint8_t>{1});
    CHECK(both.count() == 1);
    CHECK(both.collectives[0][0].axes.size() == 2);
    CHECK(outer.count() == 2);
    CHECK(outer.count(kind::permute) == 1);
    CHECK(outer.count(kind::all_gather) == 1);
    for (auto const& c : outer.collectives[0]) CHECK(c.bytes == 1024 * 1024 * 8 / 32);  // times 4 ranks: 0.125 of the tensor
    CHECK(outer.collectives[0].back().axes == std::vector<std::uint8_t>{0});
}

TEST_CASE("D20: a slice or a flatten of dims that are not cut, and ops between them, run without any collective") {
    drawn d;
    auto const x = d.in("x", counted_up({8, 12, 6}));
    auto const part = slice(d, x, 1, 3, 9);
    auto const flat = d.view(part, {8, 36});
    auto const y = d.call("aten::neg", {{"self", flat}});
    auto const z = d.output(y, "y");
    texts const rows = {"S0,S0"};
    auto const places = std::vector<at_place>{{x, {}, rows}, {part, rows, rows}, {flat, rows, rows}, {y, rows, rows}, {z, rows, {}}};
    CHECK(run_placed(d, "2x2", places).count() == 0);
}

TEST_CASE("E1: a linear behind batch and sequence cuts keeps both") {
    drawn d;
    auto const x = d.in("x", normal({4, 6, 5})), w = d.in("w", normal({3, 5}));
    auto const y = d.linear(x, w);
    auto const z = d.output(y, "y");
    CHECK(run_placed(d, "2x3", {{x, {}, {"S0,S1"}}, {y, {"S0,S1", "R,R"}, {"S0,S1"}}, {z, {"S0,S1"}, {}}}).count() == 0);
}

TEST_CASE("E6: the bias of a row-parallel linear is added once, wherever the parts are summed") {
    drawn d;
    auto const x = d.in("x", normal({4, 6})), w = d.in("w", normal({8, 6})), b = d.in("b", normal({8}));
    d.output(d.named("sum", d.add(d.named("product", d.linear(x, w)), b)), "y");
    for (auto const* y : {"R", "S0", "S1"})
        CHECK(near(run_planned(d, "2", {{"x", "S1"}, {"w", "S1"}, {"y", y}}).whole.at("y"),
                   at::linear(d.data.at("x"), d.data.at("w"), d.data.at("b"))));
}

// ---- reductions -------------------------------------------------------------------------------------------------------------------------

//  rows [1,3] and [2,1], one per rank, are shares of [3,4]
TEST_CASE("A17: the norm of shares that sum to [3,4] is 5, by one all_reduce in front of it") {
    drawn d;
    auto const x = d.in("x", numbers({1, 3, 2, 1}).view({2, 2}));
    auto const s = d.sum(x, {0});
    auto const n = norm(d, s);
    auto const places = std::vector<at_place>{{x, {}, {"S0"}}, {s, {"S0"}, {"P"}}};
    auto const got = run_placed([&] { d.output(n, "y"); return d; }(), "2", places);
    CHECK(got.whole.at("y").item<double>() == doctest::Approx(5));
    CHECK(got.count() == 1);
    auto wrong = places;
    wrong.push_back({n, {"P"}, {"P"}});
    CHECK_THROWS_AS(placed(d, "2", wrong), error);
}

TEST_CASE("A16, A19, A56: a norm of a cut vector is whole before it is scaled by -2, added to or stacked with other norms") {
    drawn d;
    auto const x = d.in("x", numbers({3, 0, 0, 4})), w = d.in("w", numbers({5, 0, 12, 0}));
    auto const n = norm(d, x), m = norm(d, w);
    auto const twice = d.call("aten::mul.Scalar", {{"self", n}, {"other", -2.0}});
    auto const more = d.call("aten::add.Scalar", {{"self", n}, {"other", 0.5}, {"alpha", 1}});
    auto const both = d.call("aten::stack", {{"tensors", refs{n, m}}, {"dim", 0}});
    d.output(twice, "twice");
    d.output(more, "more");
    d.output(norm(d, both), "total");
    auto const got = run_placed(d, "2", {{x, {}, {"S0"}}, {n, {"S0"}, {"R"}}});
    CHECK(got.whole.at("twice").item<double>() == doctest::Approx(-10));
    CHECK(got.whole.at("more").item<double>() == doctest::Approx(5.5));
    CHECK(got.whole.at("total").item<double>() == doctest::Approx(std::sqrt(25.0 + 169.0)));
    CHECK(got.count() == 1);
    CHECK(run_planned(d, "2x2", {{"x", "S0,S0"}, {"w", "S0,R"}}).count() > 0);
}

TEST_CASE("A20: a copy of shares over shares copies shares; one all_reduce follows") {
    drawn d;
    auto const x = d.in("x", normal({4, 3})), y = d.in("y", normal({4, 3}));
    auto const a = d.sum(x, {0}), b = d.sum(y, {0});
    auto const c = d.call("aten::copy", {{"self", a}, {"src", b}, {"non_blocking", false}});
    d.output(c, "c");
    auto const got = run_placed(d, "2", {{x, {}, {"S0"}}, {y, {}, {"S0"}}, {a, {"S0"}, {"P"}}, {b, {"S0"}, {"P"}}, {c, {"P", "P"}, {"P"}}});
    CHECK(got.count() == 1);
}

TEST_CASE("A22, A23: positions of maxima over a cut dim are those in the whole tensor") {
    drawn d;
    auto flat = -counted_up({1200});
    flat[601] = -599.5;
    d.output(d.call("aten::argmax", {{"self", d.in("x", flat.view({10, 5, 3, 8}))}, {"dim", none}, {"keepdim", false}}), "first");
    auto const top = d.call("aten::max.dim", {{"self", d.in("z", numbers({1, 5, 2, 9}).view({1, 4}))}, {"dim", 1}, {"keepdim", false}});
    d.output(top, "value");
    d.output({top.node, 1}, "index");
    auto const got = run_planned(d, "2", {{"x", "S0"}, {"z", "S1"}});
    CHECK(got.whole.at("first").item<std::int64_t>() == 0);
    CHECK(got.whole.at("value").item<double>() == 9);
    CHECK(got.whole.at("index").item<std::int64_t>() == 3);
}

// losses 1, 1, 2, 2 at targets 0, 0, 1, 1 with weights 1, 3
TEST_CASE("A25, A26: a weighted mean is 14/8 and a sum 14, with tokens cut, classes cut, and both") {
    for (std::int64_t const how : {1, 2}) {
        drawn d;
        auto const x = d.in("x", numbers({-1, -9, -1, -9, -9, -2, -9, -2}).view({4, 2}));
        auto const t = d.in("t", longs({0, 0, 1, 1})), w = d.in("w", numbers({1, 3}));
        auto const loss = d.call("aten::nll_loss_forward",
                                 {{"self", x}, {"target", t}, {"weight", w}, {"reduction", how}, {"ignore_index", -100}});
        d.output(loss, "loss");
        d.output({loss.node, 1}, "total");
        double const want = how == 1 ? 1.75 : 14;
        CHECK(run_placed(d, "1", {}).whole.at("loss").item<double>() == want);
        texts const out = {"P", how == 1 ? "R" : "P"};
        auto const tokens = run_placed(d, "2", {{x, {}, {"S0"}}, {t, {}, {"S0"}}, {loss, {"S0", "S0", "R"}, out}});
        CHECK(tokens.whole.at("loss").item<double>() == want);
        CHECK(tokens.whole.at("total").item<double>() == 8);
        CHECK(tokens.count(collective_kind::all_reduce) == 2);  // of numerator and of denominator
        auto const classes = run_placed(d, "2", {{x, {}, {"S1"}}, {w, {}, {"S0"}}, {loss, {"S1", "R", "S0"}, out}});
        CHECK(classes.whole.at("loss").item<double>() == want);
        auto const both = run_planned(d, "2x2", {{"x", "S0,S1"}, {"t", "S0,R"}, {"w", "R,S0"}});
        CHECK(both.whole.at("loss").item<double>() == want);
    }
}

// item() and bool() of a tensor are refused by capture (601); other ops without a rule can be planned whole.
TEST_CASE("A28: an op that no rule knows reads whole values, never a share") {
    drawn d;
    auto const x = d.in("x", normal({4, 2, 2}));
    d.output(d.call("aten::linalg_matrix_exp", {{"self", d.sum(x, {0})}}), "y");
    auto o = pinned({{"x", "S0"}});
    o.fallback = rule_fallback::replicate;
    CHECK(near(run_planned(d.build(), d.data, "2", o).whole.at("y"), at::linalg_matrix_exp(d.data.at("x").sum(0))));
    auto p = plan(d.build(), device_mesh::parse("2"), standard_registry(), random_cost_model{1}, o);
    p.fallbacks.clear();
    CHECK(message_of([&] { ready_programs(d.build(), p, standard_registry()); }).find("401") != std::string::npos);
    o.fallback = rule_fallback::none;
    CHECK_THROWS_AS(plan(d.build(), device_mesh::parse("2"), standard_registry(), random_cost_model{1}, o), error);
}

TEST_CASE("E5: shares of a half are summed before they become whole numbers") {
    drawn d;
    auto const x = d.in("x", numbers({0.5, 1.5, 0.5, 1.5}).view({2, 2}));
    auto const s = d.sum(x, {0});
    auto const i = d.cast(s, dtype::int32);
    d.output(i, "y");
    CHECK(near(run_planned(d, "2", {{"x", "S0"}}).whole.at("y"), longs({1, 3})));
    CHECK_THROWS_AS(placed(d, "2", {{x, {}, {"S0"}}, {s, {"S0"}, {"P"}}, {i, {"P"}, {"P"}}}), error);
}

// rows 0..3 on two axes: a mean of means of equal parts
TEST_CASE("D17: an average over ranks is divided once, on one axis and on two, beside a sum, scattered; nothing whole becomes a share") {
    auto const mean_of = [](drawn& d, value_ref x) {
        return d.call("aten::mean.dim", {{"self", x}, {"dim", shape{0}}, {"keepdim", false}, {"dtype", none}});
    };
    drawn d;
    auto const x = d.in("x", normal({12, 6})), c = d.in("c", normal({6}));
    auto const m = mean_of(d, x);
    auto const twice = d.call("aten::mul.Scalar", {{"self", m}, {"other", 2.0}});
    auto const more = d.add(twice, c);
    auto const y = d.output(more, "y");
    auto const want = d.data.at("x").mean(0) * 2 + d.data.at("c");
    for (auto const& [mesh, rows, share] :
         {std::tuple{"3", "S0", "P(avg)"}, {"2x3", "S0,S0", "P(avg),P(avg)"}, {"2x3", "S0,R", "P(avg),R"}}) {
        std::vector<at_place> places = {{x, {}, {rows}}, {m, {rows}, {share}}, {twice, {share}, {share}}};
        auto const got = run_placed(d, mesh, places);
        CHECK(near(got.whole.at("y"), want));
        CHECK(got.count() == 1);
        places.push_back({more, {share, share}, {share}});  // c would have to become shares
        CHECK_THROWS_AS(placed(d, mesh, places), error);
    }
    auto const scattered = run_placed(d, "3", {{x, {}, {"S0"}}, {m, {"S0"}, {"P(avg)"}}, {twice, {"S0", }, {"S0"}},
                                               {more, {"S0", "S0"}, {"S0"}}, {y, {"S0"}, {}}});
    CHECK(scattered.count(collective_kind::reduce_scatter) == 1);
    drawn mixed;
    auto const z = mixed.in("x", normal({4, 6, 5}));
    auto const s = mixed.sum(z, {0});
    auto const a = mean_of(mixed, s);
    mixed.output(a, "y");
    run_placed(mixed, "2x3", {{z, {}, {"S0,S1"}}, {s, {"S0,S1"}, {"P,S0"}}, {a, {"P,S0"}, {"P,P(avg)"}}});
}

// ---- ops whose arguments or masks belong to them alone ----------------------------------------------------------------------------------

TEST_CASE("A37, A38, A55, A31: ops of equal shapes and other arguments, side by side in one program, keep their own") {
    drawn d;
    auto const q = d.in("q", normal({2, 4, 6, 4}));
    for (bool const causal : {false, true})
        d.output(d.call("cantle::sdpa", {{"query", q}, {"key", q}, {"value", q}, {"attn_mask", none}, {"dropout_p", 0.0},
                                         {"is_causal", causal}, {"scale", none}, {"enable_gqa", false}}), "attention");
    auto const x = d.in("x", normal({12, 12}));
    for (int const dim : {0, 1}) {
        d.output(d.call("aten::sort", {{"self", x}, {"dim", dim}, {"descending", false}}), "sorted");
        d.output(d.call("aten::_softmax_backward_data",
                        {{"grad_output", x}, {"output", x}, {"dim", dim ? 1 : -1}, {"input_dtype", dtype::float64}}), "softmax");
        for (int const start : {0, 12})
            d.output(d.call("aten::slice_backward", {{"grad_output", x}, {"input_sizes", dim ? shape{12, 24} : shape{24, 12}}, {"dim", dim},
                                                     {"start", start}, {"end", start + 12}, {"step", 1}}), "apart");
    }
    for (int const bins : {4, 6}) d.output(d.call("aten::histc", {{"self", x}, {"bins", bins}, {"min", -1.0}, {"max", 2.0}}), "bins");
    for (auto const* mesh : {"2", "3", "2x2"}) run_planned(d, mesh, {});
    for (auto const* rows : {"S0", "S1"}) {
        auto const got = run_planned(d, "2", {{"x", rows}, {"q", rows}});
        CHECK(near(got.whole.at("softmax"), got.whole.at("softmax_2")));
    }
}

TEST_CASE("A40: attention whose sequence is cut gathers; fewer key heads than ranks do not tempt it into cutting heads") {
    drawn d;
    auto const q = d.in("q", normal({2, 8, 4, 3})), k = d.in("k", normal({2, 2, 4, 3})), v = d.in("v", normal({2, 2, 4, 3}));
    d.output(d.call("cantle::sdpa", {{"query", q}, {"key", k}, {"value", v}, {"attn_mask", none}, {"dropout_p", 0.0}, {"is_causal", true},
                                     {"scale", none}, {"enable_gqa", true}}), "y");
    CHECK(run_planned(d, "4", {{"q", "S2"}, {"k", "S2"}, {"v", "S2"}}).count() > 0);
    run_planned(d, "4", {{"q", "S1"}});
    run_planned(d, "2", {{"q", "S1"}, {"k", "S1"}, {"v", "S1"}});
}

TEST_CASE("A47, B22, D5: masks belong to their table; tied tables are one tensor with one gradient") {
    auto const meta = at::TensorOptions(at::kMeta);
    capture_request r;
    auto const table = [&](std::int64_t width) { return at::empty({12, width}, meta).requires_grad_(); };
    auto const a = table(4), b = table(4), wide = table(6);
    r.parameters = {{"a", a}, {"b", b}, {"head", a}, {"wide", wide}};
    r.inputs = {{"i", at::empty({6}, meta.dtype(at::kLong))}, {"j", at::empty({6}, meta.dtype(at::kLong))}};
    r.run = [&](std::vector<at::Tensor> const& in, std::vector<at::Tensor> const&) {
        auto const x = at::embedding(a, in[0]) * at::embedding(b, in[1]);
        return (at::linear(x, a).sin().sum(1, true) * at::embedding(wide, in[0])).sum();
    };
    auto const g = in_float64(canonicalize(capture(r)));
    std::size_t gradients = 0, shares = 0;
    for (auto const& n : g.nodes) gradients += n.role == node_role::gradient;
    CHECK(gradients == 3);
    at::manual_seed(3);
    tensor_map const data = {{"a", normal({12, 4})}, {"b", normal({12, 4})}, {"wide", normal({12, 6})},
                             {"i", longs({0, 7, 3, 11, 6, 5})}, {"j", longs({11, 2, 3, 8, 0, 6})}};
    for (auto const* mesh : {"2", "3", "2x2"})
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            std::string const rows = mesh[1] ? "S0,S0" : "S0";
            auto const p = plan(g, device_mesh::parse(mesh), standard_registry(), random_cost_model{seed},
                                pinned({{"a", rows}, {"b", rows}, {"wide", rows}}));
            for (vertex v = 0; v < g.size(); ++v)
                shares += g[v].operation.name.find("embedding") != std::string::npos && p.at(p.nodes[v].outputs[0]).has_partial();
            run(g, p, data);
        }
    CHECK(shares > 6);
}

// ---- indexing ---------------------------------------------------------------------------------------------------------------------------

TEST_CASE("A43, A44: index_put into cut rows from cut indices and values writes what the whole op writes") {
    drawn d;
    auto const put = [&](std::string const& name, at::Tensor const& self, std::vector<at::Tensor> const& at, at::Tensor const& values) {
        refs by;
        for (std::size_t i = 0; i < at.size(); ++i) by.push_back(d.in(name + ".i" + std::to_string(i), at[i]));
        d.output(d.call("aten::index_put", {{"self", d.in(name + ".x", self)}, {"indices", by}, {"values", d.in(name + ".v", values)},
                                            {"accumulate", false}}), name);
    };
    put("row", at::zeros({16}, at::kDouble), {at::arange(16)}, numbers(std::vector<double>(16, 1)));
    put("count", at::zeros({16}, at::kDouble), {at::arange(16).flip(0)}, at::arange(16, at::kDouble));
    put("diagonal", at::zeros({4, 4}, at::kDouble), {at::arange(4), at::arange(4)}, at::arange(1, 5, at::kDouble));
    for (auto const* mesh : {"2", "4"}) {
        auto const got = run_planned(d, mesh, {{"*.x", "S0"}, {"*.i0", "S0"}, {"*.i1", "S0"}, {"*.v", "S0"}});
        CHECK(near(got.whole.at("row"), at::ones({16}, at::kDouble)));
        CHECK(near(got.whole.at("diagonal"), at::diag(at::arange(1, 5, at::kDouble))));
    }
}

TEST_CASE("A46: a router's scatter along experts runs without any collective") {
    drawn d;
    auto const x = d.in("x", at::zeros({12, 8}, at::kDouble)), i = d.in("i", std::get<1>(normal({12, 8}).topk(2)));
    auto const src = d.in("src", normal({12, 2}));
    auto const y = d.call("aten::scatter.src", {{"self", x}, {"dim", -1}, {"index", i}, {"src", src}});
    auto const z = d.output(y, "y");
    auto const got = run_placed(d, "3", {{x, {}, {"S0"}}, {i, {}, {"S0"}}, {src, {}, {"S0"}}, {y, {"S0", "S0", "S0"}, {"S0"}},
                                         {z, {"S0"}, {}}});
    CHECK(got.count() == 0);
    drawn longer;
    longer.output(longer.call("aten::scatter.src", {{"self", longer.in("x", at::zeros({12, 8}, at::kDouble))}, {"dim", -1},
                                                    {"index", longer.in("i", d.data.at("i").narrow(0, 0, 6))},
                                                    {"src", longer.in("src", normal({12, 2}))}}), "y");
    run_planned(longer, "3", {{"x", "S0"}, {"i", "S0"}, {"src", "S0"}});
}

TEST_CASE("A50, A53: a slice across cuts has elements 4 to 11; cat of 60 tensors, and of uneven rows along their cut") {
    drawn d;
    d.output(slice(d, d.in("x", counted_up({16})), 0, 4, 12), "y");
    for (auto const* out : {"R", "S0"})
        CHECK(near(run_planned(d, "4", {{"x", "S0"}, {"y", out}}).whole.at("y"), at::arange(4, 12, at::kDouble)));
    drawn many;
    refs all;
    for (int k = 0; k < 60; ++k) all.push_back(many.in("x" + std::to_string(k), normal({4, 2})));
    many.output(many.call("aten::cat", {{"tensors", all}, {"dim", 1}}), "y");
    run_planned(many, "2", {{"x*", "S0"}});
    drawn rows;
    rows.output(rows.call("aten::cat", {{"tensors", refs{rows.in("x", normal({3, 5})), rows.in("y", normal({3, 5}))}}, {"dim", 0}}), "z");
    run_planned(rows, "2", {{"x", "S0"}, {"y", "S0"}, {"z", "S0"}}, true);
}

// ---- sources, buffers, absent tensors ---------------------------------------------------------------------------------------------------

TEST_CASE("A49, A52: what a graph makes by itself is made in pieces, each with its own numbers") {
    drawn d;
    auto const make = [&](std::string const& name, std::vector<call_argument> arguments, dtype type = dtype::float64) {
        for (auto const& a : {call_argument{"dtype", type}, {"layout", none}, {"device", symbol{"device", "device"}}, {"pin_memory", none}})
            arguments.push_back(a);
        return d.call("aten::" + name, arguments);
    };
    auto const count = make("arange", {{"end", 64}}), ones = make("ones", {{"size", shape{8, 3}}});
    auto const zeros = make("zeros", {{"size", shape{8}}});
    auto const full = make("full", {{"size", shape{4, 3}}, {"fill_value", 2.5}}), three = make("scalar_tensor", {{"s", 3}});
    std::vector<at_place> places;
    for (auto const& [value, name] : {std::pair{count, "y0"}, {ones, "y1"}, {zeros, "y2"}, {full, "y3"}}) {
        places.push_back({value, {}, {"S0"}});
        places.push_back({d.output(value, name), {"S0"}, {}});
    }
    d.output(three, "three");
    auto const got = run_placed(d, "4", places);
    CHECK(got.count() == 0);
    for (std::size_t r = 0; r < 4; ++r) {
        auto const first = 16 * static_cast<std::int64_t>(r);
        CHECK(near(got.pieces.at("y0")[r], at::arange(first, first + 16)));
        CHECK(near(got.pieces.at("y1")[r], at::ones({2, 3})));
        CHECK(near(got.pieces.at("y3")[r], at::full({1, 3}, 2.5)));
        CHECK(got.pieces.at("three")[r].item<double>() == 3);
    }
}

TEST_CASE("D7: buffers of flags and whole numbers are cut as any tensor") {
    drawn d;
    auto const x = d.in("x", normal({8, 6}));
    auto const mask = d.buffer("mask", {8, 6}, dtype::boolean), order = d.buffer("order", {8}, dtype::int64);
    d.data["mask"] = normal({8, 6}) > 0;
    d.data["order"] = longs({3, 1, 0, 7, 2, 6, 5, 4});
    auto const kept = d.call("aten::masked_fill.Scalar", {{"self", x}, {"mask", mask}, {"value", -2.0}});
    d.output(d.call("aten::index.Tensor", {{"self", kept}, {"indices", refs{order}}}), "y");
    d.output(d.call("aten::logical_not", {{"self", mask}}), "not");
    for (auto const* mesh : {"2", "4"}) run_planned(d, mesh, {{"mask", "S0"}, {"order", "S0"}, {"x", "S0"}});
}

TEST_CASE("D8, A35: tensors that are absent among operands and among outputs stay absent on every rank") {
    drawn d;
    auto const x = d.in("x", normal({4, 6, 8})), w = d.in("w", normal({8})), i = d.in("i", longs({5, 0, 3}));
    d.output(d.call("aten::index.Tensor", {{"self", x}, {"indices", std::vector<std::optional<value_ref>>{std::nullopt, i}}}), "rows");
    auto const y = d.call("aten::native_layer_norm",
                          {{"input", x}, {"normalized_shape", shape{8}}, {"weight", none}, {"bias", none}, {"eps", 1e-5}});
    d.output(y, "plain");
    auto const back = d.call("aten::native_layer_norm_backward",
                             {{"grad_out", y}, {"input", x}, {"normalized_shape", shape{8}}, {"mean", value_ref{y.node, 1}},
                              {"rstd", value_ref{y.node, 2}}, {"weight", w}, {"bias", w},
                              {"output_mask", std::vector<bool>{true, false, true}}});
    REQUIRE_FALSE(d.graph()[back.node].outputs[1].defined);
    d.output(back, "of input");
    d.output({back.node, 2}, "of bias");
    for (auto const* rows : {"S0", "S1", "S2", "R"}) run_planned(d, "2", {{"x", rows}});
    run_planned(d, "2x2", {{"x", "S0,S1"}});
}

// ---- uneven pieces ----------------------------------------------------------------------------------------------------------------------

TEST_CASE("A58, A59, A61: pieces other than planned, and layouts that leave ranks empty, are refused before anything runs") {
    drawn d;
    d.output(d.call("aten::neg", {{"self", d.in("x", counted_up({14}))}}), "y");
    auto const g = d.build();
    auto const p = plan(g, device_mesh::parse("4"), standard_registry(), random_cost_model{1}, pinned({{"x", "S0"}, {"y", "S0"}}, true));
    CHECK(near(run(g, p, d.data).pieces.at("y")[3], numbers({-12, -13})));
    std::vector<rank_executor> ranks;
    for (auto& program : ready_programs(g, p, standard_registry())) ranks.emplace_back(std::move(program), names_of(g));
    std::vector<std::vector<at::Tensor>> pieces;
    for (auto const& part : d.data.at("x").split_with_sizes({2, 3, 4, 5})) pieces.push_back({part});
    auto const message = message_of([&] { run_on_threads(ranks, pieces); });
    CHECK_MESSAGE(message.find("303: rank 0") != std::string::npos, message);
    CHECK_MESSAGE(message.find("[2]") != std::string::npos, message);
    CHECK_MESSAGE(message.find("[4]") != std::string::npos, message);
    for (std::int64_t const n : {2, 4}) {  // on 8 ranks: some would be empty
        drawn few;
        few.output(few.call("aten::neg", {{"self", few.in("x", counted_up({n, 8}))}}), "y");
        for (bool const uneven : {false, true})
            CHECK_THROWS_AS(plan(few.build(), device_mesh::parse("2x4"), standard_registry(), random_cost_model{1},
                                 pinned({{"x", "S0,S0"}}, uneven)), error);
        run_planned(few, "2x4", {{"x", "S0,S1"}});
    }
}

// ---- order of collectives ---------------------------------------------------------------------------------------------------------------

TEST_CASE("D13, D14: every two ranks start the collectives of a communicator in one order, which no wait has to break") {
    drawn d;
    auto x = d.in("x", normal({8, 8}));
    refs weights;
    for (int l = 0; l < 6; ++l) {
        weights.push_back(d.in("w" + std::to_string(l), normal({8, 8})));
        auto const bias = d.in("b" + std::to_string(l), normal({8}));  // small: it finds room where its weight, needed before it, does not
        x = d.call("aten::tanh", {{"self", d.add(d.add(d.linear(x, weights.back()), bias), d.linear(weights.front(), x))}});
        d.output(d.sum(x, {l % 2}), "y" + std::to_string(l));
    }
    auto const g = d.build();
    std::size_t moved = 0;
    for (auto const& [mesh, rows] : {std::pair{"2x2", "S0,S0"}, {"2x2x2", "S0,S0,S0"}})
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            auto const p = plan(g, device_mesh::parse(mesh), standard_registry(), random_cost_model{seed},
                                pinned({{"w*", rows}, {"b*", rows}}));
            auto const lowered = lower_all(g, p, standard_registry());
            for (std::int64_t const bytes : {0, 300, 600, 1200, 1 << 20}) {  // tensors here have at most 512
                auto const started = ready_programs(g, p, standard_registry(), {bytes});
                for (auto const& other : started) CHECK((starts_of(other) == starts_of(started[0])));
                for (std::size_t i = 0; i < lowered[0].steps.size(); ++i)
                    moved += started[0].steps[i].outputs != lowered[0].steps[i].outputs;
                CHECK(overtaken(started[0]) == 0);
            }
            auto const got = run(g, p, d.data);
            for (auto const& ran : got.collectives) CHECK((ran == got.collectives[0]));
        }
    CHECK(moved > 0);
}
