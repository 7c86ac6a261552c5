// SPDX-License-Identifier: BSL-1.0
#pragma once
// Names for what a plan does, read off its layouts axis by axis; nothing is declared anywhere. The definitions are those of Table 1 of
// arXiv 2611.08660 (Y = X W), said of one axis, with weights stored as [N, K]:
//
//     stored S,  used R, x S0           FSDP                 the weight is gathered for use; its gradient is reduce-scattered
//     stored R,  used R, x S0           data parallel        the gradient of the weight is all-reduced
//     stored any, used R, x S(1..)      sequence-sharded     the same with the activations cut along the sequence
//     used S,    y S(last)              column TP            no communication of its own
//     used S,    y P                    row TP               y is reduced
//     ..., and x comes from, or y goes to, S(1..)            "+ sequence parallel"
#include <cantle/report/projections.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// What one projection does on one mesh axis.
struct axis_pattern {
    std::string name;    ///< "FSDP", "column TP + sequence parallel", ...
    std::string detail;  ///< how one sees it: "weight S0 gathered, x S0, gradient reduce-scattered"
    bool operator==(axis_pattern const&) const = default;
};

/// The pattern of a projection on `axis`. `x_rank`, `y_rank`: dims of input and result.
inline axis_pattern pattern_on(plan_view const& view, projection const& p, std::size_t axis) {
    auto const& plan = view.plan();
    auto const& g = view.graph();
    auto const& l = p.layouts;
    auto const at = [&](plan_layout layout_index) { return plan.at(layout_index).on(axis); };
    std::size_t const y_rank = g[p.forward].outputs[0].rank();
    auto const middle = [&](placement q) { return q.is_shard() && q.dim > 0 && q.dim + 1u < y_rank; };
    auto const x = at(l.x), stored = at(l.stored), kept = at(l.weight_kept), used = at(l.used), y = at(l.y);

    axis_pattern result;
    auto const say = [&result](std::string const& s) { result.detail += (result.detail.empty() ? "" : ", ") + s; };
    if (plan.mesh.size(axis) == 1) return {"-", "axis of size 1"};
    if (used.is_shard()) {
        // Gathered once for all users (backward reads it whole), while this product takes its slice.
        if (kept.is_replicate() && stored.is_shard())
            say("weight " + to_string(stored) + " gathered, its slice " + to_string(used) + " used");
        else if (stored.is_replicate()) say("weight stored whole, its slice " + to_string(used) + " used");
        else if (stored != used) say("weight " + to_string(stored) + " brought to " + to_string(used));
        else say("weight " + to_string(used) + " used as stored");
        bool sequence = false;
        if (y.is_partial()) {
            result.name = "row TP";
            auto const to = at(l.y_to);
            if (to.is_shard()) say("y reduce-scattered to " + to_string(to));
            else if (to.is_replicate()) say("y all-reduced");
            else say("y stays partial");
            sequence = middle(to);
        } else {
            result.name = y.is_shard() && y.dim + 1u == y_rank ? "column TP" : "weight sharded";
            auto const from = at(l.x_from);
            if (from.is_shard() && x.is_replicate()) say("x gathered from " + to_string(from));
            else if (from.is_partial() && x.is_replicate()) say("x all-reduced");
            else say("x " + to_string(x));
            sequence = middle(from) && x.is_replicate();
        }
        if (sequence) result.name += " + sequence parallel";
        if (kept.is_replicate() && stored.is_shard()) result.name += ", weight gathered";
    } else {
        bool const gathered = stored.is_shard();
        say(gathered ? "weight " + to_string(stored) + " gathered" : std::string("weight replicated"));
        say("x " + to_string(x));
        if (x.is_shard(0)) result.name = gathered ? "FSDP" : "data parallel";
        else if (x.is_shard()) result.name = gathered ? "FSDP, sequence-sharded" : "sequence-sharded";
        else if (x.is_partial()) result.name = "on partial values";
        else result.name = gathered ? "replicated, weight stored sharded" : "replicated";
    }
    if (l.to_weight) {
        auto const from = at(l.to_weight->grad_weight), to = at(l.to_weight->stored);
        if (from.is_partial()) say(to.is_shard() ? "gradient reduce-scattered" : "gradient all-reduced");
        else if (from.is_shard() && to.is_replicate()) say("gradient gathered");
        else say("gradient needs no reduction");
    }
    return result;
}

/// How often each pattern occurs on `axis` over all projections, most common first.
inline std::vector<std::pair<std::string, std::size_t>> count_patterns(plan_view const& view, std::vector<projection_role> const& roles,
                                                                       std::size_t axis) {
    std::vector<std::pair<std::string, std::size_t>> counts;
    for (auto const& r : roles)
        for (auto const& [p, n] : r.variants) {
            auto const name = pattern_on(view, p, axis).name;
            auto const at = std::find_if(counts.begin(), counts.end(), [&](auto const& c) { return c.first == name; });
            if (at == counts.end()) counts.emplace_back(name, n);
            else at->second += n;
        }
    std::stable_sort(counts.begin(), counts.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
    return counts;
}

}  // namespace cantle
