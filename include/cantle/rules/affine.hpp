// SPDX-License-Identifier: BSL-1.0
#pragma once
// Rows of Partial for ops that are affine in some operands. What follows from the algebra alone:
//   linear in x together (y = A x)       sum and avg of x pass
//   affine in x together (y = A x + c)   avg passes, for some of them or all: averaging keeps constants; a sum would count c once per rank
//   y = c + b x with b > 0               max and min of x pass
// A bias is never Replicate beside a Partial(sum) product (DECISIONS 5, case E6).
#include <cantle/rules/pointwise.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace cantle::rules {

/// Adds such rows to a list, each once.
class affine_rows {
public:
    affine_rows(op_query const& q, row_list& rows) : q_(q), rows_(rows) {}

    /// The outputs that `depend` (all where it is empty) are affine in these operands together, linear where `linear`. Absent operands
    /// are left out; nothing is added where all are absent.
    affine_rows& jointly(std::vector<std::optional<std::uint32_t>> const& operands, std::vector<bool> const& depend = {},
                         bool linear = true) {
        std::vector<std::uint32_t> there;
        for (auto const& s : operands)
            if (s && std::find(there.begin(), there.end(), *s) == there.end()) there.push_back(*s);
        if (there.empty()) return *this;
        if (linear) passing(there, reduction::sum, depend);
        for (std::uint32_t some = 1; some < 1u << there.size(); ++some) {
            std::vector<std::uint32_t> which;
            for (std::size_t i = 0; i < there.size(); ++i)
                if (some >> i & 1u) which.push_back(there[i]);
            passing(which, reduction::avg, depend);
        }
        return *this;
    }
    /// Those outputs grow with this operand at slope 1 or another positive constant.
    affine_rows& addend(std::optional<std::uint32_t> operand, std::vector<bool> const& depend = {}) {
        if (operand)
            for (auto kind : {reduction::max, reduction::min}) passing({*operand}, kind, depend);
        return *this;
    }
    /// One row: these operands Partial(kind), all others Replicate; the outputs that depend Partial(kind).
    affine_rows& passing(std::vector<std::uint32_t> const& operands, reduction kind, std::vector<bool> const& depend = {}) {
        axis_row row{std::vector<placement>(q_.operands.size()), std::vector<placement>(q_.outputs.size())};
        bool any = false;
        for (std::size_t o = 0; o < row.outputs.size(); ++o) {
            if (!q_.outputs[o].defined || !(depend.empty() || (o < depend.size() && depend[o]))) continue;
            any = true;
            row.outputs[o] = placement::partial(kind);
            for (auto i : operands)
                if (!carries_sums(q_.operands[i].type, q_.outputs[o].type)) return *this;
        }
        for (auto i : operands) row.operands[i] = placement::partial(kind);
        if (!any || std::find(made_.begin(), made_.end(), row) != made_.end()) return *this;
        made_.push_back(row);
        rows_.add(std::move(row));
        return *this;
    }

private:
    op_query const& q_;
    row_list& rows_;
    std::vector<axis_row> made_;
};

}  // namespace cantle::rules
