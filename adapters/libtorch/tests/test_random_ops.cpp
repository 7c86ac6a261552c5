// SPDX-License-Identifier: BSL-1.0
// The ops that draw by index: whatever part of a tensor a rank holds, it holds the numbers of the whole draw.
//
//     one rank   u0 u1 u2 u3 u4 u5 u6 u7        cut by b, then by a, on (a=2, b=2):
//     rank 00    u0 u1          rank 01  u4 u5          rank 10  u2 u3          rank 11  u6 u7
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/pieces.hpp>
#include <adapters/libtorch/random_ops.hpp>
#include <adapters/libtorch/run_context.hpp>
#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/graph/op_traits.hpp>
#include <cantle/rules/expand_axes.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace cantle;
using namespace cantle::libtorch;

namespace {

/// A run of one rank with that seed, for what is called in this thread.
struct seeded {
    run_context context;
    run_context_guard guard;
    explicit seeded(std::uint64_t seed) : context{seed, nullptr, 0, nullptr}, guard(context) {}
};

/// An operand on every rank. Of partial values the first rank of a sum holds all, the others nothing; else every rank holds the value.
rank_tensors cut(at::Tensor const& whole, layout const& l, device_mesh const& mesh) {
    layout cuts = l;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (l.on(a).is_partial()) cuts.release(a);
    auto pieces = pieces_of({whole}, cuts, mesh);
    for (std::int64_t r = 0; r < mesh.device_count(); ++r)
        for (std::size_t a = 0; a < mesh.dims(); ++a)
            if (l.on(a).is_partial() && l.on(a).reduce == reduction::sum && mesh.coordinate(r, a) != 0)
                pieces[static_cast<std::size_t>(r)] = at::zeros_like(pieces[static_cast<std::size_t>(r)]);
    return pieces;
}
std::vector<at::Tensor> drawn(rule_oracle const& o, std::vector<layout> const& layouts, device_mesh const& mesh) {
    rank_play play(o.query(), layouts, mesh, o.local());
    std::vector<rank_tensors> operands;
    for (std::size_t i = 0; i < o.operands().size(); ++i) operands.push_back(cut(o.operands()[i], layouts[i], mesh));
    auto const pieces = play.run(operands);
    std::vector<at::Tensor> whole;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        auto const& l = layouts[operands.size() + p];
        // Copies are equal, not only the one that put_together takes.
        for (std::int64_t r = 0; r < mesh.device_count(); ++r)
            for (std::size_t a = 0; a < mesh.dims(); ++a)
                if (l.on(a).is_replicate() && mesh.coordinate(r, a) > 0)
                    CHECK(at::equal(pieces[p][static_cast<std::size_t>(r)], pieces[p][static_cast<std::size_t>(r - mesh.stride(a))]));
        whole.push_back(put_together(pieces[p], l, mesh, o.query().outputs[p].sizes));
    }
    return whole;
}
bool same(std::vector<at::Tensor> const& a, std::vector<at::Tensor> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].scalar_type() != b[i].scalar_type() || !at::equal(a[i], b[i])) return false;
    return a.size() == b.size();
}

/// Samples of the random ops, those of the families' tests and larger ones.
sample_list random_samples() {
    sample_list all;
    add_random_samples(all);
    sample_list kept;
    for (auto& s : all)
        if (is_random(s.operation)) kept.push_back(std::move(s));
    for (auto const& x : std::vector<shape>{{12, 6, 4}, {36}})
        kept.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.5).arg("train", true));
    return kept;
}

at::Tensor call(std::string name, std::vector<argument> arguments, shape const& size, at::ScalarType type = at::kDouble,
                std::int64_t number = 0, std::vector<at::Tensor> operands = {}) {
    op o{std::move(name), {{"size", size}}};
    for (auto& a : arguments) o.arguments.push_back(std::move(a));
    auto const count = element_count(size);
    std::vector<argument> const rest{{"dtype", type == at::kHalf       ? dtype::float16
                                               : type == at::kBFloat16 ? dtype::bfloat16
                                               : type == at::kFloat    ? dtype::float32
                                               : type == at::kLong     ? dtype::int64
                                                                       : dtype::float64},
                                     {"device", symbol{"device", "device"}},
                                     {"draw", number},
                                     {"first", std::int64_t{0}},
                                     {"counts", std::vector<std::int64_t>{count}},
                                     {"strides", std::vector<std::int64_t>{1}}};
    o.arguments.insert(o.arguments.end(), rest.begin(), rest.end());
    return call_op(o, operands).at(0);
}

}  // namespace

TEST_CASE("every op with a rule that draws is drawn by index, or is one that lowering refuses") {
    std::set<std::string> named;
    for (auto const& s : random_samples()) {
        named.insert(s.operation.name);
        rule_oracle const o(s);
        std::vector<layout> const whole(o.operands().size() + o.outputs().size(), layout(1));
        local_view v{&s.operation, {}, {}, 1, 0};
        auto const port = [&](tensor_meta const& t) { return port_view{t, piece_of(whole[0], axis_of(2), t.sizes, 0), whole.data()}; };
        for (auto const& t : o.query().operands) v.operands.push_back(port(t));
        for (auto const& t : o.query().outputs) v.outputs.push_back(port(t));
        auto const program = standard_registry().local(v);
        bool draws = false;
        for (auto const& step : program.steps()) {
            CHECK_MESSAGE(is_random(step.call) == draws_by_index(step.call), s.operation.name, " calls ", step.call.name);
            draws = draws || draws_by_index(step.call);
        }
        CHECK_MESSAGE(draws, s.operation.name);
    }
    std::size_t count = 0;
    for (auto const& name : standard_registry().op_names())
        if (is_random(op{name, {}})) {
            CHECK_MESSAGE(named.count(name) == 1, name, " has no sample here");
            ++count;
        }
    CHECK(count == named.size());
}

TEST_CASE("under every strategy that a rule yields the ranks hold together what one rank draws, bit by bit") {
    seeded const run(41);
    std::size_t strategies = 0;
    for (auto const& s : random_samples()) {
        rule_oracle const o(s);
        for (auto const* text : {"2", "3", "2x2", "2x3"}) {
            auto const mesh = device_mesh::parse(text);
            layout_table table;
            auto const all = expand_axes(o.query(), mesh, standard_registry(), table);
            for (std::size_t k = 0; k < all.size(); ++k) {
                auto const made = strategy_of(all, k, table);
                auto const got = drawn(o, made.layouts, mesh);
                std::string layouts;
                for (auto const& l : made.layouts) layouts += l.text(mesh) + "  ";
                CHECK_MESSAGE(same(got, o.outputs()), text_of(o), " on ", text, ": ", layouts);
                ++strategies;
            }
        }
    }
    MESSAGE("strategies: ", strategies);
    CHECK(strategies > 1500);
}

TEST_CASE("strided shards, both orders of cuts and uneven chunks hold what one rank draws") {
    seeded const run(5);
    auto const mesh = device_mesh::parse("2x3");
    std::size_t tried = 0;
    for (shape const& x : std::vector<shape>{{36}, {12, 6}, {7, 12}}) {
        std::vector<layout> layouts;
        for (std::size_t first : {0, 1})
            for (std::size_t d = 0; d < x.size(); ++d)
                for (std::size_t e = 0; e < x.size(); ++e)
                    for (std::int64_t outer : {1, 2, 3})
                        for (auto policy : {shard_policy::even, shard_policy::uneven}) {
                            layout l(2);
                            bool const cut_once = l.apply(first, mesh.size(first), placement::shard(d, outer), x, policy);
                            l.apply(1 - first, mesh.size(1 - first), placement::shard(e, 1), x, policy);
                            if (cut_once) layouts.push_back(l);
                        }
        for (auto const& s : {rule_sample(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.25).arg("train", true)),
                              rule_sample(sample("aten::randn_like").arg("self", eighths(x)))})
            for (auto const& l : layouts) {
                rule_oracle const o(s);
                CHECK_MESSAGE(same(drawn(o, std::vector<layout>(1 + o.outputs().size(), l), mesh), o.outputs()), l.text(mesh));
                ++tried;
            }
    }
    CHECK(tried > 60);
}

TEST_CASE("on other devices the same bits are drawn") {
    seeded const run(0x123456789abcdef0);
    shape const x{3, 5, 7};
    auto const half = at::full({7}, 0.5, at::kDouble);
    std::vector<argument> const unit{{"from", -1.0}, {"to", 3.0}};
    auto const both = [](auto&& make) {
        auto const here = make();
        portable_draws_guard const portable;
        return std::pair{here, make()};
    };
    for (auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
        auto const [a, b] = both([&] { return call("cantle::counter_uniform", unit, x, type, std::int64_t{1} << 40 | 3); });
        CHECK(at::equal(a, b));
        auto const [c, d] = both([&] { return call("cantle::counter_bernoulli", {{"p", 0.3}}, x, type); });
        CHECK(at::equal(c, d));
        auto const [e, f] = both([&] { return call("cantle::counter_bernoulli.Tensor", {{"p", operand_slot{0}}}, x, type, 0, {half}); });
        CHECK(at::equal(e, f));
        auto const [g, h] = both([&] { return call("cantle::counter_normal", {{"mean", 1.0}, {"std", 2.0}}, x, type); });
        CHECK(at::allclose(g.to(at::kDouble), h.to(at::kDouble), 1e-2, 1e-2));
        auto const [i, j] = both([&] { return call("cantle::counter_exponential", {{"lambd", 2.0}}, x, type); });
        CHECK(at::allclose(i.to(at::kDouble), j.to(at::kDouble), 1e-2, 1e-2));
    }
    auto const [g, h] = both([&] { return call("cantle::counter_normal", {{"mean", 0.0}, {"std", 1.0}}, x); });
    CHECK(at::allclose(g, h, 1e-12, 1e-12));
    for (auto high : {std::int64_t{7}, std::int64_t{1} << 40, (std::int64_t{1} << 62) + 12345}) {
        std::vector<argument> const range{{"low", std::int64_t{-3}}, {"high", high}};
        auto const [a, b] = both([&] { return call("cantle::counter_randint", range, x, at::kLong); });
        CHECK(at::equal(a, b));
    }
    auto const [p, q] = both([&] { return call("cantle::counter_randperm", {}, {40}, at::kLong); });
    CHECK(at::equal(p, q));
    op const dropout{"cantle::counter_dropout",
                     {{"input", operand_slot{0}},
                      {"p", 0.25},
                      {"train", std::monostate{}},
                      {"draw", std::int64_t{2}},
                      {"first", std::int64_t{3}},
                      {"counts", std::vector<std::int64_t>{4, 2}},
                      {"strides", std::vector<std::int64_t>{5, 1}}}};
    std::vector<at::Tensor> const input{at::ones({2, 4}, at::kDouble)};
    auto const here = call_op(dropout, input);
    portable_draws_guard const portable;
    CHECK(same(here, call_op(dropout, input)));
}

TEST_CASE("types, ranges and distributions are those of the ops") {
    seeded const run(7);
    shape const many{40000};
    double const root = 200;  // of the number of elements: means are right within 4 deviations / root
    for (auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
        auto const u = call("cantle::counter_uniform", {{"from", 2.0}, {"to", 4.0}}, many, type);
        CHECK((u.scalar_type() == type));
        CHECK(u.min().item<double>() >= 2);
        CHECK(u.max().item<double>() < 4);
        // Bits are cut off, so that narrow types are low by half of their last one.
        CHECK(std::abs(u.to(at::kDouble).mean().item<double>() - 3) < 4 * 0.58 / root + (type == at::kBFloat16 ? 0.01 : 0.001));
        auto const z = call("cantle::counter_normal", {{"mean", -1.0}, {"std", 2.0}}, many, type).to(at::kDouble);
        CHECK(std::abs(z.mean().item<double>() + 1) < 4 * 2 / root);
        CHECK(std::abs(z.std().item<double>() - 2) < 4 * 2 / root);
        CHECK(std::abs((z > -1).to(at::kDouble).mean().item<double>() - 0.5) < 4 * 0.5 / root);
        CHECK(std::abs(((z + 1).abs() < 2).to(at::kDouble).mean().item<double>() - 0.6827) < 4 * 0.47 / root);
        auto const e = call("cantle::counter_exponential", {{"lambd", 2.0}}, many, type).to(at::kDouble);
        CHECK(e.min().item<double>() > 0);
        CHECK(std::abs(e.mean().item<double>() - 0.5) < 4 * 0.5 / root);
        auto const b = call("cantle::counter_bernoulli", {{"p", 0.2}}, many, type).to(at::kDouble);
        CHECK(std::abs(b.mean().item<double>() - 0.2) < 4 * 0.4 / root);
        CHECK(at::equal(b, b * b));
    }
    // The float32 draw is the float64 draw, cut off.
    auto const wide = call("cantle::counter_uniform", {{"from", 0.0}, {"to", 1.0}}, many);
    auto const narrow = call("cantle::counter_uniform", {{"from", 0.0}, {"to", 1.0}}, many, at::kFloat).to(at::kDouble);
    CHECK((wide - narrow).min().item<double>() >= 0);
    CHECK((wide - narrow).max().item<double>() < std::ldexp(1.0, -24));
    // Neighbours, the two of a block among them, are not correlated; nor are their normals.
    auto const z = call("cantle::counter_normal", {{"mean", 0.0}, {"std", 1.0}}, many);
    for (auto const& t : {(wide - 0.5) * std::sqrt(12.0), z}) {
        auto const correlation = (t.slice(0, 0, 39999) * t.slice(0, 1, 40000)).mean().item<double>();
        CHECK(std::abs(correlation) < 4 / root);
    }
    auto const dice = call("cantle::counter_randint", {{"low", std::int64_t{-2}}, {"high", std::int64_t{4}}}, many, at::kLong);
    for (std::int64_t side = -2; side < 4; ++side)
        CHECK(std::abs((dice == side).to(at::kDouble).mean().item<double>() - 1.0 / 6) < 4 * 0.373 / root);
    CHECK(dice.min().item<std::int64_t>() == -2);
    CHECK(dice.max().item<std::int64_t>() == 3);
    auto const order = call("cantle::counter_randperm", {}, {1000}, at::kLong);
    CHECK(at::equal(std::get<0>(order.sort()), at::arange(1000, at::kLong)));
    CHECK_FALSE(at::equal(order, at::arange(1000, at::kLong)));
}

TEST_CASE("seed, op and element each change what is drawn, and the generator of PyTorch is left alone") {
    auto const draw = [](std::uint64_t seed, std::int64_t number) {
        seeded const run(seed);
        return call("cantle::counter_uniform", {{"from", 0.0}, {"to", 1.0}}, {100}, at::kDouble, number);
    };
    at::manual_seed(3);
    auto const before = at::rand({4});
    at::manual_seed(3);
    auto const a = draw(1, 1);
    CHECK(at::equal(at::rand({4}), before));
    CHECK(at::equal(a, draw(1, 1)));
    for (auto const& other : {draw(2, 1), draw(1, 2), draw(std::uint64_t{1} << 40 | 1, 1), draw(1, std::int64_t{1} << 40 | 1)})
        CHECK(at::eq(a, other).sum().item<std::int64_t>() == 0);
    CHECK(std::get<0>(at::_unique(a)).numel() == 100);
}

TEST_CASE("dropout keeps native_dropout's meaning: p of 0 and 1, evaluation, the scale, and what a mask does to infinities") {
    seeded const run(1);
    auto const dropout = [](at::Tensor const& x, double p, argument_value train) {
        op const o{"cantle::counter_dropout",
                   {{"input", operand_slot{0}},
                    {"p", p},
                    {"train", std::move(train)},
                    {"draw", std::int64_t{0}},
                    {"first", std::int64_t{0}},
                    {"counts", std::vector<std::int64_t>{x.numel()}},
                    {"strides", std::vector<std::int64_t>{1}}}};
        return call_op(o, std::vector<at::Tensor>{x});
    };
    auto const torch = [](at::Tensor const& x, double p, argument_value train) {
        op const o{"aten::native_dropout", {{"input", operand_slot{0}}, {"p", p}, {"train", std::move(train)}}};
        return call_op(o, std::vector<at::Tensor>{x});
    };
    for (auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
        auto const x = at::linspace(-3, 5, 64, at::kDouble).to(type).reshape({8, 8});
        for (argument_value const& train : {argument_value{true}, argument_value{false}, argument_value{}})
            for (double p : {0.0, 1.0}) CHECK(same(dropout(x, p, train), torch(x, p, train)));
        CHECK(same(dropout(x, 0.5, false), torch(x, 0.5, false)));
        auto const out = dropout(x, 0.25, true);
        CHECK((out[1].scalar_type() == at::kBool));
        auto const wide = type == at::kDouble ? at::kDouble : at::kFloat;
        CHECK(at::equal(out[0], x.to(wide).mul(out[1]).mul(1 / 0.75).to(type)));
        CHECK(out[1].any().item<bool>());
        CHECK_FALSE(out[1].all().item<bool>());
    }
    auto const infinite = at::full({4}, std::numeric_limits<double>::infinity(), at::kDouble);
    CHECK(at::equal(dropout(infinite, 1.0, true)[0].isnan(), torch(infinite, 1.0, true)[0].isnan()));
    CHECK_THROWS(dropout(infinite, 1.5, true));
    CHECK(dropout(at::zeros({0, 3}, at::kDouble), 0.5, true)[1].numel() == 0);
}
