// SPDX-License-Identifier: BSL-1.0
// Uneven strategies against the real ATen ops: every one that the expansion admits holds on every sample.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/rules/expand_axes.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <map>
#include <set>
#include <string>

using namespace cantle;
using namespace cantle::libtorch;

namespace {

std::string text_of(rule_oracle const& oracle, oracle_strategy const& s, device_mesh const& mesh) {
    auto const q = oracle.query();
    std::string text = q.name() + " on " + mesh.text();
    for (std::size_t p = 0; p < s.layouts.size(); ++p) {
        auto const& t = p < q.operands.size() ? q.operands[p] : q.outputs[p - q.operands.size()];
        text += (p == q.operands.size() ? " -> " : " ") + shape_text(t.sizes) + " " + s.layouts[p].text(mesh);
    }
    return text;
}
bool is_uneven(oracle_strategy const& s, op_query const& q) {
    for (std::size_t p = 0; p < s.layouts.size(); ++p) {
        auto const& t = p < q.operands.size() ? q.operands[p] : q.outputs[p - q.operands.size()];
        for (std::size_t d = 0; d < t.rank(); ++d)
            if (s.layouts[p].is_uneven(d, t.sizes[d])) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("every uneven strategy of every rule holds on every sample, on one axis and on two") {
    std::size_t checked = 0, empty = 0;
    std::map<std::string, std::size_t> of_op, refuted;
    for (auto& sample : rule_samples()) {
        rule_oracle const oracle(std::move(sample));
        for (auto const* text : {"2", "3", "4", "2x2", "2x3"}) {
            auto const mesh = device_mesh::parse(text, std::string(text).size() > 1 ? "a,b" : "a");
            layout_table table;
            auto const q = oracle.query();
            auto const t = expand_axes(q, mesh, oracle.rules(), table, shard_policy::uneven);
            std::size_t here = 0;
            for (std::size_t s = 0; s < t.size() && here < 60; ++s) {
                auto const strategy = strategy_of(t, s, table);
                if (!is_uneven(strategy, q)) continue;
                auto const verdict = oracle.check(strategy, mesh);
                if (verdict.outcome == oracle_verdict::kind::does_not_divide) continue;
                ++here;
                ++checked;
                ++of_op[q.name()];
                for (std::size_t p = 0; p < strategy.layouts.size(); ++p) {
                    auto const& m = p < q.operands.size() ? q.operands[p] : q.outputs[p - q.operands.size()];
                    for (std::size_t d = 0; d < m.rank(); ++d) empty += smallest_piece(strategy.layouts[p], d, m.sizes[d]) == 0;
                }
                if (!verdict.holds() && ++refuted[q.name()] > 3) continue;
                CHECK_MESSAGE(verdict.holds(), text_of(oracle, strategy, mesh), ": ", verdict.reason);
            }
        }
    }
    MESSAGE(checked, " uneven strategies of ", of_op.size(), " ops hold");
    CHECK(checked > 1000);
    CHECK(of_op.size() > 50);
    CHECK(empty > 0);
}
