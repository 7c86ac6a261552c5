// SPDX-License-Identifier: BSL-1.0
#pragma once
// True rows that no rule lists, each with the reason why not. The reviewed file is docs/rule_waivers.json; it is part of the library.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cantle::libtorch {

/// `op` and `row` are patterns in which * stands for any text ("aten::new_*", "P* -> R"). The row "no samples" waives the lack of samples.
struct rule_waiver {
    std::string op, row, reason;
    std::size_t used = 0;  ///< how many rows it has waived
};

/// A list of objects with op, row (or rows: a list) and reason. Throws broken_json, bad_field.
std::vector<rule_waiver> parse_waivers(std::string_view json, std::string const& file);
/// docs/rule_waivers.json as it was when this library was built.
std::vector<rule_waiver> reviewed_waivers();
/// The first that fits, or nullptr.
rule_waiver* find_waiver(std::vector<rule_waiver>& waivers, std::string_view op, std::string_view row);
/// Does `text` fit `pattern`, in which * stands for any text?
bool fits_pattern(std::string_view pattern, std::string_view text);

}  // namespace cantle::libtorch
