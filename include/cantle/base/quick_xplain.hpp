// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: of many demands that cannot hold together, name a few that already cannot, none of which can be left out.
// Idea: QuickXplain [1]: halve the open demands; what the first half leaves to the second is found with the first half fixed, then what the
// second really needs of the first.
// Precondition: whatever satisfies a set satisfies its subsets.
// Complexity: O(k log(n / k)) tests for a conflict of k of n demands. Deterministic; demands that come early are preferred, late ones are
// named only where the early ones alone do not conflict.
// [1] U. Junker, "QuickXplain: Preferred explanations and relaxations for over-constrained problems", AAAI 2004, 167-172.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cantle {

namespace detail {

template <class Satisfiable>
class quick_xplain {
public:
    using list = std::vector<std::uint32_t>;
    explicit quick_xplain(Satisfiable const& satisfiable) : satisfiable_(satisfiable) {}

    /// A minimal part of `open` that conflicts with `fixed`; `grown`: `fixed` has grown since it was last tested.
    list explain(list const& fixed, bool grown, list const& open) const {
        if (grown && !satisfiable_(fixed)) return {};
        if (open.size() == 1) return open;
        auto const half = open.begin() + static_cast<std::ptrdiff_t>(open.size() / 2);
        list const first(open.begin(), half), second(half, open.end());
        auto const late = explain(with(fixed, first), true, second);
        auto early = explain(with(fixed, late), !late.empty(), first);
        early.insert(early.end(), late.begin(), late.end());
        return early;
    }

private:
    Satisfiable const& satisfiable_;
    static list with(list a, list const& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    }
};

}  // namespace detail

/// A minimal conflict among `demands`, in their order. Nothing when they can hold together; empty when not even none of them can.
/// `satisfiable`: bool(std::vector<std::uint32_t> const&), asked about subsets of `demands`.
template <class Satisfiable>
std::optional<std::vector<std::uint32_t>> minimal_conflict_of(std::vector<std::uint32_t> const& demands, Satisfiable const& satisfiable) {
    if (satisfiable(demands)) return std::nullopt;
    if (demands.empty() || !satisfiable({})) return std::vector<std::uint32_t>{};
    return detail::quick_xplain<Satisfiable>(satisfiable).explain({}, false, demands);
}

}  // namespace cantle
