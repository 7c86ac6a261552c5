// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/verify_origin.hpp>
#include <adapters/libtorch/verify_sizes.hpp>

#include <cantle/base/error.hpp>

#include <algorithm>
#include <string>

namespace cantle::libtorch {
namespace {

[[noreturn]] void refuse(std::string const& key, std::int64_t value, std::string const& problem) {
    throw error(error_code::bad_field, "graph", "field 'origin." + key + "' is " + std::to_string(value) + ": " + problem,
                "capture the graph again with cantle capture");
}

/// Inputs start with the batch; those that index (tokens, targets) have the sequence behind it.
void refuse_odd_batch(training_graph const& g) {
    bool inputs = false, tokens = false, batch = false, sequence = false;
    for (auto const& n : g.nodes) {
        if (n.role != node_role::input && n.role != node_role::target) continue;
        auto const& t = n.outputs[0];
        if (t.rank() == 0) continue;
        bool const same = t.sizes[0] == g.origin.batch;
        inputs = true;
        batch = batch || same;
        if (t.rank() < 2 || is_floating_point(t.type)) continue;
        tokens = true;
        sequence = sequence || (same && t.sizes[1] == g.origin.sequence);
    }
    if (inputs && !batch) refuse("batch", g.origin.batch, "no input of the graph has so many rows");
    if (tokens && !sequence) refuse("sequence", g.origin.sequence, "no input of the graph has so many columns");
}

}  // namespace

std::int64_t largest_tensor(training_graph const& g) {
    std::int64_t most = 0;
    for (auto const& n : g.nodes)
        for (auto const& t : n.outputs)
            if (t.defined) most = std::max(most, element_count(t.sizes));
    return most;
}

void refuse_odd_origin(training_graph const& g) {
    auto const& o = g.origin;
    if (o.model.empty())
        throw error(error_code::bad_option, "graph", "it does not say from which model it was captured", "capture it with cantle capture");
    if (o.batch < 1) refuse("batch", o.batch, "it is below 1");
    if (o.sequence < 1) refuse("sequence", o.sequence, "it is below 1");
    auto const most = largest_tensor(g);
    for (auto const& [key, value] : o.config) {
        constexpr auto beyond = std::int64_t{1} << 53;  // sums of two sizes stay within 64 bits
        if (value > beyond || value < -beyond) refuse("config." + key, value, "no size is so large");
        if (key.find("layer") != std::string::npos && (value < 0 || static_cast<std::uint64_t>(value) > g.size()))
            refuse("config." + key, value, "the graph has " + std::to_string(g.size()) + " vertices");
        auto const kind = kind_of_size(key);
        if (kind == size_kind::other) continue;
        if (value < 1) refuse("config." + key, value, "it is below 1");
        if (kind == size_kind::dim && value > most)
            refuse("config." + key, value, "the largest tensor of the graph has " + std::to_string(most) + " elements");
    }
    refuse_odd_batch(g);
}

}  // namespace cantle::libtorch
