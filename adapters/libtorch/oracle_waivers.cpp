// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle_waivers.hpp>

#include <cantle/base/error.hpp>

#include <nlohmann/json.hpp>

#include <utility>

namespace cantle::libtorch {

/// Text of docs/rule_waivers.json; CMake writes the file that defines it.
extern char const* const rule_waivers_text;

bool fits_pattern(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++from;
        } else return false;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

std::vector<rule_waiver> parse_waivers(std::string_view json, std::string const& file) {
    nlohmann::json list;
    try {
        list = nlohmann::json::parse(json);
    } catch (nlohmann::json::exception const& e) {
        throw error(error_code::broken_json, file, std::string("not JSON: ") + e.what(), "mend the file");
    }
    auto const fail = [&](std::size_t i, std::string const& what) {
        return error(error_code::bad_field, file + ": waiver " + std::to_string(i), what,
                     R"(write it as {"op": "aten::mm", "rows": ["P, R -> P"], "reason": "..."})");
    };
    if (!list.is_array()) throw fail(0, "the file is no list");
    std::vector<rule_waiver> waivers;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto const& w = list[i];
        auto const text = [&](char const* key) {
            if (!w.is_object() || !w.contains(key) || !w[key].is_string() || w[key].get<std::string>().empty())
                throw fail(i, "'" + std::string(key) + "' is missing or no text");
            return w[key].get<std::string>();
        };
        auto const op = text("op"), reason = text("reason");
        if (!w.contains("rows") || !w["rows"].is_array() || w["rows"].empty()) throw fail(i, "'rows' is missing or no list");
        for (auto const& row : w["rows"]) {
            if (!row.is_string()) throw fail(i, "a row is no text");
            waivers.push_back({op, row.get<std::string>(), reason, 0});
        }
    }
    return waivers;
}

std::vector<rule_waiver> reviewed_waivers() { return parse_waivers(rule_waivers_text, "docs/rule_waivers.json"); }

rule_waiver* find_waiver(std::vector<rule_waiver>& waivers, std::string_view op, std::string_view row) {
    for (auto& w : waivers)
        if (fits_pattern(w.op, op) && fits_pattern(w.row, row)) return &w;
    return nullptr;
}

}  // namespace cantle::libtorch
