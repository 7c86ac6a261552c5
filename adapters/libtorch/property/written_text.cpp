// SPDX-License-Identifier: BSL-1.0
// A case as C++: what a failing run prints.
#include <adapters/libtorch/property/placements.hpp>

#include <ATen/ATen.h>

#include <cstdio>
#include <type_traits>
#include <variant>

namespace cantle::libtorch {
namespace {

std::string number(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", v);
    return text;
}
std::string in_quotes(std::string const& s) { return '"' + s + '"'; }
template <class List, class F>
std::string braces(List const& list, F f) {
    std::string s = "{";
    for (auto const& x : list) s += (s.size() > 1 ? ", " : "") + f(x);
    return s + "}";
}
std::string text_of(shape const& s) {
    return braces(s, [](auto n) { return std::to_string(n); });
}
std::string value(training_graph const& g, value_ref r) {
    auto const v = "v" + std::to_string(r.node);
    return r.output == 0 || g[r.node].outputs.size() == 1 ? v : "value_ref{" + v + ".node, " + std::to_string(r.output) + "}";
}
std::string type_text(dtype t) { return t == dtype::boolean ? "dtype::boolean" : "dtype::" + std::string(to_string(t)); }

std::string argument_text(training_graph const& g, graph_node const& n, argument_value const& a) {
    return std::visit(
        [&](auto const& x) -> std::string {
            using T = std::decay_t<decltype(x)>;
            if constexpr (std::is_same_v<T, std::monostate>) return "none";
            else if constexpr (std::is_same_v<T, operand_slot>) return value(g, n.operands[x.index]);
            else if constexpr (std::is_same_v<T, operand_slots>) {
                return "std::vector<std::optional<value_ref>>" + braces(x.indices, [&](auto i) {
                           return i < 0 ? std::string("std::nullopt") : value(g, n.operands[static_cast<std::size_t>(i)]);
                       });
            } else if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
            else if constexpr (std::is_same_v<T, std::int64_t>) return "std::int64_t{" + std::to_string(x) + "}";
            else if constexpr (std::is_same_v<T, double>) return "double{" + number(x) + "}";
            else if constexpr (std::is_same_v<T, std::string>) return in_quotes(x);
            else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) return "shape" + text_of(x);
            else if constexpr (std::is_same_v<T, std::vector<double>>) return "std::vector<double>" + braces(x, number);
            else if constexpr (std::is_same_v<T, std::vector<bool>>)
                return "std::vector<bool>" + braces(x, [](bool b) { return std::string(b ? "true" : "false"); });
            else if constexpr (std::is_same_v<T, dtype>) return type_text(x);
            else return "symbol{" + in_quotes(x.kind) + ", " + in_quotes(x.text) + "}";
        },
        a);
}
std::string node_text(training_graph const& g, vertex v) {
    auto const& n = g[v];
    auto const& t = n.outputs[0];
    if (is_sink(n.role)) return "b.output(" + value(g, n.operands[0]) + ", " + in_quotes(n.name) + ")";
    if (n.role == node_role::constant)
        return "b.constant(" + in_quotes(n.name) + ", " + text_of(t.sizes) + ", " + braces(n.constant_data, number) + ", " +
               type_text(t.type) + ")";
    if (is_source(n.role)) return "b.input(" + in_quotes(n.name) + ", " + text_of(t.sizes) + ", " + type_text(t.type) + ")";
    auto s = "b.call(" + in_quotes(n.operation.name) + ", {";
    for (auto const& a : n.operation.arguments)
        s += (s.back() == '{' ? "{" : ", {") + in_quotes(a.name) + ", " + argument_text(g, n, a.value) + "}";
    return s + "}, " + braces(n.outputs, [](tensor_meta const& m) {
               return m.defined ? "contiguous_meta(" + text_of(m.sizes) + ", " + type_text(m.type) + ")"
                                : std::string("tensor_meta{{}, {}, dtype::float32, false}");
           }) + ")";
}
/// A line is broken behind commas where it is too long.
std::string wrapped(std::string const& line) {
    std::string out, rest = line;
    while (rest.size() > 132) {
        auto const at = rest.rfind(", ", 130);
        if (at == std::string::npos || at < 20) break;
        out += rest.substr(0, at + 1) + "\n";
        rest = "        " + rest.substr(at + 2);
    }
    return out + rest + "\n";
}

}  // namespace

std::string text_of(run_case const& c, std::string const& title) {
    auto const& g = c.graph;
    auto const at = placements_of(g, c.plan);
    auto const& mesh = at.mesh;
    std::string sizes;
    for (std::size_t a = 0; a < mesh.dims(); ++a) sizes += (a ? "x" : "") + std::to_string(mesh.size(a));
    auto const texts = [&](std::vector<layout> const& list) {
        return braces(list, [&](layout const& l) { return in_quotes(l.text(mesh)); });
    };
    std::string s = "TEST_CASE(" + in_quotes(title) + ") {\n    graph_builder b;\n";
    for (vertex v = 0; v < g.size(); ++v) s += wrapped("    auto const v" + std::to_string(v) + " = " + node_text(g, v) + ";");
    s += "    written_case c(b.graph(), " + in_quotes(sizes) + ");\n";
    for (vertex v = 0; v < g.size(); ++v) {
        bool const sink = is_sink(g[v].role);
        s += wrapped("    c.place(v" + std::to_string(v) + ", " + texts(at.nodes[v].operands) + ", " +
                     (sink ? "{}" : texts(at.nodes[v].outputs)) + ");");
    }
    for (auto const& [ref, l] : at.relays) s += "    c.relay(" + value(g, ref) + ", " + in_quotes(l.text(mesh)) + ");\n";
    for (auto const& [key, via] : at.ways) {
        auto const& [of, from, to] = key;
        if (!via.empty())
            s += wrapped("    c.way(" + text_of(of) + ", " + in_quotes(from.text(mesh)) + ", " + texts(via) + ", " +
                         in_quotes(to.text(mesh)) + ");");
    }
    for (auto const& [name, t] : c.data) {
        std::vector<double> numbers;
        auto const flat = t.to(at::kDouble).contiguous().view({-1});
        for (std::int64_t i = 0; i < flat.numel(); ++i) numbers.push_back(flat[i].item<double>());
        s += wrapped("    c.data(" + in_quotes(name) + ", " + braces(numbers, number) + ");");
    }
    return s + "    CHECK(c.failure() == \"\");\n}\n";
}

}  // namespace cantle::libtorch
