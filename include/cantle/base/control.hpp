// SPDX-License-Identifier: BSL-1.0
#pragma once
// How a caller limits and watches long work: a deadline, a stop token, a progress observer. All optional, and free when absent.
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

namespace cantle {

/// One progress event. `done` of `total` steps of `stage`; total 0 when it is not known beforehand.
struct progress_event {
    std::string_view stage;
    std::size_t done = 0, total = 0;
    double energy = 0, bound = 0;  ///< of a solver, microseconds; both 0 elsewhere
};

/// Limits and observer of a run. A run cut short by the deadline says so in its status and is exempt from determinism.
struct control {
    std::optional<std::chrono::steady_clock::time_point> deadline;
    std::stop_token stop;
    std::function<void(progress_event const&)> progress;

    /// True when the work must end at the next point where a whole result exists.
    bool expired() const {
        return stop.stop_requested() || (deadline && std::chrono::steady_clock::now() >= *deadline);
    }
    void report(progress_event const& e) const { if (progress) progress(e); }
};

}  // namespace cantle
