// SPDX-License-Identifier: BSL-1.0
// The check of programs, judged by breaking one: four ranks run every kind of step on even and uneven dims; then one rank's program is
// changed in one place, in every way there is, and each change must be refused.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/program/check.hpp>

#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace cantle;

namespace {

struct move_kind {
    char const* from;
    collective_kind kind;
    std::uint8_t axis, from_dim, to_dim;
};
// x [5, 8] on 2x2: rows 2 1 | 1 1 where both axes cut them
std::vector<move_kind> const moves = {
    {"S0,S0", collective_kind::all_gather, 1, 0, 0},   // nested, uneven
    {"S0,R", collective_kind::slice, 1, 0, 0},         // uneven
    {"P,R", collective_kind::reduce_scatter, 0, 0, 0}, // uneven
    {"R,P", collective_kind::all_reduce, 1, 0, 0},
    {"S0,R", collective_kind::all_to_all, 0, 0, 1},    // uneven to even
    {"S1,R", collective_kind::all_to_all, 0, 1, 0},    // even to uneven
    {"S1,S1", collective_kind::permute, 0, 1, 1},
    {"R,S1", collective_kind::all_gather, 1, 1, 0},
    {"R,P", collective_kind::reduce_scatter, 1, 0, 1},
    {"R,R", collective_kind::slice, 0, 0, 1},
};
shape const sizes{5, 8};

rank_program program_of(device_mesh const& mesh, std::int64_t rank) {
    rank_program p;
    p.rank = rank;
    p.mesh = mesh;
    auto const value = [&](shape s) {
        p.values.push_back({std::move(s), dtype::float32, true});
        return static_cast<program_value>(p.values.size() - 1);
    };
    auto const piece = [&](layout const& l) { return piece_of(l, mesh, sizes, rank); };
    layout now = layout::parse(mesh, "S0,R");
    auto at = value(piece(now).sizes);
    p.inputs.push_back({0, at, piece(now)});
    vertex v = 1;
    for (auto const& m : moves) {
        auto const from = layout::parse(mesh, m.from);
        program_step op;
        op.call.name = "aten::relu";
        op.at = v++;
        op.inputs = op.last_uses = {at};
        at = value(piece(from).sizes);
        op.outputs = {at};
        p.steps.push_back(op);
        bool found = false;
        for_each_transition({mesh, sizes, 4, {}, shard_policy::uneven}, from, [&](transition const& t) {
            bool const cuts = m.kind == collective_kind::slice || m.kind == collective_kind::reduce_scatter;
            if (found || t.kind != m.kind || (m.kind != collective_kind::permute && t.axes != std::vector{m.axis})) return;
            if (m.kind != collective_kind::all_reduce && (cuts ? t.to_dim != m.to_dim : t.from_dim != m.from_dim)) return;
            if (m.kind == collective_kind::all_to_all && t.to_dim != m.to_dim) return;
            found = true;
            program_step step;
            step.at = v;
            step.move = transfer_of(mesh, from, t, sizes, rank);
            step.inputs = step.last_uses = {at};
            at = value(step.move.after);
            step.outputs = {at};
            p.steps.push_back(step);
            now = t.to;
        });
        REQUIRE(found);
    }
    p.outputs.push_back({v, at, piece(now)});
    return p;
}
std::vector<rank_program> programs() {
    auto const mesh = device_mesh::parse("2x2");
    std::vector<rank_program> all;
    for (std::int64_t r = 0; r < 4; ++r) all.push_back(program_of(mesh, r));
    return all;
}
std::string refusal(std::vector<rank_program> const& all) {
    try {
        check_programs(all);
    } catch (error const& e) {
        CHECK(e.code() == error_code::bad_program);
        return e.what();
    }
    return {};
}

struct change {
    std::string name;
    std::function<void(rank_program&)> make;
};
using changes = std::vector<change>;

/// Every number of a list one up and one down, the list shorter and longer.
template <class Get>
void break_list(changes& all, std::string const& name, rank_program const& p, Get get) {
    auto const& list = get(const_cast<rank_program&>(p));
    for (std::size_t i = 0; i < list.size(); ++i)
        for (int by : {-1, 1})
            all.push_back({name + "[" + std::to_string(i) + "] by " + std::to_string(by), [=](rank_program& q) {
                               auto& x = get(q)[i];
                               x = static_cast<std::decay_t<decltype(x)>>(x + by);
                           }});
    if (!list.empty()) all.push_back({name + " shorter", [=](rank_program& q) { get(q).pop_back(); }});
    all.push_back({name + " longer", [=](rank_program& q) { get(q).push_back({}); }});
}
void break_transfer(changes& all, rank_program const& p, std::size_t s) {
    auto const at = "step " + std::to_string(s) + ": ";
    auto const& t = p.steps[s].move;
    for (int k = 0; k < 6; ++k)
        if (static_cast<collective_kind>(k) != t.kind)
            all.push_back({at + "kind " + std::string(to_string(static_cast<collective_kind>(k))),
                           [=](rank_program& q) { q.steps[s].move.kind = static_cast<collective_kind>(k); }});
    break_list(all, at + "axes", p, [=](rank_program& q) -> auto& { return q.steps[s].move.axes; });
    break_list(all, at + "before", p, [=](rank_program& q) -> auto& { return q.steps[s].move.before; });
    break_list(all, at + "after", p, [=](rank_program& q) -> auto& { return q.steps[s].move.after; });
    for (auto which : {&transfer::pack, &transfer::unpack}) {
        auto const name = at + (which == &transfer::pack ? "pack." : "unpack.");
        break_list(all, name + "view", p, [=](rank_program& q) -> auto& { return (q.steps[s].move.*which).view; });
        break_list(all, name + "order", p, [=](rank_program& q) -> auto& { return (q.steps[s].move.*which).order; });
        break_list(all, name + "result", p, [=](rank_program& q) -> auto& { return (q.steps[s].move.*which).result; });
        all.push_back({name + "order turned", [=](rank_program& q) {
                           auto& order = (q.steps[s].move.*which).order;
                           std::swap(order.front(), order.back());
                       }});
    }
    for (auto which : {&transfer::spread, &transfer::close}) {
        auto const name = at + (which == &transfer::spread ? "spread" : "close");
        for (std::size_t i = 0; i < (t.*which).size(); ++i) {
            break_list(all, name + ".begins", p, [=](rank_program& q) -> auto& { return (q.steps[s].move.*which)[i].begins; });
            break_list(all, name + ".sizes", p, [=](rank_program& q) -> auto& { return (q.steps[s].move.*which)[i].sizes; });
            all.push_back({name + ".extent", [=](rank_program& q) { ++(q.steps[s].move.*which)[i].extent; }});
            all.push_back({name + ".dim", [=](rank_program& q) { (q.steps[s].move.*which)[i].dim ^= 1; }});
        }
        if (!(t.*which).empty()) all.push_back({name + " left out", [=](rank_program& q) { (q.steps[s].move.*which).clear(); }});
        all.push_back({name + " added", [=](rank_program& q) { (q.steps[s].move.*which).push_back({0, 9, {1}, {5}}); }});
    }
    all.push_back({at + "member", [=](rank_program& q) { q.steps[s].move.member ^= 1; }});
    all.push_back({at + "members", [=](rank_program& q) { ++q.steps[s].move.members; }});
    all.push_back({at + "reduce", [=](rank_program& q) { q.steps[s].move.reduce = reduction::max; }});
    if (t.kind == collective_kind::permute)
        for (std::int64_t m = -1; m <= t.members; ++m) {
            if (m != t.send_to) all.push_back({at + "send_to", [=](rank_program& q) { q.steps[s].move.send_to = m; }});
            if (m != t.receive_from) all.push_back({at + "receive_from", [=](rank_program& q) { q.steps[s].move.receive_from = m; }});
        }
}
changes all_changes(rank_program const& p) {
    changes all;
    for (std::size_t s = 0; s < p.steps.size(); ++s) {
        auto const at = "step " + std::to_string(s) + ": ";
        if (p.steps[s].is_transfer()) break_transfer(all, p, s);
        break_list(all, at + "inputs", p, [=](rank_program& q) -> auto& { return q.steps[s].inputs; });
        break_list(all, at + "outputs", p, [=](rank_program& q) -> auto& { return q.steps[s].outputs; });
        break_list(all, at + "last_uses", p, [=](rank_program& q) -> auto& { return q.steps[s].last_uses; });
        all.push_back({at + "call", [=](rank_program& q) { q.steps[s].call.name += "x"; }});
        all.push_back({at + "dropped", [=](rank_program& q) { q.steps.erase(q.steps.begin() + static_cast<std::ptrdiff_t>(s)); }});
        all.push_back({at + "twice", [=](rank_program& q) {
                           auto const step = q.steps[s];
                           q.steps.insert(q.steps.begin() + static_cast<std::ptrdiff_t>(s), step);
                       }});
        if (s) all.push_back({at + "before its neighbour", [=](rank_program& q) { std::swap(q.steps[s], q.steps[s - 1]); }});
    }
    for (std::size_t v = 0; v < p.values.size(); ++v) {
        auto const at = "value " + std::to_string(v) + ": ";
        break_list(all, at + "sizes", p, [=](rank_program& q) -> auto& { return *q.values[v].sizes; });
        all.push_back({at + "type", [=](rank_program& q) { q.values[v].type = dtype::bfloat16; }});
        all.push_back({at + "unknown", [=](rank_program& q) { q.values[v].sizes.reset(); }});
        all.push_back({at + "undefined", [=](rank_program& q) { q.values[v].defined = false; }});
    }
    for (auto which : {&rank_program::inputs, &rank_program::outputs}) {
        all.push_back({"port gone", [=](rank_program& q) { (q.*which).clear(); }});
        all.push_back({"port of another vertex", [=](rank_program& q) { ++(q.*which)[0].node; }});
        all.push_back({"port of another value", [=](rank_program& q) { ++(q.*which)[0].value; }});
        all.push_back({"port of another size", [=](rank_program& q) { ++(q.*which)[0].piece.sizes[0]; }});
    }
    all.push_back({"rank", [](rank_program& q) { q.rank ^= 1; }});
    all.push_back({"mesh", [](rank_program& q) { q.mesh = device_mesh::parse("4"); }});
    all.push_back({"value more", [](rank_program& q) { q.values.emplace_back(); }});
    return all;
}

}  // namespace

TEST_CASE("programs that fit together pass, and the same program changed on one rank in one place is refused, whatever it is") {
    auto const good = programs();
    REQUIRE(refusal(good).empty());
    std::size_t refused = 0;
    std::set<std::string> passed;
    for (std::size_t r = 0; r < good.size(); ++r)
        for (auto const& c : all_changes(good[r])) {
            auto broken = good;
            c.make(broken[r]);
            if (refusal(broken).empty()) passed.insert("rank " + std::to_string(r) + ", " + c.name);
            else ++refused;
        }
    for (auto const& name : passed) CHECK_MESSAGE(false, name, " is not noticed");
    MESSAGE(refused, " changes refused");
    CHECK(refused > 1000);
}

// Ranks that all do the same wrong thing meet without hanging; what they read is still looked at.
TEST_CASE("a step that all ranks leave out or change alike is refused where values or sizes show it") {
    auto const good = programs();
    for (std::size_t s = 0; s < good[0].steps.size(); ++s) {
        auto broken = good;
        for (auto& p : broken) p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(s));
        CHECK_FALSE(refusal(broken).empty());
        if (!good[0].steps[s].is_transfer()) continue;
        broken = good;
        for (auto& p : broken) ++p.steps[s].move.after[1];
        CHECK_FALSE(refusal(broken).empty());
    }
}

TEST_CASE("what is refused is named: rank, step, and what would go wrong") {
    auto const message = [](auto&& make) {
        auto all = programs();
        make(all[3]);
        return refusal(all);
    };
    auto const has = [](std::string const& text, char const* part) { return text.find(part) != std::string::npos; };
    auto text = message([](rank_program& p) { p.steps[5].move.close[0].sizes[0] = 0; });
    CHECK_MESSAGE(has(text, "rank 3, step 5"), text);
    text = message([](rank_program& p) {  // it takes its room whole: one row more than it was sent
        p.steps[5].move.close.clear();
        p.steps[5].move.after[0] = 3;
        p.values[p.steps[5].outputs[0]].sizes = p.steps[5].move.after;
    });
    CHECK_MESSAGE(has(text, "would read its padding or miss what it sends"), text);
    text = message([](rank_program& p) {  // a sound gather, but of a tensor of other sizes
        auto& step = p.steps[15];
        transition const gather{collective_kind::all_gather, {1}, 1, 0, reduction::sum, layout(2)};
        step.move = transfer_of(p.mesh, layout::parse(p.mesh, "R,S1"), gather, {5, 16}, p.rank);
        p.values[step.inputs[0]].sizes = step.move.before;
        p.values[step.outputs[0]].sizes = step.move.after;
    });
    CHECK_MESSAGE(has(text, "in all_gather with buffers of other sizes"), text);
    text = message([](rank_program& p) { p.steps[2].inputs[0] = 0; });
    CHECK_MESSAGE(has(text, "reads value 0 after its last use"), text);
    text = message([](rank_program& p) { p.steps[13].move.send_to = 5; });
    CHECK_MESSAGE(has(text, "exchanges with a member that its group does not have"), text);
    text = message([](rank_program& p) { p.steps[4].last_uses.clear(); });
    CHECK_MESSAGE(has(text, "which nobody reads any more"), text);
}
