// SPDX-License-Identifier: BSL-1.0
// Random graphs under random feasible plans, run: outputs and gradients are those of one rank, and what ran is what the plan priced.
//
//   seed -> graph (captured with its backward, or around one op) -> plan (optimal, random prices, random labels) -> ranks as threads
//                                   \-> replay on one rank --------------------------------------------------------------- the same
//
// CANTLE_RUN_CASES=10000 runs more; CANTLE_RUN_SEED=n begins there.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/property/run_cases.hpp>
#include <adapters/libtorch/property/surgery.hpp>

#include <cantle/graph/builder.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

namespace {

using namespace cantle;
using namespace cantle::libtorch;

std::uint64_t from_environment(char const* name, std::uint64_t otherwise) {
    char const* const text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// The first seeds whose cases the fault breaks, shrunk.
std::vector<shrunk_case> shrunk_under(tamper_programs const& fault, std::size_t wanted) {
    std::vector<shrunk_case> found;
    for (std::uint64_t seed = 1; seed <= 200 && found.size() < wanted; ++seed) {
        auto const drawn = draw_case(seed);
        if (!drawn.made) continue;
        if (auto const failed = failure_of(*drawn.made, fault)) found.push_back(shrink(*drawn.made, *failed, fault));
    }
    return found;
}

at::Tensor strided(at::Tensor const& t) { return t.transpose(0, -1).contiguous().transpose(0, -1); }

}  // namespace

TEST_CASE("random graphs under random feasible plans give the numbers of one rank by the collectives that were priced") {
    at::set_num_threads(1);
    auto const count = from_environment("CANTLE_RUN_CASES", 300);
    auto const report = run_cases(from_environment("CANTLE_RUN_SEED", 1), count);
    std::cout << report.text();
    CHECK(report.failures.empty());
    if (count < 300) return;
    // The cases are worth something: few are refused, many are exact, tensors do move, and ops are of many kinds.
    CHECK(report.refused * 20 <= report.cases);
    CHECK(report.exact * 6 >= report.cases);
    CHECK(report.moves >= 5 * report.cases);
    CHECK(report.steps > report.moves);
    CHECK(report.by_op.size() >= 100);
}

//  x [2,4] S0 -- sum over dim 0 --> P -- all_reduce --> R
TEST_CASE("a case that is written down is run as it stands") {
    graph_builder b;
    auto const x = b.input("x", {2, 4}, dtype::float64);
    auto const y = b.sum(x, {0});
    auto const out = b.output(y, "result");
    written_case c(b.graph(), "2");
    c.place(x, {}, {"S0"});
    c.place(y, {"S0"}, {"P"});
    c.place(out, {"R"}, {});
    c.data("x", {1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(c.failure() == "");
    auto const kind = failure_of(c.made(), [](std::vector<rank_program>& programs) {
        for (auto& p : programs)
            for (auto& s : p.steps)
                if (s.is_transfer()) s.move.reduce = reduction::max;
    });
    REQUIRE(kind.has_value());
    CHECK(kind->kind == "numbers");
    CHECK(kind->where == "result");
    // Placements that no strategy of the op has are no case.
    c.place(y, {"S1"}, {"P"});
    CHECK_THROWS(c.made());
}

TEST_CASE("whatever is broken, a failing case shrinks to a few ops and is printed as a test") {
    at::set_num_threads(1);
    // A collective that reduces wrongly, one that puts pieces together in the wrong order, and a wrong local op.
    tamper_programs const faults[] = {
        [](std::vector<rank_program>& programs) {
            for (auto& p : programs)
                for (auto& s : p.steps)
                    if (s.is_transfer() && s.move.kind == collective_kind::reduce_scatter) s.move.reduce = reduction::max;
        },
        [](std::vector<rank_program>& programs) {
            for (auto& p : programs)
                for (auto& s : p.steps)
                    if (s.is_transfer() && s.move.kind == collective_kind::all_to_all && s.move.unpack.view.size() > 1)
                        s.move.unpack = {s.move.unpack.result, cantle::detail::same(s.move.unpack.result).order, s.move.unpack.result};
        },
        [](std::vector<rank_program>& programs) {
            for (auto& s : programs[0].steps)
                if (s.call.name == "aten::mul.Tensor") s.call.name = "aten::add.Tensor";
        },
    };
    for (auto const& fault : faults) {
        auto const found = shrunk_under(fault, 2);
        CHECK(found.size() == 2);
        for (auto const& f : found) {
            auto const text = text_of(f.small, "a minimal case");
            CAPTURE(text);
            CHECK(op_count(f.small.graph) <= 3);
            CHECK(f.small.plan.mesh.dims() == 1);
            CHECK(failure_of(f.small, fault).has_value());
            CHECK_FALSE(failure_of(f.small).has_value());
            CHECK(text.find("TEST_CASE(\"a minimal case\") {") == 0);
            CHECK(text.find("CHECK(c.failure() == \"\");") != std::string::npos);
        }
    }
}

// Found by seed 1087: a query whose rows are no contiguous memory. PyTorch's kernel reads past its end then.
TEST_CASE("attention on the CPU does not depend on strides") {
    at::manual_seed(5);
    auto const q = at::randn({8, 2, 4, 3}, at::kDouble), k = at::randn({8, 2, 4, 3}, at::kDouble), v = at::randn({8, 2, 4, 3}, at::kDouble);
    op const sdpa{"cantle::sdpa", {{"query", operand_slot{0}}, {"key", operand_slot{1}}, {"value", operand_slot{2}}}};
    std::vector<at::Tensor> const dense{q, k, v}, others{strided(q), strided(k), strided(v)};
    auto const want = call_op(sdpa, dense), got = call_op(sdpa, others);
    CHECK(at::equal(got[0], want[0]));
    CHECK(at::equal(got[1], want[1]));
    op const backward{"cantle::sdpa_backward", {{"grad_out", operand_slot{0}}, {"query", operand_slot{1}}, {"key", operand_slot{2}},
                                                {"value", operand_slot{3}}, {"out", operand_slot{4}}, {"logsumexp", operand_slot{5}}}};
    std::vector<at::Tensor> const dense_back{q, q, k, v, want[0], want[1]};
    std::vector<at::Tensor> const others_back{strided(q), strided(q), strided(k), strided(v), strided(want[0]), want[1]};
    auto const want_back = call_op(backward, dense_back), got_back = call_op(backward, others_back);
    for (std::size_t i = 0; i < 3; ++i) CHECK(at::equal(got_back[i], want_back[i]));
}

// A gradient that is a transpose, a parameter that is not.
TEST_CASE("fused optimizers and the gradient of layer_norm do not depend on strides") {
    auto const p = at::randn({2, 12}, at::kDouble), g = at::randn({2, 12}, at::kDouble), m = at::randn({2, 12}, at::kDouble);
    op const sgd{"aten::_fused_sgd",
                 {{"self", operand_slots{{0}}}, {"grads", operand_slots{{1}}}, {"momentum_buffer_list", operand_slots{{2}}},
                  {"weight_decay", 0.25}, {"momentum", 0.5}, {"lr", 0.125}, {"dampening", 0.25}, {"nesterov", false}, {"maximize", false},
                  {"is_first_step", false}}};
    std::vector<at::Tensor> const dense{p, g, m}, others{p, strided(g), m};
    CHECK(at::equal(call_op(sgd, others)[0], call_op(sgd, dense)[0]));

    auto const x = at::randn({2, 12, 8}, at::kDouble), w = at::randn({8}, at::kDouble);
    auto const [y, mean, rstd] = at::native_layer_norm(x, {8}, w, w, 1e-5);
    op const norm{"aten::native_layer_norm_backward",
                  {{"grad_out", operand_slot{0}}, {"input", operand_slot{1}}, {"normalized_shape", shape{8}}, {"mean", operand_slot{2}},
                   {"rstd", operand_slot{3}}, {"weight", operand_slot{4}}, {"bias", operand_slot{4}},
                   {"output_mask", std::vector<bool>{true, true, true}}}};
    auto const turned = [](at::Tensor const& t) { return t.transpose(0, 1).contiguous().transpose(0, 1); };
    std::vector<at::Tensor> const dense_norm{y, x, mean, rstd, w}, others_norm{y, x, turned(mean), turned(rstd), w};
    auto const want = call_op(norm, dense_norm), got = call_op(norm, others_norm);
    for (std::size_t i = 0; i < 3; ++i) CHECK(at::equal(got[i], want[i]));
}
