// SPDX-License-Identifier: BSL-1.0
#include <adapters/cli/compressed_file.hpp>
#include <adapters/cli/problem_file.hpp>

#include <cantle/base/json_fields.hpp>
#include <cantle/mrf/conflict.hpp>
#include <cantle/mrf/factor_graph_json.hpp>

#include <utility>

namespace cantle::cli {
namespace {

class labels_reader : detail::json_fields {
public:
    explicit labels_reader(std::string const& source) : json_fields(source, "; as `cantle solve -o` writes it") {}

    std::optional<std::vector<mrf::label>> read(std::string const& text, problem_file const& p) {
        auto const d = parse(text);
        if (!d.is_object()) fail("solution", "is missing");
        if (d.contains("labels") || !p.instance) {
            auto const* const field = d.contains("labels") ? "labels" : "solution";
            auto labels = numbers(required(d, field), field, p.graph.variable_count());
            for (std::uint32_t v = 0; v < labels.size(); ++v)
                if (labels[v] >= p.graph.label_count(mrf::variable_id(v)))
                    fail(field, "has label " + std::to_string(labels[v]) + " for variable " + std::to_string(v) + ", which has " +
                                    std::to_string(p.graph.label_count(mrf::variable_id(v))));
            return labels;
        }
        auto const strategies = numbers(required(d, "solution"), "solution", p.instance->variable_of.size());
        auto labels = p.instance->labels_of(strategies);
        if (labels && p.solution(*labels) != strategies) return std::nullopt;  // nodes of one variable that differ
        return labels;
    }

private:
    std::vector<std::uint32_t> numbers(json const& list, char const* field, std::size_t count) {
        std::vector<std::uint32_t> out;
        for (auto const& x : array(list, field)) out.push_back(static_cast<std::uint32_t>(integer(x, field, 0, 4294967295)));
        if (out.size() != count) fail(field, "has " + std::to_string(out.size()) + " entries, not " + std::to_string(count));
        return out;
    }
};

}  // namespace

std::vector<std::uint32_t> problem_file::solution(std::vector<mrf::label> const& labels) const {
    return instance ? instance->strategies_of(labels) : std::vector<std::uint32_t>(labels.begin(), labels.end());
}

void problem_file::refuse_as_infeasible() const {
    auto const conflict = mrf::minimal_conflict(graph);
    std::string text;
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < conflict.size() && i < most; ++i) {
        auto const called = [&](mrf::variable_id v) {
            return names[v.value].empty() ? std::to_string(v.value) : "'" + names[v.value] + "'";
        };
        auto const& e = graph.edge(conflict[i]);
        text += (i ? ", " : "") + called(e.u) + " with " + called(e.v);
    }
    if (conflict.size() > most) text += " and " + std::to_string(conflict.size() - most) + " more";
    throw error(
        error_code::unsatisfiable_constraint, name,
        conflict.size() == 1 ? "no labelling is allowed; this coupling forbids all pairs that the others leave: " + text
                             : "no labelling is allowed; these " + std::to_string(conflict.size()) +
                                   " couplings cannot hold together, any fewer can: " + text,
        "allow a pair of labels of one of them");
}

problem_file read_problem(std::string const& path, bool clustered, stage_clock& clock) {
    clock.enter("read");
    problem_file p;
    p.name = path == "-" ? std::string("stdin") : path;
    auto const text = read_maybe_compressed(path);
    bool const own_format =
        text.find("\"cantle-factor-graph\"") != std::string::npos && text.find("\"ap-instance-1\"") == std::string::npos;
    if (own_format) {
        if (!clustered) throw error(error_code::bad_option, "--unclustered", "a factor graph has no clusters", "leave it out");
        auto read = mrf::factor_graph_from_json(text, p.name);
        clock.enter("build");
        p.graph = std::move(read.graph);
        p.names = std::move(read.names);
        return p;
    }
    auto const file = mrf::read_ap_file(text, p.name);
    clock.enter("build");
    p.instance = mrf::build_ap_instance(file, {clustered});
    p.graph = std::move(p.instance->graph);
    p.names.resize(p.graph.variable_count());
    for (std::size_t v = file.nodes.size(); v-- > 0;) p.names[p.instance->variable_of[v]] = file.nodes[v].name;
    return p;
}

std::optional<std::vector<mrf::label>> read_labels(std::string const& path, problem_file const& problem) {
    return labels_reader(path).read(read_maybe_compressed(path), problem);
}

}  // namespace cantle::cli
