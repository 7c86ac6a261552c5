// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/placements.hpp>

#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/oracle.hpp>

#include <cantle/base/error.hpp>
#include <cantle/graph/graph_hash.hpp>
#include <cantle/mesh/placement_lattice.hpp>
#include <cantle/plan/plan_check.hpp>
#include <cantle/rules/expand_axes.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

namespace cantle::libtorch {
namespace {

double one_each(collective_call const&) { return 1.0; }

/// Makes the plan, or finds that there is none.
class planner {
public:
    planner(training_graph const& g, placements const& p) : g_(g), p_(p) { plan_.mesh = p.mesh; }

    std::optional<sharding_plan> run() {
        if (!place_nodes()) return std::nullopt;
        for (auto const& [value, l] : p_.relays) {
            if (!l.fits(g_.meta(value).sizes)) return std::nullopt;
            plan_.relays.push_back({value, id_of(l)});
        }
        if (!add_moves()) return std::nullopt;
        plan_.made_from.graph = structural_hash(g_);
        plan_.memory = parameter_memory(g_, plan_);
        return std::move(plan_);
    }

private:
    training_graph const& g_;
    placements const& p_;
    sharding_plan plan_;
    std::map<layout, plan_layout> ids_;
    std::map<std::tuple<shape, int, layout, layout>, std::uint32_t> paths_;

    plan_layout id_of(layout const& l) {
        auto const [at, fresh] = ids_.try_emplace(l, static_cast<plan_layout>(plan_.layouts.size()));
        if (fresh) plan_.layouts.push_back(l);
        return at->second;
    }
    bool place_nodes() {
        layout_table table;
        axis_expansion<rule_registry> expansion(p_.mesh, standard_registry(), table);
        for (vertex v = 0; v < g_.size(); ++v) {
            auto const& n = g_[v];
            auto const& at = p_.nodes[v];
            if (at.operands.size() != n.operands.size() || at.outputs.size() != n.outputs.size()) return false;
            node_placement out;
            std::vector<tensor_meta> metas;
            for (std::size_t i = 0; i < n.operands.size(); ++i) metas.push_back(g_.meta(n.operands[i]));
            metas.insert(metas.end(), n.outputs.begin(), n.outputs.end());
            auto all = at.operands;
            all.insert(all.end(), at.outputs.begin(), at.outputs.end());
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (metas[i].defined && !all[i].fits(metas[i].sizes)) return false;
                (i < n.operands.size() ? out.operands : out.outputs).push_back(id_of(all[i]));
            }
            if (n.role == node_role::computation && !find_strategy(n, metas, all, table, expansion, out)) return false;
            if (is_source(n.role) && at.outputs[0].has_partial()) return false;
            plan_.nodes.push_back(std::move(out));
        }
        return true;
    }
    bool find_strategy(graph_node const& n, std::vector<tensor_meta> const& metas, std::vector<layout> const& all, layout_table& table,
                       axis_expansion<rule_registry>& expansion, node_placement& out) {
        std::span<tensor_meta const> const span(metas);
        auto const t = expansion.expand({&n.operation, span.first(n.operands.size()), span.subspan(n.operands.size())});
        for (std::size_t s = 0; s < t.size(); ++s) {
            bool same = true;
            for (std::size_t i = 0; same && i < all.size(); ++i) same = table[t.layouts[s * t.ports() + i]] == all[i];
            if (!same) continue;
            for (auto const& [axis, what] : t.inner[s]) {
                auto const& meta = what.on_output ? n.outputs[what.index] : metas[what.index];
                auto const& l = what.on_output ? all[n.operands.size() + what.index] : all[what.index];
                auto const bytes = meta.defined ? element_count(l.local_shape(meta.sizes)) * element_bytes(meta.type) : 0;
                out.inner.push_back({{what.kind, 1u << axis, bytes, bytes, 0, what.reduce}, what.on_output, what.index, 0});
            }
            return true;
        }
        // The cast of a parameter passes any cut order on.
        return n.operation.name == "aten::_to_copy" && all.size() == 2 && all[0] == all[1] && !all[0].has_partial();
    }
    std::optional<std::uint32_t> path(tensor_meta const& meta, layout const& from, layout const& to) {
        auto const key = std::tuple{meta.sizes, element_bytes(meta.type), from, to};
        if (auto const at = paths_.find(key); at != paths_.end()) return at->second;
        redistribution_path out{id_of(from), id_of(to), {}, 0};
        auto const way = p_.ways.find({meta.sizes, from, to});
        std::vector<layout> stops{from};
        if (way != p_.ways.end()) stops.insert(stops.end(), way->second.begin(), way->second.end());
        stops.push_back(to);
        lattice_class const tensor{p_.mesh, meta.sizes, element_bytes(meta.type), {}, shard_policy::even};
        placement_lattice const lattice(tensor, stops, one_each);
        for (std::size_t i = 0; i + 1 < stops.size(); ++i) {
            if (!std::isfinite(lattice.distances(stops[i], {stops[i + 1]})[0])) return std::nullopt;
            for (auto const& s : lattice.path(stops[i], stops[i + 1])) out.steps.push_back(s);
        }
        auto const id = static_cast<std::uint32_t>(plan_.paths.size());
        plan_.paths.push_back(std::move(out));
        paths_.emplace(key, id);
        return id;
    }
    bool add_moves() {
        std::map<value_ref, std::uint32_t> relay_of;
        std::vector<bool> reached(p_.relays.size(), false);
        for (std::uint32_t r = 0; r < p_.relays.size(); ++r) relay_of[p_.relays[r].first] = r;
        auto const add = [&](tensor_move m, layout const& from, layout const& to) {
            if (from == to) return true;
            auto const way = path(g_.meta(m.value), from, to);
            if (!way) return false;
            m.path = *way;
            plan_.moves.push_back(m);
            return true;
        };
        for (vertex v = 0; v < g_.size(); ++v)
            for (std::uint32_t i = 0; i < g_[v].operands.size(); ++i) {
                auto const value = g_[v].operands[i];
                auto const& made = p_.nodes[value.node].outputs[value.output];
                auto const& wanted = p_.nodes[v].operands[i];
                tensor_move m;
                m.value = value;
                auto const r = relay_of.find(value);
                if (r != relay_of.end() && !reached[r->second]) {
                    reached[r->second] = true;
                    auto to_relay = m;
                    to_relay.to_relay = r->second;
                    if (!add(to_relay, made, p_.relays[r->second].second)) return false;
                }
                m.user = v;
                m.operand = i;
                if (r != relay_of.end()) m.from_relay = r->second;
                if (!add(m, r == relay_of.end() ? made : p_.relays[r->second].second, wanted)) return false;
            }
        return true;
    }
};

}  // namespace

placements placements_of(training_graph const& g, sharding_plan const& p) {
    placements out;
    out.mesh = p.mesh;
    for (auto const& n : p.nodes) {
        placed_node at;
        for (auto l : n.operands) at.operands.push_back(p.at(l));
        for (auto l : n.outputs) at.outputs.push_back(p.at(l));
        out.nodes.push_back(std::move(at));
    }
    for (auto const& r : p.relays) out.relays.emplace_back(r.value, p.at(r.at));
    for (auto const& m : p.moves) {
        auto const& path = p.paths[m.path];
        std::vector<layout> via;
        for (std::size_t i = 0; i + 1 < path.steps.size(); ++i) via.push_back(path.steps[i].step.to);
        out.ways[{g.meta(m.value).sizes, p.at(path.from), p.at(path.to)}] = std::move(via);
    }
    return out;
}

std::optional<sharding_plan> plan_of(training_graph const& g, placements const& p) { return planner(g, p).run(); }

std::vector<placed_node> strategies_of(training_graph const& g, vertex v, device_mesh const& mesh) {
    std::vector<tensor_meta> metas;
    for (auto const& r : g[v].operands) metas.push_back(g.meta(r));
    metas.insert(metas.end(), g[v].outputs.begin(), g[v].outputs.end());
    std::span<tensor_meta const> const span(metas);
    layout_table table;
    auto const operands = g[v].operands.size();
    auto const t = expand_axes(op_query{&g[v].operation, span.first(operands), span.subspan(operands)}, mesh, standard_registry(), table);
    std::vector<placed_node> all;
    for (std::size_t s = 0; s < t.size(); ++s) {
        placed_node n;
        for (std::size_t i = 0; i < t.ports(); ++i) (i < operands ? n.operands : n.outputs).push_back(table[t.layouts[s * t.ports() + i]]);
        all.push_back(std::move(n));
    }
    return all;
}

written_case::written_case(training_graph graph, std::string const& mesh) : graph_(std::move(graph)) {
    p_.mesh = device_mesh::parse(mesh);
    for (auto const& n : graph_.nodes)
        p_.nodes.push_back({std::vector<layout>(n.operands.size(), layout(p_.mesh.dims())),
                            std::vector<layout>(n.outputs.size(), layout(p_.mesh.dims()))});
}
written_case& written_case::place(value_ref v, std::vector<std::string> const& operands, std::vector<std::string> const& outputs) {
    placed_node n;
    for (auto const& t : operands) n.operands.push_back(layout::parse(p_.mesh, t));
    for (auto const& t : outputs) n.outputs.push_back(layout::parse(p_.mesh, t));
    if (is_sink(graph_[v.node].role)) n.outputs = n.operands;
    p_.nodes.at(v.node) = std::move(n);
    return *this;
}
written_case& written_case::relay(value_ref v, std::string const& at) {
    p_.relays.emplace_back(v, layout::parse(p_.mesh, at));
    return *this;
}
written_case& written_case::way(shape const& sizes, std::string const& from, std::vector<std::string> const& via, std::string const& to) {
    auto& list = p_.ways[{sizes, layout::parse(p_.mesh, from), layout::parse(p_.mesh, to)}];
    for (auto const& t : via) list.push_back(layout::parse(p_.mesh, t));
    return *this;
}
written_case& written_case::data(std::string const& source, std::vector<double> const& numbers) {
    for (auto const& n : graph_.nodes)
        if (n.name == source)
            data_[source] = at::tensor(numbers, at::kDouble).reshape(n.outputs[0].sizes).to(to_scalar_type(n.outputs[0].type));
    return *this;
}
run_case written_case::made() const {
    auto plan = plan_of(graph_, p_);
    if (!plan) throw error(error_code::no_strategy, "written case", "its placements make no plan", "");
    return {graph_, std::move(*plan), data_};
}
std::string written_case::failure(tamper_programs const& tamper) const {
    auto const f = failure_of(made(), tamper);
    return f ? f->kind + " " + f->where + " " + f->what : "";
}

}  // namespace cantle::libtorch
