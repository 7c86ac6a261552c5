// SPDX-License-Identifier: BSL-1.0
#pragma once
// The layouts that the labels of a group give to a port: a column. Equal columns are one, and two columns with what moves between them
// name all prices of an edge, so that copies of a layer share them.
#include <cantle/problem/planning_problem.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace cantle::detail {

class edge_columns {
public:
    /// What prices an edge between two groups.
    struct key {
        tensor_class_id tensor_class = 0;
        std::uint32_t from = 0, to = 0;  ///< columns
        bool free_only = false, keeps_partial = false;
        auto operator<=>(key const&) const = default;
    };

    /// Keeps a reference. Labels of p's groups must not change while columns are asked for.
    explicit edge_columns(planning_problem const& p) : p_(&p) {}

    key of(flow_edge const& e) {
        auto const from = column(e.from, e.from_port), to = column(e.to, e.to_port);
        return {e.tensor_class, from, to, e.free_only, e.keeps_partial};
    }
    /// [label] -> layout
    std::vector<layout_id> const& layouts(std::uint32_t column) const { return columns_[column]; }

private:
    planning_problem const* p_;
    std::map<std::vector<layout_id>, std::uint32_t> ids_;
    std::vector<std::vector<layout_id>> columns_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> column_of_;  // (group, port)

    std::uint32_t column(variable_index v, std::uint32_t port) {
        auto const group = p_->grouping.group_of[v];
        auto const [at, fresh] = column_of_.try_emplace({group, port}, 0);
        if (fresh) {
            std::vector<layout_id> c;
            for (mrf::label l = 0; l < p_->grouping.groups[group].label_count(); ++l) c.push_back(p_->layout_at(v, port, l));
            auto const [id, fresh_column] = ids_.try_emplace(c, static_cast<std::uint32_t>(columns_.size()));
            if (fresh_column) columns_.push_back(std::move(c));
            at->second = id->second;
        }
        return at->second;
    }
};

/// Announce which moves the edges may need between the labels that groups have now.
inline void announce_moves(planning_problem& p) {
    edge_columns columns(p);
    std::map<edge_columns::key, bool> done;
    for (auto const& e : p.edges) {
        auto k = columns.of(e);
        k.free_only = k.keeps_partial = false;
        if (done.try_emplace(k, true).second) p.tables.want(e.tensor_class, columns.layouts(k.from), columns.layouts(k.to));
    }
}

}  // namespace cantle::detail
