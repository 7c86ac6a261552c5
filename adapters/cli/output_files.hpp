// SPDX-License-Identifier: BSL-1.0
#pragma once
// Several output files that appear together: all texts are first written beside their places, then renamed over them. Whatever fails
// before the first rename leaves every old file as it was and no new one behind. Between prepare() and commit() a command prints its
// report, so that a report that cannot be printed leaves no files either.
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

    /// Name a file that the command reads ("-": stdin), before any output: none of them may be written over.
    void keep(std::string const& input);
    /// Name a file to write later, so that a hopeless path is known before the work starts. `option` is how the user named it. Errors:
    /// file_not_written (102), bad_option (701) where the name is empty or "-", a file is named twice, or is one to keep.
    void reserve(std::string const& option, std::string const& path);
    /// Give the text of a reserved file.
    void set(std::filesystem::path const& path, std::string text);
    /// Write all texts beside their places; what is no regular file (/dev/stdout, a pipe) gets its text now. Errors: file_not_written.
    void prepare();
    /// Let all files appear. Errors: file_not_written (102).
    void commit();

private:
    struct file {
        std::filesystem::path path, target, temporary;
        std::string text;
        bool direct = false;  ///< no regular file: written to at once
    };
    std::vector<file> files_;
    std::vector<std::filesystem::path> kept_;
};

}  // namespace cantle::cli
