// SPDX-License-Identifier: BSL-1.0
#pragma once
// Interned layouts and tables of strategies. A strategy is an index into the table of its op class, never an object (ARCHITECTURE idea 1).
#include <cantle/mesh/layout.hpp>
#include <cantle/rules/axis_row.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

namespace cantle {

/// Index of a layout in a layout_table.
using layout_id = std::uint32_t;

/// Every layout that a problem names, once. Ids count up in order of first use.
class layout_table {
public:
    layout_id intern(layout const& l) {
        auto const [at, fresh] = ids_.try_emplace(l, static_cast<layout_id>(layouts_.size()));
        if (fresh) layouts_.push_back(l);
        return at->second;
    }
    layout const& operator[](layout_id id) const { return layouts_[id]; }
    std::size_t size() const { return layouts_.size(); }

private:
    std::vector<layout> layouts_;
    std::unordered_map<layout, layout_id, layout_hash> ids_;  // looked up, never walked
};

/// An inner collective and the mesh axis it runs on.
struct inner_on_axis {
    std::uint32_t axis = 0;
    inner_collective what;
};

/// Finds equal rows of a flat table of ids. Holds positions only; the table stays with the caller.
class row_index {
public:
    explicit row_index(std::size_t width) : width_(width), slots_(64, none) {}
    /// The place of `row` in `flat`, where it is appended unless an equal one is there; fresh says which.
    std::uint32_t find_or_append(std::vector<std::uint32_t>& flat, std::vector<std::uint32_t> const& row, bool& fresh) {
        if (2 * (count_ + 1) > slots_.size()) grow(flat);
        std::size_t at = hash(row.data()) & (slots_.size() - 1);
        while (slots_[at] != none) {
            if (std::equal(row.begin(), row.end(), flat.begin() + static_cast<std::ptrdiff_t>(slots_[at] * width_))) {
                fresh = false;
                return slots_[at];
            }
            at = (at + 1) & (slots_.size() - 1);
        }
        fresh = true;
        flat.insert(flat.end(), row.begin(), row.end());
        slots_[at] = static_cast<std::uint32_t>(count_);
        return static_cast<std::uint32_t>(count_++);
    }

private:
    static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
    std::size_t width_, count_ = 0;
    std::vector<std::uint32_t> slots_;  // open addressing, a power of two, at most half full

    std::size_t hash(std::uint32_t const* row) const {
        std::uint64_t h = 0x9e3779b97f4a7c15u;
        for (std::size_t i = 0; i < width_; ++i) h = (h ^ row[i]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
        return static_cast<std::size_t>(h);
    }
    void grow(std::vector<std::uint32_t> const& flat) {
        slots_.assign(slots_.size() * 2, none);
        for (std::size_t i = 0; i < count_; ++i) {
            std::size_t at = hash(flat.data() + i * width_) & (slots_.size() - 1);
            while (slots_[at] != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = static_cast<std::uint32_t>(i);
        }
    }
};

/// All strategies of one op class: for every strategy the layouts of all ports. Ports are the operands, then the outputs.
struct strategy_table {
    std::uint32_t operand_count = 0, output_count = 0;
    std::vector<layout_id> layouts;                 ///< [strategy][port], row-major
    std::vector<std::vector<inner_on_axis>> inner;  ///< [strategy]

    std::size_t ports() const { return operand_count + output_count; }
    std::size_t size() const { return inner.size(); }
    layout_id operand(std::size_t strategy, std::size_t i) const { return layouts[strategy * ports() + i]; }
    layout_id output(std::size_t strategy, std::size_t i) const { return layouts[strategy * ports() + operand_count + i]; }
    /// The layouts of one port over all strategies.
    std::vector<layout_id> column(std::size_t port) const {
        std::vector<layout_id> c;
        c.reserve(size());
        for (std::size_t s = 0; s < size(); ++s) c.push_back(layouts[s * ports() + port]);
        return c;
    }
};

}  // namespace cantle
