// SPDX-License-Identifier: BSL-1.0
#pragma once
// A timeline in figures: step time, what of communication is exposed, peak memory. For people, and for machines ("cantle-timeline",
// version 1; docs/cli.md lists the keys).
#include <cantle/program/timeline.hpp>
#include <cantle/report/figures.hpp>
#include <cantle/report/program_view.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle {

struct timeline_report {
    program_timeline const* timeline = nullptr;
    rank_program const* program = nullptr;
    training_graph const* graph = nullptr;
    sharding_plan const* plan = nullptr;
    std::string cluster;
    bool prices_of_plan = false;   ///< the cost model is the one that the plan was made with
    std::size_t largest = 8;       ///< how many tensors of the peak to list
};

namespace detail {

/// Collectives of one kind over the same axes.
struct collective_sum {
    std::size_t count = 0;
    double us = 0, exposed = 0;
};
inline std::map<std::tuple<collective_kind, std::uint32_t, bool>, collective_sum> sum_events(program_timeline const& t) {
    std::map<std::tuple<collective_kind, std::uint32_t, bool>, collective_sum> sums;
    for (auto const& e : t.events) {
        if (!e.is_collective) continue;
        auto& s = sums[{e.call.kind, e.call.axes, e.inside_op}];
        ++s.count;
        s.us += e.duration;
        s.exposed += e.exposed;
    }
    return sums;
}

inline std::string held_text(program_view const& view, held_memory const& m) {
    if (auto const* source = view.source(m.value)) return std::string(to_string(source->role));
    if (m.what == held_memory::use::sent) return "sent by a transfer";
    return m.what == held_memory::use::received ? "received by a transfer" : "value";
}

/// Bytes at the peak by what holds them, in a fixed order.
inline std::vector<std::pair<std::string, std::int64_t>> peak_parts(program_view const& view, memory_profile const& m) {
    std::map<std::string, std::int64_t> sums;
    for (auto const& h : m.at_peak) {
        auto const* source = view.source(h.value);
        auto const what = source && source->role == node_role::parameter ? "parameters"
                          : source                                      ? "inputs"
                          : h.what == held_memory::use::value           ? "values"
                                                                        : "transfers in flight";
        sums[what] += h.bytes;
    }
    std::vector<std::pair<std::string, std::int64_t>> parts;
    for (auto const* what : {"parameters", "inputs", "values", "transfers in flight"}) parts.emplace_back(what, sums[what]);
    return parts;
}

}  // namespace detail

/// Lines of any width, ending in a newline.
inline std::string timeline_text(timeline_report const& r) {
    auto const& t = *r.timeline;
    program_view const view(*r.program, *r.graph);
    auto const share = [](double part, double whole) { return whole > 0 ? percent_text(part / whole) : std::string(); };
    std::string out = "timeline of rank " + std::to_string(t.rank) + " on mesh " + r.program->mesh.text() + ", cluster " + r.cluster +
                      ": " + count_text(r.program->steps.size()) + " steps, " +
                      (t.serial ? "one after the other" : "collectives beside ops");
    out = visible_text(out) + "\n";
    out += r.prices_of_plan ? "prices: those of the plan\n" : "prices: of that cluster; the plan was made with others\n";
    out += "\ntime (microseconds, predicted)\n";
    text_table time({"part", ">us", ">share"});
    auto const row = [&](std::string const& name, double us) { time.add({name, microseconds_text(us), share(us, t.step_us)}); };
    row("step", t.step_us);
    row("ops", t.compute_us);
    row("collectives", t.communication_us);
    row("exposed: no op runs", t.exposed_us);
    out += time.text();
    out += "  " + percent_text(t.hidden_share()) + " of communication runs beside ops\n";
    double const sum = t.parts.total() - t.without_step_us;
    out += "  one after the other: " + microseconds_text(sum);
    double const whole = t.parts.total() + r.plan->cost.tie_break;
    bool const adds_up = std::abs(whole - r.plan->objective) <= 1e-6 * std::abs(r.plan->objective);
    if (r.prices_of_plan && adds_up)
        out += "; the plan's objective " + microseconds_text(r.plan->objective) + " is that and a tie-break of " +
               microseconds_text(r.plan->cost.tie_break);
    else if (r.prices_of_plan)  // a rank of an uneven plan may hold smaller pieces than the plan counts
        out += "; the plan counts the largest pieces of any rank: " + microseconds_text(r.plan->objective - r.plan->cost.tie_break) +
               " and a tie-break of " + microseconds_text(r.plan->cost.tie_break);
    if (t.without_step_us > 0) out += " and " + microseconds_text(t.without_step_us) + " of ops that call nothing";
    out += "\n\ncollectives\n";
    text_table table({"kind", "axes", "where", ">count", ">us", ">ops wait us"});
    for (auto const& [key, s] : detail::sum_events(t))
        table.add({std::string(to_string(std::get<0>(key))), view.axes(std::get<1>(key)), std::get<2>(key) ? "inside ops" : "",
                   count_text(s.count), microseconds_text(s.us), microseconds_text(s.exposed)});
    out += table.empty() ? "  none\n" : table.text();

    auto const& m = t.memory;
    out += "\nmemory (this rank's tensors and buffers of transfers; no optimizer, no workspace of kernels)\n";
    std::string const where = r.program->steps.empty() ? "" : " at " + microseconds_text(t.issued[m.peak_step]) + " us, step " +
                              std::to_string(m.peak_step) + " (" + (*r.graph)[r.program->steps[m.peak_step].at].name + ")";
    out += visible_text("  peak " + bytes_text(m.peak) + where) + "\n";
    std::string parts;
    for (auto const& [what, bytes] : detail::peak_parts(view, m)) parts += (parts.empty() ? "" : ", ") + what + " " + bytes_text(bytes);
    out += "  there: " + parts + "\n";
    if (m.unsized_values) out += "  " + count_text(m.unsized_values) + " values inside ops are of unknown size and not counted\n";
    text_table largest({"largest there", ">bytes", "what"});
    for (std::size_t i = 0; i < m.at_peak.size() && i < r.largest; ++i)
        largest.add({view.name(m.at_peak[i].value), bytes_text(m.at_peak[i].bytes), detail::held_text(view, m.at_peak[i])});
    return out + largest.text();
}

/// The same as JSON text, indented, ending in a newline.
inline std::string timeline_json(timeline_report const& r) {
    using object = nlohmann::ordered_json;
    auto const& t = *r.timeline;
    program_view const view(*r.program, *r.graph);
    object j{{"format", "cantle-timeline"}, {"version", 1}, {"rank", t.rank}, {"cluster", r.cluster}, {"prices_of_plan", r.prices_of_plan},
             {"serial", t.serial}, {"steps", r.program->steps.size()}, {"step", t.step_us}, {"ops", t.compute_us},
             {"collectives", t.communication_us}, {"exposed", t.exposed_us}, {"hidden_share", t.hidden_share()},
             {"objective", r.plan->objective}, {"tie_break", r.plan->cost.tie_break}, {"without_step", t.without_step_us}};
    object parts{{"forward_compute", t.parts.forward_compute}, {"backward_compute", t.parts.backward_compute}};
    for (std::size_t k = 0; k < t.parts.moves.size(); ++k)
        parts[std::string(to_string(static_cast<collective_kind>(k)))] = t.parts.moves[k];
    parts["inner"] = t.parts.inner;
    j["parts"] = std::move(parts);
    auto list = object::array();
    for (auto const& [key, s] : detail::sum_events(t)) {
        auto axes = object::array();
        for (std::size_t a = 0; a < r.program->mesh.dims(); ++a)
            if (std::get<1>(key) >> a & 1u) axes.push_back(r.program->mesh.name(a));
        list.push_back({{"kind", to_string(std::get<0>(key))}, {"axes", std::move(axes)}, {"inside_op", std::get<2>(key)},
                        {"count", s.count}, {"microseconds", s.us}, {"exposed", s.exposed}});
    }
    j["by_collective"] = std::move(list);
    auto const& m = t.memory;
    object memory{{"peak", m.peak}, {"sources", m.sources}, {"peak_step", m.peak_step}, {"unsized_values", m.unsized_values}};
    if (!r.program->steps.empty()) {
        memory["peak_at"] = t.issued[m.peak_step];
        memory["peak_vertex"] = (*r.graph)[r.program->steps[m.peak_step].at].name;
    }
    for (auto const& [what, bytes] : detail::peak_parts(view, m)) memory["at_peak"][what] = bytes;
    auto largest = object::array();
    for (std::size_t i = 0; i < m.at_peak.size() && i < r.largest; ++i)
        largest.push_back({{"name", view.name(m.at_peak[i].value)},
                           {"bytes", m.at_peak[i].bytes},
                           {"what", detail::held_text(view, m.at_peak[i])}});
    memory["largest"] = std::move(largest);
    j["memory"] = std::move(memory);
    return j.dump(2, ' ', false, object::error_handler_t::replace) + "\n";
}

}  // namespace cantle
