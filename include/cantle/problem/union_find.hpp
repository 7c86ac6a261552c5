// SPDX-License-Identifier: BSL-1.0
#pragma once
// Disjoint sets whose representative is always the smallest member, so that groups come in a stable order.
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace cantle {

class union_find {
public:
    explicit union_find(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0u); }
    std::uint32_t find(std::uint32_t x) {
        while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
        return x;
    }
    void unite(std::uint32_t a, std::uint32_t b) {
        a = find(a);
        b = find(b);
        if (a > b) std::swap(a, b);
        parent_[b] = a;
    }

private:
    std::vector<std::uint32_t> parent_;
};

}  // namespace cantle
