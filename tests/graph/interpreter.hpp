// SPDX-License-Identifier: BSL-1.0
#pragma once
// Runs small graphs on doubles, so that tests can compare what two graphs compute. Integer data keep every sum exact.
#include <cantle/graph/training_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test {
using namespace cantle;

/// Row-major values.
struct array {
    shape sizes;
    std::vector<double> data;
    bool operator==(array const&) const = default;
};

inline std::size_t count(shape const& s) { return static_cast<std::size_t>(element_count(s)); }

/// A reproducible array of small integers that depends on the name.
inline array integers(std::string const& name, shape const& sizes) {
    std::uint32_t state = 2166136261u;
    for (char c : name) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
    array a{sizes, {}};
    for (std::size_t i = 0; i < count(sizes); ++i) {
        state = state * 1664525u + 1013904223u;
        a.data.push_back(static_cast<double>((state >> 16) % 9) - 4.0);
    }
    return a;
}

inline std::size_t flat(shape const& index, shape const& strides) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
    return static_cast<std::size_t>(at);
}

/// out[index] = f(index) for every index of `sizes`.
inline array generate(shape const& sizes, std::function<double(shape const&)> const& f) {
    array out{sizes, {}};
    shape index(sizes.size(), 0);
    for (std::size_t n = count(sizes); n > 0; --n) {
        out.data.push_back(f(index));
        for (std::size_t d = sizes.size(); d-- > 0;) {
            if (++index[d] < sizes[d]) break;
            index[d] = 0;
        }
    }
    return out;
}
inline double at(array const& a, shape const& index) { return a.data[flat(index, contiguous_strides(a.sizes))]; }
/// The element under broadcasting.
inline double broadcast_at(array const& a, shape index) {
    index.erase(index.begin(), index.end() - static_cast<std::ptrdiff_t>(a.sizes.size()));
    for (std::size_t i = 0; i < index.size(); ++i)
        if (a.sizes[i] == 1) index[i] = 0;
    return at(a, index);
}
inline array permuted(array const& a, std::vector<std::size_t> const& order) {
    shape sizes;
    for (auto d : order) sizes.push_back(a.sizes[d]);
    return generate(sizes, [&](shape const& index) {
        shape old(index.size());
        for (std::size_t i = 0; i < order.size(); ++i) old[order[i]] = index[i];
        return at(a, old);
    });
}
/// [rows, K] x [K, N] over flattened leading dims of a; transposing b first on demand.
inline array product(array const& a, array const& b, bool transpose_b) {
    auto const k = static_cast<std::size_t>(a.sizes.back()), n = static_cast<std::size_t>(b.sizes[transpose_b ? 0 : 1]);
    array out{a.sizes, {}};
    out.sizes.back() = static_cast<std::int64_t>(n);
    for (std::size_t row = 0; row < a.data.size() / k; ++row)
        for (std::size_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::size_t i = 0; i < k; ++i) sum += a.data[row * k + i] * (transpose_b ? b.data[j * k + i] : b.data[i * n + j]);
            out.data.push_back(sum);
        }
    return out;
}

inline array run_node(graph_node const& n, std::vector<array> const& in) {
    auto const& name = n.operation.name;
    auto const& sizes = n.outputs[0].sizes;
    auto arg = [&](char const* a) -> array const& { return in[n.operation.slot(a).value()]; };
    auto pointwise = [&](auto f) {
        return generate(sizes, [&](shape const& i) { return f(broadcast_at(in[0], i), broadcast_at(in[1], i)); });
    };
    for (auto const same : {"cantle::output", "aten::alias", "aten::detach", "aten::_to_copy", "aten::clone"})
        if (name == same) return in[0];
    if (name == "aten::view" || name == "aten::_unsafe_view" || name == "aten::reshape") return {sizes, in[0].data};
    if (name == "aten::t" || name == "aten::transpose.int" || name == "aten::permute") {
        std::vector<std::size_t> order(sizes.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        auto dim = [&](std::int64_t d) { return static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(order.size()) : d); };
        if (name == "aten::t" && order.size() == 2) std::swap(order[0], order[1]);
        if (name == "aten::transpose.int")
            std::swap(order[dim(n.operation.get<std::int64_t>("dim0", 0))], order[dim(n.operation.get<std::int64_t>("dim1", 0))]);
        if (name == "aten::permute")
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = dim(n.operation.get<shape>("dims", {})[i]);
        return permuted(in[0], order);
    }
    if (name == "aten::expand") return generate(sizes, [&](shape const& i) { return broadcast_at(in[0], i); });
    if (name == "aten::mm") return product(arg("self"), arg("mat2"), false);
    if (name == "aten::matmul") return product(arg("self"), arg("other"), false);
    if (name == "aten::addmm") {
        auto const p = product(arg("mat1"), arg("mat2"), false);
        auto const beta = n.operation.get<double>("beta", 1), alpha = n.operation.get<double>("alpha", 1);
        return generate(sizes, [&](shape const& i) { return beta * broadcast_at(arg("self"), i) + alpha * at(p, i); });
    }
    if (name == "aten::bmm")
        return generate(sizes, [&](shape const& i) {
            double sum = 0;
            for (std::int64_t k = 0; k < arg("self").sizes[2]; ++k)
                sum += at(arg("self"), {i[0], i[1], k}) * at(arg("mat2"), {i[0], k, i[2]});
            return sum;
        });
    if (name == "aten::linear") {
        auto const p = product(arg("input"), arg("weight"), true);
        if (!n.operation.slot("bias")) return p;
        return generate(sizes, [&](shape const& i) { return at(p, i) + broadcast_at(arg("bias"), i); });
    }
    if (name == "cantle::linear_grad_input") return product(arg("grad"), arg("weight"), false);
    if (name == "cantle::linear_grad_weight") {
        auto flat2 = [](array const& a) {
            auto const last = a.sizes.back();
            return array{{static_cast<std::int64_t>(a.data.size()) / last, last}, a.data};
        };
        return product(permuted(flat2(arg("grad")), {1, 0}), flat2(arg("input")), false);
    }
    if (name == "aten::add.Tensor") return pointwise([&](double a, double b) { return a + n.operation.get<double>("alpha", 1) * b; });
    if (name == "aten::mul.Tensor") return pointwise([](double a, double b) { return a * b; });
    if (name == "aten::relu") return generate(sizes, [&](shape const& i) { return std::max(0.0, at(in[0], i)); });
    if (name == "aten::threshold_backward") return pointwise([](double g, double x) { return x > 0 ? g : 0.0; });
    if (name == "aten::bernoulli") return integers(n.name, sizes);  // "random": as its name has it, so merging would show
    if (name == "aten::sum.dim_IntList") {
        auto const dims = n.operation.get<shape>("dim", {});
        std::vector<bool> reduced(in[0].sizes.size(), dims.empty());
        for (auto d : dims) reduced[static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(reduced.size()) : d)] = true;
        shape kept;
        for (std::size_t i = 0; i < reduced.size(); ++i) kept.push_back(reduced[i] ? 1 : in[0].sizes[i]);
        array sums{kept, std::vector<double>(count(kept), 0.0)};
        generate(in[0].sizes, [&](shape const& i) {
            shape to = i;
            for (std::size_t d = 0; d < reduced.size(); ++d)
                if (reduced[d]) to[d] = 0;
            return sums.data[flat(to, contiguous_strides(kept))] += at(in[0], i);
        });
        return {sizes, sums.data};
    }
    throw std::runtime_error("the test interpreter does not know " + name);
}

/// Values of all sinks by name.
inline std::map<std::string, array> run(training_graph const& g) {
    std::vector<array> values(g.size());
    std::map<std::string, array> sinks;
    for (vertex v = 0; v < g.size(); ++v) {
        auto const& n = g[v];
        if (is_source(n.role)) {
            values[v] = n.role == node_role::constant ? array{n.outputs[0].sizes, n.constant_data} : integers(n.name, n.outputs[0].sizes);
            continue;
        }
        std::vector<array> in;
        for (auto r : n.operands) in.push_back(values[r.node]);
        values[v] = run_node(n, in);
        if (values[v].sizes != n.outputs[0].sizes) throw std::runtime_error("wrong meta at " + n.name);
        if (is_sink(n.role)) sinks[n.name] = values[v];
    }
    return sinks;
}

}  // namespace test
