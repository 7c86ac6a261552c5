// SPDX-License-Identifier: BSL-1.0
// Every row of every standard rule against the real ATen op: soundness on axes of 2, 3 and 4 ranks, wrong rows that must be refuted, and
// mutations of true rows. What is true and not declared (completeness) is not looked for here.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/samples/samples.hpp>

#include <adapters/libtorch/op_values.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <ATen/Parallel.h>

#include <map>
#include <set>
#include <sstream>

using namespace cantle;
using namespace cantle::libtorch;

namespace {
bool const one_thread = (at::set_num_threads(1), true);  // the tensors are tiny: threads would only wait for each other

constexpr std::int64_t axis_sizes[] = {2, 3, 4};
constexpr auto R = placement::replicate();
constexpr auto P = placement::partial();
constexpr placement S(std::size_t d, std::int64_t outer = 1) { return placement::shard(d, outer); }
constexpr placement P_of(reduction r) { return placement::partial(r); }

std::string text_of_sample(rule_oracle const& oracle) {
    std::ostringstream text;
    text << oracle.query().name() << "(";
    for (auto const& t : oracle.query().operands) {
        text << (&t == oracle.query().operands.data() ? "[" : ", [");
        for (std::size_t d = 0; d < t.sizes.size(); ++d) text << (d ? "," : "") << t.sizes[d];
        text << "] " << to_string(t.type);
    }
    text << ")";
    return text.str();
}
/// Samples and global results, made once.
std::vector<rule_oracle> const& oracles() {
    static std::vector<rule_oracle> const all = [] {
        std::vector<rule_oracle> made;
        for (auto& s : rule_samples()) made.emplace_back(std::move(s));
        return made;
    }();
    return all;
}
rule_registry const& standard() {
    static rule_registry const r = standard_rules();
    return r;
}
/// All ops with a rule but those that only GPU kernels run.
std::vector<std::string> judged_ops() {
    auto const elsewhere = ops_without_cpu_kernel();
    std::vector<std::string> names;
    for (auto const& name : standard().op_names())
        if (std::find(elsewhere.begin(), elsewhere.end(), name) == elsewhere.end()) names.push_back(name);
    return names;
}
}  // namespace

TEST_CASE("every op that has a rule has samples of at least two shapes, and every sample's op has a rule") {
    std::map<std::string, std::set<std::string>> seen;
    for (auto const& o : oracles()) {
        std::ostringstream shapes;
        for (auto const& t : o.query().operands) shapes << at::IntArrayRef(t.sizes);
        for (auto const& t : o.query().outputs) shapes << at::IntArrayRef(t.sizes);
        seen[o.query().name()].insert(shapes.str());
        CHECK_MESSAGE(standard().covers(o.query()), o.query().name());
    }
    for (auto const& name : judged_ops())
        CHECK_MESSAGE((seen[name].size() >= 2 || name == "aten::scalar_tensor"), name, " has ", seen[name].size(), " shapes");
}

TEST_CASE("sample results are finite, so that a difference is always seen") {
    for (auto const& o : oracles())
        for (auto const& t : o.outputs())
            if (t.defined() && t.is_floating_point() && o.query().name().find("empty") == std::string::npos)
                CHECK_MESSAGE(at::isfinite(t).all().item<bool>(), text_of_sample(o));
}

TEST_CASE("soundness: every row of every rule holds on every sample, on 2, 3 and 4 ranks") {
    std::size_t checked = 0, skipped = 0;
    std::map<std::string, std::size_t> rows_of_op;
    for (auto const& o : oracles())
        for (auto n : axis_sizes)
            for (auto const& row : standard().rows(o.query(), n)) {
                auto const verdict = o.check(row, n);
                if (verdict.outcome == oracle_verdict::kind::does_not_divide) {
                    ++skipped;
                    continue;
                }
                ++checked;
                bool const whole = row == axis_row{std::vector<placement>(row.operands.size()), std::vector<placement>(row.outputs.size())};
                rows_of_op[o.query().name()] += !whole;
                CHECK_MESSAGE(verdict.holds(), text_of_sample(o), " on ", n, ", row ", text_of(row), ": ", verdict.reason);
            }
    // Full reductions that leave no kind of Partial, and factories whose every element depends on all.
    std::set<std::string> const made_whole{"aten::scalar_tensor", "aten::prod",     "aten::std",     "aten::std_mean",
                                           "aten::var",           "aten::var_mean", "aten::randperm"};
    for (auto const& name : judged_ops())
        if (!made_whole.count(name)) CHECK_MESSAGE(rows_of_op[name] > 0, name, ": no row but the whole one was ever run");
    MESSAGE(oracles().size(), " samples of ", standard().op_names().size(), " ops: ", checked, " rows hold, ", skipped, " do not divide");
}

TEST_CASE("every kind of split adds up, averages or bounds to the whole tensor exactly") {
    for (auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kBool}) {
        auto const whole = type == at::kBool ? flags({12, 4}) : eighths({12, 4}, false, type);
        for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min})
            for (auto n : axis_sizes)
                for (auto how : partial_splits) {
                    if (!has_partials(type, kind)) continue;
                    std::vector<plain_values> ranks;
                    for (auto const& t : split_partial(whole, kind, n, how, 7)) ranks.push_back(plain(t));
                    layout l(1);
                    l.set_partial(0, kind);
                    auto const off = difference(ranks, l, axis_of(n), plain(whole), true);
                    CHECK_MESSAGE(off.empty(), to_string(kind), " ", n, " ", to_string(how), " ", at::toString(type), ": ", off);
                }
    }
}

// [4][24] on (2,3): every layout cuts other elements; the pieces of one, read as another, are not the tensor.
TEST_CASE("pieces are the tensor again under their own layout only, with whole factors and both orders of axes on one dim") {
    auto const mesh = device_mesh::parse("2x3", "a,b");
    auto const whole = eighths({4, 24});
    std::vector<layout> layouts;
    for (auto text : {"R,R", "S0,R", "R,S1", "S0,S1", "S1,S1", "S1,S1; d1=b>a", "R,S1; d1=2>b", "R,S1; d1=4>b", "S1,S1; d1=2>a>b",
                      "S1,S1; d1=a>2>b", "S1,S1; d1=b>2>a"})
        layouts.push_back(layout::parse(mesh, text));
    for (auto const& held : layouts) {
        std::vector<plain_values> ranks;
        for (auto const& t : pieces_of({whole}, held, mesh)) ranks.push_back(plain(t));
        for (auto const& read : layouts)
            CHECK_MESSAGE(difference(ranks, read, mesh, plain(whole), true).empty() == (held == read), held.text(mesh), " read as ",
                          read.text(mesh));
    }
}

// ---- negative controls: an oracle that takes wrong rows for true proves nothing
// -----------------------------------------------------------

namespace {
void refuted(rule_sample s, axis_row const& row) {
    rule_oracle const o(std::move(s));
    for (auto n : axis_sizes) {
        auto const verdict = o.check(row, n);
        CHECK_MESSAGE(verdict.refuted(), text_of_sample(o), " on ", n, ", row ", text_of(row));
    }
}
sample two(char const* name, shape a, shape b) { return sample(name).arg("self", eighths(a)).arg("other", eighths(b)); }
sample reduction_of(char const* name) { return sample(name).arg("self", eighths({12, 24})).arg("dim", shape{1}).arg("keepdim", false); }
sample cast(at::ScalarType from, dtype to) { return sample("aten::_to_copy").arg("self", eighths({12, 4}, false, from)).arg("dtype", to); }
}  // namespace

TEST_CASE("E6: a replicated bias added to a partial product is counted once per rank, and the oracle sees it") {
    refuted(two("aten::add.Tensor", {12, 4}, {12, 4}), {{P, R}, {P}});
    refuted(two("aten::add.Tensor", {12, 4}, {4}), {{R, P}, {P}});
    refuted(sample("aten::add.Scalar").arg("self", eighths({12})).arg("other", 1.0), {{P}, {P}});
    refuted(sample("aten::linear").arg("input", eighths({12, 24})).arg("weight", eighths({12, 24})).arg("bias", eighths({12})),
            {{S(1), S(1), R}, {P}});
    refuted(sample("aten::linear").arg("input", eighths({12, 24})).arg("weight", eighths({12, 24})).arg("bias", eighths({12})),
            {{P, R, R}, {P}});
}

TEST_CASE("a product of two partial tensors is no partial product") {
    refuted(two("aten::mul.Tensor", {12, 4}, {12, 4}), {{P, P}, {P}});
    refuted(two("aten::div.Tensor", {12, 4}, {12, 4}), {{R, P}, {P}});
    refuted(sample("aten::mm").arg("self", eighths({12, 12})).arg("mat2", eighths({12, 12})), {{P, P}, {P}});
}

TEST_CASE("A32: functions that bend do not pass Partial(sum)") {
    for (auto name : {"aten::silu", "aten::abs", "aten::relu", "aten::tanh", "aten::sigmoid", "aten::sign"})
        refuted(sample(name).arg("self", eighths({12, 4})), {{P}, {P}});
    refuted(sample("aten::gelu").arg("self", eighths({12, 4})).arg("approximate", "none"), {{P}, {P}});
    refuted(sample("aten::pow.Tensor_Scalar").arg("self", eighths({12, 4})).arg("exponent", 2), {{P}, {P}});
    refuted(sample("aten::clamp_min").arg("self", eighths({12, 4})).arg("min", 0.0), {{P}, {P}});
    refuted(sample("aten::neg").arg("self", eighths({12, 4})), {{P_of(reduction::max)}, {P_of(reduction::max)}});
    refuted(sample("aten::abs").arg("self", eighths({12, 4})), {{P_of(reduction::max)}, {P_of(reduction::max)}});
}

TEST_CASE("a reduced dim that is cut is neither a shard nor another kind of Partial") {
    refuted(reduction_of("aten::sum.dim_IntList").arg("dtype", none), {{S(1)}, {S(0)}});
    refuted(reduction_of("aten::sum.dim_IntList").arg("dtype", none), {{S(1)}, {P_of(reduction::avg)}});
    refuted(reduction_of("aten::sum.dim_IntList").arg("dtype", none), {{S(1)}, {R}});
    refuted(reduction_of("aten::mean.dim").arg("dtype", none), {{S(1)}, {P}});
    refuted(reduction_of("aten::amax"), {{S(1)}, {P}});
    refuted(reduction_of("aten::amax"), {{S(1)}, {P_of(reduction::min)}});
    refuted(reduction_of("aten::amax"), {{P}, {P}});
    refuted(reduction_of("aten::amin"), {{P_of(reduction::max)}, {P_of(reduction::max)}});
}

TEST_CASE("A22, A23: indices of a maximum over a cut dim are no Partial(max)") {
    auto const argmax = sample("aten::argmax").arg("self", eighths({12, 24})).arg("dim", 1).arg("keepdim", false);
    for (auto kind : {reduction::sum, reduction::avg, reduction::max, reduction::min}) refuted(argmax, {{S(1)}, {P_of(kind)}});
    auto const max = sample("aten::max.dim").arg("self", eighths({12, 24})).arg("dim", 1).arg("keepdim", false);
    refuted(max, {{S(1)}, {P_of(reduction::max), P_of(reduction::max)}});
}

TEST_CASE("A31: softmax does not pass a cut of its own dim") {
    refuted(sample("aten::_softmax").arg("self", eighths({12, 24}) / 8).arg("dim", -1).arg("half_to_float", false), {{S(1)}, {S(1)}});
    refuted(sample("aten::_log_softmax").arg("self", eighths({12, 24}) / 8).arg("dim", 0).arg("half_to_float", false), {{S(0)}, {S(0)}});
}

TEST_CASE("E5: rounding casts do not pass Partial(sum); 0.5 and 0.5 as whole numbers are 0 and 0") {
    refuted(cast(at::kFloat, dtype::bfloat16), {{P}, {P}});
    refuted(cast(at::kDouble, dtype::float16), {{P}, {P}});
    refuted(cast(at::kFloat, dtype::int64), {{P}, {P}});
    refuted(cast(at::kDouble, dtype::boolean), {{P}, {P}});
    refuted(two("aten::div.Tensor_mode", {12, 4}, {12, 4}).arg("rounding_mode", "floor"), {{P, R}, {P}});
    rule_oracle const widening(cast(at::kBFloat16, dtype::float32));
    for (auto n : axis_sizes) CHECK(widening.check({{P}, {P}}, n).holds());
}

TEST_CASE("A1, A2: a wrong whole factor, or none, is refuted") {
    auto const flatten = sample("aten::view").arg("self", eighths({4, 12})).arg("size", shape{48});
    refuted(flatten, {{S(1)}, {S(0)}});
    refuted(flatten, {{S(1)}, {S(0, 2)}});
    refuted(flatten, {{S(1)}, {R}});
    rule_oracle const o(flatten);
    CHECK(o.check({{S(1)}, {S(0, 4)}}, 3).holds());
}

TEST_CASE("A40: attention cut by sequence is refuted, queries of a causal one too") {
    auto const q = eighths({2, 2, 12, 4}) / 32, k = eighths({2, 2, 12, 4}) / 32, v = eighths({2, 2, 12, 4});
    auto const make = [&](bool causal) {
        return sample("cantle::sdpa")
            .arg("query", q)
            .arg("key", k)
            .arg("value", v)
            .arg("attn_mask", none)
            .arg("dropout_p", 0.0)
            .arg("is_causal", causal)
            .arg("scale", none)
            .arg("enable_gqa", false);
    };
    refuted(make(false), {{S(2), S(2), S(2)}, {S(2), S(2)}});
    refuted(make(true), {{S(2), R, R}, {S(2), S(2)}});
    refuted(make(false), {{R, S(2), S(2)}, {P, P}});
}

TEST_CASE("A25, A26: cross-entropy without its inner reductions is refuted") {
    auto target = indices({12}, 24);
    target.slice(0, 0, 3).fill_(-100);
    auto const make = [&](char const* reduce) {
        return sample("cantle::cross_entropy")
            .arg("logits", eighths({12, 24}) / 16)
            .arg("target", target)
            .arg("ignore_index", -100)
            .arg("reduction", reduce);
    };
    inner_collective const maximum{collective_kind::all_reduce, reduction::max, true, 1},
        sum{collective_kind::all_reduce, reduction::sum, true, 1}, count{collective_kind::all_reduce, reduction::sum, true, 2};
    refuted(make("mean"), axis_row{{S(0), S(0)}, {P_of(reduction::avg), S(0), R}, {count}});
    refuted(make("mean"), axis_row{{S(0), S(0)}, {P_of(reduction::avg), S(0), P}, {}});
    refuted(make("mean"), axis_row{{S(1), R}, {R, R, R}, {maximum, sum}, true});
    refuted(make("mean"), axis_row{{S(1), R}, {R, R, R}, {maximum}, true});
    refuted(make("sum"), axis_row{{S(1), R}, {P, R, R}, {maximum, sum, sum}, true});
    refuted(make("none"), axis_row{{S(0), S(0)}, {P, S(0), R}, {count}});
}

TEST_CASE("A47: a vocabulary cut without the mask is refuted, and so are averages of it") {
    auto const make = sample("aten::embedding")
                          .arg("weight", eighths({24, 12}))
                          .arg("indices", indices({12}, 24))
                          .arg("padding_idx", -1)
                          .arg("scale_grad_by_freq", false)
                          .arg("sparse", false);
    rule_registry unmasked;
    unmasked.add("aten::embedding", rules::embedding_rule);
    for (auto n : axis_sizes) CHECK(rule_oracle(make, unmasked).check(axis_row{{S(0), R}, {P}, {}, true}, n).refuted());
    refuted(make, axis_row{{S(0), R}, {P_of(reduction::max)}, {}, true});
    auto const backward = sample("aten::embedding_dense_backward")
                              .arg("grad_output", eighths({12, 4}))
                              .arg("indices", indices({12}, 4))
                              .arg("num_weights", 24)
                              .arg("padding_idx", -1)
                              .arg("scale_grad_by_freq", true);
    refuted(backward, {{S(0), S(0)}, {P}});
}

TEST_CASE("A35: gradients of layer_norm parameters over cut tokens are sums, not copies or averages") {
    auto const x = eighths({12, 8}), w = eighths({8});
    auto const forward = sample("aten::native_layer_norm")
                             .arg("input", x)
                             .arg("normalized_shape", shape{8})
                             .arg("weight", w)
                             .arg("bias", w)
                             .arg("eps", 1e-5);
    auto const out = call_op(forward.made.operation, forward.made.operands);
    auto const make = sample("aten::native_layer_norm_backward")
                          .arg("grad_out", eighths({12, 8}))
                          .arg("input", x)
                          .arg("normalized_shape", shape{8})
                          .arg("mean", out[1])
                          .arg("rstd", out[2])
                          .arg("weight", w)
                          .arg("bias", w)
                          .arg("output_mask", std::vector<bool>{true, true, true});
    refuted(make, {{S(0), S(0), S(0), S(0), R, R}, {S(0), R, P}});
    refuted(make, {{S(0), S(0), S(0), S(0), R, R}, {S(0), P_of(reduction::avg), P}});
    refuted(make, {{P, P, R, R, R, R}, {P, P, P}});
}

