// SPDX-License-Identifier: BSL-1.0
#pragma once
// Mutation of rules: with one placement of a declared row changed, or one inner collective left out, the oracle must refute the row, or
// the change must be true for a known reason. What an oracle lets through tells how little it sees.
#include <adapters/libtorch/oracle_search.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace cantle::libtorch {

struct mutation_count {
    std::size_t changed = 0, killed = 0;
    std::size_t equivalent = 0;                    ///< true all the same, for a known reason
    std::map<std::string, std::size_t> excused;    ///< reason -> how many
    std::vector<std::string> survivors;            ///< neither refuted nor excused
    double rate() const { return changed == equivalent ? 1.0 : static_cast<double>(killed) / static_cast<double>(changed - equivalent); }
    mutation_count& operator+=(mutation_count const& other);
};

/// Mutates the rows of one op, sample after sample. A single number can agree by chance (the minimum of 12 values with the sum of 4 of
/// them): what one sample lets through, another sample of the op must refute.
class mutation_check {
public:
    /// All mutations of `declared` on an axis of n ranks.
    void add(rule_oracle const& oracle, std::vector<axis_row> const& declared, std::int64_t n);
    /// The result. `known_true`: rows that the search for true rows has listed, as text.
    /// `refuted_on_others`: do other samples like that one refute the row? Asked only of what is left at the end.
    mutation_count finish(std::set<std::string> const& known_true,
                          std::function<bool(rule_oracle const&, axis_row const&, std::int64_t)> const& refuted_on_others = {});

private:
    mutation_count count_;
    std::set<std::string> refuted_;
    struct let_through {
        axis_row row;
        std::int64_t n;
        rule_oracle const* sample;
    };
    std::map<std::string, let_through> open_;  // change -> a sample that lets it through
    std::map<std::string, std::size_t> times_;

    void outputs(rule_oracle const& oracle, axis_row const& row, std::int64_t n);
    void operands(rule_oracle const& oracle, axis_row const& row, std::vector<axis_row> const& declared, std::int64_t n);
    void inner(rule_oracle const& oracle, axis_row const& row, std::int64_t n);
    void tell(rule_oracle const& oracle, std::string const& change, axis_row const& changed, std::int64_t n, bool refuted,
              std::function<std::string()> const& excuse);
};

}  // namespace cantle::libtorch
