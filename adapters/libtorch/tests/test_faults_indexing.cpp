// SPDX-License-Identifier: BSL-1.0
// Faults that users of such systems reported, in views, slices, joins, indexing and embedding, with numbers: what is right is declared by
// the rules and true on simulated ranks, what was wrong is not declared, and refuted where the numbers can tell. Expected values are made
// by the op on whole tensors.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/samples/samples.hpp>
#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <algorithm>
#include <string>

using namespace cantle;
using namespace cantle::libtorch;

namespace {
using texts = std::vector<std::string>;
using i = std::int64_t;

/// An op on whole operands and the strategies that the rules give it on a mesh of axes a, b.
class played {
public:
    played(rule_sample const& s, std::string const& mesh) : oracle_(s), mesh_(device_mesh::parse(mesh, axis_names(mesh))) {
        strategies_ = expand_axes(oracle_.query(), mesh_, standard_registry(), table_);
    }
    at::Tensor const& result() const { return oracle_.outputs()[0]; }
    bool declares(texts const& layouts) const {
        auto const wanted = parse(layouts);
        for (std::size_t s = 0; s < strategies_.size(); ++s)
            if (strategy_of(strategies_, s, table_).layouts == wanted) return true;
        return false;
    }
    oracle_verdict play(texts const& layouts) const { return oracle_.check(oracle_strategy{parse(layouts), {}}, mesh_); }
    /// Declared and true, without any communication.
    void right(texts const& layouts) const {
        CHECK_MESSAGE(declares(layouts), text(layouts));
        auto const v = play(layouts);
        CHECK_MESSAGE(v.holds(), text(layouts), ": ", v.reason);
    }
    /// Neither declared nor true.
    void wrong(texts const& layouts) const {
        CHECK_FALSE_MESSAGE(declares(layouts), text(layouts));
        CHECK_MESSAGE(play(layouts).refuted(), text(layouts));
    }
    /// Every strategy that the rules give is true.
    void all_right() const {
        for (std::size_t s = 0; s < strategies_.size(); ++s) {
            auto const v = oracle_.check(strategy_of(strategies_, s, table_), mesh_);
            CHECK_MESSAGE(v.holds(), oracle_.query().name(), ", strategy ", s, ": ", v.reason);
        }
        CHECK(strategies_.size() > 1);
    }

private:
    rule_oracle oracle_;
    device_mesh mesh_;
    layout_table table_;
    strategy_table strategies_;

    static std::string axis_names(std::string const& mesh) { return mesh.find('x') == std::string::npos ? "a" : "a,b"; }
    std::vector<layout> parse(texts const& layouts) const {
        std::vector<layout> l;
        for (auto const& t : layouts) l.push_back(layout::parse(mesh_, t));
        return l;
    }
    std::string text(texts const& layouts) const {
        std::string t = oracle_.query().name();
        for (auto const& l : layouts) t += " | " + l;
        return t;
    }
};

rule_sample view(shape const& from, shape const& to) { return sample("aten::view").arg("self", eighths(from)).arg("size", to); }
rule_sample slice(at::Tensor x, i dim, i start, i end, i step = 1) {
    return sample("aten::slice.Tensor").arg("self", std::move(x)).arg("dim", dim).arg("start", start).arg("end", end).arg("step", step);
}
at::Tensor longs(std::vector<i> const& values) { return at::tensor(values, at::kLong); }
rule_sample index_put(at::Tensor self, std::vector<at::Tensor> const& by, at::Tensor values, bool accumulate) {
    auto s = sample("aten::index_put").arg("self", std::move(self));
    return s.arg("indices", by).arg("values", std::move(values)).arg("accumulate", accumulate);
}
}  // namespace

// ---- views

TEST_CASE("A1: [12,8] cut in its columns viewed as [16,6] is no shard of any kind") {
    played const v(view({12, 8}, {16, 6}), "4");
    for (auto out : {"S0", "S0; d0=2>a", "S0; d0=4>a"}) v.wrong({"S1", out});
    v.right({"S0", "S0"});
    CHECK_FALSE(played(view({12, 8}, {16, 6}), "6").declares({"S1", "S0"}));  // A2: 16 % 6
}

//  [4,4,4] cut by 2 in the middle, viewed as [8,8]: rows 0, 2, 4, 6 are on rank 0
TEST_CASE("A2: a split of a flattened dim is no plain shard, it has a whole factor in front") {
    played const v(view({4, 4, 4}, {8, 8}), "2x3");
    v.right({"S1,R", "S0,R; d0=4>a"});
    v.wrong({"S1,R", "S0,R"});
    auto const mesh = device_mesh::parse("2x3", "a,b");
    CHECK(held_indices(layout::parse(mesh, "S0,R; d0=4>a"), mesh, {8, 8}, 0)[0] == shape{0, 2, 4, 6});
}

TEST_CASE("A4: a dim cut by two axes comes back from flatten and unflatten as it was, with the same values") {
    auto const x = eighths({2, 8, 3});
    played const flat(sample("aten::view").arg("self", x).arg("size", shape{16, 3}), "2x2");
    flat.right({"S1,S1", "S0,S0; d0=2>a>b"});
    played const back(sample("aten::view").arg("self", flat.result()).arg("size", shape{2, 8, 3}), "2x2");
    back.right({"S0,S0; d0=2>a>b", "S1,S1"});
    back.wrong({"S0,S0; d0=2>a>b", "S0,S1"});
    CHECK(at::equal(back.result(), x));
}

TEST_CASE("A5, A11: pieces that a view would have to cut anew are no strategy") {
    CHECK_FALSE(played(view({6, 256}, {1536}), "4").declares({"S0", "S0"}));
    played const heads(view({3, 24}, {3, 6, 4}), "4");
    CHECK_FALSE(heads.declares({"S1", "S1"}));
    heads.right({"S1; d1=6>a", "S2"});
    heads.wrong({"S1", "S2"});
}

TEST_CASE("A8: t of a vector leaves its cut where it is") {
    played const v(sample("aten::t").arg("self", eighths({12})), "3");
    v.right({"S0", "S0"});
}

//  cartesian_prod([4], [2]): both operands spread over [4, 2], stacked, [8, 2]
TEST_CASE("A10: the pairs of a cartesian product come out right, whichever operand is cut") {
    auto const a = eighths({4}), b = eighths({2});
    auto const spread = [](at::Tensor const& x, shape const& apart) {
        return sample("aten::expand").arg("self", x.view(apart)).arg("size", shape{4, 2}).arg("implicit", false);
    };
    played const left(spread(a, {4, 1}), "2"), right(spread(b, {1, 2}), "2");
    played const pairs(sample("aten::stack").arg("tensors", std::vector{left.result(), right.result()}).arg("dim", -1), "2");
    played const flat(sample("aten::view").arg("self", pairs.result()).arg("size", shape{8, 2}), "2");
    CHECK(at::equal(flat.result(), at::cartesian_prod({a, b})));
    left.right({"S0", "S0"});
    right.right({"R", "S0"});
    pairs.right({"S0", "S0", "S0"});
    flat.right({"S0", "S0"});
    left.right({"R", "S1"});
    right.right({"S1", "S1"});
    pairs.right({"S1", "S1", "S1"});
    flat.right({"S1", "S0; d0=4>a"});
}

TEST_CASE("A13: bytes viewed as long integers keep a cut of the other dims only") {
    played const v(sample("aten::view.dtype").arg("self", indices({12, 32}, 200).to(at::kByte)).arg("dtype", dtype::int64), "2");
    v.right({"S0", "S0"});
    CHECK_FALSE(v.declares({"S1", "S1"}));
}

TEST_CASE("E1: batch and sequence cut and flattened: the sequence's runs lie behind a whole factor") {
    played const v(view({4, 6, 5}, {24, 5}), "2x3");
    v.right({"S0,S1", "S0,S0; d0=a>2>b"});
    v.wrong({"S0,S1", "S0,S0"});
}

TEST_CASE("E2: the outer axis uses up a dim of size 2 and the inner one goes on to the next; backwards no factor is left") {
    played const apart(view({16}, {2, 8}), "2x2"), together(view({2, 8}, {16}), "2x2");
    apart.right({"S0,S0", "S0,S1"});
    together.right({"S0,S1", "S0,S0"});
    together.right({"R,S1", "R,S0; d0=2>b"});
    together.wrong({"S0,S1", "S0,S0; d0=a>2>b"});
    for (auto mesh : {"2x2", "2x3", "3x2"}) {
        played(view({24, 3}, {2, 12, 3}), mesh).all_right();
        played(view({2, 12, 3}, {24, 3}), mesh).all_right();
        played(view({4, 6, 6}, {4, 36}), mesh).all_right();
    }
}

// ---- slices and joins

TEST_CASE("A50: elements 4 to 11 of 16 are not 1 to 2 of every 4; every second element is local") {
    auto const x = at::arange(16, at::kDouble);
    played const middle(slice(x, 0, 4, 12), "4");
    CHECK(at::equal(middle.result(), at::arange(4, 12, at::kDouble)));
    middle.wrong({"S0", "S0"});
    middle.right({"P", "P"});
    for (i start : {0, 1}) played(slice(x, 0, start, 16, 2), "4").right({"S0", "S0"});
    played(slice(x, 0, 2, 16, 2), "4").wrong({"S0", "S0"});
    played(slice(x, 0, 0, 16), "4").right({"S0", "S0"});
    played(slice(x, 0, -16, INT64_MAX), "4").right({"S0", "S0"});
}

TEST_CASE("A38: the backwards of two slices of one shape differ by dim and start") {
    auto const grad = eighths({4, 4});
    auto const backward = [&](i dim, i start, shape const& whole) {
        return sample("aten::slice_backward").arg("grad_output", grad).arg("input_sizes", whole).arg("dim", dim).arg("start", start)
            .arg("end", argument_value(start + 4)).arg("step", 1);
    };
    played const first(backward(0, 0, {8, 4}), "2"), second(backward(0, 4, {8, 4}), "2"), columns(backward(1, 2, {4, 8}), "2");
    CHECK(at::equal(first.result().narrow(0, 0, 4), grad));
    CHECK(at::equal(second.result().narrow(0, 4, 4), grad));
    first.right({"S1", "S1"});
    second.right({"S1", "S1"});
    columns.right({"S0", "S0"});
    first.wrong({"S0", "S0"});
    columns.wrong({"S1", "S1"});
}

TEST_CASE("A53: cat of 60 tensors, and cat along a cut dim, which is no concatenation of local results") {
    std::vector<at::Tensor> many;
    for (int k = 0; k < 60; ++k) many.push_back(eighths({4, 2}));
    auto const cat = [](std::vector<at::Tensor> const& list, int dim) { return sample("aten::cat").arg("tensors", list).arg("dim", dim); };
    played const wide(cat(many, 1), "2");
    CHECK(wide.result().sizes() == at::IntArrayRef({4, 120}));
    wide.right(texts(61, "S0"));
    wide.wrong(texts(61, "S1"));
    played(cat({eighths({4, 5}), eighths({4, 5})}, 0), "4").wrong({"S0", "S0", "S0"});
    CHECK_FALSE(played(cat({eighths({3, 5}), eighths({3, 5})}, 0), "4").declares({"S0", "S0", "S0"}));
}

// ---- index_put and scatter

TEST_CASE("A43: writing ones to 16 places in shuffled order keeps each rank's own; cut updates are not where they belong") {
    played const v(index_put(at::zeros({16}, at::kDouble), {indices({16}, 16)}, at::ones({16}, at::kDouble), false), "2");
    CHECK(at::equal(v.result(), at::ones({16}, at::kDouble)));
    v.right({"S0", "R", "R", "S0"});
    v.wrong({"S0", "S0", "S0", "S0"});
    CHECK_FALSE(played(index_put(at::zeros({16}, at::kDouble), {at::arange(16)}, at::ones({16}, at::kDouble), false), "2")
                    .declares({"S0", "S0", "S0", "S0"}));
}

TEST_CASE("A44: values 1 to 4 on the diagonal of [4,4], cut by rows") {
    auto const values = at::arange(1, 5, at::kDouble);
    played const v(index_put(at::zeros({4, 4}, at::kDouble), {at::arange(4), at::arange(4)}, values, false), "4");
    CHECK(at::equal(v.result(), at::diag(values)));
    v.right({"S0", "R", "R", "R", "S0"});
    v.right({"S1", "R", "R", "R", "S1"});
    CHECK_FALSE(v.declares({"S0", "R", "R", "S0", "S0"}));
    played(index_put(at::zeros({4, 4}, at::kDouble), {at::arange(4), at::arange(4)}, values, true), "2x2").all_right();
}

//  scores [tokens, experts], two experts per token
TEST_CASE("A46: a router's scatter along experts needs nothing from other ranks; a src with more rows than the index stays whole") {
    auto const scores = eighths({12, 8});
    auto const ids = std::get<1>(at::topk(scores, 2)), weights = std::get<0>(at::topk(scores, 2));
    auto const scatter = [&](at::Tensor index, at::Tensor src) {
        return sample("aten::scatter.src").arg("self", at::zeros({12, 8}, at::kDouble)).arg("dim", -1).arg("index", std::move(index)).arg("src", std::move(src));
    };
    played const v(scatter(ids, weights), "3");
    CHECK(at::equal(v.result().gather(-1, ids), weights));
    v.right({"S0", "S0", "S0", "S0"});
    played(scatter(ids, weights), "2").right({"S1", "R", "R", "S1"});
    played const longer(scatter(ids.narrow(0, 0, 6), weights), "3");
    longer.wrong({"S0", "S0", "S0", "S0"});
    played(scatter(ids, weights), "2x2").all_right();
}

TEST_CASE("reading a cut table: rows of other ranks count as zero, on both axes and with negative indices") {
    auto const index = sample("aten::index.Tensor").arg("self", eighths({12, 4})).arg("indices", std::vector{longs({-1, 0, 5, -12, 7, 11})});
    played(index, "2").right({"S0", "R", "P"});
    played(index, "2x3").right({"S0,S0", "R,R", "P,P"});
    played(index, "3x2").right({"S0,R", "R,S0", "P,S0"});
    for (auto mesh : {"2x2", "2x3", "3x2"}) played(index, mesh).all_right();
}

// ---- sorting

TEST_CASE("A55: sort over another dim, histc with other bins: each call has the result of its own arguments") {
    auto const x = eighths({6, 12});
    for (i dim : {0, 1}) {
        played const v(sample("aten::sort").arg("self", x).arg("dim", dim).arg("descending", false), "3");
        CHECK(at::equal(v.result(), std::get<0>(at::sort(x, dim, false))));
        auto const kept = "S" + std::to_string(1 - dim), cut = "S" + std::to_string(dim);
        v.right({kept, kept, kept});
        v.wrong({cut, cut, cut});
    }
    for (i bins : {4, 6}) {
        played const v(sample("aten::histc").arg("self", x).arg("bins", bins).arg("min", 0.0).arg("max", 3.0), "3");
        CHECK(v.result().size(0) == bins);
        v.right({"S0", "P"});
        v.wrong({"S0", "R"});
    }
}

// ---- embedding

TEST_CASE("A47: two tables of one model, of one shape, or of one vocabulary and two widths, have their own offsets and masks") {
    struct { i vocabulary, width; } const tables[] = {{12, 4}, {12, 4}, {12, 6}, {24, 4}};
    auto const tokens = longs({0, 7, 3, 11, 6, 5});
    for (auto const& [vocabulary, width] : tables) {
        auto const weight = eighths({vocabulary, width});
        played const forward(
            sample("aten::embedding").arg("weight", weight).arg("indices", tokens).arg("padding_idx", 3).arg("scale_grad_by_freq", false).arg("sparse", false), "2");
        CHECK(at::equal(forward.result(), weight.index_select(0, tokens)));
        forward.right({"S0", "R", "P"});
        forward.wrong({"S0", "R", "R"});
        auto const grad = eighths({6, width});
        for (bool scale : {false, true}) {
            played const backward(sample("aten::embedding_dense_backward").arg("grad_output", grad).arg("indices", tokens)
                                      .arg("num_weights", argument_value(vocabulary)).arg("padding_idx", 3).arg("scale_grad_by_freq", scale), "2");
            CHECK(at::equal(backward.result()[7], grad[1]));
            CHECK_FALSE(backward.result()[3].any().item<bool>());  // the padding row gets none
            backward.right({"R", "R", "S0"});
            if (!scale) backward.right({"S0", "S0", "P"});
        }
    }
    played(sample("aten::embedding").arg("weight", eighths({12, 4})).arg("indices", indices({6, 2}, 12)).arg("padding_idx", -1)
               .arg("scale_grad_by_freq", false).arg("sparse", false), "2x3").all_right();
}
