// SPDX-License-Identifier: BSL-1.0
// `cantle capture`, `models`, `check-rules` and `verify` become other programs: LibTorch takes 0.2 s to load, and planning does without.
// Models of LibTorch are captured by cantle-libtorch; models named hf:NAME are Python code, captured by the script of the Python door
// (verify starts it in its turn).
#include <adapters/cli/commands.hpp>

#include <cantle/base/error.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#ifndef CANTLE_PYTHON
#define CANTLE_PYTHON ""
#endif

namespace cantle::cli {
namespace fs = std::filesystem;
namespace {

fs::path own_folder() {
    std::error_code ec;
    return fs::read_symlink("/proc/self/exe", ec).parent_path();
}

std::string given_or(char const* variable, std::string otherwise) {
    char const* const given = std::getenv(variable);
    return given && *given ? given : otherwise;
}

error missing(std::string const& program, std::string const& why, std::string const& remedy) {
    return error(error_code::adapter_missing, "program '" + program + "'", why, remedy);
}

/// The words that start something; the first is the program. `script`: what must be there for it, too.
struct started {
    std::vector<std::string> words;
    std::string remedy, script;
};

started libtorch_program() {
    return {{given_or("CANTLE_LIBTORCH_PROGRAM", (own_folder() / "cantle-libtorch").string())},
            "build it with ./dev build, or name it in CANTLE_LIBTORCH_PROGRAM", ""};
}

/// Python, alone with its own packages (-I), and the door's script.
started python_door() {
    auto const script = (own_folder() / "cantle_python" / "capture_hf.py").string();
    return {{given_or("CANTLE_PYTHON", CANTLE_PYTHON), "-I", script},
            "build the door with ./dev build (it needs LibTorch's wheel and Python.h), or name an interpreter in CANTLE_PYTHON", script};
}

void check(started const& s) {
    auto const& program = s.words.front();
    if (::access(program.c_str(), X_OK) != 0 || fs::is_directory(program))
        throw missing(program, "it is not there or cannot be run; this command needs it", s.remedy);
    if (!s.script.empty() && !fs::exists(s.script)) throw missing(s.script, "it is not there; models of Hugging Face need it", s.remedy);
}

[[noreturn]] void become(started s, std::vector<std::string> const& arguments) {
    check(s);
    s.words.insert(s.words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (auto& w : s.words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    std::signal(SIGPIPE, SIG_DFL);  // ignored signals stay ignored in what is started
    ::execv(pointers.front(), pointers.data());
    throw missing(s.words.front(), "it cannot be started (" + std::generic_category().message(errno) + ")", s.remedy);
}

/// Runs it to its end, in a process of its own.
int status_of(started const& s, std::vector<std::string> const& arguments) {
    check(s);
    auto const child = ::fork();
    if (child == 0) {
        try {
            become(s, arguments);
        } catch (error const&) {
            ::_exit(127);
        }
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
        throw missing(s.words.front(), "it cannot be started", s.remedy);
    return WEXITSTATUS(status);
}

}  // namespace

void run(libtorch_command const& command) {
    auto const& arguments = command.arguments;
    auto const of_hugging_face = [](std::string const& a) { return a.starts_with("hf:"); };
    if (arguments.front() == "capture" && std::any_of(arguments.begin(), arguments.end(), of_hugging_face))
        become(python_door(), arguments);
    bool const list = arguments == std::vector<std::string>{"models"};
    if (list && fs::exists(python_door().script)) {
        if (int const status = status_of(libtorch_program(), arguments); status != 0) std::exit(status);
        become(python_door(), arguments);
    }
    auto program = libtorch_program();
    if (arguments.front() == "verify") {
        program.words.push_back("verify");
        for (auto const& word : python_door().words) program.words.push_back("--door=" + word);
        become(program, {arguments.begin() + 1, arguments.end()});
    }
    become(program, arguments);
}

}  // namespace cantle::cli
