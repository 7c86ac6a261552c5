// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle_mutation.hpp>

#include <adapters/libtorch/call_op.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace cantle::libtorch {
namespace {

using split_outputs = std::vector<std::vector<std::vector<plain_values>>>;  // [split][output][rank]

/// Is `t` the same piece `times` over along dim d?
bool repeats_of(plain_values const& t, std::size_t d, std::int64_t times) {
    std::size_t line = 1;  // values of all of dim d
    for (auto e = d; e < t.sizes.size(); ++e) line *= static_cast<std::size_t>(t.sizes[e]);
    auto const piece = line / static_cast<std::size_t>(times);
    for (std::size_t i = 0; i < t.values.size(); ++i)
        if (t.values[i] != t.values[i - i % line + i % line % piece]) return false;
    return true;
}

/// Why a changed placement of output o is true all the same, or nothing.
std::string excuse_of_output(split_outputs const& locals, std::size_t o, placement was, placement now, bool values_matter) {
    if (!values_matter) return "the op leaves memory as it is: there are no values to compare";
    auto const& first = locals[0][o][0].values;
    bool equal = true, zero = true;
    for (auto const& outputs : locals)
        for (auto const& t : outputs[o]) {
            equal = equal && t.values == first;
            zero = zero && std::all_of(t.values.begin(), t.values.end(), [](double v) { return v == 0; });
        }
    if (was.is_replicate() && equal && now.is_partial() && now.reduce != reduction::sum)
        return "equal copies are their own average, maximum and minimum";
    if (equal && was.is_partial() && was.reduce != reduction::sum && !now.is_shard() && now != placement::partial())
        return "equal copies are their own average, maximum and minimum";
    if (zero && equal && was.is_partial() && now.is_replicate()) return "zeros are their own sum, average, maximum and minimum";
    if (zero && now.is_partial()) return "zeros are their own sum, average, maximum and minimum";
    if (!equal || !was.is_shard() || !now.is_shard(was.dim)) return {};
    auto const& t = locals[0][o][0];
    if (was == placement::shard(was.dim) && now.outer > 1 && t.sizes[was.dim] % now.outer == 0 && repeats_of(t, was.dim, now.outer))
        return "every rank holds the same pieces, so they may come in any order";
    auto const extent = static_cast<std::size_t>(t.sizes[was.dim]);
    std::size_t stride = 1;
    for (std::size_t d = was.dim + 1u; d < t.sizes.size(); ++d) stride *= static_cast<std::size_t>(t.sizes[d]);
    bool flat = true;
    for (std::size_t i = 0; i < t.values.size(); ++i) flat = flat && t.values[i] == t.values[i - i / stride % extent * stride];
    return flat ? "values do not vary along the cut dim, so its shares may come in any order" : "";
}

/// Does the op's result change with the values of operand i?
bool has_influence(rule_oracle const& oracle, std::size_t i) {
    auto operands = oracle.operands();
    if (!operands[i].is_floating_point()) return true;
    operands[i] = operands[i] * -3 + 0.125;
    try {
        auto const outputs = call_op(*oracle.query().operation, operands);
        for (std::size_t o = 0; o < outputs.size(); ++o)
            if (plain(outputs[o], oracle.values_matter()).values != oracle.wanted(o).values) return true;
        return false;
    } catch (std::exception const&) { return true; }
}

std::string change_text(rule_oracle const& o, axis_row const& row, std::int64_t n, std::string const& what) {
    return o.query().name() + " on " + std::to_string(n) + ", row " + text_of(row) + ": " + what;
}

}  // namespace

mutation_count& mutation_count::operator+=(mutation_count const& other) {
    changed += other.changed;
    killed += other.killed;
    equivalent += other.equivalent;
    for (auto const& [why, n] : other.excused) excused[why] += n;
    survivors.insert(survivors.end(), other.survivors.begin(), other.survivors.end());
    return *this;
}

void mutation_check::tell(rule_oracle const& oracle, std::string const& change, axis_row const& changed, std::int64_t n, bool refuted,
                          std::function<std::string()> const& excuse) {
    ++count_.changed;
    if (refuted) {
        ++count_.killed;
        refuted_.insert(change);
        return;
    }
    if (auto const why = excuse(); !why.empty()) {
        ++count_.equivalent;
        ++count_.excused[why];
        return;
    }
    open_.emplace(change, let_through{changed, n, &oracle});
    ++times_[change];
}

void mutation_check::add(rule_oracle const& oracle, std::vector<axis_row> const& declared, std::int64_t n) {
    for (auto const& row : declared) {
        if (!oracle.place(row, n)) continue;
        outputs(oracle, row, n);
        operands(oracle, row, declared, n);
        inner(oracle, row, n);
    }
}

void mutation_check::outputs(rule_oracle const& oracle, axis_row const& row, std::int64_t n) {
    auto const s = *oracle.place(row, n);
    auto const mesh = axis_of(n);
    std::span<layout const> const in(s.layouts.data(), row.operands.size());
    split_outputs locals;
    try {
        rank_play play(oracle.query(), s.layouts, mesh, oracle.local());
        for (auto how : partial_splits) {
            locals.push_back(oracle.outputs_of(play, in, mesh, how));
            if (!rule_oracle::splits(in)) break;
        }
    } catch (std::exception const&) { return; }  // a wrong row: soundness reports it
    for (std::size_t o = 0; o < row.outputs.size(); ++o) {
        auto const& t = oracle.query().outputs[o];
        if (!t.defined) continue;
        for (auto now : placements_of(t, n, true)) {
            if (now == row.outputs[o] || (now.is_shard() && now.outer > 3)) continue;
            layout l(1);
            if (!l.apply(0, n, now, t.sizes)) continue;
            auto changed = row;
            changed.outputs[o] = now;
            bool const refuted = std::any_of(locals.begin(), locals.end(), [&](auto const& outputs) {
                return !oracle.difference_of(outputs[o], o, l, mesh).empty();
            });
            auto const change = change_text(oracle, row, n, "output " + std::to_string(o) + " as " + to_string(now));
            tell(oracle, change, changed, n, refuted,
                 [&] { return excuse_of_output(locals, o, row.outputs[o], now, oracle.values_matter()); });
        }
    }
}

void mutation_check::operands(rule_oracle const& oracle, axis_row const& row, std::vector<axis_row> const& declared, std::int64_t n) {
    for (std::size_t i = 0; i < row.operands.size(); ++i)
        for (auto now : placements_of(oracle.query().operands[i], n, false)) {
            if (now == row.operands[i]) continue;
            auto changed = row;
            changed.operands[i] = now;
            auto const verdict = oracle.check_meaning(changed, n);
            if (verdict.outcome == oracle_verdict::kind::does_not_divide) continue;
            auto const change = change_text(oracle, row, n, "operand " + std::to_string(i) + " as " + to_string(now));
            tell(oracle, change, changed, n, verdict.refuted(), [&]() -> std::string {
                if (!oracle.values_matter()) return "the op leaves memory as it is: there are no values to compare";
                if (std::any_of(declared.begin(), declared.end(), [&](axis_row const& r) { return is_dominated(changed, r); }))
                    return "the changed row is declared, or follows from a declared one";
                if (mixes_kinds(changed)) return "the changed row is true but mixes kinds of Partial, which no rule may list";
                if (!has_influence(oracle, i)) return "the operand's values have no influence on this call";
                return {};
            });
        }
}

void mutation_check::inner(rule_oracle const& oracle, axis_row const& row, std::int64_t n) {
    for (std::size_t c = 0; c < row.inner.size(); ++c) {
        auto changed = row;
        changed.inner.erase(changed.inner.begin() + static_cast<std::ptrdiff_t>(c));
        auto const change = change_text(oracle, row, n, "without inner collective " + std::to_string(c));
        tell(oracle, change, changed, n, oracle.check(changed, n).refuted(), [] { return std::string(); });
    }
}

mutation_count mutation_check::finish(std::set<std::string> const& known_true,
                                      std::function<bool(rule_oracle const&, axis_row const&, std::int64_t)> const& refuted_on_others) {
    for (auto const& [change, who] : open_) {
        auto const n = times_[change];
        if (refuted_.count(change)) count_.excused["chance on a sample, refuted by another one"] += n;
        else if (known_true.count(text_of(who.row))) {
            count_.equivalent += n;
            count_.excused["the changed row is true: the search for true rows lists it"] += n;
        } else if (refuted_on_others && refuted_on_others(*who.sample, who.row, who.n)) {
            count_.excused["chance on a sample, refuted by another one"] += n;
        } else count_.survivors.push_back(change + " is true on " + text_of(*who.sample));
    }
    return std::move(count_);
}

}  // namespace cantle::libtorch
