// SPDX-License-Identifier: BSL-1.0
#include <adapters/cli/output_files.hpp>

#include <cantle/base/atomic_file.hpp>
#include <cantle/base/error.hpp>

#include <unistd.h>

#include <system_error>
#include <utility>

namespace cantle::cli {
namespace fs = std::filesystem;

output_files::~output_files() {
    std::error_code ignored;
    for (auto const& f : files_)
        if (!f.temporary.empty()) fs::remove(f.temporary, ignored);
}

void output_files::reserve(fs::path const& path) {
    std::error_code ec;
    file f;
    f.path = path;
    auto const status = fs::status(path, ec);
    f.direct = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
    if (fs::is_directory(status)) detail::file_write_error(path, "it is a folder");
    if (path.filename().empty()) detail::file_write_error(path, "the name is empty");
    f.target = fs::is_symlink(fs::symlink_status(path, ec)) ? fs::weakly_canonical(path, ec) : path;
    auto const folder = f.target.has_parent_path() ? f.target.parent_path() : fs::path(".");
    if (!f.direct) {
        if (!fs::is_directory(folder, ec)) detail::file_write_error(path, "the folder '" + folder.string() + "' does not exist");
        if (::access(folder.c_str(), W_OK | X_OK) != 0)
            detail::file_write_error(path, "the folder '" + folder.string() + "' may not be written");
        for (auto const& other : files_)
            if (fs::weakly_canonical(other.target, ec) == fs::weakly_canonical(f.target, ec))
                throw error(error_code::bad_option, "file '" + path.string() + "'", "two outputs have this name",
                            "give each output a name of its own");
    }
    files_.push_back(std::move(f));
}

void output_files::set(fs::path const& path, std::string text) {
    for (auto& f : files_)
        if (f.path == path) f.text = std::move(text);
}

void output_files::commit() {
    for (auto& f : files_) {
        if (f.direct) continue;
        auto const place = f.target.parent_path() / ("." + f.target.filename().string() + ".cantle" + std::to_string(::getpid()));
        write_file_atomically(place, f.text);
        f.temporary = place;
        std::error_code ec;
        if (auto const old = fs::status(f.target, ec); fs::exists(old)) fs::permissions(place, old.permissions(), ec);
    }
    for (auto& f : files_) {
        if (f.direct) {
            write_file_atomically(f.path, f.text);
            continue;
        }
        std::error_code ec;
        fs::rename(f.temporary, f.target, ec);
        if (ec) detail::file_write_error(f.path, ec.message());
        f.temporary.clear();
    }
    files_.clear();
}

}  // namespace cantle::cli
