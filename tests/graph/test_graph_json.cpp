// SPDX-License-Identifier: BSL-1.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/graph_json.hpp>

#include "random_graph.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

using namespace cantle;

namespace {

/// The error that a call throws; code 0 where it throws none.
struct thrown { int number = 0; std::string what; };
thrown error_of(std::function<void()> const& f) {
    try { f(); } catch (error const& e) { return {e.number(), e.what()}; }
    return {};
}
bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
std::string replaced(std::string text, std::string const& from, std::string const& to) {
    auto const at = text.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    return text.replace(at, from.size(), to);
}

//   x [2,3] --+
//             linear "fc/linear" [2,4] -- relu -- output "y"
//   w [4,3] --+
training_graph small_graph() {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto const w = b.parameter("fc.weight", {4, 3}, dtype::float32);
    b.output(b.in_module("fc").relu(b.in_module("fc").linear(x, w)), "y");
    return b.build();
}

struct folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("cantle_graph_json_" + std::to_string(std::random_device{}()));
    folder() { std::filesystem::create_directories(path); }
    ~folder() { std::filesystem::remove_all(path); }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()));
    }
};

}  // namespace

TEST_CASE("a random graph comes back from JSON unchanged and writes the same bytes again") {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        auto const g = test::random_graph(seed, 40);
        auto const text = graph_to_json(g);
        auto const back = graph_from_json(text, "memory");
        REQUIRE(back.size() == g.size());
        CHECK(graph_to_json(back) == text);
        for (vertex v = 0; v < g.size(); ++v) CHECK_MESSAGE(test::same_node(back[v], g[v]), g[v].name);
        CHECK(back.origin.config == g.origin.config);
        CHECK(back.origin.model == g.origin.model);
        CHECK(back.origin.batch == g.origin.batch);
    }
}

// One op with an argument of every kind; values that look alike must stay of different types.
TEST_CASE("every kind of argument survives without loss") {
    auto const inf = std::numeric_limits<double>::infinity();
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<argument_value> const values{
        std::monostate{}, operand_slot{0}, operand_slots{{0, -1}}, operand_slots{}, true, false, std::int64_t{1}, std::int64_t{0}, 1.0, 0.0,
        -0.0, 0.1, 1e300, 5e-324, inf, -inf, nan, -nan, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
        std::string("mean"), std::string(""), std::string("nan"), std::string("\"\\\n\x01 \xc3\xa4"), std::vector<std::int64_t>{},
        std::vector<std::int64_t>{1, -1}, std::vector<double>{}, std::vector<double>{1, nan, -inf, 0.5}, std::vector<bool>{},
        std::vector<bool>{true, false}, dtype::bfloat16, dtype::boolean, symbol{"device", "cpu"}};
    graph_builder b;
    auto const x = b.input("x", {1});
    graph_node n;
    n.operation.name = "test::all";
    n.operands = {x};
    n.outputs = {contiguous_meta({1}, dtype::float32)};
    n.name = "all";
    for (std::size_t i = 0; i < values.size(); ++i) n.operation.arguments.push_back({"a" + std::to_string(i), values[i]});
    b.graph().nodes.push_back(n);
    auto const back = graph_from_json(graph_to_json(b.build()), "memory");
    REQUIRE(back[1].operation.arguments.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(i);
        CHECK(test::same_value(back[1].operation.arguments[i].value, values[i]));
    }
}

TEST_CASE("metas keep strides, dtype and definedness") {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    b.call("test::many", {{"self", x}},
           {contiguous_meta({2, 3}, dtype::int8), {{2, 3}, {1, 2}, dtype::bfloat16, true}, {{2, 3}, {}, dtype::boolean, true},
            {{4}, {0}, dtype::complex64, true}, {{}, {}, dtype::float64, true}, {{0, 5}, {5, 1}, dtype::float16, false}});
    auto const g = b.build();
    auto const text = graph_to_json(g);
    CHECK(contains(text, R"("out":["int8[2,3]","bfloat16[2,3]{1,2}","bool[2,3]{}","complex64[4]{0}",)"
                         R"("float64[]","undefined float16[0,5]"])"));
    CHECK(graph_from_json(text, "memory")[1].outputs == g[1].outputs);
}

TEST_CASE("an op that is repeated is written once and every node has a line of its own") {
    graph_builder b;
    auto x = b.input("x", {2, 2});
    for (int i = 0; i < 50; ++i) x = b.relu(x);
    x = b.view(x, {4});
    b.output(b.view(x, {2, 2}));
    auto const text = graph_to_json(b.build());
    std::size_t lines = 0, relus = 0, views = 0;
    for (std::size_t at = 0; (at = text.find("\n", at)) != std::string::npos; ++at) ++lines;
    for (std::size_t at = 0; (at = text.find("{\"key\":\"aten::relu", at)) != std::string::npos; ++at) ++relus;
    for (std::size_t at = 0; (at = text.find("{\"key\":\"aten::view", at)) != std::string::npos; ++at) ++views;
    CHECK(relus == 1);
    CHECK(views == 2);
    CHECK(lines == 54 + 5 + 4);  // nodes, ops (input, relu, two views, output), frame
}

TEST_CASE("a file is written whole or not at all") {
    folder const f;
    auto const g = small_graph();
    write_graph_json(g, f.path / "g.json");
    CHECK(f.files() == 1);
    CHECK(graph_to_json(read_graph_json(f.path / "g.json")) == graph_to_json(g));
    write_graph_json(g, f.path / "g.json");  // over an old one
    CHECK(f.files() == 1);
    CHECK(error_of([&] { write_graph_json(g, f.path / "none" / "g.json"); }).number == 102);
    CHECK(error_of([&] { write_graph_json(g, f.path); }).number == 102);
    CHECK(f.files() == 1);
}

TEST_CASE("a rename that fails leaves no temporary file") {
    folder const f;
    std::filesystem::create_directories(f.path / "a" / "b");
    std::filesystem::create_symlink(f.path / "a", f.path / "link");  // a link to a folder cannot be replaced by a file
    CHECK(error_of([&] { write_file_atomically(f.path / "link", "x"); }).number == 102);
    CHECK(f.files() == 2);
}

TEST_CASE("writing through a link replaces the file that it names") {
    folder const f;
    write_file_atomically(f.path / "real", "old");
    std::filesystem::create_symlink(f.path / "real", f.path / "link");
    write_file_atomically(f.path / "link", "new");
    CHECK(read_file(f.path / "real") == "new");
    CHECK(std::filesystem::is_symlink(f.path / "link"));
}

TEST_CASE("a missing file and a folder are error 101") {
    folder const f;
    auto const e = error_of([&] { read_graph_json(f.path / "no.json"); });
    CHECK(e.number == 101);
    CHECK(contains(e.what, "no.json"));
    CHECK(error_of([&] { read_graph_json(f.path); }).number == 101);
}

TEST_CASE("broken JSON is error 103 and names the byte") {
    auto const text = graph_to_json(small_graph());
    auto const e = error_of([&] { graph_from_json(text.substr(0, 100), "g.json"); });
    CHECK(e.number == 103);
    CHECK(contains(e.what, "g.json"));
    CHECK(contains(e.what, "at byte 101"));
    CHECK(error_of([] { graph_from_json("", "g.json"); }).number == 103);
    CHECK(error_of([] { graph_from_json("\xff", "g.json"); }).number == 103);
    CHECK(contains(error_of([] { graph_from_json("[1,1e999]", "g.json"); }).what, "at byte 8"));
}

TEST_CASE("another format or version is error 104") {
    auto const text = graph_to_json(small_graph());
    CHECK(error_of([] { graph_from_json("{}", "g.json"); }).number == 104);
    CHECK(error_of([] { graph_from_json("[]", "g.json"); }).number == 104);
    CHECK(error_of([&] { graph_from_json(replaced(text, "cantle-graph", "cantle-plan"), "g.json"); }).number == 104);
    auto const e = error_of([&] { graph_from_json(replaced(text, "\"version\":1", "\"version\":2"), "g.json"); });
    CHECK(e.number == 104);
    CHECK(contains(e.what, "version 2"));
    auto const deep = std::string(100000, '[') + std::string(100000, ']');  // must not exhaust the stack
    CHECK(error_of([&] { graph_from_json(R"({"format":"cantle-graph","version":)" + deep + "}", "g.json"); }).number == 104);
}

TEST_CASE("a bad field is error 105 and names node and field") {
    auto const text = graph_to_json(small_graph());
    struct fault { char const *from, *to, *node, *field; };
    for (auto const& f : {fault{R"("out":["float32[2,4]"])", R"("out":["float32[2,4"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float33[2,4]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[2,,4]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[2,4,]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[-2,4]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[2,4]{1}"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[4294967296,4294967296]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":["float32[0,4294967296,4294967296]"])", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"])", R"("out":"float32[2,4]")", "node 'fc/linear'", "'out'"},
                          fault{R"("out":["float32[2,4]"],)", "", "node 'fc/linear'", "'out'"},
                          fault{R"("in":[0,1])", R"("in":[0,-1])", "node 'fc/linear'", "'in'"},
                          fault{R"("in":[0,1])", R"("in":[0,1.0])", "node 'fc/linear'", "'in'"},
                          fault{R"("in":[0,1])", R"("in":[0,[1]])", "node 'fc/linear'", "'in'"},
                          fault{R"("in":[0,1])", R"("in":[0,99999999999999999999])", "node 'fc/linear'", "'in'"},
                          fault{R"("op":"aten::linear")", R"("op":"aten::lineal")", "node 'fc/linear'", "'op'"},
                          fault{R"("op":"aten::linear",)", "", "node 'fc/linear'", "'op'"},
                          fault{R"("name":"fc/linear",)", "", "node 2", "'name'"},
                          fault{R"("id":2)", R"("id":3)", "node 'fc/linear'", "'id'"},
                          fault{R"("role":"parameter")", R"("role":"param")", "node 'fc.weight'", "'role'"},
                          fault{R"("role":"parameter")", R"("phase":"sideward")", "node 'fc.weight'", "'phase'"},
                          fault{R"("role":"parameter")", R"("rule":"parameter")", "node 'fc.weight'", "'rule'"},
                          fault{R"(["bias",null])", R"(["bias",{"slot":1}])", "op 'aten::linear'", "'bias'"},
                          fault{R"(["bias",null])", R"(["bias",{"dtype":"float"}])", "op 'aten::linear'", "'bias'"},
                          fault{R"(["bias",null])", R"(["bias",[1,1.5]])", "op 'aten::linear'", "'bias'"},
                          fault{R"(["bias",null])", R"(["bias",{"tensors":[-2]}])", "op 'aten::linear'", "'bias'"},
                          fault{R"(["bias",null])", R"(["bias",{"double":"nan:0"}])", "op 'aten::linear'", "'bias'"},
                          fault{R"(["bias",null])", R"("bias")", "op 'aten::linear'", "'args'"},
                          fault{R"("batch":0)", R"("batch":"0")", "g.json", "'origin.batch'"},
                          fault{R"("ops":)", R"("operations":)", "g.json", "'operations'"}}) {
        CAPTURE(f.to);
        auto const e = error_of([&] { graph_from_json(replaced(text, f.from, f.to), "g.json"); });
        CHECK(e.number == 105);
        CHECK(contains(e.what, "g.json"));
        CHECK_MESSAGE(contains(e.what, f.node), e.what);
        CHECK_MESSAGE(contains(e.what, std::string("field ") + f.field), e.what);
    }
}

// x -> a -> b -> y, and b also into a.
TEST_CASE("a cycle is error 301 and names its nodes") {
    graph_builder b;
    auto const x = b.input("x", {2});
    auto const a = b.named("a", b.add(x, x));
    auto const c = b.named("b", b.relu(a));
    b.output(c, "y");
    b.graph()[a.node].operands[1] = c;
    auto const e = error_of([&] { graph_from_json(graph_to_json(b.graph()), "g.json"); });
    CHECK(e.number == 301);
    CHECK_MESSAGE(contains(e.what, "'a' -> 'b' -> 'a'"), e.what);
}

TEST_CASE("a dangling tensor is error 302 and names node and operand") {
    auto const text = graph_to_json(small_graph());
    auto const node = error_of([&] { graph_from_json(replaced(text, R"("in":[0,1])", R"("in":[0,77])"), "g.json"); });
    CHECK(node.number == 302);
    CHECK_MESSAGE(contains(node.what, "node 'fc/linear': operand 1 (aten::linear) names node 77"), node.what);
    auto const output = error_of([&] { graph_from_json(replaced(text, R"("in":[0,1])", R"("in":[0,[1,1]])"), "g.json"); });
    CHECK(output.number == 302);
    CHECK_MESSAGE(contains(output.what, "output 1 of node 'fc.weight'"), output.what);
}

TEST_CASE("a link to a node that does not exist is error 303") {
    auto const text = graph_to_json(small_graph());
    auto const e = error_of([&] { graph_from_json(replaced(text, R"("module":"fc"})", R"("module":"fc","forward":9})"), "g.json"); });
    CHECK(e.number == 303);
    CHECK(contains(e.what, "forward_node is 9"));
}

// The file lists y, relu, linear, w, x: every reference points to a later place.
TEST_CASE("nodes in any order are put in topological order with all links") {
    graph_builder b;
    auto const x = b.input("x", {2, 3});
    auto const w = b.parameter("w", {4, 3});
    auto const y = b.linear(x, w);
    auto const out = b.output(y, "y");
    auto const dy = b.tangent("dy", out);
    b.backward().gradient(w, b.linear_grad_weight(dy, x, y));
    auto const g = b.build();
    std::vector<vertex> backwards;
    for (vertex v = static_cast<vertex>(g.size()); v-- > 0;) backwards.push_back(v);
    auto const mixed = reorder(g, backwards);
    CHECK_FALSE(is_topologically_ordered(mixed));
    auto const back = graph_from_json(graph_to_json(mixed), "memory");
    CHECK(is_topologically_ordered(back));
    REQUIRE(back.size() == g.size());
    for (auto const& n : back.nodes) {
        if (n.role == node_role::gradient) CHECK(back[*n.of].name == "w");
        if (n.role == node_role::tangent) CHECK(back[*n.of].name == "y");
        if (n.forward_node) CHECK(back[*n.forward_node].name == "linear");
        if (n.name == "linear") CHECK(back[n.operands[1].node].name == "w");
    }
}

TEST_CASE("a damaged file is read or refused with a numbered error, never anything else") {
    std::string const texts[] = {graph_to_json(small_graph()), graph_to_json(test::random_graph(7, 12))};
    test::random_source random(20260101);  // the seed
    std::size_t refused = 0, read = 0;
    for (int i = 0; i < 3000; ++i) {
        auto text = texts[i % 2];
        auto place = [&] { return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size()))); };
        for (auto n = random.below(3); n >= 0; --n) {
            auto const at = place(), length = static_cast<std::size_t>(random.below(20));
            char const* const pieces[] = {"-1", "99999999999999999999", "null", "[", "{}", "\"\"", "1e400", "\\u0000", "4294967295", "true",
                                          ",", "\xff"};
            switch (random.below(5)) {
                case 0: text[at] = static_cast<char>(random.below(256)); break;
                case 1: text.erase(at, length); break;
                case 2: text.insert(at, text.substr(place(), length)); break;
                case 3: text.insert(at, pieces[random.below(12)]); break;
                default: text.replace(at, 1, std::to_string(random.below(12))); break;
            }
        }
        CAPTURE(text);
        try {
            validate(graph_from_json(text, "damaged"));
            ++read;
        } catch (error const& e) {
            ++refused;
            CHECK(e.number() >= 103);
        }
    }
    CHECK(refused > 1000);
    CHECK(read > 10);
}

TEST_CASE("names that are not UTF-8 are refused when writing") {
    auto g = small_graph();
    g[0].name = "x\xff";
    CHECK(error_of([&] { graph_to_json(g); }).number == 303);
}
