// SPDX-License-Identifier: BSL-1.0
#pragma once
// Text for standard output, out at once: a command must know that its report arrived before it lets files appear.
#include <cantle/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace cantle::cli {

/// Errors: file_not_written (102). A reader that has closed its pipe (`| head`) has what it wanted: no error.
inline void print(std::string_view text) {
    errno = 0;
    bool const good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (good || errno == EPIPE) {
        std::clearerr(stdout);
        return;
    }
    throw error(error_code::file_not_written, "stdout", "it cannot be written (" + std::generic_category().message(errno) + ")",
                "check where the output goes");
}

}  // namespace cantle::cli
