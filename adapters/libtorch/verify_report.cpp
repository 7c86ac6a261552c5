// SPDX-License-Identifier: BSL-1.0
// What verify found, for people and for machines.
#include <adapters/libtorch/verify.hpp>

#include <cantle/report/collectives.hpp>
#include <cantle/report/figures.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

namespace cantle::libtorch {
namespace {

std::string figure(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2e", v);
    return v == 0 ? "0" : text;
}

/// "layers.3.attention.wq.weight.grad" -> "layers.*.attention.wq.weight.grad"
std::string without_indices(std::string const& name) {
    std::string out;
    for (std::size_t i = 0; i < name.size();) {
        auto const end = std::min(name.find('.', i), name.size());
        auto const part = name.substr(i, end - i);
        bool const number = !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
        out += number ? "*" : part;
        if (end < name.size()) out += '.';
        i = end + 1;
    }
    return out;
}

std::string instance_text(model_request const& r) {
    std::string s = "batch " + count_text(r.batch) + ", sequence " + count_text(r.sequence);
    for (auto const& [key, value] : r.overrides) s += ", " + key + "=" + std::to_string(value);
    return s;
}

}  // namespace

std::string text_of(verification const& v, bool all) {
    std::string out = "verify " + v.instance.model + ": plan of mesh " + v.full_mesh.text() + ", run on " +
                      count_text(v.mesh.device_count()) + " thread ranks as " + v.mesh.text() + "\n";
    out += "small instance: " + instance_text(v.instance) + "; " + count_text(v.vertices) + " vertices, " +
           std::string(to_string(v.type)) + ", seed " + std::to_string(v.seed) + "\n";
    for (auto const& why : v.not_taken) out += "  a smaller one would not do: " + visible_text(why) + "\n";
    out += "\n";
    struct row {
        std::string name;
        std::size_t copies = 0;
        double largest = 0, absolute = 0, relative = 0, rounding = 0;
        bool matches = true;
    };
    std::vector<row> rows;
    std::map<std::string, std::size_t> at;
    for (auto const& s : v.sinks) {
        auto const name = all ? s.name : without_indices(s.name);
        auto const [place, fresh] = at.try_emplace(name, rows.size());
        if (fresh) rows.push_back({name});
        auto& r = rows[place->second];
        ++r.copies;
        r.largest = std::max(r.largest, s.largest);
        r.absolute = std::max(r.absolute, s.absolute);
        r.relative = std::max(r.relative, s.relative);
        r.rounding = std::max(r.rounding, s.rounding);
        r.matches = r.matches && s.matches();
    }
    bool const rounds = v.rounding_times > 0;
    std::vector<std::string> head{rounds ? "against float64" : "against one rank", ">copies", ">largest", ">absolute difference"};
    if (rounds) head.push_back(">of one rank");
    head.push_back(">relative");
    text_table t(head);
    for (auto const& r : rows) {
        std::vector<std::string> cells{visible_text(r.name), count_text(r.copies), figure(r.largest), figure(r.absolute)};
        if (rounds) cells.push_back(figure(r.rounding));
        cells.push_back(figure(r.relative) + (r.matches ? "" : "  differs"));
        t.add(cells);
    }
    out += t.text() + "\n";
    text_table c({"collectives of a rank", "axes", ">planned", ">ran", ">planned bytes", ">bytes"});
    for (auto const& x : v.collectives)
        c.add({std::string(to_string(x.kind)), axes_text(v.mesh, x.axes), count_text(x.planned), count_text(x.ran),
               bytes_text(x.planned_bytes),
               bytes_text(x.ran_bytes) + (x.by_region && x.planned_bytes != x.ran_bytes ? " (regions: by data)" : "")});
    out += c.text() + "\n";
    std::size_t gradients = 0, zeros = 0;
    for (auto const& s : v.sinks) {
        gradients += s.role == node_role::gradient;
        zeros += s.role == node_role::gradient && s.largest == 0;
    }
    out += v.passed() ? "equal" : !v.numbers_match() ? "NOT EQUAL" : "equal numbers, OTHER COLLECTIVES than planned";
    out += ": " + count_text(gradients) + " gradients" + (zeros ? " (" + count_text(zeros) + " of them zero)" : "") + ", tolerance " +
           (rounds ? count_text(static_cast<std::int64_t>(v.rounding_times)) + " x (difference of one rank + " + figure(v.tolerance) +
                         " of the largest)\n"
                   : figure(v.tolerance) + " relative\n");
    return out;
}

std::string json_of(verification const& v) {
    using object = nlohmann::ordered_json;
    auto const number = [](double x) { return std::isfinite(x) ? object(x) : object(nullptr); };
    object j{{"format", "cantle-verify"}, {"version", 1}, {"model", v.instance.model}, {"passed", v.passed()}};
    j["mesh"] = {{"planned", v.full_mesh.text()}, {"run", v.mesh.text()}};
    j["ranks"] = v.mesh.device_count();
    object sizes = object::object();
    for (auto const& [key, value] : v.instance.overrides) sizes[key] = value;
    j["instance"] = {{"batch", v.instance.batch}, {"sequence", v.instance.sequence}, {"sizes", std::move(sizes)}};
    j["smaller_not_taken"] = v.not_taken;
    j["vertices"] = v.vertices;
    j["dtype"] = to_string(v.type);
    j["seed"] = v.seed;
    j["tolerance"] = v.tolerance;
    j["compared_with"] = v.rounding_times > 0 ? "float64" : "one rank";
    j["numbers_match"] = v.numbers_match();
    j["collectives_match"] = v.collectives_match();
    j["sinks"] = object::array();
    for (auto const& s : v.sinks)
        j["sinks"].push_back({{"name", s.name}, {"role", to_string(s.role)}, {"elements", s.elements}, {"largest", number(s.largest)},
                              {"absolute", number(s.absolute)}, {"relative", number(s.relative)},
                              {"rounding", number(s.rounding)}, {"allowed", number(s.allowed)}});
    j["collectives"] = object::array();
    for (auto const& c : v.collectives)
        j["collectives"].push_back({{"kind", to_string(c.kind)},
                                    {"axes", axes_text(v.mesh, c.axes)},
                                    {"planned", c.planned},
                                    {"ran", c.ran},
                                    {"planned_bytes", c.planned_bytes},
                                    {"ran_bytes", c.ran_bytes},
                                    {"by_region", c.by_region}});
    j["seconds"] = v.seconds;
    return j.dump(1) + "\n";
}

}  // namespace cantle::libtorch
