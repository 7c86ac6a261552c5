// SPDX-License-Identifier: BSL-1.0
#pragma once
// Several output files that appear together: all texts are first written beside their places, then renamed over them. Whatever fails
// before the first rename leaves every old file as it was and no new one behind.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cantle::cli {

class output_files {
public:
    output_files() = default;
    output_files(output_files const&) = delete;
    output_files& operator=(output_files const&) = delete;
    ~output_files();

    /// Name a file to write later, so that a hopeless path is known before the work starts. Errors: file_not_written (102), bad_option
    /// (701) where a file is named twice.
    void reserve(std::filesystem::path const& path);
    /// Give the text of a reserved file.
    void set(std::filesystem::path const& path, std::string text);
    /// Write all files. Errors: file_not_written (102).
    void commit();

private:
    struct file {
        std::filesystem::path path, target, temporary;
        std::string text;
        bool direct = false;  ///< no regular file (/dev/stdout, a pipe): written to at once
    };
    std::vector<file> files_;
};

}  // namespace cantle::cli
