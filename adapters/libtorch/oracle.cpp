// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle.hpp>

#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/rank_play.hpp>

#include <cantle/base/stable_hash.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

namespace cantle::libtorch {
namespace {

/// Random numbers that are the same on every machine (splitmix64).
class dice {
public:
    explicit dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t roll() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    /// A tensor like `t` (as float64) of multiples of 1/8 with low <= 8 x <= high.
    at::Tensor eighths_like(at::Tensor const& t, std::int64_t low, std::int64_t high) {
        std::vector<double> values(static_cast<std::size_t>(t.numel()));
        auto const range = static_cast<std::uint64_t>(high - low + 1);
        for (auto& v : values) v = static_cast<double>(low + static_cast<std::int64_t>(roll() % range)) / 8;
        return at::tensor(values, at::kDouble).view(t.sizes());
    }
    /// For every element one of n ranks.
    at::Tensor owners_like(at::Tensor const& t, std::int64_t n) {
        std::vector<std::int64_t> values(static_cast<std::size_t>(t.numel()));
        for (auto& v : values) v = static_cast<std::int64_t>(roll() % static_cast<std::uint64_t>(n));
        return at::tensor(values, at::kLong).view(t.sizes());
    }

private:
    std::uint64_t state_;
};

/// bf16 holds 8 bits: parts stay below 16 there, so that they are multiples of 1/8 still.
bool is_narrow(at::ScalarType t) { return t == at::kBFloat16 || t == at::kHalf; }

/// Parts in float64 that add up to `whole` exactly.
rank_tensors split_sum(at::Tensor const& whole, std::int64_t n, partial_split how, dice& d, bool narrow, bool whole_numbers) {
    rank_tensors parts(static_cast<std::size_t>(n), at::zeros_like(whole));
    auto const last = static_cast<std::size_t>(n - 1);
    auto const part = [&](std::int64_t low, std::int64_t high) {
        auto t = d.eighths_like(whole, low, high);
        return whole_numbers ? at::floor(t) : t;
    };
    if (how == partial_split::all_on_first)
        parts[0] = whole.clone();
    else if (how == partial_split::all_on_last)
        parts[last] = whole.clone();
    else if (how == partial_split::cancelling) {  // large values of both signs that cancel
        auto rest = whole.clone();
        for (std::size_t r = 0; r < last; ++r) {
            auto const large = part(1, narrow ? 32 : 16384) * (r % 2 == 0 ? 1 : -1);
            parts[r] = large;
            rest = rest - large;
        }
        parts[last] = rest;
    } else if (how == partial_split::sign_mixed) {  // about twice the whole on one rank, less the rest on another, element by element
        auto const owner = d.owners_like(whole, n);
        auto const extra = whole + (whole >= 0).to(at::kDouble) - (whole < 0).to(at::kDouble);
        for (std::size_t r = 0; r < parts.size(); ++r) {
            auto const rank = static_cast<std::int64_t>(r);
            parts[r] = at::where(owner == rank, whole + extra, at::zeros_like(whole)) -
                       at::where((owner + 1).remainder(n) == rank, extra, at::zeros_like(whole));
        }
    } else {
        auto rest = whole.clone();
        for (std::size_t r = 0; r < last; ++r) {
            parts[r] = part(-24, 24);
            rest = rest - parts[r];
        }
        parts[last] = rest;
    }
    return parts;
}

/// Values whose maximum is `whole`: an owner per element, the others lower, in some splits by more than the range of all values.
rank_tensors split_maximum(at::Tensor const& whole, std::int64_t n, partial_split how, dice& d, bool narrow) {
    at::Tensor owner;
    if (how == partial_split::all_on_first)
        owner = at::zeros_like(whole, at::kLong);
    else if (how == partial_split::all_on_last)
        owner = at::full_like(whole, n - 1, at::kLong);
    else
        owner = d.owners_like(whole, n);
    bool const far = how == partial_split::cancelling || how == partial_split::all_on_last;
    rank_tensors parts;
    for (std::int64_t r = 0; r < n; ++r) {
        auto const below = d.eighths_like(whole, far && !narrow ? 8000 : 1, far && !narrow ? 9000 : 32);
        parts.push_back(at::where(owner == r, whole, whole - below));
    }
    return parts;
}

/// Sizes and types are right; are the values?
std::string difference(at::Tensor const& got, at::Tensor const& want) {
    if (want.scalar_type() == at::kBool || !want.is_floating_point())
        return at::equal(got.to(at::kDouble), want.to(at::kDouble)) ? "" : "other values";
    auto const g = got.to(at::kDouble), w = want.to(at::kDouble);
    // Ops that are exact on multiples of 1/8 give 0 here; the others are rounded in float64, logsumexp and casts in their own type.
    double const epsilon = want.scalar_type() == at::kDouble ? 1e-12 : want.scalar_type() == at::kFloat ? 1e-6 : 0.0;
    if (w.numel() == 0) return "";
    double const scale = std::max(1.0, w.abs().max().item<double>());
    double const off = (g - w).abs().max().item<double>();
    if (off <= epsilon * scale) return "";  // a NaN is not
    std::ostringstream text;
    text << "off by " << off;
    return text.str();
}

std::string sizes_text(at::Tensor const& t) {
    std::ostringstream text;
    text << t.sizes();
    return text.str();
}

}  // namespace

std::string_view to_string(partial_split s) {
    constexpr std::string_view names[] = {"all on the first rank", "all on the last rank", "cancelling", "sign-mixed", "dyadic"};
    return names[static_cast<std::size_t>(s)];
}

at::Tensor shard_of(at::Tensor const& global, placement p, std::int64_t n, std::int64_t rank) {
    auto sizes = global.sizes().vec();
    auto const d = static_cast<std::int64_t>(p.dim);
    auto const inner = sizes[p.dim] / p.outer / n;
    auto digits = sizes;
    digits[p.dim] = p.outer;
    digits.insert(digits.begin() + d + 1, {n, inner});
    sizes[p.dim] /= n;
    return global.reshape(digits).select(d + 1, rank).reshape(sizes).contiguous();
}

rank_tensors split_partial(at::Tensor const& global, reduction kind, std::int64_t n, partial_split how, std::uint64_t seed) {
    dice d(seed);
    auto const whole = global.to(at::kDouble);
    bool const narrow = is_narrow(global.scalar_type());
    rank_tensors parts;
    switch (kind) {
        case reduction::sum:
            parts = split_sum(whole, n, how, d, narrow, !global.is_floating_point());
            break;
        case reduction::avg:
            parts = split_sum(whole * static_cast<double>(n), n, how, d, narrow, !global.is_floating_point());
            break;
        case reduction::max:
            parts = split_maximum(whole, n, how, d, narrow);
            break;
        case reduction::min:
            for (auto const& t : split_maximum(-whole, n, how, d, narrow)) parts.push_back(-t);
            break;
    }
    for (auto& t : parts) t = t.to(global.scalar_type());
    return parts;
}

at::Tensor combine(rank_tensors const& locals, placement p, std::string& why) {
    for (auto const& t : locals)
        if (t.sizes() != locals[0].sizes()) {
            why = "the ranks' sizes differ";
            return {};
        }
    if (p.is_replicate()) {
        for (auto const& t : locals)
            if (auto const off = difference(t, locals[0]); !off.empty()) {
                why = "copies differ, " + off;
                return {};
            }
        return locals[0];
    }
    if (p.is_shard()) {
        if (static_cast<std::int64_t>(p.dim) >= locals[0].dim() || locals[0].size(p.dim) % p.outer != 0) {
            why = "no such shard of " + sizes_text(locals[0]);
            return {};
        }
        auto sizes = locals[0].sizes().vec();
        auto digits = sizes;
        auto const d = static_cast<std::int64_t>(p.dim);
        digits[p.dim] = p.outer;
        digits.insert(digits.begin() + d + 1, sizes[p.dim] / p.outer);
        rank_tensors pieces;
        for (auto const& t : locals) pieces.push_back(t.reshape(digits));
        sizes[p.dim] *= static_cast<std::int64_t>(locals.size());
        return at::stack(pieces, d + 1).reshape(sizes);
    }
    rank_tensors exact;
    for (auto const& t : locals) exact.push_back(t.to(at::kDouble));
    auto const all = at::stack(exact);
    switch (p.reduce) {
        case reduction::sum:
            return all.sum(0);
        case reduction::avg:
            return all.mean(0);
        case reduction::max:
            return all.amax(0);
        case reduction::min:
            return all.amin(0);
    }
    return {};
}

rule_oracle::rule_oracle(rule_sample sample) : sample_(std::move(sample)) {
    outputs_ = call_op(sample_.operation, sample_.operands);
    for (auto const& t : sample_.operands) operand_metas_.push_back(to_meta(t));
    for (auto const& t : outputs_) output_metas_.push_back(to_meta(t));
}

bool rule_oracle::divides(axis_row const& row, std::int64_t n) const {
    auto const ok = [n](placement p, tensor_meta const& t) {
        return !p.is_shard() || !t.defined ||
               (p.dim < t.rank() && p.outer >= 1 && t.sizes[p.dim] > 0 && t.sizes[p.dim] % (p.outer * n) == 0);
    };
    for (std::size_t i = 0; i < row.operands.size(); ++i)
        if (!ok(row.operands[i], operand_metas_[i])) return false;
    for (std::size_t i = 0; i < row.outputs.size(); ++i)
        if (!ok(row.outputs[i], output_metas_[i])) return false;
    return true;
}

std::vector<std::vector<rank_tensors>> rule_oracle::run(axis_row const& row, std::int64_t n) const {
    std::vector<std::vector<rank_tensors>> all;
    if (!divides(row, n)) return all;
    bool const partial = std::any_of(row.operands.begin(), row.operands.end(), [](placement p) { return p.is_partial(); });
    for (auto how : partial_splits) {
        std::vector<rank_tensors> locals;  // [operand][rank]
        for (std::size_t i = 0; i < row.operands.size(); ++i) {
            auto const& global = sample_.operands[i];
            auto const p = row.operands[i];
            // Two operands of one op must not be split alike: what cancels by accident would pass.
            std::uint64_t const seed = 977 * i + 31 * static_cast<std::uint64_t>(how) + static_cast<std::uint64_t>(n);
            if (p.is_partial())
                locals.push_back(split_partial(global, p.reduce, n, how, seed));
            else {
                rank_tensors copies;
                for (std::int64_t r = 0; r < n; ++r) copies.push_back(p.is_shard() ? shard_of(global, p, n, r) : global);
                locals.push_back(std::move(copies));
            }
        }
        all.push_back(run_ranks(locals, row, n));
        if (!partial) break;  // nothing to split: one run tells all
    }
    return all;
}

std::vector<rank_tensors> rule_oracle::run_ranks(std::vector<rank_tensors> const& operands, axis_row const& row, std::int64_t n) const {
    std::vector<std::vector<at::Tensor>> by_rank(static_cast<std::size_t>(n));
    for (std::size_t r = 0; r < by_rank.size(); ++r)
        for (auto const& x : operands) by_rank[r].push_back(x[r]);
    std::vector<shape> local;
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
        local.push_back(output_metas_[o].sizes);
        if (output_metas_[o].defined && row.outputs[o].is_shard()) local.back()[row.outputs[o].dim] /= n;
    }
    auto const results = play_ranks(sample_.operation, query(), row, by_rank, local);
    std::vector<rank_tensors> outputs(outputs_.size());
    for (auto const& of_rank : results)
        for (std::size_t o = 0; o < outputs.size(); ++o) outputs[o].push_back(of_rank.at(o));
    return outputs;
}

oracle_verdict rule_oracle::judge(std::vector<std::vector<rank_tensors>> const& locals, std::vector<placement> const& placements) const {
    for (std::size_t split = 0; split < locals.size(); ++split)
        for (std::size_t o = 0; o < outputs_.size(); ++o) {
            auto const refute = [&](std::string const& why) {
                std::string where = "output " + std::to_string(o);
                if (locals.size() > 1) where += ", split " + std::string(to_string(partial_splits[split]));
                return oracle_verdict{oracle_verdict::kind::refuted, where + ": " + why};
            };
            auto const& want = outputs_[o];
            auto const& ranks = locals[split][o];
            bool const defined =
                std::all_of(ranks.begin(), ranks.end(), [&](at::Tensor const& t) { return t.defined() == want.defined(); });
            if (!defined) return refute("defined on some ranks only");
            if (!want.defined()) continue;
            for (auto const& t : ranks)
                if (t.scalar_type() != want.scalar_type()) return refute("another type");
            std::string why;
            auto const got =
                combine(sample_.values_matter ? ranks : rank_tensors(ranks.size(), at::zeros_like(ranks[0])), placements[o], why);
            if (!got.defined()) return refute(why);
            if (got.sizes() != want.sizes()) return refute("sizes " + sizes_text(got) + " instead of " + sizes_text(want));
            if (!sample_.values_matter) continue;
            if (auto const off = difference(got, want); !off.empty()) return refute(off);
        }
    return {};
}

oracle_verdict rule_oracle::check(axis_row const& row, std::int64_t n) const {
    if (!divides(row, n)) return {oracle_verdict::kind::does_not_divide, ""};
    try {
        return judge(run(row, n), row.outputs);
    } catch (std::exception const& e) {
        std::string const what = e.what();
        return {oracle_verdict::kind::refuted, "the op refuses: " + what.substr(0, what.find('\n'))};
    }
}

}  // namespace cantle::libtorch
