// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/surgery.hpp>

#include <adapters/libtorch/replay.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace cantle::libtorch {
namespace {

graph_node input_node(std::string name, tensor_meta const& meta) {
    graph_node n;
    n.operation.name = "cantle::input";
    n.role = node_role::input;
    n.name = std::move(name);
    n.outputs = {contiguous_meta(meta.sizes, meta.type)};
    return n;
}
graph_node sink_node(value_ref value, tensor_meta const& meta, std::string name) {
    graph_node n;
    n.operation.name = "cantle::output";
    n.operands = {value};
    n.outputs = {meta};
    n.role = node_role::output;
    n.name = std::move(name);
    return n;
}

/// Copies the part of a placed graph that some sinks need.
class copier {
public:
    explicit copier(placed_graph const& c) : from_(c) { to_.at.mesh = c.at.mesh; }

    /// Everything that `v` needs, and v; vertices of `cut` become inputs.
    void need(vertex v, std::set<vertex> const& cut) {
        if (!needed_.insert(v).second || cut.count(v)) return;
        for (auto const& r : from_.graph[v].operands) need(r.node, cut);
    }
    void copy(std::set<vertex> const& cut, std::map<value_ref, at::Tensor> const& values) {
        std::set<value_ref> read;
        for (auto v : needed_)
            if (!cut.count(v)) read.insert(from_.graph[v].operands.begin(), from_.graph[v].operands.end());
        for (auto v : needed_) {
            auto const& n = from_.graph[v];
            if (!cut.count(v)) {
                graph_node kept = n;
                for (auto& r : kept.operands) r = now_.at(r);
                kept.forward_node.reset();
                kept.of.reset();
                kept.in_phase = phase::forward;
                kept.also_named.clear();
                if (is_sink(kept.role)) kept.role = node_role::output;
                if (is_source(kept.role) && kept.role != node_role::constant) kept = input_node(kept.name, kept.outputs[0]);
                for (std::uint32_t o = 0; o < n.outputs.size(); ++o) now_[{v, o}] = {next(), o};
                if (auto const t = from_.data.find(n.name); t != from_.data.end()) to_.data[n.name] = t->second;
                push(std::move(kept), from_.at.nodes[v]);
                continue;
            }
            for (std::uint32_t o = 0; o < n.outputs.size(); ++o) {
                if (!read.count({v, o})) continue;
                auto const name = n.outputs.size() == 1 ? n.name : n.name + "_" + std::to_string(o);
                now_[{v, o}] = {next(), 0};
                to_.data[name] = values.at({v, o}).clone();
                push(input_node(name, n.outputs[o]), {{}, {from_.at.nodes[v].outputs[o]}});
            }
        }
    }
    void add_sink(value_ref value, layout const& as) {
        auto const& meta = from_.graph.meta(value);
        push(sink_node(now_.at(value), meta, "result"), {{as}, {as}});
    }
    placed_graph finish() {
        std::set<value_ref> read;
        for (auto const& n : to_.graph.nodes) read.insert(n.operands.begin(), n.operands.end());
        for (auto const& [value, l] : from_.at.relays)
            if (auto const to = now_.find(value); to != now_.end() && read.count(to->second)) to_.at.relays.emplace_back(to->second, l);
        to_.at.ways = from_.at.ways;
        return std::move(to_);
    }

private:
    placed_graph const& from_;
    placed_graph to_;
    std::set<vertex> needed_;
    std::map<value_ref, value_ref> now_;

    vertex next() const { return static_cast<vertex>(to_.graph.size()); }
    void push(graph_node n, placed_node at) {
        to_.graph.nodes.push_back(std::move(n));
        to_.at.nodes.push_back(std::move(at));
    }
};

/// The same layout without `axis`; later axes move up.
layout without(layout const& l, std::size_t axis) {
    layout out(l.mesh_dims() - 1);
    auto const renamed = [axis](std::size_t a) { return a > axis ? a - 1 : a; };
    std::int64_t whole = 1;
    for (std::size_t i = 0; i < l.digits().size(); ++i) {
        auto const& d = l.digits()[i];
        if (i > 0 && l.digits()[i - 1].dim != d.dim) whole = 1;
        if (!d.is_cut()) whole *= d.extent;
        else if (static_cast<std::size_t>(d.axis) != axis) {
            out.push_cut(renamed(static_cast<std::size_t>(d.axis)), d.extent, d.dim, whole);
            whole = 1;
        }
    }
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (a != axis && l.on(a).is_partial()) out.set_partial(renamed(a), l.on(a).reduce);
    return out;
}

void change_layouts(placements& p, std::function<layout(layout const&)> const& change) {
    for (auto& n : p.nodes)
        for (auto* list : {&n.operands, &n.outputs})
            for (auto& l : *list) l = change(l);
    for (auto& [value, l] : p.relays) l = change(l);
}

}  // namespace

std::map<value_ref, at::Tensor> all_values(training_graph const& g, tensor_map const& data) {
    training_graph with_sinks;
    for (auto const& n : g.nodes) with_sinks.nodes.push_back(n);
    std::map<std::string, value_ref> sinks;
    for (vertex v = 0; v < g.size(); ++v)
        for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) {
            if (is_sink(g[v].role) || !g[v].outputs[o].defined) continue;
            auto const name = "value " + std::to_string(v) + ":" + std::to_string(o);
            with_sinks.nodes.push_back(sink_node({v, o}, g[v].outputs[o], name));
            sinks[name] = {v, o};
        }
    std::map<value_ref, at::Tensor> values;
    for (auto const& [name, t] : replay(with_sinks, data))
        if (auto const at = sinks.find(name); at != sinks.end()) values[at->second] = t;
    return values;
}

std::size_t op_count(training_graph const& g) {
    return static_cast<std::size_t>(
        std::count_if(g.nodes.begin(), g.nodes.end(), [](auto const& n) { return n.role == node_role::computation; }));
}

std::vector<std::int64_t> sizes_of(training_graph const& g) {
    std::set<std::int64_t, std::greater<>> sizes;
    for (auto const& n : g.nodes)
        for (auto const& t : n.outputs)
            for (auto s : t.sizes)
                if (s > 1) sizes.insert(s);
    return {sizes.begin(), sizes.end()};
}

placed_graph with_sink(placed_graph const& c, value_ref value, layout const& as) {
    copier k(c);
    k.need(value.node, {});
    k.copy({}, {});
    k.add_sink(value, as);
    return k.finish();
}

placed_graph without_op(placed_graph const& c, vertex op, std::map<value_ref, at::Tensor> const& values) {
    copier k(c);
    for (vertex v = 0; v < c.graph.size(); ++v)
        if (is_sink(c.graph[v].role)) k.need(v, {op});
    k.copy({op}, values);
    return k.finish();
}

placed_graph without_axis(placed_graph const& c, std::size_t axis) {
    auto out = c;
    std::vector<mesh_axis> axes;
    for (std::size_t a = 0; a < c.at.mesh.dims(); ++a)
        if (a != axis) axes.push_back({"a" + std::to_string(axes.size()), c.at.mesh.size(a)});
    out.at.mesh = device_mesh(axes);
    change_layouts(out.at, [axis](layout const& l) { return without(l, axis); });
    out.at.ways.clear();
    return out;
}

placed_graph with_size(placed_graph const& c, std::int64_t from, std::int64_t to) {
    auto out = c;
    out.at.ways.clear();
    for (auto& n : out.graph.nodes) {
        for (auto& t : n.outputs) {
            std::replace(t.sizes.begin(), t.sizes.end(), from, to);
            t.strides.clear();
        }
        for (auto& a : n.operation.arguments) {
            if (auto* const i = std::get_if<std::int64_t>(&a.value); i && *i == from) *i = to;
            if (auto* const list = std::get_if<std::vector<std::int64_t>>(&a.value)) std::replace(list->begin(), list->end(), from, to);
        }
        if (n.role == node_role::constant) n.constant_data.resize(static_cast<std::size_t>(element_count(n.outputs[0].sizes)), 0.0);
        if (auto const t = out.data.find(n.name); t != out.data.end()) {
            for (std::int64_t d = 0; d < t->second.dim(); ++d)
                if (t->second.size(d) == from) t->second = t->second.narrow(d, 0, to);
            t->second = t->second.contiguous();
            if (t->second.scalar_type() == at::kLong) t->second = t->second.clamp_max(to - 1);
        }
    }
    return out;
}

}  // namespace cantle::libtorch
