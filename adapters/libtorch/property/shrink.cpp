// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/shrink.hpp>

#include <adapters/libtorch/property/surgery.hpp>

#include <cantle/base/error.hpp>
#include <cantle/graph/validate.hpp>

#include <algorithm>
#include <utility>

namespace cantle::libtorch {
namespace {

/// Axes that a node's layouts use, counted over its ports.
std::size_t weight_of(placed_node const& n) {
    std::size_t w = 0;
    for (auto const* list : {&n.operands, &n.outputs})
        for (auto const& l : *list)
            for (std::size_t a = 0; a < l.mesh_dims(); ++a) w += !l.is_free(a);
    return w;
}

class shrinker {
public:
    shrinker(run_case const& c, run_failure f, tamper_programs const& tamper, std::size_t most)
        : now_{c.graph, placements_of(c.graph, c.plan), c.data}, failure_(std::move(f)), tamper_(tamper), most_(most) {
        best_ = c;
    }
    shrunk_case run() {
        for (bool smaller = true; smaller && tried_ < most_;) {
            smaller = false;
            smaller |= end_earlier();
            smaller |= begin_later();
            smaller |= drop_ways();
            smaller |= drop_relays();
            smaller |= drop_axes();
            smaller |= lighten();
            smaller |= fewer_elements();
        }
        return {std::move(best_), failure_, tried_};
    }

private:
    placed_graph now_;
    run_case best_;
    run_failure failure_;
    tamper_programs const& tamper_;
    std::size_t tried_ = 0, most_;

    /// Takes the candidate where it fails in the same way.
    bool accept(placed_graph candidate) {
        if (tried_ >= most_) return false;
        ++tried_;
        try {
            validate(candidate.graph);
            auto plan = plan_of(candidate.graph, candidate.at);
            if (!plan) return false;
            run_case c{candidate.graph, std::move(*plan), candidate.data};
            all_values(c.graph, c.data);  // it must run on one rank
            auto f = failure_of(c, tamper_);
            if (!f || f->kind != failure_.kind) return false;
            now_ = std::move(candidate);
            best_ = std::move(c);
            failure_ = std::move(*f);
            return true;
        } catch (std::exception const&) {
            return false;
        }
    }
    std::size_t ops() const { return op_count(now_.graph); }

    /// One sink only, as early as the fault shows.
    bool end_earlier() {
        auto const& g = now_.graph;
        std::size_t sinks = 0;
        for (auto const& n : g.nodes) sinks += is_sink(n.role);
        auto const size = [](training_graph const& x) { return x.size(); };
        for (vertex v = 0; v < g.size(); ++v) {
            for (std::uint32_t i = 0; i < g[v].operands.size(); ++i) {
                auto c = with_sink(now_, g[v].operands[i], now_.at.nodes[v].operands[i]);
                if (size(c.graph) < size(g) && accept(std::move(c))) return true;
            }
            if (g[v].role != node_role::computation) continue;
            for (std::uint32_t o = 0; o < g[v].outputs.size(); ++o) {
                if (!g[v].outputs[o].defined) continue;
                auto c = with_sink(now_, {v, o}, now_.at.nodes[v].outputs[o]);
                if (size(c.graph) < size(g) && accept(std::move(c))) return true;
            }
        }
        return false;
    }
    /// Ops in front of the fault become inputs.
    bool begin_later() {
        bool any = false;
        for (bool again = true; again;) {
            again = false;
            auto const values = all_values(now_.graph, now_.data);
            for (auto v = static_cast<vertex>(now_.graph.size()); v-- > 0;) {
                if (now_.graph[v].role != node_role::computation) continue;
                if (accept(without_op(now_, v, values))) {
                    any = again = true;
                    break;
                }
            }
        }
        return any;
    }
    bool drop_ways() {
        if (now_.at.ways.empty()) return false;
        auto c = now_;
        c.at.ways.clear();
        if (accept(std::move(c))) return true;
        bool any = false;
        auto const ways = now_.at.ways;
        for (auto const& [key, via] : ways) {
            auto without = now_;
            without.at.ways.erase(key);
            any |= accept(std::move(without));
        }
        return any;
    }
    bool drop_relays() {
        bool any = false;
        for (std::size_t r = now_.at.relays.size(); r-- > 0;) {
            auto c = now_;
            c.at.relays.erase(c.at.relays.begin() + static_cast<std::ptrdiff_t>(r));
            any |= accept(std::move(c));
        }
        return any;
    }
    bool drop_axes() {
        bool any = false;
        for (std::size_t a = now_.at.mesh.dims(); a-- > 0;)
            if (now_.at.mesh.dims() > 1) any |= accept(without_axis(now_, a));
        return any;
    }
    /// Layouts that use fewer axes: of relays, of sources and sinks, of ops.
    bool lighten() {
        bool any = false;
        layout const whole(now_.at.mesh.dims());
        for (std::size_t r = 0; r < now_.at.relays.size(); ++r) {
            auto c = now_;
            c.at.relays[r].second = whole;
            if (!now_.at.relays[r].second.is_replicated()) any |= accept(std::move(c));
        }
        for (vertex v = 0; v < now_.graph.size(); ++v) {
            auto const weight = weight_of(now_.at.nodes[v]);
            if (weight == 0) continue;
            std::vector<placed_node> lighter;
            if (now_.graph[v].role == node_role::computation) lighter = strategies_of(now_.graph, v, now_.at.mesh);
            else {
                auto n = now_.at.nodes[v];
                for (auto& l : n.operands) l = whole;
                for (auto& l : n.outputs) l = whole;
                lighter.push_back(std::move(n));
            }
            std::stable_sort(lighter.begin(), lighter.end(), [](auto const& x, auto const& y) { return weight_of(x) < weight_of(y); });
            if (lighter.size() > 40) lighter.resize(40);
            for (auto const& n : lighter) {
                if (weight_of(n) >= weight) break;
                auto c = now_;
                c.at.nodes[v] = n;
                if (accept(std::move(c))) {
                    any = true;
                    break;
                }
            }
        }
        return any;
    }
    bool fewer_elements() {
        bool any = false;
        for (bool again = true; again;) {
            again = false;
            for (auto const n : sizes_of(now_.graph))
                for (std::int64_t const to : {n / 4, n / 3, n / 2, n - 1}) {
                    if (to < 1 || to >= n || again) continue;
                    again = accept(with_size(now_, n, to));
                }
            any |= again;
        }
        return any;
    }
};

}  // namespace

shrunk_case shrink(run_case const& c, run_failure const& failure, tamper_programs const& tamper, std::size_t most) {
    return shrinker(c, failure, tamper, most).run();
}

}  // namespace cantle::libtorch
