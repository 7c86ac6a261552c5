// SPDX-License-Identifier: BSL-1.0
// Starts move early, results stay. Small programs drawn as lists of steps, and random ones that are run on threads as lowered and as
// scheduled. Runs under ThreadSanitizer too (./dev test tsan).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/program/check.hpp>
#include <cantle/program/fuse_bias.hpp>
#include <cantle/program/schedule.hpp>
#include <cantle/program/thread_group.hpp>

#include <random>

using namespace cantle;

namespace {

/// Programs of all ranks of a mesh, built step by step. Every value is a vector of `n` float32, the same size on all ranks.
class sketch {
public:
    explicit sketch(char const* mesh) {
        all_.resize(static_cast<std::size_t>(device_mesh::parse(mesh).device_count()));
        for (std::size_t r = 0; r < all_.size(); ++r) {
            all_[r].rank = static_cast<std::int64_t>(r);
            all_[r].mesh = device_mesh::parse(mesh);
        }
    }
    program_value input(std::int64_t n) {
        auto const v = value(n);
        for (auto& p : all_) p.inputs.push_back({0, v, {{n}, {0}, true}});
        return v;
    }
    program_value call(std::string name, std::vector<program_value> in, std::int64_t n) {
        auto const v = value(n);
        for (auto& p : all_) {
            program_step s;
            s.call.name = name;
            s.inputs = in;
            s.outputs = {v};
            p.steps.push_back(std::move(s));
        }
        return v;
    }
    program_value transfer_of(collective_kind kind, std::vector<std::uint8_t> axes, program_value in, std::int64_t n) {
        auto const v = value(n);
        for (auto& p : all_) {
            program_step s;
            auto& t = s.move;
            t.kind = kind;
            t.axes = axes;
            for (auto a : axes) t.members *= p.mesh.size(a);
            t.member = member_of(p.mesh, axes, p.rank);
            t.send_to = t.receive_from = t.member;
            t.before = *p.values[in].sizes;
            t.after = {n};
            t.pack = detail::same(t.before);
            t.unpack = detail::same(t.after);
            bool const scatters = kind == collective_kind::reduce_scatter || kind == collective_kind::slice;
            if (scatters) t.pack = detail::to_front(t.before, 0, 1, t.members);
            else if (kind == collective_kind::all_gather) t.unpack = detail::from_front(t.before, 0, 1, t.members);
            s.inputs = {in};
            s.outputs = {v};
            p.steps.push_back(std::move(s));
        }
        return v;
    }
    program_value reduce(std::vector<std::uint8_t> axes, program_value in) {
        return transfer_of(collective_kind::all_reduce, std::move(axes), in, (*all_[0].values[in].sizes)[0]);
    }
    void output(program_value v) {
        for (auto& p : all_) p.outputs.push_back({0, v, {*p.values[v].sizes, {0}, true}});
    }
    std::vector<rank_program> done() {
        for (auto& p : all_) note_last_uses(p);
        check_programs(all_);
        return all_;
    }

private:
    std::vector<rank_program> all_;
    program_value value(std::int64_t n) {
        for (auto& p : all_) p.values.push_back({shape{n}, dtype::float32, true});
        return static_cast<program_value>(all_[0].values.size() - 1);
    }
};

/// Steps as text: op names, and "kind(value)" for transfers.
std::string text(rank_program const& p) {
    std::string s;
    for (auto const& step : p.steps)
        s += (s.empty() ? "" : " ") +
             (step.is_transfer() ? std::string(to_string(step.move.kind)) + "(" + std::to_string(step.inputs[0]) + ")" : step.call.name);
    return s;
}
std::vector<rank_program> scheduled(std::vector<rank_program> all, std::int64_t extra_bytes = 1 << 20) {
    schedule_starts(all, {extra_bytes});
    check_programs(all);
    return all;
}

/// A program whose calls and transfers over random axes read random earlier values.
std::vector<rank_program> random_programs(unsigned seed) {
    std::mt19937 draw(seed);
    sketch s("2x2");
    std::vector<program_value> values;
    for (int i = 0; i < 3; ++i) values.push_back(s.input(4));
    for (int i = 0; i < 40; ++i) {
        auto const pick = [&] { return values[draw() % values.size()]; };
        if (draw() % 2) {
            values.push_back(s.call("op" + std::to_string(i), {pick(), pick()}, 4));
        } else {
            std::vector<std::uint8_t> const axes[] = {{0}, {1}, {0, 1}, {1, 0}};
            values.push_back(s.reduce(axes[draw() % 4], pick()));
        }
    }
    for (int i = 0; i < 4; ++i) s.output(values[draw() % values.size()]);
    return s.done();
}

using number = std::uint64_t;
using hall = thread_group<number, std::size_t>;

/// Runs programs on threads as the executor does: a transfer starts where it stands, the first reader waits. Values are numbers.
std::vector<std::vector<number>> run(std::vector<rank_program> const& all) {
    std::vector<std::vector<number>> results(all.size());
    hall h(all.size());
    run_ranks(h, all.size(), [&](std::size_t r) {
        auto const& p = all[r];
        std::vector<number> values(p.values.size());
        std::vector<std::optional<hall::ticket>> open(p.values.size());
        for (std::size_t i = 0; i < p.inputs.size(); ++i) values[p.inputs[i].value] = 100 * (i + 1) + r;
        auto const read = [&](program_value v) {
            if (open[v]) {
                values[v] = 0;
                for (auto x : h.wait(*open[v])) values[v] = values[v] * 3 + x;
                open[v].reset();
            }
            return values[v];
        };
        for (auto const& s : p.steps) {
            if (s.is_transfer()) {
                auto const x = read(s.inputs[0]);
                std::vector<std::int64_t> ranks;
                for (std::int64_t other = 0; other < p.mesh.device_count(); ++other) {
                    bool together = true;
                    for (std::size_t a = 0; a < p.mesh.dims(); ++a)
                        if (std::find(s.move.axes.begin(), s.move.axes.end(), a) == s.move.axes.end())
                            together = together && p.mesh.coordinate(other, a) == p.mesh.coordinate(p.rank, a);
                    if (together) ranks.push_back(other);
                }
                std::sort(ranks.begin(), ranks.end(),
                          [&](auto a, auto b) { return member_of(p.mesh, s.move.axes, a) < member_of(p.mesh, s.move.axes, b); });
                open[s.outputs[0]] = h.start(h.group(ranks), static_cast<std::size_t>(s.move.member), s.inputs[0], x);
            } else {
                number x = std::hash<std::string>()(s.call.name);
                for (auto v : s.inputs) x = x * 31 + read(v);
                values[s.outputs[0]] = x;
            }
        }
        for (auto const& port : p.outputs) results[r].push_back(read(port.value));
    });
    return results;
}

/// By call (in order): bytes held while it runs, where a transfer's result counts from its start and its operand goes after its last use.
std::vector<std::int64_t> held(rank_program const& p) {
    std::vector<std::int64_t> by_call;
    auto const of = [&](program_value v) { return element_count(*p.values[v].sizes) * 4; };
    std::int64_t now = 0;
    for (auto const& s : p.steps) {
        for (auto v : s.outputs) now += of(v);
        if (!s.is_transfer()) by_call.push_back(now);
        for (auto v : s.last_uses)
            if (std::none_of(p.inputs.begin(), p.inputs.end(), [&](auto const& in) { return in.value == v; })) now -= of(v);
    }
    return by_call;
}

}  // namespace

// x, w in; a = op1(x); g = gather w; op2(a, g)
TEST_CASE("a gathered parameter starts before what does not need it") {
    sketch s("2");
    auto const x = s.input(4), w = s.input(4);
    auto const a = s.call("op1", {x}, 4);
    auto const b = s.call("op2", {a}, 4);
    s.output(s.call("op3", {b, s.transfer_of(collective_kind::all_gather, {0}, w, 8)}, 4));
    auto const all = s.done();
    CHECK(text(all[0]) == "op1 op2 all_gather(1) op3");
    for (auto const& p : scheduled(all)) CHECK(text(p) == "all_gather(1) op1 op2 op3");
    CHECK(text(scheduled(all, 31)[0]) == "op1 op2 all_gather(1) op3");  // 8 floats are 32 bytes
}

// Backward: the gradients are made last to first and reduced at the end, where their sinks stand.
TEST_CASE("a gradient is reduced as soon as it is there, with no bound on memory in its way") {
    sketch s("2");
    auto const g = s.input(4);
    auto const g2 = s.call("grad2", {g}, 8);
    auto const back = s.call("back", {g}, 4);
    auto const g1 = s.call("grad1", {back}, 8);
    auto const more = s.call("more", {back}, 4);
    s.output(s.transfer_of(collective_kind::reduce_scatter, {0}, g1, 4));
    s.output(s.transfer_of(collective_kind::reduce_scatter, {0}, g2, 4));
    s.output(more);
    CHECK(text(scheduled(s.done(), 0)[0]) == "grad2 reduce_scatter(1) back grad1 reduce_scatter(3) more");
}

// Case D13: w1 and w2 are both there from the start; w1 is needed first and must not queue behind w2.
TEST_CASE("what is needed first starts first on a communicator") {
    sketch s("2x2");
    auto const x = s.input(4), w1 = s.input(4), w2 = s.input(4);
    auto const a = s.call("op1", {x}, 4);
    auto const b = s.call("op2", {a, s.transfer_of(collective_kind::all_gather, {0}, w1, 8)}, 4);
    s.output(s.call("op3", {b, s.transfer_of(collective_kind::all_gather, {0}, w2, 8)}, 4));
    CHECK(text(scheduled(s.done())[0]) == "all_gather(1) all_gather(2) op1 op2 op3");
    // Room for one only: the second starts when the first is in use.
    CHECK(text(scheduled(s.done(), 32)[0]) == "all_gather(1) op1 all_gather(2) op2 op3");
}

TEST_CASE("a slice goes along with the collective that it feeds, and alone stays where it is") {
    sketch s("2x2");
    auto const x = s.input(4), w = s.input(8), u = s.input(8);
    auto const a = s.call("op1", {x}, 4);
    auto const cut = s.transfer_of(collective_kind::slice, {0}, w, 4);
    auto const b = s.call("op2", {a, s.transfer_of(collective_kind::all_gather, {1}, cut, 8)}, 4);
    s.output(s.call("op3", {b, s.transfer_of(collective_kind::slice, {0}, u, 4)}, 4));
    CHECK(text(scheduled(s.done())[0]) == "slice(1) all_gather(4) op1 op2 slice(2) op3");
}

TEST_CASE("a collective behind a collective leaves it half of the room") {
    sketch s("2x2");
    auto const x = s.input(4), w = s.input(4);
    auto a = x;
    for (int i = 0; i < 6; ++i) a = s.call("op" + std::to_string(i), {a}, 4);
    auto const once = s.transfer_of(collective_kind::all_gather, {0}, w, 8);
    s.output(s.call("end", {a, s.transfer_of(collective_kind::all_gather, {1}, once, 16)}, 4));
    CHECK(text(scheduled(s.done())[0]) == "all_gather(1) op0 op1 op2 op3 all_gather(8) op4 op5 end");
}

TEST_CASE("random programs give the same numbers on threads as lowered and as scheduled, in one order on all ranks, within the bound") {
    std::size_t moved = 0;
    for (unsigned seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        auto const all = random_programs(seed);
        auto const want = run(all);
        auto const before = held(all[0]);
        for (std::int64_t const bound : {0, 16, 48, 1 << 20}) {
            CAPTURE(bound);
            auto const other = scheduled(all, bound);  // checked: values are there, ranks meet
            CHECK(run(other) == want);
            for (auto const& p : other) CHECK(text(p) == text(other[0]));
            if (text(other[0]) != text(all[0])) ++moved;
            auto const after = held(other[0]);
            REQUIRE(after.size() == before.size());
            for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] - before[i] <= bound);
            CHECK(text(scheduled(all, bound)[0]) == text(other[0]));
        }
    }
    CHECK(moved > 100);
}

// y = linear(x, w); z = y + b, b gathered in between.
TEST_CASE("a bias goes back into its linear, unless something lies between or others read the product") {
    auto const program = [](bool reduced, bool read_twice, bool flagged) {
        sketch s("2");
        auto const x = s.input(4), w = s.input(4), b = s.input(2);
        auto y = s.call("aten::linear", {x, w}, 4);
        if (reduced) y = s.reduce({0}, y);
        auto const whole = s.transfer_of(collective_kind::all_gather, {0}, b, 4);
        s.output(s.call("aten::add.Tensor", {y, whole}, 4));
        if (read_twice) s.output(s.call("other", {y}, 4));
        auto all = s.done();
        for (auto& p : all)
            for (auto& step : p.steps) {
                if (step.call.name == "aten::linear")
                    step.call.arguments = {{"input", operand_slot{0}}, {"weight", operand_slot{1}}, {"bias", {}}};
                if (step.call.name == "aten::add.Tensor")
                    step.call.arguments = {{"self", operand_slot{0}}, {"other", operand_slot{1}}, {"fused_with_linear", flagged}};
            }
        for (auto& p : all) p = fuse_biases(std::move(p));
        check_programs(all);
        return all[1];
    };
    auto const fused = program(false, false, true);
    CHECK(text(fused) == "all_gather(2) aten::linear");
    CHECK(fused.steps[1].inputs == std::vector<program_value>{0, 1, 4});
    CHECK(fused.steps[1].call.slot("bias") == 2u);
    CHECK(program(true, false, true).steps.size() == 4);
    CHECK(program(false, true, true).steps.size() == 4);
    CHECK(program(false, false, false).steps.size() == 3);
}
