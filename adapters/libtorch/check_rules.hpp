// SPDX-License-Identifier: BSL-1.0
#pragma once
// `cantle check-rules`: all rules against all samples. Soundness (every declared row, and strategies of two axes), completeness (every
// true row is declared or waived) and mutation. docs/rules.md says what each means.
#include <adapters/libtorch/oracle_mutation.hpp>
#include <adapters/libtorch/oracle_waivers.hpp>

#include <cantle/rules/registry.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// How much to run. Rows of one axis are checked on every sample always.
struct check_extent {
    std::string op;                        ///< only this op; empty: all
    std::size_t searched_samples = 3;      ///< per op, evenly picked: for true rows and mutations; 0: all
    std::size_t composed_strategies = 4;   ///< per sample, mesh and order of axes
    static check_extent everything() { return {{}, 0, 48}; }
};

/// The least share of mutants that must be refuted, of those that alter the meaning.
inline constexpr double least_mutation_rate = 0.999;

/// What was found out about one op.
struct op_check {
    std::string op;
    std::size_t samples = 0, rows = 0, composed = 0;  ///< rows and strategies that were checked and divide
    std::size_t inputs = 0;                           ///< combinations of input placements that were run for the search
    bool all_inputs = true;                           ///< of the search: all combinations of input placements
    std::size_t mixed = 0;                            ///< true rows of several kinds of Partial: no rule may list them
    std::vector<std::string> refuted;                 ///< "sample on n, row ...: reason"
    std::vector<std::string> missing;                 ///< true rows, neither declared nor waived
    std::vector<std::string> waived;                  ///< "row: reason"
    std::vector<std::string> seen_once;               ///< true on one sample only whose outputs have few values: perhaps a coincidence
    std::vector<std::string> conditional;             ///< true on some samples, refuted on another one of the same kind
    mutation_count mutations;
    bool passed() const { return refuted.empty() && missing.empty(); }
};

struct rules_check {
    std::vector<op_check> ops;             ///< by name
    std::vector<std::string> uncovered;    ///< ops with a rule and without samples, not waived
    std::vector<std::string> idle_waivers; ///< that waived nothing; filled where all ops and all samples were searched
    double seconds = 0;
    bool passed() const;
    mutation_count mutations() const;
};

/// Checks `rules` on `samples`. Throws bad_option where extent.op names no op of the rules; the message tells names like it.
rules_check check_rules(rule_registry const& rules, std::vector<rule_sample> samples, std::vector<rule_waiver> waivers,
                        check_extent const& extent);

/// Tables and lists for people; `all`: waived, conditional and single rows one by one too.
std::string text_of(rules_check const& check, bool all);
std::string json_of(rules_check const& check);

}  // namespace cantle::libtorch
