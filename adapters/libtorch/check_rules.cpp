// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/check_rules.hpp>

#include <cantle/base/error.hpp>

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace cantle::libtorch {
namespace {

constexpr std::int64_t axis_sizes[] = {2, 3, 4};
constexpr char const* meshes[] = {"2x2", "2x3", "3x2"};

/// Operands that do not fit make ops warn thousands of times.
class silent_warnings : public c10::WarningHandler {
    void process(c10::Warning const&) override {}
};

/// Edit distance, for names like a wrong one.
std::size_t distance_of(std::string const& a, std::string const& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j)
            diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
    }
    return row[b.size()];
}

[[noreturn]] void refuse_name(std::string const& name, std::vector<std::string> names) {
    auto const rank = [&](std::string const& n) { return n.find(name) != std::string::npos ? 0 : distance_of(name, n); };
    std::stable_sort(names.begin(), names.end(), [&](auto const& a, auto const& b) { return rank(a) < rank(b); });
    std::string near;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i) near += (i ? ", " : "") + names[i];
    throw error(error_code::bad_option, "--op " + name, "no rule has that name", "names like it: " + near);
}

/// What kind of call a sample is: rows that are true on one sample must be true on the others of its kind. Ranks, which dims are 1 and
/// which are equal, types, and the literals that steer an op; sizes and offsets do not count.
std::string kind_of(rule_oracle const& oracle) {
    auto const q = oracle.query();
    std::map<std::int64_t, char> letters{{1, '1'}};
    std::string kind;
    for (auto const* metas : {&q.operands, &q.outputs})
        for (auto const& t : *metas) {
            for (auto s : t.sizes) kind += letters.try_emplace(s, static_cast<char>('a' + letters.size() - 1)).first->second;
            kind += t.defined ? "," + std::string(to_string(t.type)) + ";" : "none;";
        }
    for (auto const& a : q.operation->arguments) {
        kind += a.name + "=";
        bool const names_dims = a.name.rfind("dim", 0) == 0;
        std::visit([&](auto const& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, bool>) kind += v ? "yes" : "no";
            else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
                if (names_dims) kind += std::to_string(v);
                else kind += v < 0 ? "-" : v > 0 ? "+" : "0";
            } else if constexpr (std::is_same_v<T, std::string>) kind += v;
            else if constexpr (std::is_same_v<T, dtype>) kind += to_string(v);
            else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<bool>>) {
                if (names_dims || std::is_same_v<T, std::vector<bool>>)
                    for (auto const x : v) kind += std::to_string(static_cast<std::int64_t>(x)) + ",";
                else kind += "list of " + std::to_string(v.size());
            }
        }, a.value);
        kind += ";";
    }
    return kind;
}

/// The same call on other values: numbers with the other sign, flags turned over. Rows that hold for one sign of a single number do not
/// hold for it. Nothing where the op refuses these values, or has no finite result where it had one.
std::optional<rule_oracle> on_other_values(rule_oracle const& oracle, rule_registry const& rules) {
    rule_sample other{*oracle.query().operation, {}, oracle.values_matter()};
    for (auto const& t : oracle.operands())
        other.operands.push_back(t.is_floating_point() ? -t : t.defined() && t.scalar_type() == at::kBool ? t.logical_not() : t);
    try {
        rule_oracle made(std::move(other), rules);
        auto const finite = [](double v) { return std::isfinite(v); };
        auto const all_finite = [&](rule_oracle const& x, std::size_t o) {
            return std::all_of(x.wanted(o).values.begin(), x.wanted(o).values.end(), finite);
        };
        for (std::size_t o = 0; o < made.outputs().size(); ++o)
            if (all_finite(oracle, o) && !all_finite(made, o)) return std::nullopt;
        return made;
    } catch (std::exception const&) { return std::nullopt; }
}

/// All samples of one op, checked in turn.
class op_checker {
public:
    op_checker(rule_registry const& rules, std::string const& op, check_extent const& extent) : rules_(rules), extent_(extent) {
        check_.op = op;
    }

    void add(rule_sample sample) {
        ++check_.samples;
        try {
            oracles_.emplace_back(std::move(sample), rules_);
            kinds_.push_back(kind_of(oracles_.back()));
        } catch (std::exception const& e) { check_.refuted.push_back(std::string("a sample cannot be run: ") + e.what()); }
    }
    op_check finish(std::vector<rule_waiver>& waivers) {
        for (auto const& o : oracles_) {
            check_rows(o);
            check_composed(o);
            o.forget();
        }
        search();
        sort_out(waivers);
        mutate();
        return std::move(check_);
    }

private:
    /// Where an undeclared row was seen to be true.
    struct evidence {
        axis_row row;
        std::set<std::size_t> samples;
        std::set<std::int64_t> axes;
        bool ample = false;
    };
    rule_registry const& rules_;
    check_extent const& extent_;
    op_check check_;
    std::vector<rule_oracle> oracles_;
    std::vector<std::string> kinds_;
    std::map<std::pair<std::string, std::string>, evidence> undeclared_;  // by kind of call and row
    std::set<std::string> known_true_;

    /// Which samples are searched and mutated: all, or some, evenly picked.
    std::vector<std::size_t> picked() const {
        auto const most = extent_.searched_samples == 0 ? oracles_.size() : std::min(extent_.searched_samples, oracles_.size());
        std::vector<std::size_t> list;
        for (std::size_t k = 0; k < most; ++k) list.push_back(k * oracles_.size() / most);
        return list;
    }
    void check_rows(rule_oracle const& o) {
        for (auto n : axis_sizes)
            for (auto const& row : rules_.rows(o.query(), n)) {
                auto const verdict = o.check(row, n);
                check_.rows += verdict.outcome != oracle_verdict::kind::does_not_divide;
                if (verdict.refuted()) refute(o, std::to_string(n), text_of(row), verdict.reason);
            }
    }
    void check_composed(rule_oracle const& o) {
        for (auto const* text : meshes)
            for (bool inner_first : {false, true}) {
                auto const mesh = device_mesh::parse(text);
                for (auto const& s : composed_strategies(o, mesh, inner_first, extent_.composed_strategies)) {
                    auto const verdict = o.check(s, mesh);
                    check_.composed += verdict.outcome != oracle_verdict::kind::does_not_divide;
                    if (!verdict.refuted()) continue;
                    std::string layouts;
                    for (std::size_t p = 0; p < s.layouts.size(); ++p)
                        layouts += (p == o.query().operands.size() ? " -> " : p ? " | " : "") + s.layouts[p].text(mesh);
                    refute(o, text, layouts, verdict.reason);
                }
            }
    }
    void refute(rule_oracle const& o, std::string const& where, std::string const& row, std::string const& reason) {
        check_.refuted.push_back(text_of(o) + " on " + where + ", row " + row + ": " + reason);
    }
    void search() {
        for (auto i : picked()) {
            auto const& o = oracles_[i];
            for (auto n : axis_sizes) {
                auto const declared = rules_.rows(o.query(), n);
                auto const found = find_true_rows(o, n, declared);
                check_.inputs += found.inputs;
                check_.all_inputs = check_.all_inputs && found.all_inputs;
                for (auto const& t : found.rows) {
                    auto const follows = [&](axis_row const& r) { return is_dominated(t.row, r); };
                    if (std::any_of(declared.begin(), declared.end(), follows)) continue;
                    bool const follows_from_other = std::any_of(found.rows.begin(), found.rows.end(), [&](true_row const& other) {
                        return !(other.row == t.row) && follows(other.row) && !mixes_kinds(other.row);
                    });
                    if (follows_from_other) continue;
                    if (mixes_kinds(t.row)) {
                        ++check_.mixed;
                        continue;
                    }
                    auto& e = undeclared_[{kinds_[i], text_of(t.row)}];
                    e.row = t.row;
                    e.samples.insert(i);
                    e.axes.insert(n);
                    e.ample = e.ample || t.ample;
                }
            }
            o.forget();
        }
    }
    /// Is the row refuted on any sample of that kind, on an axis on which it was seen?
    bool is_refuted(std::string const& kind, evidence& e) const {
        for (std::size_t i = 0; i < oracles_.size(); ++i) {
            if (kinds_[i] != kind) continue;
            for (auto n : e.axes) {
                auto const verdict = oracles_[i].check_meaning(e.row, n);
                if (verdict.refuted()) return true;
                if (verdict.holds()) e.samples.insert(i);
            }
            auto const other = on_other_values(oracles_[i], rules_);
            for (auto n : e.axes)
                if (other && other->check_meaning(e.row, n).refuted()) return true;
        }
        return false;
    }
    /// Undeclared rows of all kinds of calls become lists of rows of the op.
    void sort_out(std::vector<rule_waiver>& waivers) {
        std::map<std::string, std::string> missing, waived, once, conditional;
        for (auto& [key, e] : undeclared_) {
            auto const& [kind, row] = key;
            std::string axes;
            for (auto n : e.axes) axes += (axes.empty() ? "" : ", ") + std::to_string(n);
            auto const where = " on " + axes + ", as on " + text_of(oracles_[*e.samples.begin()]);
            known_true_.insert(row);
            if (is_refuted(kind, e)) conditional.emplace(row, where);
            else if (!e.ample && e.samples.size() < 2) once.emplace(row, where);
            else if (auto* w = find_waiver(waivers, check_.op, row)) {
                ++w->used;
                waived.emplace(row, ": " + w->reason);
            } else missing.emplace(row, where);
        }
        for (auto const& o : oracles_) o.forget();
        auto const list = [](std::map<std::string, std::string> const& from) {
            std::vector<std::string> to;
            for (auto const& [row, text] : from) to.push_back(row + text);
            return to;
        };
        check_.missing = list(missing);
        check_.waived = list(waived);
        for (auto const* stronger : {&missing, &waived})
            for (auto const& [row, text] : *stronger) {
                once.erase(row);
                conditional.erase(row);
            }
        check_.seen_once = list(once);
        check_.conditional = list(conditional);
    }
    void mutate() {
        mutation_check mutations;
        for (auto i : picked()) {
            for (auto n : axis_sizes) mutations.add(oracles_[i], rules_.rows(oracles_[i].query(), n), n);
            oracles_[i].forget();
        }
        check_.mutations = mutations.finish(known_true_, [this](rule_oracle const& seen, axis_row const& row, std::int64_t n) {
            auto const& kind = kinds_[static_cast<std::size_t>(&seen - oracles_.data())];
            evidence e{row, {}, {n}};
            return is_refuted(kind, e);
        });
        for (auto const& o : oracles_) o.forget();
    }
};

}  // namespace

bool rules_check::passed() const {
    // A mutant may agree with few values by chance: survivors are listed one by one, and their share is bounded.
    auto const all = mutations();
    bool const killed = all.killed + all.survivors.size() == 0 || all.rate() >= least_mutation_rate;
    return killed && uncovered.empty() && std::all_of(ops.begin(), ops.end(), [](op_check const& o) { return o.passed(); });
}

mutation_count rules_check::mutations() const {
    mutation_count all;
    for (auto const& o : ops) all += o.mutations;
    return all;
}

rules_check check_rules(rule_registry const& rules, std::vector<rule_sample> samples, std::vector<rule_waiver> waivers,
                        check_extent const& extent) {
    auto const start = std::chrono::steady_clock::now();
    silent_warnings silent;
    c10::WarningUtils::WarningHandlerGuard const quiet(&silent);
    // Ops refuse most combinations of placements by throwing; walking the stack each time takes two thirds of all time.
    c10::SetStackTraceFetcher([]() -> std::string { return {}; });
    auto const names = rules.op_names();
    if (!extent.op.empty() && !std::binary_search(names.begin(), names.end(), extent.op)) refuse_name(extent.op, names);
    std::map<std::string, std::vector<rule_sample>> of_op;
    for (auto& s : samples) of_op[s.operation.name].push_back(std::move(s));
    rules_check check;
    for (auto const& name : names) {
        if (!extent.op.empty() && name != extent.op) continue;
        auto& list = of_op[name];
        if (list.empty()) {
            if (auto* w = find_waiver(waivers, name, "no samples")) ++w->used;
            else check.uncovered.push_back(name);
            continue;
        }
        op_checker checker(rules, name, extent);
        for (auto& s : list) checker.add(std::move(s));
        check.ops.push_back(checker.finish(waivers));
    }
    if (extent.op.empty() && extent.searched_samples == 0)
        for (auto const& w : waivers)
            if (w.used == 0) check.idle_waivers.push_back(w.op + ", row " + w.row);
    check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return check;
}

}  // namespace cantle::libtorch
