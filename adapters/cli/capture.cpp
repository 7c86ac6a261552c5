// SPDX-License-Identifier: BSL-1.0
// `cantle capture` and `cantle models` become the program cantle-libtorch: LibTorch takes 0.2 s to load, and planning does without.
#include <adapters/cli/commands.hpp>

#include <cantle/base/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cantle::cli {
namespace fs = std::filesystem;

void run(libtorch_command const& command) {
    fs::path program;
    if (char const* given = std::getenv("CANTLE_LIBTORCH_PROGRAM"); given && *given) program = given;
    else {
        std::error_code ec;
        program = fs::read_symlink("/proc/self/exe", ec).parent_path() / "cantle-libtorch";
    }
    auto const missing = [&](std::string const& why) {
        return error(error_code::adapter_missing, "program '" + program.string() + "'", why,
                     "build it with ./dev build, or name it in CANTLE_LIBTORCH_PROGRAM");
    };
    if (::access(program.c_str(), X_OK) != 0 || fs::is_directory(program))
        throw missing("it is not there or cannot be run; this command needs it");
    std::vector<std::string> arguments{program.string()};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    std::vector<char*> pointers;
    for (auto& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    throw missing("it cannot be started (" + std::generic_category().message(errno) + ")");
}

}  // namespace cantle::cli
