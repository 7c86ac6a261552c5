// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle.hpp>

#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/op_values.hpp>

#include <cantle/graph/op_traits.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace cantle::libtorch {
namespace {

/// False for partial values that cannot be: flags have no sum; sums over one axis and averages over another are too long for bf16.
bool mean_something(layout const& l, at::ScalarType type) {
    bool sums = false, averages = false;
    for (std::size_t a = 0; a < l.mesh_dims(); ++a)
        if (auto const p = l.on(a); p.is_partial()) {
            if (!has_partials(type, p.reduce)) return false;
            (p.reduce == reduction::avg ? averages : sums) = true;
        }
    return !(sums && averages && (type == at::kBFloat16 || type == at::kHalf));
}

std::string first_line(std::string const& text) { return text.substr(0, text.find('\n')); }

}  // namespace

oracle_strategy strategy_of(strategy_table const& table, std::size_t s, layout_table const& layouts) {
    oracle_strategy made;
    for (std::size_t p = 0; p < table.ports(); ++p) made.layouts.push_back(layouts[table.layouts[s * table.ports() + p]]);
    made.inner = table.inner[s];
    return made;
}

device_mesh axis_of(std::int64_t n) { return device_mesh({{"a", n}}); }

rule_registry const& standard_registry() {
    static rule_registry const rules = standard_rules();
    return rules;
}

rule_oracle::rule_oracle(rule_sample sample, rule_registry const& rules)
    : sample_(std::move(sample)), rules_(&rules), exact_(is_exact_op(sample_.operation.name)) {
    outputs_ = call_op(sample_.operation, sample_.operands);
    for (auto const& t : sample_.operands) operand_metas_.push_back(to_meta(t));
    for (auto const& t : outputs_) output_metas_.push_back(to_meta(t));
    // What PyTorch drew tells shapes and types; a rank draws by index, so one rank with everything says what all ranks must have.
    if (is_random(sample_.operation) && rules_->covers(query())) {
        std::vector<rank_tensors> whole;
        for (auto const& t : sample_.operands) whole.push_back({t});
        auto const mesh = axis_of(1);
        rank_play play(query(), std::vector<layout>(whole.size() + outputs_.size(), layout(1)), mesh, local());
        auto const drawn = play.run(whole);
        for (std::size_t o = 0; o < outputs_.size(); ++o) outputs_[o] = drawn[o][0];
    }
    for (auto const& t : outputs_) wanted_.push_back(plain(t, sample_.values_matter));
}

std::optional<oracle_strategy> rule_oracle::place(axis_row const& row, std::int64_t n) const {
    if (row.operands.size() != operand_metas_.size() || row.outputs.size() != output_metas_.size()) return std::nullopt;
    oracle_strategy s;
    auto const add = [&](placement p, tensor_meta const& t, at::Tensor const* operand) {
        layout l(1);
        bool const fits = !t.defined || (l.apply(0, n, p, t.sizes) && (!operand || mean_something(l, operand->scalar_type())));
        s.layouts.push_back(std::move(l));
        return fits;
    };
    for (std::size_t i = 0; i < row.operands.size(); ++i)
        if (!add(row.operands[i], operand_metas_[i], &sample_.operands[i])) return std::nullopt;
    for (std::size_t o = 0; o < row.outputs.size(); ++o)
        if (!add(row.outputs[o], output_metas_[o], nullptr)) return std::nullopt;
    for (auto const& c : row.inner) s.inner.push_back({0, c});
    return s;
}

local_rule rule_oracle::local() const {
    if (!rules_->covers(query())) return run_as_is;
    return [rules = rules_](local_view const& v, local_program& p) { p = rules->local(v); };
}

bool rule_oracle::splits(std::span<layout const> operands) {
    return std::any_of(operands.begin(), operands.end(), [](layout const& l) { return l.has_partial(); });
}

rank_tensors const& rule_oracle::cut(std::size_t i, layout const& l, device_mesh const& mesh, partial_split how) const {
    if (!l.has_partial()) how = partial_splits[0];
    std::vector<std::int64_t> sizes;
    for (auto const& a : mesh.axes()) sizes.push_back(a.size);
    auto const [at, fresh] = cuts_.try_emplace({i, l, sizes, how});
    if (!fresh) return at->second;
    auto const& global = sample_.operands[i];
    rank_tensors parts{global};
    std::int64_t count = 1, averaged = 1;
    reduction kind = reduction::sum;
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (auto const p = l.on(a); p.is_partial()) {
            count *= mesh.size(a);
            if (p.reduce == reduction::avg) averaged *= mesh.size(a);
            else kind = p.reduce;
        }
    // Two operands of one op must not be split alike: what cancels by accident would pass.
    std::uint64_t const seed = 977 * i + 31 * static_cast<std::uint64_t>(how) + static_cast<std::uint64_t>(count);
    if (count > 1) parts = split_partial(global, averaged == count ? reduction::avg : kind, count, how, seed, averaged);
    return at->second = pieces_of(parts, l, mesh);
}

std::vector<std::vector<plain_values>> rule_oracle::outputs_of(rank_play& play, std::span<layout const> operands, device_mesh const& mesh,
                                                               partial_split how) const {
    std::vector<rank_tensors> in;
    for (std::size_t i = 0; i < operands.size(); ++i) in.push_back(cut(i, operands[i], mesh, how));
    std::vector<std::vector<plain_values>> outputs;
    for (auto const& ranks : play.run(in)) {
        auto& made = outputs.emplace_back();
        for (auto const& t : ranks) made.push_back(plain(t, sample_.values_matter));
    }
    return outputs;
}

std::string rule_oracle::difference_of(std::vector<plain_values> const& ranks, std::size_t o, layout const& l,
                                       device_mesh const& mesh) const {
    return difference(ranks, l, mesh, wanted_[o], exact_);
}

std::string rule_oracle::inner_difference(oracle_strategy const& s, device_mesh const& mesh,
                                          std::vector<issued_all_reduce> issued) const {
    std::vector<issued_all_reduce> declared;
    for (auto const& [axis, what] : s.inner) {
        if (what.kind != collective_kind::all_reduce) return "it declares a collective inside that is no all_reduce";
        auto const& t = what.on_output ? output_metas_.at(what.index) : operand_metas_.at(what.index);
        auto const& l = s.layouts.at(what.on_output ? operand_metas_.size() + what.index : what.index);
        declared.push_back({axis, what.reduce, element_count(l.local_shape(t.sizes)) * element_bytes(t.type)});
    }
    std::sort(declared.begin(), declared.end());
    std::sort(issued.begin(), issued.end());
    if (declared == issued) return {};
    auto const text = [&](std::vector<issued_all_reduce> const& list) {
        std::string t;
        for (auto const& c : list)
            t += (t.empty() ? "" : ", ") + std::string(to_string(c.reduce)) + " over " + mesh.name(c.axis) + " of " +
                 std::to_string(c.bytes) + " bytes";
        return t.empty() ? "none" : t;
    };
    return "all_reduces inside: declared " + text(declared) + "; issued " + text(issued);
}

oracle_verdict rule_oracle::judge(oracle_strategy const& s, device_mesh const& mesh, local_rule const& rule, bool inner_counts) const {
    auto const operand_count = operand_metas_.size();
    for (std::size_t p = 0; p < s.layouts.size(); ++p) {
        auto const& t = p < operand_count ? operand_metas_[p] : output_metas_[p - operand_count];
        if (!t.defined) continue;
        bool const means = p >= operand_count || mean_something(s.layouts[p], sample_.operands[p].scalar_type());
        if (!s.layouts[p].fits(t.sizes, shard_policy::uneven) || !means) return {oracle_verdict::kind::does_not_divide, ""};
    }
    auto const refuted = [](std::string why) { return oracle_verdict{oracle_verdict::kind::refuted, std::move(why)}; };
    std::span<layout const> const operands(s.layouts.data(), operand_count);
    try {
        rank_play play(query(), s.layouts, mesh, rule);
        bool const many = splits(operands);
        for (auto how : partial_splits) {
            auto const outputs = outputs_of(play, operands, mesh, how);
            for (std::size_t o = 0; o < outputs.size(); ++o)
                if (auto why = difference_of(outputs[o], o, s.layouts[operand_count + o], mesh); !why.empty())
                    return refuted("output " + std::to_string(o) + (many ? ", split " + std::string(to_string(how)) : "") + ": " + why);
            if (!many) break;  // nothing to split: one run tells all
        }
        if (inner_counts)
            if (auto why = inner_difference(s, mesh, play.issued()); !why.empty()) return refuted(std::move(why));
        return {};
    } catch (std::exception const& e) { return refuted("the op refuses: " + first_line(e.what())); }
}

oracle_verdict rule_oracle::check(oracle_strategy const& s, device_mesh const& mesh) const { return judge(s, mesh, local(), true); }

oracle_verdict rule_oracle::check(axis_row const& row, std::int64_t n) const {
    auto const s = place(row, n);
    return s ? check(*s, axis_of(n)) : oracle_verdict{oracle_verdict::kind::does_not_divide, ""};
}

oracle_verdict rule_oracle::check_meaning(axis_row const& row, std::int64_t n) const {
    auto const s = place(row, n);
    if (!s) return {oracle_verdict::kind::does_not_divide, ""};
    auto const own = judge(*s, axis_of(n), local(), false);
    return own.refuted() ? judge(*s, axis_of(n), run_as_is, false) : own;
}

std::string text_of(rule_oracle const& oracle) {
    std::string text = oracle.query().name() + "(";
    for (std::size_t i = 0; i < oracle.query().operands.size(); ++i) {
        auto const& t = oracle.query().operands[i];
        text += (i ? ", " : "") + shape_text(t.sizes) + " " + std::string(to_string(t.type));
    }
    return text + ")";
}

}  // namespace cantle::libtorch
