// SPDX-License-Identifier: BSL-1.0
// A graph type of one's own, planned without LibTorch and without converting it: the trainer's layers are a vector of structs, and three
// property maps tell cantle what it must know. The trainer also has an op of its own, for which it adds a rule.
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/planner.hpp>
#include <cantle/program/ready_programs.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <boost/iterator/counting_iterator.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace trainer {

/// What this trainer keeps of an op: its own words, not cantle's.
struct step {
    std::string kernel;
    std::vector<std::pair<int, int>> reads;    // (step, which result)
    std::vector<std::vector<std::int64_t>> result_sizes;
    std::vector<std::string> names = {};       // of what it reads, where the kernel's schema names it
    int gradient_of = -1;
};

struct tape {
    std::vector<step> steps;
    int add(step s) {
        steps.push_back(std::move(s));
        return static_cast<int>(steps.size()) - 1;
    }
};

// Boost's VertexListGraph: vertices are the numbers of the steps.
inline std::pair<boost::counting_iterator<int>, boost::counting_iterator<int>> vertices(tape const& t) {
    return {boost::counting_iterator<int>(0), boost::counting_iterator<int>(static_cast<int>(t.steps.size()))};
}
inline std::size_t num_vertices(tape const& t) { return t.steps.size(); }

// One property map serves all tags: it knows the tape and what is asked of it.
template <class Tag>
struct step_map {
    tape const* of;
};
template <class Tag>
step_map<Tag> get(Tag, tape const& t) { return {&t}; }

/// The op with its arguments under the names of its schema: costs and rules ask for tensors by name.
inline cantle::op get(step_map<cantle::vertex_op_t> m, int v) {
    auto const& s = m.of->steps[static_cast<std::size_t>(v)];
    cantle::op o{s.kernel, {}};
    for (std::size_t i = 0; i < s.names.size(); ++i)
        o.arguments.push_back({s.names[i], cantle::operand_slot{static_cast<std::uint32_t>(i)}});
    return o;
}
inline std::vector<std::pair<int, int>> get(step_map<cantle::vertex_operands_t> m, int v) {
    return m.of->steps[static_cast<std::size_t>(v)].reads;
}
inline std::vector<cantle::tensor_meta> get(step_map<cantle::vertex_outputs_t> m, int v) {
    std::vector<cantle::tensor_meta> metas;
    for (auto const& sizes : m.of->steps[static_cast<std::size_t>(v)].result_sizes)
        metas.push_back(cantle::contiguous_meta(sizes, cantle::dtype::bfloat16));
    return metas;
}
// Optional: a gradient lies as the parameter it belongs to.
inline std::optional<int> get(step_map<cantle::vertex_of_t> m, int v) {
    int const of = m.of->steps[static_cast<std::size_t>(v)].gradient_of;
    return of < 0 ? std::nullopt : std::optional<int>(of);
}

}  // namespace trainer

template <>
struct boost::graph_traits<trainer::tape> {
    using vertex_descriptor = int;
    using vertex_iterator = boost::counting_iterator<int>;
    using vertices_size_type = std::size_t;
    using directed_category = boost::directed_tag;
    using edge_parallel_category = boost::allow_parallel_edge_tag;
    using traversal_category = boost::vertex_list_graph_tag;
};

int main() {
    // loss = sum(squash(x W^T)), forward and backward
    trainer::tape t;
    int const x = t.add({"cantle::input", {}, {{64, 512, 1024}}});
    int const w = t.add({"cantle::parameter", {}, {{4096, 1024}}});
    int const y = t.add({"aten::linear", {{x, 0}, {w, 0}}, {{64, 512, 4096}}, {"input", "weight"}});
    int const z = t.add({"trainer::squash", {{y, 0}}, {{64, 512, 4096}}});
    int const l = t.add({"aten::sum", {{z, 0}}, {{}}});
    t.add({"cantle::loss", {{l, 0}}, {{}}});
    int const one = t.add({"cantle::constant", {}, {{}}});
    int const dz = t.add({"aten::expand", {{one, 0}}, {{64, 512, 4096}}});
    int const dy = t.add({"trainer::squash_backward", {{dz, 0}, {y, 0}}, {{64, 512, 4096}}});
    int const dw = t.add({"cantle::linear_grad_weight", {{dy, 0}, {x, 0}}, {{4096, 1024}}, {"grad", "input"}});
    t.add({"cantle::gradient", {{dw, 0}}, {{4096, 1024}}, {}, w});

    auto rules = cantle::standard_rules();
    rules.add("trainer::squash", cantle::rules::pointwise_rule());
    rules.add("trainer::squash_backward", cantle::rules::pointwise_rule({.linear = true, .linear_in = {0}, .multilinear_in = {}}));

    auto const mesh = cantle::device_mesh::parse("4x8", "dp,tp");
    auto const plan = cantle::plan(t, mesh, rules, cantle::standard_cost_model(mesh, cantle::find_cluster("h100")));

    std::printf("objective %.3f us, bound %.3f us, %s\n", plan.objective, plan.bound, std::string(to_string(plan.status)).c_str());
    for (std::size_t v = 0; v < plan.nodes.size(); ++v)
        std::printf("%-28s %s\n", t.steps[v].kernel.c_str(),
                    plan.nodes[v].outputs.empty() ? "" : plan.at(plan.nodes[v].outputs[0]).text(mesh).c_str());
    // What each rank runs.
    auto const programs = cantle::ready_programs(t, plan, rules);
    for (auto const& step : programs[0].steps)
        std::printf("rank 0: %s\n", step.is_transfer() ? std::string(to_string(step.move.kind)).c_str() : step.call.name.c_str());
    // The sum over a sharded tensor must be reduced before it is the loss, and nothing costs less than the bound.
    bool const reduced = plan.at(plan.nodes[5].outputs[0]).is_replicated();
    bool const parameter_is_sharded = plan.at(plan.nodes[static_cast<std::size_t>(w)].outputs[0]).cut_count() == 32;
    return reduced && parameter_is_sharded && programs.size() == 32 && plan.bound <= plan.objective ? 0 : 1;
}
