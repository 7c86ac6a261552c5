// SPDX-License-Identifier: BSL-1.0
#pragma once
// Products written with labels, as einsum writes them: every dim has a letter, letters that the output lacks are summed over. The rows
// follow: a cut of a letter is a cut of every tensor that has it; where the output lacks it the ranks' results add up.
#include <cantle/rules/affine.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle::rules {

/// An operand and one letter per dim; '.' is a dim that cannot be cut.
struct labelled {
    std::uint32_t operand = 0;
    std::string letters;
};

/// out = beta * addend + product of the factors, summed over the letters that `out` lacks. The addend broadcasts against out.
struct contraction {
    std::vector<labelled> factors;
    std::string out;
    std::optional<std::uint32_t> addend{};
    double beta = 1;
};

namespace detail {
/// The dim of that letter, or nothing where the operand lacks it or is broadcast along it.
inline std::optional<std::size_t> dim_of(std::string const& letters, char letter, shape const& sizes, std::int64_t extent) {
    auto const at = letters.find(letter);
    if (at == std::string::npos || (sizes[at] == 1 && extent != 1)) return std::nullopt;
    return at;
}
inline placement cut_of(std::optional<std::size_t> dim) { return dim ? placement::shard(*dim) : placement::replicate(); }
}  // namespace detail

/// The row of one letter.
inline axis_row contraction_row(op_query const& q, contraction const& c, char letter) {
    std::int64_t extent = 1;
    for (auto const& f : c.factors)
        if (auto const at = f.letters.find(letter); at != std::string::npos) extent = std::max(extent, q.operands[f.operand].sizes[at]);
    axis_row row{std::vector<placement>(q.operands.size()), std::vector<placement>(q.outputs.size())};
    for (auto const& f : c.factors)
        row.operands[f.operand] = detail::cut_of(detail::dim_of(f.letters, letter, q.operands[f.operand].sizes, extent));
    auto const at = c.out.find(letter);
    row.outputs[0] = at == std::string::npos ? placement::partial() : placement::shard(at);
    if (c.addend && c.beta != 0)
        row.operands[*c.addend] = at == std::string::npos ? placement::partial()
                                                          : broadcast_shard(q.operands[*c.addend].sizes, q.outputs[0].sizes, at);
    else if (c.addend && at != std::string::npos)  // not read, but its shape has to fit
        row.operands[*c.addend] = broadcast_shard(q.operands[*c.addend].sizes, q.outputs[0].sizes, at);
    return row;
}

/// All rows: cuts of the output's letters, then of the contracted ones, then Partial.
inline void add_contraction_rows(op_query const& q, contraction const& c, row_list& rows) {
    std::string letters;
    auto const note = [&letters](std::string const& more) {
        for (char x : more)
            if (x != '.' && letters.find(x) == std::string::npos) letters += x;
    };
    note(c.out);
    for (auto const& f : c.factors) note(f.letters);
    for (char x : letters) rows.add(contraction_row(q, c, x));
    // Each factor alone, together with the addend: both contributions are split, or the addend would be counted once per rank.
    affine_rows partial(q, rows);
    auto const addend = c.beta != 0 ? c.addend : std::nullopt;
    for (auto const& f : c.factors) partial.jointly({f.operand, addend});
    if (c.beta > 0) partial.addend(addend);
}

/// A rule of fixed letters: {argument, letters} per factor, the output's letters, and the name of an addend with its literal beta.
inline axis_rule product_rule(std::vector<std::pair<std::string, std::string>> factors, std::string out, std::string addend = {}) {
    return [factors, out, addend](op_query const& q, std::int64_t, row_list& rows) {
        contraction c{{}, out, q.operation->slot(addend), q.operation->get<double>("beta", 1.0)};
        for (auto const& f : factors) c.factors.push_back({q.operation->slot(f.first).value_or(0), f.second});
        add_contraction_rows(q, c, rows);
    };
}

}  // namespace cantle::rules
