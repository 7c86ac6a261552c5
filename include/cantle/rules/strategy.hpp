// SPDX-License-Identifier: BSL-1.0
#pragma once
// Interned layouts and tables of strategies. A strategy is an index into the table of its op class, never an object (ARCHITECTURE idea 1).
#include <cantle/mesh/layout.hpp>
#include <cantle/rules/axis_row.hpp>

#include <cstdint>
#include <map>
#include <span>
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
    std::map<layout, layout_id> ids_;
};

/// An inner collective and the mesh axis it runs on.
struct inner_on_axis {
    std::uint32_t axis = 0;
    inner_collective what;
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
