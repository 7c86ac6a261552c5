// SPDX-License-Identifier: BSL-1.0
// Partial values: families of splits made to expose what is not linear, not monotone or not what it seems.
#include <adapters/libtorch/oracle_values.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <array>
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
bool is_narrow(at::ScalarType t) { return t == at::kBFloat16 || t == at::kHalf || t == at::kShort || t == at::kChar; }

/// A chequered board over all dims: neighbours along every dim belong to different ranks (case A32: parity of the flat index does not do
/// that, a row would belong to one rank).
at::Tensor checkerboard_like(at::Tensor const& t, std::int64_t n) {
    auto owner = at::zeros(t.sizes(), at::kLong);
    for (std::int64_t d = 0; d < t.dim(); ++d) {
        std::vector<std::int64_t> view(static_cast<std::size_t>(t.dim()), 1);
        view[static_cast<std::size_t>(d)] = t.size(d);
        owner = owner + at::arange(t.size(d), at::kLong).view(view);
    }
    return owner.remainder(n);
}

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
    } else if (how == partial_split::checkerboard) {
        auto const owner = checkerboard_like(whole, n);
        for (std::size_t r = 0; r < parts.size(); ++r)
            parts[r] = at::where(owner == static_cast<std::int64_t>(r), whole, at::zeros_like(whole));
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
    else if (how == partial_split::checkerboard)
        owner = checkerboard_like(whole, n);
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

}  // namespace

std::string_view to_string(partial_split s) {
    constexpr std::string_view names[] = {"all on the first rank", "all on the last rank", "cancelling", "sign-mixed",
                                          "checkerboard", "dyadic"};
    return names[static_cast<std::size_t>(s)];
}

bool has_partials(at::ScalarType type, reduction kind) {
    if (at::isComplexType(type)) return false;  // splits are made of real numbers
    bool const bounds = kind == reduction::max || kind == reduction::min;
    if (at::isComplexType(type)) return !bounds;  // no order
    return bounds ? type != at::kByte : type != at::kBool && type != at::kByte;
}

rank_tensors split_partial(at::Tensor const& global, reduction kind, std::int64_t n, partial_split how, std::uint64_t seed,
                           std::int64_t averaged) {
    if (global.is_complex()) {
        rank_tensors parts;
        for (auto const& t : split_partial(at::view_as_real(global.resolve_conj()), kind, n, how, seed, averaged))
            parts.push_back(at::view_as_complex(t.contiguous()));
        return parts;
    }
    dice d(seed);
    if (kind == reduction::avg) averaged = n;
    auto const whole = global.to(at::kDouble) * static_cast<double>(averaged);
    bool const narrow = is_narrow(global.scalar_type());
    rank_tensors parts;
    if (global.scalar_type() == at::kBool) {  // the maximum of flags is "or", the minimum "and"; the others hold the neutral one
        auto const owner = how == partial_split::all_on_first  ? at::zeros(global.sizes(), at::kLong)
                           : how == partial_split::all_on_last ? at::full(global.sizes(), n - 1, at::kLong)
                           : how == partial_split::checkerboard ? checkerboard_like(global, n)
                                                                : d.owners_like(global, n);
        for (std::int64_t r = 0; r < n; ++r)
            parts.push_back(at::where(owner == r, global, at::full(global.sizes(), kind == reduction::min, at::kBool)));
        return parts;
    }
    switch (kind) {
        case reduction::sum:
        case reduction::avg:
            parts = split_sum(whole, n, how, d, narrow, !global.is_floating_point());
            break;
        case reduction::max:
            parts = split_maximum(whole, n, how, d, narrow);
            break;
        case reduction::min:
            for (auto const& t : split_maximum(-whole, n, how, d, narrow)) parts.push_back(-t);
            break;
    }
    for (auto& t : parts) t = t.to(global.scalar_type());
    if (narrow && averaged > 1) {  // n times a value may have more bits than bf16; then equal parts must do
        auto sum = -whole;
        for (auto const& t : parts) sum = sum + t.to(at::kDouble);
        if (sum.any().item<bool>() && kind == reduction::avg) parts.assign(parts.size(), global);
    }
    return parts;
}

bool is_exact_op(std::string_view name) {
    // Sorted. In every form (overload) of the op; what is not listed may round.
    static constexpr std::string_view exact[] = {
        "abs", "add", "amax", "amin", "arange", "argmax", "argmin", "bmm", "cat", "clamp", "clamp_max", "clamp_min", "clone", "copy",
        "copy_", "cumsum", "detach", "embedding", "eq", "expand", "fill", "flip", "full", "full_like",
        "gather", "ge", "gt", "index", "index_add", "index_copy", "index_put", "index_select", "le", "linear", "linear_grad_input",
        "linear_grad_weight", "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "max", "maximum", "min", "minimum", "mm",
        "mul", "narrow", "ne", "neg", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "permute", "relu", "repeat", "reshape",
        "roll", "rsub", "scatter", "scatter_add", "select", "select_backward", "sgn", "sign", "slice", "slice_backward", "sort", "split",
        "split_with_sizes", "squeeze", "stack", "sub", "sum", "t", "threshold_backward", "topk", "transpose", "tril", "triu", "unsqueeze",
        "view", "where", "zeros", "zeros_like"};
    auto const from = name.find("::");
    if (from != std::string_view::npos) name.remove_prefix(from + 2);
    name = name.substr(0, name.find('.'));
    return std::binary_search(std::begin(exact), std::end(exact), name);
}

}  // namespace cantle::libtorch
