// SPDX-License-Identifier: BSL-1.0
#pragma once
// Places the boxes of a directed acyclic graph in rows, top to bottom, so that edges run downwards and never behind a box.
//
// The method of Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system structures", IEEE Trans. SMC 1981) in
// its simplest form: rows by longest path, invisible boxes where an edge passes a row, order within rows by barycentres, then positions
// as close to their neighbours' as the order and the gaps allow (pool adjacent violators, exact for the squared distance of one row).
// Deterministic. O(sweeps * (boxes + edges) log boxes) apart from counting crossings, which is quadratic in the edges between two rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace cantle {

/// A box: size given, top left corner found.
struct drawn_box {
    double width = 0, height = 0;
    double x = 0, y = 0;
    std::size_t row = 0;
};

/// An edge with the vertical lines on which it passes rows between its ends: (x, top, bottom), from top to bottom.
struct drawn_edge {
    std::size_t from = 0, to = 0;
    struct passage { double x = 0, top = 0, bottom = 0; };
    std::vector<passage> passages;
};

struct layered_drawing {
    std::vector<drawn_box> boxes;
    std::vector<drawn_edge> edges;
    std::vector<std::pair<double, double>> rows;  ///< top and bottom
    double width = 0, height = 0;
};

namespace detail {

class layered_placer {
public:
    layered_placer(layered_drawing& d, double column_gap, double row_gap) : d_(d), column_gap_(column_gap), row_gap_(row_gap) {}
    void run() {
        find_rows();
        split_edges();
        order_rows();
        place();
    }

private:
    struct item {                       // a box or a passage of an edge
        double width = 0, center = 0;
        std::size_t row = 0;
        std::vector<std::size_t> up, down;
    };
    layered_drawing& d_;
    double column_gap_, row_gap_;
    std::vector<item> items_;           // boxes first
    std::vector<std::vector<std::size_t>> rows_;
    std::vector<std::size_t> first_passage_;  // [edge]

    /// Longest path from the top; then boxes without predecessors sink towards their users. Precondition: acyclic.
    void find_rows() {
        std::size_t const n = d_.boxes.size();
        std::vector<std::size_t> waiting(n, 0);
        std::vector<std::vector<std::size_t>> down(n), up(n);
        for (auto const& e : d_.edges) {
            down[e.from].push_back(e.to);
            up[e.to].push_back(e.from);
            ++waiting[e.to];
        }
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < n; ++i)
            if (waiting[i] == 0) order.push_back(i);
        for (std::size_t k = 0; k < order.size(); ++k)
            for (auto t : down[order[k]]) {
                d_.boxes[t].row = std::max(d_.boxes[t].row, d_.boxes[order[k]].row + 1);
                if (--waiting[t] == 0) order.push_back(t);
            }
        for (std::size_t k = order.size(); k-- > 0;) {
            auto const v = order[k];
            if (!up[v].empty() || down[v].empty()) continue;
            std::size_t least = std::numeric_limits<std::size_t>::max();
            for (auto t : down[v]) least = std::min(least, d_.boxes[t].row);
            d_.boxes[v].row = least - 1;
        }
    }
    void split_edges() {
        std::size_t rows = 0;
        for (auto const& b : d_.boxes) {
            items_.push_back({b.width, 0, b.row, {}, {}});
            rows = std::max(rows, b.row + 1);
        }
        for (auto const& e : d_.edges) {
            first_passage_.push_back(items_.size());
            std::size_t last = e.from;
            for (std::size_t r = d_.boxes[e.from].row + 1; r < d_.boxes[e.to].row; ++r) {
                items_.push_back({8, 0, r, {last}, {}});
                items_[last].down.push_back(items_.size() - 1);
                last = items_.size() - 1;
            }
            items_[last].down.push_back(e.to);
            items_[e.to].up.push_back(last);
        }
        rows_.resize(rows);
        for (std::size_t i = 0; i < items_.size(); ++i) rows_[items_[i].row].push_back(i);
    }

    std::size_t crossings() const {
        std::vector<std::size_t> place(items_.size());
        for (auto const& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i) place[row[i]] = i;
        std::size_t count = 0;
        for (auto const& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i)
                for (std::size_t j = i + 1; j < row.size(); ++j)
                    for (auto a : items_[row[i]].down)
                        for (auto b : items_[row[j]].down) count += place[a] > place[b];
        return count;
    }
    void order_rows() {
        auto best = rows_;
        auto fewest = crossings();
        for (int sweep = 0; sweep < 24 && fewest > 0; ++sweep) {
            bool const downwards = sweep % 2 == 0;
            std::vector<double> place(items_.size());
            for (auto const& row : rows_)
                for (std::size_t i = 0; i < row.size(); ++i) place[row[i]] = static_cast<double>(i);
            for (std::size_t k = 0; k < rows_.size(); ++k) {
                auto& row = rows_[downwards ? k : rows_.size() - 1 - k];
                std::vector<double> key(items_.size());
                for (auto i : row) {
                    auto const& near = downwards ? items_[i].up : items_[i].down;
                    key[i] = place[i];
                    if (near.empty()) continue;
                    double sum = 0;
                    for (auto j : near) sum += place[j];
                    key[i] = sum / static_cast<double>(near.size());
                }
                std::stable_sort(row.begin(), row.end(), [&](auto a, auto b) { return key[a] < key[b]; });
                for (std::size_t i = 0; i < row.size(); ++i) place[row[i]] = static_cast<double>(i);
            }
            if (auto const now = crossings(); now < fewest) {
                fewest = now;
                best = rows_;
            }
        }
        rows_ = std::move(best);
    }

    /// Centres of one row as close to `wanted` as its order and gaps allow.
    void settle(std::vector<std::size_t> const& row, std::vector<double> const& wanted, std::vector<double> const& weight) {
        struct pool { double sum = 0, weight = 0; std::size_t count = 0; double mean() const { return sum / weight; } };
        std::vector<pool> pools;
        std::vector<double> offset(row.size(), 0.0);
        for (std::size_t i = 1; i < row.size(); ++i)
            offset[i] = offset[i - 1] + (items_[row[i - 1]].width + items_[row[i]].width) / 2 + column_gap_;
        for (std::size_t i = 0; i < row.size(); ++i) {
            pools.push_back({(wanted[i] - offset[i]) * weight[i], weight[i], 1});
            while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
                auto const last = pools.back();
                pools.pop_back();
                pools.back().sum += last.sum;
                pools.back().weight += last.weight;
                pools.back().count += last.count;
            }
        }
        std::size_t i = 0;
        for (auto const& p : pools)
            for (std::size_t k = 0; k < p.count; ++k, ++i) items_[row[i]].center = p.mean() + offset[i];
    }
    /// Runs of passages of one edge move onto one vertical line where their rows leave room.
    void straighten() {
        std::vector<std::size_t> position(items_.size());
        for (auto const& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i) position[row[i]] = i;
        auto const room = [&](std::size_t i) {
            auto const& row = rows_[items_[i].row];
            auto const at = position[i];
            double const reach = items_[i].width / 2 + column_gap_ / 2;
            double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
            if (at > 0) least = items_[row[at - 1]].center + items_[row[at - 1]].width / 2 + reach;
            if (at + 1 < row.size()) most = items_[row[at + 1]].center - items_[row[at + 1]].width / 2 - reach;
            return std::pair{least, most};
        };
        for (std::size_t e = 0; e < d_.edges.size(); ++e) {
            std::size_t const first = first_passage_[e], last = e + 1 < d_.edges.size() ? first_passage_[e + 1] : items_.size();
            for (std::size_t i = first; i < last;) {
                auto [least, most] = room(i);
                double sum = 0;
                std::size_t j = i;
                for (; j < last; ++j) {
                    auto const r = room(j);
                    if (std::max(least, r.first) > std::min(most, r.second)) break;
                    least = std::max(least, r.first);
                    most = std::min(most, r.second);
                    sum += items_[j].center;
                }
                if (j == i) {  // no room at all: it stays
                    ++i;
                    continue;
                }
                double const center = std::min(most, std::max(least, sum / static_cast<double>(j - i)));
                for (; i < j; ++i) items_[i].center = center;
            }
        }
    }
    void place() {
        for (auto const& row : rows_) settle(row, std::vector<double>(row.size(), 0.0), std::vector<double>(row.size(), 1.0));
        // Long edges pull hardest, so that they run straight (the weights 1, 2, 8 of Gansner et al., IEEE Trans. Softw. Eng. 1993).
        auto const pull = [this](std::size_t a, std::size_t b) {
            bool const first = a >= d_.boxes.size(), second = b >= d_.boxes.size();
            return first && second ? 8.0 : first || second ? 2.0 : 1.0;
        };
        for (int sweep = 0; sweep < 1000; ++sweep)
            for (std::size_t k = 0; k < rows_.size(); ++k) {
                auto const& row = rows_[sweep % 2 == 0 ? k : rows_.size() - 1 - k];
                std::vector<double> wanted, weight;
                for (auto i : row) {
                    double sum = 0.01 * items_[i].center, total = 0.01;
                    for (auto const* near : {&items_[i].up, &items_[i].down})
                        for (auto j : *near) {
                            sum += pull(i, j) * items_[j].center;
                            total += pull(i, j);
                        }
                    wanted.push_back(sum / total);
                    weight.push_back(total);
                }
                settle(row, wanted, weight);
            }
        straighten();
        double left = std::numeric_limits<double>::max(), right = std::numeric_limits<double>::lowest();
        for (auto const& it : items_) {
            left = std::min(left, it.center - it.width / 2);
            right = std::max(right, it.center + it.width / 2);
        }
        double y = 0;
        for (auto const& row : rows_) {
            double height = 0;
            for (auto i : row)
                if (i < d_.boxes.size()) height = std::max(height, d_.boxes[i].height);
            d_.rows.emplace_back(y, y + height);
            for (auto i : row)
                if (i < d_.boxes.size()) {
                    d_.boxes[i].x = items_[i].center - items_[i].width / 2 - left;
                    d_.boxes[i].y = y + (height - d_.boxes[i].height) / 2;
                }
            y += height + row_gap_;
        }
        d_.width = items_.empty() ? 0 : right - left;
        d_.height = rows_.empty() ? 0 : y - row_gap_;
        for (std::size_t e = 0; e < d_.edges.size(); ++e) {
            auto& edge = d_.edges[e];
            std::size_t const count = d_.boxes[edge.to].row - d_.boxes[edge.from].row - 1;
            for (std::size_t k = 0; k < count; ++k) {
                auto const& it = items_[first_passage_[e] + k];
                edge.passages.push_back({it.center - left, d_.rows[it.row].first, d_.rows[it.row].second});
            }
        }
    }
};

}  // namespace detail

/// Find places for all boxes; rows and columns keep at least the given gaps. Precondition: the edges close no cycle.
inline void place_in_rows(layered_drawing& d, double column_gap, double row_gap) { detail::layered_placer(d, column_gap, row_gap).run(); }

}  // namespace cantle
