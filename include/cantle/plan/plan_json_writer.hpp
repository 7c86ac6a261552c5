// SPDX-License-Identifier: BSL-1.0
#pragma once
// Writes a plan as JSON text. plan_json.hpp describes the format; the same plan gives the same bytes everywhere.
#include <cantle/base/json_text.hpp>
#include <cantle/plan/plan.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace cantle::detail {

/// Appends JSON text piece by piece, one table row per line. `graph`, where given, lends the vertices their names.
class plan_json_writer : json_text {
public:
    plan_json_writer(sharding_plan const& plan, training_graph const* graph) : plan_(plan), graph_(graph) {}

    std::string write() {
        out_ = "{\"format\":\"cantle-plan\",\"version\":1,\n\"mesh\":";
        list(plan_.mesh.axes(), [this](mesh_axis const& a) {
            out_ += '[';
            string(a.name);
            out_ += ',';
            integer(a.size);
            out_ += ']';
        });
        auto const& from = plan_.made_from;
        out_ += ",\n\"made_from\":{\"graph\":\"" + from.graph.hex() + "\",\"rules\":\"" + from.rules.hex() + "\",\"cost\":\"" +
                from.cost.hex() + "\",\"options\":\"" + from.options.hex() + "\"}";
        write_outcome();
        rows("layouts", plan_.layouts, [this](layout const& l) { string(l.text(plan_.mesh)); });
        vertex v = 0;
        rows("nodes", plan_.nodes, [this, &v](node_placement const& n) { write_node(v++, n); });
        rows("relays", plan_.relays, [this](relay_placement const& r) {
            value(r.value);
            out_ += ",\"at\":";
            integer(r.at);
            out_ += '}';
        });
        rows("paths", plan_.paths, [this](redistribution_path const& p) { write_path(p); });
        rows("moves", plan_.moves, [this](tensor_move const& m) { write_move(m); });
        out_ += "}\n";
        return std::move(out_);
    }

private:
    sharding_plan const& plan_;
    training_graph const* graph_;

    void string(std::string_view s) { out_ += nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }
    void text_field(std::string_view name, std::string_view text) {
        field(name);
        string(text);
    }
    void field(std::string_view name) {
        out_ += ",\"";
        out_ += name;
        out_ += "\":";
    }
    void integer_field(std::string_view name, std::int64_t v) {
        field(name);
        integer(v);
    }
    void real_field(std::string_view name, double v) {
        field(name);
        real(v);
    }
    /// A table: one line per row.
    template <class List, class Each>
    void rows(std::string_view name, List const& items, Each each) {
        out_ += ",\n\"";
        out_ += name;
        out_ += "\":[";
        bool first = true;
        for (auto const& x : items) {
            out_ += first ? "\n" : ",\n";
            first = false;
            each(x);
        }
        out_ += ']';
    }
    /// The start of a row: {"value":[node,output]
    void value(value_ref r) {
        out_ += "{\"value\":[";
        integer(r.node);
        out_ += ',';
        integer(r.output);
        out_ += ']';
    }

    void write_outcome() {
        out_ += ",\n\"objective\":";
        real(plan_.objective);
        real_field("bound", plan_.bound);
        real_field("gap", plan_.gap());
        text_field("status", to_string(plan_.status));
        text_field("bounded_problem", plan_.bounded_problem);
        rows("constraints", plan_.constraints, [this](std::string const& s) { string(s); });
        if (!plan_.fallbacks.empty())
            rows("fallback", plan_.fallbacks, [this](fallback_op const& f) {
                out_ += '[';
                string(f.name);
                out_ += ',';
                integer(static_cast<std::int64_t>(f.count));
                out_ += ']';
            });
        if (!plan_.budgets.empty())
            rows("budgets", plan_.budgets, [this](budget_use const& b) {
                out_ += "{\"name\":";
                string(b.name);
                text_field("unit", b.in_bytes ? "bytes" : "");
                real_field("limit", b.limit);
                real_field("use", b.use);
                real_field("multiplier", b.multiplier);
                out_ += '}';
            });
        auto const& c = plan_.cost;
        out_ += ",\n\"cost\":{\"forward_compute\":";
        real(c.forward_compute);
        real_field("backward_compute", c.backward_compute);
        for (std::size_t k = 0; k < c.moves.size(); ++k) real_field(to_string(static_cast<collective_kind>(k)), c.moves[k]);
        real_field("inner", c.inner);
        real_field("tie_break", c.tie_break);
        out_ += "},\n\"memory\":{\"parameters_global\":";
        integer(plan_.memory.parameters_global);
        integer_field("parameters_local", plan_.memory.parameters_local);
        out_ += '}';
    }
    void write_node(vertex v, node_placement const& n) {
        out_ += "{\"id\":";
        integer(v);
        if (graph_ && v < graph_->size()) text_field("name", (*graph_)[v].name);
        if (!n.operands.empty()) {
            field("in");
            list(n.operands, [this](plan_layout l) { integer(l); });
        }
        field("out");
        list(n.outputs, [this](plan_layout l) { integer(l); });
        if (n.compute != 0) real_field("compute", n.compute);
        if (!n.inner.empty()) {
            field("inner");
            list(n.inner, [this](inner_step const& s) {
                out_ += "{\"on\":\"";
                out_ += s.on_output ? "out" : "in";
                out_ += '"';
                integer_field("index", s.index);
                write_call(s.call);
                real_field("cost", s.cost);
                out_ += '}';
            });
        }
        out_ += '}';
    }
    /// The fields of a collective, behind others.
    void write_call(collective_call const& c) {
        text_field("kind", to_string(c.kind));
        field("axes");
        string_axes(c.axes);
        integer_field("before", c.bytes_before);
        integer_field("after", c.bytes_after);
        if (c.packed_bytes) integer_field("packed", c.packed_bytes);
        if (c.reduce != reduction::sum) text_field("reduce", to_string(c.reduce));
    }
    void string_axes(std::uint32_t mask) {
        out_ += '[';
        bool first = true;
        for (std::size_t a = 0; a < plan_.mesh.dims(); ++a)
            if (mask >> a & 1) {
                if (!first) out_ += ',';
                first = false;
                integer(static_cast<std::int64_t>(a));
            }
        out_ += ']';
    }
    void write_path(redistribution_path const& p) {
        out_ += "{\"from\":";
        integer(p.from);
        integer_field("to", p.to);
        real_field("cost", p.cost);
        field("steps");
        list(p.steps, [this](priced_transition const& s) {
            auto const& t = s.step;
            out_ += "{\"kind\":";
            string(to_string(t.kind));
            field("axes");
            list(t.axes, [this](std::uint8_t a) { integer(a); });
            if (t.from_dim) integer_field("from_dim", t.from_dim);
            if (t.to_dim) integer_field("to_dim", t.to_dim);
            if (t.reduce != reduction::sum) text_field("reduce", to_string(t.reduce));
            text_field("reaches", t.to.text(plan_.mesh));
            integer_field("before", s.call.bytes_before);
            integer_field("after", s.call.bytes_after);
            if (s.call.packed_bytes) integer_field("packed", s.call.packed_bytes);
            real_field("cost", s.cost);
            out_ += '}';
        });
        out_ += '}';
    }
    void write_move(tensor_move const& m) {
        value(m.value);
        if (m.from_relay != tensor_move::none) integer_field("from_relay", m.from_relay);
        if (m.to_relay != tensor_move::none) integer_field("to_relay", m.to_relay);
        else {
            integer_field("user", m.user);
            integer_field("operand", m.operand);
        }
        integer_field("path", m.path);
        out_ += '}';
    }
};

}  // namespace cantle::detail
