// SPDX-License-Identifier: BSL-1.0
// The program `cantle-libtorch`: what needs LibTorch. `cantle` starts it, so that `cantle` itself need not load 0.2 s of libraries.
// Exit status 0, or 2 with one numbered error line on stderr (check-rules and verify: 1 where something is not proven).
// Nothing half-written is left behind.
#include <adapters/libtorch/capture_models.hpp>
#include <adapters/libtorch/main/check_rules.hpp>
#include <adapters/libtorch/main/verify.hpp>
#include <cantle/base/error.hpp>
#include <cantle/graph/canonical.hpp>
#include <cantle/graph/graph_json.hpp>
#include <cantle/graph/mixed_precision.hpp>
#include <cantle/graph/validate.hpp>
#include <cantle/report/figures.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using cantle::error;
using cantle::error_code;

/// "dim=64" -> {"dim", 64}
std::pair<std::string, std::int64_t> parse_size(std::string const& text) {
    auto const equals = text.find('=');
    auto const refuse = [&](std::string const& problem) {
        throw error(error_code::bad_option, "--set " + text, problem, "write it as dim=64");
    };
    if (equals == std::string::npos || equals == 0) refuse("it is not of the form key=value");
    std::int64_t value = 0;
    auto const* const first = text.data() + equals + 1;
    auto const* const last = text.data() + text.size();
    auto const [end, problem] = std::from_chars(first, last, value);
    if (problem != std::errc() || end != last || first == last) refuse("its value is no whole number");
    return {text.substr(0, equals), value};
}

/// LibTorch counts elements in 64 bits and multiplies several sizes; beyond this they are no model's.
void check_size(std::string const& subject, std::int64_t value) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (value > most) throw error(error_code::bad_option, subject, "it is above " + std::to_string(most), "give a smaller number");
}

void check_path(std::string const& path) {
    if (path.empty()) throw error(error_code::bad_option, "--output ''", "the file name is empty", "name the file to write");
    if (path == "-")
        throw error(error_code::bad_option, "--output '-'", "'-' stands for standard input only",
                    "write /dev/stdout for standard output, or ./- for a file of that name");
}

/// CLI11 takes a number beyond 64 bits for the largest that fits.
std::string fits_64_bits(std::string const& text) {
    std::int64_t value = 0;
    auto const end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc::result_out_of_range ? text + " is beyond 64 bits" : "";
}

/// The first line of what LibTorch says, which may go on with a backtrace, without what could steer a terminal.
std::string first_line(std::string_view text) { return cantle::visible_text(text.substr(0, text.find('\n'))); }

struct capture_options {
    cantle::libtorch::model_request request;
    std::vector<std::string> sizes;
    std::string path;
    bool raw = false;
};

void run_capture(capture_options const& options) {
    using clock = std::chrono::steady_clock;
    auto const seconds = [](clock::duration d) { return std::chrono::duration<double>(d).count(); };
    auto request = options.request;
    check_size("--batch " + std::to_string(request.batch), request.batch);
    check_size("--seq " + std::to_string(request.sequence), request.sequence);
    for (auto const& s : options.sizes) {
        request.overrides.push_back(parse_size(s));
        check_size("--set " + s, request.overrides.back().second);
    }
    check_path(options.path);
    auto const start = clock::now();
    auto graph = cantle::libtorch::capture_model(request);
    auto const captured = clock::now();
    auto const captured_nodes = graph.size();
    if (request.precision == "bf16") graph = cantle::mixed_precision(graph);
    if (!options.raw) graph = cantle::canonicalize(std::move(graph));
    cantle::validate(graph);
    auto const canonical = clock::now();
    cantle::write_graph_json(graph, options.path);
    // What was done to the graph after capture: with --raw its precision at most.
    char const* const form = !options.raw ? "canonical form" : request.precision == "bf16" ? "mixed precision" : "as captured";
    std::fprintf(stderr, "captured %s: %zu nodes in %.3f s, %s %zu nodes in %.3f s, written to %s in %.3f s\n", request.model.c_str(),
                 captured_nodes, seconds(captured - start), form, graph.size(), seconds(canonical - captured),
                 cantle::visible_text(options.path).c_str(), seconds(clock::now() - canonical));
}

void print_models() {
    for (auto const& m : cantle_models::list_models()) {
        std::printf("%-12s %s\n            ", m.name.c_str(), m.what.c_str());
        for (auto const& [key, value] : m.defaults) std::printf(" %s=%lld", key.c_str(), static_cast<long long>(value));
        std::printf("\n");
    }
}

int run(int argc, char** argv) {
    CLI::App app("Captures training graphs from LibTorch models, without a GPU.", "cantle-libtorch");
    app.require_subcommand(1);
    capture_options options;
    auto* const capture = app.add_subcommand("capture", "Capture an example model's joint forward-backward graph as JSON");
    capture->add_option("model", options.request.model, "Name of the model (see: cantle-libtorch models)")->required();
    capture->add_option("--batch", options.request.batch, "Samples in the global batch")
        ->required()
        ->check(CLI::Validator(fits_64_bits, "", ""));
    capture->add_option("--seq", options.request.sequence, "Tokens in a sequence")
        ->required()
        ->check(CLI::Validator(fits_64_bits, "", ""));
    capture->add_option("--recipe", options.request.recipe, "train: loss and gradients; table3: ends at the logits, with a tangent")
        ->capture_default_str();
    capture->add_option("--precision", options.request.precision, "bf16: fp32 parameters, bf16 compute, fp32 gradients; fp32")
        ->capture_default_str();
    capture->add_option("--set", options.sizes, "Another size of the model, as dim=64 (may be repeated)");
    capture->add_flag("--raw", options.raw, "Leave out the canonical form");
    capture->add_option("-o,--output", options.path, "File to write")->required();
    auto* const models = app.add_subcommand("models", "List the example models and their sizes");
    cantle::libtorch::check_rules_command rules;
    auto* const check_rules = cantle::libtorch::describe(app, rules);
    cantle::libtorch::verify_command verification;
    auto* const verify = cantle::libtorch::describe(app, verification);
    try {
        app.parse(argc, argv);
    } catch (CLI::CallForHelp const& help) {
        return app.exit(help);
    } catch (CLI::CallForAllHelp const& help) {
        return app.exit(help);
    } catch (CLI::ParseError const& e) {
        std::string text(e.what());
        for (auto& c : text)
            if (c == '\n') c = ' ';
        throw error(error_code::bad_option, "command line", text,
                    verify->count() > 0 ? "see `cantle verify --help`" : "see cantle-libtorch --help");
    }
    if (check_rules->parsed()) return cantle::libtorch::run(rules);
    if (verify->parsed()) return cantle::libtorch::run(verification);
    if (models->parsed()) print_models();
    else run_capture(options);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (error const& e) {
        std::string line(e.what());
        for (auto& c : line)
            if (c == '\n' || c == '\r') c = ' ';
        std::fprintf(stderr, "%s\n", cantle::visible_text(line).c_str());
    } catch (std::bad_alloc const&) {
        std::fputs("cantle error 503: capture: the memory does not suffice. Remedy: capture fewer layers or smaller sizes\n", stderr);
    } catch (std::exception const& e) {
        auto const line = error(error_code::capture_failed, "capture", first_line(e.what()),
                                "check --batch, --seq and --set: LibTorch refuses what these sizes give");
        std::fprintf(stderr, "%s\n", line.what());
    }
    return 2;
}
