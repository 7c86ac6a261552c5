// SPDX-License-Identifier: BSL-1.0
// The trace and the texts of a program small enough to work out by hand (tests/program/small_program.hpp).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "../program/small_program.hpp"

#include <cantle/report/program_text.hpp>
#include <cantle/report/timeline_report.hpp>
#include <cantle/report/trace_json.hpp>

#include <nlohmann/json.hpp>

#include <map>
#include <string>

using namespace cantle;
using cantle::test::small_prices;
using cantle::test::small_program;

TEST_CASE("the trace is JSON whose events add up to the timeline and never overlap within a stream") {
    auto const c = small_program();
    for (bool serial : {false, true}) {
        auto const t = predict_timeline(c.program, c.graph, c.plan, small_prices(), {comm_streams::one, serial});
        auto const text = trace_json(t, c.program, c.graph, c.plan);
        CHECK(text == trace_json(t, c.program, c.graph, c.plan));
        auto const j = nlohmann::json::parse(text);
        std::map<int, double> busy, end;
        std::map<int, std::string> names;
        double last_counter = -1;
        std::int64_t most_bytes = 0;
        for (auto const& e : j.at("traceEvents")) {
            CHECK(e.at("pid") == 0);
            if (e.at("ph") == "X") {
                int const tid = e.at("tid");
                CHECK(e.at("ts").get<double>() >= end[tid]);
                end[tid] = e.at("ts").get<double>() + e.at("dur").get<double>();
                busy[tid] += e.at("dur").get<double>();
            } else if (e.at("ph") == "C") {
                CHECK(e.at("ts").get<double>() >= last_counter);
                last_counter = e.at("ts");
                most_bytes = std::max(most_bytes, e.at("args").at("bytes").get<std::int64_t>());
            } else {
                CHECK(e.at("ph") == "M");
                if (e.at("name") == "thread_name") names[e.at("tid")] = e.at("args").at("name");
            }
        }
        CHECK(busy[0] == t.compute_us);
        CHECK(busy[1] == t.communication_us);
        CHECK(std::max(end[0], end[1]) == t.step_us);
        CHECK(most_bytes == t.memory.peak);
        CHECK(names == std::map<int, std::string>{{0, "ops"}, {1, "collectives"}});
    }
}

TEST_CASE("events say what they are: op, layouts, axes, bytes, phase") {
    auto c = small_program();
    c.graph[3].name = "a \"quoted\" \n name";
    auto const t = predict_timeline(c.program, c.graph, c.plan, small_prices());
    auto const j = nlohmann::json::parse(trace_json(t, c.program, c.graph, c.plan));
    std::map<std::string, nlohmann::json> events;
    for (auto const& e : j.at("traceEvents"))
        if (e.at("ph") == "X") events[e.at("name")] = e;
    REQUIRE(events.count("all_gather(tp) w") == 1);
    auto const& gather = events["all_gather(tp) w"];
    CHECK(gather.at("cat") == "forward,collective");
    CHECK(gather.at("args").at("message_bytes") == 256);
    CHECK(gather.at("args").at("packed_bytes") == 256);
    CHECK(gather.at("args").at("exposed_us") == 6.0);
    REQUIRE(events.count(c.graph[3].name) == 1);
    auto const& product = events[c.graph[3].name];
    CHECK(product.at("args").at("op") == "aten::mm");
    CHECK(product.at("args").at("reads") == "S0 | R");
    CHECK(product.at("args").at("gives") == "S0");
}

TEST_CASE("the figures name step time, exposed communication, peak and what makes it, for people and machines alike") {
    auto const c = small_program();
    auto const t = predict_timeline(c.program, c.graph, c.plan, small_prices());
    timeline_report const r{&t, &c.program, &c.graph, &c.plan, "small", true};
    auto const text = timeline_text(r);
    for (auto const* line : {"step                 18.0  100.0 %", "exposed: no op runs  11.0   61.1 %", "one after the other: 22.0",
                             "peak 896 B at 4.0 us, step 2 (mm)",
                             "parameters 128 B, inputs 128 B, values 384 B, transfers in flight 256 B"})
        CHECK_MESSAGE(text.find(line) != std::string::npos, line, " is not in\n", text);
    auto const j = nlohmann::json::parse(timeline_json(r));
    CHECK(j.at("step") == 18.0);
    CHECK(j.at("exposed") == 11.0);
    CHECK(j.at("parts").at("all_gather") == 15.0);
    CHECK(j.at("memory").at("peak") == 896);
    CHECK(j.at("memory").at("at_peak").at("transfers in flight") == 256);
}

TEST_CASE("a program as text has every step with its values and local sizes") {
    auto const c = small_program();
    CHECK(program_text(c.program, c.graph, c.plan) == R"(program of rank 0 (tp 0) on mesh 2 (tp): 4 steps

inputs
  value  tensor  role       whole   lies  this rank's
  %0     x       input      [8, 8]  S0    float32 [4, 8]
  %1     w       parameter  [8, 8]  S1    float32 [8, 4]

steps
  step  makes  what runs       reads  gives           for                                                 then lets go
     0  %3     all_gather(tp)  %1     float32 [8, 8]  w, unpacked [2, 8, 1, 4] in the order [1, 2, 0, 3]  %1
     1  %2     aten::relu      %0     float32 [4, 8]  relu                                                %0
     2  %4     aten::mm        %2 %3  float32 [4, 8]  mm                                                  %2 %3
     3  %5     all_gather(tp)  %4     float32 [8, 8]  mm                                                  %4

outputs
  value  tensor  role    lies  this rank's
  %5     y       output  R     float32 [8, 8]
)");
}
