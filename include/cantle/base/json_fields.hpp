// SPDX-License-Identifier: BSL-1.0
#pragma once
// What all readers of cantle's JSON files share: parsing with the place of a fault, and fields of a wanted type. Every fault is a numbered
// error that names the file, the row and the field.
#include <cantle/base/error.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace cantle::detail {

/// Accepts any JSON and remembers where and why the text stops being JSON.
struct json_fault_finder final : nlohmann::json_sax<nlohmann::json> {
    std::size_t position = 0;
    std::string why;
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, string_t const&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return true; }
    bool key(string_t&) override { return true; }
    bool end_object() override { return true; }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t at, std::string const&, nlohmann::json::exception const& e) override {
        position = at;
        why = e.what();
        return false;
    }
};

class json_fields {
protected:
    using json = nlohmann::json;

    json_fields(std::string_view source, std::string_view remedy) : source_(source), remedy_(remedy) {}

    std::string source_;  ///< name of the file
    std::string place_;   ///< "node 'name'" or "row 3 of nodes" while that is read

    [[noreturn]] void fail(std::string_view field, std::string const& problem) const {
        fail(field, problem, "correct the field" + remedy_);
    }
    [[noreturn]] void fail(std::string_view field, std::string const& problem, std::string const& remedy) const {
        throw error(error_code::bad_field, source_ + (place_.empty() ? "" : ": " + place_),
                    "field '" + std::string(field) + "' " + problem, remedy);
    }
    static bool shallow(json const& j, int levels) {
        if (!j.is_structured()) return true;
        if (levels == 0) return false;
        for (auto const& x : j)
            if (!shallow(x, levels - 1)) return false;
        return true;
    }
    /// A value for an error message, short. dump() recurses, so deep nesting is not shown: it could exhaust the stack.
    static std::string shown(json const& j) {
        if (!shallow(j, 4)) return j.is_array() ? "a deeply nested list" : "a deeply nested object";
        auto s = j.dump(-1, ' ', true, json::error_handler_t::replace);
        return s.size() > 60 ? s.substr(0, 57) + "..." : s;
    }
    json parse(std::string_view text) const {
        try {
            return json::parse(text.begin(), text.end());
        } catch (json::exception const&) {
        }
        json_fault_finder finder;
        json::sax_parse(text.begin(), text.end(), &finder);
        auto why = finder.why;  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
        if (auto const cut = why.find("] "); cut != std::string::npos) why.erase(0, cut + 2);
        for (char& c : why)
            if (static_cast<unsigned char>(c) < 0x20) c = ' ';
        throw error(error_code::broken_json, source_, "at byte " + std::to_string(finder.position) + " the text is no JSON (" + why + ")",
                    "the file may be cut short; write it again");
    }
    /// The document, if it is one of that format and of version 1.
    json parse_format(std::string_view text, std::string_view format, std::string_view thing, std::string_view wrote) const {
        json document = parse(text);
        if (!document.is_object() || !document.contains("format") || document["format"] != format)
            throw error(error_code::wrong_format, source_,
                        "this is not a cantle " + std::string(thing) + " (\"format\" is not \"" + std::string(format) + "\")",
                        "give the file that `" + std::string(wrote) + "` wrote");
        if (!document.contains("version") || document["version"] != 1)
            throw error(error_code::wrong_format, source_,
                        "version " + (document.contains("version") ? shown(document["version"]) : "(none)") + " of the format is unknown",
                        "make it again with `" + std::string(wrote) +
                            "`, or read it with the cantle that wrote it (this one reads version 1)");
        return document;
    }

    void only_fields(json const& object, std::initializer_list<std::string_view> known) const {
        for (auto const& item : object.items()) {
            bool found = false;
            for (auto const name : known) found = found || name == item.key();
            if (!found) fail(item.key(), "is unknown", "drop it");
        }
    }
    json const& object(json const& j, std::string_view field, std::initializer_list<std::string_view> known) const {
        if (!j.is_object()) fail(field, "is no object: " + shown(j));
        only_fields(j, known);
        return j;
    }
    json const& array(json const& j, std::string_view field) const {
        if (!j.is_array()) fail(field, "is no list: " + shown(j));
        return j;
    }
    json const& required(json const& object, char const* field) const {
        auto const place = object.find(field);
        if (place == object.end()) fail(field, "is missing", "add it");
        return *place;
    }
    std::string const& text(json const& j, std::string_view field) const {
        auto const* s = j.get_ptr<json::string_t const*>();
        if (!s) fail(field, "is no text: " + shown(j));
        return *s;
    }
    std::int64_t integer(json const& j, std::string_view field) const {
        if (!j.is_number_integer()) fail(field, "is no integer: " + shown(j));
        if (j.is_number_unsigned() && j.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            fail(field, "is beyond 64 bits: " + shown(j));
        return j.get<std::int64_t>();
    }
    std::int64_t integer(json const& j, std::string_view field, std::int64_t least, std::int64_t most) const {
        auto const i = integer(j, field);
        if (i < least || i > most)
            fail(field, "is no whole number from " + std::to_string(least) + " to " + std::to_string(most) + ": " + shown(j));
        return i;
    }

private:
    std::string remedy_;
};

}  // namespace cantle::detail
