// SPDX-License-Identifier: BSL-1.0
#pragma once
// Whole files in, whole files out. A file is written beside its place and renamed over it, so that a reader sees the old text or the new
// text and never half of it; a failure leaves nothing behind.
#include <cantle/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace cantle {

namespace detail {
[[noreturn]] inline void file_read_error(std::filesystem::path const& path, std::string const& why) {
    throw error(error_code::file_not_found, "file '" + path.string() + "'", "cannot be read (" + why + ")",
                "check the path and the rights");
}
[[noreturn]] inline void file_write_error(std::filesystem::path const& path, std::string const& why) {
    throw error(error_code::file_not_written, "file '" + path.string() + "'", "cannot be written (" + why + ")",
                "check that its folder exists, may be written and has space");
}
inline std::string errno_text(int code) { return code ? std::generic_category().message(code) : "input/output error"; }

/// Writes and closes; returns 0 or an errno (EIO where the library gave none).
inline int write_and_close(std::FILE* file, std::string_view text) {
    errno = 0;
    bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    ok = std::fflush(file) == 0 && ok;  // a full disk may show only here
    int const code = ok ? 0 : (errno ? errno : EIO);
    bool const closed = std::fclose(file) == 0;
    return code ? code : (closed ? 0 : (errno ? errno : EIO));
}

/// Where links lead, also where the last one leads to a file that is not there yet.
inline std::filesystem::path final_target(std::filesystem::path const& path) {
    namespace fs = std::filesystem;
    auto target = path;
    std::error_code ec;
    for (int links = 0; fs::is_symlink(fs::symlink_status(target, ec)); ++links) {
        if (links == 40) file_write_error(path, "it is a link that leads in a circle");
        auto const next = fs::read_symlink(target, ec);
        if (ec) file_write_error(path, ec.message());
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    return target;
}

/// Writes a new temporary file in the folder of `target`, with the rights of `target` where that exists, and returns its path. Errors name
/// `path`, the file as the caller knows it; nothing is left behind then.
inline std::filesystem::path write_beside(std::filesystem::path const& path, std::filesystem::path const& target, std::string_view text) {
    namespace fs = std::filesystem;
    std::FILE* file = nullptr;
    fs::path temporary;
    for (int attempt = 0; !file && attempt < 1000; ++attempt) {  // "x": never a file that someone else is writing
        temporary = target.parent_path() / ("." + target.filename().string() + ".tmp" + std::to_string(attempt));
        errno = 0;
        file = std::fopen(temporary.string().c_str(), "wbx");
        if (!file && errno != EEXIST) file_write_error(path, errno_text(errno));
    }
    if (!file) file_write_error(path, "too many temporary files of that name");
    std::error_code ec;
    if (int const code = write_and_close(file, text)) {
        fs::remove(temporary, ec);
        file_write_error(path, errno_text(code));
    }
    if (auto const old = fs::status(target, ec); fs::exists(old)) fs::permissions(temporary, old.permissions(), ec);  // best effort
    return temporary;
}
}  // namespace detail

/// The whole content of a file (or pipe). Errors: file_not_found (101) where it does not exist, is a folder or cannot be read.
inline std::string read_file(std::filesystem::path const& path) {
    std::error_code ec;
    auto const status = std::filesystem::status(path, ec);
    if (!std::filesystem::exists(status)) detail::file_read_error(path, "it does not exist");
    if (std::filesystem::is_directory(status)) detail::file_read_error(path, "it is a folder");
    std::FILE* file = std::fopen(path.string().c_str(), "rb");
    if (!file) detail::file_read_error(path, detail::errno_text(errno));
    std::string text;
    auto const size = std::filesystem::file_size(path, ec);
    if (!ec) text.reserve(static_cast<std::size_t>(size) + 1);
    std::string block(1 << 16, '\0');
    std::size_t n = 0;
    while ((n = std::fread(block.data(), 1, block.size(), file)) > 0) text.append(block, 0, n);
    bool const failed = std::ferror(file) != 0;
    int const code = errno;
    std::fclose(file);
    if (failed) detail::file_read_error(path, detail::errno_text(code));
    return text;
}

/// Replaces the file's content by `text` in one step: temporary file in the same folder, then rename. A link is followed. What is no
/// regular file (/dev/stdout, a pipe) is written to directly. Errors: file_not_written (102); then the old content is untouched.
inline void write_file_atomically(std::filesystem::path const& path, std::string_view text) {
    namespace fs = std::filesystem;
    std::error_code ec;
    auto const status = fs::status(path, ec);
    if (fs::is_directory(status)) detail::file_write_error(path, "it is a folder");
    if (path.filename().empty()) detail::file_write_error(path, "the name is empty");
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        std::FILE* file = std::fopen(path.string().c_str(), "wb");
        if (!file) detail::file_write_error(path, detail::errno_text(errno));
        if (int const code = detail::write_and_close(file, text)) detail::file_write_error(path, detail::errno_text(code));
        return;
    }
    auto const target = detail::final_target(path);
    auto const temporary = detail::write_beside(path, target, text);
    fs::rename(temporary, target, ec);
    if (!ec) return;
    std::error_code ignored;
    fs::remove(temporary, ignored);
    detail::file_write_error(path, ec.message());
}

}  // namespace cantle
