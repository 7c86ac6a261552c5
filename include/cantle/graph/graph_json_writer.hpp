// SPDX-License-Identifier: BSL-1.0
#pragma once
// Writes a training graph as JSON text. graph_json.hpp describes the format; the same graph gives the same bytes everywhere.
#include <cantle/base/error.hpp>
#include <cantle/base/json_text.hpp>
#include <cantle/graph/training_graph.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace cantle::detail {

class graph_json_writer : json_text {
public:
    explicit graph_json_writer(training_graph const& g) : graph_(g) {}

    std::string write() {
        std::vector<std::string const*> keys(graph_.size());
        std::vector<op const*> distinct;
        std::vector<std::string const*> distinct_keys;
        for (vertex v = 0; v < graph_.size(); ++v) keys[v] = intern(graph_[v].operation, distinct, distinct_keys);
        out_ = "{\"format\":\"cantle-graph\",\"version\":1,\n";
        write_origin();
        out_ += ",\n\"ops\":[";
        for (std::size_t i = 0; i < distinct.size(); ++i) {
            out_ += i ? ",\n" : "\n";
            write_op(*distinct_keys[i], *distinct[i]);
        }
        out_ += "],\n\"nodes\":[";
        for (vertex v = 0; v < graph_.size(); ++v) {
            out_ += v ? ",\n" : "\n";
            write_node(v, *keys[v]);
        }
        out_ += "]}\n";
        return std::move(out_);
    }

private:
    training_graph const& graph_;
    std::unordered_map<std::string, std::string> key_of_;       // text of an op -> its key; only looked up, never iterated
    std::unordered_set<std::string> used_keys_;
    std::unordered_map<std::string, std::size_t> name_count_;

    void string(std::string_view s) {
        bool plain = true;
        for (char const c : s) plain = plain && c >= ' ' && c <= '~' && c != '"' && c != '\\';
        if (plain) {
            out_ += '"';
            out_ += s;
            out_ += '"';
            return;
        }
        try {
            out_ += nlohmann::json(s).dump();
        } catch (nlohmann::json::exception const&) {
            throw error(error_code::bad_graph, "graph", "a name or text in it is not UTF-8: " +
                        nlohmann::json(s).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "use UTF-8 names");
        }
    }
    void integers(std::vector<std::int64_t> const& v) { list(v, [this](std::int64_t x) { integer(x); }); }

    void value(argument_value const& v) {
        std::visit([this](auto const& x) {
            using T = std::decay_t<decltype(x)>;
            if constexpr (std::is_same_v<T, std::monostate>) out_ += "null";
            else if constexpr (std::is_same_v<T, bool>) out_ += x ? "true" : "false";
            else if constexpr (std::is_same_v<T, std::int64_t>) integer(x);
            else if constexpr (std::is_same_v<T, std::string>) string(x);
            else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) integers(x);
            else if constexpr (std::is_same_v<T, double>) {
                if (std::isfinite(x)) return real(x);
                out_ += "{\"double\":";
                real(x);
                out_ += '}';
            } else {
                if constexpr (std::is_same_v<T, operand_slot>) { out_ += "{\"tensor\":"; integer(x.index); }
                else if constexpr (std::is_same_v<T, operand_slots>) {
                    out_ += "{\"tensors\":";
                    list(x.indices, [this](std::int32_t i) { integer(i); });
                } else if constexpr (std::is_same_v<T, std::vector<double>>) {
                    out_ += "{\"doubles\":";
                    list(x, [this](double d) { real(d); });
                } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
                    out_ += "{\"bools\":";
                    list(x, [this](bool b) { out_ += b ? "true" : "false"; });
                } else if constexpr (std::is_same_v<T, dtype>) { out_ += "{\"dtype\":"; string(to_string(x)); }
                else {
                    static_assert(std::is_same_v<T, symbol>);
                    out_ += "{\"symbol\":[";
                    string(x.kind);
                    out_ += ',';
                    string(x.text);
                    out_ += ']';
                }
                out_ += '}';
            }
        }, v);
    }
    void arguments(op const& o) {
        list(o.arguments, [this](argument const& a) {
            out_ += '[';
            string(a.name);
            out_ += ',';
            value(a.value);
            out_ += ']';
        });
    }

    /// The key under which a node names its op: the op's name, then "name/2", "name/3" for other arguments.
    std::string const* intern(op const& o, std::vector<op const*>& distinct, std::vector<std::string const*>& distinct_keys) {
        out_.clear();
        string(o.name);
        arguments(o);
        auto const place = key_of_.try_emplace(out_).first;
        if (place->second.empty()) {
            std::string key = o.name.empty() ? "unnamed" : o.name;
            for (auto& count = name_count_[o.name]; !used_keys_.insert(key).second; key = o.name + "/" + std::to_string(count)) {
                count = count ? count + 1 : 2;
            }
            place->second = std::move(key);
            distinct.push_back(&o);
            distinct_keys.push_back(&place->second);  // addresses in an unordered_map stay
        }
        return &place->second;
    }
    void write_op(std::string const& key, op const& o) {
        out_ += "{\"key\":";
        string(key);
        if (key != o.name) {
            out_ += ",\"name\":";
            string(o.name);
        }
        if (!o.arguments.empty()) {
            out_ += ",\"args\":";
            arguments(o);
        }
        out_ += '}';
    }
    void write_origin() {
        auto const& o = graph_.origin;
        out_ += "\"origin\":{\"model\":";
        string(o.model);
        out_ += ",\"recipe\":";
        string(o.recipe);
        out_ += ",\"precision\":";
        string(o.precision);
        out_ += ",\"batch\":";
        integer(o.batch);
        out_ += ",\"sequence\":";
        integer(o.sequence);
        out_ += ",\"config\":";
        list(o.config, [this](auto const& entry) {
            out_ += '[';
            string(entry.first);
            out_ += ',';
            integer(entry.second);
            out_ += ']';
        });
        out_ += '}';
    }
    void bracketed(char open, shape const& s, char close) {
        out_ += open;
        for (std::size_t i = 0; i < s.size(); ++i) {
            if (i) out_ += ',';
            integer(s[i]);
        }
        out_ += close;
    }
    void meta(tensor_meta const& m) {
        out_ += m.defined ? "\"" : "\"undefined ";
        out_ += to_string(m.type);
        bracketed('[', m.sizes, ']');
        if (m.strides != contiguous_strides(m.sizes)) bracketed('{', m.strides, '}');
        out_ += '"';
    }
    void write_node(vertex v, std::string const& key) {
        auto const& n = graph_[v];
        out_ += "{\"id\":";
        integer(v);
        out_ += ",\"name\":";
        string(n.name);
        out_ += ",\"op\":";
        string(key);
        if (!n.operands.empty()) {
            out_ += ",\"in\":";
            list(n.operands, [this](value_ref r) {
                if (r.output == 0) return integer(r.node);
                out_ += '[';
                integer(r.node);
                out_ += ',';
                integer(r.output);
                out_ += ']';
            });
        }
        out_ += ",\"out\":";
        list(n.outputs, [this](tensor_meta const& m) { meta(m); });
        auto text_field = [this](char const* name, std::string_view text) {
            out_ += name;
            string(text);
        };
        if (n.role != node_role::computation) text_field(",\"role\":", to_string(n.role));
        if (n.in_phase != phase::forward) text_field(",\"phase\":", to_string(n.in_phase));
        if (!n.module_path.empty()) text_field(",\"module\":", n.module_path);
        if (n.forward_node) { out_ += ",\"forward\":"; integer(*n.forward_node); }
        if (n.of) { out_ += ",\"of\":"; integer(*n.of); }
        if (!n.also_named.empty()) {
            out_ += ",\"also_named\":";
            list(n.also_named, [this](std::string const& s) { string(s); });
        }
        if (!n.constant_data.empty()) {
            out_ += ",\"data\":";
            list(n.constant_data, [this](double d) { real(d); });
        }
        out_ += '}';
    }
};

}  // namespace cantle::detail
