// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/mesh/placement_lattice.hpp>

#include "simulate.hpp"

#include <string>

using namespace cantle;

namespace {

/// A price that prefers nothing in particular.
double hashed_price(collective_call const& c, std::uint64_t seed) {
    stable_hasher h;
    h.add(seed).add(c.kind).add(c.axes).add(c.bytes_before).add(c.bytes_after).add(c.packed_bytes);
    return 1.0 + static_cast<double>(h.finish().low % 1000) / 8.0;
}

struct count_of_kinds {
    std::size_t of[6] = {}, flattened = 0, inside_a_dim = 0, strided = 0;
};

/// Run every edge of the lattice of `terminals` and count what was seen. A failure names mesh, layouts and step.
void run_every_edge(device_mesh const& mesh, shape const& sizes, std::vector<layout> const& terminals, count_of_kinds& seen) {
    std::mt19937 random(20261130);
    lattice_class const c{mesh, sizes, 2, {}};
    placement_lattice const lattice(c, terminals, [](collective_call const& call) { return hashed_price(call, 1); });
    std::size_t wrong = 0;
    for (std::size_t s = 0; s < lattice.state_count(); ++s) {
        layout const& from = lattice.state(s);
        REQUIRE(from.fits(sizes));
        auto const before = simulate::distribute(mesh, from, sizes, random);
        REQUIRE(simulate::is_right(mesh, from, sizes, before));
        lattice.for_each_edge(s, [&](std::size_t to, double, transition const& t) {
            auto const after = simulate::execute(mesh, from, t, before);
            auto const call = call_of(lattice.tensor_class(), from, t);
            auto const bytes = [](simulate::block const& b) { return static_cast<std::int64_t>(b.data.size()) * 2; };
            bool ok = after.blocks.size() == before.size() && simulate::is_right(mesh, t.to, sizes, after.blocks);
            ok = ok && lattice.state(to) == t.to && !(t.to == from);
            ok = ok && call.bytes_before == bytes(before[0]) && call.bytes_after == bytes(after.blocks[0]);
            ok = ok && call.packed_bytes == (after.packs_send ? call.bytes_before : 0) + (after.packs_receive ? call.bytes_after : 0);
            ok = ok && call.axes == t.axis_mask();
            if (!ok && ++wrong <= 5) {
                std::string const line = mesh.text() + ": " + from.text(mesh) + " -> " + t.to.text(mesh) + " by " + text_of(t, mesh);
                FAIL_CHECK(line);
            }
            ++seen.of[static_cast<std::size_t>(t.kind)];
            seen.flattened += t.axes.size() > 1;
            seen.inside_a_dim += t.kind == collective_kind::all_to_all && t.from_dim == t.to_dim;
            seen.strided += call.packed_bytes > 0;
        });
    }
    CHECK(wrong == 0);
}

}  // namespace

// Every rank runs what the step says with the meaning of the real collective; the result must be what the target layout says it holds.
TEST_CASE("every edge of the lattice, run by all ranks, yields the layout it names") {
    count_of_kinds seen;
    struct instance { char const* mesh; shape sizes; };
    std::vector<instance> const instances{
        {"2", {8, 4, 6}}, {"3", {6, 5, 3}}, {"2x2", {8, 4, 1}}, {"2x3", {6, 12}}, {"4x2", {16, 8}}, {"2x4", {8, 3, 4}}, {"2x2x2", {8, 4}},
        {"2x2x2", {2, 2, 2}}, {"2x3x2", {12}}, {"2x1x2", {4, 2}}, {"2x2", {}}, {"3x2", {5, 7}}};
    for (auto const& i : instances)
        for (auto const& kinds : {std::vector{reduction::sum}, {reduction::sum, reduction::avg}, {reduction::max}, {reduction::min}}) {
            auto const mesh = device_mesh::parse(i.mesh);
            if (mesh.dims() > 2 && kinds.size() > 1) continue;
            run_every_edge(mesh, i.sizes, simulate::plain_layouts(mesh, i.sizes, kinds), seen);
        }
    for (auto n : seen.of) CHECK(n > 0);
    CHECK(seen.flattened > 0);
    CHECK(seen.strided > 0);
    CHECK(seen.inside_a_dim == 0);  // no view made a factor
}

// [B=4][S=4] flattened to 16, B cut by dp and S by tp, with factors between: the lattice has the atoms [4][4].
TEST_CASE("edges around whole factors move data right, also from one atom of a dim to another") {
    count_of_kinds seen;
    struct instance { char const* mesh; shape sizes; std::vector<char const*> terminals; };
    std::vector<instance> const instances{
        {"2x2", {16, 4}, {"S0,S0; d0=a0>2>a1", "P,P", "R,S0; d0=4>a1"}},
        {"2x2", {2, 16}, {"S1,S1; d1=a1>4>a0", "P,S0", "S1,S0; d1=2>a0"}},
        {"2x4", {32}, {"R,S0; d0=4>a1", "P,S0", "S0,S0; d0=2>a0>2>a1"}},
        {"2x3", {36, 2}, {"S0,S0; d0=3>a0>2>a1", "P,P"}},
        {"2x2x2", {32, 2}, {"S0,S0,S0; d0=a0>2>a1>2>a2", "P,P,P"}},
        {"2x2x2", {16}, {"R,S0,P; d0=4>a1", "P(max),S0,R"}}};
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        std::vector<layout> terminals;
        for (auto const* t : i.terminals) terminals.push_back(layout::parse(mesh, t));
        run_every_edge(mesh, i.sizes, terminals, seen);
    }
    for (auto n : seen.of) CHECK(n > 0);
    CHECK(seen.inside_a_dim > 0);
}

TEST_CASE("every path of a lattice, run step by step, ends in the layout asked for") {
    struct instance { char const* mesh; shape sizes; std::vector<char const*> extra; };
    std::vector<instance> const instances{
        {"2x2", {8, 4}, {"S0,S0; d0=a0>2>a1"}}, {"2x3", {12, 6}, {}}, {"2x2x2", {8}, {"S0,R,S0; d0=2>a2>a0"}}};
    std::mt19937 random(7);
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        auto terminals = simulate::plain_layouts(mesh, i.sizes, {reduction::sum});
        for (auto const* t : i.extra) terminals.push_back(layout::parse(mesh, t));
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            placement_lattice const lattice({mesh, i.sizes, 4, {}}, terminals, [&](auto const& call) { return hashed_price(call, seed); });
            for (auto const& from : terminals)
                for (auto const& to : terminals) {
                    if (lattice.distances(from, {to})[0] == std::numeric_limits<double>::infinity()) continue;
                    auto blocks = simulate::distribute(mesh, from, i.sizes, random);
                    layout at = from;
                    for (auto const& p : lattice.path(from, to)) {
                        blocks = simulate::execute(mesh, at, p.step, blocks).blocks;
                        at = p.step.to;
                    }
                    CAPTURE(from.text(mesh));
                    CAPTURE(to.text(mesh));
                    REQUIRE(at == to);
                    REQUIRE(simulate::is_right(mesh, to, i.sizes, blocks));
                }
        }
    }
}

namespace {

/// The cuts of each dim (no whole factors) and the rest, for an independent definition of the edges.
struct plain_form {
    std::vector<std::vector<std::uint8_t>> cuts;
    std::vector<std::uint8_t> partial;
    auto operator<=>(plain_form const&) const = default;
};
plain_form form_of(layout const& l, std::size_t rank) {
    plain_form f{std::vector<std::vector<std::uint8_t>>(rank), {}};
    for (auto const& d : l.digits()) f.cuts[d.dim].push_back(static_cast<std::uint8_t>(d.axis));
    f.partial = simulate::partial_axes(l, reduction::sum);
    return f;
}

/// From `f` to `g` in one step, by the words of the header: empty when there is no such step, else its text.
std::vector<std::string> steps_between(plain_form const& f, plain_form const& g, device_mesh const& mesh) {
    std::vector<std::string> steps;
    std::vector<std::size_t> changed;
    for (std::size_t d = 0; d < f.cuts.size(); ++d)
        if (f.cuts[d] != g.cuts[d]) changed.push_back(d);
    // what stands in `longer` behind `shorter`, if that is its beginning
    auto const tail = [](auto const& shorter, auto const& longer) {
        std::vector<std::uint8_t> rest;
        if (shorter.size() < longer.size() && std::equal(shorter.begin(), shorter.end(), longer.begin()))
            rest.assign(longer.begin() + static_cast<std::ptrdiff_t>(shorter.size()), longer.end());
        return rest;
    };
    auto const named = [&](std::string s, std::vector<std::uint8_t> const& axes) {
        s += '(';
        for (std::size_t i = 0; i < axes.size(); ++i) s += (i ? "," : "") + mesh.name(axes[i]);
        return s + ')';
    };
    std::vector<std::uint8_t> reduced;
    for (auto a : f.partial)
        if (std::find(g.partial.begin(), g.partial.end(), a) == g.partial.end()) reduced.push_back(a);
    if (g.partial.size() + reduced.size() != f.partial.size()) return {};  // something became Partial
    auto const d = [](std::size_t dim) { return " d" + std::to_string(dim); };
    if (!reduced.empty()) {
        if (changed.empty()) return {named("all_reduce", reduced)};
        if (changed.size() != 1) return {};
        auto const added = tail(f.cuts[changed[0]], g.cuts[changed[0]]);
        if (std::is_permutation(added.begin(), added.end(), reduced.begin(), reduced.end()))
            return {named("reduce_scatter", added) + d(changed[0])};
        return {};
    }
    if (changed.size() == 1) {
        auto const& was = f.cuts[changed[0]];
        auto const& is = g.cuts[changed[0]];
        if (auto const gone = tail(is, was); !gone.empty()) steps.push_back(named("all_gather", gone) + d(changed[0]));
        if (auto const added = tail(was, is); added.size() == 1) steps.push_back(named("slice", added) + d(changed[0]));
        if (was.size() == is.size() && std::is_permutation(was.begin(), was.end(), is.begin())) {
            std::size_t a = 0, b = was.size();
            while (was[a] == is[a]) ++a;
            while (was[b - 1] == is[b - 1]) --b;
            auto const at = [&](std::size_t k) { return was.begin() + static_cast<std::ptrdiff_t>(k); };
            steps.push_back(named("permute", {at(a), at(b)}) + d(changed[0]));
        }
    }
    if (changed.size() == 2)
        for (auto const& [x, y] : {std::pair{changed[0], changed[1]}, std::pair{changed[1], changed[0]}}) {
            auto const gone = tail(g.cuts[x], f.cuts[x]);
            if (!gone.empty() && gone == tail(f.cuts[y], g.cuts[y]))
                steps.push_back(named("all_to_all", gone) + d(x) + ">d" + std::to_string(y));
        }
    return steps;
}

}  // namespace

TEST_CASE("the edges are exactly those that their definition gives, between all layouts there are") {
    struct instance { char const* mesh; shape sizes; };
    std::vector<instance> const instances{{"2x2", {8, 8}}, {"2x4", {4, 8, 2}}, {"2x3", {12, 6}}, {"2x2x2", {8, 8}}, {"2x2x2", {4, 2}}};
    for (auto const& i : instances) {
        auto const mesh = device_mesh::parse(i.mesh);
        auto const terminals = simulate::plain_layouts(mesh, i.sizes, {reduction::sum});
        placement_lattice const lattice({mesh, i.sizes, 4, {}}, terminals, [](auto const&) { return 1.0; });
        // All states: every layout without whole factors, each with every set of Partial on its free axes.
        std::vector<layout> wanted;
        for (auto const& l : simulate::all_layouts(mesh, i.sizes)) {
            if (std::any_of(l.digits().begin(), l.digits().end(), [](auto const& d) { return d.axis < 0; })) continue;
            for (std::uint32_t m = 0; m < (1u << mesh.dims()); ++m) {
                layout p = l;
                bool free = true;
                for (std::size_t a = 0; a < mesh.dims(); ++a)
                    if (m >> a & 1) {
                        free = free && l.on(a).is_replicate();
                        if (free) p.set_partial(a, reduction::sum);
                    }
                if (free) wanted.push_back(p);
            }
        }
        std::sort(wanted.begin(), wanted.end());
        std::vector<layout> states;
        for (std::size_t s = 0; s < lattice.state_count(); ++s) states.push_back(lattice.state(s));
        std::sort(states.begin(), states.end());
        REQUIRE(states == wanted);

        std::size_t wrong = 0;
        std::vector<plain_form> forms;
        for (std::size_t s = 0; s < lattice.state_count(); ++s) forms.push_back(form_of(lattice.state(s), i.sizes.size()));
        for (std::size_t s = 0; s < lattice.state_count(); ++s) {
            std::vector<std::vector<std::string>> found(lattice.state_count());
            lattice.for_each_edge(s, [&](std::size_t to, double, transition const& t) { found[to].push_back(text_of(t, mesh)); });
            for (std::size_t t = 0; t < lattice.state_count(); ++t) {
                auto expected = s == t ? std::vector<std::string>{} : steps_between(forms[s], forms[t], mesh);
                std::sort(expected.begin(), expected.end());
                std::sort(found[t].begin(), found[t].end());
                if (expected != found[t] && ++wrong <= 5) {
                    std::string line = lattice.state(s).text(mesh) + " -> " + lattice.state(t).text(mesh) + ": expected";
                    for (auto const& e : expected) line += " " + e;
                    line += ", found";
                    for (auto const& e : found[t]) line += " " + e;
                    FAIL_CHECK(line);
                }
            }
        }
        CHECK(wrong == 0);
    }
}

// [B=16][S=2048] flattened and cut as dp 4 tp: the data-parallel cut is innermost in the atom B.
TEST_CASE("a cut in front of a whole factor is gathered in one step and moves to another atom in one step") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    lattice_class c{mesh, {16 * 2048, 64}, 2, {}};
    auto const flat = layout::parse(mesh, "S0,S0; d0=dp>4>tp");
    c.add_boundaries(flat);
    CHECK(c.boundaries[0] == std::vector<std::int64_t>{16});
    std::vector<std::string> gathers, moves;
    for_each_transition(c, flat, [&](transition const& t) {
        if (t.kind == collective_kind::all_gather) gathers.push_back(text_of(t, mesh) + " " + t.to.text(mesh));
        if (t.kind == collective_kind::all_to_all && t.to_dim == 0) moves.push_back(text_of(t, mesh) + " " + t.to.text(mesh));
    });
    CHECK(gathers == std::vector<std::string>{"all_gather(dp) d0 R,S0; d0=16>tp", "all_gather(tp) d0 S0,R"});
    // dp goes from B to S; tp (8) has no place in B, of which 4 are left.
    CHECK(moves == std::vector<std::string>{"all_to_all(dp) d0>d0 S0,S0; d0=16>tp>dp"});
}

TEST_CASE("nothing becomes Partial, and kinds of Partial do not change") {
    auto const mesh = device_mesh::parse("2x2x2");
    lattice_class const c{mesh, {8, 8}, 4, {}};
    for (auto const* text : {"R,R,R", "S0,P(max),R", "P,P(avg),S1", "S0,S0,P(min)"}) {
        auto const from = layout::parse(mesh, text);
        std::size_t edges = 0;
        for_each_transition(c, from, [&](transition const& t) {
            ++edges;
            for (std::size_t a = 0; a < 3; ++a)
                if (t.to.on(a).is_partial()) CHECK(t.to.on(a) == from.on(a));
        });
        CHECK(edges > 0);
    }
}

TEST_CASE("Partial axes of different kinds are never reduced together") {
    auto const mesh = device_mesh::parse("2x2", "dp,tp");
    std::vector<std::string> reductions;
    for_each_transition({mesh, {}, 4, {}}, layout::parse(mesh, "P,P(avg)"),
                        [&](transition const& t) { reductions.push_back(text_of(t, mesh)); });
    CHECK(reductions == std::vector<std::string>{"all_reduce(dp)", "all_reduce(tp)"});
}

TEST_CASE("the bytes of a call and of its message are those of one rank") {
    auto const mesh = device_mesh::parse("4x8", "dp,tp");
    lattice_class const c{mesh, {64, 32}, 2, {}};
    auto const from = layout::parse(mesh, "S0,R");
    auto const gathered = layout::parse(mesh, "R,R"), columns = layout::parse(mesh, "S1,R");
    auto const gather = call_of(c, from, {collective_kind::all_gather, {0}, 0, 0, reduction::sum, gathered});
    CHECK(gather.bytes_before == 1024);
    CHECK(gather.bytes_after == 4096);
    CHECK(gather.message_bytes() == 4096);
    CHECK(gather.packed_bytes == 0);
    auto const exchange = call_of(c, from, {collective_kind::all_to_all, {0}, 0, 1, reduction::sum, columns});
    CHECK(exchange.message_bytes() == 1024);
    CHECK(exchange.packed_bytes == 1024);  // the columns sent are strided, the rows received are not
    auto const scatter = call_of(c, layout::parse(mesh, "P,R"), {collective_kind::reduce_scatter, {0}, 0, 1, reduction::sum, columns});
    CHECK(scatter.message_bytes() == 4096);
    CHECK(scatter.packed_bytes == 4096);
    // A cut behind a whole factor is strided even where it leads the tensor: [4][dp] gathers four rows apart.
    auto const behind = layout::parse(mesh, "S0,R; d0=4>dp");
    auto const strided = call_of(c, behind, {collective_kind::all_gather, {0}, 0, 0, reduction::sum, gathered});
    CHECK(strided.packed_bytes == 4096);
}
