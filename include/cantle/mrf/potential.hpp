// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a solver must know of the costs between two variables. A table of all label pairs is one way to hold them; an equality, a sum or a
// distance is another, and its min-plus product costs O(L) where the table's costs O(L^2). Solvers reach a potential through the free
// functions below alone, so that a potential of one's own is as good as cantle's.
//
// A potential is a function of a row label and a column label. On an edge (u, v) rows are labels of source(e, g), columns of target(e, g).
// Three const members are all that it needs:
//
//      std::size_t rows() const;   std::size_t cols() const;          numbers of labels, at least 1
//      double operator()(label r, label c) const;                     finite, or `forbidden`
//
// Each of the functions below uses the member of the same name where the type has one, and otherwise a loop over all pairs. In whole
// numbers (trws.hpp) a member must return exactly what the loop would return.
//
//      lowest(p)                         min over r, c of p(r, c)                            p.lowest()
//      min_plus_over_rows(p, in, out)    out[c]  = min over r of in[r] + p(r, c)             p.min_plus_over_rows(in, out)
//      min_plus_over_cols(p, in, out)    out[r]  = min over c of p(r, c) + in[c]             p.min_plus_over_cols(in, out)
//      add_row(p, r, to)                 to[c]  += p(r, c) for all c                         p.add_row(r, to)
//      add_col(p, c, to)                 to[r]  += p(r, c) for all r                         p.add_col(c, to)
//      work(p)                           elementary steps of one product, for reports        p.work()
//      magnitude(p)                      max of |p(r, c)| where not forbidden, else 0        p.magnitude()
//                                        (NaN or infinity where an entry is no cost)
//      quantised(p, unit)                a potential of whole numbers, nowhere above
//                                        p(r, c) / unit and forbidden where p is             p.quantised(unit)
//
// `in` and `out` are arrays of rows() or cols() doubles that do not overlap; no entry of `in` is NaN or -infinity, and one that is
// `forbidden` stays out of every minimum; nothing is allocated in a product.
// Complexity of the loops: O(rows * cols), quantised() makes a table. Models here: dense_potential, equality_potential, sum_potential,
// transposed<P>, and any_potential for graphs that mix kinds.
// Reference: P. Felzenszwalb, D. Huttenlocher, "Efficient belief propagation for early vision", IJCV 70 (2006) 41-54, for products of
// structured potentials in linear time.
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// Satisfied by `std::size_t rows() const` and `std::size_t cols() const`.
template <class P>
concept HasSides = requires(P const& p) {
    { p.rows() } -> std::convertible_to<std::size_t>;
    { p.cols() } -> std::convertible_to<std::size_t>;
};
/// Satisfied by `double operator()(label r, label c) const`.
template <class P>
concept PricesLabelPairs = requires(P const& p, label l) {
    { p(l, l) } -> std::convertible_to<double>;
};
template <class P>
concept Potential = HasSides<P> && PricesLabelPairs<P>;

/// Called at a public door: one clear sentence per missing part.
template <class P>
constexpr void require_potential() {
    static_assert(HasSides<P>, "a potential needs `std::size_t rows() const` and `std::size_t cols() const`");
    static_assert(PricesLabelPairs<P>, "a potential needs `double operator()(cantle::mrf::label r, cantle::mrf::label c) const`");
}

template <Potential P>
double lowest(P const& p) {
    if constexpr (requires { { p.lowest() } -> std::convertible_to<double>; }) {
        return p.lowest();
    } else {
        double low = forbidden;
        for (label r = 0; r < p.rows(); ++r)
            for (label c = 0; c < p.cols(); ++c) low = std::min(low, static_cast<double>(p(r, c)));
        return low;
    }
}

template <Potential P>
void min_plus_over_rows(P const& p, double const* in, double* out) {
    if constexpr (requires { p.min_plus_over_rows(in, out); }) {
        p.min_plus_over_rows(in, out);
    } else {
        std::fill_n(out, static_cast<std::size_t>(p.cols()), forbidden);
        for (label r = 0; r < p.rows(); ++r)
            for (label c = 0; c < p.cols(); ++c) out[c] = std::min(out[c], in[r] + p(r, c));
    }
}

template <Potential P>
void min_plus_over_cols(P const& p, double const* in, double* out) {
    if constexpr (requires { p.min_plus_over_cols(in, out); }) {
        p.min_plus_over_cols(in, out);
    } else {
        for (label r = 0; r < p.rows(); ++r) {
            double low = forbidden;
            for (label c = 0; c < p.cols(); ++c) low = std::min(low, p(r, c) + in[c]);
            out[r] = low;
        }
    }
}

template <Potential P>
void add_row(P const& p, label r, double* to) {
    if constexpr (requires { p.add_row(r, to); }) p.add_row(r, to);
    else
        for (label c = 0; c < p.cols(); ++c) to[c] += p(r, c);
}

template <Potential P>
void add_col(P const& p, label c, double* to) {
    if constexpr (requires { p.add_col(c, to); }) p.add_col(c, to);
    else
        for (label r = 0; r < p.rows(); ++r) to[r] += p(r, c);
}

template <Potential P>
std::size_t work(P const& p) {
    if constexpr (requires { { p.work() } -> std::convertible_to<std::size_t>; }) return p.work();
    else return static_cast<std::size_t>(p.rows()) * static_cast<std::size_t>(p.cols());
}

template <Potential P>
double magnitude(P const& p) {
    if constexpr (requires { { p.magnitude() } -> std::convertible_to<double>; }) {
        return p.magnitude();
    } else {
        double most = 0;
        for (label r = 0; r < p.rows(); ++r)
            for (label c = 0; c < p.cols(); ++c)
                if (double const x = p(r, c); x != forbidden && !(std::abs(x) <= most)) {
                    most = std::abs(x);
                    if (!(most < forbidden)) return most;  // NaN or -infinity
                }
        return most;
    }
}

/// All entries, row by row. O(rows * cols).
template <Potential P>
cost_table materialised(P const& p) {
    cost_table t{static_cast<std::uint32_t>(p.rows()), static_cast<std::uint32_t>(p.cols()), {}};
    t.values.reserve(std::size_t{t.rows} * t.cols);
    for (label r = 0; r < t.rows; ++r)
        for (label c = 0; c < t.cols; ++c) t.values.push_back(p(r, c));
    return t;
}

/// A table, read as it stands or transposed. Its products are the packed loops of min_plus.hpp.
class dense_potential {
public:
    /// Views `t`, which must stay. `lowest`: its least entry where the caller knows it, looked for on demand otherwise.
    explicit dense_potential(cost_table const& t, table_use use = table_use::straight,
                             double lowest = std::numeric_limits<double>::quiet_NaN())
        : table_(&t), lowest_(lowest), straight_(use == table_use::straight) {}
    /// Takes `t` over.
    explicit dense_potential(cost_table&& t, table_use use = table_use::straight)
        : dense_potential(std::make_shared<cost_table const>(std::move(t)), use) {}
    /// Shares `t`.
    explicit dense_potential(std::shared_ptr<cost_table const> t, table_use use = table_use::straight)
        : dense_potential(*t, use) {
        owner_ = std::move(t);
    }

    std::size_t rows() const { return straight_ ? table_->rows : table_->cols; }
    std::size_t cols() const { return straight_ ? table_->cols : table_->rows; }
    double operator()(label r, label c) const { return straight_ ? (*table_)(r, c) : (*table_)(c, r); }
    cost_table const& table() const { return *table_; }
    table_use use() const { return straight_ ? table_use::straight : table_use::transposed; }

    double lowest() const { return lowest_ == lowest_ ? lowest_ : detail::min_of(table_->values.data(), table_->values.size()); }
    void min_plus_over_rows(double const* in, double* out) const { product(straight_, in, out); }
    void min_plus_over_cols(double const* in, double* out) const { product(!straight_, in, out); }
    void add_row(label r, double* to) const { straight_ ? add_along(r, to) : add_across(r, to); }
    void add_col(label c, double* to) const { straight_ ? add_across(c, to) : add_along(c, to); }

private:
    cost_table const* table_;
    std::shared_ptr<cost_table const> owner_;  // empty for a view
    double lowest_;                            // NaN: not known
    bool straight_;

    void product(bool over_table_rows, double const* in, double* out) const {
        double const* values = table_->values.data();
        if (over_table_rows) detail::min_plus_over_rows(in, values, table_->rows, table_->cols, out);
        else detail::min_plus_over_cols(in, values, table_->rows, table_->cols, out);
    }
    void add_along(std::size_t r, double* to) const {
        double const* p = table_->values.data() + r * table_->cols;
        for (std::size_t c = 0; c < table_->cols; ++c) to[c] += p[c];
    }
    void add_across(std::size_t c, double* to) const {
        double const* p = table_->values.data() + c;
        for (std::size_t r = 0; r < table_->rows; ++r) to[r] += p[r * table_->cols];
    }
};

/// Both variables have the same label: 0 on the diagonal, forbidden elsewhere. All O(n).
class equality_potential {
public:
    /// n >= 1 labels on both sides.
    explicit equality_potential(std::size_t n) : n_(n) {}

    std::size_t rows() const { return n_; }
    std::size_t cols() const { return n_; }
    double operator()(label r, label c) const { return r == c ? 0.0 : forbidden; }

    double lowest() const { return 0; }
    void min_plus_over_rows(double const* in, double* out) const { std::copy_n(in, n_, out); }
    void min_plus_over_cols(double const* in, double* out) const { std::copy_n(in, n_, out); }
    void add_row(label r, double* to) const {
        std::fill_n(to, r, forbidden);
        std::fill_n(to + r + 1, n_ - r - 1, forbidden);
    }
    void add_col(label c, double* to) const { add_row(c, to); }
    std::size_t work() const { return n_; }
    double magnitude() const { return 0; }
    equality_potential quantised(double) const { return *this; }

private:
    std::size_t n_;
};

/// f(row) + g(col): couples nothing, and costs nothing but O(rows + cols). Entries finite or forbidden. Copies share f and g.
class sum_potential {
public:
    sum_potential(std::vector<double> f, std::vector<double> g)
        : parts_(std::make_shared<parts const>(parts{std::move(f), std::move(g)})) {}

    std::size_t rows() const { return parts_->f.size(); }
    std::size_t cols() const { return parts_->g.size(); }
    double operator()(label r, label c) const { return parts_->f[r] + parts_->g[c]; }

    double lowest() const { return least(parts_->f) + least(parts_->g); }
    void min_plus_over_rows(double const* in, double* out) const { product(parts_->f, parts_->g, in, out); }
    void min_plus_over_cols(double const* in, double* out) const { product(parts_->g, parts_->f, in, out); }
    void add_row(label r, double* to) const { add(parts_->f[r], parts_->g, to); }
    void add_col(label c, double* to) const { add(parts_->g[c], parts_->f, to); }
    std::size_t work() const { return rows() + cols(); }
    double magnitude() const {
        double const low = lowest(), high = most(parts_->f) + most(parts_->g);
        return low == forbidden ? 0.0 : std::max(std::abs(low), std::abs(high));
    }
    sum_potential quantised(double unit) const { return {down(parts_->f, unit), down(parts_->g, unit)}; }

private:
    struct parts {
        std::vector<double> f, g;
    };
    std::shared_ptr<parts const> parts_;

    static double least(std::vector<double> const& x) { return detail::min_of(x.data(), x.size()); }
    /// The largest finite entry; -infinity when there is none, but then magnitude() does not ask.
    static double most(std::vector<double> const& x) {
        double m = -forbidden;
        for (double c : x)
            if (c != forbidden) m = std::max(m, c);
        return m;
    }
    static void product(std::vector<double> const& from, std::vector<double> const& to, double const* in, double* out) {
        double low = forbidden;
        for (std::size_t i = 0; i < from.size(); ++i) low = std::min(low, in[i] + from[i]);
        for (std::size_t i = 0; i < to.size(); ++i) out[i] = low + to[i];
    }
    static void add(double fixed, std::vector<double> const& x, double* to) {
        for (std::size_t i = 0; i < x.size(); ++i) to[i] += fixed + x[i];
    }
    static std::vector<double> down(std::vector<double> x, double unit) {
        for (double& c : x) c = std::floor(c / unit);
        return x;
    }
};

/// A potential seen from its other side: rows are the columns of P.
template <Potential P>
class transposed {
public:
    explicit transposed(P p) : p_(std::move(p)) {}

    std::size_t rows() const { return p_.cols(); }
    std::size_t cols() const { return p_.rows(); }
    double operator()(label r, label c) const { return p_(c, r); }
    P const& base() const { return p_; }

    double lowest() const { return mrf::lowest(p_); }
    void min_plus_over_rows(double const* in, double* out) const { mrf::min_plus_over_cols(p_, in, out); }
    void min_plus_over_cols(double const* in, double* out) const { mrf::min_plus_over_rows(p_, in, out); }
    void add_row(label r, double* to) const { mrf::add_col(p_, r, to); }
    void add_col(label c, double* to) const { mrf::add_row(p_, c, to); }
    std::size_t work() const { return mrf::work(p_); }
    double magnitude() const { return mrf::magnitude(p_); }
    auto quantised(double unit) const;

private:
    P p_;
};

/// The member, or a table of floor(p(r, c) / unit). `unit`: a power of two, so that the division is exact.
template <Potential P>
auto quantised(P const& p, double unit) {
    if constexpr (requires { { p.quantised(unit) } -> Potential; }) {
        return p.quantised(unit);
    } else {
        auto t = materialised(p);
        for (double& c : t.values) c = std::floor(c / unit);
        return dense_potential(std::move(t));
    }
}

template <Potential P>
auto transposed<P>::quantised(double unit) const {
    auto q = mrf::quantised(p_, unit);
    return transposed<decltype(q)>(std::move(q));
}

/// Any potential, for graphs that mix kinds. Copies share it; one virtual call per function, none per label.
class any_potential {
public:
    template <Potential P>
        requires(!std::same_as<P, any_potential>)
    any_potential(P p) : held_(std::make_shared<model<P> const>(std::move(p))) {}  // NOLINT: a potential converts to any of them

    std::size_t rows() const { return held_->rows(); }
    std::size_t cols() const { return held_->cols(); }
    double operator()(label r, label c) const { return held_->at(r, c); }

    double lowest() const { return held_->lowest(); }
    void min_plus_over_rows(double const* in, double* out) const { held_->over_rows(in, out); }
    void min_plus_over_cols(double const* in, double* out) const { held_->over_cols(in, out); }
    void add_row(label r, double* to) const { held_->add_row(r, to); }
    void add_col(label c, double* to) const { held_->add_col(c, to); }
    std::size_t work() const { return held_->work(); }
    double magnitude() const { return held_->magnitude(); }
    any_potential quantised(double unit) const { return held_->quantised(unit); }

private:
    struct interface {
        virtual ~interface() = default;
        virtual std::size_t rows() const = 0;
        virtual std::size_t cols() const = 0;
        virtual double at(label r, label c) const = 0;
        virtual double lowest() const = 0;
        virtual void over_rows(double const* in, double* out) const = 0;
        virtual void over_cols(double const* in, double* out) const = 0;
        virtual void add_row(label r, double* to) const = 0;
        virtual void add_col(label c, double* to) const = 0;
        virtual std::size_t work() const = 0;
        virtual double magnitude() const = 0;
        virtual any_potential quantised(double unit) const = 0;
    };
    template <class P>
    struct model;
    std::shared_ptr<interface const> held_;
};

template <class P>
struct any_potential::model final : interface {
    explicit model(P from) : p(std::move(from)) {}
    P p;
    std::size_t rows() const override { return p.rows(); }
    std::size_t cols() const override { return p.cols(); }
    double at(label r, label c) const override { return p(r, c); }
    double lowest() const override { return mrf::lowest(p); }
    void over_rows(double const* in, double* out) const override { mrf::min_plus_over_rows(p, in, out); }
    void over_cols(double const* in, double* out) const override { mrf::min_plus_over_cols(p, in, out); }
    void add_row(label r, double* to) const override { mrf::add_row(p, r, to); }
    void add_col(label c, double* to) const override { mrf::add_col(p, c, to); }
    std::size_t work() const override { return mrf::work(p); }
    double magnitude() const override { return mrf::magnitude(p); }
    any_potential quantised(double unit) const override { return any_potential(mrf::quantised(p, unit)); }
};

}  // namespace cantle::mrf
