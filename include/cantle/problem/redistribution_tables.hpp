// SPDX-License-Identifier: BSL-1.0
#pragma once
// Prices of moving tensors between layouts, one placement lattice per (shape, element size). Tables hold only the layouts that some
// neighbour names; the lattice stays the only source of prices and paths.
#include <cantle/base/parallel_for.hpp>
#include <cantle/cost/concepts.hpp>
#include <cantle/mesh/placement_lattice.hpp>
#include <cantle/problem/op_classes.hpp>
#include <cantle/rules/strategy.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace cantle {

/// Index of a tensor class: tensors of equal shape and element size.
using tensor_class_id = std::uint32_t;

class redistribution_tables {
public:
    explicit redistribution_tables(device_mesh mesh, shard_policy policy = shard_policy::even) : mesh_(std::move(mesh)), policy_(policy) {}

    tensor_class_id class_of(tensor_meta const& t) {
        auto const [at, fresh] = ids_.try_emplace({t.sizes, element_bytes(t.type)}, static_cast<tensor_class_id>(entries_.size()));
        if (fresh) entries_.push_back({lattice_class{mesh_, t.sizes, element_bytes(t.type), {}, policy_}, {}, {}, {}, {}, {}});
        return at->second;
    }
    /// Announce that tensors of class c may have to be moved from any of `from` to any of `to`.
    void want(tensor_class_id c, std::vector<layout_id> const& from, std::vector<layout_id> const& to) {
        entries_[c].from.insert(from.begin(), from.end());
        entries_[c].to.insert(to.begin(), to.end());
    }
    /// Form the lattices between all announced layouts. Call once, after all want(). Several threads ask a cost model that says that it
    /// allows that (cost/concepts.hpp).
    template <CostModel Cost>
    void form(layout_table const& layouts, Cost const& cost, unsigned threads = 1) {
        auto const price = [&cost](collective_call const& call) {
            return detail::checked_price(cost.collective(call), "collective " + std::string(to_string(call.kind)));
        };
        for_each_entry(allows_threads<Cost> ? threads : 1, [&](entry& e) {
            std::set<layout_id> both(e.from);
            both.insert(e.to.begin(), e.to.end());
            std::vector<layout> terminals;
            for (auto l : both) terminals.push_back(layouts[l]);
            e.lattice.emplace(e.tensor_class, terminals, price);
        });
    }
    /// Forget what was announced and priced; lattices stay. What is announced from here on must have been before.
    void clear_wants() {
        for (auto& e : entries_) {
            e.from.clear();
            e.to.clear();
        }
    }
    /// Price all announced pairs. Precondition: form().
    void price(layout_table const& layouts, unsigned threads = 1) {
        for_each_entry(threads, [&](entry& e) {
            std::vector<layout> sources, targets;
            for (auto l : e.from) sources.push_back(layouts[l]);
            for (auto l : e.to) targets.push_back(layouts[l]);
            e.order.assign(e.to.begin(), e.to.end());
            e.distance.clear();
            auto rows = e.lattice->distances(sources, targets);
            std::size_t i = 0;
            for (auto l : e.from) e.distance.emplace(l, std::move(rows[i++]));
        });
    }
    /// Prices of from -> each of `to` in microseconds; infinity where no path exists, 0 to itself. Precondition: announced and priced.
    std::vector<double> costs(tensor_class_id c, layout_id from, std::vector<layout_id> const& to) const {
        auto const& e = entries_[c];
        auto const& row = e.distance.at(from);
        std::vector<double> out;
        out.reserve(to.size());
        for (auto l : to) {
            auto const at = std::lower_bound(e.order.begin(), e.order.end(), l);
            out.push_back(row[static_cast<std::size_t>(at - e.order.begin())]);
        }
        return out;
    }
    placement_lattice const& lattice(tensor_class_id c) const { return *entries_[c].lattice; }
    std::size_t class_count() const { return entries_.size(); }

private:
    struct entry {
        lattice_class tensor_class;
        std::set<layout_id> from, to;
        std::vector<layout_id> order;                       // `to`, sorted
        std::map<layout_id, std::vector<double>> distance;  // from -> prices in that order
        std::optional<placement_lattice> lattice;           // once formed
    };
    device_mesh mesh_;
    shard_policy policy_;
    std::vector<entry> entries_;

    /// f(entry) for all, each on its own: the order does not matter. Few layouts are not worth a thread.
    template <class F>
    void for_each_entry(unsigned threads, F f) {
        std::size_t layouts = 0;
        for (auto const& e : entries_) layouts += e.from.size();
        parallel_for(entries_.size(), layouts < 1000 ? 1 : threads, [&](std::size_t i) { f(entries_[i]); });
    }
    std::map<std::pair<shape, int>, tensor_class_id> ids_;
};

}  // namespace cantle
