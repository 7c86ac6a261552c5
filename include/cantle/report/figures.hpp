// SPDX-License-Identifier: BSL-1.0
#pragma once
// Figures and tables as text. Units are written out, digits are grouped, columns are aligned; the same input gives the same bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {
/// Groups of three: "1,234,567".
inline std::string group_digits(std::string digits) {
    auto end = digits.find('.');
    if (end == std::string::npos) end = digits.size();
    std::size_t const first = !digits.empty() && digits[0] == '-' ? 1 : 0;
    for (std::size_t i = end; i > first + 3;) {
        i -= 3;
        digits.insert(i, 1, ',');
    }
    return digits;
}
inline std::string fixed_text(double v, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, v);
    return text;
}
}  // namespace detail

inline std::string count_text(std::int64_t n) { return detail::group_digits(std::to_string(n)); }
inline std::string count_text(std::size_t n) { return detail::group_digits(std::to_string(n)); }

/// Microseconds: "311,290.0".
inline std::string microseconds_text(double us) { return detail::group_digits(detail::fixed_text(us, 1)); }

/// Bytes in SI units: "512 B", "33.55 MB", "1.05 GB".
inline std::string bytes_text(std::int64_t bytes) {
    char const* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double v = static_cast<double>(bytes);
    std::size_t u = 0;
    while (std::abs(v) >= 1000 && u + 1 < std::size(units)) {
        v /= 1000;
        ++u;
    }
    return u == 0 ? std::to_string(bytes) + " B" : detail::fixed_text(v, 2) + " " + units[u];
}

/// A share: "12.3 %"; more digits where it is small, "0 %" only for 0.
inline std::string percent_text(double share) {
    double const p = 100 * share;
    if (p == 0) return "0 %";
    if (std::abs(p) >= 0.1) return detail::fixed_text(p, 1) + " %";
    char text[32];
    std::snprintf(text, sizeof text, "%.1g %%", p);
    return text;
}

/// Text from elsewhere (names, paths) for a terminal: control characters, which could steer it or break a line, are written as \\n, \\t
/// or \\x1b. Those are the bytes below 0x20, 0x7f, and U+0080 to U+009F in UTF-8.
inline std::string visible_text(std::string_view s) {
    std::string out;
    for (std::size_t i = 0; i < s.size(); ++i) {
        auto const c = static_cast<unsigned char>(s[i]);
        bool const second = c == 0xc2 && i + 1 < s.size() && static_cast<unsigned char>(s[i + 1]) < 0xa0;
        if (c >= 0x20 && c != 0x7f && !second) {
            out += s[i];
            continue;
        }
        auto const code = second ? static_cast<unsigned char>(s[++i]) : c;
        if (code == '\n') out += "\\n";
        else if (code == '\t') out += "\\t";
        else {
            char const* const digits = "0123456789abcdef";
            out += {'\\', 'x', digits[code >> 4], digits[code & 15]};
        }
    }
    return out;
}

/// Rows of cells under headers, two spaces between columns; a column is flushed right where its header starts with '>'.
class text_table {
public:
    explicit text_table(std::vector<std::string> headers) : headers_(std::move(headers)) {
        for (auto& h : headers_) {
            right_.push_back(!h.empty() && h[0] == '>');
            if (right_.back()) h.erase(0, 1);
            h = visible_text(h);
        }
    }
    void add(std::vector<std::string> cells) {
        cells.resize(headers_.size());
        for (auto& c : cells) c = visible_text(c);
        rows_.push_back(std::move(cells));
    }
    bool empty() const { return rows_.empty(); }
    std::string text(std::string const& indent = "  ") const {
        std::vector<std::size_t> width;
        for (auto const& h : headers_) width.push_back(h.size());
        for (auto const& r : rows_)
            for (std::size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], r[c].size());
        std::string out;
        auto const line = [&](std::vector<std::string> const& cells) {
            std::string s = indent;
            for (std::size_t c = 0; c < cells.size(); ++c) {
                std::string const pad(width[c] - cells[c].size(), ' ');
                s += (c ? "  " : "") + (right_[c] ? pad + cells[c] : cells[c] + pad);
            }
            while (!s.empty() && s.back() == ' ') s.pop_back();
            out += s + "\n";
        };
        line(headers_);
        for (auto const& r : rows_) line(r);
        return out;
    }

private:
    std::vector<std::string> headers_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace cantle
