// SPDX-License-Identifier: BSL-1.0
#pragma once
// Random valid graphs with every kind of field and argument, and comparison that knows NaN.
#include <cantle/graph/training_graph.hpp>

#include <bit>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace test {
using namespace cantle;

inline bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

inline bool same_value(argument_value const& a, argument_value const& b) {
    if (a.index() != b.index()) return false;
    if (auto const* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
    if (auto const* x = std::get_if<std::vector<double>>(&a)) {
        auto const& y = std::get<std::vector<double>>(b);
        if (x->size() != y.size()) return false;
        for (std::size_t i = 0; i < y.size(); ++i)
            if (!same_bits((*x)[i], y[i])) return false;
        return true;
    }
    return a == b;
}

inline bool same_node(graph_node const& a, graph_node const& b) {
    if (a.operation.name != b.operation.name || a.operation.arguments.size() != b.operation.arguments.size()) return false;
    for (std::size_t i = 0; i < a.operation.arguments.size(); ++i)
        if (a.operation.arguments[i].name != b.operation.arguments[i].name ||
            !same_value(a.operation.arguments[i].value, b.operation.arguments[i].value))
            return false;
    return a.operands == b.operands && a.outputs == b.outputs && a.role == b.role && a.in_phase == b.in_phase && a.name == b.name &&
           a.module_path == b.module_path && a.forward_node == b.forward_node && a.of == b.of && a.also_named == b.also_named &&
           same_value(a.constant_data, b.constant_data);
}

class random_source {
public:
    explicit random_source(std::uint32_t seed) : engine_(seed) {}
    /// In [0, n), the same on every platform (std's distributions are not).
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint32_t>(n)); }
    bool one_in(std::int64_t n) { return below(n) == 0; }

    double real() {
        double const some[] = {0.0, -0.0, 1.0, -2.5, 1e-310, 1e308, std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 0.1, 3e20};
        return one_in(2) ? some[below(11)] : static_cast<double>(below(1000000)) / 997.0;
    }
    std::string text() {
        char const* const some[] = {"", "mean", "a \"quoted\" one", "back\\slash", "line\nbreak", "\xc3\xbcml", "nan", "aten::view/2"};
        return some[below(8)];
    }
    dtype type() { return static_cast<dtype>(below(14)); }
    tensor_meta meta() {
        shape sizes;
        for (auto r = below(4); r > 0; --r) sizes.push_back(below(5));
        tensor_meta m = contiguous_meta(sizes, type());
        if (one_in(4)) for (auto& s : m.strides) s = below(7);
        else if (one_in(8)) m.strides.clear();
        m.defined = !one_in(10);
        return m;
    }
    argument_value value(std::vector<value_ref>& operands, std::vector<value_ref> const& known) {
        auto operand = [&] {
            operands.push_back(known[static_cast<std::size_t>(below(static_cast<std::int64_t>(known.size())))]);
            return operands.size() - 1;
        };
        switch (below(12)) {
            case 0: return std::monostate{};
            case 1:
            case 2: if (!known.empty()) return operand_slot{static_cast<std::uint32_t>(operand())}; return std::monostate{};
            case 3: {
                operand_slots s;
                for (auto n = below(4); n > 0; --n)
                    s.indices.push_back(known.empty() || one_in(3) ? -1 : static_cast<std::int32_t>(operand()));
                return s;
            }
            case 4: return one_in(2);
            case 5: return below(1000) - 500;
            case 6: return real();
            case 7: return text();
            case 8: return std::vector<std::int64_t>(static_cast<std::size_t>(below(3)), below(9));
            case 9: return std::vector<double>(static_cast<std::size_t>(below(3)), real());
            case 10: return std::vector<bool>(static_cast<std::size_t>(below(3)), one_in(2));
            default: if (one_in(2)) return type(); return symbol{text(), text()};
        }
    }

private:
    std::mt19937 engine_;
};

/// A valid graph of about `size` nodes; the same for the same seed.
inline training_graph random_graph(std::uint32_t seed, int size) {
    random_source random(seed);
    training_graph g;
    g.origin = {random.text(), "train", "bf16", random.below(100), random.below(5000), {{"dim", random.below(9)}, {random.text(), -1}}};
    std::vector<value_ref> known;
    std::vector<vertex> sources, sinks;
    for (int i = 0; i < size; ++i) {
        auto const v = static_cast<vertex>(g.size());
        graph_node n;
        n.name = "n" + std::to_string(i) + random.text();
        n.module_path = random.one_in(2) ? "" : "layers." + std::to_string(i);
        n.in_phase = random.one_in(2) ? phase::forward : phase::backward;
        auto const kind = random.below(6);
        if (kind < 2 || known.empty()) {
            n.role = static_cast<node_role>(1 + random.below(6));
            if (n.role == node_role::tangent && sinks.empty()) n.role = node_role::input;
            if (n.role == node_role::tangent) n.of = sinks.back();
            n.operation.name = "cantle::" + std::string(to_string(n.role));
            n.outputs = {random.meta()};
            n.outputs[0].defined = true;
            if (n.role == node_role::constant)
                for (auto k = n.outputs[0].elements(); k > 0; --k) n.constant_data.push_back(random.real());
            if (random.one_in(5)) n.also_named = {n.name + ".tied", n.name + ".tied too"};
            sources.push_back(v);
        } else if (kind == 2) {
            n.role = random.one_in(2) ? node_role::loss : node_role::output;
            if (random.one_in(2)) n.role = node_role::gradient;
            auto const r = n.role == node_role::gradient ? value_ref{sources.front(), 0} : known.back();
            if (n.role == node_role::gradient) n.of = sources.front();
            n.operation.name = "cantle::output";
            n.operands = {r};
            n.outputs = {g.meta(r)};
            sinks.push_back(v);
        } else {
            n.operation.name = "test::op" + std::to_string(random.below(4));
            for (auto k = random.below(4); k > 0; --k)
                n.operation.arguments.push_back({"a" + std::to_string(k), random.value(n.operands, known)});
            for (auto k = random.below(3); k >= 0; --k) n.outputs.push_back(random.meta());
            if (random.one_in(3)) n.forward_node = static_cast<vertex>(random.below(v + 1));
        }
        for (std::uint32_t o = 0; o < n.outputs.size(); ++o)
            if (n.outputs[o].defined) known.push_back({v, o});
        g.nodes.push_back(std::move(n));
    }
    return g;
}

}  // namespace test
