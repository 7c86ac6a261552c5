// SPDX-License-Identifier: BSL-1.0
#pragma once
// A D-dimensional grid of devices. Axes are listed outermost first; rank r has coordinates in row-major order.
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/base/strong_id.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cantle {

/// One axis: a name (letters, digits, underscore; not starting with a digit) and a size of at least 1.
struct mesh_axis {
    std::string name;
    std::int64_t size = 1;
    bool operator==(mesh_axis const&) const = default;
};

/// The most axes a mesh may have; layouts store one byte per axis.
inline constexpr std::size_t max_mesh_axes = 8;
/// The most devices of a mesh: a bound against typing errors and overflow, far above every machine.
inline constexpr std::int64_t max_mesh_devices = std::int64_t{1} << 24;

class device_mesh {
public:
    device_mesh() = default;
    /// Throws bad_mesh for a size below 1 or more than max_mesh_axes, bad_axis_names for empty, doubled or ill-formed names.
    explicit device_mesh(std::vector<mesh_axis> axes) : axes_(std::move(axes)) { check(); }

    /// "4x8" with names "dp,tp"; empty names give "a0,a1,...". Throws bad_mesh, bad_axis_names.
    static device_mesh parse(std::string_view sizes, std::string_view names = {});

    std::size_t dims() const { return axes_.size(); }
    std::int64_t size(std::size_t axis) const { return axes_[axis].size; }
    std::int64_t size(axis_id a) const { return axes_[a.value].size; }
    std::string const& name(std::size_t axis) const { return axes_[axis].name; }
    std::vector<mesh_axis> const& axes() const { return axes_; }
    /// Number of devices.
    std::int64_t device_count() const {
        std::int64_t n = 1;
        for (auto const& a : axes_) n *= a.size;
        return n;
    }
    /// Distance in ranks between neighbours along that axis.
    std::int64_t stride(std::size_t axis) const {
        std::int64_t n = 1;
        for (std::size_t i = axis + 1; i < axes_.size(); ++i) n *= axes_[i].size;
        return n;
    }
    /// Coordinate of `rank` on `axis`.
    std::int64_t coordinate(std::int64_t rank, std::size_t axis) const { return rank / stride(axis) % axes_[axis].size; }
    /// The axis of that name. Throws unknown_axis with the names there are.
    axis_id find(std::string_view name) const {
        for (std::size_t i = 0; i < axes_.size(); ++i)
            if (axes_[i].name == name) return axis_id{static_cast<std::uint32_t>(i)};
        std::string known;
        for (auto const& a : axes_) known += (known.empty() ? "" : ", ") + a.name;
        throw error(error_code::unknown_axis, "axis '" + std::string(name) + "'", "the mesh has no axis of that name",
                    "use one of: " + known);
    }
    /// "4x8 (dp, tp)".
    std::string text() const {
        std::string s, n;
        for (auto const& a : axes_) {
            s += (s.empty() ? "" : "x") + std::to_string(a.size);
            n += (n.empty() ? "" : ", ") + a.name;
        }
        return s + " (" + n + ")";
    }
    void feed(stable_hasher& h) const {
        h.add(axes_.size());
        for (auto const& a : axes_) h.add(a.name).add(a.size);
    }
    bool operator==(device_mesh const&) const = default;

private:
    std::vector<mesh_axis> axes_;
    void check() const;
};

inline void device_mesh::check() const {
    if (axes_.empty() || axes_.size() > max_mesh_axes)
        throw error(error_code::bad_mesh, "mesh of " + std::to_string(axes_.size()) + " axes", "the number of axes is out of range",
                    "give 1 to " + std::to_string(max_mesh_axes) + " axes");
    std::int64_t devices = 1;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        auto const& a = axes_[i];
        if (a.size < 1)
            throw error(error_code::bad_mesh, "mesh axis " + a.name, "its size is " + std::to_string(a.size), "give a size of at least 1");
        if (a.size > max_mesh_devices || (devices *= a.size) > max_mesh_devices)
            throw error(error_code::bad_mesh, "mesh axis " + a.name, "the mesh has more than 2^24 devices", "check the sizes");
        bool const well_formed = !a.name.empty() && !std::isdigit(static_cast<unsigned char>(a.name[0])) &&
            std::all_of(a.name.begin(), a.name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
        if (!well_formed)
            throw error(error_code::bad_axis_names, "axis name '" + a.name + "'",
                        "a name has letters, digits and underscores and starts with no digit", "rename the axis");
        for (std::size_t j = 0; j < i; ++j)
            if (axes_[j].name == a.name)
                throw error(error_code::bad_axis_names, "axis name '" + a.name + "'", "it is given twice",
                            "give every axis a name of its own");
    }
}

namespace detail {
inline std::vector<std::string> split_text(std::string_view text, char separator) {
    std::vector<std::string> parts(1);
    for (char c : text) {
        if (c == separator) parts.emplace_back();
        else parts.back() += c;
    }
    return parts;
}
}  // namespace detail

inline device_mesh device_mesh::parse(std::string_view sizes, std::string_view names) {
    std::vector<mesh_axis> axes;
    for (auto const& part : detail::split_text(sizes, 'x')) {
        bool const digits = !part.empty() && part.size() < 9 && part.find_first_not_of("0123456789") == std::string::npos;
        if (!digits)
            throw error(error_code::bad_mesh, "mesh '" + std::string(sizes) + "'", "'" + part + "' is not an axis size",
                        "write whole numbers joined by x, outermost first, as in 8 or 4x8");
        axes.push_back({"a" + std::to_string(axes.size()), std::stoll(part)});
    }
    if (!names.empty()) {
        auto const list = detail::split_text(names, ',');
        if (list.size() != axes.size())
            throw error(error_code::bad_axis_names, "axis names '" + std::string(names) + "'",
                        std::to_string(list.size()) + " names for " + std::to_string(axes.size()) + " axes",
                        "give one name per axis, joined by commas");
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i].name = list[i];
    }
    return device_mesh(std::move(axes));
}

}  // namespace cantle
