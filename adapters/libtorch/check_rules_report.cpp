// SPDX-License-Identifier: BSL-1.0
// What check_rules found, for people and for machines.
#include <adapters/libtorch/check_rules.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace cantle::libtorch {
namespace {

std::string cells(std::vector<std::string> const& row, std::vector<std::size_t> const& width) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
        std::string const pad(width[c] - row[c].size(), ' ');
        line += c == 0 ? row[c] + pad : "  " + pad + row[c];
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line + "\n";
}

std::string percent(double share) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
    return text;
}

void list_of(std::string& text, std::string const& title, std::vector<std::string> const& lines) {
    if (lines.empty()) return;
    text += "  " + title + "\n";
    for (auto const& l : lines) text += "    " + l + "\n";
}

}  // namespace

std::string text_of(rules_check const& check, bool all) {
    std::vector<std::vector<std::string>> rows{
        {"op", "samples", "rows", "two axes", "refuted", "inputs", "missing", "waived", "once", "sometimes", "mixed", "mutants", "killed"}};
    op_check sum;
    std::size_t refuted = 0, missing = 0, waived = 0, once = 0, conditional = 0;
    auto const all_mutations = check.mutations();
    auto const number = [](std::size_t n) { return std::to_string(n); };
    for (auto const& o : check.ops) {
        rows.push_back({o.op, number(o.samples), number(o.rows), number(o.composed), number(o.refuted.size()),
                        number(o.inputs) + (o.all_inputs ? "" : "*"), number(o.missing.size()), number(o.waived.size()),
                        number(o.seen_once.size()), number(o.conditional.size()), number(o.mixed),
                        number(o.mutations.changed - o.mutations.equivalent), number(o.mutations.killed)});
        sum.samples += o.samples;
        sum.rows += o.rows;
        sum.composed += o.composed;
        sum.inputs += o.inputs;
        sum.mixed += o.mixed;
        refuted += o.refuted.size();
        missing += o.missing.size();
        waived += o.waived.size();
        once += o.seen_once.size();
        conditional += o.conditional.size();
    }
    rows.push_back({number(check.ops.size()) + " ops", number(sum.samples), number(sum.rows), number(sum.composed), number(refuted),
                    number(sum.inputs), number(missing), number(waived), number(once), number(conditional), number(sum.mixed),
                    number(all_mutations.changed - all_mutations.equivalent), number(all_mutations.killed)});
    std::vector<std::size_t> width(rows[0].size());
    for (auto const& r : rows)
        for (std::size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], r[c].size());
    std::string text;
    for (auto const& r : rows) text += cells(r, width);
    for (auto const& o : check.ops) {
        std::string lists;
        list_of(lists, "refuted:", o.refuted);
        list_of(lists, "true, neither declared nor waived:", o.missing);
        list_of(lists, "mutants that survive:", o.mutations.survivors);
        if (all) {
            list_of(lists, "waived:", o.waived);
            list_of(lists, "true on one sample with few values only:", o.seen_once);
            list_of(lists, "true on some samples only:", o.conditional);
        }
        if (!lists.empty()) text += "\n" + o.op + "\n" + lists;
    }
    if (!check.uncovered.empty()) text += "\n";
    list_of(text, "ops with a rule and without samples:", check.uncovered);
    list_of(text, "waivers that waive nothing:", check.idle_waivers);
    text += "\nmutation rate: " + percent(all_mutations.rate()) + " of " +
            number(all_mutations.changed - all_mutations.equivalent) + " changes that alter the meaning are refuted; " +
            number(all_mutations.equivalent) + " more are true all the same\n";
    char seconds[64];
    std::snprintf(seconds, sizeof seconds, "%.1f s\n", check.seconds);
    return text + (check.passed() ? "passed in " : "FAILED in ") + seconds;
}

std::string json_of(rules_check const& check) {
    nlohmann::ordered_json out;
    out["passed"] = check.passed();
    out["seconds"] = check.seconds;
    auto const mutations = [](mutation_count const& m) {
        nlohmann::ordered_json j{{"changed", m.changed}, {"equivalent", m.equivalent}, {"killed", m.killed}, {"survivors", m.survivors}};
        j["excused"] = nlohmann::ordered_json::object();
        for (auto const& [why, n] : m.excused) j["excused"][why] = n;
        return j;
    };
    out["mutations"] = mutations(check.mutations());
    out["mutations"]["rate"] = check.mutations().rate();
    out["ops"] = nlohmann::ordered_json::array();
    for (auto const& o : check.ops)
        out["ops"].push_back({{"op", o.op},
                              {"samples", o.samples},
                              {"rows", o.rows},
                              {"two_axes", o.composed},
                              {"inputs", o.inputs},
                              {"all_inputs", o.all_inputs},
                              {"mixed", o.mixed},
                              {"refuted", o.refuted},
                              {"missing", o.missing},
                              {"waived", o.waived},
                              {"seen_once", o.seen_once},
                              {"conditional", o.conditional},
                              {"mutations", mutations(o.mutations)}});
    out["uncovered"] = check.uncovered;
    out["idle_waivers"] = check.idle_waivers;
    return out.dump(2) + "\n";
}

}  // namespace cantle::libtorch
