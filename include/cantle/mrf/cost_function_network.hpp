// SPDX-License-Identifier: BSL-1.0
#pragma once
// A factor graph as a cost function network, the text format .cfn of toulbar2 [1] and other weighted CSP solvers: an export, for rivals.
//
// Costs there are decimals of one fixed precision, held as 64-bit whole numbers: each cost is rounded to the nearest multiple of
// 10^-decimals. The precision is the finest, up to nine digits, at which the sum of all terms' largest costs stays below 10^14 (64 bits
// would hold 10^18, but digits cost reading time, and what is lost is below 10^-7 of such a sum up to a million terms). So
//      |E(x) - written energy(x)| <= error_bound = number of terms x 10^-decimals / 2    for every labelling x.
// The problem's upper bound ("mustbe") is above every finite energy. Every term is written less its least cost, and the sum of these is a
// function without variables. Forbidden pairs are written as the upper bound, less that sum where it is negative: toulbar2 shifts its bound
// by it. Equal tables are written as often as they are used: the format lets a function name another one for its costs, but toulbar2 1.1.1
// then finds another optimum.
// Variables are called v0, v1, ..., their values 0, 1, ...: a solution file of toulbar2 (-w) holds labels in the order of variables.
// [1] https://github.com/toulbar2/toulbar2, doc "CFN format"; S. de Givry et al., "Toulbar2, an exact solver for cost function networks".
#include <cantle/base/error.hpp>
#include <cantle/mrf/factor_graph.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cantle::mrf {

/// The text, and how far its costs are from those of the graph.
struct cost_function_network {
    std::string text;
    int decimals = 0;
    double error_bound = 0;  ///< of any labelling's energy, in units of the cost
};

namespace detail {

class cost_function_network_writer {
public:
    explicit cost_function_network_writer(factor_graph const& g) : g_(g) {
        double range = 1;  // of all energies, from the sum of least costs
        std::vector<double> of_table(g.table_count());
        for (std::uint32_t t = 0; t < of_table.size(); ++t) {
            low_.push_back(least(g.table(table_id(t)).values));
            for (double c : g.table(table_id(t)).values)
                if (c != forbidden) of_table[t] = std::max({of_table[t], c - low_[t], std::abs(c)});
        }
        for (std::uint32_t v = 0; v < g.variable_count(); ++v) {
            auto const costs = g.costs(variable_id(v));
            double most = 0;
            double const low = least_of(variable_id(v));
            for (double c : costs) most = std::max({most, c - low, std::abs(c)});
            range += most;
        }
        for (auto const& e : g.edges()) range += of_table[e.table.value];
        constexpr double wanted = 1e14, most = 5e16;  // toulbar2's costs end above 10^18
        if (!(range < most))
            throw error(error_code::bad_field, "costs", "too large for 64-bit whole numbers", "scale them down");
        while (decimals_ < most_decimals && range * scale_ * 10 < wanted) {
            scale_ *= 10;
            ++decimals_;
        }
        // Above every finite energy less its least costs, and that with room for rounding.
        top_ = static_cast<std::int64_t>(std::ceil(range)) * static_cast<std::int64_t>(scale_) +
               static_cast<std::int64_t>(g.variable_count() + g.edge_count());
    }

    cost_function_network write(std::string const& name) {
        std::int64_t constant = 0;
        for (std::uint32_t v = 0; v < g_.variable_count(); ++v) constant += whole(least_of(variable_id(v)));
        for (auto const& e : g_.edges()) constant += whole(low_[e.table.value]);
        forbidden_ = top_ + std::max<std::int64_t>(-constant, 0);
        text_ = "{\"problem\":{\"name\":\"" + name + "\",\"mustbe\":\"<";
        number(top_);
        text_ += "\"},\n\"variables\":{";
        for (std::uint32_t v = 0; v < g_.variable_count(); ++v)
            text_ += (v ? ",\n\"v" : "\n\"v") + std::to_string(v) + "\":" + std::to_string(g_.label_count(variable_id(v)));
        text_ += "},\n\"functions\":{";
        for (std::uint32_t v = 0; v < g_.variable_count(); ++v) {
            text_ += "\n\"u" + std::to_string(v) + "\":{\"scope\":[\"v" + std::to_string(v) + "\"],\"costs\":[";
            auto const costs = g_.costs(variable_id(v));
            std::vector<double> const list(costs.begin(), costs.end());
            values(list, least(list));
            text_ += "]},";
        }
        for (std::uint32_t i = 0; i < g_.edge_count(); ++i) {
            auto const& e = g_.edge(edge_id(i));
            auto const row = e.use == table_use::straight ? e.u : e.v, col = e.use == table_use::straight ? e.v : e.u;
            text_ += "\n\"e" + std::to_string(i) + "\":{\"scope\":[\"v" + std::to_string(row.value) + "\",\"v" + std::to_string(col.value) +
                     "\"],\"costs\":[";
            values(g_.table(e.table).values, low_[e.table.value]);
            text_ += "]},";
        }
        text_ += "\n\"constant\":{\"scope\":[],\"costs\":[";
        number(constant);
        text_ += "]}\n}}\n";
        auto const terms = static_cast<double>(g_.variable_count() + g_.edge_count());
        return {std::move(text_), decimals_, terms * 0.5 / scale_};
    }

private:
    static constexpr int most_decimals = 9;
    factor_graph const& g_;
    std::vector<double> low_;  // [table]
    double scale_ = 1;
    int decimals_ = 0;
    std::int64_t top_ = 0, forbidden_ = 0;
    std::string text_;

    static double least(std::vector<double> const& costs) {
        double low = forbidden;
        for (double c : costs) low = std::min(low, c);
        return low == forbidden ? 0.0 : low;
    }
    std::int64_t whole(double c) const { return std::llround(c * scale_); }

    double least_of(variable_id v) const {
        auto const costs = g_.costs(v);
        return least({costs.begin(), costs.end()});
    }

    /// Writes costs less their least.
    void values(std::vector<double> const& costs, double low) {
        auto const base = whole(low);
        for (std::size_t i = 0; i < costs.size(); ++i) {
            if (i) text_ += ',';
            number(costs[i] == forbidden ? forbidden_ : whole(costs[i]) - base);
        }
    }
    /// n units of 10^-decimals, without zeros at the end.
    void number(std::int64_t n) {
        if (n < 0) text_ += '-';
        auto digits = std::to_string(n < 0 ? -n : n);
        auto const places = static_cast<std::size_t>(decimals_);
        if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
        auto end = digits.size();
        while (end > digits.size() - places && digits[end - 1] == '0') --end;
        text_.append(digits, 0, digits.size() - places);
        if (end == digits.size() - places) return;
        text_ += '.';
        text_.append(digits, digits.size() - places, end - (digits.size() - places));
    }
};

}  // namespace detail

/// `name`: of the problem; letters, digits and _ only. Throws bad_field when the costs are too large for 64-bit whole numbers.
inline cost_function_network cost_function_network_of(factor_graph const& g, std::string const& name = "cantle") {
    return detail::cost_function_network_writer(g).write(name);
}

}  // namespace cantle::mrf
