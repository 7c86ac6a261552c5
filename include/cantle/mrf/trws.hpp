// SPDX-License-Identifier: BSL-1.0
#pragma once
// Problem: a lower bound of min E and good labellings, for whole-number costs (quantise.hpp).
// Idea: sequential tree-reweighted message passing [1]. Variables are visited in their given order (topological for a planning problem),
// forward and back; s at the end of n_f edges to later and n_b to earlier variables splits its reparametrised costs evenly over max(n_f,
// n_b) monotonic chains (gamma_s = 1 / max(n_f, n_b), sec. 4 of [1]). In the paper's symbols, for an edge (s, t) and a pass that goes
// from s to t:
//      thetahat_s(j) = theta_s(j) + sum_u M_us(j)
//      M_st(k)      := min_j { w_s(j) - M_ts(j) + theta_st(j, k) } - delta_st,   w_s = floor(gamma_s (thetahat_s - min thetahat_s))
// with delta_st such that min_k M_st(k) = 0.
//
// Invariant: the bound is rigorous. Any messages reparametrise E exactly: E(x) = sum_s theta'_s(x_s) + sum_st theta'_st(x_s, x_t) with
// theta'_s = thetahat_s and theta'_st(j, k) = theta_st(j, k) - M_st(k) - M_ts(j). All values are whole numbers, so this holds in doubles,
// not only on paper. After a pass, each edge (s, t), s visited first, has theta'_st(j, k) + w_s(j) >= delta_st by the definition of M_st,
// and neither M_ts nor w_s has changed since. With n_s outgoing edges of s in that pass
//      E(x) >= sum_s r_s + sum_st delta_st,   r_s = min_j { thetahat_s(j) - n_s w_s(j) }
// whatever the whole numbers w_s are: rounding in gamma can weaken the bound, never break it. It needs no O(L^2) work of its own.
// No value may leave the whole numbers that doubles hold: costs are normalised to be >= 0, so that partial sums do not exceed the totals,
// and a pass that meets a total above 2^51 reports failure; the bounds of earlier passes stand. (On infeasible problems that no local check
// unmasks the dual may be unbounded; a bound above the sum of the largest costs then proves infeasibility, see core_solver.hpp.)
//
// Forbidden pairs: an infinite theta_st never meets another infinity, because messages are finite when every label has an allowed partner
// across every edge. That is the precondition (reduction establishes it).
//
// Reduced-cost fixing: while the backward pass is at t, edges above t are as in a finished backward pass, edges below as in a finished
// forward pass, and a crossing edge (s, u), s < t < u, has theta'_su + w^b_u >= delta^b_su and at s the share
// w^f_s + M_us(new) - M_us(old) >= c_su. So
//      E(x | x_t = k) >= thetahat_t(k) + sum_{u>t} r^b_u + sum_{s<t} r^f_s + sum_{u<=t} delta^f_su + sum_{u>t} (delta^b_su + c_su)
// where c_su counts for crossing edges only, and a label for which that reaches the best known energy is in no better labelling.
//
// Complexity: a pass is one multiplication-free min-plus product per edge, O(sum of table entries); memory is the messages, tables are
// shared. No allocation in a pass. Limits: weak tree agreement is where the bound stops, which need not be the optimum.
// [1] V. Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", IEEE TPAMI 28 (2006) 1568-1583.
#include <cantle/base/assert.hpp>
#include <cantle/base/error.hpp>
#include <cantle/mrf/factor_graph.hpp>
#include <cantle/mrf/min_plus.hpp>
#include <cantle/mrf/pairwise_problem.hpp>
#include <cantle/mrf/potential.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// Names an edge: its place along edges(g), which is the value of a factor graph's edge_id.
struct edge_place {
    std::size_t value;
    edge_place(std::size_t place) : value(place) {}       // NOLINT: both convert
    edge_place(edge_id e) : value(e.value) {}             // NOLINT
};

/// Message passing over potentials of type P. Variables are named by index, as everywhere behind property maps.
template <Potential P>
class basic_trws {
public:
    /// Precondition: costs are whole numbers as of quantise, and every label has an allowed partner across every edge. Copies label costs
    /// and potentials; what a dense_potential views must stay. Vertices are visited in the order of their index.
    template <PairwiseProblem G>
    explicit basic_trws(G const& g) : n_(static_cast<std::uint32_t>(g.variable_count())), at_(n_ + 1, 0) {
        for (std::uint32_t v = 0; v < n_; ++v) at_[v + 1] = at_[v] + g.label_count(variable_id(v));
        unary_.resize(at_[n_]);
        for (std::uint32_t v = 0; v < n_; ++v) {
            auto const costs = g.costs(variable_id(v));
            std::copy(costs.begin(), costs.end(), unary_.begin() + static_cast<std::ptrdiff_t>(at_[v]));
            widest_ = std::max<std::size_t>(widest_, costs.size());
            unary_constant_ += shift_to_zero({unary_.data() + at_[v], costs.size()});
        }
        constant_ = unary_constant_;
        build_edges(g);
        share_.resize(at_[n_]);
        hat_.resize(widest_);
        split_.resize(widest_);
        slack_.resize(widest_);
        before_.resize(widest_);
        conditioned_.resize(widest_);
        labels_.assign(n_, 0);
        rest_.resize(n_);
        delta_.resize(edges_.size());
        crossing_.resize(edges_.size());
    }
    /// A graph with property maps (pairwise_problem.hpp).
    template <class G, class Unary, class Potentials, class Index>
    basic_trws(G const& g, Unary const& unary, Potentials const& potential, Index const& index)
        : basic_trws(pairwise_problem(g, unary, potential, index)) {}

    /// One forward pass. False when a total left the exact range (the object is of no more use then, except for bound()).
    bool forward() { return pass<true>(nullptr, 0); }
    /// One backward pass; between passes the direction alternates.
    bool backward() { return pass<false>(nullptr, 0); }
    /// A backward pass right after forward() that also sets in `out` (one flag per label, label_total() of them, variables one after
    /// another) the flag of every label that no labelling with an energy below `best` contains. Returns false like backward(); flags set
    /// by then are right.
    bool backward_and_fix(double best, std::span<char> out) { return pass<false>(out.data(), best); }

    /// The largest bound of any pass, a whole number; -infinity before the first.
    double bound() const { return bound_; }
    /// The bound of the last pass alone.
    double last_bound() const { return last_bound_; }
    /// The labelling decoded in the last pass, by index: each variable in turn minimises its costs given decoded neighbours exactly and the
    /// messages of the others. May contain forbidden pairs.
    std::span<label const> labels() const { return labels_; }
    /// Place of the first label of v in vectors over all labels.
    std::size_t offset(variable_id v) const { return at_[v.value]; }
    std::size_t label_total() const { return at_[n_]; }
    /// Table entries visited in one pass.
    std::size_t work() const { return work_; }

    /// What was taken from label costs at the start: E = unary_constant() + sum of reparametrised costs and tables.
    double unary_constant() const { return unary_constant_; }
    /// thetahat_v: the costs of v in the present reparametrisation, into `out`.
    void reparametrised(variable_id v, std::span<double> out) const { gather<true>(v.value, out.data(), nullptr); }
    /// Message of an edge into its end of higher index, then of lower index; what to subtract from the potential.
    std::span<double const> into_later(edge_place e) const { return message(at_place(e).up, at_place(e).hi); }
    std::span<double const> into_earlier(edge_place e) const { return message(at_place(e).down, at_place(e).lo); }

    /// Warm start: sets the messages of an edge, one value per label of the end that each goes into. Any finite whole numbers are right,
    /// for the bound holds whatever the messages are; good ones come from into_later() and into_earlier() of a run on the same or similar
    /// costs. Each is shifted to a minimum of 0, which changes no energy and no bound. Throws bad_field on a wrong number of values or one
    /// that is not a whole number within 2^51.
    ///
    /// The first pass afterwards should have the direction of the last one of the run that they come from, backward() as a rule: a pass
    /// repeated is the same pass, so that on the same costs it gives that pass's bound to the last unit, and the same messages.
    void set_messages(edge_place e, std::span<double const> later, std::span<double const> earlier) {
        auto const& x = at_place(e);
        store(x.up, x.hi, later, e);
        store(x.down, x.lo, earlier, e);
    }
    /// The same for all edges at once: takes over the messages of a run on a problem with the same edges and label counts, and starts with
    /// its labels. Throws bad_field when the counts differ.
    void start_from(basic_trws const& finished) {
        bool same = at_ == finished.at_ && edges_.size() == finished.edges_.size() && messages_.size() == finished.messages_.size();
        for (std::size_t p = 0; same && p < edges_.size(); ++p)
            same = edges_[p].lo == finished.edges_[p].lo && edges_[p].hi == finished.edges_[p].hi;
        if (!same) throw error(error_code::bad_field, "warm start", "other edges or label counts", "start from a run on the same graph");
        messages_ = finished.messages_;
        labels_ = finished.labels_;
    }

private:
    static constexpr double exact_limit = 2251799813685248.0;  // 2^51

    struct edge {
        std::uint32_t lo, hi;       // lo < hi
        std::size_t up, down;       // messages into hi and into lo
        double lowest;              // min of the potential: taken as 0 there, and kept in constant_
        bool lo_is_row;
        P potential;
    };

    std::uint32_t n_;
    std::vector<std::size_t> at_;
    std::vector<double> unary_, messages_, share_;  // share_: w of the last forward pass
    std::vector<edge> edges_;                       // by (lo, hi)
    std::vector<std::uint32_t> place_;              // of a graph edge in edges_
    std::vector<std::uint32_t> above_at_, below_at_, below_;  // edges with lo == v: above_at_[v] ..; with hi == v: below_[below_at_[v] ..]
    std::vector<double> hat_, split_, slack_, before_, conditioned_;
    std::vector<double> rest_, delta_, crossing_;
    std::vector<label> labels_;
    std::size_t widest_ = 0, work_ = 0;
    double unary_constant_ = 0, constant_ = 0, bound_ = -std::numeric_limits<double>::infinity(), last_bound_ = 0;

    /// Adds two whole numbers; false when the sum leaves the range. A sum of two within 2^51 and 2^52 is exact, so none slips through.
    static bool add(double& sum, double x) {
        sum += x;
        return std::abs(sum) <= exact_limit;
    }
    static double shift_to_zero(std::span<double> x) {
        double const low = detail::min_of(x.data(), x.size());
        for (double& c : x) c -= low;
        return low;
    }

    /// Least entries of all edges' potentials; a shared table is looked through once.
    template <PairwiseProblem G>
    static std::vector<double> lowest_of_edges(G const& g) {
        std::vector<double> low;
        low.reserve(g.edge_count());
        if constexpr (std::same_as<G, factor_graph>) {
            std::vector<double> of_table(g.table_count());
            for (std::uint32_t t = 0; t < of_table.size(); ++t) {
                auto const& values = g.table(table_id(t)).values;
                of_table[t] = detail::min_of(values.data(), values.size());
            }
            for (auto const& e : g.edges()) low.push_back(of_table[e.table.value]);
        } else {
            for (auto const& e : g.edges()) low.push_back(lowest(potential_of(g, e)));
        }
        return low;
    }

    template <PairwiseProblem G>
    void build_edges(G const& g) {
        auto const m = static_cast<std::uint32_t>(g.edge_count());
        auto const low = lowest_of_edges(g);
        std::vector<std::uint32_t> order(m);
        for (std::uint32_t i = 0; i < m; ++i) order[i] = i;
        auto const ends = [&](std::uint32_t i) {
            auto const& e = g.edge(edge_id(i));
            return std::minmax(e.u.value, e.v.value);
        };
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
            auto const [alo, ahi] = ends(a);
            auto const [blo, bhi] = ends(b);
            return std::pair{+alo, +ahi} < std::pair{+blo, +bhi};
        });
        place_.resize(m);
        above_at_.assign(n_ + 1, 0);
        below_at_.assign(n_ + 1, 0);
        edges_.reserve(m);
        std::size_t next = 0;
        for (std::uint32_t p = 0; p < m; ++p) {
            auto const& e = g.edge(edge_id(order[p]));
            auto const lo = std::min(e.u.value, e.v.value), hi = std::max(e.u.value, e.v.value);
            edge x{lo, hi, next, next + at_[hi + 1] - at_[hi], low[order[p]], e.u.value == lo, potential_of(g, e)};
            next = x.down + at_[lo + 1] - at_[lo];
            work_ += mrf::work(x.potential);
            constant_ += x.lowest;
            edges_.push_back(std::move(x));
            place_[order[p]] = p;
            ++above_at_[lo + 1];
            ++below_at_[hi + 1];
        }
        messages_.assign(next, 0.0);
        for (std::uint32_t v = 0; v < n_; ++v) {
            above_at_[v + 1] += above_at_[v];
            below_at_[v + 1] += below_at_[v];
        }
        below_.resize(m);
        auto fill = below_at_;
        for (std::uint32_t p = 0; p < m; ++p) below_[fill[edges_[p].hi]++] = p;
    }

    edge const& at_place(edge_place e) const { return edges_[place_[e.value]]; }
    void store(std::size_t at, std::uint32_t into, std::span<double const> values, edge_place e) {
        bool good = values.size() == at_[into + 1] - at_[into];
        for (double x : values) good = good && std::abs(x) <= exact_limit && x == std::floor(x);
        if (!good)
            throw error(error_code::bad_field, "message of edge " + std::to_string(e.value),
                        "not one whole number within 2^51 per label of the end it goes into", "");
        std::copy(values.begin(), values.end(), messages_.begin() + static_cast<std::ptrdiff_t>(at));
        shift_to_zero({messages_.data() + at, values.size()});
    }
    std::span<double const> message(std::size_t at, std::uint32_t into) const { return {messages_.data() + at, at_[into + 1] - at_[into]}; }

    /// thetahat_s into `hat`; into `cond` (if wanted) the costs given the labels of variables decoded before s in this pass.
    template <bool Forward>
    void gather(std::uint32_t s, double* hat, double* cond) const {
        std::size_t const n = at_[s + 1] - at_[s];
        std::copy_n(unary_.data() + at_[s], n, hat);
        if (cond) std::copy_n(hat, n, cond);
        auto const add_message = [n](double const* m, double* to) {
            for (std::size_t j = 0; j < n; ++j) to[j] += m[j];
        };
        auto const add_slice = [cond](edge const& e, bool s_is_row, label fixed) {
            if (s_is_row) add_col(e.potential, fixed, cond);
            else add_row(e.potential, fixed, cond);
        };
        for (auto p = above_at_[s]; p < above_at_[s + 1]; ++p) {
            auto const& e = edges_[p];
            add_message(messages_.data() + e.down, hat);
            if (!cond) continue;
            if (Forward) add_message(messages_.data() + e.down, cond);
            else add_slice(e, e.lo_is_row, labels_[e.hi]);
        }
        for (auto i = below_at_[s]; i < below_at_[s + 1]; ++i) {
            auto const& e = edges_[below_[i]];
            add_message(messages_.data() + e.up, hat);
            if (!cond) continue;
            if (!Forward) add_message(messages_.data() + e.up, cond);
            else add_slice(e, !e.lo_is_row, labels_[e.lo]);
        }
    }

    /// The label of least conditioned cost; where all are forbidden, the one that the messages like best.
    static label choose(double const* cond, double const* hat, std::size_t n) {
        auto const best = std::min_element(cond, cond + n);
        return static_cast<label>(*best != detail::inf ? best - cond : std::min_element(hat, hat + n) - hat);
    }

    template <bool Forward>
    bool pass(char* out, double best) {
        double total = constant_;   // becomes the bound of this pass
        double mixed = last_bound_;  // the sum of the fixing rule, less thetahat_t
        for (std::uint32_t i = 0; i < n_; ++i) {
            std::uint32_t const s = Forward ? i : n_ - 1 - i;
            std::size_t const n = at_[s + 1] - at_[s];
            std::uint32_t const ahead = Forward ? above_at_[s + 1] - above_at_[s] : below_at_[s + 1] - below_at_[s];
            std::uint32_t const behind = Forward ? below_at_[s + 1] - below_at_[s] : above_at_[s + 1] - above_at_[s];
            gather<Forward>(s, hat_.data(), conditioned_.data());
            labels_[s] = choose(conditioned_.data(), hat_.data(), n);
            double low = hat_[0], high = hat_[0];
            for (std::size_t j = 1; j < n; ++j) {
                low = hat_[j] < low ? hat_[j] : low;
                high = hat_[j] > high ? hat_[j] : high;
            }
            if (!(high <= exact_limit)) return false;
            if (!Forward && out) {
                if (!add(mixed, -rest_[s])) return false;
                for (auto p = above_at_[s]; p < above_at_[s + 1]; ++p)
                    if (!add(mixed, -crossing_[p])) return false;
                for (std::size_t j = 0; j < n; ++j) out[at_[s] + j] |= static_cast<char>(mixed + hat_[j] >= best);
            }
            double* w = Forward ? share_.data() + at_[s] : split_.data();
            double rest = low;
            if (ahead > 0) {
                // floor by adding and taking away 1.5 * 2^52; 0.4995 rather than 0.5 keeps exact multiples from rounding to even. Any whole
                // number is right here, see the invariant.
                double const gamma = 1.0 / std::max(ahead, behind), magic = 6755399441055744.0, sections = ahead;
                rest = detail::inf;
                for (std::size_t j = 0; j < n; ++j) {
                    w[j] = (((hat_[j] - low) * gamma - 0.4995) + magic) - magic;
                    double const left = hat_[j] - sections * w[j];
                    rest = left < rest ? left : rest;
                }
                for (std::uint32_t a = 0; a < ahead; ++a) {
                    std::uint32_t const p = Forward ? above_at_[s] + a : below_[below_at_[s] + a];
                    if (!send<Forward>(p, s, w, out != nullptr, total, mixed)) return false;
                }
            }
            if (!add(total, rest)) return false;
            if (Forward) rest_[s] = rest;
            else if (!add(mixed, rest)) return false;
        }
        last_bound_ = total;
        bound_ = std::max(bound_, total);
        return true;
    }

    /// Updates the message of edge p from s with share w; adds delta_st to `total`.
    template <bool Forward>
    bool send(std::uint32_t p, std::uint32_t s, double const* w, bool fixing, double& total, double& mixed) {
        auto const& e = edges_[p];
        std::size_t const n = at_[s + 1] - at_[s];
        std::uint32_t const t = Forward ? e.hi : e.lo;
        std::size_t const m = at_[t + 1] - at_[t];
        double const* received = messages_.data() + (Forward ? e.down : e.up);
        double* sent = messages_.data() + (Forward ? e.up : e.down);
        for (std::size_t j = 0; j < n; ++j) slack_[j] = w[j] - received[j];
        if (fixing) std::copy_n(sent, m, before_.data());
        if (Forward == e.lo_is_row) min_plus_over_rows(e.potential, slack_.data(), sent);
        else min_plus_over_cols(e.potential, slack_.data(), sent);
        double low = sent[0], high = sent[0];
        for (std::size_t k = 1; k < m; ++k) {
            low = sent[k] < low ? sent[k] : low;
            high = sent[k] > high ? sent[k] : high;
        }
        if (!(high - low <= exact_limit)) return false;
        for (std::size_t k = 0; k < m; ++k) sent[k] -= low;
        double const delta = low - e.lowest;
        if (!add(total, delta)) return false;
        if (Forward) {
            delta_[p] = delta;
        } else if (fixing) {
            double const* earlier = share_.data() + at_[t];
            double cross = detail::inf;
            for (std::size_t k = 0; k < m; ++k) cross = std::min(cross, earlier[k] + (sent[k] - before_[k]));
            crossing_[p] = cross;
            if (!add(mixed, delta) || !add(mixed, -delta_[p]) || !add(mixed, cross)) return false;
        }
        return true;
    }
};

/// Over a factor graph, whose tables are viewed: `trws(g)`.
using trws = basic_trws<dense_potential>;

}  // namespace cantle::mrf
