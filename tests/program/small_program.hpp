// SPDX-License-Identifier: BSL-1.0
#pragma once
// A program small enough to work out by hand: two ranks, a plan written down here, prices by kind.
//
//     x [8,8] S0 --> relu --> mm --> y S0 --all_gather--> output R          local x [4,8], h [4,8], y [4,8]
//     w [8,8] S1 --all_gather, unpacked--> R --^                            local w [8,4] -> [8,8]
//     steps: 0 relu   1 all_gather w   2 mm   3 all_gather y
#include <cantle/graph/builder.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/program/ready_programs.hpp>

#include <utility>

namespace cantle::test {

/// Ops as they are: enough where no op needs its rank's offset.
struct ops_as_they_are {
    local_program local(local_view const& v) const {
        local_program p(v.operands.size());
        run_as_is(v, p);
        return p;
    }
};

/// relu 4 us, mm 3 us; a collective 5 us, and 5 more where it copies.
struct small_prices {
    double compute(op_query const& q) const { return q.name() == "aten::relu" ? 4 : 3; }
    double collective(collective_call const& c) const { return c.packed_bytes > 0 ? 10 : 5; }
    void feed(stable_hasher& h) const { h.add("small"); }
};

struct small_case {
    training_graph graph;
    sharding_plan plan;
    rank_program program;
};

inline small_case small_program() {
    graph_builder b;
    auto const x = b.input("x", {8, 8});
    auto const w = b.parameter("w", {8, 8});
    auto const h = b.relu(x);
    auto const y = b.mm(h, w);
    b.output(y, "y");
    small_case c{b.build(), {}, {}};
    auto& p = c.plan;
    p.mesh = device_mesh::parse("2", "tp");
    p.made_from.graph = structural_hash(c.graph);
    p.memory.parameters_global = 256;
    p.memory.parameters_local = 128;
    for (auto const* text : {"S0", "S1", "R"}) p.layouts.push_back(layout::parse(p.mesh, text));
    enum : plan_layout { S0, S1, R };
    p.nodes = {{{}, {S0}, 0, {}}, {{}, {S1}, 0, {}}, {{S0}, {S0}, 4, {}}, {{S0, R}, {S0}, 3, {}}, {{R}, {R}, 0, {}}};
    auto const gather = [&](plan_layout from, std::uint8_t dim, vertex of, vertex user, std::uint32_t operand, double cost) {
        transition const t{collective_kind::all_gather, {0}, dim, 0, reduction::sum, p.layouts[R]};
        p.paths.push_back({from, R, {{t, {collective_kind::all_gather, 1, 128, 256, dim ? 256 : 0, reduction::sum}, cost}}, cost});
        tensor_move m;
        m.value = {of, 0};
        m.user = user;
        m.operand = operand;
        m.path = static_cast<std::uint32_t>(p.paths.size() - 1);
        p.moves.push_back(m);
    };
    gather(S1, 1, w.node, y.node, 1, 10);
    gather(S0, 0, y.node, static_cast<vertex>(c.graph.size() - 1), 0, 5);
    c.program = ready_program(c.graph, c.plan, ops_as_they_are(), 0);  // the gather of w starts first
    return c;
}

}  // namespace cantle::test
