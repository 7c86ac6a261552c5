// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a plan uses of a budget that it was made under: shown by reports, kept in plans.
#include <string>

namespace cantle {

struct budget_use {
    std::string name;
    double limit = 0, use = 0;  ///< bytes on the fullest rank, a ratio, or what a sum of the user's own counts
    double multiplier = 0;      ///< microseconds that one more unit of the limit would save, about; 0 where the limit does not bind
    bool in_bytes = true;
    bool operator==(budget_use const&) const = default;
};

}  // namespace cantle
