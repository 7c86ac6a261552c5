// SPDX-License-Identifier: BSL-1.0
#pragma once
// The texts in which a region's author declares it:
//
//   placements of a tensor    "dp=S0, ep?=S1, *=R"   an item per axis NAME; '*': every axis not named; no item: R
//                                                    'ep?': on meshes that have an axis ep; a plain 'ep' is an error on others
//   inner collectives         "ep:all_to_all:6in0, cp?:permute:in1*ring"   axis:kind:message; the message is the tensor's local size,
//                                                    '6in0': six times that in one message, '64B': so many bytes
//                                                    '*3': three messages, '*ring': one less than the axis has ranks
//                             tensors: in<i>, out<i>; in the backward's own list also grad_in<i> and grad_out<i>
#include <cantle/base/error.hpp>
#include <cantle/mesh/collective.hpp>
#include <cantle/mesh/device_mesh.hpp>
#include <cantle/mesh/placement.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

/// "dp", or "dp?" for an axis that a mesh may lack.
struct axis_pattern {
    std::string name;
    bool optional = false;
};

struct region_collective {
    axis_pattern axis;
    collective_kind kind = collective_kind::all_reduce;
    bool output = false, gradient = false, ring = false;
    std::size_t index = 0;
    std::int64_t times = 1;            ///< messages
    std::int64_t scale = 1, bytes = 0; ///< of one message: `scale` tensors, or bytes where that is above 0
};

inline std::string_view trimmed(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
}

/// The items of a list, without blanks around them; none for blank text.
inline std::vector<std::string> items_of(std::string_view text, char separator) {
    std::vector<std::string> items;
    if (trimmed(text).empty()) return items;
    for (auto const& part : split_text(text, separator)) items.emplace_back(trimmed(part));
    return items;
}

/// Reads the texts of one region; knows its name for messages.
class region_reader {
public:
    explicit region_reader(std::string name) : name_(std::move(name)) {}
    std::string subject() const { return "region '" + name_ + "'"; }
    error fail(std::string const& problem, std::string const& remedy) const {
        return error(error_code::bad_region, subject(), problem, remedy);
    }
    axis_pattern axis(std::string_view text) const {
        axis_pattern a{std::string(trimmed(text)), false};
        if (!a.name.empty() && a.name.back() == '?') {
            a.optional = true;
            a.name.pop_back();
        }
        if (a.name == "*") throw fail("'" + std::string(text) + "' is no axis", "write * for all axes not named, without ?");
        if (a.name.empty()) throw fail("an axis name is missing in '" + std::string(text) + "'", "write items as in dp=S0, *=R");
        return a;
    }
    region_collective collective(std::string const& text) const {
        auto const bad = [&](std::string const& why) {
            return fail("the collective '" + text + "' does not parse: " + why, "write it as in ep:all_to_all:in0 or cp:permute:in1*ring");
        };
        auto const parts = items_of(text, ':');
        if (parts.size() != 3) throw bad("it has not the form axis:kind:tensor");
        region_collective c;
        c.axis = axis(parts[0]);
        bool known = false;
        for (auto k : {collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_reduce,
                       collective_kind::all_to_all, collective_kind::permute})
            if (parts[1] == to_string(k)) {
                c.kind = k;
                known = true;
            }
        if (!known) throw bad("there is no kind '" + parts[1] + "'");
        auto const star = split_text(parts[2], '*');
        if (star.size() > 2) throw bad("it has more than one '*'");
        if (star.size() == 2) {
            c.ring = star[1] == "ring";
            if (!c.ring && (!number(star[1], c.times) || c.times < 1 || c.times > 65536))
                throw bad("behind '*' stands a number from 1 to 65536, or ring");
        }
        std::string_view tensor = star[0];
        auto const digits = std::min(tensor.find_first_not_of("0123456789"), tensor.size());
        if (digits > 0) {
            if (!number(tensor.substr(0, digits), c.scale) || c.scale < 1 || c.scale > (std::int64_t{1} << 40))
                throw bad("a factor or a number of bytes is at least 1");
            tensor.remove_prefix(digits);
            if (tensor == "B") {
                c.bytes = std::exchange(c.scale, 1);
                return c;
            }
        }
        c.gradient = take(tensor, "grad_");
        c.output = take(tensor, "out");
        std::int64_t index = 0;
        if ((!c.output && !take(tensor, "in")) || !number(tensor, index) || index < 0) throw bad("'" + star[0] + "' is no tensor");
        c.index = static_cast<std::size_t>(index);
        return c;
    }
    std::vector<region_collective> collectives(std::string_view text) const {
        std::vector<region_collective> all;
        for (auto const& item : items_of(text, ',')) all.push_back(collective(item));
        return all;
    }

private:
    std::string name_;
    static bool take(std::string_view& text, std::string_view prefix) {
        bool const there = text.substr(0, prefix.size()) == prefix;
        if (there) text.remove_prefix(prefix.size());
        return there;
    }
    static bool number(std::string_view text, std::int64_t& value) {
        auto const [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        return problem == std::errc() && end == text.data() + text.size() && !text.empty();
    }
};

/// The declared placements of one tensor.
struct region_placements {
    std::string which;  ///< "input 0"
    std::vector<std::pair<axis_pattern, placement>> axes;
    std::optional<placement> rest;

    region_placements(region_reader const& reader, std::string which_, std::string_view text) : which(std::move(which_)) {
        for (auto const& item : items_of(text, ',')) {
            auto const sides = items_of(item, '=');
            auto const place = sides.size() == 2 ? parse_placement(sides[1]) : std::nullopt;
            if (!place)
                throw reader.fail("the placement '" + item + "' of " + which + " does not parse",
                                  "write an axis name or *, then =R, =S<dim>, =P or =P(kind)");
            bool twice = sides[0] == "*" && rest.has_value();
            if (sides[0] == "*") rest = place;
            else {
                auto const a = reader.axis(sides[0]);
                for (auto const& [other, p] : axes) twice = twice || other.name == a.name;
                axes.emplace_back(a, *place);
            }
            if (twice) throw reader.fail(which + " places '" + sides[0] + "' twice", "give every axis one placement");
        }
    }
    /// What is said of that axis, if anything.
    std::optional<placement> on(std::string const& axis) const {
        for (auto const& [a, p] : axes)
            if (a.name == axis) return p;
        return rest;
    }
};

}  // namespace detail

}  // namespace cantle
