// SPDX-License-Identifier: BSL-1.0
#pragma once
// Reads the JSON form of a training graph. Every fault is a numbered error that names the file, the node and the field.
#include <cantle/base/error.hpp>
#include <cantle/base/json_fields.hpp>
#include <cantle/graph/topological_order.hpp>
#include <cantle/graph/training_graph.hpp>
#include <cantle/graph/validate.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cantle::detail {

class graph_json_reader : json_fields {
public:
    explicit graph_json_reader(std::string_view source_name) : json_fields(source_name, "") {}

    training_graph read(std::string_view text) {
        json const document = parse_format(text, "cantle-graph", "graph", "cantle capture -o");
        only_fields(document, {"format", "version", "origin", "ops", "nodes"});
        training_graph g;
        if (document.contains("origin")) read_origin(document["origin"], g.origin);
        read_ops(required(document, "ops"));
        auto const& nodes = required(document, "nodes");
        if (!nodes.is_array()) fail("nodes", "is no list");
        if (nodes.size() >= std::numeric_limits<vertex>::max()) fail("nodes", "is too long");
        g.nodes.resize(nodes.size());
        for (std::size_t v = 0; v < nodes.size(); ++v) read_node(nodes[v], v, g.nodes[v]);
        place_.clear();
        check_references(g);
        if (!is_topologically_ordered(g)) {
            auto const order = topological_order(g);
            g = reorder(std::move(g), order);
        }
        validate(g);
        return g;
    }

private:
    std::unordered_map<std::string, op> ops_;  // only looked up

    std::uint32_t index(json const& j, std::string_view field) const {
        auto const i = integer(j, field);
        if (i < 0 || i >= std::numeric_limits<std::uint32_t>::max()) fail(field, "is no index: " + shown(j));
        return static_cast<std::uint32_t>(i);
    }
    double real(json const& j, std::string_view field) const {
        if (j.is_number()) return j.get<double>();
        auto const& s = text(j, field);
        if (s == "nan") return std::numeric_limits<double>::quiet_NaN();
        if (s == "inf") return std::numeric_limits<double>::infinity();
        if (s == "-inf") return -std::numeric_limits<double>::infinity();
        if (s.rfind("nan:", 0) == 0) {
            std::uint64_t bits = 0;
            auto const end = std::from_chars(s.data() + 4, s.data() + s.size(), bits, 16);
            auto const value = std::bit_cast<double>(bits);
            if (end.ec == std::errc{} && end.ptr == s.data() + s.size() && value != value) return value;
        }
        fail(field, "is no number: " + shown(j), "write a number, \"nan\", \"inf\" or \"-inf\"");
    }
    json const& pair(json const& j, std::string_view field) const {
        if (array(j, field).size() != 2) fail(field, "has an entry that is no pair: " + shown(j));
        return j;
    }

    void read_origin(json const& j, graph_origin& origin) {
        if (!j.is_object()) fail("origin", "is no object");
        only_fields(j, {"model", "recipe", "precision", "batch", "sequence", "config"});
        if (j.contains("model")) origin.model = text(j["model"], "origin.model");
        if (j.contains("recipe")) origin.recipe = text(j["recipe"], "origin.recipe");
        if (j.contains("precision")) origin.precision = text(j["precision"], "origin.precision");
        if (j.contains("batch")) origin.batch = integer(j["batch"], "origin.batch");
        if (j.contains("sequence")) origin.sequence = integer(j["sequence"], "origin.sequence");
        if (j.contains("config"))
            for (auto const& entry : array(j["config"], "origin.config")) {
                auto const& e = pair(entry, "origin.config");
                origin.config.emplace_back(text(e[0], "origin.config"), integer(e[1], "origin.config"));
            }
    }

    void read_ops(json const& list) {
        array(list, "ops");
        for (std::size_t i = 0; i < list.size(); ++i) {
            auto const& j = list[i];
            place_ = "op " + std::to_string(i);
            if (!j.is_object()) fail("ops", "has an entry that is no object: " + shown(j));
            only_fields(j, {"key", "name", "args"});
            auto const& key = text(required(j, "key"), "key");
            place_ = "op '" + key + "'";
            op o;
            o.name = j.contains("name") ? text(j["name"], "name") : key;
            if (j.contains("args"))
                for (auto const& entry : array(j["args"], "args")) {
                    auto const& e = pair(entry, "args");
                    auto const& name = text(e[0], "args");
                    o.arguments.push_back({name, value(e[1], name)});
                }
            if (!ops_.emplace(key, std::move(o)).second) fail("key", "stands for two ops", "make keys unique");
        }
        place_.clear();
    }

    argument_value value(json const& j, std::string const& argument) const {
        switch (j.type()) {
            case json::value_t::null: return std::monostate{};
            case json::value_t::boolean: return j.get<bool>();
            case json::value_t::number_integer:
            case json::value_t::number_unsigned: return integer(j, argument);
            case json::value_t::number_float: return j.get<double>();
            case json::value_t::string: return j.get_ref<std::string const&>();
            case json::value_t::array: {
                std::vector<std::int64_t> list;
                for (auto const& x : j) list.push_back(integer(x, argument));
                return list;
            }
            default: break;
        }
        if (!j.is_object() || j.size() != 1) fail(argument, "is no argument value: " + shown(j));
        auto const& tag = j.begin().key();
        auto const& x = j.begin().value();
        if (tag == "tensor") return operand_slot{index(x, argument)};
        if (tag == "double") return real(x, argument);
        if (tag == "tensors") {
            operand_slots slots;
            for (auto const& i : array(x, argument)) {
                auto const slot = integer(i, argument);
                if (slot < -1 || slot > std::numeric_limits<std::int32_t>::max()) fail(argument, "is no operand slot: " + shown(i));
                slots.indices.push_back(static_cast<std::int32_t>(slot));
            }
            return slots;
        }
        if (tag == "doubles") {
            std::vector<double> list;
            for (auto const& d : array(x, argument)) list.push_back(real(d, argument));
            return list;
        }
        if (tag == "bools") {
            std::vector<bool> list;
            for (auto const& b : array(x, argument)) {
                if (!b.is_boolean()) fail(argument, "is no bool: " + shown(b));
                list.push_back(b.get<bool>());
            }
            return list;
        }
        if (tag == "dtype") {
            auto const type = parse_dtype(text(x, argument));
            if (!type) fail(argument, "names no element type: " + shown(x), "use PyTorch's names, as bfloat16");
            return *type;
        }
        if (tag == "symbol") {
            auto const& p = pair(x, argument);
            return symbol{text(p[0], argument), text(p[1], argument)};
        }
        fail(argument, "is no argument value: " + shown(j), "use one of tensor, tensors, double, doubles, bools, dtype, symbol");
    }

    /// "bfloat16[16,2048]", with {strides} where the tensor is not contiguous, and "undefined " before an output that is not produced.
    tensor_meta meta(json const& j) const {
        std::string_view const whole = text(j, "out");
        auto bad = [&](std::string const& why) {
            fail("out", why + ": " + shown(j), "write it as bfloat16[16,2048] or float32[2,3]{1,2}");
        };
        auto s = whole;
        tensor_meta m;
        if (s.substr(0, 10) == "undefined ") {
            m.defined = false;
            s.remove_prefix(10);
        }
        auto const open = s.find('[');
        if (open == std::string_view::npos) bad("is no tensor");
        auto const type = parse_dtype(s.substr(0, open));
        if (!type) bad("has no known element type");
        m.type = *type;
        s.remove_prefix(open);
        auto numbers = [&](char close) {
            shape result;
            s.remove_prefix(1);
            while (!s.empty() && s.front() != close) {
                std::int64_t n = 0;
                auto const end = std::from_chars(s.data(), s.data() + s.size(), n);
                if (end.ec != std::errc{}) bad("has a dim that is no number");
                result.push_back(n);
                s.remove_prefix(static_cast<std::size_t>(end.ptr - s.data()));
                if (s.empty()) bad("ends too early");
                if (s.front() == close) break;
                if (s.front() != ',' || s.size() < 2 || s[1] == close) bad("has dims that are not separated by commas");
                s.remove_prefix(1);
            }
            if (s.empty()) bad("ends too early");
            s.remove_prefix(1);
            return result;
        };
        m.sizes = numbers(']');
        bool const has_strides = !s.empty() && s.front() == '{';
        if (has_strides) m.strides = numbers('}');
        if (!s.empty()) bad("goes on after its end");
        if (auto const problem = meta_problem(m); !problem.empty()) bad(problem);
        if (!has_strides) m.strides = contiguous_strides(m.sizes);
        return m;
    }

    void read_node(json const& j, std::size_t v, graph_node& n) {
        place_ = "node " + std::to_string(v);
        if (!j.is_object()) fail("nodes", "has an entry that is no object: " + shown(j));
        n.name = text(required(j, "name"), "name");
        place_ = "node '" + n.name + "'";
        bool has_op = false, has_out = false;
        for (auto const& item : j.items()) {
            auto const& key = item.key();
            auto const& x = item.value();
            if (key == "name") continue;
            if (key == "id") {
                if (index(x, key) != v)
                    fail(key, "is " + shown(x) + ", but the node stands at place " + std::to_string(v), "number nodes from 0");
            } else if (key == "op") {
                auto const place = ops_.find(text(x, key));
                if (place == ops_.end()) fail(key, "names an op that \"ops\" does not list: " + shown(x), "add it to \"ops\"");
                n.operation = place->second;
                has_op = true;
            } else if (key == "in") {
                for (auto const& r : array(x, key)) {
                    if (r.is_array()) n.operands.push_back({index(pair(r, key)[0], key), index(r[1], key)});
                    else n.operands.push_back({index(r, key), 0});
                }
            } else if (key == "out") {
                for (auto const& m : array(x, key)) n.outputs.push_back(meta(m));
                has_out = true;
            } else if (key == "role") {
                auto const role = parse_node_role(text(x, key));
                if (!role) fail(key, "is no role: " + shown(x), "leave it out for a computation, or use parameter, input, loss, ...");
                n.role = *role;
            } else if (key == "phase") {
                auto const& s = text(x, key);
                if (s != "forward" && s != "backward") fail(key, "is neither forward nor backward: " + shown(x));
                n.in_phase = s == "forward" ? phase::forward : phase::backward;
            } else if (key == "module") n.module_path = text(x, key);
            else if (key == "forward") n.forward_node = index(x, key);
            else if (key == "of") n.of = index(x, key);
            else if (key == "also_named") {
                for (auto const& s : array(x, key)) n.also_named.push_back(text(s, key));
            } else if (key == "data") {
                for (auto const& d : array(x, key)) n.constant_data.push_back(real(d, key));
            } else fail(key, "is unknown", "drop it");
        }
        if (!has_op) fail("op", "is missing", "add it");
        if (!has_out) fail("out", "is missing", "add it");
    }

    /// Before nodes are put in order, what they refer to must exist.
    void check_references(training_graph const& g) const {
        for (vertex v = 0; v < g.size(); ++v) {
            check_operands(g, v);
            for (auto const& link : {g[v].forward_node, g[v].of})
                if (link && *link >= g.size()) check_links(g, g[v]);
        }
    }
};

}  // namespace cantle::detail
