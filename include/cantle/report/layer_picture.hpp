// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a picture of one layer shows: ops as cards (layer_fold.hpp), moves between them, and the layouts of all tensors on the way.
// Parameters and their gathers stand on the card that uses them, the reduction of a gradient on the card that computes it; tensors kept
// from forward, constants and buffers are shown only where they are moved.
#include <cantle/report/collectives.hpp>
#include <cantle/report/figures.hpp>
#include <cantle/report/layer_fold.hpp>
#include <cantle/report/plan_view.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// One line of a card. With a swatch: a tensor in that layout; `is_move`: a collective.
struct picture_line {
    std::string text;
    std::optional<plan_layout> swatch;
    bool is_move = false;
    std::uint32_t block = 0;                ///< lines of one block above 0 are framed together
};

struct picture_node {
    enum class kind : std::uint8_t { card, move, terminal };
    kind what = kind::card;
    std::string title, subtitle, aside;     ///< aside: time
    std::optional<plan_layout> layout;      ///< of what it gives on
    std::vector<picture_line> lines;
};

struct picture_edge {
    std::size_t from = 0, to = 0;
    plan_layout layout = 0;
    auto operator<=>(picture_edge const&) const = default;
};

/// Acyclic.
struct layer_picture {
    std::vector<picture_node> nodes;
    std::vector<picture_edge> edges;
};

namespace detail {

class picture_maker {
public:
    picture_maker(plan_view const& view, std::string prefix, phase which)
        : view_(view), g_(view.graph()), prefix_(std::move(prefix)), phase_(which) {}

    layer_picture make() {
        cards_ = fold_layer(view_, prefix_, phase_);
        for (auto const& card : cards_)
            for (vertex v : card) members_.push_back(v);
        std::sort(members_.begin(), members_.end());
        add_cards();
        add_inputs();
        for (vertex v : members_)
            for (std::uint32_t o = 0; o < g_[v].outputs.size(); ++o) lead_on({v, o}, card_of_.at(v), view_.produced({v, o}));
        return std::move(picture_);
    }

private:
    plan_view const& view_;
    training_graph const& g_;
    std::string prefix_;
    phase phase_;
    std::vector<std::vector<vertex>> cards_;
    std::vector<vertex> members_;              // of all cards, in topological order
    std::map<vertex, std::size_t> card_of_;
    layer_picture picture_;

    std::string within(std::string const& path) const {
        if (path.size() <= prefix_.size()) return prefix_.empty() ? path : "";
        return prefix_.empty() ? path : path.substr(prefix_.size() + 1);
    }
    std::string step_text(priced_transition const& s) const {
        auto const& mesh = view_.plan().mesh;
        std::string text = std::string(to_string(s.step.kind)) + " " + axes_text(mesh, s.step.axis_mask());
        if (s.step.kind == collective_kind::slice) return text;
        return text + "  " + bytes_text(s.call.message_bytes()) + "  " + microseconds_text(s.cost) + " us";
    }
    /// The move that leads to a relay, or from producer or relay to an operand; none where nothing is moved.
    tensor_move const* move_to_relay(value_ref r) const {
        auto const relay = view_.relay_of(r);
        if (relay != tensor_move::none)
            for (auto const& m : view_.plan().moves)
                if (m.to_relay == relay) return &m;
        return nullptr;
    }
    tensor_move const* move_to_operand(vertex user, std::uint32_t slot) const {
        for (auto const& m : view_.plan().moves)
            if (m.to_relay == tensor_move::none && m.user == user && m.operand == slot) return &m;
        return nullptr;
    }
    void add_steps(std::vector<picture_line>& lines, tensor_move const* m) const {
        if (m)
            for (auto const& s : view_.plan().paths[m->path].steps) lines.push_back({step_text(s), {}, true});
    }
    /// What is added to `lines` while this lives becomes one block.
    struct block_from {
        std::vector<picture_line>& lines;
        std::size_t start;
        explicit block_from(std::vector<picture_line>& l) : lines(l), start(l.size()) {}
        block_from(block_from const&) = delete;
        block_from& operator=(block_from const&) = delete;
        ~block_from() {
            for (std::size_t i = start; i < lines.size(); ++i) lines[i].block = static_cast<std::uint32_t>(start + 1);
        }
    };
    static std::string last_of(std::string const& name) {
        auto const dot = name.rfind('.');
        return dot == std::string::npos ? name : name.substr(dot + 1);
    }

    /// A parameter on the card of its user: as stored, all its moves, as read.
    void add_parameter(std::vector<picture_line>& lines, vertex user, std::uint32_t slot) const {
        block_from const frame(lines);
        auto const r = g_[user].operands[slot];
        vertex const p = *view_.parameter_of(r);
        auto const used = view_.operand(user, slot);
        if (phase_ == phase::backward && g_[r.node].in_phase == phase::forward) {
            lines.push_back({last_of(g_[p].name) + ", kept from forward  " + view_.text(view_.passed_on(r)), view_.passed_on(r), false});
            if (auto const* m = move_to_operand(user, slot)) {
                add_steps(lines, m);
                lines.push_back({"used as  " + view_.text(used), used, false});
            }
            return;
        }
        lines.push_back({last_of(g_[p].name) + ", stored  " + view_.text(view_.produced({p, 0})), view_.produced({p, 0}), false});
        std::vector<std::pair<vertex, std::uint32_t>> chain{{user, slot}};
        while (!g_[chain.back().first].operands.empty() && g_[chain.back().first].operands[chain.back().second].node != p)
            chain.emplace_back(g_[chain.back().first].operands[chain.back().second].node, 0);
        std::size_t const before = lines.size();
        for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
            add_steps(lines, move_to_relay(g_[at->first].operands[at->second]));
            add_steps(lines, move_to_operand(at->first, at->second));
        }
        if (lines.size() > before) lines.push_back({"used as  " + view_.text(used), used, false});
    }
    /// Gradients of parameters that v computes: their moves and how they are stored.
    void add_gradients(std::vector<picture_line>& lines, vertex v) const {
        for (std::uint32_t o = 0; o < g_[v].outputs.size(); ++o)
            for (auto const& [user, slot] : view_.uses({v, o})) {
                vertex sink = user;
                if (is_passed_through(view_, user)) sink = view_.uses({user, 0})[0].first;
                if (g_[sink].role != node_role::gradient || !g_[sink].of || g_[*g_[sink].of].role != node_role::parameter) continue;
                block_from const frame(lines);
                lines.push_back(
                    {last_of(g_[*g_[sink].of].name) + " gradient  " + view_.text(view_.produced({v, o})), view_.produced({v, o}), false});
                std::size_t const before = lines.size();
                add_steps(lines, move_to_relay({v, o}));
                add_steps(lines, move_to_operand(user, slot));
                if (sink != user) add_steps(lines, move_to_operand(sink, 0));
                if (lines.size() > before)
                    lines.push_back({"stored  " + view_.text(view_.operand(sink, 0)), view_.operand(sink, 0), false});
            }
    }
    void add_result(std::vector<picture_line>& lines, std::string const& what, vertex v) const {
        auto const l = view_.produced({v, 0});
        std::string sizes;
        for (auto s : g_[v].outputs[0].sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(s);
        lines.push_back({what + "[" + sizes + "]  " + view_.text(l), l, false});
    }
    bool used_outside(vertex v, std::vector<vertex> const& card) const {
        for (auto const& [user, slot] : view_.uses({v, 0}))
            if (std::find(card.begin(), card.end(), user) == card.end()) return true;
        return false;
    }
    void add_cards() {
        for (auto const& list : cards_) {
            picture_node card;
            std::vector<std::string> names;
            vertex lead = list[0];
            double compute = 0;
            for (vertex v : list) {
                auto const& n = g_[v];
                compute += view_.plan().nodes[v].compute;
                if (drawn_alone(n) || (drawn_with_producer(g_[lead]) && !drawn_with_producer(n))) lead = v;
            }
            std::size_t views = 0, others = 0;
            for (vertex v : list) {
                std::string name(op_base_name(g_[v].operation.name));
                if (drawn_with_producer(g_[v]) && list.size() > 1) {
                    ++views;
                    continue;
                }
                ++others;
                if (name == "_to_copy") name = "cast";
                if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
            }
            auto const module = within(g_[lead].module_path);
            std::string ops;
            for (std::size_t i = 0; i < names.size() && i < 4; ++i) ops += (i ? ", " : "") + names[i];
            if (names.size() > 4) ops += ", ...";
            if (others > names.size()) ops += " (" + std::to_string(others) + " ops)";
            if (views) ops += views == 1 ? " + view" : " + " + std::to_string(views) + " views";
            card.title = module.empty() ? ops : module;
            if (!module.empty()) card.subtitle = ops;
            if (compute > 0) card.aside = microseconds_text(compute) + " us";
            // What the card gives on: the major op's result, else that of the last op.
            vertex const last = drawn_alone(g_[lead]) ? lead : list.back();
            card.layout = view_.produced({last, 0});
            add_result(card.lines, "", last);
            for (vertex v : list)  // a view that lies otherwise, as its dims are others
                if (v != last && drawn_with_producer(g_[v]) && used_outside(v, list) && view_.produced({v, 0}) != *card.layout) {
                    add_result(card.lines, "viewed as  ", v);
                    break;
                }
            for (vertex v : list) {
                for (std::uint32_t s = 0; s < g_[v].operands.size(); ++s) {
                    auto const r = g_[v].operands[s];
                    if (view_.parameter_of(r)) add_parameter(card.lines, v, s);
                    else if (!is_shown(r)) {  // kept tensors, constants and buffers: only where moved
                        if (auto const* m = move_to_operand(v, s)) {
                            block_from const frame(card.lines);
                            card.lines.push_back({"kept tensor  " + view_.text(view_.passed_on(r)), view_.passed_on(r), false});
                            add_steps(card.lines, m);
                            card.lines.push_back({"used as  " + view_.text(view_.operand(v, s)), view_.operand(v, s), false});
                        }
                    }
                }
                for (auto const& s : view_.plan().nodes[v].inner)
                    card.lines.push_back({"inside: " + std::string(to_string(s.call.kind)) + " " +
                                              axes_text(view_.plan().mesh, s.call.axes) + "  " + bytes_text(s.call.message_bytes()) + "  " +
                                              microseconds_text(s.cost) + " us",
                                          {},
                                          true});
                add_gradients(card.lines, v);
            }
            for (vertex v : list) card_of_[v] = picture_.nodes.size();
            picture_.nodes.push_back(std::move(card));
        }
    }

    /// True for tensors that get an edge: made in this phase by a computation, here or outside, or an input of the graph.
    bool is_shown(value_ref r) const {
        auto const& n = g_[r.node];
        if (view_.parameter_of(r)) return false;
        if (n.role == node_role::input || n.role == node_role::target || n.role == node_role::tangent)
            return n.in_phase == phase_ || phase_ == phase::forward;
        return n.role == node_role::computation && n.in_phase == phase_ && depends_on_input(r.node);
    }
    mutable std::vector<char> depends_;
    /// False for what is made from buffers, parameters and constants only (tables of cosines).
    bool depends_on_input(vertex v) const {
        if (depends_.empty()) {
            depends_.assign(g_.size(), 0);
            for (vertex u = 0; u < g_.size(); ++u) {
                auto const role = g_[u].role;
                char d = role == node_role::input || role == node_role::target || role == node_role::tangent ||
                         g_[u].in_phase == phase::backward;
                for (auto const& r : g_[u].operands) d = d || depends_[r.node];
                depends_[u] = d;
            }
        }
        return depends_[v] != 0;
    }
    void add_edge(std::size_t from, std::size_t to, plan_layout l) {
        picture_edge const e{from, to, l};
        if (from != to && std::find(picture_.edges.begin(), picture_.edges.end(), e) == picture_.edges.end()) picture_.edges.push_back(e);
    }
    std::size_t add_move(tensor_move const& m) {
        auto const& path = view_.plan().paths[m.path];
        picture_node n;
        n.what = picture_node::kind::move;
        n.layout = path.to;
        for (auto const& s : path.steps) n.lines.push_back({step_text(s), {}, s.step.kind != collective_kind::slice});
        picture_.nodes.push_back(std::move(n));
        return picture_.nodes.size() - 1;
    }
    /// Draw a tensor from `node`, where it lies as `l`, to its users: through its relay where it has one.
    void lead_on(value_ref r, std::size_t node, plan_layout l) {
        bool used = false, leaves = false;
        for (auto const& [user, slot] : view_.uses(r)) {
            used = used || card_of_.count(user);
            leaves = leaves || (!card_of_.count(user) && leaves_layer(user));
        }
        if (!used && !leaves) return;
        if (auto const* m = card_of_.count(r.node) ? move_to_relay(r) : nullptr) {
            auto const pill = add_move(*m);
            add_edge(node, pill, l);
            node = pill;
            l = view_.plan().paths[m->path].to;
        }
        std::map<std::uint32_t, std::size_t> slices;  // by path: what costs nothing is drawn once; each collective is drawn by itself
        std::optional<std::size_t> exit;
        for (auto const& [user, slot] : view_.uses(r)) {
            auto const at = card_of_.find(user);
            if (at == card_of_.end() && !leaves_layer(user)) continue;
            std::size_t from = node;
            auto from_layout = l;
            if (at != card_of_.end())
                if (auto const* m = move_to_operand(user, slot)) {
                    auto const known = slices.find(m->path);
                    from = known != slices.end() ? known->second : add_move(*m);
                    if (view_.plan().paths[m->path].cost == 0) slices.emplace(m->path, from);
                    add_edge(node, from, l);
                    from_layout = view_.plan().paths[m->path].to;
                }
            if (at != card_of_.end()) add_edge(from, at->second, from_layout);
            else if (!exit) {
                exit = picture_.nodes.size();
                auto const& n = g_[user];
                picture_node t;
                t.what = picture_node::kind::terminal;
                t.title = "to " + (n.module_path.empty() ? n.name : n.module_path);
                t.layout = l;
                t.lines.push_back({view_.text(l), l, false});
                picture_.nodes.push_back(std::move(t));
                add_edge(node, *exit, l);
            }
        }
    }
    /// Users outside the layer that a reader follows: of this phase, and no gradient of a parameter (that stands on a card).
    bool leaves_layer(vertex user) const {
        auto const& n = g_[user];
        if (is_passed_through(view_, user) || card_of_.count(user) || n.in_phase != phase_) return false;
        return n.role != node_role::gradient || !n.of || g_[*n.of].role != node_role::parameter;
    }
    void add_inputs() {
        std::set<value_ref> done;
        for (vertex v : members_)
            for (auto const& r : g_[v].operands) {
                if (card_of_.count(r.node) || !is_shown(r) || !done.insert(r).second) continue;
                auto const& n = g_[r.node];
                picture_node t;
                t.what = picture_node::kind::terminal;
                t.title = "from " + (n.module_path.empty() ? n.name : n.module_path);
                t.layout = view_.relay_of(r) != tensor_move::none ? view_.passed_on(r) : view_.produced(r);
                t.lines.push_back({view_.text(*t.layout), t.layout, false});
                picture_.nodes.push_back(t);
                lead_on(r, picture_.nodes.size() - 1, *t.layout);
            }
    }
};

}  // namespace detail

/// The part of a layer that runs in one phase; `prefix`: its module path, "" for the whole graph (then its first few hundred vertices).
inline layer_picture picture_of_layer(plan_view const& view, std::string const& prefix, phase which) {
    return detail::picture_maker(view, prefix, which).make();
}

}  // namespace cantle
