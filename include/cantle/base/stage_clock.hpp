// SPDX-License-Identifier: BSL-1.0
#pragma once
// Wall time per named stage, for reports and benches. Never part of a plan: plans are the same bytes on every run.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

class stage_clock {
public:
    /// End the running stage (if any) and start `name`; a name seen before goes on adding up.
    void enter(std::string const& name) {
        leave();
        for (auto& s : stages_)
            if (s.first == name) current_ = &s - stages_.data();
        if (current_ < 0) {
            current_ = static_cast<std::ptrdiff_t>(stages_.size());
            stages_.emplace_back(name, 0.0);
        }
        started_ = clock::now();
    }
    void leave() {
        if (current_ >= 0)
            stages_[static_cast<std::size_t>(current_)].second += std::chrono::duration<double>(clock::now() - started_).count();
        current_ = -1;
    }
    /// (stage, seconds) in order of first entry.
    std::vector<std::pair<std::string, double>> const& stages() const { return stages_; }

private:
    using clock = std::chrono::steady_clock;
    std::vector<std::pair<std::string, double>> stages_;
    std::ptrdiff_t current_ = -1;
    clock::time_point started_;
};

}  // namespace cantle
