// SPDX-License-Identifier: BSL-1.0
#pragma once
// What all writers of cantle's JSON files share: text appended piece by piece (a document tree would cost more than the text), numbers the
// same on every machine.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace cantle::detail {

class json_text {
protected:
    std::string out_;

    void integer(std::int64_t v) {
        char buffer[24];
        out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
    }
    /// A finite double as the shortest text that reads back to the same bits, never looking like an integer; others as a string.
    void real(double v) {
        if (std::isnan(v)) {
            auto const bits = std::bit_cast<std::uint64_t>(v);
            if (bits == 0x7ff8000000000000ULL) { out_ += "\"nan\""; return; }
            char buffer[20];
            out_ += "\"nan:";
            out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr);
            out_ += '"';
        } else if (std::isinf(v)) {
            out_ += v > 0 ? "\"inf\"" : "\"-inf\"";
        } else {
            char buffer[40];
            std::string_view const text(buffer, static_cast<std::size_t>(std::to_chars(buffer, buffer + sizeof buffer, v).ptr - buffer));
            out_ += text;
            if (text.find_first_of(".e") == std::string_view::npos) out_ += ".0";
        }
    }
    template <class List, class Each>
    void list(List const& items, Each each) {
        out_ += '[';
        bool first = true;
        for (auto const& x : items) {
            if (!first) out_ += ',';
            first = false;
            each(x);
        }
        out_ += ']';
    }
};

}  // namespace cantle::detail
