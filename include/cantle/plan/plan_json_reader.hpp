// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reads the JSON form of a plan. Every fault is a numbered error that names the file, the row and the field; what comes out has no index
// that points outside its table and does not contradict itself (plan_check.hpp).
#include <cantle/base/error.hpp>
#include <cantle/base/json_fields.hpp>
#include <cantle/plan/plan.hpp>
#include <cantle/plan/plan_check.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace cantle::detail {

class plan_json_reader : json_fields {
public:
    explicit plan_json_reader(std::string_view source_name) : json_fields(source_name, ", or plan again") {}

    sharding_plan read(std::string_view text) {
        json const d = parse_format(text, "cantle-plan", "plan", "cantle plan -o");
        only_fields(d, {"format", "version", "mesh", "made_from", "objective", "bound", "gap", "status", "bounded_problem", "constraints",
                        "fallback", "budgets", "cost", "memory", "layouts", "nodes", "relays", "paths", "moves"});
        read_mesh(required(d, "mesh"));
        auto const& from = object(required(d, "made_from"), "made_from", {"graph", "rules", "cost", "options"});
        plan_.made_from = {hash(from, "graph"), hash(from, "rules"), hash(from, "cost"), hash(from, "options")};
        read_outcome(d);
        each_row(d, "layouts", [this](json const& j) { plan_.layouts.push_back(layout_of(j, "layouts")); });
        each_row(d, "nodes", [this](json const& j) { read_node(j); });
        each_row(d, "relays", [this](json const& j) {
            object(j, "relays", {"value", "at"});
            auto const value = value_of(j);
            plan_.relays.push_back({value, layout_index(required(j, "at"), "at")});
        });
        each_row(d, "paths", [this](json const& j) { read_path(j); });
        each_row(d, "moves", [this](json const& j) { read_move(j); });
        if (auto const wrong = find_contradiction(plan_)) {
            place_ = wrong->place;
            fail(wrong->field, wrong->problem);
        }
        return std::move(plan_);
    }

private:
    sharding_plan plan_;

    std::int64_t bytes_of(json const& j, char const* field) const {
        return integer(required(j, field), field, 0, std::numeric_limits<std::int64_t>::max());
    }
    /// An index into a table of `count` rows.
    std::uint32_t index(json const& j, std::string_view field, std::size_t count) const {
        auto const i = integer(j, field, 0, std::numeric_limits<std::uint32_t>::max());
        if (static_cast<std::size_t>(i) >= count)
            fail(field, "is " + std::to_string(i) + ", but there are only " + std::to_string(count) + " of those");
        return static_cast<std::uint32_t>(i);
    }
    double real(json const& j, std::string_view field) const {
        if (!j.is_number()) fail(field, "is no number: " + shown(j));
        double const v = j.get<double>();
        if (!std::isfinite(v)) fail(field, "is not finite");
        return v;
    }
    double cost_of(json const& j, char const* field) const {
        double const v = real(required(j, field), field);
        if (v < 0) fail(field, "is negative: " + shown(j[field]));
        return v;
    }
    digest hash(json const& j, char const* field) const {
        auto const& s = text(required(j, field), field);
        if (s.size() != 32 || s.find_first_not_of("0123456789abcdef") != std::string::npos)
            fail(field, "is no hash of 32 hex digits: " + shown(j[field]));
        return {std::stoull(s.substr(0, 16), nullptr, 16), std::stoull(s.substr(16), nullptr, 16)};
    }
    template <class Each>
    void each_row(json const& d, char const* table, Each each) {
        auto const& list = array(required(d, table), table);
        for (std::size_t i = 0; i < list.size(); ++i) {
            place_ = "row " + std::to_string(i) + " of " + table;
            each(list[i]);
        }
        place_.clear();
    }
    layout layout_of(json const& j, std::string_view field) const {
        auto const& s = text(j, field);
        try {
            return layout::parse(plan_.mesh, s);
        } catch (error const& e) {
            fail(field, "is no layout of mesh " + plan_.mesh.text() + ": " + shown(j) + " (" + e.problem() + ")");
        }
    }
    plan_layout layout_index(json const& j, std::string_view field) const { return index(j, field, plan_.layouts.size()); }
    value_ref value_of(json const& row) const {
        auto const& j = array(required(row, "value"), "value");
        if (j.size() != 2) fail("value", "is no pair [node, output]: " + shown(j));
        auto const node = index(j[0], "value", plan_.nodes.size());
        return {node, index(j[1], "value", plan_.nodes[node].outputs.size())};
    }
    reduction reduce_of(json const& j) const {
        if (!j.contains("reduce")) return reduction::sum;
        auto const& s = text(j["reduce"], "reduce");
        for (auto r : {reduction::sum, reduction::avg, reduction::max, reduction::min})
            if (to_string(r) == s) return r;
        fail("reduce", "is none of sum, avg, max, min: " + shown(j["reduce"]));
    }
    collective_kind kind_of(json const& j) const {
        auto const& s = text(required(j, "kind"), "kind");
        for (std::uint8_t k = 0; k <= static_cast<std::uint8_t>(collective_kind::permute); ++k)
            if (to_string(static_cast<collective_kind>(k)) == s) return static_cast<collective_kind>(k);
        fail("kind", "names no collective: " + shown(j["kind"]));
    }
    std::vector<std::uint8_t> axes_of(json const& j) const {
        std::vector<std::uint8_t> axes;
        std::uint32_t seen = 0;
        for (auto const& a : array(required(j, "axes"), "axes")) {
            axes.push_back(static_cast<std::uint8_t>(index(a, "axes", plan_.mesh.dims())));
            if (seen >> axes.back() & 1) fail("axes", "names an axis twice: " + shown(j["axes"]));
            seen |= 1u << axes.back();
        }
        if (axes.empty()) fail("axes", "is empty");
        return axes;
    }
    collective_call call_of_row(json const& j, std::vector<std::uint8_t> const& axes) const {
        collective_call call{kind_of(j),  0, bytes_of(j, "before"), bytes_of(j, "after"), j.contains("packed") ? bytes_of(j, "packed") : 0,
                             reduce_of(j)};
        for (auto a : axes) call.axes |= 1u << a;
        return call;
    }

    void read_mesh(json const& j) {
        std::vector<mesh_axis> axes;
        for (auto const& a : array(j, "mesh")) {
            if (array(a, "mesh").size() != 2) fail("mesh", "has an entry that is no pair [name, size]: " + shown(a));
            axes.push_back({text(a[0], "mesh"), integer(a[1], "mesh", 1, max_mesh_devices)});
        }
        try {
            plan_.mesh = device_mesh(std::move(axes));
        } catch (error const& e) {
            fail("mesh", "is no mesh: " + e.subject() + ": " + e.problem());
        }
    }
    void read_outcome(json const& d) {
        plan_.objective = cost_of(d, "objective");
        plan_.bound = real(required(d, "bound"), "bound");
        // Derived, and written for readers; a file whose three figures contradict each other was edited.
        if (d.contains("gap") && real(d["gap"], "gap") != plan_.gap())
            fail("gap", "does not follow from objective and bound: " + shown(d["gap"]));
        auto const& status = text(required(d, "status"), "status");
        bool known = false;
        for (auto s : all_solve_statuses)
            if (to_string(s) == status) {
                plan_.status = s;
                known = true;
            }
        if (!known) fail("status", "is no status: " + shown(d["status"]));
        plan_.bounded_problem = text(required(d, "bounded_problem"), "bounded_problem");
        for (auto const& c : array(required(d, "constraints"), "constraints")) plan_.constraints.push_back(text(c, "constraints"));
        if (d.contains("budgets"))
            each_row(d, "budgets", [this](json const& j) {
                object(j, "budgets", {"name", "unit", "limit", "use", "multiplier"});
                auto const& unit = text(required(j, "unit"), "unit");
                if (unit != "bytes" && !unit.empty()) fail("unit", "is neither \"bytes\" nor empty: " + shown(j["unit"]));
                plan_.budgets.push_back({text(required(j, "name"), "name"), real(required(j, "limit"), "limit"),
                                         real(required(j, "use"), "use"), cost_of(j, "multiplier"), unit == "bytes"});
            });
        if (d.contains("fallback"))
            for (auto const& f : array(d["fallback"], "fallback")) {
                if (!f.is_array() || f.size() != 2) fail("fallback", "is no pair of op and count: " + shown(f));
                auto const count = integer(f[1], "fallback", 1, std::numeric_limits<std::uint32_t>::max());
                plan_.fallbacks.push_back({text(f[0], "fallback"), static_cast<std::size_t>(count)});
            }
        auto const& c = object(required(d, "cost"), "cost",
                               {"forward_compute", "backward_compute", "slice", "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                "permute", "inner", "tie_break"});
        plan_.cost.forward_compute = cost_of(c, "forward_compute");
        plan_.cost.backward_compute = cost_of(c, "backward_compute");
        for (std::size_t k = 0; k < plan_.cost.moves.size(); ++k)
            plan_.cost.moves[k] = cost_of(c, std::string(to_string(static_cast<collective_kind>(k))).c_str());
        plan_.cost.inner = cost_of(c, "inner");
        plan_.cost.tie_break = cost_of(c, "tie_break");
        auto const& m = object(required(d, "memory"), "memory", {"parameters_global", "parameters_local"});
        plan_.memory = {bytes_of(m, "parameters_global"), bytes_of(m, "parameters_local")};
    }
    void read_node(json const& j) {
        object(j, "nodes", {"id", "name", "in", "out", "compute", "inner"});
        if (j.contains("id") &&
            integer(j["id"], "id", 0, std::numeric_limits<std::int64_t>::max()) != static_cast<std::int64_t>(plan_.nodes.size()))
            fail("id", "is not the place of the row: " + shown(j["id"]));
        if (j.contains("name")) text(j["name"], "name");
        node_placement n;
        if (j.contains("in"))
            for (auto const& l : array(j["in"], "in")) n.operands.push_back(layout_index(l, "in"));
        for (auto const& l : array(required(j, "out"), "out")) n.outputs.push_back(layout_index(l, "out"));
        if (j.contains("compute")) n.compute = cost_of(j, "compute");
        if (j.contains("inner"))
            for (auto const& s : array(j["inner"], "inner")) {
                object(s, "inner", {"on", "index", "kind", "axes", "before", "after", "packed", "reduce", "cost"});
                auto const& on = text(required(s, "on"), "on");
                if (on != "out" && on != "in") fail("on", "is neither \"in\" nor \"out\": " + shown(s["on"]));
                inner_step step;
                step.on_output = on == "out";
                step.index = index(required(s, "index"), "index", step.on_output ? n.outputs.size() : n.operands.size());
                step.call = call_of_row(s, axes_of(s));
                step.cost = cost_of(s, "cost");
                n.inner.push_back(step);
            }
        plan_.nodes.push_back(std::move(n));
    }
    void read_path(json const& j) {
        object(j, "paths", {"from", "to", "cost", "steps"});
        redistribution_path path;
        path.from = layout_index(required(j, "from"), "from");
        path.to = layout_index(required(j, "to"), "to");
        path.cost = cost_of(j, "cost");
        for (auto const& s : array(required(j, "steps"), "steps")) {
            object(s, "steps", {"kind", "axes", "from_dim", "to_dim", "reduce", "reaches", "before", "after", "packed", "cost"});
            priced_transition p;
            p.step.axes = axes_of(s);
            p.call = call_of_row(s, p.step.axes);
            p.step.kind = p.call.kind;
            p.step.reduce = p.call.reduce;
            if (s.contains("from_dim")) p.step.from_dim = static_cast<std::uint8_t>(integer(s["from_dim"], "from_dim", 0, 255));
            if (s.contains("to_dim")) p.step.to_dim = static_cast<std::uint8_t>(integer(s["to_dim"], "to_dim", 0, 255));
            p.step.to = layout_of(required(s, "reaches"), "reaches");
            p.cost = cost_of(s, "cost");
            path.steps.push_back(std::move(p));
        }
        if (path.steps.empty() || path.steps.back().step.to != plan_.layouts[path.to]) fail("steps", "do not end at layout 'to'");
        plan_.paths.push_back(std::move(path));
    }
    void read_move(json const& j) {
        object(j, "moves", {"value", "from_relay", "to_relay", "user", "operand", "path"});
        tensor_move m;
        m.value = value_of(j);
        auto const relay = [&](char const* field) {
            return j.contains(field) ? index(j[field], field, plan_.relays.size()) : tensor_move::none;
        };
        m.from_relay = relay("from_relay");
        m.to_relay = relay("to_relay");
        if (m.to_relay == tensor_move::none) {
            m.user = index(required(j, "user"), "user", plan_.nodes.size());
            m.operand = index(required(j, "operand"), "operand", plan_.nodes[m.user].operands.size());
        } else if (j.contains("user") || j.contains("operand")) fail("user", "stands beside to_relay");
        m.path = index(required(j, "path"), "path", plan_.paths.size());
        plan_.moves.push_back(m);
    }
};

}  // namespace cantle::detail
