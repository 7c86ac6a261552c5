// SPDX-License-Identifier: BSL-1.0
#pragma once
// What graph passes must know of an op without a rule: does it draw random numbers, may it be merged or removed, does it alias its input.
#include <cantle/graph/op.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace cantle {

/// "aten::add.Tensor" -> "add".
inline std::string_view op_base_name(std::string_view op_name) {
    if (auto const colons = op_name.rfind("::"); colons != std::string_view::npos) op_name.remove_prefix(colons + 2);
    return op_name.substr(0, op_name.find('.'));
}

/// True when the op draws random numbers (or belongs to a family that does). Words of the name decide, so that ops nobody listed count
/// too; fused attention is random when its dropout probability is not zero.
inline bool is_random(op const& o) {
    static constexpr std::array<std::string_view, 18> words{"bernoulli", "binomial", "cauchy", "dropout", "exponential", "gamma",
        "geometric", "lognormal", "multinomial", "normal", "poisson", "rand", "randint", "randn", "random", "randperm", "rrelu", "uniform"};
    auto const base = op_base_name(o.name);
    constexpr std::string_view backward = "_backward";  // derivatives reuse the mask or seed of the forward op
    if (base.size() >= backward.size() && base.substr(base.size() - backward.size()) == backward) return false;
    for (auto rest = base; !rest.empty();) {
        auto const end = std::min(rest.find('_'), rest.size());
        if (std::find(words.begin(), words.end(), rest.substr(0, end)) != words.end()) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return o.get<double>("dropout_p", 0.0) != 0.0;
}

/// True for cantle's own random ops, which draw every element by seed, number of the op and global index (docs/random.md).
inline bool draws_by_index(op const& o) { return o.name.rfind("cantle::counter_", 0) == 0; }

/// True when the op reads or writes more than its tensors (in-place, collectives, values read back).
inline bool has_effects(op const& o) {
    auto const base = op_base_name(o.name);
    bool const operator_name = base.size() > 4 && base.substr(0, 2) == "__" && base.substr(base.size() - 2) == "__";  // __and__, __iand__
    if (operator_name) return base[2] == 'i';
    return (!base.empty() && base.back() == '_') || base == "_local_scalar_dense" || base.substr(0, 7) == "_assert" ||
           o.name.find("c10d") != std::string::npos;
}

/// True when equal operands give equal outputs and nothing else happens: such ops may be merged, and removed when nobody uses them.
inline bool is_pure(op const& o) { return !is_random(o) && !has_effects(o); }

/// True when the output is the operand itself.
inline bool is_identity(op const& o) {
    auto const base = op_base_name(o.name);
    return base == "alias" || base == "detach" || base == "lift_fresh" || base == "view_of";
}

/// True when the (single or only) output shares its operand's memory.
inline bool is_alias(op const& o) {
    static constexpr std::array<std::string_view, 20> names{"view", "_unsafe_view", "_reshape_alias", "t", "transpose", "permute", "expand",
        "unsqueeze", "squeeze", "select", "slice", "as_strided", "split", "split_with_sizes", "unbind", "chunk", "narrow", "diagonal",
        "view_as_real", "view_as_complex"};
    return is_identity(o) || std::find(names.begin(), names.end(), op_base_name(o.name)) != names.end();
}

}  // namespace cantle
