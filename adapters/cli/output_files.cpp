// SPDX-License-Identifier: BSL-1.0
#include <adapters/cli/output_files.hpp>

#include <cantle/base/atomic_file.hpp>
#include <cantle/base/error.hpp>

#include <unistd.h>

#include <system_error>
#include <utility>

namespace cantle::cli {
namespace fs = std::filesystem;
namespace {

/// The same file, however it is named: also a hard link, and a place where nothing is yet.
bool same_file(fs::path const& a, fs::path const& b) {
    std::error_code ec;
    if (fs::equivalent(a, b, ec) && !ec) return true;
    auto const x = fs::weakly_canonical(a, ec), y = fs::weakly_canonical(b, ec);
    return !x.empty() && x == y;
}

error refused(std::string const& subject, std::string const& problem, std::string const& remedy) {
    return error(error_code::bad_option, subject, problem, remedy);
}

}  // namespace

output_files::~output_files() {
    std::error_code ignored;
    for (auto const& f : files_)
        if (!f.temporary.empty()) fs::remove(f.temporary, ignored);
}

void output_files::keep(std::string const& input) {
    std::error_code ec;
    if (fs::is_regular_file(input == "-" ? "/dev/stdin" : input, ec)) kept_.push_back(input == "-" ? "/dev/stdin" : input);
}

void output_files::reserve(std::string const& option, std::string const& name) {
    if (name.empty()) throw refused(option + " ''", "the file name is empty", "name the file to write, or leave the option out");
    if (name == "-")
        throw refused(option + " '-'", "'-' stands for standard input only",
                      "write /dev/stdout for standard output, or ./- for a file of that name");
    fs::path const path = name;
    std::error_code ec;
    file f;
    f.path = path;
    auto const status = fs::status(path, ec);
    f.direct = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
    if (fs::is_directory(status)) detail::file_write_error(path, "it is a folder");
    if (path.filename().empty()) detail::file_write_error(path, "the name is empty");
    f.target = detail::final_target(path);
    auto const folder = f.target.has_parent_path() ? f.target.parent_path() : fs::path(".");
    if (!f.direct) {
        if (!fs::is_directory(folder, ec)) detail::file_write_error(path, "the folder '" + folder.string() + "' does not exist");
        if (::access(folder.c_str(), W_OK | X_OK) != 0)
            detail::file_write_error(path, "the folder '" + folder.string() + "' may not be written");
        for (auto const& other : files_)
            if (same_file(other.target, f.target))
                throw refused("file '" + name + "'", "two outputs have this name", "give each output a name of its own");
        for (auto const& input : kept_)
            if (same_file(input, f.target))
                throw refused("file '" + name + "'", "this command reads it, and " + option + " would write over it",
                              "give the output a name of its own");
    }
    files_.push_back(std::move(f));
}

void output_files::set(fs::path const& path, std::string text) {
    for (auto& f : files_)
        if (f.path == path) f.text = std::move(text);
}

void output_files::prepare() {
    for (auto& f : files_)
        if (!f.direct) f.temporary = detail::write_beside(f.path, f.target, f.text);
    for (auto const& f : files_)
        if (f.direct) write_file_atomically(f.path, f.text);
}

void output_files::commit() {
    for (auto& f : files_) {
        if (f.direct) continue;
        std::error_code ec;
        fs::rename(f.temporary, f.target, ec);
        if (ec) detail::file_write_error(f.path, ec.message());
        f.temporary.clear();
    }
    files_.clear();
}

}  // namespace cantle::cli
