// SPDX-License-Identifier: BSL-1.0
#pragma once
// A timeline in the Trace Event Format of Chrome, which Perfetto (ui.perfetto.dev) opens too: a JSON object with "traceEvents". A rank is a
// process, a stream a thread; ops and collectives are complete events ("X", microseconds), live memory a counter ("C"), names are metadata
// ("M"). What takes no time (views, slices) is left out. The same timeline gives the same bytes.
#include <cantle/base/json_text.hpp>
#include <cantle/program/timeline.hpp>
#include <cantle/report/program_view.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cantle {

namespace detail {

class trace_writer : json_text {
public:
    trace_writer(program_timeline const& t, program_view const& view, sharding_plan const& plan) : t_(t), view_(view), plan_(plan) {}

    std::string write() {
        out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
        auto const& mesh = view_.program().mesh;
        std::string rank = "rank " + std::to_string(t_.rank) + " of " + mesh.text() + ", predicted";
        name("process_name", std::nullopt, rank);
        for (std::size_t s = 0; s < t_.streams.size(); ++s) {
            name("thread_name", s, t_.streams[s]);
            begin("M", "thread_sort_index", s);
            out_ += ",\"args\":{\"sort_index\":";
            integer(static_cast<std::int64_t>(s));
            out_ += "}}";
        }
        std::size_t next = 0;  // memory stands where the stream of ops comes to a step
        for (auto const& e : t_.events) {
            for (; next <= e.step && next < t_.issued.size(); ++next) memory(next);
            if (e.duration > 0) event(e);
        }
        out_ += "\n]}\n";
        return std::move(out_);
    }

private:
    program_timeline const& t_;
    program_view const& view_;
    sharding_plan const& plan_;
    bool first_ = true;
    std::optional<std::int64_t> shown_bytes_;

    void string(std::string_view s) {
        out_ += '"';
        for (char const ch : s) {
            auto const c = static_cast<unsigned char>(ch);
            if (c == '"' || c == '\\') out_ += {'\\', ch};
            else if (c < 0x20) {
                char const* const digits = "0123456789abcdef";
                out_ += "\\u00";
                out_ += {digits[c >> 4], digits[c & 15]};
            } else out_ += ch;
        }
        out_ += '"';
    }
    void begin(std::string_view kind, std::string_view name, std::optional<std::size_t> stream) {
        out_ += first_ ? "" : ",\n";
        first_ = false;
        out_ += "{\"ph\":\"";
        out_ += kind;
        out_ += "\",\"pid\":";
        integer(t_.rank);
        if (stream) {
            out_ += ",\"tid\":";
            integer(static_cast<std::int64_t>(*stream));
        }
        out_ += ",\"name\":";
        string(name);
    }
    void name(std::string_view what, std::optional<std::size_t> stream, std::string_view text) {
        begin("M", what, stream);
        out_ += ",\"args\":{\"name\":";
        string(text);
        out_ += "}}";
    }
    void text_argument(std::string_view key, std::string_view value, bool first = false) {
        out_ += first ? "\"" : ",\"";
        out_ += key;
        out_ += "\":";
        string(value);
    }
    void number_argument(std::string_view key, std::int64_t value) {
        out_ += ",\"";
        out_ += key;
        out_ += "\":";
        integer(value);
    }
    void memory(std::size_t step) {
        auto const bytes = t_.memory.at_step[step];
        if (bytes == shown_bytes_) return;
        shown_bytes_ = bytes;
        begin("C", "live memory", std::nullopt);
        out_ += ",\"ts\":";
        real(t_.issued[step]);
        out_ += ",\"args\":{\"bytes\":";
        integer(bytes);
        out_ += "}}";
    }
    void event(timeline_event const& e) {
        auto const& s = view_.program().steps[e.step];
        auto const& node = view_.graph()[s.at];
        std::string const axes = e.is_collective ? view_.axes(e.call.axes) : "";
        std::string title = node.name;
        if (e.is_collective)
            title = std::string(to_string(e.call.kind)) + "(" + axes + ") " + (s.is_transfer() ? view_.name(s.inputs[0]) : node.name);
        begin("X", title, e.stream);
        out_ += ",\"cat\":\"";
        out_ += to_string(node.in_phase);
        out_ += e.is_collective ? ",collective" : ",op";
        out_ += "\",\"ts\":";
        real(e.start);
        out_ += ",\"dur\":";
        real(e.duration);
        out_ += ",\"args\":{";
        text_argument("op", s.is_transfer() ? std::string_view(to_string(s.move.kind)) : std::string_view(s.call.name), true);
        text_argument("for", node.name);
        if (!node.module_path.empty()) text_argument("module", node.module_path);
        number_argument("step", static_cast<std::int64_t>(e.step));
        if (e.is_collective) {
            text_argument("axes", axes);
            number_argument("message_bytes", e.call.message_bytes());
            number_argument("packed_bytes", e.call.packed_bytes);
            out_ += ",\"exposed_us\":";
            real(e.exposed);
        } else {
            text_argument("reads", layouts(plan_.nodes[s.at].operands));
            text_argument("gives", layouts(plan_.nodes[s.at].outputs));
        }
        out_ += "}}";
    }
    std::string layouts(std::vector<plan_layout> const& list) const {
        std::string text;
        for (auto l : list) text += (text.empty() ? "" : " | ") + plan_.at(l).text(plan_.mesh);
        return text;
    }
};

}  // namespace detail

/// The trace as JSON text, one event per line. Preconditions: `t` is the timeline of p, and p a program of `plan` for g.
inline std::string trace_json(program_timeline const& t, rank_program const& p, training_graph const& g, sharding_plan const& plan) {
    return detail::trace_writer(t, program_view(p, g), plan).write();
}

}  // namespace cantle
