// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/main/verify.hpp>

#include <adapters/libtorch/oracle.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/plan/plan_json.hpp>

#include <ATen/Parallel.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace cantle::libtorch {
namespace fs = std::filesystem;
namespace {

/// A folder of its own, removed with all that is in it.
class scratch_folder {
public:
    scratch_folder() {
        auto name = (fs::temp_directory_path() / "cantle-verify-XXXXXX").string();
        if (!::mkdtemp(name.data()))
            throw error(error_code::file_not_written, name, "the folder cannot be made", "name a folder that can be written in TMPDIR");
        path_ = name;
    }
    ~scratch_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    scratch_folder(scratch_folder const&) = delete;
    scratch_folder& operator=(scratch_folder const&) = delete;
    fs::path operator/(char const* name) const { return path_ / name; }

private:
    fs::path path_;
};

/// Runs the words with stderr in a file; the exit status, 127 where they cannot be started.
int status_of(std::vector<std::string> words, fs::path const& errors) {
    std::vector<char*> pointers;
    for (auto& w : words) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    auto const child = ::fork();
    if (child == 0) {
        int const file = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file >= 0) ::dup2(file, STDERR_FILENO);
        ::dup2(STDERR_FILENO, STDOUT_FILENO);  // what it prints is no part of the report
        ::execv(pointers.front(), pointers.data());
        ::_exit(127);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
    return WEXITSTATUS(status);
}

training_graph capture_through_door(std::vector<std::string> const& door, model_request const& r) {
    if (door.empty())
        throw error(error_code::adapter_missing, "model " + r.model, "models of Hugging Face are captured by Python",
                    "start this command as cantle verify");
    scratch_folder const scratch;
    auto const graph = scratch / "graph.json", errors = scratch / "errors.txt";
    auto words = door;
    words.insert(words.end(), {"capture", r.model, "--batch", std::to_string(r.batch), "--seq", std::to_string(r.sequence), "--recipe",
                               r.recipe, "--precision", r.precision, "-o", graph.string()});
    for (auto const& [key, value] : r.overrides) words.insert(words.end(), {"--set", key + "=" + std::to_string(value)});
    int const status = ::access(door.front().c_str(), X_OK) == 0 ? status_of(words, errors) : 127;
    if (status == 127)
        throw error(error_code::adapter_missing, "program '" + door.front() + "'", "it cannot be started",
                    "build the door with ./dev build");
    if (status != 0) {
        auto const text = fs::exists(errors) ? read_file(errors) : std::string();
        auto const at = std::min(text.rfind("cantle error"), text.size());
        auto const why = text.substr(at, text.find('\n', at) - at);
        throw error(error_code::capture_failed, "small instance of " + r.model,
                    why.empty() ? "its capture ended with status " + std::to_string(status) : why, "");
    }
    return read_graph_json(graph);
}

}  // namespace

CLI::App* describe(CLI::App& app, verify_command& c) {
    auto* const sub = app.add_subcommand("verify", "Run a small instance of a planned model on thread ranks and compare every gradient");
    sub->add_option("PLAN", c.plan, "Plan file as cantle plan -o writes it")->required()->type_name("FILE");
    sub->add_option("GRAPH", c.graph, "The graph it was made for")->required()->type_name("FILE");
    sub->add_option("--ranks", c.options.ranks, "Thread ranks (default: the most up to 8 that the mesh can shrink to)")->type_name("N");
    sub->add_option("--dtype", c.types, "float64, or captured: the element types of the graph")->capture_default_str();
    sub->add_option("--seed", c.options.seed, "Of parameters, inputs and random ops")->capture_default_str();
    sub->add_option("--tolerance", c.options.tolerance, "Largest relative difference (default: 1e-9 in float64)");
    sub->add_flag("--all", c.all, "One row per gradient instead of one per kind of layer");
    sub->add_flag("--json", c.json, "The result for machines");
    sub->add_option("--door", c.door, "A word of the command that captures models written in Python; repeated")
        ->group("")->take_all()->expected(1)->allow_extra_args(false)->delimiter('\0');
    return sub;
}

int run(verify_command const& c) {
    if (c.types != "float64" && c.types != "captured")
        throw error(error_code::bad_option, "--dtype " + c.types, "there is no such choice", "use float64 or captured");
    auto options = c.options;
    options.as_captured = c.types == "captured";
    auto const plan = read_plan_json(c.plan);
    auto const graph = read_graph_json(c.graph);
    at::set_num_threads(1);  // ranks are the threads
    auto const result = verify(plan, graph, standard_registry(), options, [&](model_request const& r) {
        return r.model.starts_with("hf:") ? capture_through_door(c.door, r) : capture_canonical(r);
    });
    std::fputs((c.json ? json_of(result) : text_of(result, c.all)).c_str(), stdout);
    return result.passed() ? 0 : 1;
}

}  // namespace cantle::libtorch
