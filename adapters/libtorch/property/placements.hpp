// SPDX-License-Identifier: BSL-1.0
#pragma once
// A plan without prices: where every tensor lies at every op and relay. What a failing case is shrunk in and written down as; the rest of
// the plan (moves, paths, inner collectives) follows from it.
#include <adapters/libtorch/property/run_case.hpp>

#include <cantle/rules/strategy.hpp>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::libtorch {

struct placed_node {
    std::vector<layout> operands, outputs;
    bool operator==(placed_node const&) const = default;
};

struct placements {
    device_mesh mesh;
    std::vector<placed_node> nodes;                     ///< [vertex]
    std::vector<std::pair<value_ref, layout>> relays;
    /// Paths that are not the shortest ones: the layouts on the way.
    std::map<std::tuple<shape, layout, layout>, std::vector<layout>> ways;
};

placements placements_of(training_graph const& g, sharding_plan const& p);

/// The plan of these placements. Nothing where a layout does not fit its tensor, an op has no such strategy, or no path leads somewhere.
std::optional<sharding_plan> plan_of(training_graph const& g, placements const& p);

/// Strategies of one vertex on a mesh, as (operands, outputs).
std::vector<placed_node> strategies_of(training_graph const& g, vertex v, device_mesh const& mesh);

/// A case as it is written down in a test: a built graph, layouts as text, numbers.
class written_case {
public:
    written_case(training_graph graph, std::string const& mesh);
    /// Layouts of a source (no operands), an op or a sink (operands only), as layout::parse reads them.
    written_case& place(value_ref v, std::vector<std::string> const& operands, std::vector<std::string> const& outputs);
    written_case& relay(value_ref v, std::string const& at);
    /// A tensor of shape `sizes` is moved from -> via... -> to.
    written_case& way(shape const& sizes, std::string const& from, std::vector<std::string> const& via, std::string const& to);
    written_case& data(std::string const& source, std::vector<double> const& numbers);
    /// The case; throws where its placements make no plan.
    run_case made() const;
    /// Empty where it holds, else what is wrong.
    std::string failure(tamper_programs const& tamper = {}) const;

private:
    training_graph graph_;
    placements p_;
    tensor_map data_;
};

/// `c` as a doctest test case that can be compiled (namespace cantle::libtorch; includes placements.hpp and graph/builder.hpp).
std::string text_of(run_case const& c, std::string const& title);

}  // namespace cantle::libtorch
