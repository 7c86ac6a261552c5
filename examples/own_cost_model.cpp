// SPDX-License-Identifier: BSL-1.0
// A cost model of one's own: any class with compute, collective and feed. This one knows a network so slow that only bytes count, and the
// plan changes with it.
#include <cantle/cost/standard_cost_model.hpp>
#include <cantle/graph/builder.hpp>
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

#include <cstdio>
#include <string>

/// Computation as on an H100; every collective at `microseconds_per_megabyte` of what a rank receives.
class slow_network {
public:
    slow_network(cantle::device_mesh const& mesh, double microseconds_per_megabyte)
        : h100_(mesh, cantle::find_cluster("h100")), per_megabyte_(microseconds_per_megabyte) {}

    double compute(cantle::op_query const& local) const { return h100_.compute(local); }
    double collective(cantle::collective_call const& call) const {
        if (call.kind == cantle::collective_kind::slice) return 0;
        return per_megabyte_ * 1e-6 * static_cast<double>(call.message_bytes());
    }
    void feed(cantle::stable_hasher& h) const {
        h.add("slow_network").add(per_megabyte_);
        h100_.feed(h);
    }

private:
    cantle::standard_cost_model h100_;
    double per_megabyte_;
};

namespace {

/// y = x W^T with its weight gradient; x is [64, 512, 1024], W is [4096, 1024].
cantle::training_graph one_layer() {
    cantle::graph_builder b;
    auto const x = b.input("x", {64, 512, 1024}, cantle::dtype::bfloat16);
    auto const w = b.parameter("w", {4096, 1024}, cantle::dtype::bfloat16);
    auto const y = b.linear(x, w);
    b.loss(b.call("aten::sum", {{"self", y}, {"dtype", cantle::none}}));
    b.backward();
    auto const dy = b.call("aten::expand",
                           {{"self", b.ones({}, cantle::dtype::bfloat16)}, {"size", cantle::shape{64, 512, 4096}}, {"implicit", false}});
    b.gradient(w, b.linear_grad_weight(dy, x, y));
    return b.build();
}

void print(char const* name, cantle::sharding_plan const& p) {
    std::printf("%-12s compute %10.1f us, communication %12.1f us, gap %g\n", name, p.cost.forward_compute + p.cost.backward_compute,
                p.cost.communication(), p.gap());
}

}  // namespace

int main() {
    auto const mesh = cantle::device_mesh::parse("2x4", "dp,tp");
    auto const graph = one_layer();
    auto const rules = cantle::standard_rules();

    auto const fast = cantle::plan(graph, mesh, rules, cantle::standard_cost_model(mesh, cantle::find_cluster("h100")));
    auto const slow = cantle::plan(graph, mesh, rules, slow_network(mesh, 1e6));
    print("h100", fast);
    print("slow network", slow);

    // On the slow network the planner moves no more bytes than on the fast one, even where it must compute more.
    auto const moved = [](cantle::sharding_plan const& p) {
        std::int64_t bytes = 0;
        for (auto const& m : p.moves)
            for (auto const& s : p.paths[m.path].steps)
                if (s.step.kind != cantle::collective_kind::slice) bytes += s.call.message_bytes();
        return bytes;
    };
    bool const other_costs = fast.made_from.cost != slow.made_from.cost;
    return other_costs && moved(slow) <= moved(fast) && slow.bound <= slow.objective ? 0 : 1;
}
