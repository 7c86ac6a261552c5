// SPDX-License-Identifier: BSL-1.0
#pragma once
// What reductions make of tables: sums of two, products along a chain, tables with fewer labels. A transformer repeats its layers, and each
// result is made once: equal questions about the same tables get the same shared table. Products of large tables are split by rows over
// threads; a row depends on no other.
// Complexity: rows x inner x cols for a product, entries for all else. Memory: what is remembered keeps no table alive.
#include <cantle/base/parallel_for.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::mrf::detail {

using shared_table = std::shared_ptr<cost_table const>;

/// A table seen from one of its two variables.
struct table_view {
    double const* values;
    std::size_t self_step, other_step;
    double operator()(std::size_t self, std::size_t other) const { return values[self * self_step + other * other_step]; }
};

/// A table and whether it is read with rows and columns exchanged.
struct turned_table {
    shared_table table;
    bool turned;
    std::uint32_t rows() const { return turned ? table->cols : table->rows; }
    std::uint32_t cols() const { return turned ? table->rows : table->cols; }
};

inline bool has_forbidden(cost_table const& t) {
    auto const n = t.values.size();
    for (std::size_t i = 0; i < n; i += 256) {  // by blocks: the inner loop has no exit and becomes vectors
        bool any = false;
        for (std::size_t j = i; j < std::min(n, i + 256); ++j) any |= t.values[j] == forbidden;
        if (any) return true;
    }
    return false;
}

/// out[c][r] = in[r][c]; by blocks, so that neither side leaves the cache between two uses of a line.
inline void transpose(double const* in, std::size_t rows, std::size_t cols, double* out) {
    constexpr std::size_t block = 16;
    for (std::size_t r0 = 0; r0 < rows; r0 += block)
        for (std::size_t c0 = 0; c0 < cols; c0 += block)
            for (std::size_t c = c0; c < std::min(cols, c0 + block); ++c)
                for (std::size_t r = r0; r < std::min(rows, r0 + block); ++r) out[c * rows + r] = in[r * cols + c];
}

/// The rows and columns listed, in that order; null for all.
inline shared_table pick(cost_table const& t, std::vector<label> const* rows, std::vector<label> const* cols) {
    cost_table s;
    s.rows = rows ? static_cast<std::uint32_t>(rows->size()) : t.rows;
    s.cols = cols ? static_cast<std::uint32_t>(cols->size()) : t.cols;
    s.values.resize(std::size_t{s.rows} * s.cols);
    for (std::uint32_t r = 0; r < s.rows; ++r) {
        double const* from = t.values.data() + std::size_t{rows ? (*rows)[r] : r} * t.cols;
        double* to = s.values.data() + std::size_t{r} * s.cols;
        if (!cols) std::copy_n(from, s.cols, to);
        else
            for (std::uint32_t c = 0; c < s.cols; ++c) to[c] = from[(*cols)[c]];
    }
    return std::make_shared<cost_table const>(std::move(s));
}

class table_algebra {
public:
    explicit table_algebra(unsigned threads) : threads_(threads) {}

    /// a + b, where b is read as rows and columns of a.
    shared_table sum(shared_table const& a, turned_table const& b) {
        return remembered({a, b.table, b.turned, false, {}}, [&] {
            cost_table s = *a;
            if (!b.turned) {
                min_plus().add(s.values.data(), b.table->values.data(), s.values.size(), s.values.data());
            } else {
                std::vector<double> straight(s.values.size());
                transpose(b.table->values.data(), b.table->rows, b.table->cols, straight.data());
                min_plus().add(s.values.data(), straight.data(), s.values.size(), s.values.data());
            }
            return s;
        });
    }

    /// min over j of a(i, j) + cost(j) + b(j, k), i and k being rows of the two outer variables: a is i x j, b is j x k, both as read.
    shared_table product(turned_table const& a, std::vector<double> const& cost, turned_table const& b) {
        return remembered({a.table, b.table, a.turned, b.turned, cost}, [&] {
            std::size_t const rows = a.rows(), inner = cost.size(), cols = b.cols();
            cost_table out{a.rows(), b.cols(), std::vector<double>(rows * cols)};
            std::vector<double> left(rows * inner), flipped;
            if (a.turned) transpose(a.table->values.data(), inner, rows, left.data());
            for (std::size_t i = 0; i < rows; ++i) {
                double* to = left.data() + i * inner;
                min_plus().add(a.turned ? to : a.table->values.data() + i * inner, cost.data(), inner, to);
            }
            double const* right = b.table->values.data();
            if (b.turned) {
                flipped.resize(inner * cols);
                transpose(right, cols, inner, flipped.data());
                right = flipped.data();
            }
            double const work = static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(cols);
            std::size_t const part = work < worth_threads ? rows : rows_at_once;
            parallel_for((rows + part - 1) / part, threads_, [&](std::size_t i) {
                std::size_t const from = i * part, count = std::min(part, rows - from);
                min_plus().product(left.data() + from * inner, right, count, inner, cols, out.values.data() + from * cols);
            });
            return out;
        });
    }

private:
    static constexpr double worth_threads = 8388608.0;  // label triples, 2^23: a quarter of a millisecond
    static constexpr std::size_t rows_at_once = 16;
    /// A question: the tables it is about, by identity (an expired one keeps its identity, so that no other takes its place).
    struct question {
        std::weak_ptr<cost_table const> a, b;
        bool turned_a, turned_b;
        std::vector<double> cost;
        bool operator<(question const& o) const {
            std::owner_less<> const before;
            if (before(a, o.a) || before(o.a, a)) return before(a, o.a);
            if (before(b, o.b) || before(o.b, b)) return before(b, o.b);
            return std::tie(turned_a, turned_b, cost) < std::tie(o.turned_a, o.turned_b, o.cost);
        }
    };
    unsigned threads_;
    std::map<question, std::weak_ptr<cost_table const>> known_;  // looked up only, never iterated

    template <class Make>
    shared_table remembered(question q, Make const& make) {
        auto& answer = known_[std::move(q)];
        auto found = answer.lock();
        if (!found) answer = found = std::make_shared<cost_table const>(make());
        return found;
    }
};

}  // namespace cantle::mrf::detail
