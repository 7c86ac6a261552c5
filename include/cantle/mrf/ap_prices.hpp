// SPDX-License-Identifier: BSL-1.0
#pragma once
// What it costs to move a tensor from any strategy of its producer to any strategy of its consumer, for one kind of edge of an
// ap-instance-1. Hundreds of strategies share a few dozen placements: prices are found once per pair of placements, table rows once per
// placement of the consumer, and which placements can reach each other is a row of bits.
#include <cantle/mrf/ap_file.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::mrf::detail {

/// What decides an edge's table: tensor, producer's strategy table and output, consumer's strategy table and argument, no communication.
using ap_edge_kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::size_t, bool>;

class ap_prices {
public:
    /// `consumer`: the node that errors name. Keeps a reference to the file.
    ap_prices(ap_file const& f, ap_edge_kind const& kind, std::uint32_t consumer)
        : f_(f), consumer_(consumer), argument_(std::get<4>(kind)) {
        auto const& moves = f.moves.at(std::get<0>(kind));
        from_ = side_of(f.tables[std::get<1>(kind)].outputs, std::get<2>(kind), moves.from);
        to_ = side_of(f.tables[std::get<3>(kind)].arguments, argument_, moves.to);
        bool const quiet = std::get<5>(kind);
        words_ = (from_.placements.size() + 63) / 64;
        price_.reserve(to_.placements.size() * from_.placements.size());
        open_.resize(to_.placements.size() * words_);
        for (std::size_t to = 0; to < to_.placements.size(); ++to) {
            auto const [target, row] = to_.placements[to];
            auto const& costs = moves.cost[row];
            std::uint64_t* bits = open_.data() + to * words_;
            std::size_t from = 0;
            for (auto const& [source, col] : from_.placements) {
                double const c = costs[col];
                bool const open = c != forbidden && !(quiet && c > 0);
                price_.push_back(!open ? forbidden : c + (source != target ? 1.0 : 0.0));
                bits[from / 64] |= std::uint64_t{open} << (from % 64);
                ++from;
            }
        }
    }

    /// (consumer strategy, producer strategy) -> cost; `forbidden` where impossible. Throws bad_field where the file has no price.
    double operator()(std::size_t consumer, std::size_t producer) const {
        auto const to = to_.at[consumer], from = from_.at[producer];
        if (to == nowhere || from == nowhere) fail(from_.spec[producer], to_.spec[consumer]);
        return price_[to * from_.placements.size() + from];
    }

    /// `times` the costs of the strategies listed: a row per strategy of the consumer. Throws as above.
    cost_table table(std::vector<std::uint32_t> const& consumer, std::vector<std::uint32_t> const& producer, double times) const {
        cost_table t{static_cast<std::uint32_t>(consumer.size()), static_cast<std::uint32_t>(producer.size()), {}};
        check(consumer, producer);
        t.values.resize(consumer.size() * producer.size());
        std::vector<double const*> known(to_.placements.size(), nullptr);
        double* row = t.values.data();
        for (auto s : consumer) {
            auto& same = known[to_.at[s]];
            if (same) {
                std::copy_n(same, t.cols, row);
            } else {
                double const* price = price_.data() + to_.at[s] * from_.placements.size();
                for (std::size_t c = 0; c < t.cols; ++c) row[c] = times * price[from_.at[producer[c]]];
                same = row;
            }
            row += t.cols;
        }
        return t;
    }

    /// Takes out of `consumer` the strategies that no strategy in `producer` can reach, and the other way round; flags per strategy.
    /// True when any was. Throws as above.
    bool remove_unreachable(std::vector<char>& consumer, std::vector<char>& producer) const {
        std::vector<std::uint64_t> const sources = placements_of(from_, producer), targets = placements_of(to_, consumer);
        std::vector<std::uint64_t> reached(targets.size(), 0), used(words_, 0);
        for (std::size_t to = 0; to < to_.placements.size(); ++to) {
            if (!(targets[to / 64] >> (to % 64) & 1)) continue;
            std::uint64_t any = 0;
            for (std::size_t w = 0; w < words_; ++w) {
                auto const open = open_[to * words_ + w] & sources[w];
                used[w] |= open;
                any |= open;
            }
            if (any) reached[to / 64] |= std::uint64_t{1} << (to % 64);
        }
        bool const any = keep(to_, consumer, reached);
        return keep(from_, producer, used) || any;
    }

private:
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
    /// The placements of the strategies of one end.
    struct side {
        std::vector<std::int32_t> spec;                                 // of each strategy
        std::vector<std::size_t> at;                                    // in `placements`, of each strategy; nowhere if it has no price
        std::vector<std::pair<std::int32_t, std::size_t>> placements;  // spec and its place in the file's costs, each once
    };
    ap_file const& f_;
    std::uint32_t consumer_;
    std::size_t argument_, words_;
    side from_, to_;
    std::vector<double> price_;         // [to][from], of placements
    std::vector<std::uint64_t> open_;   // [to][word]: bits of the placements that reach it

    static side side_of(std::vector<std::vector<std::int32_t>> const& rows, std::size_t slot,
                        std::map<std::int32_t, std::size_t> const& where) {
        side s;
        std::map<std::int32_t, std::size_t> known;
        for (auto const& row : rows) {
            s.spec.push_back(row[slot]);
            auto const [it, fresh] = known.try_emplace(row[slot], nowhere);
            if (fresh)
                if (auto const in_file = where.find(row[slot]); in_file != where.end()) {
                    it->second = s.placements.size();
                    s.placements.push_back(*in_file);
                }
            s.at.push_back(it->second);
        }
        return s;
    }
    [[noreturn]] void fail(std::int32_t from, std::int32_t to) const {
        throw error(error_code::bad_field,
                    "nodes[" + std::to_string(consumer_) + "] '" + f_.nodes[consumer_].name + "', argument " + std::to_string(argument_),
                    "redist has no price from spec " + std::to_string(from) + " to " + std::to_string(to),
                    "add the spec to src or dst of its tensor");
    }
    /// All strategies listed have a price.
    void check(std::vector<std::uint32_t> const& consumer, std::vector<std::uint32_t> const& producer) const {
        for (auto s : consumer)
            if (to_.at[s] == nowhere) fail(from_.spec[producer[0]], to_.spec[s]);
        for (auto s : producer)
            if (from_.at[s] == nowhere) fail(from_.spec[s], to_.spec[consumer[0]]);
    }
    /// The placements of the strategies that are in, as bits.
    std::vector<std::uint64_t> placements_of(side const& s, std::vector<char> const& in) const {
        std::vector<std::uint64_t> bits((s.placements.size() + 63) / 64, 0);
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (!in[i]) continue;
            if (s.at[i] == nowhere) fail(from_.spec[&s == &from_ ? i : 0], to_.spec[&s == &from_ ? 0 : i]);
            bits[s.at[i] / 64] |= std::uint64_t{1} << (s.at[i] % 64);
        }
        return bits;
    }
    static bool keep(side const& s, std::vector<char>& in, std::vector<std::uint64_t> const& bits) {
        bool any = false;
        for (std::size_t i = 0; i < in.size(); ++i) {
            if (!in[i] || (bits[s.at[i] / 64] >> (s.at[i] % 64) & 1)) continue;
            in[i] = 0;
            any = true;
        }
        return any;
    }
};

}  // namespace cantle::mrf::detail
