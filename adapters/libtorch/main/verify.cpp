// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/main/verify.hpp>

#include <adapters/cli/input.hpp>
#include <adapters/cli/standard_output.hpp>
#include <adapters/libtorch/oracle.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/plan/plan_json.hpp>

#include <cantle/rules/registry.hpp>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
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
        auto why = text.substr(at, text.find('\n', at) - at);
        if (auto const colon = why.find(": "); colon != std::string::npos) why.erase(0, colon + 2);  // the number is said again below
        throw error(error_code::capture_failed, "small instance of " + r.model,
                    why.empty() ? "its capture ended with status " + std::to_string(status) : why, "");
    }
    return read_graph_json(graph);
}

/// The whole text as a number of its kind; from_chars takes no blanks, no plus and nothing behind.
template <class Number>
Number number_of(std::string const& option, std::string const& text, std::string const& what) {
    Number n{};
    auto const end = std::from_chars(text.data(), text.data() + text.size(), n);
    bool const fits = end.ec == std::errc() && end.ptr == text.data() + text.size() && std::isfinite(static_cast<double>(n));
    if (!fits) throw error(error_code::bad_option, option + " '" + text + "'", "it is no " + what, "leave it out, or give one");
    return n;
}

verify_options options_of(verify_command const& c) {
    verify_options o;
    if (c.types != "float64" && c.types != "captured")
        throw error(error_code::bad_option, "--dtype " + c.types, "there is no such choice", "use float64 or captured");
    o.as_captured = c.types == "captured";
    if (c.ranks) o.ranks = number_of<std::int64_t>("--ranks", *c.ranks, "whole number of 64 bits");
    if (c.seed) o.seed = number_of<std::uint64_t>("--seed", *c.seed, "whole number from 0 to 2^64 - 1");
    if (c.tolerance) o.tolerance = number_of<double>("--tolerance", *c.tolerance, "finite number");
    return o;
}

void refuse_other_rules(sharding_plan const& plan, rule_registry const& rules) {
    stable_hasher h;
    rules.feed(h);
    if (auto const hash = h.finish(); plan.made_from.rules != hash)
        throw error(error_code::foreign_plan, "plan", "its rules have the hash " + plan.made_from.rules.hex() + ", these " + hash.hex(),
                    "plan this graph again with these rules");
}

/// Names in a plan are for readers; a reader who sees another name than the graph's looks at another graph.
void refuse_other_names(std::string const& text, training_graph const& g) {
    auto const nodes = nlohmann::json::parse(text).at("nodes");
    for (vertex v = 0; v < g.size() && v < nodes.size(); ++v) {
        auto const name = nodes[v].find("name");
        if (name == nodes[v].end() || *name == g[v].name) continue;
        throw error(error_code::foreign_plan, "plan", "it calls vertex " + std::to_string(v) + " " + name->dump() + ", the graph '" +
                                                          g[v].name + "'",
                    "plan this graph again, or give the graph that the plan was made for");
    }
}

}  // namespace

CLI::App* describe(CLI::App& app, verify_command& c) {
    auto* const sub = app.add_subcommand("verify", "Run a small instance of a planned model on thread ranks and compare every gradient");
    sub->add_option("PLAN", c.plan, "Plan file as cantle plan -o writes it")->required()->type_name("FILE");
    sub->add_option("GRAPH", c.graph, "The graph it was made for; - reads stdin")->required()->type_name("FILE");
    auto const as_typed = [sub](std::string const& name, std::optional<std::string>& to, std::string const& what) {
        sub->add_option_function<std::string>(name, [&to](std::string const& text) { to = text; }, what)->type_name("N");
    };
    as_typed("--ranks", c.ranks, "Thread ranks (default: the most up to 8 that the mesh can shrink to)");
    sub->add_option("--dtype", c.types, "float64, or captured: the element types of the graph")->capture_default_str();
    as_typed("--seed", c.seed, "Of parameters, inputs and random ops (default: 1)");
    as_typed("--tolerance", c.tolerance, "Largest relative difference to one rank (default: 1e-9 in float64)");
    sub->add_flag("--all", c.all, "One row per gradient instead of one per kind of layer");
    sub->add_flag("--json", c.json, "The result for machines");
    sub->add_option("--door", c.door, "A word of the command that captures models written in Python; repeated")
        ->group("")->take_all()->expected(1)->allow_extra_args(false)->delimiter('\0');
    return sub;
}

int run(verify_command const& c) {
    auto const options = options_of(c);
    auto const text = read_file(c.plan);
    auto const plan = plan_from_json(text, c.plan);
    auto const graph = cli::read_graph(c.graph);
    refuse_foreign(plan, graph, plan.mesh);
    refuse_other_rules(plan, standard_registry());
    refuse_other_names(text, graph);
    at::set_num_threads(1);  // ranks are the threads
    auto const result = verify(plan, graph, standard_registry(), options, [&](model_request const& r) {
        return r.model.starts_with("hf:") ? capture_through_door(c.door, r) : capture_canonical(r);
    });
    cli::print(c.json ? json_of(result) : text_of(result, c.all));
    return result.passed() ? 0 : 1;
}

}  // namespace cantle::libtorch
